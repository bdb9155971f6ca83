package transport

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/format"
)

// game is a recording in a client whose goroutines do not run: the test
// decides when a chunk is cut and when it is spooled.
type game struct {
	t   *testing.T
	dir string
	c   *Client
	r   *Recording
	e   expected

	gaps int
}

// newGame opens a session; chunkBytes 0 takes the default.
func newGame(t *testing.T, key byte, chunkBytes int) *game {
	g := &game{t: t, dir: t.TempDir(), e: expected{first: 10}}
	g.c = newClient(&addresses{list: []string{"a:1"}}, ClientConfig{Spool: g.dir, ChunkBytes: chunkBytes})
	s := spec("match-1")
	s.Key[0] = key
	s.Meta.StartedAt = 1
	r, err := g.c.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	g.r = r
	t.Cleanup(func() {
		r.abandon(false)
		g.c.writeSpools()
	})
	return g
}

// round plays and spools one chunk.
func (g *game) round(ticks int) {
	g.e.play(g.t, g.r, ticks)
	g.e.hash(g.t, g.r, g.e.next()-2)
	g.r.Flush()
	g.r.writeSpool()
}

// leavings are the spool's files as a process leaves them that dies now.
type leavings struct {
	files map[string][]byte
	next  format.Tick
}

func (g *game) die() leavings {
	l := leavings{files: map[string][]byte{}, next: g.e.next()}
	for _, suffix := range []string{spoolSuffix, producerSuffix, tailSuffix} {
		b, err := os.ReadFile(filepath.Join(g.dir, "match-1"+suffix))
		if err != nil {
			g.t.Fatal(err)
		}
		l.files[suffix] = b
	}
	return l
}

// open resumes from leavings, and opens what the spool holds then.
func (l leavings) open(t *testing.T) (*Client, *Recording, *format.File) {
	t.Helper()
	dir := t.TempDir()
	for suffix, b := range l.files {
		if err := os.WriteFile(filepath.Join(dir, "match-1"+suffix), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := newClient(&addresses{list: []string{"a:1"}}, ClientConfig{Spool: dir})
	r, err := c.Resume("match-1")
	if err != nil {
		t.Fatal(err)
	}
	f, err := format.Open(filepath.Join(dir, "match-1.rply"))
	if err != nil {
		t.Fatal(err)
	}
	return c, r, f
}

// resume resumes from leavings and compares all that the spool holds then
// with the oracle, up to the tick that it gives. Hashes of ticks from
// unhashed on may be missing.
func (l leavings) resume(t *testing.T, e *expected, unhashed format.Tick) (next format.Tick, told []error) {
	t.Helper()
	c, r, f := l.open(t)
	defer f.Close()
	next = r.NextTick()
	if next > e.next() {
		t.Fatalf("resumed at tick %d, recorded up to %d", next, e.next())
	}
	have := expected{first: e.first, ticks: slices.Clone(e.ticks[:next-e.first])}
	rec, reader := format.TickRecord{}, f.Reader()
	for reader.Next(&rec) == nil {
		if rec.Tick >= unhashed && rec.Tick < next && rec.Hash == nil {
			have.at(rec.Tick).hash = ""
		}
	}
	have.compare(t, f)
	if got := r.Stats(); got.Ticks != f.Summary().Ticks || got.Hashes != f.Summary().Hashes {
		t.Fatalf("the recording counts %d ticks and %d hashes, its spool has %d and %d", got.Ticks, got.Hashes, f.Summary().Ticks, f.Summary().Hashes)
	}
	for c.complaints.len() > 0 {
		x, _ := c.complaints.pop()
		told = append(told, x.err)
	}
	r.abandon(false)
	c.writeSpools()
	return next, told
}

// A process that dies at any moment leaves every closed tick and every hash,
// whatever was cut and spooled by then: also ticks of all sizes, gaps, and
// hashes that come late.
func TestTailHasAll(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		g := newGame(t, 1, 512)
		without, waits, checked := 0, false, 0
		for range 60 {
			g.act(rnd)
			missed := g.records() - int(g.r.tail.seq)
			waits = missed > without || waits && len(g.r.toSpool) > 0
			without = missed
			if waits {
				continue // what the tail had no room for waits for the spooler
			}
			checked++
			if next, told := g.die().resume(t, &g.e, format.MaxTick); next != g.e.next() || len(told) > 0 {
				t.Fatalf("seed %d: resumed at tick %d, recorded up to %d; told %v", seed, next, g.e.next(), told)
			}
		}
		if checked < 30 {
			t.Errorf("seed %d: the tail had room for only %d of 60 moments", seed, checked)
		}
	}
}

// records counts what was recorded: ticks, hashes and gaps.
func (g *game) records() int {
	n := g.gaps
	for i := range g.e.ticks {
		if !g.e.ticks[i].missing {
			n++
		}
		if g.e.ticks[i].hash != "" {
			n++
		}
	}
	return n
}

// act does one random thing.
func (g *game) act(rnd *rand.Rand) {
	switch rnd.IntN(8) {
	case 0:
		g.r.Flush()
	case 1, 2:
		g.r.writeSpool()
	case 3:
		if tick := g.e.next() - format.Tick(1+rnd.IntN(40)); tick >= 10 && tick < g.e.next() && !g.e.at(tick).missing && g.e.at(tick).hash == "" {
			g.e.hash(g.t, g.r, tick)
		}
	case 4:
		g.large(rnd.IntN(12 << 10))
	case 5:
		if rnd.IntN(4) == 0 {
			g.gap(1 + rnd.IntN(5))
		}
	default:
		g.e.play(g.t, g.r, 1+rnd.IntN(30))
	}
}

// large records a tick of so many bytes.
func (g *game) large(size int) {
	params := []format.Value{format.String(strings.Repeat("y", size))}
	if err := errors.Join(g.r.Step(5, params...), g.r.EndTick()); err != nil {
		g.t.Fatal(err)
	}
	g.e.ticks = append(g.e.ticks, expectedTick{steps: []string{stepText(5, params)}})
}

func (g *game) gap(ticks int) {
	if err := g.r.Gap(g.e.next()+format.Tick(ticks)-1, "lost"); err != nil {
		g.t.Fatal(err)
	}
	g.gaps++
	g.e.ticks = append(g.e.ticks, slices.Repeat([]expectedTick{{missing: true}}, ticks)...)
}

// A tick that the tail has no room for is given to the spooler at once; while
// the spooler is busy, as soon as it is done.
func TestTailOverflow(t *testing.T) {
	g := newGame(t, 1, 0)
	g.large(minHalf)
	if !g.r.tail.fits(minHalf-recordHead) || len(g.r.toSpool) == 0 {
		t.Fatal("a large tick was not cut")
	}
	g.e.play(t, g.r, 10)
	if next, _ := g.die().resume(t, &g.e, 10); next != 10 {
		t.Errorf("resumed at tick %d behind a tick that is nowhere", next)
	}
	g.r.writeSpool()
	if next, _ := g.die().resume(t, &g.e, 10); next != g.e.next() {
		t.Errorf("resumed at tick %d, recorded up to %d", next, g.e.next())
	}

	for !g.r.tail.missed { // the spooler does not come to write
		g.e.play(t, g.r, 10)
	}
	g.r.writeSpool()
	if g.r.tail.missed || len(g.r.toSpool) == 0 {
		t.Fatal("the spooler did not cut what waited for it")
	}
	g.r.writeSpool()
	g.e.play(t, g.r, 10)
	if next, _ := g.die().resume(t, &g.e, 10); next != g.e.next() {
		t.Errorf("resumed at tick %d, recorded up to %d", next, g.e.next())
	}
}

// A half is overwritten once the spool file has every chunk with its records,
// not before.
func TestTailTurns(t *testing.T) {
	tl, err := createTail(filepath.Join(t.TempDir(), "x.tail"), "x", [KeySize]byte{}, minHalf)
	if err != nil {
		t.Fatal(err)
	}
	defer tl.release()
	put := func() { tl.put(&tailRecord{kind: recordTick}, nil, nil) }
	tl.turn(1)
	if tl.now != 0 {
		t.Error("a cut turned from a half without records")
	}
	for _, step := range []struct {
		cut, spooled uint64 // 0 for neither
		now          int
	}{{cut: 5, now: 1}, {cut: 7, now: 1}, {spooled: 4, now: 1}, {cut: 9, now: 1}, {spooled: 5, now: 1}, {cut: 10, now: 0}, {spooled: 9, now: 0},
		{cut: 11, now: 0}, {spooled: 11, now: 0}, {cut: 12, now: 1}} {
		put()
		if step.cut > 0 {
			tl.turn(step.cut)
		} else {
			tl.settle(step.spooled)
		}
		if tl.now != step.now {
			t.Fatalf("%+v: half %d", step, tl.now)
		}
	}
}

// Records that a half held before it was overwritten are not read again,
// though they stand whole behind the newest.
func TestStaleRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.tail")
	tl, err := createTail(path, "x", [KeySize]byte{}, minHalf)
	if err != nil {
		t.Fatal(err)
	}
	defer tl.release()
	for _, records := range []int{5, 3, 2} {
		for range records {
			tl.put(&tailRecord{kind: recordTick, tick: format.Tick(tl.seq)}, []byte("same size"), nil)
		}
		if records > 2 {
			tl.turn(1)
			tl.settle(1)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	records, _ := parseTail(b, "x", [KeySize]byte{})
	for _, r := range records {
		got = append(got, r.seq)
	}
	if want := []uint64{5, 6, 7, 8, 9}; !slices.Equal(got, want) {
		t.Errorf("records %v, expected %v", got, want)
	}
}

// A tail that was cut at any byte, or has any bit flipped, holds records as
// they were made or none.
func TestDamagedTail(t *testing.T) {
	g := newGame(t, 1, 0)
	for range 5 {
		g.round(6)
	}
	g.e.play(t, g.r, 9)
	g.e.hash(t, g.r, g.e.next()-4)
	whole := g.die().files[tailSuffix]
	records := func(b []byte) []tailRecord {
		records, _ := parseTail(b, g.r.id, g.r.key)
		return records
	}
	made := map[uint64]string{}
	for _, r := range records(whole) {
		made[r.seq] = fmt.Sprint(r)
	}
	if len(made) < 15 {
		t.Fatalf("%d records: the test proves nothing", len(made))
	}
	damaged := func(what string, b []byte) {
		last := uint64(0)
		for i, r := range records(b) {
			if i > 0 && r.seq <= last {
				t.Fatalf("%s: record %d follows record %d: it is stale", what, r.seq, last)
			}
			last = r.seq
			if made[r.seq] != fmt.Sprint(r) {
				t.Fatalf("%s: record %d is %v", what, i, r)
			}
		}
	}
	damaged("whole", whole)
	const used = 1 << 10
	half := tailHead + minHalf
	for i := range whole {
		if i >= used && i < half || i >= half+used {
			continue
		}
		damaged(fmt.Sprintf("cut at %d", i), whole[:i])
		for bit := range 8 {
			whole[i] ^= 1 << bit
			damaged(fmt.Sprintf("bit %d of byte %d flipped", bit, i), whole)
			whole[i] ^= 1 << bit
		}
	}
}

// Whatever an old, torn or mixed tail stands beside a spool file, no tick is
// wrong, none comes twice, and what the spool file has stays.
func TestStaleTail(t *testing.T) {
	g := newGame(t, 1, 0)
	var left []leavings
	for i := range 9 {
		g.round(4 + i%3)
		g.e.play(t, g.r, 2)
		if i%2 == 0 {
			g.e.hash(t, g.r, g.e.next()-1)
		}
		left = append(left, g.die())
	}
	for i, spool := range left {
		f, err := openBytes(spool.files[spoolSuffix])
		if err != nil {
			t.Fatal(err)
		}
		for j, tail := range left {
			mixed := leavings{files: map[string][]byte{spoolSuffix: spool.files[spoolSuffix], producerSuffix: spool.files[producerSuffix],
				tailSuffix: tail.files[tailSuffix]}}
			unhashed := f.Summary().NextTick - 2
			next, told := mixed.resume(t, &g.e, unhashed)
			if next < f.Summary().NextTick || i == j && next != spool.next || len(told) > 0 {
				t.Fatalf("spool %d with tail %d: resumed at tick %d, the spool goes to %d; told %v", i, j, next, f.Summary().NextTick, told)
			}
			half := tailHead + minHalf
			mixed.files[tailSuffix] = slices.Concat(tail.files[tailSuffix][:half], spool.files[tailSuffix][half:])
			if next, _ := mixed.resume(t, &g.e, unhashed); next < f.Summary().NextTick {
				t.Fatalf("spool %d with half of tail %d: resumed at tick %d", i, j, next)
			}
		}
	}
}

// What a death in Resume leaves, a producer file half written, does not
// matter, and is removed with the rest.
func TestHalfWrittenProducer(t *testing.T) {
	g := newGame(t, 1, 0)
	g.e.play(t, g.r, 3)
	l := g.die()
	l.files[producerSuffix+newSuffix] = []byte("{")
	dir := t.TempDir()
	for suffix, b := range l.files {
		if err := os.WriteFile(filepath.Join(dir, "match-1"+suffix), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := newClient(&addresses{list: []string{"a:1"}}, ClientConfig{Spool: dir})
	r, err := c.Resume("match-1")
	if err != nil || r.NextTick() != 13 {
		t.Fatalf("resumed at tick %d, %v", r.NextTick(), err)
	}
	r.abandon(true)
	c.writeSpools()
	if left, err := os.ReadDir(dir); len(left) != 0 || err != nil {
		t.Errorf("the spool still has %v, %v", left, err)
	}
}

// The tail of another session, even one of the same name, is not taken, and
// that is said.
func TestForeignTail(t *testing.T) {
	g := newGame(t, 1, 0)
	g.round(5)
	g.e.play(t, g.r, 3)
	l, at := g.die(), g.e.next()-3
	other := newGame(t, 2, 0)
	other.e.play(t, other.r, 30)
	renamed := bytes.Replace(l.files[tailSuffix], []byte("match-1"), []byte("match-2"), 1)
	for what, b := range map[string][]byte{"same name": other.die().files[tailSuffix], "renamed": renamed, "text": []byte(strings.Repeat("no tail ", 50))} {
		l.files[tailSuffix] = b
		next, told := l.resume(t, &g.e, format.MaxTick)
		if next != at || len(told) != 1 || !errors.Is(told[0], format.ErrCorrupt) {
			t.Errorf("%s: resumed at tick %d, expected %d; told %v", what, next, at, told)
		}
	}
	delete(l.files, tailSuffix)
	if next, told := l.resume(t, &g.e, format.MaxTick); next != at || len(told) != 0 {
		t.Errorf("no tail: resumed at tick %d, told %v", next, told)
	}
}

// Records whose areas do not fit each other are not taken, though their
// checksum is right.
func TestTailRecordAreas(t *testing.T) {
	good := tailRecord{steps: 2, body: []byte{1, 0, 7, 0, 0, 8}}
	params, err := format.AppendParam(nil, format.Int(5))
	if err != nil {
		t.Fatal(err)
	}
	good.body = append(good.body, params...)
	if tick, ok := good.ofTick(format.Width16); !ok || !slices.Equal(tick.Params, params) {
		t.Fatalf("a good record gives %v, %v", tick, ok)
	}
	for what, bad := range map[string]tailRecord{
		"steps beyond the body":  {steps: 9, body: good.body},
		"too many steps":         {steps: format.MaxRowBytes, body: good.body},
		"a parameter is missing": {steps: 2, body: good.body[:6]},
		"a parameter too much":   {steps: 2, body: append(slices.Clone(good.body), params...)},
	} {
		if _, ok := bad.ofTick(format.Width16); ok {
			t.Errorf("%s: taken", what)
		}
	}
}

// Once the spool is broken the daemon may have what the spool has not: the
// tail gives nothing any more.
func TestBrokenSpoolVoidsTail(t *testing.T) {
	g := newGame(t, 1, 0)
	g.round(5)
	at := g.e.next()
	g.r.spool.limit = 1
	g.e.play(t, g.r, 3)
	g.r.Flush()
	g.r.writeSpool()
	g.e.play(t, g.r, 3)
	if next, told := g.die().resume(t, &g.e, format.MaxTick); next != at || len(told) != 0 {
		t.Errorf("resumed at tick %d, expected %d; told %v", next, at, told)
	}
}

// A folder that takes no tail takes a spool: that the tail is missing is
// said.
func TestNoTail(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "match-1.tail", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := newClient(&addresses{list: []string{"a:1"}}, ClientConfig{Spool: dir})
	r, err := c.Open(spec("match-1"))
	if err != nil {
		t.Fatal(err)
	}
	e := expected{first: 10}
	e.play(t, r, 10)
	r.Flush()
	r.writeSpool()
	if c.complaints.len() != 1 || r.tail != nil || r.spool.end == 0 {
		t.Errorf("%d complaints", c.complaints.len())
	}
	r.abandon(false)
	c.writeSpools()
}

// What the tail has beside ticks is in the spool file after Resume, though
// nothing more is recorded.
func TestTailHasNotes(t *testing.T) {
	g := newGame(t, 1, 0)
	g.round(5)
	g.e.play(t, g.r, 2)
	if err := errors.Join(g.r.Mark(format.Mark{Tick: 12, Kind: "kill"}), g.r.Join(format.Player{ID: 7}),
		g.r.Report(format.Report{At: 12, Of: 11, Peer: 1, Hash: []byte{1}})); err != nil {
		t.Fatal(err)
	}
	c, r, f := g.die().open(t)
	defer f.Close()
	reports := 0
	if err := f.Reports(func(format.Report) error { reports++; return nil }); err != nil {
		t.Fatal(err)
	}
	if s := f.Summary(); len(s.Marks) != 1 || len(s.Roster()) != 1 || reports != 1 {
		t.Errorf("%d marks, %d players, %d reports", len(s.Marks), len(s.Roster()), reports)
	}
	r.abandon(false)
	c.writeSpools()
}
