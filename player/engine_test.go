package player

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"reprise/format"
)

// verify runs a tape through a game at full speed.
func verify(game *mixer, s *tape, o EngineOptions) (Report, error) {
	o.Start.Meta = s.meta
	return Run(context.Background(), NewLocal(game), s, o)
}

// wantDesync wants a desync at a tick.
func wantDesync(t *testing.T, err error, tick format.Tick) *DesyncError {
	t.Helper()
	var desync *DesyncError
	if !errors.As(err, &desync) || desync.Tick != tick {
		t.Fatalf("error is %v, want a desync at tick %d", err, tick)
	}
	return desync
}

func TestEveryRecordedHashIsCompared(t *testing.T) {
	report, err := verify(&mixer{}, tapeOf(t, 600, 60), EngineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if report.TicksRun != 600 || report.HashesCompared != 10 || report.FirstTick != 0 || report.LastTick != 599 || !report.Complete || report.StepsRun == 0 || report.Keyframe {
		t.Errorf("report is %+v", report)
	}
}

func TestOneFlippedBitOfAnyHashIsADesyncThere(t *testing.T) {
	whole := tapeOf(t, 600, 60)
	for _, tick := range []format.Tick{0, 60, 300, 540} {
		for bit := range 64 {
			s := whole.copy()
			s.tick(tick).Hash[bit/8] ^= 1 << (bit % 8)
			report, err := verify(&mixer{}, s, EngineOptions{})
			desync := wantDesync(t, err, tick)
			if desync.HasLastGood != (tick > 0) || tick > 0 && desync.LastGood != tick-60 {
				t.Errorf("last good is %d (%v)", desync.LastGood, desync.HasLastGood)
			}
			if want := []string{"world", "random"}[bit/32]; desync.Part != want {
				t.Errorf("bit %d: part is %q, want %q", bit, desync.Part, want)
			}
			if report.Desync != desync || report.LastTick != tick || report.Complete {
				t.Errorf("report is %+v", report)
			}
		}
	}
}

func TestOneChangedInputIsADesyncAtTheNextHash(t *testing.T) {
	s := tapeOf(t, 1800, 60).copy()
	tick := format.Tick(1234)
	for s.tick(tick).Steps == 0 {
		tick++
	}
	changed := s.tick(tick)
	changed.Params = bytes.Clone(changed.Params)
	changed.Params[len(changed.Params)-1] ^= 1 // "north" stays a string
	changed.Commands = bytes.Clone(changed.Commands)
	changed.Commands[2] ^= 8

	for name, o := range map[string]EngineOptions{
		"from the start":    {},
		"from keyframe 840": {Start: Start{State: tapeOf(t, 1800, 0).stateBefore(t, 840), NextTick: 840}},
	} {
		part := &tape{meta: s.meta, items: s.items[o.Start.NextTick:]}
		_, err := verify(&mixer{}, part, o)
		desync := wantDesync(t, err, 1260)
		if desync.LastGood != 1200 {
			t.Errorf("%s: last good is %d", name, desync.LastGood)
		}
	}
}

func TestTraceFindsTheFirstDifferingTick(t *testing.T) {
	whole := tapeOf(t, 600, 1)
	damaged := whole.copy()
	tick := format.Tick(321)
	for damaged.tick(tick).Steps == 0 {
		tick++
	}
	damaged.tick(tick).Commands = bytes.Clone(damaged.tick(tick).Commands)
	damaged.tick(tick).Commands[2] ^= 8
	var traces [2][]string
	for i, s := range []*tape{whole, damaged} {
		for _, item := range s.items {
			if item.Tick.Tick%60 != 0 {
				item.Tick.Hash = nil
			}
		}
		verify(&mixer{}, s, EngineOptions{Trace: func(tick format.Tick, hash []byte) error {
			traces[i] = append(traces[i], fmt.Sprintf("%d %x", tick, hash))
			return nil
		}})
	}
	first := 0
	for traces[0][first] == traces[1][first] {
		first++
	}
	if format.Tick(first) != tick || len(traces[0]) != 600 {
		t.Errorf("first difference at tick %d, want %d; %d ticks traced", first, tick, len(traces[0]))
	}
}

func TestAReplayWithoutHashesIsNotVerified(t *testing.T) {
	report, err := verify(&mixer{}, tapeOf(t, 100, 0), EngineOptions{})
	if !errors.Is(err, ErrNothingCompared) || report.TicksRun != 100 || report.HashesCompared != 0 || !report.Complete {
		t.Errorf("error %v, report %+v", err, report)
	}
	if _, err := verify(&mixer{}, &tape{meta: mixerMeta()}, EngineOptions{}); !errors.Is(err, ErrNothingCompared) {
		t.Errorf("an empty replay gives %v", err)
	}
}

func TestAGameWithAConstantHashIsCaught(t *testing.T) {
	s := tapeOf(t, 600, 60)
	constant := bytes.Clone(s.tick(0).Hash)
	game := &mixer{hash: func(dst []byte) []byte { return append(dst, constant...) }}
	_, err := verify(game, s, EngineOptions{})
	wantDesync(t, err, 60)
}

func TestAGameWithAHashOfAnotherWidthAnswersBadly(t *testing.T) {
	for _, width := range []int{0, 4, 9, 64} {
		game := &mixer{hash: func(dst []byte) []byte { return append(dst, make([]byte, width)...) }}
		_, err := verify(game, tapeOf(t, 600, 60), EngineOptions{})
		var broken *SimulationError
		var desync *DesyncError
		if !errors.As(err, &broken) || broken.Tick != 0 || errors.As(err, &desync) {
			t.Errorf("width %d: %v", width, err)
		}
		if !strings.Contains(err.Error(), fmt.Sprintf("hash of %d bytes where 8 are declared", width)) {
			t.Errorf("width %d: %v", width, err)
		}
	}
}

func TestKeepGoingListsTheFirstDesyncFirst(t *testing.T) {
	s := tapeOf(t, 600, 60).copy()
	for _, tick := range []format.Tick{180, 420} {
		s.tick(tick).Hash[0] ^= 1
	}
	report, err := verify(&mixer{}, s, EngineOptions{KeepGoing: true})
	wantDesync(t, err, 180)
	if report.DesyncCount != 2 || len(report.Desyncs) != 2 || report.Desyncs[0] != report.Desync || report.Desyncs[1].Tick != 420 ||
		report.Desyncs[1].LastGood != 360 || report.TicksRun != 600 || report.HashesCompared != 10 || !report.Complete {
		t.Errorf("report is %+v", report)
	}
}

func TestTheStateAtADesyncIsThatOfItsTick(t *testing.T) {
	whole := tapeOf(t, 600, 60)
	s := whole.copy()
	s.tick(180).Hash[0] ^= 1
	game := &mixer{}
	_, err := verify(game, s, EngineOptions{})
	desync := wantDesync(t, err, 180)
	if want := whole.stateBefore(t, 181); !bytes.Equal(game.Save(nil), want) || !bytes.Equal(desync.Got, want) {
		t.Errorf("state %x, got %x, want %x", game.Save(nil), desync.Got, want)
	}
}

func TestTheResultIsTheSameWithLateAnswers(t *testing.T) {
	whole := tapeOf(t, 600, 7)
	for _, lag := range []int{1, 5, 64, 1000} {
		for _, bad := range []format.Tick{0, 63, 595} {
			s := whole.copy()
			s.tick(bad).Hash[5] ^= 1
			sim := &slow{Local: NewLocal(&mixer{}), lag: lag}
			report, err := Run(context.Background(), sim, s, EngineOptions{Start: Start{Meta: s.meta}})
			desync := wantDesync(t, err, bad)
			if desync.Part != "random" || report.LastTick != bad {
				t.Errorf("lag %d: %v, report %+v", lag, err, report)
			}
		}
		sim := &slow{Local: NewLocal(&mixer{}), lag: lag}
		report, err := Run(context.Background(), sim, whole.copy(), EngineOptions{Start: Start{Meta: whole.meta}})
		if err != nil || report.TicksRun != 600 || report.HashesCompared != 86 {
			t.Errorf("lag %d: %v, report %+v", lag, err, report)
		}
	}
}

func TestLastEndsTheRunExactlyThere(t *testing.T) {
	s := tapeOf(t, 600, 60)
	last := format.Tick(250)
	game := &mixer{}
	report, err := verify(game, s.copy(), EngineOptions{Last: &last})
	if err != nil || report.LastTick != 250 || report.TicksRun != 251 || !report.Complete {
		t.Errorf("error %v, report %+v", err, report)
	}
	if want := s.stateBefore(t, 251); !bytes.Equal(game.Save(nil), want) {
		t.Errorf("state %x, want %x", game.Save(nil), want)
	}
}

func TestAFailedStepEndsTheRun(t *testing.T) {
	s := tapeOf(t, 100, 1)
	s.items[40].Tick = tickOf(40, stepOf(1), stepOf(77))
	report, err := verify(&mixer{answer: map[uint16]Result{77: Failed}}, s, EngineOptions{KeepGoing: true})
	var failure *StepFailure
	if !errors.As(err, &failure) || failure.Tick != 40 || failure.Step != 1 || report.TicksRun != 40 || report.LastTick != 39 || report.Complete {
		t.Errorf("error %v, report %+v", err, report)
	}
}

func TestIgnoredStepsAreCounted(t *testing.T) {
	s := tapeOf(t, 3, 0)
	s.items[1].Tick = tickOf(1, stepOf(77), stepOf(77))
	report, _ := verify(&mixer{answer: map[uint16]Result{77: Ignored}}, s, EngineOptions{})
	if report.Ignored != 2 {
		t.Errorf("%d ignored", report.Ignored)
	}
}

func TestAPanicIsASimulationErrorOfItsTick(t *testing.T) {
	s := tapeOf(t, 100, 1)
	s.items[40].Tick = tickOf(40, stepOf(77))
	report, err := verify(&mixer{panicStep: 77}, s, EngineOptions{})
	var broken *SimulationError
	if !errors.As(err, &broken) || broken.Tick != 40 || report.TicksRun != 40 {
		t.Errorf("error %v, report %+v", err, report)
	}
}

// liar answers ticks as its function says.
type liar struct {
	*Local
	answer func(o Outcome, emit func(Outcome) error) error
}

func (l *liar) Advance(tick *format.TickRecord, wantHash bool, emit func(Outcome) error) error {
	return l.Local.Advance(tick, wantHash, func(o Outcome) error { return l.answer(o, emit) })
}

func TestAnswersToOtherTicksAreBad(t *testing.T) {
	for name, answer := range map[string]func(o Outcome, emit func(Outcome) error) error{
		"twice": func(o Outcome, emit func(Outcome) error) error {
			if err := emit(o); err != nil {
				return err
			}
			return emit(o)
		},
		"never":    func(Outcome, func(Outcome) error) error { return nil },
		"another":  func(o Outcome, emit func(Outcome) error) error { o.Tick++; return emit(o) },
		"no hash":  func(o Outcome, emit func(Outcome) error) error { o.Hash = nil; return emit(o) },
		"too late": func(o Outcome, emit func(Outcome) error) error { o.Tick = max(o.Tick, 1) - 1; return emit(o) },
	} {
		s := tapeOf(t, 10, 1)
		_, err := Run(context.Background(), &liar{NewLocal(&mixer{}), answer}, s, EngineOptions{Start: Start{Meta: s.meta}})
		var broken *SimulationError
		if !errors.As(err, &broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrorsOfTheSourceAndTheTraceEndTheRun(t *testing.T) {
	s := tapeOf(t, 10, 1)
	s.end = &format.TornError{Offset: 100, Size: 120, NextTick: 10, Ticks: 10}
	report, err := verify(&mixer{}, s, EngineOptions{})
	if !errors.Is(err, format.ErrTorn) || report.TicksRun != 10 || report.Complete {
		t.Errorf("torn: %v, report %+v", err, report)
	}
	full := errors.New("disk full")
	if _, err := verify(&mixer{}, tapeOf(t, 10, 1), EngineOptions{Trace: func(format.Tick, []byte) error { return full }}); !errors.Is(err, full) {
		t.Errorf("trace: %v", err)
	}
	late := tapeOf(t, 10, 1).copy()
	late.end = s.end
	late.tick(9).Hash[0] ^= 1
	sim := &slow{Local: NewLocal(&mixer{}), lag: 5}
	_, err = Run(context.Background(), sim, late, EngineOptions{Start: Start{Meta: late.meta}})
	wantDesync(t, err, 9)
	if !errors.Is(err, format.ErrTorn) {
		t.Errorf("the tear is not told: %v", err)
	}
}

func TestTicksOutOfOrderAreRefused(t *testing.T) {
	for name, change := range map[string]func(s *tape){
		"twice":   func(s *tape) { s.items = slices.Insert(s.items, 5, s.items[4]) },
		"swapped": func(s *tape) { s.items[4], s.items[3] = s.items[3], s.items[4] },
		"gap in what was run": func(s *tape) {
			s.items = slices.Insert(s.items, 5, Item{Gap: &format.Gap{First: 3, Last: 7}})
		},
		"gap that ends before it begins": func(s *tape) {
			s.items = slices.Insert(s.items, 5, Item{Gap: &format.Gap{First: 5, Last: 4}})
		},
	} {
		s := tapeOf(t, 10, 1)
		change(s)
		_, err := verify(&mixer{}, s, EngineOptions{})
		var gap *GapError
		if !errors.Is(err, ErrOutOfOrder) && !errors.As(err, &gap) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestContextEndsTheRun(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := tapeOf(t, 100, 1)
	why := errors.New("shutting down")
	s.before = func(i int) {
		if i == 50 {
			cancel(why)
		}
	}
	report, err := Run(ctx, NewLocal(&mixer{}), s, EngineOptions{Start: Start{Meta: s.meta}})
	if !errors.Is(err, why) || report.TicksRun != 50 || report.Complete {
		t.Errorf("error %v, report %+v", err, report)
	}
}

func TestAnEngineRunsOnce(t *testing.T) {
	s := tapeOf(t, 3, 1)
	e := NewEngine(NewLocal(&mixer{}), s, EngineOptions{Start: Start{Meta: s.meta}})
	if _, err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(context.Background()); err == nil {
		t.Error("a second run was accepted")
	}
}

func TestTurnBasedReplayIsVerifiedAcrossTicks(t *testing.T) {
	turns := [][]format.Step{{moveStep(3)}, {moveStep(4)}, {talkStep(1), answerStep(8)}, {moveStep(5)}, {restStep()}, {moveStep(6)}}
	recorded := &tape{meta: &format.Metadata{Game: "walker", Seed: 5, HashBytes: 8}}
	sim := NewTurns(newWalker())
	sim.Reset(Start{Meta: recorded.meta})
	emit := func(o Outcome) error { recorded.items[o.Tick].Tick.Hash = bytes.Clone(o.Hash); return nil }
	for i, steps := range turns {
		recorded.items = append(recorded.items, Item{Tick: tickOf(format.Tick(i), steps...)})
		if err := sim.Advance(recorded.items[i].Tick, true, emit); err != nil {
			t.Fatal(err)
		}
	}
	if err := sim.Flush(true, emit); err != nil {
		t.Fatal(err)
	}
	report, err := Run(context.Background(), NewTurns(newWalker()), recorded.copy(), EngineOptions{Start: Start{Meta: recorded.meta}})
	if err != nil || report.HashesCompared != 6 {
		t.Errorf("error %v, report %+v", err, report)
	}
	for i := range turns {
		s := recorded.copy()
		s.items[i].Tick.Hash[3] ^= 1
		_, err := Run(context.Background(), NewTurns(newWalker()), s, EngineOptions{Start: Start{Meta: recorded.meta}})
		wantDesync(t, err, format.Tick(i))
	}
}

func TestGamesAreFoundByNameAndBuild(t *testing.T) {
	linked := func(name, build string) Linked {
		return Factory{Name: name, Build: build, New: func() Game { return &mixer{} }}
	}
	games := Games{
		linked("chess", "1.0"), linked("chess", "1.1"),
		linked("mixer", "2"), linked("mixer", ""),
		TurnFactory{Name: "walker", New: func() TurnGame { return newWalker() }},
	}
	for _, c := range []struct {
		name, build string
		found       string // build of the game found, or the error
	}{
		{"chess", "1.1", "1.1"}, {"mixer", "2", "2"}, {"mixer", "3", ""}, {"walker", "x", ""},
		{"chess", "2.0", `game "chess": recorded by build "2.0", here is "1.0, 1.1": play it with the recorded build`},
		{"chess", "", `game "chess": recorded by build "", here is "1.0, 1.1": play it with the recorded build`},
		{"go", "1", `game "go" (build "1") is not here: there is chess, mixer, walker`},
	} {
		game, err := games.Lookup(&format.Metadata{Game: c.name, Build: c.build})
		if err != nil {
			if err.Error() != c.found {
				t.Errorf("%s %s: %v", c.name, c.build, err)
			}
			continue
		}
		if name, build := game.Identity(); name != c.name || build != c.found {
			t.Errorf("%s %s: found %s %s", c.name, c.build, name, build)
		}
		if sim := game.Simulation(); sim.Reset(Start{Meta: mixerMeta()}) != nil || sim.Close() != nil {
			t.Errorf("%s: no simulation", c.name)
		}
	}
	var missing *GameMissingError
	if _, err := (Games{}).Lookup(mixerMeta()); !errors.As(err, &missing) || missing.Game != "mixer" {
		t.Errorf("no games: %v", err)
	}
	var mismatch *BuildMismatchError
	if _, err := games.Lookup(&format.Metadata{Game: "chess"}); !errors.As(err, &mismatch) {
		t.Errorf("another build: %v", err)
	}
}
