// Package wasm plays replays with a game that was compiled to WebAssembly.
// INTERFACE.md specifies what such a module exports; it speaks the messages of
// a simulation in a process (player/process/PROTOCOL.md) in its own memory.
//
//	m, err := wasm.Compile(ctx, file, wasm.Options{})
//	sim := m.New() // a player.Simulation; any number at the same time
//
// A module is alone in the world: it has no file, no network, no clock and no
// random source but what follows from the replay. Its linear memory and its
// mutable globals are all of its state, so the host keeps and restores it
// without a line of code in the game: seek, rewind, bisect and parallel
// verification need nothing of a game that is a module.
//
// The files, along the data's path:
//
//	binary.go layout.go code.go   reading a module,
//	rewrite.go                    and writing it as the host needs it
//	module.go                     compiling it, and what its games are
//	wasi.go log.go                the world that it sees
//	instance.go watch.go          one life of it, and how long a call may take
//	simulation.go                 ticks
//	snapshot.go state.go          its state, in memory and as bytes
//
// Package guest is the module's side for games written in Go.
package wasm
