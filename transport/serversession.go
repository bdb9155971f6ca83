package transport

import (
	"sync"
	"sync/atomic"

	"reprise/format"
)

// serverSession is one session on a connection: it hands chunks to the
// Recorder, and is the Recorder's Sink.
//
// A daemon visits thousands of them in turn, and finds each one out of the
// processor's caches. So what an acknowledgement touches is together in the
// first 64 bytes, and what only a chunk touches in the next.
type serverSession struct {
	// The first 64 bytes are guarded by conn.mu. state and durable are
	// written with it held, and may be read without.

	conn        *serverConn
	early       *Refusal // a stall that was told before the opened frame
	received    uint64
	durable     atomic.Uint64
	durableTick format.Tick
	round       uint64 // of conn, in which an ack waits at slot
	slot        uint32
	alias       uint32
	state       atomic.Uint32
	safe        bool // the opening is durable
	again       bool // the next ack goes out in any case: a chunk came again, or a stall was told
	sealing     bool

	// calls keeps the calls of session apart, and Detach the last one.
	calls   sync.Mutex
	session Session // nil before the Recorder has opened it, and after Detach

	// What follows belongs to the connection's reader once the session is
	// live.

	appended uint64 // the last chunk given to the Recorder
	flight   flight

	id string
	_  [16]byte // whole cache lines, so that none is shared with another session
}

// States of a session. Live is one whose opened frame is in front of what
// follows.
const (
	sessionOpening uint32 = 0
	sessionLive    uint32 = 1
	sessionOver    uint32 = 2
)

func (s *serverSession) is(state uint32) bool { return s.state.Load() == state }

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
	s.calls.Lock()
	s.session = session
	s.calls.Unlock()
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.is(sessionOver) {
		return false
	}
	c.server.stats.opened.Add(1)
	s.flight.window.Store(int64(reply.Window))
	s.appended = reply.Received
	// Acks that came while the Recorder was opening may be newer.
	before := s.ack()
	s.raise(reply.Received, reply.Durable, reply.DurableTick)
	s.safe = s.safe || s.durable.Load() > 0
	answer := opened{alias: uint64(s.alias), received: reply.Received, durable: reply.Durable, durableTick: reply.DurableTick,
		totals: reply.Totals, window: uint64(reply.Window), safe: s.safe, ending: reply.Ending}
	c.enqueueLocked(answer.append(nil, c.version))
	s.state.Store(sessionLive)
	if before.received > reply.Received || before.durable > reply.Durable || before.durableTick > reply.DurableTick {
		s.sayAck()
	}
	if s.early != nil {
		s.stall(s.early) // an ack behind it would say that it is over
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
	s.flight.settle(s.durable.Load())
	if !s.flight.add(seq, size) {
		return refuse(CodeWindow, "%d bytes are not durable, a chunk of %d more exceeds the window of %d", s.flight.bytes, size, s.flight.window.Load())
	}
	if seq <= s.appended {
		s.conn.mu.Lock()
		s.again = true
		s.conn.mu.Unlock()
		return nil
	}
	s.appended = seq
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
	if s.session != nil {
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
	if s.over((&refused{alias: uint64(s.alias), refusal: *r}).append(nil)) {
		s.conn.server.stats.refused.Add(1)
		go s.detach()
	}
}

// over ends the session with a last frame; false where it had ended before.
func (s *serverSession) over(last ...[]byte) bool {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.is(sessionOver) {
		return false
	}
	s.state.Store(sessionOver)
	c.leftLocked(s)
	// The last ack goes in front of the last frame.
	s.hurryAck()
	for _, frame := range last {
		c.out = append(c.out, frame...)
	}
	c.wakeLocked()
	return true
}

// detach lets go of the Recorder's session, once.
func (s *serverSession) detach() {
	s.calls.Lock()
	defer s.calls.Unlock()
	if session := s.session; session != nil {
		s.session = nil
		session.Detach()
	}
}

// ack is the session's present state; conn.mu is held.
func (s *serverSession) ack() ack {
	return ack{alias: uint64(s.alias), received: s.received, durable: s.durable.Load(), durableTick: s.durableTick}
}

// raise takes newer values; conn.mu is held.
func (s *serverSession) raise(received, durable uint64, durableTick format.Tick) bool {
	was := s.durable.Load()
	newer := received > s.received || durable > was || durableTick > s.durableTick
	if durable > was {
		s.durable.Store(durable)
	}
	s.received = max(s.received, received, durable)
	s.durableTick = max(s.durableTick, durableTick)
	return newer
}

// sayAck has the present state written, in the place of an ack that waits;
// conn.mu is held.
func (s *serverSession) sayAck() {
	c := s.conn
	if s.round == c.round {
		c.acks[s.slot] = s.ack()
		return
	}
	s.round, s.slot = c.round, uint32(len(c.acks))
	c.acks = append(c.acks, s.ack())
	c.wakeLocked()
}

// hurryAck puts an ack that waits in front of the frames that follow; conn.mu
// is held.
func (s *serverSession) hurryAck() {
	c := s.conn
	if s.round != c.round {
		return
	}
	c.out = appendAcks(c.out, c.acks[s.slot:s.slot+1])
	c.acks[s.slot] = ack{}
	s.round = 0
}

// Ack implements Sink.
func (s *serverSession) Ack(received, durable uint64, durableTick format.Tick) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	first := !s.safe || s.again
	s.safe, s.early = true, nil
	if newer := s.raise(received, durable, durableTick); (newer || first) && s.is(sessionLive) {
		s.again = false
		s.sayAck()
	}
}

// Window implements Sink. A smaller window takes effect at the client; what
// exceeds it is not refused, for it may have been sent before.
func (s *serverSession) Window(bytes int) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if !s.is(sessionLive) {
		return
	}
	s.flight.window.Store(max(s.flight.window.Load(), int64(bytes)))
	s.conn.enqueueLocked((&window{alias: uint64(s.alias), bytes: uint64(max(bytes, 0))}).append(nil))
}

// Stalled implements Sink. An ack that waits goes in front, for one behind it
// would say that the stall is over; the next one goes out in any case.
func (s *serverSession) Stalled(r Refusal) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	switch s.state.Load() {
	case sessionLive:
		s.stall(&r)
	case sessionOpening:
		s.early = &r
	}
}

// stall tells the client; conn.mu is held.
func (s *serverSession) stall(r *Refusal) {
	s.early, s.again = nil, true
	s.hurryAck()
	s.conn.enqueueLocked((&stalled{alias: uint64(s.alias), refusal: *r}).append(nil))
}

// Sealed implements Sink.
func (s *serverSession) Sealed(digest format.Digest, name string) {
	frame := (&sealed{alias: uint64(s.alias), digest: digest, name: cutText(name, MaxReplayName)}).append(nil)
	if s.over(frame) {
		s.conn.server.stats.sealed.Add(1)
		go s.detach()
	}
}

// Failed implements Sink.
func (s *serverSession) Failed(r Refusal) { s.fail(&r) }
