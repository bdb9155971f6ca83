package player

import (
	"errors"
	"testing"

	"reprise/format"
)

func TestErrorsNameThePlaceAndTheReason(t *testing.T) {
	why := errors.New("why")
	for _, c := range []struct {
		err  error
		want string
	}{
		{&DesyncError{Tick: 7, Want: []byte{1}, Got: []byte{2}}, "desync at tick 7: recorded 01, simulated 02 (no good hash before it)"},
		{&DesyncError{Tick: 7, Part: "units", LastGood: 6, HasLastGood: true, Want: []byte{1}, Got: []byte{2}},
			`desync at tick 7 in "units": recorded 01, simulated 02 (last good hash at tick 6)`},
		{&StepFailure{Step: 3, Code: 9, Phase: PhasePassive}, "error 72: step 3 (code 9): passive failed"},
		{&StepFailure{Tick: 5, HasTick: true, Step: 3, Code: 9, Phase: PhaseExecute, Err: why}, "error 72: tick 5, step 3 (code 9): execute failed: why"},
		{&GapError{Gap: format.Gap{First: 3, Last: 5, Reason: "spool full"}, Declared: true, Restarted: true},
			"gap: ticks 3 to 5 are missing (spool full): run around it, from the keyframe at its end"},
		{&GapError{Gap: format.Gap{First: 3, Last: 5}}, "undeclared gap: ticks 3 to 5 are missing: stopped there, since no keyframe at its end can be restored"},
		{&GameMissingError{Game: "go", Build: "1"}, `game "go" (build "1") is not here: no game is linked`},
		{&DataMismatchError{Game: "go", Build: "1", Recorded: "d1", Present: []string{"d2", "d3"}},
			`game "go" (build "1"): recorded with data "d1", here is "d2, d3": play it with the recorded data files`},
		{&SimulationError{Tick: 4, HasTick: true, What: "hung", Err: why}, "tick 4: simulation hung: why"},
		{&SimulationError{What: "hung"}, "simulation hung"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestEachTypeTakesItsKinds(t *testing.T) {
	values := []format.Value{
		format.Bool(true), format.Int(1), format.Float(1), format.BigInt(format.Int(1).BigInt()),
		format.String("1"), format.Bytes([]byte{1}), format.Ints([]int64{1}),
	}
	for kind, want := range map[ParamType]string{
		TypeAny: "1111111", TypeBool: "1000000", TypeInt: "0100000", TypeFloat: "0110000", TypeBigInt: "0001000",
		TypeString: "0000100", TypeBytes: "0000010", TypeInts: "0000001", "matrix": "0000000",
	} {
		got := ""
		for _, v := range values {
			got += map[bool]string{true: "1", false: "0"}[checkParams([]ParamType{kind}, format.Step{Params: []format.Value{v}}) == nil]
		}
		if got != want {
			t.Errorf("%q takes %s, want %s", kind, got, want)
		}
	}
	s := newStage(SystemOptions{})
	s.Register(1, NewActive())
	s.record(t, 1)
	failStep(t, s.sandbox(t, 0), format.WarnStepFailed)
}
