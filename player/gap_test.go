package player

import (
	"context"
	"errors"
	"testing"

	"reprise/format"
)

// wantGap wants a gap as the result.
func wantGap(t *testing.T, err error, first, last format.Tick, declared, restarted bool) {
	t.Helper()
	var gap *GapError
	if !errors.As(err, &gap) {
		t.Fatalf("error is %v, want a gap", err)
	}
	if gap.Gap.First != first || gap.Gap.Last != last || gap.Declared != declared || gap.Restarted != restarted {
		t.Errorf("gap is %+v", gap)
	}
}

func TestNothingIsSimulatedAcrossAGap(t *testing.T) {
	for _, declared := range []bool{true, false} {
		s := tapeOf(t, 300, 10).cut(t, 100, 119, declared, false)
		report, err := verify(&mixer{}, s, EngineOptions{})
		wantGap(t, err, 100, 119, declared, false)
		if report.TicksRun != 100 || report.LastTick != 99 || report.HashesCompared != 10 || report.Complete || len(report.Gaps) != 1 {
			t.Errorf("report is %+v", report)
		}
	}
}

func TestAKeyframeAtTheGapsEndRestartsTheRun(t *testing.T) {
	for _, declared := range []bool{true, false} {
		s := tapeOf(t, 300, 10).cut(t, 100, 119, declared, true)
		game := &mixer{}
		report, err := verify(game, s, EngineOptions{})
		wantGap(t, err, 100, 119, declared, true)
		if report.TicksRun != 280 || report.LastTick != 299 || report.HashesCompared != 28 || !report.Complete {
			t.Errorf("report is %+v", report)
		}
		if len(game.resets) != 2 || game.resets[1].NextTick != 120 || game.resets[1].Meta != s.meta {
			t.Errorf("resets are %+v", game.resets)
		}
	}
}

func TestADesyncWeighsMoreThanAGap(t *testing.T) {
	s := tapeOf(t, 300, 10).copy()
	s.tick(200).Hash[0] ^= 1
	_, err := verify(&mixer{}, s.cut(t, 100, 119, true, true), EngineOptions{})
	wantDesync(t, err, 200)
	s.tick(50).Hash[0] ^= 1
	report, err := verify(&mixer{}, s.cut(t, 100, 119, true, false), EngineOptions{KeepGoing: true})
	wantDesync(t, err, 50)
	wantGap(t, err, 100, 119, true, false)
	if report.DesyncCount != 1 {
		t.Errorf("report is %+v", report)
	}
}

func TestAKeyframeOfAnotherTickRestartsNothing(t *testing.T) {
	s := tapeOf(t, 300, 10).cut(t, 100, 119, true, true)
	for _, item := range s.items {
		if item.Keyframe != nil {
			item.Keyframe.NextTick++
		}
	}
	report, err := verify(&mixer{}, s, EngineOptions{})
	wantGap(t, err, 100, 119, true, false)
	if report.TicksRun != 100 {
		t.Errorf("report is %+v", report)
	}
}

func TestAGameThatCannotRestoreStopsAtTheGap(t *testing.T) {
	s := tapeOf(t, 300, 10).cut(t, 100, 119, true, true)
	_, err := verify(&mixer{refuseState: true}, s, EngineOptions{})
	wantGap(t, err, 100, 119, true, false)
	if !errors.Is(err, ErrStart) {
		t.Errorf("the reason is missing: %v", err)
	}
}

func TestAGapWithNothingComparedIsNotVerified(t *testing.T) {
	s := tapeOf(t, 300, 0).cut(t, 100, 119, true, true)
	_, err := verify(&mixer{}, s, EngineOptions{})
	wantGap(t, err, 100, 119, true, true)
	if !errors.Is(err, ErrNothingCompared) {
		t.Errorf("error is %v", err)
	}
}

func TestAGapAtTheEndIsTold(t *testing.T) {
	s := tapeOf(t, 120, 10).cut(t, 100, 119, true, false)
	report, err := verify(&mixer{}, s, EngineOptions{})
	wantGap(t, err, 100, 119, true, false)
	if report.TicksRun != 100 || report.Complete {
		t.Errorf("report is %+v", report)
	}
}

func TestAReplayThatBeginsLaterNeedsAKeyframe(t *testing.T) {
	whole := tapeOf(t, 300, 10)
	clip := &tape{meta: whole.meta, items: whole.items[100:]}
	_, err := verify(&mixer{}, clip.copy(), EngineOptions{})
	wantGap(t, err, 0, 99, false, false)

	framed := clip.copy()
	framed.items = append([]Item{{Keyframe: &format.Keyframe{NextTick: 100, State: whole.stateBefore(t, 100)}}}, framed.items...)
	report, err := verify(&mixer{}, framed, EngineOptions{})
	if err != nil || report.FirstTick != 100 || report.TicksRun != 200 || !report.Keyframe || len(report.Gaps) != 0 {
		t.Errorf("error %v, report %+v", err, report)
	}

	given := EngineOptions{Start: Start{State: whole.stateBefore(t, 100), NextTick: 100}}
	if report, err := verify(&mixer{}, clip.copy(), given); err != nil || report.FirstTick != 100 {
		t.Errorf("error %v, report %+v", err, report)
	}
	later := &tape{meta: whole.meta, items: whole.items[110:]}
	_, err = verify(&mixer{}, later, given)
	wantGap(t, err, 100, 109, false, false)
}

func TestADeclaredGapAtTheBeginning(t *testing.T) {
	whole := tapeOf(t, 300, 10)
	_, err := verify(&mixer{}, whole.cut(t, 0, 99, true, false), EngineOptions{})
	wantGap(t, err, 0, 99, true, false)
	report, err := verify(&mixer{}, whole.cut(t, 0, 99, true, true), EngineOptions{})
	wantGap(t, err, 0, 99, true, true)
	if report.TicksRun != 200 || report.HashesCompared != 20 {
		t.Errorf("report is %+v", report)
	}
}

func TestAnInitialKeyframeIsTheStart(t *testing.T) {
	s := tapeOf(t, 100, 10)
	s.items = append([]Item{{Keyframe: &format.Keyframe{NextTick: 0, State: s.stateBefore(t, 0)}}}, s.items...)
	game := &mixer{}
	report, err := verify(game, s, EngineOptions{})
	if err != nil || !report.Keyframe || len(game.resets) != 1 || len(game.resets[0].State) != 8 {
		t.Errorf("error %v, report %+v, resets %+v", err, report, game.resets)
	}
}

// finder is a tape that is asked for its keyframes.
type finder struct {
	*tape
	frames map[format.Tick][]byte
	err    error
}

func (f *finder) FindKeyframe(next format.Tick) ([]byte, error) { return f.frames[next], f.err }

func TestASourceIsAskedForTheKeyframe(t *testing.T) {
	whole := tapeOf(t, 300, 10)
	for _, withError := range []bool{false, true} {
		f := &finder{tape: whole.cut(t, 100, 119, true, false), frames: map[format.Tick][]byte{120: whole.stateBefore(t, 120)}}
		if withError {
			f.err = format.ErrCorrupt
		}
		_, err := Run(context.Background(), NewLocal(&mixer{}), f, EngineOptions{Start: Start{Meta: whole.meta}})
		if withError {
			if !errors.Is(err, format.ErrCorrupt) {
				t.Errorf("error is %v", err)
			}
			continue
		}
		wantGap(t, err, 100, 119, true, true)
	}
}

func TestGapsOneBehindTheOther(t *testing.T) {
	whole := tapeOf(t, 300, 10)
	s := whole.cut(t, 100, 119, true, true)
	s.items = append(s.items[:100], append([]Item{
		{Gap: &format.Gap{First: 100, Last: 105}}, {Gap: &format.Gap{First: 106, Last: 119}},
	}, s.items[101:]...)...)
	report, err := verify(&mixer{}, s, EngineOptions{})
	wantGap(t, err, 100, 105, true, true)
	if len(report.Gaps) != 2 || !report.Gaps[1].Restarted || report.HashesCompared != 28 {
		t.Errorf("report is %+v", report)
	}
}

func TestTicksMissingBeforeADeclaredGapAreTold(t *testing.T) {
	s := tapeOf(t, 300, 10).cut(t, 100, 119, true, true)
	for _, item := range s.items {
		if item.Gap != nil {
			item.Gap.First = 110
		}
	}
	report, err := verify(&mixer{}, s, EngineOptions{})
	wantGap(t, err, 100, 109, false, true)
	if len(report.Gaps) != 2 {
		t.Errorf("report is %+v", report)
	}
}

func TestLateAnswersAreComparedBeforeAGap(t *testing.T) {
	s := tapeOf(t, 300, 1).copy()
	s.tick(99).Hash[0] ^= 1
	c := s.cut(t, 100, 119, true, true)
	_, err := Run(context.Background(), &slow{Local: NewLocal(&mixer{}), lag: 30}, c, EngineOptions{Start: Start{Meta: s.meta}})
	wantDesync(t, err, 99)
}

func TestATurnThatAGapLeavesOpenIsNotCompared(t *testing.T) {
	// Whether the walk of turn 1 is over, only the missing turn 2 could tell.
	s := &tape{meta: &format.Metadata{Game: "walker", HashBytes: 8}}
	wrong := make([]byte, 8)
	s.items = []Item{
		{Tick: tickOf(0, restStep())}, {Tick: tickOf(1, moveStep(1))}, {Gap: &format.Gap{First: 2, Last: 2}},
	}
	s.items[1].Tick.Hash = wrong
	report, err := Run(context.Background(), NewTurns(newWalker()), s.copy(), EngineOptions{Start: Start{Meta: s.meta}})
	wantGap(t, err, 2, 2, true, false)
	if report.TicksRun != 1 || report.LastTick != 0 || report.HashesCompared != 0 || !errors.Is(err, ErrNothingCompared) {
		t.Errorf("error %v, report %+v", err, report)
	}

	s.items = append(s.items, Item{Keyframe: &format.Keyframe{NextTick: 3, State: []byte{0, 0, 0, 9}}}, Item{Tick: tickOf(3, restStep())})
	s.items[4].Tick.Hash = []byte{0, 0, 1, 30, 0, 0, 0, 0} // 9*31 + 7
	report, err = Run(context.Background(), NewTurns(newWalker()), s, EngineOptions{Start: Start{Meta: s.meta}})
	wantGap(t, err, 2, 2, true, true)
	if report.TicksRun != 2 || report.HashesCompared != 1 {
		t.Errorf("error %v, report %+v", err, report)
	}
}
