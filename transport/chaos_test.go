package transport

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

// chaos records a session under random faults and compares all that the
// daemon has in the end with what was recorded.
type chaos struct {
	*world
	rnd     *rand.Rand
	c       *Client
	r       *Recording
	e       expected
	seed    uint64
	crashes bool // the game server is killed, too

	// since is the first tick whose hash, and the number of marks and
	// keyframes from which on they may be lost to a kill of the game server:
	// they were not spooled for sure.
	maybeHash map[format.Tick]bool
	marks     []chaosNote
	keys      []chaosNote
	present   map[uint64]bool
	joins     int
	maybeJoin int
}

type chaosNote struct {
	text  string
	maybe bool
}

func TestChaos(t *testing.T) {
	t.Parallel()
	rounds := uint64(40)
	if testing.Short() {
		rounds = 10
	}
	for seed := range rounds {
		for _, crashes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d,%v", seed, crashes), func(t *testing.T) {
				dir := t.TempDir()
				synctest.Test(t, func(t *testing.T) { newChaos(t, seed, crashes, dir).run() })
			})
		}
	}
}

func newChaos(t *testing.T, seed uint64, crashes bool, dir string) *chaos {
	x := &chaos{world: newWorld(t), rnd: rand.New(rand.NewPCG(seed, 1)), seed: seed, crashes: crashes,
		e: expected{first: 10}, maybeHash: map[format.Tick]bool{}, present: map[uint64]bool{}}
	if crashes || seed%3 == 0 {
		x.cfg.Spool = dir
	}
	x.cfg.Background = true
	x.rec.window = 1 << (8 + x.rnd.IntN(12))
	x.rec.delay = time.Duration(x.rnd.IntN(300)) * time.Millisecond
	x.cfg.ChunkBytes = 1 << (6 + x.rnd.IntN(9))
	return x
}

func (x *chaos) run() {
	x.c = x.connect()
	s := spec("match-1")
	s.Players = []format.PlayerEvent{{Tick: 10, ID: 100, Name: "host"}}
	s.Times = x.seed%2 == 0
	r, err := x.c.Open(s)
	if err != nil {
		x.t.Fatal(err)
	}
	x.r = r
	x.joins = 1
	for range 60 {
		x.act()
	}
	x.finish()
}

func (x *chaos) act() {
	switch n := x.rnd.IntN(20); {
	case n < 7:
		x.e.play(x.t, x.r, x.rnd.IntN(200))
	case n < 9:
		x.hashSome()
	case n == 9:
		x.mark()
	case n == 10:
		x.keyframe()
	case n == 11:
		x.joinOrLeave()
	case n == 12:
		x.gap()
	case n == 13:
		x.cut()
	case n == 14:
		if p := x.newest(); p != nil {
			p.freeze()
		}
	case n == 15:
		x.kill()
		time.Sleep(time.Duration(x.rnd.IntN(5000)) * time.Millisecond)
		x.startDaemon(Config{})
	case n == 16 && x.crashes:
		x.killGame()
	case n == 17:
		x.drainDaemon()
	default:
		time.Sleep(time.Duration(x.rnd.IntN(500)) * time.Millisecond)
	}
}

func (x *chaos) hashSome() {
	next := x.e.next()
	for range 20 {
		tick := next - format.Tick(x.rnd.IntN(300)) - 1
		if tick < x.e.first || tick >= next || x.e.at(tick).missing || x.e.at(tick).hash != "" || x.maybeHash[tick] {
			continue
		}
		x.e.hash(x.t, x.r, tick)
	}
}

func (x *chaos) mark() {
	m := format.Mark{Tick: x.e.next(), Kind: "kill", Text: fmt.Sprint(len(x.marks))}
	if err := x.r.Mark(m); err != nil {
		x.t.Fatal(err)
	}
	x.marks = append(x.marks, chaosNote{text: m.Text})
}

func (x *chaos) keyframe() {
	state := bytes.Repeat([]byte{byte(len(x.keys))}, x.rnd.IntN(100_000))
	next := x.e.next()
	for _, k := range x.keys {
		if k.text == keyText(next, nil) || k.text[:8] == keyText(next, nil)[:8] {
			return // a second one before the same tick is not kept
		}
	}
	if err := x.r.Keyframe(next, state); err != nil {
		if errors.Is(err, format.ErrLimit) && x.crashes {
			return // too many halves of earlier starts
		}
		x.t.Fatal(err)
	}
	x.keys = append(x.keys, chaosNote{text: keyText(next, state)})
}

func keyText(next format.Tick, state []byte) string { return fmt.Sprintf("%08d %x", next, state) }

func (x *chaos) joinOrLeave() {
	id := uint64(x.rnd.IntN(4))
	var err error
	if x.present[id] {
		err = x.r.Leave(id)
	} else {
		err = x.r.Join(format.Player{ID: id, Name: "x"})
	}
	if err != nil {
		x.t.Fatal(err)
	}
	x.present[id] = !x.present[id]
	x.joins++
	x.maybeJoin++
}

func (x *chaos) gap() {
	n := format.Tick(x.rnd.IntN(50) + 1)
	if err := x.r.Gap(x.e.next()+n-1, "the game paused"); err != nil {
		x.t.Fatal(err)
	}
	for range n {
		x.e.ticks = append(x.e.ticks, expectedTick{missing: true})
	}
}

func (x *chaos) drainDaemon() {
	x.mu.Lock()
	old := x.server
	x.down = errors.New("connection refused")
	x.mu.Unlock()
	old.Shutdown(within(x.t, 5*time.Second))
	x.cut()
	synctest.Wait()
	x.startDaemon(Config{})
}

// killGame ends the client as kill -9 does, at any moment, and resumes from
// the spool: what was neither spooled nor had room in the tail is gone.
func (x *chaos) killGame() {
	spooled := x.rnd.IntN(2) == 0
	if spooled {
		time.Sleep(150 * time.Millisecond) // longer than the linger
		synctest.Wait()
	}
	x.c.mu.Lock()
	x.c.spools, x.c.retired = fifo[*Recording]{}, fifo[retired]{}
	x.c.mu.Unlock()
	x.c.stop()
	x.c.workers.Wait()
	x.cut()
	synctest.Wait()
	x.r.spool.f.Close()

	x.c = x.connect()
	r, err := x.c.Resume("match-1")
	if err != nil {
		x.t.Fatal(err)
	}
	x.r = r
	next := r.NextTick()
	if next > x.e.next() || spooled && next != x.e.next() {
		x.t.Fatalf("resumed at tick %d, recorded up to %d", next, x.e.next())
	}
	for tick := range x.maybeHash {
		if tick >= next {
			delete(x.maybeHash, tick)
		}
	}
	for i := range x.e.ticks {
		if tick := x.e.first + format.Tick(i); x.e.ticks[i].hash != "" && !spooled && tick < next {
			x.maybeHash[tick] = true
		}
	}
	x.e.ticks = x.e.ticks[:next-x.e.first]
	if !spooled {
		for i := range x.marks {
			x.marks[i].maybe = true
		}
	}
	for i := range x.keys {
		x.keys[i].maybe = true
	}
	x.present = map[uint64]bool{}
	for id, here := range r.notes.present {
		x.present[id] = here
	}
}

func (x *chaos) finish() {
	if err := x.r.Seal(within(x.t, 5*time.Minute)); err != nil {
		x.t.Fatalf("%v; reported %v", err, x.reported())
	}
	f, err := x.rec.stored("match-1")
	if err != nil {
		x.t.Fatal(err)
	}
	x.settleMaybes(f)
	x.e.compare(x.t, f)
	if _, err := f.Check(); err != nil {
		x.t.Fatal(err)
	}
	x.compareMarks(f.Summary())
	x.compareKeyframes(f)
	if !x.crashes && len(f.Summary().Players) != x.joins {
		x.t.Errorf("%d joins and leaves are stored, %d were recorded", len(f.Summary().Players), x.joins)
	}
	if n := x.r.Stats().MissedTicks; n != 0 {
		x.t.Errorf("%d ticks were left out", n)
	}
	if err := x.c.Close(within(x.t, time.Minute)); err != nil {
		x.t.Error(err)
	}
	if m := x.c.Stats().Memory; m != 0 {
		x.t.Errorf("%d bytes are still held", m)
	}
	if ids, err := spooled(x.cfg.Spool); x.cfg.Spool != "" && (len(ids) != 0 || err != nil) {
		x.t.Errorf("the spool still has %v, %v", ids, err)
	}
}

// settleMaybes takes a hash that a kill may have lost as it is stored: there
// or not, but never another.
func (x *chaos) settleMaybes(f *format.File) {
	r := f.Reader()
	var rec format.TickRecord
	for r.Next(&rec) == nil {
		if x.maybeHash[rec.Tick] && rec.Tick < x.e.next() && rec.Hash == nil {
			x.e.at(rec.Tick).hash = ""
		}
	}
}

func (x *chaos) compareMarks(s *format.Summary) {
	stored := map[string]int{}
	for _, m := range s.Marks {
		stored[m.Text]++
	}
	for _, m := range x.marks {
		if n := stored[m.text]; n > 1 || n == 0 && !m.maybe {
			x.t.Errorf("mark %s is stored %d times", m.text, n)
		}
	}
}

func (x *chaos) compareKeyframes(f *format.File) {
	stored := map[string]bool{}
	for i := range f.Summary().Keyframes {
		k, err := f.Keyframe(i)
		if err != nil {
			x.t.Fatal(err)
		}
		stored[keyText(k.NextTick, k.State)] = true
	}
	for _, k := range x.keys {
		if !stored[k.text] && !k.maybe {
			x.t.Errorf("the keyframe before tick %s is not stored", k.text[:8])
		}
	}
}
