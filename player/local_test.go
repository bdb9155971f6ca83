package player

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"reprise/format"
)

func newLocal(t *testing.T, game *mixer) *Local {
	t.Helper()
	l := NewLocal(game)
	if err := l.Reset(Start{Meta: mixerMeta()}); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLocalAnswersEveryTickAtOnce(t *testing.T) {
	game := &mixer{answer: map[uint16]Result{9: Ignored}}
	l := newLocal(t, game)
	var got []Outcome
	emit := func(o Outcome) error { got = append(got, o); return nil }
	if err := l.Advance(tickOf(4, stepOf(9), stepOf(1, format.Int(5)), stepOf(9)), true, emit); err != nil {
		t.Fatal(err)
	}
	if err := l.Advance(tickOf(5), false, emit); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Tick != 4 || got[0].Ignored != 2 || len(got[0].Hash) != 8 || got[1].Tick != 5 || got[1].Hash != nil {
		t.Errorf("outcomes are %+v", got)
	}
	if l.Game() != game || game.steps != 3 {
		t.Errorf("%d steps reached the game", game.steps)
	}
}

func TestLocalStopsAtAFailedStep(t *testing.T) {
	l := newLocal(t, &mixer{answer: map[uint16]Result{9: Failed}})
	var got Outcome
	err := l.Advance(tickOf(4, stepOf(1), stepOf(9), stepOf(2)), true, func(o Outcome) error { got = o; return nil })
	var failure *StepFailure
	if !errors.As(err, &failure) || failure != got.Failure || !errors.Is(err, format.WarnStepFailed) {
		t.Fatalf("Advance gives %v", err)
	}
	if failure.Tick != 4 || failure.Step != 1 || failure.Code != 9 || !strings.Contains(err.Error(), "not enough gold") {
		t.Errorf("failure is %v", err)
	}
	if l.Advance(tickOf(5), false, nil) != err || l.Flush(true, nil) != err {
		t.Error("the game goes on after a failure")
	}
}

func TestLocalNamesTheTickOfAPanic(t *testing.T) {
	l := newLocal(t, &mixer{panicStep: 9})
	err := l.Advance(tickOf(4, stepOf(9)), false, nil)
	var broken *SimulationError
	if !errors.As(err, &broken) || broken.Tick != 4 || !strings.Contains(err.Error(), "unit has no owner") || !bytes.Contains(broken.Stack, []byte("Step")) {
		t.Fatalf("Advance gives %v", err)
	}
	if l.Advance(tickOf(5), false, nil) != err {
		t.Error("the game goes on after a panic")
	}
	if err := l.Reset(Start{Meta: mixerMeta()}); err != nil {
		t.Fatal(err)
	}
	if err := l.Advance(tickOf(0), false, func(Outcome) error { return nil }); err != nil {
		t.Errorf("after a reset: %v", err)
	}
}

func TestLocalRefusesAnswersThatAreNone(t *testing.T) {
	for name, game := range map[string]*mixer{
		"unknown result":   {answer: map[uint16]Result{1: 3}},
		"error of EndTick": {endTick: func(format.Tick) error { return errors.New("out of memory") }},
	} {
		var broken *SimulationError
		if err := newLocal(t, game).Advance(tickOf(4, stepOf(1)), false, nil); !errors.As(err, &broken) || broken.Tick != 4 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLocalIsExactlyAfterTheTickThatEmitStops(t *testing.T) {
	game := &mixer{}
	l := newLocal(t, game)
	enough := errors.New("enough")
	var hash []byte
	err := l.Advance(tickOf(0, stepOf(1)), true, func(o Outcome) error { hash = bytes.Clone(o.Hash); return enough })
	if err != enough || !bytes.Equal(game.Save(nil), hash) {
		t.Errorf("Advance gives %v, state %x, hash %x", err, game.Save(nil), hash)
	}
}

func TestLocalTellsARefusedStart(t *testing.T) {
	l := NewLocal(&mixer{})
	err := l.Reset(Start{Meta: mixerMeta(), State: []byte("short")})
	if !errors.Is(err, ErrStart) || !errors.Is(err, errNoSave) {
		t.Errorf("Reset gives %v", err)
	}
	if l.Advance(tickOf(0), false, nil) != err {
		t.Error("the game plays without a start")
	}
}

func TestLocalTellsAUnreadableTick(t *testing.T) {
	for name, damage := range map[string]func(*format.TickRecord){
		"reserved parameter type": func(r *format.TickRecord) { r.Params[0] = 20 },
		"parameters cut":          func(r *format.TickRecord) { r.Params = r.Params[:1] },
	} {
		record := tickOf(4, stepOf(1), stepOf(2, format.Int(1000)))
		damage(record)
		if err := newLocal(t, &mixer{}).Advance(record, false, nil); !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), "tick 4: step 1") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLocalAllocatesNothingPerTick(t *testing.T) {
	l := newLocal(t, &mixer{})
	record := tickOf(0, stepOf(1, format.Int(5), format.String("north")), stepOf(2, format.Float(1.5)), stepOf(3, format.Ints([]int64{1, 2, 3})))
	emit := func(Outcome) error { return nil }
	l.Advance(record, true, emit)
	if n := testing.AllocsPerRun(200, func() { l.Advance(record, true, emit) }); n != 0 {
		t.Errorf("%v allocations a tick", n)
	}
}
