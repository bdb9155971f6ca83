// Package relay sends the chunks of recorded sessions to a daemon as they
// stand in a file. It is a client of the protocol reprise/1 that keeps
// nothing: where package transport's client holds what it has recorded until
// that is durable, the caller of a relay has a file to read it from again.
//
//	client, err := relay.Dial(ctx, relay.Config{Addrs: addrs, TLS: tlsConfig})
//	session, standing, err := client.Open(ctx, relay.Request{Session: id, Key: key, Epoch: epoch, Opening: opening})
//	for each chunk behind standing.Received {
//		if session.Fits(len(chunk)) {
//			err = session.Send(chunk)
//		}
//	}
//
// After any error the session is opened again, with a higher epoch: the new
// Standing says from where on to send. A *transport.Refusal that is not
// temporary is an answer that stays.
//
//	frame.go    the bytes of the frames, as transport/PROTOCOL.md has them
//	read.go     reading the daemon's frames
//	link.go     one connection: what it writes and takes
//	session.go  one session on a connection
//	client.go   connecting, and connecting again
package relay
