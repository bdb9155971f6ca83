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
// Step and EndTick only append to memory, which with a spool includes a file
// that is mapped there: background goroutines, a handful
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
//	frame.go       the bytes of every frame: parse and append, no I/O;
//	               listframe.go those of listings
//	refusal.go     typed refusals, the same on both ends
//	carrier.go     what carries frames: reading, writing, deadlines; quic.go is QUIC
//	tls.go         certificates, fingerprints, pins; udp.go the socket's buffers
//
//	recorder.go    what a server needs behind it
//	server.go      listening, admission, shutdown
//	serverconn.go  one connection: what it reads; serverwrite.go what it writes
//	serversession.go one session on it
//	lister.go      what a server needs to list sessions; list.go who asks
//
//	client.go      a game server's client; keeper.go its goroutines
//	peer.go        how a program reaches a daemon; dial.go over QUIC
//	link.go        one connection of a client
//	recording.go   a session being recorded; notes.go what is beside its ticks
//	machine.go     the facts about the machine that a recording holds
//	linger.go      when a chunk is cut
//	cut.go         cuts chunks; queue.go keeps them until they are durable
//	flow.go        a recording as the connection sees it
//	spool.go       the spool file that a restarted game server resumes from
//	tail.go        the mapped tail behind it; map_*.go how it is mapped
//	keyfile.go     keyframes that are not whole in the spool file
//	recover.go     what is put into the tail, and taken from it again
//
//	relay.go       a client for chunks that stand in a file already;
//	               relaylink.go its connection, relaysession.go a session
//
// With a spool, what was recorded survives the death of the game's process
// from the return of the call on: a tick from that of EndTick, a hash from
// that of Hash, and so on; PROTOCOL.md has the exact limits. Nothing here syncs the spool to disk: it survives the end
// of the process, not of its machine. It holds the whole session, and is a
// replay by itself, until the session is sealed.
package transport
