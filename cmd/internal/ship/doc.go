// Package ship sends the replay files of a folder to a daemon, also while
// they grow: a sidecar for games that write files.
//
//	err := ship.Run(ctx, ship.Config{Dir: "replays", Follow: true, Servers: servers, TLS: tlsConfig, OnEvent: print})
//
// A file is one session. Its chunks are sent as they stand in it, so that
// what the daemon seals has the content, and the digest, of the file. The
// file itself is what is sent again after a lost connection; nothing is
// copied. A record in the state folder holds the session's key, and how much
// of the file may have been sent with a checksum of that: a file that is
// another one below the same name is refused, never mixed in.
//
//	config.go   Config
//	event.go    what is told while it runs, and at the end
//	name.go     which files are shipped, and under which session id
//	chunks.go   reading chunks from a file that may grow
//	opening.go  what a session is opened with
//	source.go   the chunks of a file as they are sent
//	record.go   the record of one file; book.go the state folder
//	file.go     opening a file, and telling it from another one
//	parcel.go   one file on its way: begin.go, send.go and seal.go are its stages
//	watch.go    what happens in the folder
//	ship.go     Run
//
// A file that ends without an end mark stays unfinished. Formats that have
// none (RPLY1, JSON lines without an end line), and files inside a .zst or
// .gz wrapping, are shipped in one go once they no longer change.
package ship
