package transport

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"time"

	"reprise/format"
)

// fakeRecorder keeps sessions in memory as files, checked chunk by chunk by
// a format.Tracker. What it receives becomes durable after a delay; crash
// drops what is not.
type fakeRecorder struct {
	mu       sync.Mutex
	sessions map[string]*fakeSession
	delay    time.Duration
	window   int
	// onOpen and onAppend, if set, decide first.
	onOpen   func(OpenRequest) error
	onAppend func(session string, c format.Chunk) error
	// held, if set, is closed when heldSession may be opened.
	held        chan struct{}
	heldSession string
	opens       int
	seals       int
	attached    int
	detached    int
}

func newFakeRecorder() *fakeRecorder {
	return &fakeRecorder{sessions: map[string]*fakeSession{}, delay: 5 * time.Millisecond, window: 1 << 20}
}

// fakeSession is one session's file and where it stands.
type fakeSession struct {
	rec   *fakeRecorder
	id    string
	key   [KeySize]byte
	epoch uint64
	sink  Sink
	turn  int // counts owners

	tracker *format.Tracker
	file    *format.Buffer
	chunks  map[uint64][]byte
	order   []format.ChunkType

	received, durable uint64
	durableTick       format.Tick
	durableSize       int
	claimed           bool // the opening is durable
	timer             bool
	sealing           bool // Seal was accepted
	sealed            *sealed
	opening           []byte
	overlap           format.Tick // ticks below it are compared
}

// handle is a fakeSession as one connection sees it.
type handle struct {
	*fakeSession
	turn int
}

// holdOpen keeps a session from being opened until the channel is closed.
func (f *fakeRecorder) holdOpen(session string) chan struct{} {
	held := make(chan struct{})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held, f.heldSession = held, session
	return held
}

func (f *fakeRecorder) Open(req OpenRequest, sink Sink) (Session, OpenReply, error) {
	f.mu.Lock()
	held := f.held
	if req.Session != f.heldSession {
		held = nil
	}
	f.mu.Unlock()
	if held != nil {
		<-held
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opens++
	if f.onOpen != nil {
		if err := f.onOpen(req); err != nil {
			return nil, OpenReply{}, err
		}
	}
	s := f.sessions[req.Session]
	if s == nil {
		s = &fakeSession{rec: f, id: req.Session, key: req.Key, tracker: format.NewTracker(), file: &format.Buffer{}, chunks: map[uint64][]byte{}}
		s.file.Write(format.AppendHeader(nil))
		if len(req.Opening) == 0 {
			return nil, OpenReply{}, refuse(CodeUnknown, "")
		}
		if err := s.addOpening(req.Opening); err != nil {
			return nil, OpenReply{}, err
		}
		s.opening = bytes.Clone(req.Opening)
		s.durableSize, s.durableTick = len(s.file.Bytes()), s.tracker.Meta().FirstTick
		f.sessions[req.Session] = s
	} else if s.key != req.Key {
		return nil, OpenReply{}, refuse(CodeExists, "another producer has %s", req.Session)
	}
	if len(req.Opening) > 0 && !bytes.Equal(req.Opening, s.opening) {
		return nil, OpenReply{}, refuse(CodeConflict, "another opening")
	}
	if req.Epoch <= s.epoch {
		return nil, OpenReply{}, refuse(CodeFenced, "epoch %d, the newest is %d", req.Epoch, s.epoch)
	}
	if s.sink != nil {
		s.sink.Failed(Refusal{Code: CodeFenced})
		s.sink = nil
	}
	if s.sealed != nil {
		sink.Sealed(s.sealed.digest, s.sealed.name)
	}
	if req.Continues {
		s.continueAt(req.ContinueAt)
	}
	s.epoch, s.sink = req.Epoch, sink
	s.syncLater()
	s.turn++
	f.attached++
	return &handle{s, s.turn}, OpenReply{Received: s.received, Durable: s.durable, DurableTick: s.durableTick,
		Totals: s.tracker.Totals(), Window: f.window, Ending: s.sealing && s.sealed == nil}, nil
}

func (s *fakeSession) continueAt(at format.Tick) {
	next := s.tracker.Totals().NextTick
	if at > next {
		body := format.AppendGap(nil, format.Gap{First: next, Last: at - 1, Reason: "never came", ByRecorder: true})
		s.put(format.Chunk{Type: format.ChunkGap, Body: body}, format.AppendChunk(nil, format.ChunkGap, 0, body))
	}
	s.overlap = s.tracker.Totals().NextTick
}

func (s *fakeSession) addOpening(b []byte) error {
	for len(b) > 0 {
		c, n, err := format.ParseChunk(b)
		if err == nil {
			err = s.put(c, b[:n])
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (s *fakeSession) put(c format.Chunk, framed []byte) error {
	p, err := s.tracker.Check(c)
	if err != nil {
		return err
	}
	s.tracker.Apply(p, int64(len(s.file.Bytes())))
	s.file.Write(framed)
	s.order = append(s.order, c.Type)
	return nil
}

func (h *handle) Append(framed []byte) error {
	h.rec.mu.Lock()
	defer h.rec.mu.Unlock()
	s := h.fakeSession
	if s.turn != h.turn {
		return refuse(CodeFenced, "")
	}
	c, _, err := format.ParseChunk(framed)
	if err != nil {
		return err
	}
	if h.rec.onAppend != nil {
		if err := h.rec.onAppend(s.id, c); err != nil {
			return err
		}
	}
	if s.sealing || s.sealed != nil {
		return refuse(CodeEnded, "")
	}
	if old, ok := s.chunks[c.Seq]; ok {
		if !bytes.Equal(old, framed) {
			return &Refusal{Code: CodeConflict, Tick: s.tracker.Totals().NextTick, HasTick: true}
		}
		s.sink.Ack(s.received, s.durable, s.durableTick)
		return nil
	}
	if c.Seq != s.received+1 {
		return &format.OrderError{What: "chunk", Want: s.received + 1, Got: c.Seq}
	}
	if err := s.putStream(c, framed); err != nil {
		return err
	}
	s.chunks[c.Seq] = bytes.Clone(framed)
	s.received = c.Seq
	s.sink.Ack(s.received, s.durable, s.durableTick)
	s.syncLater()
	return nil
}

// putStream stores a chunk; ticks that are stored already are compared and
// left out, and the sequence numbers of the tracker begin where they may.
func (s *fakeSession) putStream(c format.Chunk, framed []byte) error {
	if c.Type != format.ChunkTicks || s.overlap == 0 || c.Seq != s.tracker.Seq()+1 {
		return s.put(c, framed)
	}
	b, err := format.ParseBatch(c.Body, s.tracker.Meta().HashBytes)
	if err != nil || b.First >= s.overlap {
		return errors.Join(err, s.put(c, framed))
	}
	stored, err := format.NewFile(s.file, int64(len(s.file.Bytes())))
	if err != nil {
		return err
	}
	old, rest := stored.Reader(), format.NewBatchBuilder(b.Width, s.tracker.Meta().HashBytes, s.overlap)
	old.Seek(b.First)
	var was, is format.TickRecord
	for r := b.Reader(); r.Next(&is); {
		if is.Tick >= s.overlap {
			if err := rest.Add(&is); err != nil {
				return err
			}
			continue
		}
		if err := old.Next(&was); err != nil {
			return err
		}
		if was.Tick != is.Tick || !bytes.Equal(was.Commands, is.Commands) || !bytes.Equal(was.Params, is.Params) {
			return &Refusal{Code: CodeConflict, Tick: is.Tick, HasTick: true}
		}
	}
	if rest.Ticks() == 0 {
		body := format.AppendMark(nil, format.Mark{Tick: b.First, Kind: "overlap"})
		return s.put(format.Chunk{Type: format.ChunkMark, Seq: c.Seq, Body: body}, format.AppendChunk(nil, format.ChunkMark, c.Seq, body))
	}
	body := rest.AppendBody(nil)
	return s.put(format.Chunk{Type: format.ChunkTicks, Seq: c.Seq, Body: body}, format.AppendChunk(nil, format.ChunkTicks, c.Seq, body))
}

// syncLater makes what was received durable after the delay.
func (s *fakeSession) syncLater() {
	if s.timer {
		return
	}
	s.timer = true
	time.AfterFunc(s.rec.delay, func() {
		s.rec.mu.Lock()
		defer s.rec.mu.Unlock()
		s.timer = false
		if s.rec.sessions[s.id] != s {
			return
		}
		s.durable, s.durableTick, s.durableSize = s.received, s.tracker.Totals().NextTick, len(s.file.Bytes())
		s.claimed = true
		if s.sink != nil {
			s.sink.Ack(s.received, s.durable, s.durableTick)
		}
	})
}

func (h *handle) Seal(totals format.Totals) error {
	h.rec.mu.Lock()
	defer h.rec.mu.Unlock()
	s := h.fakeSession
	if s.turn != h.turn {
		return refuse(CodeFenced, "")
	}
	if err := s.tracker.CheckTotals(totals); err != nil {
		return err
	}
	if s.sealed != nil {
		s.sink.Sealed(s.sealed.digest, s.sealed.name)
		return nil
	}
	h.rec.seals++
	s.sealing = true
	time.AfterFunc(s.rec.delay, func() { s.finish() })
	return nil
}

func (s *fakeSession) finish() {
	s.rec.mu.Lock()
	defer s.rec.mu.Unlock()
	if s.sealed != nil || s.rec.sessions[s.id] != s {
		return
	}
	footer, err := s.tracker.Footer(s.file, int64(len(s.file.Bytes())), format.EndSealed, "")
	if err != nil {
		panic(err)
	}
	s.file.Write(footer)
	f, err := format.NewFile(s.file, int64(len(s.file.Bytes())))
	if err != nil {
		panic(err)
	}
	s.sealed = &sealed{digest: *f.Summary().Digest, name: "archive/" + s.id + ".rply"}
	s.durable, s.durableTick, s.durableSize = s.received, s.tracker.Totals().NextTick, len(s.file.Bytes())
	if s.sink != nil {
		s.sink.Ack(s.received, s.durable, s.durableTick)
		s.sink.Sealed(s.sealed.digest, s.sealed.name)
	}
}

func (h *handle) Detach() {
	h.rec.mu.Lock()
	defer h.rec.mu.Unlock()
	h.rec.detached++
	if h.fakeSession.turn == h.turn {
		h.fakeSession.sink = nil
	}
}

// allDetached tells whether the daemon has let go of every session.
func (f *fakeRecorder) allDetached() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.attached == f.detached
}

// crash forgets what is not durable, as a daemon that is killed does. The
// connections must be gone.
func (f *fakeRecorder) crash() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, s := range f.sessions {
		if s.sealed != nil {
			continue
		}
		if !s.claimed {
			delete(f.sessions, id)
			continue
		}
		fresh := &fakeSession{rec: f, id: id, key: s.key, epoch: s.epoch, opening: s.opening, turn: s.turn + 1, claimed: true, tracker: format.NewTracker(), file: &format.Buffer{}, chunks: map[uint64][]byte{}, overlap: s.overlap}
		kept := s.file.Bytes()[:s.durableSize]
		fresh.file.Write(kept[:format.HeaderSize])
		for b := kept[format.HeaderSize:]; len(b) > 0; {
			c, n, err := format.ParseChunk(b)
			if err == nil {
				err = fresh.put(c, b[:n])
			}
			if err != nil {
				panic(fmt.Sprintf("session %s: what was durable does not read back: %v", id, err))
			}
			if c.Seq > 0 {
				fresh.chunks[c.Seq], fresh.received = s.chunks[c.Seq], c.Seq
			}
			b = b[n:]
		}
		fresh.durable, fresh.durableSize, fresh.durableTick = fresh.received, s.durableSize, fresh.tracker.Totals().NextTick
		f.sessions[id] = fresh
	}
}

// stored reads a session's file.
func (f *fakeRecorder) stored(id string) (*format.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sessions[id]
	if s == nil {
		return nil, fmt.Errorf("no session %s", id)
	}
	b := &format.Buffer{}
	b.Write(s.file.Bytes())
	return format.NewFile(b, int64(len(b.Bytes())))
}
