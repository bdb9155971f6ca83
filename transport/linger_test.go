package transport

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

// departures are the chunks that came to the daemon.
type departures struct {
	mu    sync.Mutex
	types []format.ChunkType
	sizes []int              // ticks of each chunk that has some
	other func(format.Chunk) // takes those without ticks
	ended map[format.Tick]time.Time
	waits []time.Duration // of the first tick of each of them
}

// longest is the longest wait of a tick, not counting the chunks from the one
// to the other end.
func (d *departures) longest(from, end int) time.Duration {
	return slices.Max(d.waits[from : len(d.waits)-end])
}

func (d *departures) take(_ string, c format.Chunk) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.types = append(d.types, c.Type)
	if c.Type != format.ChunkTicks {
		if d.other != nil {
			d.other(c)
		}
		return nil
	}
	b, err := format.ParseBatch(c.Body, 4)
	if err != nil {
		return err
	}
	d.sizes = append(d.sizes, b.Ticks)
	d.waits = append(d.waits, time.Since(d.ended[b.First]))
	return nil
}

func (d *departures) count(typ format.ChunkType) (n int) {
	for _, t := range d.types {
		if t == typ {
			n++
		}
	}
	return n
}

// depart plays a session in virtual time against a daemon that notes what
// comes.
func depart(t *testing.T, hashBytes int, play func(*departures, *Recording)) *departures {
	t.Helper()
	d := &departures{ended: map[format.Tick]time.Time{}}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.onAppend = d.take
		c := w.connect()
		s := spec("match-1")
		s.Meta.HashBytes = hashBytes
		r, err := c.Open(s)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(time.Second)
		play(d, r)
		time.Sleep(time.Second)
		if n := r.Durable(); n != r.NextTick() {
			t.Errorf("durable up to %d of %d a second after the end", n, r.NextTick())
		}
		w.close(c)
	})
	return d
}

// tick ends a tick and sleeps for a while.
func (d *departures) tick(r *Recording, gap time.Duration) {
	r.Step(1, format.Int(int64(r.NextTick())))
	d.mu.Lock()
	d.ended[r.NextTick()] = time.Now()
	d.mu.Unlock()
	r.EndTick()
	time.Sleep(gap)
}

// onWay is what a chunk may take from its cut to the daemon.
const onWay = 3 * time.Millisecond

// A game of a steady rate has the same number of ticks in every chunk, and
// the last of them leaves at once: the first waits for just the ticks that
// come within the linger, and an eighth more.
func TestSteadyChunks(t *testing.T) {
	for _, c := range []struct {
		rate   int
		jitter time.Duration
		ticks  int
		wait   time.Duration // of the first tick of a chunk
	}{
		{rate: 20, ticks: 3, wait: 100 * time.Millisecond},
		{rate: 30, ticks: 4, wait: 100 * time.Millisecond},
		{rate: 60, ticks: 7, wait: 100 * time.Millisecond},
		{rate: 25, ticks: 3, wait: 80 * time.Millisecond},
		{rate: 10, ticks: 2, wait: 100 * time.Millisecond},
		{rate: 8, ticks: 1},
		{rate: 1, ticks: 1},
		{rate: 20, jitter: 3 * time.Millisecond, ticks: 3, wait: 106 * time.Millisecond},
		{rate: 30, jitter: 3 * time.Millisecond, ticks: 4, wait: 106 * time.Millisecond},
		{rate: 8, jitter: 3 * time.Millisecond, ticks: 1},
	} {
		t.Run(fmt.Sprintf("%dHz±%v", c.rate, c.jitter), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(c.rate), 1))
			d := depart(t, 0, func(d *departures, r *Recording) {
				start := time.Now()
				for i := range 300 {
					late := c.jitter - time.Duration(rnd.Int64N(2*int64(c.jitter)+1))
					time.Sleep(time.Until(start.Add(c.jitter + time.Duration(i)*time.Second/time.Duration(c.rate) + late)))
					if i == 4*c.ticks {
						d.mu.Lock()
						d.sizes, d.waits = nil, nil // the rate is known by now
						d.mu.Unlock()
					}
					d.tick(r, 0)
				}
			})
			if len(d.sizes) < 300/c.ticks-6 {
				t.Errorf("%d chunks", len(d.sizes))
			}
			for i, n := range d.sizes[1 : len(d.sizes)-1] {
				if n != c.ticks {
					t.Errorf("chunk %d has %d ticks, expected %d: %v", i+1, n, c.ticks, d.sizes)
					break
				}
			}
			// The last chunk is not full.
			if n := d.longest(1, 1); n > c.wait+onWay || n < c.wait*9/10 {
				t.Errorf("a tick waited %v, expected %v", n, c.wait)
			}
		})
	}
}

// What comes as it likes is kept no longer than the linger and an eighth of
// it, in no more chunks than a timer of the linger would cut, or few more.
func TestUnsteadyChunks(t *testing.T) {
	const longest = 112500*time.Microsecond + onWay
	play := func(gaps ...time.Duration) func(*departures, *Recording) {
		return func(d *departures, r *Recording) {
			for _, gap := range gaps {
				d.tick(r, gap)
			}
		}
	}
	steady := slices.Repeat([]time.Duration{50 * time.Millisecond}, 30)
	burst := make([]time.Duration, 40)
	slow := rand.New(rand.NewPCG(2, 3))
	var turns []time.Duration
	for range 100 {
		turns = append(turns, time.Second+time.Duration(slow.Int64N(int64(7*time.Second))))
	}
	for _, c := range []struct {
		name    string
		gaps    []time.Duration
		most    int // chunks
		longest time.Duration
	}{
		{"pause", slices.Concat(steady, []time.Duration{5 * time.Second}, steady), 23, longest},
		{"a burst after a pause", slices.Concat(steady, []time.Duration{5 * time.Second}, burst, steady), 24, longest},
		{"bunches", slices.Repeat([]time.Duration{0, 0, 0, 0, 250 * time.Millisecond}, 20), 21, longest},
		{"rare bunches", slices.Repeat([]time.Duration{0, 0, 0, 0, time.Second}, 20), 21, longest},
		{"pairs", slices.Repeat([]time.Duration{0, 50 * time.Millisecond}, 60), 22, longest},
		{"one tick", []time.Duration{0}, 1, 100*time.Millisecond + grain(100*time.Millisecond) + onWay},
		{"flat out", make([]time.Duration, 20_000), 20_000*7/(16<<10) + 1, longest},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := depart(t, 0, play(c.gaps...))
			if len(d.sizes) > c.most {
				t.Errorf("%d chunks, expected at most %d: %v", len(d.sizes), c.most, d.sizes)
			}
			if n := d.longest(0, 0); n > c.longest {
				t.Errorf("a tick waited %v, the most is %v", n, c.longest)
			}
		})
	}
	t.Run("turns", func(t *testing.T) {
		d := depart(t, 0, play(turns...))
		if n := d.longest(2, 0); n > onWay || len(d.sizes) != len(turns) {
			t.Errorf("a turn waited %v though none follows soon; %d chunks", n, len(d.sizes))
		}
	})
}

// A game of 20 Hz that slows down to a turn a second is followed within a few
// turns.
func TestSlowerGame(t *testing.T) {
	d := depart(t, 0, func(d *departures, r *Recording) {
		for range 20 {
			d.tick(r, 50*time.Millisecond)
		}
		for range 5 {
			d.tick(r, time.Second)
		}
		for range 20 {
			d.tick(r, time.Second)
		}
	})
	if n := d.longest(len(d.waits)-20, 0); n > onWay {
		t.Errorf("a turn waited %v", n)
	}
}

// A hash that follows its tick goes in the tick's chunk, however long the
// simulation takes that it follows.
func TestHashesInChunks(t *testing.T) {
	for _, c := range []struct {
		name  string
		every int
		after time.Duration
		wait  time.Duration
	}{
		{"at once", 1, 0, 100 * time.Millisecond},
		{"after the simulation", 1, 9 * time.Millisecond, 109 * time.Millisecond},
		{"of every tenth tick", 10, 0, 112500 * time.Microsecond},
		{"none", 1000, 0, 112500 * time.Microsecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := depart(t, 4, func(d *departures, r *Recording) {
				for i := range 300 {
					d.tick(r, c.after)
					if i%c.every == c.every-1 {
						if err := r.Hash(r.NextTick()-1, []byte("hash")); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(50*time.Millisecond - c.after)
				}
			})
			// In the first chunk the rate is not known.
			if n := d.count(format.ChunkHashes); n > 1 {
				t.Errorf("%d chunks of hashes alone", n)
			}
			if n := len(d.sizes); n < 100 || n > 101 {
				t.Errorf("%d chunks for 300 ticks: %v", n, d.sizes)
			}
			if n := d.longest(1, 1); n > c.wait+onWay {
				t.Errorf("a tick waited %v, expected %v", n, c.wait)
			}
		})
	}
}

// Only the hash of the last tick cuts, and only the keeper that comes for the
// chunk that is open.
func TestHashLeaves(t *testing.T) {
	c := newClient(&addresses{list: []string{"a:1"}}, ClientConfig{})
	r, err := c.newRecording(&Spec{Meta: format.Metadata{Session: "x", HashBytes: 4}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.EndTick()
		c.began = c.began.Add(-50 * time.Millisecond)
	}
	for tick, cut := range []bool{1: false, 2: true} {
		if r.lapsed(r.place + 1); r.b.Ticks() != 3 {
			t.Fatal("the keeper cut a chunk that it did not come for")
		}
		if err := r.Hash(format.Tick(tick), []byte("hash")); err != nil {
			t.Fatal(err)
		}
		if left := r.b.Ticks() == 0; left != cut {
			t.Fatalf("after the hash of tick %d the chunk is cut: %v", tick, left)
		}
	}
}

// Marks wait no longer than ticks, with ticks and without.
func TestMarksWait(t *testing.T) {
	for _, ticks := range []bool{false, true} {
		var told []time.Time
		longest, n := time.Duration(0), 0
		depart(t, 0, func(d *departures, r *Recording) {
			d.mu.Lock()
			d.other = func(c format.Chunk) {
				if c.Type == format.ChunkMark {
					longest = max(longest, time.Since(told[n]))
					n++
				}
			}
			d.mu.Unlock()
			for i := range 50 {
				time.Sleep(17 * time.Millisecond)
				if ticks && i%3 == 0 {
					d.tick(r, 0)
				}
				d.mu.Lock()
				told = append(told, time.Now())
				d.mu.Unlock()
				if err := r.Mark(format.Mark{Tick: r.NextTick(), Kind: "kill"}); err != nil {
					t.Fatal(err)
				}
			}
		})
		if n != 50 || longest > 112500*time.Microsecond+onWay {
			t.Errorf("ticks %v: %d marks of 50 came, one waited %v", ticks, n, longest)
		}
	}
}

// The open chunks of a client against a model: a list that is searched.
func TestOpenChunksModel(t *testing.T) {
	type entry struct {
		r     *Recording
		place uint64
		due   time.Duration
	}
	rnd := rand.New(rand.NewPCG(8, 9))
	var o openChunks
	var model []entry
	now := time.Duration(1)
	for i := range 20_000 {
		if o.queue.len() > max(2*len(model)+1, len(model)+keepCut) {
			t.Fatalf("step %d: %d places for %d open chunks", i, o.queue.len(), len(model))
		}
		switch rnd.IntN(3) {
		case 0:
			e := entry{r: &Recording{}, due: now + 50}
			alone := true
			if e.place, alone = o.add(e.r, e.due); alone && len(model) > 0 {
				t.Fatal("the only one, while others are open")
			}
			model = append(model, e)
		case 1:
			if len(model) > 0 {
				n := rnd.IntN(len(model))
				o.drop(model[n].place)
				model = slices.Delete(model, n, n+1)
			}
		case 2:
			now += time.Duration(rnd.IntN(20))
			r, place, next := o.pop(now)
			switch {
			case len(model) == 0:
				if r != nil || next != 0 {
					t.Fatalf("step %d: %v is due, the next at %d, though none is open", i, r, next)
				}
			case model[0].due > now:
				if r != nil || next != model[0].due {
					t.Fatalf("step %d: %v is due, the next at %d, expected %d", i, r, next, model[0].due)
				}
			case r != model[0].r || place != model[0].place:
				t.Fatalf("step %d: place %d, expected %d", i, place, model[0].place)
			default:
				o.drop(place) // comes late, and must change nothing
				model = model[1:]
			}
		}
	}
}

// A chunk that is cut goes to the connection in the same call where it may,
// and otherwise waits for the sender.
func TestSendNow(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*link, *Recording)
		sent   bool
	}{
		"may go":     {func(*link, *Recording) {}, true},
		"enough":     {func(l *link, _ *Recording) { l.out = make([]byte, writeSize) }, false},
		"leaving":    {func(l *link, _ *Recording) { l.leaving = true }, false},
		"a stall":    {func(_ *link, r *Recording) { r.stalled = true }, false},
		"no window":  {func(_ *link, r *Recording) { r.q.flying, r.q.window = 1, 1 }, false},
		"not opened": {func(_ *link, r *Recording) { r.live = false }, false},
		"one before": {func(_ *link, r *Recording) {
			r.q.push(&chunk{data: []byte("x"), size: 1})
		}, false},
	} {
		cl := newClient(&addresses{list: []string{"a:1"}}, ClientConfig{})
		r, err := cl.newRecording(&Spec{Meta: format.Metadata{Session: "x"}})
		if err != nil {
			t.Fatal(err)
		}
		l := &link{client: cl}
		cl.link = l
		r.link, r.live, r.alias, r.q.window = l, true, 1, 1<<20
		c.change(l, r)
		before := len(l.out)
		r.Step(1)
		r.EndTick()
		r.Flush()
		if sent := len(l.out) > before && r.q.unsent() == nil; sent != c.sent {
			t.Errorf("%s: sent %v", name, sent)
		}
		if waits := cl.sendable.len() == 1; waits != (!c.sent && name != "not opened") {
			t.Errorf("%s: waits for the sender: %v", name, waits)
		}
	}
}

// A chunk of a few ticks costs one piece of memory, until it is durable.
func TestChunkAllocates(t *testing.T) {
	c := newClient(&addresses{list: []string{"a:1"}}, ClientConfig{})
	r, err := c.newRecording(&Spec{Meta: format.Metadata{Session: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	l := &link{client: c, sessions: []*Recording{r}}
	c.link = l
	r.link, r.live, r.alias, r.q.window = l, true, 1, 1<<20
	acks := []ack{{alias: 1}}
	round := func() {
		for range 3 {
			r.Step(1, format.Int(1), format.Int(70000))
			r.EndTick()
		}
		r.Flush()
		acks[0].received++
		acks[0].durable++
		if err := l.acked(acks); err != nil {
			t.Fatal(err)
		}
		l.out = l.out[:0]
	}
	for range 100 {
		round()
	}
	// One more for a body: the race detector's pools forget some of them.
	if n := testing.AllocsPerRun(1000, round); n > 2 {
		t.Errorf("%v allocations for a chunk", n)
	}
	if m := c.memory.Load(); m != 0 || r.memory != 0 {
		t.Errorf("%d bytes are still held, %d by the session", m, r.memory)
	}
}

// TestManyCutBehindAnOpenOne: those that were cut make room, though the first one
// stays open.
func TestManyCutBehindAnOpenOne(t *testing.T) {
	var o openChunks
	first := &Recording{}
	place, _ := o.add(first, 1_000_000)
	for range 100_000 {
		p, _ := o.add(&Recording{}, 2_000_000)
		o.drop(p)
		o.drop(p) // again, and for nothing
	}
	if n := o.queue.len(); n > 2*keepCut {
		t.Errorf("%d places for one open chunk", n)
	}
	if r, at, _ := o.pop(1_000_000); r != first || at != place {
		t.Errorf("place %d is due, want %d", at, place)
	}
}

// TestLingers: the shortest cuts at once, the longest never.
func TestLingers(t *testing.T) {
	for linger, want := range map[time.Duration]format.Tick{1: 600, 31: 600, time.Microsecond: 600, 24 * time.Hour: 0, math.MaxInt64 / 2: 0, math.MaxInt64: 0} {
		t.Run(linger.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.cfg.ChunkLinger = linger
				c := w.connect()
				s := spec("match-1")
				s.Meta.HashBytes = 0
				r, err := c.Open(s)
				if err != nil {
					t.Fatal(err)
				}
				for range 600 {
					if err := r.EndTick(); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second / 60)
				}
				if got := r.Durable() - s.Meta.FirstTick; got != want {
					t.Errorf("%d ticks are durable, want %d", got, want)
				}
				w.close(c)
			})
		})
	}
}
