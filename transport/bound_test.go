package transport

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

// boundWorld is a world whose client has little room, on disk and in memory.
func boundWorld(t *testing.T, dir string) *world {
	w := spoolWorld(t, dir)
	w.cfg.SpoolLimit, w.cfg.SessionMemory = 128<<10, 128<<10
	return w
}

// missing counts the ticks of the oracle that were left out, and the runs of
// them.
func (e *expected) missing() (ticks uint64, runs int) {
	for i, x := range e.ticks {
		if x.missing {
			ticks++
			if i == 0 || !e.ticks[i-1].missing {
				runs++
			}
		}
	}
	return ticks, runs
}

// reports tells whether OnError took an error that matches.
func (w *world) reports(target error) bool {
	return slices.ContainsFunc(w.reported(), func(err error) bool { return errors.Is(err, target) })
}

// gapIsSaid compares what is missing with what the file, the figures and the
// reports say.
func (w *world) gapIsSaid(f *format.File, r *Recording, e *expected) {
	w.t.Helper()
	ticks, runs := e.missing()
	s, got := f.Summary(), r.Stats()
	if ticks == 0 || got.MissedTicks != ticks || got.Gaps != runs || len(s.Gaps) != runs || s.Complete() {
		w.t.Errorf("%d ticks in %d gaps are missing; counted %d in %d; the file has %v, complete %v", ticks, runs, got.MissedTicks, got.Gaps, s.Gaps, s.Complete())
	}
	var gap *GapError
	for _, err := range w.reported() {
		errors.As(err, &gap)
	}
	if g := s.Gaps[0]; gap == nil || gap.First != g.First || gap.Last != g.Last || g.Reason == "" {
		w.t.Errorf("reported %v, the file has %+v", gap, g)
	}
	if !w.reports(format.ErrLimit) || !w.reports(ErrFull) {
		w.t.Errorf("reported %v", w.reported())
	}
}

// Where the spool and then the memory are full, ticks are left out: one gap,
// declared, counted and reported once the daemon is back.
func TestSpoolBoundThenReconnect(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := boundWorld(t, dir)
		c, r, e := w.record()
		e.play(t, r, 100)
		time.Sleep(time.Second)
		w.kill()
		for range 200 {
			e.play(t, r, 200)
			time.Sleep(10 * time.Millisecond)
		}
		if s := r.Stats(); s.MissedTicks == 0 || s.Memory > 160<<10 {
			t.Errorf("%+v", s)
		}
		w.startDaemon(Config{})
		time.Sleep(10 * time.Second)
		e.play(t, r, 100)
		w.gapIsSaid(w.sealAndCompare(r, &e), r, &e)
		w.close(c)
	})
}

// A client that dies with a full spool: the next one goes on where the spool
// ends. What the game has played since is a gap that it must declare, for
// ticks do not jump.
func TestSpoolBoundThenRestart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := boundWorld(t, dir)
		w.kill()
		c, r, e := w.record()
		for range 200 {
			e.play(t, r, 200)
			time.Sleep(10 * time.Millisecond)
		}
		if r.Stats().MissedTicks == 0 || !w.reports(format.ErrLimit) || !w.reports(ErrFull) {
			t.Errorf("%+v; reported %v", r.Stats(), w.reported())
		}
		w.abort(c)
		w.startDaemon(Config{})
		c, r = w.resume()
		next := r.NextTick()
		if next <= 10 || next >= e.next() {
			t.Fatalf("resumed at tick %d, played up to %d", next, e.next())
		}
		if err := r.Gap(e.next()-1, "the recorder had no room, and its game was restarted"); err != nil {
			t.Fatal(err)
		}
		for tick := next; tick < e.next(); tick++ {
			*e.at(tick) = expectedTick{missing: true}
		}
		e.play(t, r, 100)
		f := w.sealAndCompare(r, &e)
		if s := f.Summary(); len(s.Gaps) != 1 || s.Gaps[0].First != next || s.Complete() || r.Stats().Gaps != 1 {
			t.Errorf("the file has %v, complete %v; counted %d", s.Gaps, s.Complete(), r.Stats().Gaps)
		}
		w.close(c)
	})
}

// A gap that the client declared is still counted after a restart.
func TestMissedTicksOutliveTheClient(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := spoolWorld(t, dir)
		c, r, e := w.record()
		e.play(t, r, 10)
		r.mu.Lock()
		r.beginGap()
		r.missed.next += 5
		r.missed.ticks += 5
		if err := r.endGap(); err != nil {
			t.Error(err)
		}
		r.mu.Unlock()
		e.ticks = append(e.ticks, slices.Repeat([]expectedTick{{missing: true}}, 5)...)
		if err := r.Gap(e.next()+1, "the game's own"); err != nil {
			t.Fatal(err)
		}
		e.ticks = append(e.ticks, slices.Repeat([]expectedTick{{missing: true}}, 2)...)
		w.abort(c)
		c, r = w.resume()
		if s := r.Stats(); s.MissedTicks != 5 || s.Gaps != 2 {
			t.Errorf("%d missed ticks, %d gaps", s.MissedTicks, s.Gaps)
		}
		e.play(t, r, 10)
		w.sealAndCompare(r, &e)
		w.close(c)
	})
}

// A client that dies with a full spool while the daemon took more than that:
// the spool is refused by tick, and the key goes on. The ticks between are a
// gap that the daemon declares.
func TestSpoolBoundWithDaemon(t *testing.T) {
	dir, fresh := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := boundWorld(t, dir)
		c := w.connect()
		s := keyed("match-1")
		r, _ := c.Open(s)
		e := expected{first: 10}
		for range 100 {
			e.play(t, r, 100)
			time.Sleep(150 * time.Millisecond)
		}
		if r.Stats().MissedTicks != 0 || r.Durable() != e.next() || !w.reports(format.ErrLimit) {
			t.Fatalf("%+v; reported %v", r.Stats(), w.reported())
		}
		w.abort(c)
		c, r = w.resume()
		end := r.NextTick()
		if end >= e.next() {
			t.Fatalf("the spool goes up to tick %d of %d: the test proves nothing", end, e.next())
		}
		conflictAt(t, r, end)
		w.abort(c)

		w.cfg.Spool = fresh
		c = w.connect()
		r, err := c.Continue(within(t, time.Minute), s, e.next()+50)
		if err != nil {
			t.Fatal(err)
		}
		e.ticks = append(e.ticks, slices.Repeat([]expectedTick{{missing: true}}, 50)...)
		e.play(t, r, 20)
		f := w.sealAndCompare(r, &e)
		if g := f.Summary().Gaps; len(g) != 1 || g[0].Last-g[0].First != 49 || f.Summary().Complete() {
			t.Errorf("gaps %v", g)
		}
		w.close(c)
	})
}

// A disk that is full under the spool: it is said once, recording goes on in
// memory, and nothing is lost while there is room. What the spool has by then
// is whole.
func TestSpoolDiskFull(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it needs /dev/full")
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := spoolWorld(t, dir)
		w.kill()
		c, r, e := w.record()
		e.play(t, r, 100)
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		file := r.spool.f
		r.spool.f = full
		defer file.Close()
		for range 20 {
			e.play(t, r, 100)
			time.Sleep(50 * time.Millisecond)
		}
		if !w.reports(syscall.ENOSPC) {
			t.Errorf("reported %v", w.reported())
		}
		f, err := format.Open(filepath.Join(dir, "match-1.rply"))
		if err != nil {
			t.Fatal(err)
		}
		if s := f.Summary(); s.Ticks != 100 || f.Torn != nil {
			t.Errorf("the spool has %d ticks, torn %v", s.Ticks, f.Torn)
		}
		f.Close()
		w.startDaemon(Config{})
		w.sealAndCompare(r, &e)
		if s := r.Stats(); s.MissedTicks != 0 || s.Gaps != 0 {
			t.Errorf("%+v", s)
		}
		w.close(c)
	})
}

// A keyframe that finds no room beside the spool is sent all the same, and
// that it would not outlive the game is said.
func TestKeyframeWithoutFile(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := spoolWorld(t, dir)
		c, r, e := w.record()
		e.play(t, r, 5)
		if err := os.Mkdir(r.spool.keyframePath(1), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := r.Keyframe(12, make([]byte, 100_000)); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(r.spool.keyframePath(1)); err != nil {
			t.Fatal(err)
		}
		f := w.sealAndCompare(r, &e)
		if n := len(f.Summary().Keyframes); n != 1 || len(w.reported()) != 1 {
			t.Errorf("%d keyframes; reported %v", n, w.reported())
		}
		w.close(c)
	})
	if left, err := os.ReadDir(dir); len(left) != 0 || err != nil {
		t.Errorf("the spool still has %v, %v", left, err)
	}
}
