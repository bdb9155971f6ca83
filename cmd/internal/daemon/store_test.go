package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/format"
	"reprise/recorder"
	"reprise/transport"
)

// Every reason of the recorder has a code on the wire; those that pass by
// themselves have one that clients try again after.
func TestWireCodes(t *testing.T) {
	passing := []recorder.Code{recorder.CodeWindow, recorder.CodeBusy, recorder.CodeClosing, recorder.CodeStorage, recorder.CodeRate}
	n := 0
	for c := recorder.Code(1); !strings.HasPrefix(c.String(), "code "); c++ {
		n++
		code, ok := wireCodes[c]
		if !ok || code == transport.CodeNone {
			t.Errorf("%v has no code on the wire", c)
		}
		r := transport.Refusal{Code: code}
		if want := slices.Contains(passing, c); r.Temporary() != want {
			t.Errorf("%v becomes %v, temporary: %v, want %v", c, code, r.Temporary(), want)
		}
	}
	if n != len(wireCodes) {
		t.Errorf("%d reasons, %d codes", n, len(wireCodes))
	}
}

func TestOnWire(t *testing.T) {
	other := errors.New("open /secret: permission denied")
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"nothing":   {nil, nil},
		"order":     {&recorder.Refusal{Code: recorder.CodeOrder, Tick: 7, Text: "tick 9 comes"}, &transport.Refusal{Code: transport.CodeOrder, Tick: 7, HasTick: true, Text: "tick 9 comes"}},
		"exists":    {fmt.Errorf("wrapped: %w", &recorder.Refusal{Code: recorder.CodeExists, Text: "taken"}), &transport.Refusal{Code: transport.CodeExists, Text: "taken"}},
		"closed":    {recorder.ErrClosed, &transport.Refusal{Code: transport.CodeDraining, Text: "the daemon is shutting down"}},
		"given up":  {context.Canceled, &transport.Refusal{Code: transport.CodeDraining, Text: "the daemon is shutting down"}},
		"any other": {other, other},
	} {
		got := onWire(c.err)
		r, isRefusal := got.(*transport.Refusal)
		want, wantRefusal := c.want.(*transport.Refusal)
		if isRefusal != wantRefusal || isRefusal && *r != *want || !isRefusal && got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// sinkNotes is a Sink that notes what it is told.
type sinkNotes struct {
	mu     sync.Mutex
	acks   int
	tick   format.Tick
	seq    uint64
	sealed []string
	failed []transport.Code
}

func (s *sinkNotes) Ack(_, durable uint64, tick format.Tick) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acks++
	s.seq, s.tick = durable, tick
}

func (s *sinkNotes) Window(int) {}

func (s *sinkNotes) Stalled(transport.Refusal) {}

func (s *sinkNotes) Sealed(_ format.Digest, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed = append(s.sealed, name)
}

func (s *sinkNotes) Failed(r transport.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = append(s.failed, r.Code)
}

func (s *sinkNotes) read() (durable uint64, sealed []string, failed []transport.Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq, slices.Clone(s.sealed), slices.Clone(s.failed)
}

// openStore opens a recorder behind a store.
func openStore(t testing.TB, change ...func(*recorder.Config)) (store, context.CancelFunc) {
	t.Helper()
	cfg := recorder.Config{Dir: filepath.Join(t.TempDir(), "data"), SegmentBytes: 4 << 20}
	for _, f := range change {
		f(&cfg)
	}
	r, err := recorder.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	waiting, giveUp := context.WithCancel(context.Background())
	t.Cleanup(func() {
		giveUp()
		if err := r.Close(within(t, patience)); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return store{recorder: r, waiting: waiting}, giveUp
}

func request(id string, epoch uint64) transport.OpenRequest {
	meta := format.Metadata{Session: id, Game: "match", Width: format.Width16}
	return transport.OpenRequest{Session: id, Key: [transport.KeySize]byte{1}, Epoch: epoch,
		Opening: format.AppendChunk(nil, format.ChunkMeta, 0, format.AppendMeta(nil, &meta))}
}

// ticks is a chunk of one tick, with one step of so many bytes.
func ticks(seq uint64, tick format.Tick, size int) []byte {
	b := format.NewBatchBuilder(format.Width16, 0, tick)
	if err := b.Step(1, format.Bytes(bytes.Repeat([]byte{7}, size))); err != nil {
		panic(err)
	}
	b.EndTick()
	return format.AppendChunk(nil, format.ChunkTicks, seq, b.AppendBody(nil))
}

func mustOpen(t testing.TB, s store, req transport.OpenRequest) (transport.Session, transport.OpenReply, *sinkNotes) {
	t.Helper()
	sink := &sinkNotes{}
	session, reply, err := s.Open(req, sink)
	if err != nil {
		t.Fatal(err)
	}
	return session, reply, sink
}

// A refused seal leaves a session that its producer can open again and seal.
func TestSealRefused(t *testing.T) {
	s, _ := openStore(t)
	session, _, _ := mustOpen(t, s, request("a", 1))
	if err := session.Append(ticks(1, 0, 10)); err != nil {
		t.Fatal(err)
	}
	err := session.Seal(format.Totals{NextTick: 2, Ticks: 2, Steps: 2})
	var r *transport.Refusal
	if !errors.As(err, &r) || r.Code != transport.CodeTotals || r.HasTick {
		t.Fatalf("seal with other counts: %v, want %v without a tick", err, transport.CodeTotals)
	}
	session.Detach()

	session, reply, sink := mustOpen(t, s, request("a", 2))
	if reply.Received != 1 || reply.Totals.Steps != 1 || reply.Window <= 0 {
		t.Errorf("reply %+v, want 1 chunk, 1 step and a window", reply)
	}
	if err := session.Seal(reply.Totals); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the seal", func() bool { _, sealed, _ := sink.read(); return len(sealed) == 1 })
	session.Detach()

	// Once more: the answer is the same, and nothing can be added.
	session, _, again := mustOpen(t, s, request("a", 3))
	if _, sealed, _ := again.read(); len(sealed) != 1 || !strings.HasPrefix(sealed[0], "room-a-") {
		t.Errorf("opened again: sealed as %v, want one name", sealed)
	}
	if err := session.Append(ticks(2, 1, 10)); !errors.As(err, &r) || r.Code != transport.CodeEnded {
		t.Errorf("a chunk for the sealed session: %v, want %v", err, transport.CodeEnded)
	}
	if err := session.Seal(reply.Totals); err != nil {
		t.Errorf("the seal again: %v", err)
	}
	session.Detach()
}

// A newer connection of the producer ends the one before it.
func TestFenced(t *testing.T) {
	s, _ := openStore(t)
	old, _, sink := mustOpen(t, s, request("a", 1))
	if err := old.Append(ticks(1, 0, 10)); err != nil {
		t.Fatal(err)
	}
	session, reply, _ := mustOpen(t, s, request("a", 2))
	if reply.Received != 1 {
		t.Errorf("received %d, want 1", reply.Received)
	}
	eventually(t, "the old one knows", func() bool {
		_, _, failed := sink.read()
		return slices.Equal(failed, []transport.Code{transport.CodeFenced})
	})
	var r *transport.Refusal
	if err := old.Append(ticks(2, 1, 10)); !errors.As(err, &r) || r.Code != transport.CodeFenced {
		t.Errorf("a chunk on the old connection: %v, want %v", err, transport.CodeFenced)
	}
	old.Detach()
	if err := session.Append(ticks(2, 1, 10)); err != nil {
		t.Errorf("a chunk on the new connection, after the old one has gone: %v", err)
	}
	session.Detach()
}

// Where memory is used up chunks wait; none is refused.
func TestChunksWaitForRoom(t *testing.T) {
	t.Parallel()
	disk := &brittleDisk{}
	s, _ := openStore(t, func(c *recorder.Config) {
		c.FS, c.MaxPendingBytes, c.FileInterval = disk, minPending, time.Millisecond
		c.SegmentBytes, c.SessionWindow = 8<<20, 64<<20
	})
	t.Cleanup(disk.heal)
	disk.hold("data/live")
	var appends sync.WaitGroup
	errs := make(chan error, 32)
	for i := range cap(errs) {
		session, _, _ := mustOpen(t, s, request(fmt.Sprint("s", i), 1))
		defer session.Detach()
		appends.Go(func() {
			for seq := range uint64(2) {
				if err := session.Append(ticks(seq+1, format.Tick(seq), 1000<<10)); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		})
	}
	eventually(t, "full memory", func() bool { return s.awaitRoom(time.Nanosecond) != nil })
	if n := s.recorder.Stats().PendingBytes; n > minPending {
		t.Errorf("%d bytes are held, the most is %d", n, minPending)
	}
	_, _, err := s.Open(request("one-more", 1), &sinkNotes{})
	var r *transport.Refusal
	if !errors.As(err, &r) || r.Code != transport.CodeUnavailable {
		t.Errorf("a session while memory is used up: %v, want %v", err, transport.CodeUnavailable)
	}
	disk.heal()
	appends.Wait()
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Errorf("refused though it could wait: %v", err)
		}
	}
}

// A chunk that others were faster than waits, too: there was room for a small
// one, and there is none for it.
func TestChunkWaitsOnceMore(t *testing.T) {
	disk := &brittleDisk{}
	s, _ := openStore(t, func(c *recorder.Config) { c.FS, c.MaxPendingBytes, c.FileInterval = disk, 1<<20, time.Millisecond })
	t.Cleanup(disk.heal)
	disk.hold("data/live")
	first, _, _ := mustOpen(t, s, request("first", 1))
	defer first.Detach()
	if err := first.Append(ticks(1, 0, 450<<10)); err != nil {
		t.Fatal(err)
	}
	session, _, _ := mustOpen(t, s, request("second", 1))
	defer session.Detach()
	done := make(chan error)
	go func() { done <- session.Append(ticks(1, 0, 600<<10)) }()
	eventually(t, "the recorder is asked", func() bool { return s.recorder.Stats().Refused[recorder.CodeBusy] > 0 })
	select {
	case err := <-done:
		t.Fatalf("the chunk did not wait: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	disk.heal()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// What waits for room is given up when told so.
func TestWaitingIsGivenUp(t *testing.T) {
	disk := &brittleDisk{}
	s, giveUp := openStore(t, func(c *recorder.Config) { c.FS, c.MaxPendingBytes = disk, 2<<20 })
	t.Cleanup(disk.heal)
	disk.hold("data/live")
	var session transport.Session
	for i := 0; s.awaitRoom(time.Nanosecond) == nil; i++ {
		session, _, _ = mustOpen(t, s, request(fmt.Sprint("s", i), 1))
		defer session.Detach()
		if err := session.Append(ticks(1, 0, 200<<10)); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error)
	go func() { done <- session.Append(ticks(2, 1, 1)) }()
	select {
	case err := <-done:
		t.Fatalf("the chunk did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	giveUp()
	var r *transport.Refusal
	if err := <-done; !errors.As(err, &r) || r.Code != transport.CodeDraining {
		t.Errorf("given up with %v, want %v", err, transport.CodeDraining)
	}
}

// complaints collects what a client complains of.
type complaints struct {
	mu   sync.Mutex
	list []error
}

func (c *complaints) take(_ string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, err)
}

func (c *complaints) with(code transport.Code) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, err := range c.list {
		var r *transport.Refusal
		if errors.As(err, &r) && r.Code == code {
			n++
		}
	}
	return n
}

// While the disk does not take the journal, clients are told within a
// second; when it does again they go on by themselves, and nothing is lost.
func TestStalledDisk(t *testing.T) {
	d, disk := onBrittleDisk(t)
	var told complaints
	c := dial(t, d.server.Addr().String(), d.pair.Fingerprint().String(), func(cfg *transport.ClientConfig) { cfg.OnError = told.take })
	w := playAll(t, c, seed(t), 3)
	progress(t, w.players)
	before := d.server.Stats()
	disk.fail("data/journal")
	begin := time.Now()
	eventually(t, "every client is told", func() bool { return told.with(transport.CodeStorage) >= len(w.players) })
	if took := time.Since(begin); took > time.Second {
		t.Errorf("clients were told after %v, want a second at most", took)
	}
	if code, body := get(t, d.httpAddr.String(), "/readyz"); code != 503 || !strings.Contains(body, "degraded: journal: ") || !strings.Contains(body, errBadDisk.Error()) {
		t.Errorf("/readyz: %d %q, want 503 with the reason", code, body)
	}
	durable := make([]format.Tick, len(w.players))
	for i, p := range w.players {
		durable[i] = p.rec.Durable()
	}
	time.Sleep(300 * time.Millisecond)
	for i, p := range w.players {
		if now := p.rec.Durable(); now != durable[i] {
			t.Errorf("session %s: ticks up to %d were acknowledged, %d before: the disk took none", p.id, now, durable[i])
		}
	}
	disk.heal()
	begin = time.Now()
	progress(t, w.players)
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("clients went on after %v, want a few seconds at most", took)
	}
	eventually(t, "readiness", func() bool { code, _ := get(t, d.httpAddr.String(), "/readyz"); return code == 200 })
	if now := d.server.Stats(); now.Opened != before.Opened || now.Refused != before.Refused {
		t.Errorf("sessions were ended and opened again: %+v, before %+v", now, before)
	}
	w.sealAll(t, d.cfg.Data)
}

// A seal that meets a stalled disk is done once the disk is back, in every
// place where it can fail.
func TestSealOnStalledDisk(t *testing.T) {
	t.Parallel()
	for _, part := range [...]string{"journal", "live", "sealed"} {
		t.Run(part, func(t *testing.T) {
			d, disk := onBrittleDisk(t)
			c := dial(t, d.server.Addr().String(), d.pair.Fingerprint().String())
			m := match{id: "m", seed: 21}.play(t, c)
			for range 100 {
				m.tick()
			}
			eventually(t, "100 durable ticks", func() bool { return m.rec.Durable() >= 100 })
			disk.fail("data/" + part)
			m.tick()
			end := m.rec.NextTick()
			m.hashes(format.MaxTick)
			short, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
			defer cancel()
			if err := m.rec.Seal(short); err == nil {
				t.Fatal("sealed on a disk that takes nothing")
			}
			disk.heal()
			if got := m.sealIn(d.cfg.Data); got != end {
				t.Errorf("sealed before tick %d, want %d", got, end)
			}
		})
	}
}

// A code book larger than the session's window is no reason to refuse the
// chunks behind it.
func TestLargeOpening(t *testing.T) {
	d, disk := onBrittleDisk(t, func(c *Config) { c.SessionWindow, c.SegmentBytes, c.Segments = 64<<10, 2<<20, 4 })
	var told complaints
	c := dial(t, d.server.Addr().String(), d.pair.Fingerprint().String(), func(cfg *transport.ClientConfig) {
		cfg.OnError, cfg.ChunkLinger = told.take, time.Millisecond
	})
	book := &format.CodeBook{}
	for i := range 1000 {
		book.Codes = append(book.Codes, format.CodeInfo{Code: uint16(i), Name: fmt.Sprintf("%d-%0500d", i, i)})
	}
	disk.hold("data/journal") // so that the opening waits
	rec, err := c.Open(transport.Spec{Meta: format.Metadata{Session: "large"}, Book: book})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the session", func() bool { return len(d.recorder.List()) == 1 })
	for range 10 {
		if err := errors.Join(rec.Step(1, format.Int(1)), rec.EndTick()); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "10 ticks at the daemon", func() bool { return d.recorder.List()[0].NextTick == 10 })
	disk.heal()
	if err := rec.Seal(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	if len(told.list) > 0 {
		t.Errorf("the client complains: %v", told.list)
	}
}

// A daemon whose disk hangs and whose memory is full still ends in time, and
// says that not all is written.
func TestStopOnHangingDisk(t *testing.T) {
	t.Parallel()
	d, disk := onBrittleDisk(t, func(c *Config) { c.MaxPending, c.SegmentBytes, c.Segments = minPending, 8<<20, 4 })
	c := dial(t, d.server.Addr().String(), d.pair.Fingerprint().String(), func(cfg *transport.ClientConfig) {
		cfg.OnError, cfg.SessionMemory, cfg.ChunkBytes = nil, 64<<20, 256<<10
	})
	disk.hold("data/live")
	for i := range 4 {
		rec, err := c.Open(transport.Spec{Meta: format.Metadata{Session: fmt.Sprint("m", i)}})
		if err != nil {
			t.Fatal(err)
		}
		for range 16 {
			if err := errors.Join(rec.Step(1, format.Bytes(make([]byte, 900<<10))), rec.EndTick()); err != nil {
				t.Fatal(err)
			}
		}
	}
	room := store{recorder: d.recorder, waiting: context.Background()}
	eventually(t, "full memory", func() bool { return room.awaitRoom(time.Nanosecond) != nil })
	// Connections that wait for room go with their time.
	begin := time.Now()
	if err := d.seeOff(within(t, time.Second)); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 1200*time.Millisecond {
		t.Errorf("the clients left after %v, want half a second", took)
	}
	begin = time.Now()
	err := d.Stop(within(t, time.Second))
	if err == nil || !strings.Contains(err.Error(), "acknowledged is in the journal") {
		t.Errorf("stop says %v, want that not all is written", err)
	}
	// Beyond its time the recorder waits 2 s for the calls that hang.
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("stop took %v", took)
	}
}

// Nothing is left of a daemon that was stopped, whatever happened to it.
func TestNoGoroutinesLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	func() {
		d, disk := onBrittleDisk(t)
		c := dial(t, d.server.Addr().String(), d.pair.Fingerprint().String(), func(cfg *transport.ClientConfig) { cfg.OnError = nil })
		w := playAll(t, c, 5, 3)
		progress(t, w.players)
		disk.fail("data/journal")
		eventually(t, "a degraded daemon", func() bool { return len(d.notReady()) > 0 })
		disk.heal()
		w.sealAll(t, d.cfg.Data)
		get(t, d.httpAddr.String(), "/metrics")
		if err := c.Close(within(t, patience)); err != nil {
			t.Error(err)
		}
		if err := d.Stop(within(t, patience)); err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= before+1 })
}
