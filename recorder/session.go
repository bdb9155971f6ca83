package recorder

import (
	"sync"
	"time"

	"reprise/format"
)

// Session is a producer's connection to one session. Its methods may be
// called from any goroutine; chunks are taken in the order of the calls.
type Session struct {
	s      *recording
	notify func(Ack)
	// telling keeps acknowledgements in order.
	telling sync.Mutex
	over    bool // Err was told
}

// Ack tells a producer how much of its session is safe. Each one is at
// least as far as the one before.
type Ack struct {
	// Received is the last sequence number that was accepted, Durable the
	// last one that a crash cannot take back. The first Ack, when the
	// opening is durable, may have 0 in both.
	Received, Durable uint64
	// DurableTick: every tick before it is durable.
	DurableTick format.Tick
	// Notices are warnings of the format, such as a keyframe that was
	// dropped. Each is told once.
	Notices []string
	// Stalled says why the disk does not take what waits. Nothing is lost as
	// long as the producer keeps what is not durable; recording goes on by
	// itself, and the next Ack tells so.
	Stalled *Refusal
	// Window is set where OpenReply.Window has changed; else 0.
	Window int64
	// Sealed is set once the session's file is finished, durable and in its
	// place. It is the last Ack.
	Sealed *SealInfo
	// Err ends the connection to the session: a newer one has taken over, or
	// the session cannot be trusted. It is the last Ack.
	Err *Refusal
}

// ack tells the attached producer where the session stands, with what fill
// adds.
func (s *recording) ack(fill func(*Ack)) {
	s.mu.Lock()
	h := s.attached
	s.mu.Unlock()
	if h != nil {
		h.tell(fill)
	}
}

// tell calls back. The numbers are taken while telling is held, so that no
// older ones follow.
func (h *Session) tell(fill func(*Ack)) {
	h.telling.Lock()
	defer h.telling.Unlock()
	if h.over || h.notify == nil {
		return
	}
	if fill == nil {
		h.notify(h.stand())
		return
	}
	a := h.stand()
	fill(&a)
	h.over = a.Err != nil || a.Sealed != nil
	h.notify(a)
}

// stand says where the session stands.
func (h *Session) stand() Ack {
	s := h.s
	s.mu.Lock()
	defer s.mu.Unlock()
	a := Ack{Received: s.now.seq, Durable: s.safe.seq, DurableTick: s.safe.totals.NextTick}
	if s.attached == h && s.notices != nil {
		a.Notices, s.notices = s.notices, nil
	}
	return a
}

// Append takes one framed chunk, which it copies. The error is a *Refusal
// and leaves the session as it was. A chunk that is recorded already is
// acknowledged again; one whose first ticks are has the rest recorded.
func (h *Session) Append(chunk []byte) error {
	c, n, err := format.ParseChunk(chunk)
	if err != nil {
		return h.s.r.count(refusalOf(err, h.due()))
	}
	if n != len(chunk) {
		return h.s.r.count(refuse(CodeDamaged, h.due(), "%d bytes follow the chunk: send chunks one by one", len(chunk)-n))
	}
	return h.s.r.count(h.s.append(h, c, chunk))
}

// due is the tick that comes next.
func (h *Session) due() format.Tick {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	return h.s.now.totals.NextTick
}

// append checks one chunk and keeps it.
func (s *recording) append(h *Session, c format.Chunk, framed []byte) *Refusal {
	s.entry.Lock()
	defer s.entry.Unlock()
	if r := s.admits(h); r != nil {
		return r
	}
	due := s.tracker.Totals().NextTick
	if c.Seq == 0 || !fromProducer(c.Type) {
		return refuse(CodeOrder, due, "%v chunk with sequence number %d: the producer's chunks count from 1, and hold what happens in the session", c.Type, c.Seq)
	}
	if c.Seq <= s.tracker.Seq() {
		return s.repeat(c, framed)
	}
	if r := s.room(len(framed)); r != nil {
		return r
	}
	defer s.r.coming.Add(-int64(len(framed)))
	p, err := s.tracker.Check(c)
	if overlaps(err) && c.Type == format.ChunkTicks {
		return s.overlap(p, framed)
	}
	if err != nil {
		return refusalOf(err, due)
	}
	s.recent.add(c.Seq, digestOf(framed))
	s.keep(p, framed)
	return nil
}

// fromProducer tells the types that a producer's stream may hold.
func fromProducer(t format.ChunkType) bool {
	switch t {
	case format.ChunkTicks, format.ChunkGap, format.ChunkKeyframe, format.ChunkPlayers, format.ChunkHashes, format.ChunkMark, format.ChunkReports:
		return true
	}
	return !t.Known()
}

// admits decides whether h may still write. The caller holds entry.
func (s *recording) admits(h *Session) *Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.now.totals.NextTick
	switch {
	case s.r.closing.Load():
		return refuse(CodeClosing, due, "the recorder is shutting down: resume after its restart")
	case s.state == StateQuarantined:
		return refuse(CodeDamaged, due, "session %s is set aside: its file is damaged", s.id)
	case s.state >= StateEnding:
		return refuse(CodeEnded, due, "session %s has ended", s.id)
	case s.attached != h:
		return refuse(CodeFenced, due, "another connection has session %s", s.id)
	}
	return nil
}

// windowSlack times the window is where a chunk is refused: what the recorder
// adds itself, such as a gap, does not count against the producer's window.
const windowSlack = 2

// room holds the bounds on memory. Where it refuses nothing, n bytes are let
// in: the caller takes them off Recorder.coming once they are kept or not.
func (s *recording) room(n int) *Refusal {
	held, waiting := s.held()
	cfg, limits, due := &s.r.cfg, s.r.limits.Load(), s.tracker.Totals().NextTick
	switch {
	case int64(n) > s.r.journal.chunkLimit():
		return refuse(CodeLimit, due, "chunk of %d bytes, the journal takes %d at once: send smaller ones, or raise SegmentBytes or Segments", n, s.r.journal.chunkLimit())
	case waiting > 0 && waiting+int64(n) > windowSlack*s.r.window():
		return refuse(CodeWindow, due, "%d bytes of session %s wait for the disk, the window is %d: wait for the next acknowledgement", waiting, s.id, s.r.window())
	case held > 0 && held+int64(n) > limits.heldLimit():
		return refuse(CodeStorage, due, "the file of session %s cannot be written, and memory for it is used up: keep the chunk and try again", s.id)
	}
	// Other sessions come at the same moment: what they are let in with
	// counts before it is kept.
	if coming := s.r.coming.Add(int64(n)); s.r.pending.Load()+coming > cfg.MaxPendingBytes {
		s.r.coming.Add(-int64(n))
		return refuse(CodeBusy, due, "all sessions hold %d bytes in memory, the most is %d: try again", s.r.pending.Load(), cfg.MaxPendingBytes)
	}
	if r := s.withinQuota(n, due); r != nil {
		s.r.coming.Add(-int64(n))
		return r
	}
	return nil
}

// Seal ends the session. totals must be what was recorded; the error is
// else a *Refusal of CodeTotals, and the session goes on. Ack.Sealed follows
// when the finished file is durable and in its place. Calling it again does
// no harm.
func (h *Session) Seal(totals format.Totals) error {
	s := h.s
	s.entry.Lock()
	defer s.entry.Unlock()
	if s.endingAs(h, format.EndSealed) {
		return s.r.count(s.checkTotals(totals))
	}
	if r := s.admits(h); r != nil {
		return s.r.count(r)
	}
	if r := s.checkTotals(totals); r != nil {
		return s.r.count(r)
	}
	s.beginEnd(format.EndSealed, "")
	return nil
}

func (s *recording) checkTotals(totals format.Totals) *Refusal {
	s.mu.Lock()
	now := s.now.totals
	s.mu.Unlock()
	if totals != now {
		return refuse(CodeTotals, now.NextTick, "%v: declared next tick %d, %d ticks, %d steps, %d hashes; recorded next tick %d, %d ticks, %d steps, %d hashes", format.ErrTotals,
			totals.NextTick, totals.Ticks, totals.Steps, totals.Hashes, now.NextTick, now.Ticks, now.Steps, now.Hashes)
	}
	return nil
}

// endingAs tells whether the session is on its way to that end, with h
// attached.
func (s *recording) endingAs(h *Session, end format.EndState) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == StateEnding && s.endState == end && s.attached == h
}

// beginEnd hands the session to those who finish files.
func (s *recording) beginEnd(end format.EndState, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.endState, s.why = StateEnding, end, why
	s.r.ending.add(s)
}

// Detach says that the connection went away. The session waits for its
// producer, and ends as unfinished after Config.ResumeTimeout.
func (h *Session) Detach() {
	s := h.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attached != h {
		return
	}
	s.attached = nil
	if s.state == StateLive {
		s.state = StateDetached
		s.deadline = time.Now().Add(s.r.cfg.ResumeTimeout)
	}
}
