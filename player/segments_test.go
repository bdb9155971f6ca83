package player

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"testing"

	"reprise/format"
)

// inSegments verifies m with two simulations at once, and sequentially.
func inSegments(t *testing.T, m *match, keepGoing bool, game func() *mixer) (parts, whole Report, errParts, errWhole error) {
	t.Helper()
	o := SegmentOptions{Jobs: 2, KeepGoing: keepGoing, Simulation: func() (Simulation, func(), error) {
		return NewLocal(game()), func() {}, nil
	}}
	parts, errParts = VerifySegments(context.Background(), m.file, o)
	whole, errWhole = Run(context.Background(), NewLocal(game()), NewFileSource(m.file), EngineOptions{Start: StartOf(m.file), KeepGoing: keepGoing})
	return parts, whole, errParts, errWhole
}

// faulty makes games that go wrong at the end of a tick.
func faulty(tick format.Tick) func() *mixer {
	return func() *mixer {
		g := &mixer{}
		g.endTick = func(at format.Tick) error {
			if at == tick {
				g.world ^= 1
			}
			return nil
		}
		return g
	}
}

// TestSegmentsFindWhatOneRunFinds compares both ways over matches with
// keyframes, gaps and faults.
func TestSegmentsFindWhatOneRunFinds(t *testing.T) {
	frames := []format.Tick{100, 150, 200, 201, 260, 320, 380}
	gapped := []format.Gap{{First: 230, Last: 259, Reason: "spool full"}}
	touching := []format.Gap{{First: 230, Last: 239, Reason: "spool full"}, {First: 240, Last: 259, ByRecorder: true}}
	for _, c := range []struct {
		what      string
		plan      matchPlan
		fault     format.Tick
		keepGoing bool
	}{
		{what: "good", plan: matchPlan{ticks: 300, hashEvery: 3, frames: frames}},
		{what: "no hashes", plan: matchPlan{ticks: 300, frames: frames}},
		{what: "no keyframe", plan: matchPlan{ticks: 300, hashEvery: 3}},
		{what: "gap with a keyframe", plan: matchPlan{ticks: 300, hashEvery: 3, frames: frames, gaps: gapped}},
		{what: "gap without a keyframe", plan: matchPlan{ticks: 300, hashEvery: 3, frames: frames[:4], gaps: gapped}},
		{what: "touching gaps with a keyframe", plan: matchPlan{ticks: 300, hashEvery: 3, frames: frames, gaps: touching}},
		{what: "touching gaps without a keyframe", plan: matchPlan{ticks: 300, hashEvery: 3, frames: frames[:4], gaps: touching}},
		{what: "only the first gap with a keyframe", plan: matchPlan{ticks: 300, hashEvery: 3, frames: frames[:4],
			gaps: append([]format.Gap{{First: 170, Last: 199}}, gapped...)}},
		{what: "gap at the end", plan: matchPlan{ticks: 160, hashEvery: 3, frames: frames[:4], gaps: gapped}},
		{what: "gap without hashes", plan: matchPlan{ticks: 300, frames: frames, gaps: gapped}},
		{what: "desync", plan: matchPlan{ticks: 300, hashEvery: 7, frames: frames}, fault: 170},
		{what: "desync with the first hash of a segment", plan: matchPlan{ticks: 300, hashEvery: 50, frames: frames}, fault: 210},
		{what: "desync and on", plan: matchPlan{ticks: 300, hashEvery: 7, frames: frames[:1]}, fault: 170, keepGoing: true},
	} {
		t.Run(c.what, func(t *testing.T) {
			m := recordMatch(t, c.plan)
			parts, whole, errParts, errWhole := inSegments(t, m, c.keepGoing, faulty(c.fault))
			if (errParts == nil) != (errWhole == nil) || errParts != nil && errParts.Error() != errWhole.Error() {
				t.Errorf("in parts: %v\nin one run: %v", errParts, errWhole)
			}
			if !reflect.DeepEqual(parts, whole) {
				t.Errorf("in parts:   %+v\nin one run: %+v", parts, whole)
			}
		})
	}
}

// TestSegmentsProveEveryKeyframe: a keyframe that holds more, or something
// else, than the game comes to is found though all hashes are equal, and the
// rest is judged without it.
func TestSegmentsProveEveryKeyframe(t *testing.T) {
	m := recordMatch(t, matchPlan{ticks: 300, hashEvery: 10, frames: []format.Tick{150, 200, 250}, spoil: map[format.Tick]bool{200: true}})
	parts, whole, errParts, errWhole := inSegments(t, m, false, faulty(0))
	var bad *KeyframeError
	if !errors.As(errParts, &bad) || bad.NextTick != 200 || !errors.Is(errParts, ErrOtherState) {
		t.Fatalf("the error is %v", errParts)
	}
	if errWhole != nil || !reflect.DeepEqual(parts, whole) || parts.HashesCompared != 30 {
		t.Errorf("in parts:   %+v\nin one run: %+v, %v", parts, whole, errWhole)
	}
}

// TestSegmentsDoubtKeyframesThatNothingProves: the same for a game that cannot
// save, so that only the hashes behind the keyframe tell.
func TestSegmentsDoubtKeyframesThatNothingProves(t *testing.T) {
	m := recordMatch(t, matchPlan{ticks: 300, hashEvery: 10, frames: []format.Tick{150, 200, 250}, spoil: map[format.Tick]bool{200: true}})
	o := SegmentOptions{Jobs: 2, Simulation: func() (Simulation, func(), error) { return bare{NewLocal(&mixer{})}, func() {}, nil }}
	report, err := VerifySegments(context.Background(), m.file, o)
	if err != nil || report.TicksRun != 300 || report.HashesCompared != 30 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestSegmentsUseSeveralSimulations wants the work shared.
func TestSegmentsUseSeveralSimulations(t *testing.T) {
	m := recordMatch(t, matchPlan{ticks: 300, hashEvery: 10, frames: []format.Tick{150, 200, 250}})
	if n := Segments(m.file); n != 4 {
		t.Fatalf("%d segments", n)
	}
	var made, released atomic.Int32
	meet := make(chan struct{})
	o := SegmentOptions{Jobs: 4, Simulation: func() (Simulation, func(), error) {
		if made.Add(1) == 4 {
			close(meet)
		}
		<-meet // nobody begins before four are there
		return NewLocal(&mixer{}), func() { released.Add(1) }, nil
	}}
	if _, err := VerifySegments(context.Background(), m.file, o); err != nil {
		t.Fatal(err)
	}
	if made.Load() != 4 || released.Load() != 4 {
		t.Errorf("%d simulations made, %d released", made.Load(), released.Load())
	}
	broken := errors.New("no such program")
	o.Simulation = func() (Simulation, func(), error) { return nil, nil, broken }
	if _, err := VerifySegments(context.Background(), m.file, o); !errors.Is(err, broken) {
		t.Errorf("without a simulation: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o.Simulation = func() (Simulation, func(), error) { return NewLocal(&mixer{}), func() {}, nil }
	if _, err := VerifySegments(ctx, m.file, o); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
