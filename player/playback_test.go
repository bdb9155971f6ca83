package player

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reprise/format"
)

// match is a recorded match of the mixer and the state before every tick, from
// playing it once.
type match struct {
	file   *format.File
	states map[format.Tick][]byte
	first  format.Tick
	next   format.Tick
}

// matchPlan says what a match holds beside its ticks.
type matchPlan struct {
	ticks, hashEvery int
	frames           []format.Tick
	gaps             []format.Gap
	// spoil changes the bytes of a keyframe.
	spoil map[format.Tick]bool
}

const matchFirst = 100

func recordMatch(t *testing.T, plan matchPlan) *match {
	t.Helper()
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	meta := mixerMeta()
	meta.FirstTick, meta.Width = matchFirst, format.Width16
	out := new(format.Buffer)
	w, err := format.NewWriter(out, meta, nil)
	try(err)
	m := &match{states: map[format.Tick][]byte{}, first: matchFirst, next: matchFirst + format.Tick(plan.ticks)}
	game := &mixer{}
	try(game.Reset(Start{Meta: meta}))
	rng := rand.New(rand.NewPCG(3, uint64(plan.ticks)))
	for tick := m.first; tick < m.next; tick++ {
		state := game.Save(nil)
		m.states[tick] = state
		if slices.Contains(plan.frames, tick) {
			if plan.spoil[tick] {
				state = bytes.Clone(state)
				state[0] ^= 1
			}
			try(w.Keyframe(format.Keyframe{NextTick: tick, State: state}))
		}
		missing := slices.ContainsFunc(plan.gaps, func(g format.Gap) bool { return g.First <= tick && tick <= g.Last })
		if i := slices.IndexFunc(plan.gaps, func(g format.Gap) bool { return g.First == tick }); i >= 0 {
			try(w.Gap(plan.gaps[i]))
		}
		for range rng.IntN(3) {
			code, param := uint16(1+rng.IntN(5)), format.Int(rng.Int64N(1000))
			if !missing {
				try(w.Step(code, param))
			}
			game.Step(tick, stepOf(code, param))
		}
		game.EndTick(tick)
		if missing {
			continue
		}
		try(w.EndTick())
		if plan.hashEvery > 0 && int(tick)%plan.hashEvery == 0 {
			try(w.Hash(tick, game.Hash(nil)))
		}
	}
	m.states[m.next] = game.Save(nil)
	try(w.Finish(format.EndSealed, ""))
	m.file = openBytes(t, out.Bytes())
	return m
}

// bare hides all but the simulation itself.
type bare struct{ Simulation }

// wantAt wants the playback's game to be in the state before tick.
func (m *match) wantAt(t *testing.T, game *mixer, p *Playback, tick format.Tick) {
	t.Helper()
	if got := game.Save(nil); !bytes.Equal(got, m.states[tick]) || p.Position() != tick {
		t.Fatalf("at %d: state %x, position %d; want %x, %d", tick, got, p.Position(), m.states[tick], tick)
	}
}

// TestPlaybackSeeksToEveryTick moves to random ticks and by single ticks, over
// every kind of simulation, and compares with playing from the start.
func TestPlaybackSeeksToEveryTick(t *testing.T) {
	plan := matchPlan{ticks: 400, hashEvery: 7, frames: []format.Tick{100, 180, 181, 333, 420},
		gaps: []format.Gap{{First: 250, Last: 332, Reason: "spool full"}}}
	whole := recordMatch(t, matchPlan{ticks: 300, hashEvery: 1})
	gapped := recordMatch(t, plan)
	plan.gaps = []format.Gap{{First: 250, Last: 299, Reason: "spool full"}, {First: 300, Last: 332, ByRecorder: true}}
	touching := recordMatch(t, plan)
	sims := map[string]func(g *mixer) Simulation{
		"local":             func(g *mixer) Simulation { return NewLocal(g) },
		"without keyframes": func(g *mixer) Simulation { return bare{NewLocal(g)} },
		"late answers":      func(g *mixer) Simulation { return &slow{Local: NewLocal(g), lag: 5} },
	}
	for name, sim := range sims {
		for _, m := range []*match{whole, gapped, touching} {
			t.Run(name, func(t *testing.T) {
				game := &mixer{}
				p := NewPlayback(m.file, sim(game), PlaybackOptions{Spacing: 16})
				rng := rand.New(rand.NewPCG(1, 1))
				for range 400 {
					m.move(t, rng, game, p)
				}
				if r := p.Report(); r.Desync != nil || r.HashesCompared == 0 || len(p.BadKeyframes()) > 0 {
					t.Errorf("report is %+v, bad keyframes %v", r, p.BadKeyframes())
				}
			})
		}
	}
}

// move makes one random move.
func (m *match) move(t *testing.T, rng *rand.Rand, game *mixer, p *Playback) {
	t.Helper()
	ctx := context.Background()
	s := m.file.Summary()
	framed := func(tick format.Tick) bool {
		return slices.ContainsFunc(s.Keyframes, func(k format.KeyframeInfo) bool { return k.NextTick == tick })
	}
	switch rng.IntN(3) {
	case 0:
		to := m.first + format.Tick(rng.IntN(int(m.next-m.first)+1))
		err := p.Seek(ctx, to)
		missing := slices.IndexFunc(s.Gaps, func(g format.Gap) bool { return g.First < to && to <= g.Last+1 })
		if missing >= 0 && !framed(to) { // nothing leads to the state
			wantGap(t, err, s.Gaps[missing].First, s.Gaps[missing].Last, true, false)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		m.wantAt(t, game, p, to)
	case 1:
		tick, err := p.Step(ctx)
		if err == io.EOF && tick == m.next {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		m.wantAt(t, game, p, tick+1)
	case 2:
		if err := p.Back(ctx); err != nil {
			t.Fatal(err)
		}
		if p.placed {
			m.wantAt(t, game, p, p.Position())
		}
	}
}

func TestPlaybackRefusesTicksThatAreNotThere(t *testing.T) {
	m := recordMatch(t, matchPlan{ticks: 50})
	p := NewPlayback(m.file, NewLocal(&mixer{}), PlaybackOptions{})
	for _, tick := range []format.Tick{0, 99, 151} {
		if err := p.Seek(context.Background(), tick); !errors.Is(err, ErrNoSuchTick) {
			t.Errorf("tick %d: %v", tick, err)
		}
	}
	if _, err := p.Step(context.Background()); err != nil || p.Position() != 101 {
		t.Errorf("after it the first tick gives %v, position %d", err, p.Position())
	}
}

func TestPlaybackStopsAtAGapWithoutAKeyframe(t *testing.T) {
	gap := format.Gap{First: 120, Last: 129, Reason: "spool full"}
	m := recordMatch(t, matchPlan{ticks: 80, hashEvery: 1, gaps: []format.Gap{gap}})
	game := &mixer{}
	p := NewPlayback(m.file, NewLocal(game), PlaybackOptions{})
	if err := p.Seek(context.Background(), 120); err != nil {
		t.Fatal(err)
	}
	m.wantAt(t, game, p, 120)
	for range 2 {
		_, err := p.Step(context.Background())
		wantGap(t, err, 120, 129, true, false)
	}
	if err := p.Back(context.Background()); err != nil {
		t.Fatal(err)
	}
	m.wantAt(t, game, p, 119)
}

// TestPlaybackNamesABadKeyframe: it is checked before use, with the hash of
// the tick before or, for want of it, by playing up to it from further back.
func TestPlaybackNamesABadKeyframe(t *testing.T) {
	for _, c := range []struct {
		what string
		sim  func(g *mixer) Simulation
		plan matchPlan
	}{
		{"by its own hash", func(g *mixer) Simulation { return NewLocal(g) }, matchPlan{ticks: 200, hashEvery: 1}},
		{"by the next hash", func(g *mixer) Simulation { return NewLocal(g) }, matchPlan{ticks: 200, hashEvery: 9}},
		{"without a hasher", func(g *mixer) Simulation { return bare{NewLocal(g)} }, matchPlan{ticks: 200, hashEvery: 1}},
	} {
		t.Run(c.what, func(t *testing.T) {
			c.plan.frames = []format.Tick{150, 200, 250}
			c.plan.spoil = map[format.Tick]bool{200: true}
			m := recordMatch(t, c.plan)
			game := &mixer{}
			p := NewPlayback(m.file, c.sim(game), PlaybackOptions{})
			for _, tick := range []format.Tick{230, 260, 231} {
				if err := p.Seek(context.Background(), tick); err != nil {
					t.Fatal(err)
				}
				m.wantAt(t, game, p, tick)
			}
			if r := p.Report(); r.Desync != nil {
				t.Errorf("a desync was reported: %v", r.Desync)
			}
			if bad := p.BadKeyframes(); len(bad) != 1 || bad[0].NextTick != 200 {
				t.Errorf("bad keyframes are %v", bad)
			}
		})
	}
}

// TestPlaybackDoubtsAKeyframeUntilAHash: a bad keyframe that no hash stands near
// is found out where the next one stands, in however many moves that is reached;
// neither the game is blamed, nor is a state kept that came from it.
func TestPlaybackDoubtsAKeyframeUntilAHash(t *testing.T) {
	plan := matchPlan{ticks: 200, hashEvery: 40, frames: []format.Tick{150, 205, 250}, spoil: map[format.Tick]bool{205: true}}
	moves := map[string]func(p *Playback) error{
		"by steps": func(p *Playback) error {
			for p.Position() < 245 {
				if _, err := p.Step(context.Background()); err != nil {
					return err
				}
			}
			return nil
		},
		"by two moves": func(p *Playback) error { return p.Seek(context.Background(), 245) },
		"played":       func(p *Playback) error { return p.Play(context.Background(), 245) },
		"from what's kept": func(p *Playback) error {
			return errors.Join(p.Seek(context.Background(), 110), p.Seek(context.Background(), 245))
		},
	}
	for name, move := range moves {
		t.Run(name, func(t *testing.T) {
			m := recordMatch(t, plan)
			game := &mixer{}
			p := NewPlayback(m.file, NewLocal(game), PlaybackOptions{Spacing: 8, Clock: frozen{}})
			if err := p.Seek(context.Background(), 230); err != nil { // no hash from 205 to here
				t.Fatal(err)
			}
			if err := move(p); err != nil {
				t.Fatal(err)
			}
			m.wantAt(t, game, p, 245)
			for _, tick := range []format.Tick{230, 209, 225, 249} {
				if err := p.Seek(context.Background(), tick); err != nil {
					t.Fatal(err)
				}
				m.wantAt(t, game, p, tick)
			}
			if d := p.Report().Desync; d != nil {
				t.Errorf("a desync was reported: %v", d)
			}
			if bad := p.BadKeyframes(); len(bad) != 1 || bad[0].NextTick != 205 {
				t.Errorf("bad keyframes are %v", bad)
			}
		})
	}
}

// TestPlaybackBlamesTheGameNotTheKeyframe: a desync right behind a good
// keyframe is a desync.
func TestPlaybackBlamesTheGameNotTheKeyframe(t *testing.T) {
	m := recordMatch(t, matchPlan{ticks: 200, hashEvery: 10, frames: []format.Tick{203}})
	fault := func(tick format.Tick) *mixer {
		g := &mixer{}
		g.endTick = func(at format.Tick) error {
			if at == tick {
				g.world ^= 1
			}
			return nil
		}
		return g
	}
	p := NewPlayback(m.file, NewLocal(fault(205)), PlaybackOptions{})
	if err := p.Seek(context.Background(), 230); err != nil {
		t.Fatal(err)
	}
	if d := p.Report().Desync; d == nil || d.Tick != 210 || len(p.BadKeyframes()) != 0 {
		t.Errorf("desync %v, bad keyframes %v", d, p.BadKeyframes())
	}
}

func TestPlaybackSeeksWithinATick(t *testing.T) {
	m := recordMatch(t, matchPlan{ticks: 60, hashEvery: 1})
	game := &mixer{}
	p := NewPlayback(m.file, NewLocal(game), PlaybackOptions{})
	ctx := context.Background()
	r := m.file.Reader()
	var tick format.TickRecord
	several := 0
	for r.Next(&tick) == nil {
		oracle := &mixer{}
		oracle.Reset(Start{Meta: mixerMeta()})
		oracle.world, oracle.random = worldOf(m.states[tick.Tick]), randomOf(m.states[tick.Tick])
		var steps format.StepReader
		steps.Reset(&tick)
		for n := range tick.Steps + 1 {
			if err := p.SeekStep(ctx, tick.Tick, n); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(game.Save(nil), oracle.Save(nil)) || p.Within() != n || p.Position() != tick.Tick {
				t.Fatalf("tick %d, step %d: state %x, want %x", tick.Tick, n, game.Save(nil), oracle.Save(nil))
			}
			several = max(several, n)
			var step format.Step
			if steps.Next(&step) {
				oracle.Step(tick.Tick, step)
			}
		}
		if err := p.SeekStep(ctx, tick.Tick, tick.Steps+1); !errors.Is(err, ErrNoSuchTick) {
			t.Fatalf("a step too many: %v", err)
		}
	}
	if several < 2 {
		t.Fatal("no tick has two steps")
	}
	if err := p.Back(ctx); err != nil {
		t.Fatal(err)
	}
	if p.Within() != 0 {
		t.Errorf("after Back %d steps are applied", p.Within())
	}
}

func worldOf(state []byte) uint32  { return binary.BigEndian.Uint32(state) }
func randomOf(state []byte) uint32 { return binary.BigEndian.Uint32(state[4:]) }

// TestStateStoreStaysInItsBudget puts states that share most of their pages,
// and compares what is left with what was put.
func TestStateStoreStaysInItsBudget(t *testing.T) {
	const budget = 300_000
	s := stateStore{budget: budget, spacing: 1}
	rng := rand.New(rand.NewPCG(5, 5))
	state := make([]byte, 40*statePage+100)
	put := map[format.Tick][]byte{}
	for n := range format.Tick(2000) {
		state[rng.IntN(2*statePage)]++
		if n%s.spacing == 0 {
			s.put(n, state)
			put[n] = bytes.Clone(state)
		}
		if s.used > budget {
			t.Fatalf("%d bytes are used", s.used)
		}
	}
	if len(s.kept) < 5 {
		t.Errorf("only %d states are kept", len(s.kept))
	}
	used := int64(0)
	seen := map[*keptPage]bool{}
	for i, k := range s.kept {
		if !bytes.Equal(s.state(i, nil), put[k.next]) {
			t.Errorf("the state before %d is another", k.next)
		}
		if s.before(k.next) != i || s.before(k.next+s.spacing-1) != i {
			t.Errorf("the state before %d is not found", k.next)
		}
		used += int64(8 * len(k.pages))
		for _, page := range k.pages {
			if !seen[page] {
				seen[page] = true
				used += int64(len(page.data)) + pageCost
			}
		}
	}
	if used != s.used {
		t.Errorf("%d bytes are used, counted are %d", used, s.used)
	}
	small := stateStore{budget: 1000, spacing: 1}
	small.put(5, state)
	if len(small.kept) != 0 || small.used != 0 {
		t.Errorf("a state larger than the budget is kept: %d bytes", small.used)
	}
}

func TestKeyframeErrorNamesTheTick(t *testing.T) {
	err := &KeyframeError{NextTick: 40, Err: ErrStart}
	if !strings.Contains(err.Error(), "before tick 40") || !errors.Is(err, ErrStart) {
		t.Error(err)
	}
}
