package recorder

import (
	"errors"
	"io/fs"
	"time"

	"reprise/format"
)

// OpenRequest is what a producer says when it opens or resumes a session.
type OpenRequest struct {
	// ID is the session's id; see format.ValidSession.
	ID string
	// Producer is the producer's secret key, Epoch the number of its
	// connection. A higher epoch takes the session over at once and fences
	// the connection before it. The same epoch is let in only once that
	// connection is detached; a lower one never.
	Producer [16]byte
	Epoch    uint64
	// Opening holds the framed opening chunks with sequence number 0:
	// metadata, then code book and players where there are any. A producer
	// that resumes sends the same bytes again, or none.
	Opening []byte
	// ContinueAt says that the producer no longer has the ticks before it:
	// those that are not recorded become a gap.
	ContinueAt *format.Tick
	// Notify is called for every acknowledgement, one after the other, by
	// the recorder's goroutines. It must not block, and must not call
	// methods of the Session but Detach. It may be called before
	// OpenSession returns.
	Notify func(Ack)
}

// OpenReply tells where the session stands.
type OpenReply struct {
	// Received is the last accepted sequence number, Durable the last safe
	// one. The producer sends on behind Received, and keeps what is behind
	// Durable. An opening is safe with the first Ack.
	Received, Durable uint64
	// NextTick is the tick that is due; ticks before DurableTick are safe.
	NextTick, DurableTick format.Tick
	// Totals are the counts up to Received.
	Totals format.Totals
	// Window is how many bytes may wait for their acknowledgement.
	Window int64
	// Resumed is set where the session was there before.
	Resumed bool
	// Ending is set where the session was sealed before, and its file is
	// being finished: nothing can be added, and Ack.Sealed follows.
	Ending bool
	// Sealed is set, beside a refusal of CodeEnded, where the producer's
	// session has ended.
	Sealed *SealInfo
}

// opening is a parsed opening.
type opening struct {
	tracker *format.Tracker
	// bytes are the file's first: header and chunks.
	bytes []byte
	note  openingNote
}

func isOpening(t format.ChunkType) bool {
	return t == format.ChunkMeta || t == format.ChunkBook || t == format.ChunkPlayers
}

// parseOpening checks the opening of a session; nil where there is none.
func parseOpening(id string, framed []byte) (*opening, *Refusal) {
	if len(framed) == 0 {
		return nil, nil
	}
	if len(framed) > format.MaxOpening {
		return nil, refuse(CodeLimit, 0, "opening of %d bytes, the most is %d", len(framed), format.MaxOpening)
	}
	o := &opening{tracker: format.NewTracker(), note: openingNote{int64(len(framed)), digestOf(framed)}}
	o.bytes = append(format.AppendHeader(nil), framed...)
	last := format.ChunkType(0)
	for at := format.HeaderSize; at < len(o.bytes); {
		c, n, err := format.ParseChunk(o.bytes[at:])
		if err != nil {
			return nil, refusalOf(err, 0)
		}
		if c.Seq != 0 || !isOpening(c.Type) || c.Type <= last {
			return nil, refuse(CodeInvalid, 0, "%v chunk with sequence number %d in the opening: it holds metadata, code book and players, in this order, with number 0", c.Type, c.Seq)
		}
		if err := o.tracker.Add(c, int64(at)); err != nil {
			return nil, refusalOf(err, 0)
		}
		last = c.Type
		at += n
	}
	if got := o.tracker.Meta().Session; got != id {
		return nil, refuse(CodeInvalid, 0, "the metadata names session %q, the request %q", got, id)
	}
	return o, nil
}

// endedJustNow stands for a session that ended while it was looked at: what
// its line in the ledger says counts. Nobody outside sees it.
var endedJustNow = refuse(CodeEnded, 0, "the session has just ended")

// OpenSession opens a session, or resumes one. It may read the session's
// file, and does not wait for the disk otherwise: the first Ack tells that
// the opening is safe. An error is a *Refusal; nothing was changed then.
func (r *Recorder) OpenSession(req OpenRequest) (*Session, OpenReply, error) {
	if err := format.ValidSession(req.ID); err != nil {
		return nil, OpenReply{}, r.count(refuse(CodeInvalid, 0, "%v", err))
	}
	if req.ContinueAt != nil && *req.ContinueAt > format.MaxTick {
		return nil, OpenReply{}, r.count(refuse(CodeLimit, 0, "tick %d, the most is %d", *req.ContinueAt, format.MaxTick))
	}
	o, refusal := parseOpening(req.ID, req.Opening)
	if refusal != nil {
		return nil, OpenReply{}, r.count(refusal)
	}
	for {
		l := r.locate(&req, o)
		if l.refusal != nil {
			return nil, endedReply(l.sealed), r.count(l.refusal)
		}
		h, reply, old, refusal := l.s.attach(&req)
		if refusal == endedJustNow {
			continue
		}
		if refusal != nil {
			return nil, OpenReply{}, r.count(refusal)
		}
		if old != nil {
			old.tell(func(a *Ack) { a.Err = refuse(CodeFenced, a.DurableTick, "a newer connection has session %s", req.ID) })
		}
		reply.Resumed = l.found
		return h, reply, nil
	}
}

// endedReply tells a producer how its session ended; sealed may be nil.
func endedReply(sealed *SealInfo) OpenReply {
	if sealed == nil {
		return OpenReply{}
	}
	return OpenReply{Received: sealed.Seq, Durable: sealed.Seq, NextTick: sealed.NextTick, DurableTick: sealed.NextTick, Totals: sealed.Totals,
		Resumed: true, Sealed: sealed}
}

// located is the session of a request, or why there is none.
type located struct {
	s *recording
	// found is set where the session was there before.
	found bool
	// sealed is set, with the refusal, for a session of this producer that
	// has ended.
	sealed  *SealInfo
	refusal *Refusal
}

// locate finds the session of a request, or makes it. The ledger is read
// before sessions are looked up, for that must not wait for the disk.
func (r *Recorder) locate(req *OpenRequest, o *opening) located {
	key := idKey(req.ID)
	for {
		if l, done := r.locateHeld(key); done {
			return l
		}
		e, where, err := r.ledger.findAt(key)
		if err != nil {
			r.log.Error("the ledger cannot be read", "session", req.ID, "error", err)
			return located{refusal: refuse(CodeStorage, 0, "the daemon's ledger cannot be read: %s", kindOf(err))}
		}
		if l, done := r.locateEntry(req, o, e, where); done {
			return l
		}
	}
}

// locateHeld finds a session that has not ended.
func (r *Recorder) locateHeld(key string) (located, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.locateLocked(key)
}

func (r *Recorder) locateLocked(key string) (located, bool) {
	if r.closing.Load() {
		return located{refusal: refuse(CodeClosing, 0, "the recorder is shutting down: open the session after its restart")}, true
	}
	s := r.sessions[key]
	return located{s: s, found: true}, s != nil
}

// locateEntry goes on with, or makes, a session of which the ledger has e;
// not done where that is no longer the newest.
func (r *Recorder) locateEntry(req *OpenRequest, o *opening, e *entry, where spot) (located, bool) {
	key := idKey(req.ID)
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, done := r.locateLocked(key); done {
		return l, true
	}
	if now, _ := r.ledger.look(key); now != where {
		return located{}, false
	}
	if e != nil {
		if sealed, refusal := r.mayReopen(req, e); refusal != nil {
			return located{sealed: sealed, refusal: refusal}, true
		}
		s := r.sleeping(e, unfinishedFolder, e.end.Bytes)
		s.reopening = true
		r.sessions[key] = s
		return located{s: s, found: true}, true
	}
	if refusal := r.mayCreate(o, req.ID); refusal != nil {
		return located{refusal: refusal}, true
	}
	s := r.create(req, o)
	r.sessions[key] = s
	return located{s: s}, true
}

// mayReopen decides whether a session that has ended may be gone on with.
func (r *Recorder) mayReopen(req *OpenRequest, e *entry) (*SealInfo, *Refusal) {
	if e.id != req.ID || e.producer != identify(req.Producer) {
		return nil, refuseExists(e.id)
	}
	if e.live() {
		return nil, refuse(CodeDamaged, 0, "session %s is in the ledger, but not among the sessions: restart the recorder", e.id)
	}
	due, age := e.end.NextTick, time.Since(e.end.EndedAt)
	ago := age.Round(time.Second)
	switch {
	case e.end.State == format.EndSealed:
		return e.end, refuse(CodeEnded, due, "session %s was sealed %v ago", e.id, ago)
	case r.cfg.ReopenWindow < 0 || age >= r.cfg.ReopenWindow:
		return e.end, refuse(CodeEnded, due, "session %s ended as unfinished %v ago, it could be gone on with for %v: record the rest as another session, with this one in its label part-of", e.id, ago, max(0, r.cfg.ReopenWindow))
	case req.Epoch < e.epoch:
		return nil, refuseEpoch(e.id, due, req.Epoch, e.epoch)
	}
	return nil, nil
}

func refuseExists(id string) *Refusal {
	return refuse(CodeExists, 0, "session id %q is taken, by another producer or in this spelling, and is never used again: choose another", id)
}

func refuseEpoch(id string, due format.Tick, got, have uint64) *Refusal {
	return refuse(CodeFenced, due, "session %s has been opened with epoch %d, this is epoch %d", id, have, got)
}

// mayCreate decides whether there is room for another session.
func (r *Recorder) mayCreate(o *opening, id string) *Refusal {
	limits := r.limits.Load()
	switch {
	case o == nil:
		return refuse(CodeUnknown, 0, "there is no session %s, and no opening came to begin it", id)
	case int64(len(o.bytes)) > r.journal.chunkLimit():
		return refuse(CodeLimit, 0, "opening of %d bytes, the journal takes %d at once: raise SegmentBytes or Segments", len(o.bytes), r.journal.chunkLimit())
	case limits.SessionBytes > 0 && int64(len(o.bytes)) > limits.SessionBytes:
		return refuse(CodeQuota, 0, "opening of %d bytes, a session may have %d: shorten the metadata", len(o.bytes), limits.SessionBytes)
	case len(r.sessions) >= limits.MaxSessions:
		return refuse(CodeBusy, 0, "%d sessions are open, the most is %d: try again", len(r.sessions), limits.MaxSessions)
	case r.pending.Load()+int64(len(o.bytes)) > r.cfg.MaxPendingBytes:
		return refuse(CodeBusy, 0, "all sessions hold %d bytes in memory, the most is %d: try again", r.pending.Load(), r.cfg.MaxPendingBytes)
	case r.diskLow.Load():
		return refuse(CodeStorage, 0, "less than %s are free on the disk: no new session is taken", sizeText(limits.MinFreeBytes))
	}
	return nil
}

// create makes a new session. Its line in the ledger and its first bytes are
// queued for the journal. The caller holds r.mu.
func (r *Recorder) create(req *OpenRequest, o *opening) *recording {
	s := &recording{r: r, number: r.ledger.nextNumber(), id: req.ID, start: now().Format(startLayout), producer: identify(req.Producer),
		epoch: req.Epoch, state: StateDetached, deadline: time.Now().Add(r.cfg.ResumeTimeout), folder: liveFolder,
		tracker: o.tracker, opening: o.note, pending: o.bytes, size: int64(len(o.bytes))}
	s.now = standing{size: s.size, totals: s.tracker.Totals()}
	s.safe.totals.NextTick = s.now.totals.NextTick
	r.pending.Add(s.size)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newLine()
	return s
}

// startLayout is how a session's start stands in the name of its file.
const startLayout = "20060102T150405Z"

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// sleeping makes the recording of a session whose file is there.
func (r *Recorder) sleeping(e *entry, folder string, size int64) *recording {
	return &recording{r: r, number: e.number, id: e.id, start: e.start, producer: e.producer, epoch: e.epoch, state: StateDetached,
		deadline: time.Now().Add(r.cfg.ResumeTimeout), folder: folder, size: size, durable: size, written: size, asleep: true}
}

// attach connects a producer to the session, and returns the connection that
// it replaces.
func (s *recording) attach(req *OpenRequest) (h *Session, reply OpenReply, old *Session, refusal *Refusal) {
	s.entry.Lock()
	defer s.entry.Unlock()
	if s.id != req.ID || s.producer != identify(req.Producer) {
		return nil, OpenReply{}, nil, refuseExists(s.id)
	}
	if refusal := s.wakeFor(); refusal != nil {
		return nil, OpenReply{}, nil, refusal
	}
	gap, refusal := s.gapBefore(req.ContinueAt)
	if refusal != nil {
		return nil, OpenReply{}, nil, refusal
	}
	h = &Session{s: s, notify: req.Notify}
	if old, refusal = s.takeOver(h, req); refusal != nil {
		return nil, OpenReply{}, nil, refusal
	}
	if gap != nil {
		s.keep(*gap, format.AppendChunk(nil, format.ChunkGap, 0, gap.Chunk.Body))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return h, OpenReply{Received: s.now.seq, Durable: s.safe.seq, NextTick: s.now.totals.NextTick, DurableTick: s.safe.totals.NextTick,
		Totals: s.now.totals, Window: s.r.window(), Ending: s.state == StateEnding}, old, nil
}

// wakeFor wakes the session for its producer.
func (s *recording) wakeFor() *Refusal {
	s.mu.Lock()
	state := s.state
	s.mu.Unlock()
	if state == StateSealed || state == StateUnfinished {
		return endedJustNow
	}
	err := s.wake()
	switch {
	case err == nil:
		return nil
	case format.IsDamage(err):
		return refuse(CodeDamaged, 0, "session %s is set aside: %s: see what can be repaired of its file", s.id, kindOf(err))
	case s.reopening:
		s.r.forget(s)
		s.mu.Lock()
		s.state = StateUnfinished
		s.mu.Unlock()
		if errors.Is(err, fs.ErrNotExist) {
			return refuse(CodeEnded, 0, "session %s ended as unfinished, and its file is no longer in the data folder", s.id)
		}
	}
	s.r.log.Error("session cannot be read", "session", s.id, "error", err)
	return refuse(CodeStorage, 0, "session %s cannot be read: %s", s.id, kindOf(err))
}

// takeOver makes h the one connection of the session, and returns the one
// before it.
func (s *recording) takeOver(h *Session, req *OpenRequest) (*Session, *Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.now.totals.NextTick
	switch {
	case s.state == StateSealed || s.state == StateUnfinished:
		return nil, endedJustNow
	case s.state == StateQuarantined:
		return nil, refuse(CodeDamaged, due, "session %s is set aside: its file is damaged", s.id)
	case s.state == StateEnding && s.endState == format.EndUnfinished:
		return nil, refuse(CodeBusy, due, "session %s is just ending as unfinished: try again", s.id)
	case !s.pace.admits(s.r.limits.Load().SessionRate, true):
		return nil, refuseRate(s.id, due, s.r.limits.Load().SessionRate)
	case req.Epoch < s.epoch, req.Epoch == s.epoch && s.attached != nil:
		return nil, refuseEpoch(s.id, due, req.Epoch, s.epoch)
	case len(req.Opening) > 0 && s.opening != openingNote{int64(len(req.Opening)), digestOf(req.Opening)}:
		return nil, refuse(CodeConflict, due, "session %s was opened with other metadata, code book or players", s.id)
	}
	old := s.attached
	s.attached, s.stalled = h, false
	if s.state == StateDetached {
		s.state = StateLive
	}
	if req.Epoch > s.epoch {
		s.epoch = req.Epoch
		s.newLine()
	}
	return old, nil
}

// gapBefore makes the gap that a producer needs that goes on at a tick; nil
// for none. The caller holds entry.
func (s *recording) gapBefore(next *format.Tick) (*format.Parsed, *Refusal) {
	s.mu.Lock()
	ending := s.state >= StateEnding
	s.mu.Unlock()
	due := s.tracker.Totals().NextTick
	if ending || next == nil || *next <= due {
		return nil, nil
	}
	g := format.Gap{First: due, Last: *next - 1, ByRecorder: true, Reason: "the producer resumed without these ticks"}
	p, err := s.tracker.Check(format.Chunk{Type: format.ChunkGap, Body: format.AppendGap(nil, g)})
	if err != nil {
		return nil, refusalOf(err, due)
	}
	return &p, nil
}
