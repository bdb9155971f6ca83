package transport

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

// recorded runs record with a client and gives the sealed file.
func recorded(t *testing.T, s Spec, record func(*world, *Recording)) *format.File {
	t.Helper()
	var f *format.File
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.connect()
		r, err := c.Open(s)
		if err != nil {
			t.Fatal(err)
		}
		record(w, r)
		if err := r.Seal(within(t, time.Hour)); err != nil {
			t.Fatal(err)
		}
		if f, err = w.rec.stored(r.ID()); err != nil {
			t.Fatal(err)
		}
		w.close(c)
	})
	return f
}

// Hashes come at once, late and out of order; each stands at its tick. What
// does not fit is refused where it is made.
func TestHashes(t *testing.T) {
	e := expected{first: 10}
	f := recorded(t, spec("match-1"), func(w *world, r *Recording) {
		for _, bad := range []struct {
			tick format.Tick
			hash string
			want string
		}{{10, "0000", "not closed"}, {5, "0000", "not recorded"}, {10, "000", "3 bytes"}} {
			if err := r.Hash(bad.tick, []byte(bad.hash)); !errors.Is(err, ErrHash) || !strings.Contains(err.Error(), bad.want) {
				t.Errorf("hash %q of tick %d: %v", bad.hash, bad.tick, err)
			}
		}
		rnd := rand.New(rand.NewPCG(3, 4))
		var owed []format.Tick
		for range 100 {
			for tick, n := r.NextTick(), rnd.IntN(40); n >= 0; n-- {
				owed = append(owed, tick)
				tick++
				e.play(t, r, 1)
			}
			rnd.Shuffle(len(owed), func(i, j int) { owed[i], owed[j] = owed[j], owed[i] })
			pay := rnd.IntN(len(owed) + 1)
			for _, tick := range owed[:pay] {
				e.hash(t, r, tick)
			}
			owed = slices.Delete(owed, 0, pay)
			time.Sleep(time.Duration(rnd.IntN(150)) * time.Millisecond)
		}
		done := slices.IndexFunc(e.ticks, func(x expectedTick) bool { return x.hash != "" })
		if err := r.Hash(e.first+format.Tick(done), []byte("0000")); !errors.Is(err, ErrHash) || !strings.Contains(err.Error(), "one already") {
			t.Errorf("a second hash: %v", err)
		}
		if err := r.Gap(e.next()+9, "pause"); err != nil {
			t.Fatal(err)
		}
		if err := r.Hash(e.next()+3, []byte("0000")); !errors.Is(err, ErrHash) {
			t.Errorf("a hash in a gap: %v", err)
		}
		for range 10 {
			e.ticks = append(e.ticks, expectedTick{missing: true})
		}
		e.play(t, r, format.MaxHashLag+1)
		if err := r.Hash(e.next()-format.MaxHashLag-1, []byte("0000")); !errors.Is(err, ErrHash) {
			t.Errorf("a hash that is too late: %v", err)
		}
		e.hash(t, r, e.next()-format.MaxHashLag)
	})
	e.compare(t, f)
}

// A keyframe of 16 MiB goes in parts behind the ticks: no tick waits for it.
func TestKeyframeBehindTicks(t *testing.T) {
	state := make([]byte, 16<<20)
	for i := range state {
		state[i] = byte(i >> 12)
	}
	var order []format.ChunkType
	f := recorded(t, spec("match-1"), func(w *world, r *Recording) {
		w.rec.delay = 20 * time.Millisecond
		e := expected{first: 10}
		e.play(t, r, 6)
		if err := r.Keyframe(16, state); err != nil {
			t.Fatal(err)
		}
		state[0] = 99 // the client has a copy of its own
		for range 300 {
			e.play(t, r, 1)
			tick, begun := e.next()-1, time.Now()
			if err := r.Wait(within(w.t, time.Minute), tick); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(begun); d > 200*time.Millisecond {
				t.Fatalf("tick %d took %v: the linger is 100 ms, the daemon takes up to 40 ms", tick, d)
			}
		}
		w.rec.mu.Lock()
		order = slices.Clone(w.rec.sessions["match-1"].order)
		w.rec.mu.Unlock()
	})
	state[0] = 0
	if len(f.Summary().Keyframes) != 1 {
		t.Fatalf("%d keyframes", len(f.Summary().Keyframes))
	}
	k, err := f.Keyframe(0)
	if err != nil || k.NextTick != 16 || !bytes.Equal(k.State, state) {
		t.Errorf("keyframe before tick %d of %d bytes, %v", k.NextTick, len(k.State), err)
	}
	if n := slices.Index(order, format.ChunkKeyframe); n < 0 || slices.Index(order, format.ChunkTicks) > n {
		t.Errorf("the keyframe came before the ticks in front of it: %v", order[:10])
	}
}

// While ticks always wait, at most one part goes between two chunks of them,
// and parts still go.
func TestKeyframeWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.window = 4 << 10
		w.cfg.ChunkBytes = 1 << 10
		c, r, e := w.record()
		e.play(t, r, 1000)
		time.Sleep(time.Second)
		e.play(t, r, 1000)
		if err := r.Keyframe(10, make([]byte, 40*format.MaxKeyframePart)); err != nil {
			t.Fatal(err)
		}
		for range 80 {
			e.play(t, r, 200) // more than the window lets go
			time.Sleep(5 * time.Millisecond)
		}
		w.rec.mu.Lock()
		order := slices.Clone(w.rec.sessions["match-1"].order)
		w.rec.mu.Unlock()
		parts := 0
		for i, typ := range order {
			if typ == format.ChunkKeyframe {
				parts++
				if order[i-1] == format.ChunkKeyframe {
					t.Errorf("two parts in a row at chunk %d of %d, though ticks wait", i, len(order))
				}
			}
		}
		if parts == 0 || parts == 40 {
			t.Errorf("%d of 40 parts came while the session was busy", parts)
		}
		f := w.sealAndCompare(r, &e)
		if len(f.Summary().Keyframes) != 1 {
			t.Errorf("%d keyframes", len(f.Summary().Keyframes))
		}
		w.close(c)
	})
}

// Several keyframes, also for a tick that comes later, each whole.
func TestKeyframes(t *testing.T) {
	f := recorded(t, spec("match-1"), func(w *world, r *Recording) {
		e := expected{first: 10}
		for i := range 10 {
			if err := r.Keyframe(e.next()+5, bytes.Repeat([]byte{byte(i)}, i*10_000)); err != nil {
				t.Fatal(err)
			}
			e.play(t, r, 10)
			time.Sleep(30 * time.Millisecond)
		}
		if err := r.Keyframe(3, nil); !errors.Is(err, format.ErrOrder) {
			t.Errorf("before the first tick: %v", err)
		}
		if err := r.Keyframe(15, make([]byte, 200<<20)); !errors.Is(err, ErrFull) || r.Stats().Refused != 1 {
			t.Errorf("more than half of the memory: %v, %+v", err, r.Stats())
		}
	})
	for i := range f.Summary().Keyframes {
		k, err := f.Keyframe(i)
		if err != nil || k.NextTick != format.Tick(15+10*i) || len(k.State) != i*10_000 {
			t.Errorf("keyframe %d: before tick %d, %d bytes, %v", i, k.NextTick, len(k.State), err)
		}
	}
	if n := len(f.Summary().Keyframes); n != 10 {
		t.Errorf("%d keyframes", n)
	}
}

func TestPlayers(t *testing.T) {
	s := spec("match-1")
	s.Players = []format.PlayerEvent{{Tick: 10, ID: 1, Name: "\xffhost"}}
	f := recorded(t, s, func(w *world, r *Recording) {
		e := expected{first: 10}
		e.play(t, r, 5)
		for _, c := range []struct {
			do   func() error
			want error
		}{
			{func() error { return r.Join(format.Player{ID: 1}) }, format.ErrOrder},
			{func() error { return r.Join(format.Player{ID: 2, Name: "guest", Team: "red", Observer: true}) }, nil},
			{func() error { return r.Leave(3) }, format.ErrOrder},
			{func() error { return r.Leave(1) }, nil},
			{func() error { return r.Leave(1) }, format.ErrOrder},
			{func() error { return r.Join(format.Player{ID: 1, Name: "back"}) }, nil},
			{func() error {
				return r.Players(format.PlayerEvent{Tick: 20, ID: 4}, format.PlayerEvent{Tick: 21, ID: 4, Leave: true}, format.PlayerEvent{Tick: 22, ID: 5, Leave: true})
			}, format.ErrOrder},
			{func() error { return r.Join(format.Player{ID: 9, Name: strings.Repeat("x", format.MaxText+1)}) }, format.ErrLimit},
		} {
			if err := c.do(); !errors.Is(err, c.want) {
				t.Errorf("%v, expected %v", err, c.want)
			}
			time.Sleep(200 * time.Millisecond)
		}
	})
	got := fmt.Sprintf("%+v", f.Summary().Roster())
	want := fmt.Sprintf("%+v", []format.Player{
		{ID: 1, Name: "back", Stays: []format.Stay{{Joined: 10, Left: 15}, {Joined: 15, Open: true}}},
		{ID: 2, Name: "guest", Team: "red", Observer: true, Stays: []format.Stay{{Joined: 15, Open: true}}}})
	if got != want {
		t.Errorf("%s\nexpected %s", got, want)
	}
}

func TestMarksAndReports(t *testing.T) {
	f := recorded(t, spec("match-1"), func(w *world, r *Recording) {
		e := expected{first: 10}
		for i := range 20 {
			e.play(t, r, 3)
			if err := r.Mark(format.Mark{Tick: e.next(), Kind: "kill", Player: uint64(i), Text: "x"}); err != nil {
				t.Fatal(err)
			}
			h := []byte{byte(i)}
			if err := r.Report(format.Report{At: e.next(), Of: e.next() - 1, Peer: 1, Hash: h}, format.Report{Peer: 2, Hash: h}); err != nil {
				t.Fatal(err)
			}
			h[0] = 99
			time.Sleep(70 * time.Millisecond)
		}
		if err := r.Mark(format.Mark{Text: strings.Repeat("x", format.MaxText+1)}); !errors.Is(err, format.ErrLimit) {
			t.Errorf("a long text: %v", err)
		}
		if err := r.Report(format.Report{}); !errors.Is(err, format.ErrLimit) {
			t.Errorf("a report without a hash: %v", err)
		}
		var err error
		for range 1000 {
			if err = r.Mark(format.Mark{Text: strings.Repeat("x", format.MaxText)}); err != nil {
				break
			}
		}
		if !errors.Is(err, format.ErrLimit) {
			t.Errorf("marks without end: %v", err)
		}
	})
	if m := f.Summary().Marks; len(m) < 20 || m[19].Player != 19 || m[19].Tick != 70 {
		t.Errorf("%d marks", len(m))
	}
	n := 0
	err := f.Reports(func(r format.Report) error {
		if int(r.Hash[0]) != n/2 {
			t.Errorf("report %d has hash %x", n, r.Hash)
		}
		n++
		return nil
	})
	if n != 40 || err != nil {
		t.Errorf("%d reports, %v", n, err)
	}
}

func TestTurns(t *testing.T) {
	s := spec("match-1")
	s.Meta.TickRate = format.Rate{}
	f := recorded(t, s, func(w *world, r *Recording) {
		long := make([]format.Value, format.MaxParams+1)
		for i := range 50 {
			tick, err := r.RecordTurn(Input{1, []format.Value{format.Int(int64(i))}}, Input{Code: 2}, Input{3, []format.Value{format.String("yes")}})
			if err != nil || tick != format.Tick(10+i) {
				t.Fatalf("turn %d is tick %d, %v", i, tick, err)
			}
			// The last step does not fit, so nothing of the turn is recorded.
			if tick, err := r.RecordTurn(Input{Code: 1}, Input{2, long}); !errors.Is(err, format.ErrStep) || tick != format.Tick(11+i) {
				t.Fatalf("a turn that does not fit: tick %d, %v", tick, err)
			}
		}
		r.Step(9)
		if _, err := r.RecordTurn(Input{Code: 1}); !errors.Is(err, format.ErrOrder) {
			t.Errorf("a turn inside a tick: %v", err)
		}
		if err := r.Seal(w.t.Context()); !errors.Is(err, format.ErrOrder) {
			t.Errorf("the end inside a tick: %v", err)
		}
		r.EndTick()
	})
	var rec format.TickRecord
	rd := f.Reader()
	for i := range 50 {
		if err := rd.Next(&rec); err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(stepsOf(&rec)), fmt.Sprint([]string{fmt.Sprintf("1 %d", i), "2", stepText(3, []format.Value{format.String("yes")})}); got != want {
			t.Errorf("turn %d: %s, expected %s", i, got, want)
		}
	}
}

// Times never decrease, whatever the game gives; the automatic ones follow
// the monotonic clock.
func TestTimes(t *testing.T) {
	f := recorded(t, spec("match-1"), func(w *world, r *Recording) {
		for _, at := range []time.Duration{5, 7, 3, 9} {
			r.EndTickAt(at * time.Millisecond)
		}
	})
	if got := times(t, f); !slices.Equal(got, []int64{5000, 7000, 7000, 9000}) {
		t.Errorf("%v", got)
	}
	s := spec("match-1")
	s.Times = true
	f = recorded(t, s, func(w *world, r *Recording) {
		for range 4 {
			time.Sleep(16 * time.Millisecond)
			r.EndTick()
		}
	})
	if got := times(t, f); !slices.Equal(got, []int64{16000, 32000, 48000, 64000}) {
		t.Errorf("%v", got)
	}
}

func times(t *testing.T, f *format.File) (times []int64) {
	r := f.Reader()
	var rec format.TickRecord
	for r.Next(&rec) == nil {
		if !rec.HasTime {
			t.Fatalf("tick %d has no time", rec.Tick)
		}
		times = append(times, rec.Time)
	}
	return times
}

// A tick that fills a chunk, and ticks too large for one, are kept apart.
func TestLargeTicks(t *testing.T) {
	big := format.String(strings.Repeat("x", 300<<10))
	f := recorded(t, spec("match-1"), func(w *world, r *Recording) {
		for range 5 {
			for range 3 {
				if err := r.Step(1, big); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Step(1, big); !errors.Is(err, format.ErrTickSize) {
				t.Fatalf("1.2 MiB in one tick: %v", err)
			}
			if err := r.EndTick(); err != nil {
				t.Fatal(err)
			}
		}
	})
	if s := f.Summary(); s.Ticks != 5 || s.Steps != 15 {
		t.Errorf("%d ticks, %d steps", s.Ticks, s.Steps)
	}
}

// Open refuses what no daemon would take.
func TestOpenRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.connect()
		for name, change := range map[string]func(*Spec){
			"id":      func(s *Spec) { s.Meta.Session = "../x" },
			"hash":    func(s *Spec) { s.Meta.HashBytes = 33 },
			"book":    func(s *Spec) { s.Book = &format.CodeBook{Codes: []format.CodeInfo{{Code: 1}, {Code: 1}}} },
			"players": func(s *Spec) { s.Players = []format.PlayerEvent{{ID: 1, Leave: true}} },
		} {
			s := spec("match-1")
			change(&s)
			if _, err := c.Open(s); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if _, err := c.Continue(t.Context(), spec("match-1"), 10); err == nil {
			t.Error("Continue without a key")
		}
		if _, err := c.Resume("match-1"); err == nil {
			t.Error("Resume without a spool")
		}
		if _, err := c.Open(spec("match-1")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Open(spec("match-1")); err == nil {
			t.Error("the same session twice")
		}
		w.close(c)
	})
}

// The code book proves 8-bit codes enough; a wider code is then refused.
func TestWidth(t *testing.T) {
	s := spec("match-1")
	s.Book = &format.CodeBook{Codes: []format.CodeInfo{{Code: 1, Name: "move"}}}
	f := recorded(t, s, func(w *world, r *Recording) {
		if err := r.Step(256); !errors.Is(err, format.ErrStep) {
			t.Errorf("code 256: %v", err)
		}
		r.Step(1)
		r.EndTick()
	})
	if f.Summary().Meta.Width != format.Width8 || f.Book().Lookup(1).Name != "move" {
		t.Errorf("%+v", f.Summary().Meta)
	}
}

// The daemon changes a window on the way.
func TestWindowChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.window = 1
		w.rec.delay = time.Second
		c, r, e := w.record()
		for range 20 {
			e.play(t, r, 10)
			time.Sleep(150 * time.Millisecond)
		}
		w.rec.mu.Lock()
		s := w.rec.sessions["match-1"]
		if n := s.received - s.durable; n > 1 {
			t.Errorf("%d chunks are not durable: a window of one byte allows one", n)
		}
		before := s.received
		s.sink.Window(1 << 20)
		w.rec.mu.Unlock()
		time.Sleep(200 * time.Millisecond)
		w.rec.mu.Lock()
		if n := s.received - before; n < 10 {
			t.Errorf("%d chunks came after the window grew", n)
		}
		w.rec.mu.Unlock()
		w.sealAndCompare(r, &e)
		w.close(c)
	})
}

// Step and EndTick allocate nothing, whatever goes on behind them.
func TestStepAllocates(t *testing.T) {
	for _, spool := range []string{"", t.TempDir()} {
		testStepAllocates(t, spool)
	}
}

func testStepAllocates(t *testing.T, spool string) {
	c := newClient(&addresses{list: []string{"a:1"}}, ClientConfig{Spool: spool})
	r, err := c.Open(Spec{Meta: format.Metadata{Session: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if (r.tail != nil) != (spool != "") {
		t.Fatal("a recording has a tail where it has a spool")
	}
	for range 2 * chunkTicks { // the builder's memory grows to its size
		r.Step(1, format.Int(1), format.Int(70000), format.String("go"))
		r.EndTick()
	}
	r.cut()
	if spool != "" {
		r.writeSpool()
		r.cut()
	}
	if n := testing.AllocsPerRun(400, func() {
		r.Step(1, format.Int(1), format.Int(70000), format.String("go"))
		r.Step(2)
		r.EndTick()
	}); n > 0.1 {
		t.Errorf("%v allocations for a tick with spool %q", n, spool)
	}
	if r.tail != nil && r.tail.missed {
		t.Error("the tail had no room: the test proves nothing")
	}
	r.abandon(true)
	c.writeSpools()
}

// A hash that came late for a tick before a gap goes in front of the gap: behind
// it, it could be too late for the format.
func TestHashBeforeGap(t *testing.T) {
	c := newClient(&addresses{list: []string{"a:1"}}, ClientConfig{SessionMemory: 4 << 10})
	r, err := c.newRecording(&Spec{Meta: format.Metadata{Session: "x", HashBytes: 4}})
	if err != nil {
		t.Fatal(err)
	}
	tick := format.Tick(0)
	for ; r.EndTick() == nil; tick++ {
		r.Step(1, format.Bytes(make([]byte, 1000)))
		if tick%3 == 2 {
			r.cut()
		}
	}
	if err := r.Hash(tick-1, []byte("hash")); err != nil {
		t.Fatal(err)
	}
	for range format.MaxHashLag {
		r.EndTick()
	}
	for r.q.unsent() != nil {
		r.q.markSent()
	}
	r.settle(r.q.next()-1, tick)
	r.EndTick()
	var order []format.ChunkType
	for _, c := range r.q.chunks {
		chunk, _, err := format.ParseChunk(c.data)
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, chunk.Type)
	}
	if want := []format.ChunkType{format.ChunkHashes, format.ChunkGap}; !slices.Equal(order, want) {
		t.Errorf("%v, expected %v", order, want)
	}
}
