package transport

import (
	"sync"

	"reprise/format"
)

// serverSession is one session on a connection: it hands chunks to the
// Recorder, and is the Recorder's Sink.
type serverSession struct {
	conn  *serverConn
	alias uint64
	id    string

	// calls keeps the calls of session apart, and Detach the last one.
	calls    sync.Mutex
	detached bool

	// The rest is guarded by conn.mu.

	session Session // nil until the Recorder has opened it
	told    bool    // the opened frame is in front of what follows
	safe    bool    // the opening is durable
	again   bool    // the next ack goes out in any case: a chunk came again, or a stall was told
	ended   bool
	sealing bool

	early             *Refusal // a stall that was told before the opened frame
	dirty             bool
	received, durable uint64
	durableTick       format.Tick

	appended uint64 // the last chunk given to the Recorder
	flight   flight
}

// open asks the Recorder, and tells the client.
func (s *serverSession) open(req OpenRequest) {
	session, reply, err := s.conn.server.cfg.Recorder.Open(req, s)
	if err != nil {
		s.log(err)
		s.fail(refusalFor(err))
		return
	}
	if reply.Window <= 0 {
		reply.Window = s.conn.server.cfg.Window
	}
	if !s.opened(session, &reply) {
		s.detach()
	}
}

// opened enters what the Recorder replied; false where the session was
// refused meanwhile.
func (s *serverSession) opened(session Session, reply *OpenReply) bool {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	s.session = session
	if s.ended {
		return false
	}
	c.server.stats.opened.Add(1)
	s.flight = flight{window: reply.Window}
	s.appended = reply.Received
	// Acks that came while the Recorder was opening may be newer.
	before := s.ack()
	s.raise(reply.Received, reply.Durable, reply.DurableTick)
	s.safe = s.safe || s.durable > 0
	answer := opened{alias: s.alias, received: reply.Received, durable: reply.Durable, durableTick: reply.DurableTick,
		totals: reply.Totals, window: uint64(reply.Window), safe: s.safe, ending: reply.Ending}
	c.enqueueLocked(answer.append(nil, c.version))
	s.told = true
	if s.early != nil {
		s.stall(s.early)
	}
	if before.received > reply.Received || before.durable > reply.Durable || before.durableTick > reply.DurableTick {
		s.markDirty()
	}
	return true
}

// append gives one chunk to the Recorder.
func (s *serverSession) append(seq uint64, framed []byte) {
	if r := s.enter(seq, len(framed)); r != nil {
		s.fail(r)
		return
	}
	s.call(func() error { return s.session.Append(framed) })
}

// enter counts a chunk in, or refuses what exceeds the window.
func (s *serverSession) enter(seq uint64, size int) *Refusal {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if !s.flight.add(seq, size) {
		return refuse(CodeWindow, "%d bytes are not durable, a chunk of %d more exceeds the window of %d", s.flight.bytes, size, s.flight.window)
	}
	s.again = s.again || seq <= s.appended
	s.appended = max(s.appended, seq)
	return nil
}

func (s *serverSession) seal(totals format.Totals) {
	s.conn.mu.Lock()
	s.sealing = true
	s.conn.mu.Unlock()
	s.call(func() error { return s.session.Seal(totals) })
}

// call runs one call into the Recorder. Its error ends the session.
func (s *serverSession) call(do func() error) {
	s.calls.Lock()
	var err error
	if !s.detached {
		err = do()
	}
	s.calls.Unlock()
	if err != nil {
		s.log(err)
		s.fail(refusalFor(err))
	}
}

func (s *serverSession) log(err error) {
	s.conn.server.cfg.Log.Info("session refused", "session", s.id, "remote", s.conn.c.RemoteAddr().String(), "error", err)
}

// fail refuses the session: the client is told, the Recorder let go.
func (s *serverSession) fail(r *Refusal) {
	if s.over((&refused{alias: s.alias, refusal: *r}).append(nil)) {
		s.conn.server.stats.refused.Add(1)
		go s.detach()
	}
}

// over ends the session with a last frame; false where it had ended before.
func (s *serverSession) over(last ...[]byte) bool {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.ended {
		return false
	}
	s.ended = true
	delete(c.sessions, s.alias)
	c.server.stats.sessions.Add(-1)
	if s.dirty {
		// The last ack goes in front of the last frame.
		s.dirty = false
		c.out = appendAcks(c.out, []ack{s.ack()})
	}
	for _, frame := range last {
		c.out = append(c.out, frame...)
	}
	c.wakeLocked()
	return true
}

// detach lets go of the Recorder's session, once.
func (s *serverSession) detach() {
	s.conn.mu.Lock()
	session := s.session
	s.conn.mu.Unlock()
	s.calls.Lock()
	defer s.calls.Unlock()
	if session == nil || s.detached {
		return
	}
	s.detached = true
	session.Detach()
}

// ack is the session's present state; conn.mu is held.
func (s *serverSession) ack() ack {
	return ack{alias: s.alias, received: s.received, durable: s.durable, durableTick: s.durableTick}
}

// raise takes newer values; conn.mu is held.
func (s *serverSession) raise(received, durable uint64, durableTick format.Tick) bool {
	newer := received > s.received || durable > s.durable || durableTick > s.durableTick
	s.durable = max(s.durable, durable)
	s.received = max(s.received, received, s.durable)
	s.durableTick = max(s.durableTick, durableTick)
	s.flight.settle(s.durable)
	return newer
}

func (s *serverSession) markDirty() {
	if !s.dirty {
		s.dirty = true
		s.conn.dirty = append(s.conn.dirty, s)
		s.conn.wakeLocked()
	}
}

// Ack implements Sink.
func (s *serverSession) Ack(received, durable uint64, durableTick format.Tick) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	first := !s.safe || s.again
	s.safe, s.early = true, nil
	if newer := s.raise(received, durable, durableTick); (newer || first) && s.told && !s.ended {
		s.again = false
		s.markDirty()
	}
}

// Window implements Sink. A smaller window takes effect at the client; what
// exceeds it is not refused, for it may have been sent before.
func (s *serverSession) Window(bytes int) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.ended || !s.told {
		return
	}
	s.flight.window = max(s.flight.window, bytes)
	s.conn.enqueueLocked((&window{alias: s.alias, bytes: uint64(max(bytes, 0))}).append(nil))
}

// Stalled implements Sink. An ack that waits goes in front, for one behind it
// would say that the stall is over; the next one goes out in any case.
func (s *serverSession) Stalled(r Refusal) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	switch {
	case s.ended:
	case s.told:
		s.stall(&r)
	default:
		s.early = &r
	}
}

// stall tells the client; conn.mu is held.
func (s *serverSession) stall(r *Refusal) {
	s.early, s.again = nil, true
	if s.dirty {
		s.dirty = false
		s.conn.out = appendAcks(s.conn.out, []ack{s.ack()})
	}
	s.conn.enqueueLocked((&stalled{alias: s.alias, refusal: *r}).append(nil))
}

// Sealed implements Sink.
func (s *serverSession) Sealed(digest format.Digest, name string) {
	frame := (&sealed{alias: s.alias, digest: digest, name: cutText(name, MaxReplayName)}).append(nil)
	if s.over(frame) {
		s.conn.server.stats.sealed.Add(1)
		go s.detach()
	}
}

// Failed implements Sink.
func (s *serverSession) Failed(r Refusal) { s.fail(&r) }

// flight is what was received and is not yet durable, in order.
type flight struct {
	window int
	bytes  int
	chunks []flown
}

type flown struct {
	seq  uint64
	size int
}

// add counts a chunk in; false where it exceeds the window. One chunk is
// always allowed.
func (f *flight) add(seq uint64, size int) bool {
	if f.bytes > 0 && f.bytes+size > f.window {
		return false
	}
	f.bytes += size
	f.chunks = append(f.chunks, flown{seq, size})
	return true
}

// settle counts the chunks up to seq out.
func (f *flight) settle(seq uint64) {
	n := 0
	for n < len(f.chunks) && f.chunks[n].seq <= seq {
		f.bytes -= f.chunks[n].size
		n++
	}
	f.chunks = f.chunks[n:]
}
