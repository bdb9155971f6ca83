package transport

import (
	"net"

	"reprise/format"
)

// Recorder keeps the sessions that a Server receives. Its methods, and those
// of a Session, may be called by many goroutines at once, but the calls for
// one Session come one at a time.
//
// An error that is, or wraps, a *Refusal reaches the client as it is. Errors
// of package format (ErrOrder, ErrCorrupt, ErrLimit, ErrTotals) become the
// code of their name. Of any other error the client learns only
// CodeUnavailable, and the server logs it.
type Recorder interface {
	// Open claims or resumes a session. It may take its time: other
	// sessions of the connection go on meanwhile. sink takes what happens
	// to the session, from before Open returns until Detach is called. For a
	// session that is sealed already Open calls Sealed, whatever it returns.
	Open(req OpenRequest, sink Sink) (Session, OpenReply, error)
}

// OpenRequest is a client's wish to record a session.
type OpenRequest struct {
	// Session is the id; it passes format.ValidSession.
	Session string
	// Key tells producers apart. The same key with a higher Epoch takes over
	// from an earlier connection, whose sink gets CodeFenced; an epoch that
	// is not higher is refused with it. A client's epoch grows with every
	// open frame, also across its restarts.
	Key   [KeySize]byte
	Epoch uint64
	// ContinueAt, if Continues, is the first tick of the chunks to come: a
	// producer that lost its spool goes on there, whatever is stored. Ticks
	// that are missing before it are to be declared a gap; ticks that are
	// stored already come again and are to be compared.
	ContinueAt format.Tick
	Continues  bool
	// Opening is the framed opening chunks: metadata, code book, players.
	// On a resume they are the same as at first, or none. The bytes are valid
	// until Open returns.
	Opening []byte
	// Token is the access token of the connection.
	Token  []byte
	Remote net.Addr
}

// OpenReply says where a session stands.
type OpenReply struct {
	// Received and Durable are the last sequence numbers of the producer's
	// stream that are kept, and that are on disk; 0 for none.
	Received, Durable uint64
	// DurableTick is the first tick that is not on disk.
	DurableTick format.Tick
	// Totals are the session's counts up to Received.
	Totals format.Totals
	// Ending is set where the session was sealed before, and its replay is
	// being finished: it takes nothing more, and Sink.Sealed follows.
	Ending bool
	// Window is the most bytes of chunks above Durable that the client may
	// have sent. One chunk is always allowed. 0 takes Config.Window.
	Window int
}

// Session is an open session of a Recorder.
type Session interface {
	// Append takes the next chunk, framed as in a file; its checksum has
	// been checked. The bytes are valid during the call only. A chunk that
	// is stored already is confirmed again where it is the same, and refused
	// with CodeConflict and its tick where it is not; so are ticks that come
	// again in a new chunk. Append may block where the Recorder's memory is
	// full: the whole connection then waits. An error ends the session on this
	// connection; after one that is Temporary the client opens it again, and
	// sends on behind what was received.
	Append(chunk []byte) error
	// Seal ends the session if its counts are these. It does not wait for
	// the disk: Sink.Sealed follows. An error ends the session on this
	// connection, unsealed.
	Seal(format.Totals) error
	// Detach is called once, and last: the connection is gone, or the
	// client has left, or the session was sealed or refused.
	Detach()
}

// Sink takes what happens to a session. Its methods may be called by any
// goroutine, also from within the Session's own methods; they never block.
// Calls after Detach have no effect.
type Sink interface {
	// Ack says that the chunks up to received are kept and those up to
	// durable are on disk, with every tick before durableTick. The first one
	// also says that the opening is on disk, and comes though no chunk did.
	// The server gathers acks; an older one does no harm.
	Ack(received, durable uint64, durableTick format.Tick)
	// Window changes OpenReply.Window.
	Window(bytes int)
	// Sealed says that the session is sealed and on disk, under a name.
	Sealed(digest format.Digest, name string)
	// Stalled says why what was received does not become durable. The session
	// goes on, and the next Ack says that this is over. It must follow.
	Stalled(Refusal)
	// Failed ends the session on this connection.
	Failed(Refusal)
}
