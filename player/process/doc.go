// Package process plays replays with a simulation in a child process: an
// engine in any language that speaks a small protocol over a local socket.
// PROTOCOL.md specifies it for whoever implements the other side.
//
//	Simulation ──ticks──▶ socket ──▶ child ──▶ its game
//	    ▲                                │
//	    └──────────── answers ───────────┘
//
// [New] starts a child and is a [player.Simulation]. Ticks travel in batches,
// one of which waits in the child while it works on another, so the child
// never waits for this process. A child that ends, hangs or answers badly is
// a [player.SimulationError], and none is ever left running.
//
// [Serve] is the other side for a game written in Go:
//
//	func main() { process.Serve(skirmish.Factory()) }
//
// A simulation of a turn-based game, or any other player.Simulation, is
// served the same way.
//
// The files, along the data's path:
//
//	split.go                    the command line
//	child.go group_*.go         the process; tail.go is its last words
//	listen*.go leftover.go      the socket, and those of killed processes
//	greet.go                    the first message
//	wire.go frame.go            numbers, texts and the frame of a message
//	messages.go                 the messages' types and limits
//	hello.go reset.go tick.go value.go answer.go state.go   their bodies
//	simulation.go choose.go     the host's side: which game, what goes out,
//	batch.go request.go         in batches, and what is asked between them
//	link.go expect.go           and what comes back, conclude.go at the end
//	serve.go served.go          the child's side
//	dialogue.go handler.go      both sides without a socket (player/wasm)
//
// The child's standard output and error are not part of the protocol: both
// are passed on, and the last lines are kept for errors.
package process
