package player

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"reprise/format"
)

func TestNewSystemIsEmptyIn8BitWidth(t *testing.T) {
	s := newStage(SystemOptions{})
	if s.Array().Len() != 0 || s.Array().Width() != format.Width8 || s.Sandbox() != nil {
		t.Errorf("%d steps in width %d", s.Array().Len(), s.Array().Width())
	}
}

func TestRegisteredCommandIsFoundByCode(t *testing.T) {
	s := newStage(SystemOptions{})
	a := s.active(7)
	if s.Command(7) != a || s.Command(8) != nil {
		t.Errorf("code 7 gives %v, code 8 gives %v", s.Command(7), s.Command(8))
	}
}

func TestRegisteringTwiceWarns163AndKeepsTheFirst(t *testing.T) {
	s := newStage(SystemOptions{})
	a := s.active(7)
	s.active(7)
	if w := s.wantWarnings(t, format.WarnCodeTaken); w[0].Command != 7 || s.Command(7) != a {
		t.Errorf("warning is %v", w[0])
	}
}

func TestRecordTellsTheStepAsStored(t *testing.T) {
	s := newStage(SystemOptions{})
	s.record(t, 1)
	calls := 0
	s.AddHooks(SystemHooks{OnRecordCommand: func(code uint16, index int, params []format.Value) {
		calls++
		if code != 42 || index != 1 || len(params) != 2 || !params[0].Equal(format.Int(100)) || !params[1].Equal(format.String("x")) {
			t.Errorf("told code %d, index %d, params %v", code, index, params)
		}
	}})
	// The unsupported value in the middle is dropped: it is not told either.
	if err := s.Record(42, format.Number(100), format.Value{}, format.String("x")); err != nil {
		t.Fatal(err)
	}
	s.wantWarnings(t, format.WarnUnsupported)
	if calls != 1 || s.Array().Len() != 2 {
		t.Errorf("told %d times, %d steps", calls, s.Array().Len())
	}
}

func TestRecordHookFiresOnlyWhenAStepWasAdded(t *testing.T) {
	s := newStage(SystemOptions{Array: format.Options{MaxSteps: 1}})
	calls := 0
	s.AddHooks(SystemHooks{OnRecordCommand: func(uint16, int, []format.Value) { calls++ }})
	s.Disable()
	if err := s.Record(1); err != nil || calls != 0 {
		t.Errorf("disabled: error %v, told %d times", err, calls)
	}
	s.Revert()
	if err := s.Record(1); err != nil || calls != 1 {
		t.Errorf("reverted: error %v, told %d times", err, calls)
	}
	if err := s.Record(1); !errors.Is(err, format.WarnFull) || calls != 1 {
		t.Errorf("full: error %v, told %d times", err, calls)
	}
	s.wantWarnings(t, format.WarnFull)
}

func TestRecordRefusesAWideCodeIn8BitWidth(t *testing.T) {
	s := newStage(SystemOptions{})
	if err := s.Record(256); !errors.Is(err, ErrCodeWidth) || s.Array().Len() != 0 {
		t.Errorf("error %v, %d steps", err, s.Array().Len())
	}
	wide := newStage(SystemOptions{Array: format.Options{Width: format.Width16}})
	if err := wide.Record(256); err != nil || wide.Array().Len() != 1 {
		t.Errorf("16 bit: error %v, %d steps", err, wide.Array().Len())
	}
}

func TestTwoSystemsShareNothing(t *testing.T) {
	a, b := newStage(SystemOptions{}), newStage(SystemOptions{})
	a.active(1)
	a.record(t, 1)
	if b.Command(1) != nil || b.Array().Len() != 0 {
		t.Error("the second system has what the first was given")
	}
}

func TestCreateSandboxResetsStoresAndTells(t *testing.T) {
	s := newStage(SystemOptions{})
	var saves []string
	reset := ResetFunc(func(save []byte) error { saves = append(saves, string(save)); return nil })
	var told *Sandbox
	s.AddHooks(SystemHooks{OnCreateSandbox: func(b *Sandbox) {
		told = b
		if s.Sandbox() != b || len(saves) != 1 {
			t.Errorf("told before the sandbox is current, or before the reset")
		}
	}})
	b, err := s.CreateSandbox(0, reset, []byte("floor 3"))
	if err != nil || told != b || s.Sandbox() != b || !slices.Equal(saves, []string{"floor 3"}) {
		t.Errorf("error %v, saves %q", err, saves)
	}
}

func TestRefusedResetCreatesNoSandbox(t *testing.T) {
	s := newStage(SystemOptions{})
	damaged := errors.New("save is damaged")
	b, err := s.CreateSandbox(0, ResetFunc(func([]byte) error { return damaged }), nil)
	if b != nil || !errors.Is(err, damaged) || s.Sandbox() != nil {
		t.Errorf("sandbox %v, error %v", b, err)
	}
}

func TestASecondSandboxStopsTheFirst(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1)
	s.record(t, 1)
	first := s.sandbox(t, 0)
	second := s.sandbox(t, 0)
	if err := first.Play(); !errors.Is(err, ErrStopped) {
		t.Errorf("the first sandbox plays: %v", err)
	}
	if err := second.Play(); err != nil || !second.Ended() {
		t.Errorf("the second sandbox does not play: %v", err)
	}
}

func TestReleaseStopsAndClears(t *testing.T) {
	s := newStage(SystemOptions{})
	b := s.sandbox(t, 0)
	if !closed(s.Release()) || s.Sandbox() != nil {
		t.Error("not released")
	}
	s.wantLog(t, "stop")
	if err := b.Play(); !errors.Is(err, ErrStopped) {
		t.Errorf("a released sandbox plays: %v", err)
	}
	if !closed(s.Release()) {
		t.Error("release with no sandbox waits")
	}
}

func TestSaveAndLoadOnOneInstance(t *testing.T) {
	s := newStage(SystemOptions{})
	a := s.active(42)
	if err := s.Record(42, format.Int(100)); err != nil {
		t.Fatal(err)
	}
	state := s.SaveState()
	state.CommandArray, state.ParamArray = bytes.Clone(state.CommandArray), bytes.Clone(state.ParamArray)
	s.record(t, 1, 2)
	if err := s.LoadState(state); err != nil {
		t.Fatal(err)
	}
	step, ok := s.Array().Get(0)
	if s.Array().Len() != 1 || s.Array().Width() != format.Width8 || !ok || step.Code != 42 || !step.Params[0].Equal(format.Int(100)) {
		t.Errorf("%d steps, the first is %v", s.Array().Len(), step)
	}
	if s.Command(42) != a {
		t.Error("the command is gone")
	}
}

func TestLoadRefusesDamagedStateWhole(t *testing.T) {
	s := newStage(SystemOptions{})
	s.record(t, 1)
	err := s.LoadState(format.State{Length: 2, CommandWidth: format.Width8, CommandArray: []byte{0, 1}})
	if !errors.Is(err, format.ErrState) || s.Array().Len() != 1 {
		t.Errorf("error %v, %d steps", err, s.Array().Len())
	}
}

func TestLoadExpiresAnExistingSandbox(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1)
	s.record(t, 1)
	b := s.sandbox(t, 0)
	if err := s.LoadState(s.SaveState()); err != nil {
		t.Fatal(err)
	}
	if err := b.Play(); !errors.Is(err, format.WarnExpired) {
		t.Errorf("Play gives %v", err)
	}
	s.wantWarnings(t, format.WarnExpired)
}

func TestDisabledSystemRecordsNothingUntilReverted(t *testing.T) {
	s := newStage(SystemOptions{})
	s.Disable()
	s.record(t, 1)
	if s.Array().Len() != 0 {
		t.Error("recorded while disabled")
	}
	s.Revert()
	s.record(t, 1)
	if s.Array().Len() != 1 {
		t.Error("not recorded after revert")
	}
}

func TestSandboxPlaysTheOrderAfterAnEdit(t *testing.T) {
	s := newStage(SystemOptions{})
	for code := range uint16(4) {
		s.active(code)
	}
	s.record(t, 0, 1, 3)
	old := s.sandbox(t, 0)
	s.Array().Insert(2, 2)
	s.Array().Set(0, 3, format.String("longer than before"))
	if _, err := old.Step(); !errors.Is(err, format.WarnExpired) {
		t.Errorf("the old sandbox steps: %v", err)
	}
	s.log = nil
	if err := s.sandbox(t, 0).Play(); err != nil {
		t.Fatal(err)
	}
	s.wantLog(t, "stop", "start", "execute 3", "step 1", "execute 1", "step 2", "execute 2", "step 3", "execute 3", "step 4", "stop")
}

func TestArrayWarningsReachTheSystem(t *testing.T) {
	s := newStage(SystemOptions{Array: format.Options{StepGrowth: 0.5, ParamGrowth: 1}})
	s.wantWarnings(t, format.WarnGrowth, format.WarnGrowth)
	s.active(1)
	// A boolean stored as 2 is read as false, with a warning when it is read.
	if err := s.LoadState(format.State{Length: 1, CommandWidth: format.Width8, CommandArray: []byte{1, 1}, ParamArray: []byte{0, 2}}); err != nil {
		t.Fatal(err)
	}
	s.warnings = nil
	mustStep(t, s.sandbox(t, 0))
	s.wantWarnings(t, format.WarnBoolean)
}
