package player

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"reprise/format"
)

// segmentPlan is a random match and a game that may go wrong in it.
type segmentPlan struct {
	matchPlan
	seed        uint64
	fault, fail format.Tick // 0 for none
	saves       bool        // the game can save its state
	refuses     bool        // it starts from no keyframe
	keepGoing   bool
}

func randomSegments(seed uint64) segmentPlan {
	r := rand.New(rand.NewPCG(seed, 77))
	p := segmentPlan{seed: seed, saves: r.IntN(2) == 0, refuses: r.IntN(15) == 0, keepGoing: r.IntN(2) == 0}
	p.ticks, p.hashEvery = 1+r.IntN(60), r.IntN(8)
	some := func() format.Tick { return matchFirst + format.Tick(r.IntN(p.ticks)) }
	for tick := some(); r.IntN(3) > 0 && int(tick-matchFirst) < p.ticks; {
		last := min(tick+format.Tick(r.IntN(8)), matchFirst+format.Tick(p.ticks)-1)
		p.gaps = append(p.gaps, format.Gap{First: tick, Last: last, Reason: "lost"})
		tick = last + 1 + format.Tick(r.IntN(2)*r.IntN(10))
	}
	for tick := range format.Tick(p.ticks + 1) {
		if r.IntN(8) == 0 {
			p.frames = append(p.frames, matchFirst+tick)
		}
	}
	for _, g := range p.gaps {
		if r.IntN(2) == 0 {
			p.frames = append(p.frames, g.Last+1)
		}
	}
	if r.IntN(2) == 0 {
		p.fault = some()
	}
	if r.IntN(10) == 0 {
		p.fail = some()
	}
	return p
}

func (p *segmentPlan) simulation() Simulation {
	g := &mixer{refuseState: p.refuses}
	g.endTick = func(at format.Tick) error {
		if p.fault != 0 && at == p.fault {
			g.world ^= 1
		}
		if p.fail != 0 && at == p.fail {
			return errors.New("crash")
		}
		return nil
	}
	if p.saves {
		return NewLocal(g)
	}
	return bare{NewLocal(g)}
}

// kinds names what an error says, but for a bad keyframe, which only a run in
// parts finds.
func kinds(err error) string {
	var s []string
	if d := (*DesyncError)(nil); errors.As(err, &d) {
		s = append(s, fmt.Sprintf("desync at %d", d.Tick))
	}
	if g := (*GapError)(nil); errors.As(err, &g) {
		s = append(s, fmt.Sprintf("gap from %d, restarted %v", g.Gap.First, g.Restarted))
	}
	for _, kind := range []error{ErrNothingCompared, ErrStart} {
		if errors.Is(err, kind) {
			s = append(s, kind.Error())
		}
	}
	if f := (*SimulationError)(nil); errors.As(err, &f) {
		s = append(s, "simulation failed")
	}
	return strings.Join(s, "; ")
}

// Over random gaps, keyframes, hashes and faults, parts find what one run finds:
// with games that cannot save, and that refuse keyframes, too.
func TestSegmentsFindWhatOneRunFindsAtRandom(t *testing.T) {
	several := 0
	for seed := range uint64(3000) {
		p := randomSegments(seed)
		m := recordMatch(t, p.matchPlan)
		ctx := context.Background()
		whole, errWhole := Run(ctx, p.simulation(), NewFileSource(m.file), EngineOptions{Start: StartOf(m.file), KeepGoing: p.keepGoing})
		jobs := 1 + int(seed%4)
		parts, errParts := VerifySegments(ctx, m.file, SegmentOptions{Jobs: jobs, KeepGoing: p.keepGoing, Simulation: func() (Simulation, func(), error) {
			return p.simulation(), func() {}, nil
		}})
		if Segments(m.file) > 1 {
			several++
		}
		if p.keepGoing && whole.Desync != nil {
			// Behind a desync a part that starts from a keyframe agrees again.
			whole.DesyncCount, parts.DesyncCount = 0, 0
			whole.good, parts.good = 0, 0
		}
		if got, want := kinds(errParts), kinds(errWhole); got != want || !reflect.DeepEqual(parts, whole) {
			t.Errorf("%+v in %d jobs:\n%v\n%+v\nin one run:\n%v\n%+v", p, jobs, errParts, parts, errWhole, whole)
			return
		}
	}
	if several < 1000 {
		t.Errorf("%d replays of 3000 have several parts", several)
	}
}
