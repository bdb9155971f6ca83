package ship

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"reprise/cmd/internal/daemon"
	"reprise/format"
	"reprise/transport"
)

// grower writes a file piece by piece, without regard to its chunks.
type grower struct {
	t    testing.TB
	f    *os.File
	left []byte
	r    *rand.Rand
}

func grow(t testing.TB, dir, name string, b []byte, r *rand.Rand) *grower {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &grower{t: t, f: f, left: b, r: r}
}

// step writes up to most more bytes; false once all are written.
func (g *grower) step(most int) bool {
	n := min(len(g.left), 1+g.r.IntN(most))
	if _, err := g.f.Write(g.left[:n]); err != nil {
		g.t.Error(err)
	}
	g.left = g.left[n:]
	return len(g.left) > 0
}

// all writes the rest, with pauses.
func (g *grower) all(most int, pause time.Duration) {
	for g.step(most) {
		time.Sleep(pause)
	}
}

// seeded gives a random source whose seed the log tells.
func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestAGrowingFileIsFollowedToItsSeal(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	m := finished("grows", 3, 1000)
	b := m.bytes(t)
	r := follow(t, h.config(dir))
	g := grow(t, dir, "grows.rply", b, seeded(t))
	g.all(len(b)/100, time.Millisecond)
	e := r.await(EventSealed, "grows.rply", 1)
	if e.Digest != digestOf(t, b) {
		t.Errorf("sealed with digest %v, the file's is %v", e.Digest, digestOf(t, b))
	}
	same(t, b, sealedOne(t, h.cfg.Data, "grows"))
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if got := r.summary(); got != (Summary{Sealed: 1}) {
		t.Errorf("summary %+v", got)
	}
}

// What is written is at the daemon before the file goes on.
func TestTicksAreDurableWhileTheFileGrows(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	part := live("live", 4, 300).bytes(t)
	f, err := os.Create(filepath.Join(dir, "live.rply"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	follow(t, h.config(dir))
	want := opened(t, inMemory(part), int64(len(part))).Summary().Totals
	if _, err := f.Write(part); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all ticks in the daemon's live file", func() bool {
		list := files(t, h.cfg.Data, "live")
		if len(list) != 1 {
			return false
		}
		f, err := format.Open(list[0])
		if err != nil {
			return false
		}
		defer f.Close()
		return f.Summary().Totals == want
	})
}

// The same files while ship is killed again and again.
func TestShipIsKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	rnd := seeded(t)
	content := map[string][]byte{}
	var growing sync.WaitGroup
	for name, m := range map[string]match{"a.rply": finished("killed-a", 5, 1500), "b.rply": finished("", 6, 1500), "c.rply": finished("killed-c", 7, 200)} {
		content[name] = m.bytes(t)
		g := grow(t, dir, name, content[name], rand.New(rand.NewPCG(rnd.Uint64(), 0)))
		growing.Go(func() { g.all(len(g.left)/150, 5*time.Millisecond) })
	}
	cfg := h.config(dir)
	for range 12 {
		r := follow(t, cfg)
		time.Sleep(time.Duration(rnd.IntN(120)) * time.Millisecond)
		r.end()
	}
	growing.Wait()
	r := begin(t, cfg)
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{"a.rply": "killed-a", "b.rply": "b", "c.rply": "killed-c"} {
		same(t, content[name], sealedOne(t, h.cfg.Data, id))
	}
	if list := all(t, h.cfg.Data); len(list) != 3 {
		t.Errorf("the daemon has %v, want three replays", list)
	}
	if got := r.summary(); got.Sealed+got.Before != 3 || got.Failed+got.Unfinished+got.Growing != 0 {
		t.Errorf("summary %+v", got)
	}
}

// The daemon drains and comes back, while files grow.
func TestTheDaemonIsRestarted(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	rnd := seeded(t)
	b := finished("restarted", 8, 1500).bytes(t)
	r := follow(t, h.config(dir))
	g := grow(t, dir, "restarted.rply", b, rnd)
	for n := range 4 {
		for range 30 {
			g.step(len(b) / 100)
		}
		r.await(EventStarted, "restarted.rply", 1)
		h.stop()
		g.step(len(b) / 100)
		h.start()
		r.await(EventResumed, "restarted.rply", n+1)
	}
	g.all(len(b)/100, time.Millisecond)
	r.await(EventSealed, "restarted.rply", 1)
	same(t, b, sealedOne(t, h.cfg.Data, "restarted"))
	if len(r.of(EventTrouble, "")) == 0 {
		t.Errorf("no word of the lost connection\n%s", r)
	}
}

// The daemon's window is smaller than the file, and than some of its chunks.
func TestASmallWindow(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(c *daemon.Config) { c.SessionWindow = 16 << 10 })
	dir := t.TempDir()
	b := finished("narrow", 10, 500).bytes(t)
	put(t, dir, "narrow.rply", b)
	once(t, h.config(dir))
	same(t, b, sealedOne(t, h.cfg.Data, "narrow"))
}

// A file that rests is left, and gone on with when it grows again.
func TestAFileThatRestsGoesOn(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(c *daemon.Config) { c.ResumeTimeout = daemon.Duration{Duration: 50 * time.Millisecond} })
	dir := t.TempDir()
	b := finished("rests", 9, 600).bytes(t)
	path := put(t, dir, "rests.rply", b[:len(b)/2])
	cfg := h.config(dir)
	cfg.Idle = 100 * time.Millisecond
	r := follow(t, cfg)
	r.await(EventUnfinished, "rests.rply", 1)
	unfinished(t, h.cfg.Data, "rests")
	appendTo(t, path, b[len(b)/2:])
	r.await(EventSealed, "rests.rply", 1)
	same(t, b, sealedOne(t, h.cfg.Data, "rests"))
	if n := len(r.of(EventUnfinished, "")); n != 1 {
		t.Errorf("told %d times that the file rests, want once", n)
	}
}

// The run ends while a file grows: that is told, and is an error.
func TestAFileUnderWayWhenTheRunEnds(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	put(t, dir, "live.rply", live("live", 1, 50).bytes(t))
	r := follow(t, h.config(dir))
	r.await(EventStarted, "live.rply", 1)
	if err := r.end(); err == nil || r.summary() != (Summary{Growing: 1}) {
		t.Errorf("%v, %+v", err, r.summary())
	}
}

func inMemory(b []byte) *format.Buffer {
	var buf format.Buffer
	buf.Write(b)
	return &buf
}

// A file that was left and has not changed is not opened again: the daemon
// may have given up on its session long ago. Only what is new needs it.
func TestALeftFileIsNotOpenedAgain(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(c *daemon.Config) {
		c.ResumeTimeout, c.ReopenWindow = daemon.Duration{Duration: 50 * time.Millisecond}, daemon.Duration{}
	})
	dir := t.TempDir()
	b := finished("left", 13, 100).bytes(t)
	path := put(t, dir, "left.rply", b[:len(b)/2])
	unsealed(t, begin(t, h.config(dir)), Summary{Unfinished: 1})
	unfinished(t, h.cfg.Data, "left")
	r := begin(t, h.config(dir))
	unsealed(t, r, Summary{Unfinished: 1})
	r.await(EventUnfinished, "left.rply", 1)
	appendTo(t, path, b[len(b)/2:])
	r = begin(t, h.config(dir))
	unsealed(t, r, Summary{Failed: 1})
	var refusal *transport.Refusal
	if err := failure(t, r, "left.rply"); !errors.As(err, &refusal) || refusal.Code != transport.CodeEnded {
		t.Errorf("given up for %v, want that the session has ended", err)
	}
}
