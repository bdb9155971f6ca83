package player

import (
	"errors"
	"slices"
	"testing"

	"reprise/format"
)

func TestStepOnFreshSandboxRunsOneCommand(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1)
	s.record(t, 1)
	b := s.sandbox(t, 0)
	mustStep(t, b)
	s.wantLog(t, "execute 1", "step 1")
	if b.Replayed() != 1 || b.Playing() || b.Ended() {
		t.Errorf("replayed %d, playing %v, ended %v", b.Replayed(), b.Playing(), b.Ended())
	}
}

func TestFailedCommandStopsWithError72(t *testing.T) {
	s := newStage(SystemOptions{})
	why := errors.New("the door is locked")
	a := s.active(1)
	a.result, a.err = Failed, why
	s.active(2)
	s.record(t, 1, 2)
	b := s.sandbox(t, 0)
	err := failStep(t, b, format.WarnStepFailed)
	var failure *StepFailure
	if !errors.As(err, &failure) || failure.Phase != PhaseExecute || failure.Step != 0 || failure.Code != 1 || !errors.Is(err, why) {
		t.Errorf("error is %v", err)
	}
	if b.Replayed() != 2 {
		t.Errorf("replayed %d, want 2: the sandbox looks ahead", b.Replayed())
	}
	s.wantLog(t, "execute 1", "stop")
	failStep(t, b, format.WarnStepFailed)
	if err := b.Play(); !errors.Is(err, why) {
		t.Errorf("Play after a failure gives %v", err)
	}
	s.wantLog(t)
}

func TestUnregisteredCodeWarns157(t *testing.T) {
	s := newStage(SystemOptions{})
	s.record(t, 77)
	b := s.sandbox(t, 0)
	failStep(t, b, format.WarnUnknownCode)
	if w := s.wantWarnings(t, format.WarnUnknownCode); w[0].Command != 77 || w[0].Step != 0 {
		t.Errorf("warning is %v", w[0])
	}
}

func TestFinalizeRunsBeforeTheNextCode(t *testing.T) {
	s := newStage(SystemOptions{})
	s.finalizing(1)
	s.active(2)
	s.record(t, 1, 1, 2, 1)
	b := s.sandbox(t, 0)
	if err := b.Play(); err != nil {
		t.Fatal(err)
	}
	s.wantLog(t, "start", "execute 1", "step 1", "execute 1", "step 2", "finalize 1",
		"execute 2", "step 3", "execute 1", "step 4", "finalize 1", "stop")
}

func TestFailedFinalizeStopsWithError72(t *testing.T) {
	s := newStage(SystemOptions{})
	s.finalizing(1).end = Failed
	s.active(2)
	s.record(t, 1, 2)
	b := s.sandbox(t, 0)
	mustStep(t, b)
	err := failStep(t, b, format.WarnStepFailed)
	var failure *StepFailure
	if !errors.As(err, &failure) || failure.Phase != PhaseFinalize || failure.Code != 1 || failure.Step != 0 {
		t.Errorf("error is %v", err)
	}
	if s.count("execute 2") != 0 {
		t.Error("the next command was executed")
	}
}

func TestWritingAfterAStepWarns156(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1)
	s.record(t, 1, 1)
	b := s.sandbox(t, 0)
	mustStep(t, b)
	s.record(t, 1)
	failStep(t, b, format.WarnExpired)
	s.wantWarnings(t, format.WarnExpired)
	failStep(t, b, format.WarnExpired)
	s.wantWarnings(t, format.WarnExpired)
}

func TestStartIndexCountsTheStepsBefore(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1)
	s.active(2)
	s.active(3)
	s.record(t, 1, 2, 3)
	b := s.sandbox(t, 2)
	if b.Replayed() != 2 || b.StartIndex() != 2 {
		t.Errorf("replayed %d, start %d", b.Replayed(), b.StartIndex())
	}
	mustStep(t, b)
	s.wantLog(t, "execute 3", "step 3")
}

func TestSteppingPastTheLastStepFinalizesAndEnds(t *testing.T) {
	s := newStage(SystemOptions{})
	s.finalizing(1)
	s.record(t, 1)
	b := s.sandbox(t, 0)
	mustStep(t, b)
	s.wantLog(t, "execute 1", "step 1")
	for range 2 {
		if ok, err := b.Step(); ok || err != nil {
			t.Fatalf("Step past the end gives %v, %v", ok, err)
		}
	}
	s.wantLog(t, "finalize 1", "stop")
	if !b.Ended() || b.Playing() {
		t.Errorf("ended %v, playing %v", b.Ended(), b.Playing())
	}
}

func TestEmptyRecordingEndsAtOnce(t *testing.T) {
	s := newStage(SystemOptions{})
	b := s.sandbox(t, 0)
	if err := b.Play(); err != nil || !b.Ended() {
		t.Fatalf("Play gives %v, ended %v", err, b.Ended())
	}
	s.wantLog(t, "start", "stop")
}

func TestDeclaredParametersAreCheckedBeforeExecute(t *testing.T) {
	executed := 0
	command := Func(func(format.Step) (Result, error) { executed++; return Success, nil }, TypeInt, TypeFloat, TypeString)
	for _, c := range []struct {
		name   string
		params []format.Value
		want   bool
	}{
		{"as declared", []format.Value{format.Int(1), format.Float(1.5), format.String("a")}, true},
		{"integral number for a float", []format.Value{format.Int(1), format.Number(2), format.String("a")}, true},
		{"one too few", []format.Value{format.Int(1), format.Float(1)}, false},
		{"one too many", []format.Value{format.Int(1), format.Float(1), format.String("a"), format.Int(2)}, false},
		{"float for an int", []format.Value{format.Float(1), format.Float(1), format.String("a")}, false},
		{"bytes for a string", []format.Value{format.Int(1), format.Float(1), format.Bytes([]byte("a"))}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(SystemOptions{})
			s.Register(1, command)
			if err := s.Record(1, c.params...); err != nil {
				t.Fatal(err)
			}
			executed = 0
			ok, err := s.sandbox(t, 0).Step()
			if ok != c.want || executed != map[bool]int{true: 1}[c.want] || errors.Is(err, ErrParams) == c.want {
				t.Errorf("Step gives %v, %v; executed %d times", ok, err, executed)
			}
		})
	}
}

func TestIgnoredIsCountedAndPlaybackGoesOn(t *testing.T) {
	s := newStage(SystemOptions{})
	a := s.finalizing(1)
	a.result, a.err, a.end = Ignored, errors.New("already open"), Ignored
	s.active(2)
	s.record(t, 1, 2)
	b := s.sandbox(t, 0)
	var reasons []error
	b.AddHooks(SandboxHooks{OnIgnored: func(step format.Step, err error) { reasons = append(reasons, err) }})
	if err := b.Play(); err != nil {
		t.Fatal(err)
	}
	if b.Ignored() != 2 || len(reasons) != 2 || reasons[0] != a.err || reasons[1] != nil {
		t.Errorf("ignored %d, reasons %v", b.Ignored(), reasons)
	}
}

func TestSuccessWithAnErrorIsAFailure(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1).err = errors.New("half done")
	s.record(t, 1)
	failStep(t, s.sandbox(t, 0), format.WarnStepFailed)
}

func TestParametersStayValidDuringExecuteAndLookAhead(t *testing.T) {
	s := newStage(SystemOptions{})
	var got []string
	s.active(1).during = func(step format.Step) {
		if p, err := s.Sandbox().GetPassive(); err == nil {
			got = append(got, p.Step.Params[0].Str())
			p.Next(Success)
			got = append(got, p.Step.Params[0].Str())
		}
		got = append(got, step.Params[0].Str())
	}
	s.Register(2, NewPassive(TypeString))
	for _, text := range []string{"a", "b", "c"} {
		s.Record(1, format.String(text))
		s.Record(2, format.String("answer to "+text))
	}
	if err := s.sandbox(t, 0).Play(); err != nil {
		t.Fatal(err)
	}
	want := []string{"answer to a", "answer to a", "a", "answer to b", "answer to b", "b", "answer to c", "answer to c", "c"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	s.wantWarnings(t)
}

// listStream is a step stream from elsewhere than an array.
type listStream struct {
	codes     []uint16
	at        int
	err       error
	destroyed int
}

func (l *listStream) Read() (format.Step, bool) {
	if l.at == len(l.codes) {
		return format.Step{}, false
	}
	l.at++
	return format.Step{Code: l.codes[l.at-1], Index: l.at}, true
}
func (l *listStream) Index() int    { return l.at }
func (l *listStream) Len() int      { return -1 }
func (l *listStream) Expired() bool { return false }
func (l *listStream) Err() error    { return l.err }
func (l *listStream) Destroy()      { l.destroyed++ }

func TestSandboxPlaysAnyStepStream(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1)
	s.active(2)
	b, err := s.CreateSandboxOver(&listStream{codes: []uint16{1, 2, 1}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.record(t, 1) // the recording is another matter
	if err := b.Play(); err != nil || !b.Ended() {
		t.Fatalf("Play gives %v", err)
	}
	s.wantLog(t, "execute 1", "execute 2", "execute 1")
}

func TestStreamErrorFailsPlayback(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1)
	torn := &format.TornError{Offset: 10, Size: 12}
	b, _ := s.CreateSandboxOver(&listStream{codes: []uint16{1}, err: torn}, nil, nil)
	if err := b.Play(); !errors.Is(err, format.ErrTorn) || b.Ended() || b.Err() == nil {
		t.Fatalf("Play gives %v, ended %v", err, b.Ended())
	}
	s.wantLog(t, "execute 1")
}

func TestPanicInACommandLeavesAFailedSandbox(t *testing.T) {
	s := newStage(SystemOptions{})
	var pause <-chan struct{}
	s.active(1).during = func(format.Step) {
		pause = s.Sandbox().Pause()
		panic("no such room")
	}
	s.record(t, 1, 1)
	b := s.sandbox(t, 0)
	func() {
		defer func() {
			if recover() != "no such room" {
				t.Error("the panic did not reach the caller")
			}
		}()
		b.Play()
	}()
	var broken *SimulationError
	if !closed(pause) || b.Playing() || !errors.As(b.Err(), &broken) {
		t.Errorf("waiter released %v, playing %v, err %v", closed(pause), b.Playing(), b.Err())
	}
	if ok, err := b.Step(); ok || !errors.As(err, &broken) {
		t.Errorf("Step gives %v, %v", ok, err)
	}
}

func TestTheStreamIsDestroyedWhenPlaybackIsOver(t *testing.T) {
	for name, over := range map[string]func(b *Sandbox){
		"ended":   func(b *Sandbox) { b.Play() },
		"stopped": func(b *Sandbox) { b.Step(); b.Stop() },
		"failed":  func(b *Sandbox) { b.Step(); b.Step() },
	} {
		s := newStage(SystemOptions{})
		s.active(1)
		l := &listStream{codes: []uint16{1}}
		if name == "failed" {
			l.codes = append(l.codes, 99)
		}
		b, _ := s.CreateSandboxOver(l, nil, nil)
		over(b)
		b.Stop()
		if l.destroyed != 1 {
			t.Errorf("%s: destroyed %d times", name, l.destroyed)
		}
	}
}

func TestAPanicInTheStopNoticeKeepsTheReason(t *testing.T) {
	s := newStage(SystemOptions{})
	s.active(1).result = Failed
	s.record(t, 1)
	b := s.sandbox(t, 0)
	b.AddHooks(SandboxHooks{OnStopReplay: func() { panic("no window") }})
	func() {
		defer func() { recover() }()
		b.Step()
	}()
	s.wantLog(t, "execute 1", "stop")
	if !errors.Is(b.Err(), format.WarnStepFailed) {
		t.Errorf("Err is %v", b.Err())
	}
}
