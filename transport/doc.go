// Package transport carries the chunks of recorded sessions from a game
// server to a daemon, and tells the game server which tick is safe on disk.
// The protocol is reprise/1; PROTOCOL.md beside this file specifies it.
//
// A game server links the client:
//
//	client, err := transport.Dial(ctx, []string{"recorder.example:4433"}, transport.ClientConfig{TLS: tlsConfig})
//	rec, err := client.Open(transport.Spec{Meta: format.Metadata{Session: "match-17", Game: "skirmish"}})
//	for each tick {
//		rec.Step(code, params...)
//		rec.EndTick()
//	}
//	err = rec.Seal(ctx)
//
// Step and EndTick only append to memory: background goroutines, a handful
// for a client whatever its number of sessions, cut chunks, spool, send and
// reconnect. What the daemon has not confirmed as durable is kept and sent
// again; where it outgrows its bound, ticks are left out, declared as a gap,
// counted and reported.
//
// A daemon runs the server with a Recorder behind it:
//
//	server, err := transport.Listen("127.0.0.1:4433", keypair.Config(), transport.Config{Recorder: recorder})
//
// The package by file:
//
//	limits.go      every limit of the protocol
//	frame.go       the bytes of every frame: parse and append, no I/O
//	refusal.go     typed refusals, the same on both ends
//	carrier.go     what carries frames: reading, writing, deadlines; quic.go is QUIC
//	server.go      listening, admission, shutdown
//	serverconn.go  one connection of a daemon; serversession.go one session on it
//	client.go      a game server's client; link.go one connection of it; dial.go how it connects
//	recording.go   a session being recorded; cut.go cuts its chunks, queue.go keeps them until durable
//	spool.go       the spool file that a restarted game server resumes from
//	tls.go         certificates, fingerprints, pins
//
// Nothing here syncs the spool to disk: it survives the end of the game's
// process, not of its machine.
package transport
