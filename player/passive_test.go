package player

import (
	"errors"
	"testing"

	"reprise/format"
)

func TestGetPassiveWithNothingPendingIsError73(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1)
	b := s.sandbox(t, 0)
	if p, err := b.GetPassive(); p != nil || !errors.Is(err, format.WarnNoPassive) {
		t.Errorf("GetPassive gives %v, %v", p, err)
	}
	s.wantWarnings(t, format.WarnNoPassive)
}

func TestGetPassiveWithAnActiveStepPendingIsError73(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1).during = func(format.Step) {
		if p, err := s.Sandbox().GetPassive(); p != nil || !errors.Is(err, format.WarnNoPassive) {
			t.Errorf("GetPassive gives %v, %v", p, err)
		}
	}
	s.active(2)
	s.record(t, 1, 2)
	mustStep(t, s.sandbox(t, 0))
	s.wantWarnings(t, format.WarnNoPassive)
}

func TestUnconsumedPassiveStepIsSkippedWith194(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1)
	s.Register(9, NewPassive())
	s.active(2)
	s.record(t, 1, 9, 2)
	b := s.sandbox(t, 0)
	mustStep(t, b)
	s.wantLog(t, "execute 1", "step 1")
	mustStep(t, b)
	s.wantLog(t)
	if w := s.wantWarnings(t, format.WarnPassiveSkipped); w[0].Command != 9 || w[0].After != 1 || w[0].Step != 1 {
		t.Errorf("warning is %v", w[0])
	}
	mustStep(t, b)
	s.wantLog(t, "execute 2", "step 3")
}

// takes registers an active command that takes n passive steps and answers
// each with result, twice.
func (s *stage) takes(t *testing.T, code uint16, n int, result Result) {
	s.active(code).during = func(format.Step) {
		for range n {
			p, err := s.Sandbox().GetPassive()
			if err != nil {
				t.Fatal(err)
			}
			again, _ := s.Sandbox().GetPassive()
			if again == nil || again.Step.Index != p.Step.Index {
				t.Errorf("asked again before Next: %v", again)
			}
			value, _ := p.Step.Params[0].Int64()
			s.note("passive %d", value)
			p.Next(result)
			p.Next(Failed)
			again.Next(Failed)
		}
	}
}

func TestPassiveStepsAreHandedOverInOrder(t *testing.T) {
	s := newStage(SystemOptions{})
	s.takes(t, 1, 2, Success)
	s.Register(9, NewPassive(TypeInt))
	s.active(2)
	s.record(t, 1)
	s.Record(9, format.Int(10))
	s.Record(9, format.Int(20))
	s.record(t, 2)
	b := s.sandbox(t, 0)
	if err := b.Play(); err != nil {
		t.Fatal(err)
	}
	s.wantLog(t, "start", "execute 1", "passive 10", "passive 20", "step 1", "execute 2", "step 4", "stop")
	s.wantWarnings(t)
}

func TestPassiveStepAnsweredFailedStopsPlayback(t *testing.T) {
	s := newStage(SystemOptions{})
	s.takes(t, 1, 1, Failed)
	s.Register(9, NewPassive(TypeInt))
	s.active(2)
	s.record(t, 1)
	s.Record(9, format.Int(10))
	s.record(t, 2)
	b := s.sandbox(t, 0)
	err := b.Play()
	var failure *StepFailure
	if !errors.As(err, &failure) || failure.Phase != PhasePassive || failure.Code != 9 || failure.Step != 1 {
		t.Errorf("Play gives %v", err)
	}
	if b.Playing() || b.Ended() || s.count("execute 2") != 0 {
		t.Errorf("playing %v, ended %v", b.Playing(), b.Ended())
	}
}

func TestPassiveStepAnsweredIgnoredGoesOn(t *testing.T) {
	s := newStage(SystemOptions{})
	s.takes(t, 1, 1, Ignored)
	s.Register(9, NewPassive(TypeInt))
	s.record(t, 1)
	s.Record(9, format.Int(10))
	b := s.sandbox(t, 0)
	if err := b.Play(); err != nil || b.Ignored() != 1 || !b.Ended() {
		t.Errorf("Play gives %v, ignored %d", err, b.Ignored())
	}
}

func TestAnswerAfterTheSkipDoesNothing(t *testing.T) {
	s := newStage(SystemOptions{})
	var late *PassiveStep
	s.active(1).during = func(format.Step) {
		if late == nil {
			late, _ = s.Sandbox().GetPassive()
		}
	}
	s.Register(9, NewPassive())
	s.record(t, 1, 9, 1, 9)
	b := s.sandbox(t, 0)
	for range 3 {
		mustStep(t, b)
	}
	late.Next(Failed)
	if _, err := b.GetPassive(); err != nil {
		t.Errorf("the second passive step is gone: %v", err)
	}
	mustStep(t, b)
	s.wantWarnings(t, format.WarnPassiveSkipped, format.WarnPassiveSkipped)
}

func TestPassiveStepWithOtherParametersStopsPlayback(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1).during = func(format.Step) {
		if p, err := s.Sandbox().GetPassive(); p != nil || !errors.Is(err, ErrParams) {
			t.Errorf("GetPassive gives %v, %v", p, err)
		}
	}
	s.Register(9, NewPassive(TypeString))
	s.record(t, 1)
	s.Record(9, format.Int(1))
	failStep(t, s.sandbox(t, 0), format.WarnStepFailed)
}

func TestPassiveStepTakenFromAnotherGoroutine(t *testing.T) {
	s := newStage(SystemOptions{})
	s.Register(9, NewPassive(TypeInt))
	sum := int64(0)
	s.active(1).during = func(format.Step) {
		done := make(chan int64)
		go func() {
			p, err := s.Sandbox().GetPassive()
			if err != nil {
				t.Error(err)
				close(done)
				return
			}
			value, _ := p.Step.Params[0].Int64()
			p.Next(Success)
			done <- value
		}()
		sum += <-done
	}
	for i := range 50 {
		s.record(t, 1)
		s.Record(9, format.Int(int64(i)))
	}
	if err := s.sandbox(t, 0).Play(); err != nil || sum != 49*50/2 {
		t.Errorf("Play gives %v, sum %d", err, sum)
	}
	s.wantWarnings(t)
}
