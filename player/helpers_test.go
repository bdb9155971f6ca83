package player

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"reprise/format"
)

// stage is a replay system whose commands log what is called.
type stage struct {
	*ReplaySystem
	mu       sync.Mutex
	log      []string
	warnings []format.Warning
}

func newStage(o SystemOptions) *stage {
	s := &stage{}
	o.Warn = func(w format.Warning) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.warnings = append(s.warnings, w)
	}
	s.ReplaySystem = NewSystem(o)
	return s
}

func (s *stage) note(text string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf(text, args...))
}

// count counts the log's entries that are text.
func (s *stage) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, entry := range s.log {
		if entry == text {
			n++
		}
	}
	return n
}

// wantLog compares the log and clears it.
func (s *stage) wantLog(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.log, want) {
		t.Errorf("log is %q, want %q", s.log, want)
	}
	s.log = nil
}

// wantWarnings compares the numbers of the warnings and clears them.
func (s *stage) wantWarnings(t *testing.T, want ...format.WarningCode) []format.Warning {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []format.WarningCode
	for _, w := range s.warnings {
		got = append(got, w.Code)
	}
	if !slices.Equal(got, want) {
		t.Errorf("warnings are %d, want %d", got, want)
	}
	warnings := s.warnings
	s.warnings = nil
	return warnings
}

// act is an active command that logs, answers what its fields say, and calls
// during where it is set.
type act struct {
	stage  *stage
	code   uint16
	during func(step format.Step)
	result Result
	err    error
}

func (a *act) Type() CommandType       { return Active }
func (a *act) ParamTypes() []ParamType { return nil }

func (a *act) Execute(step format.Step) (Result, error) {
	a.stage.note("execute %d", a.code)
	if a.during != nil {
		a.during(step)
	}
	return a.result, a.err
}

// run is an act with a finalize.
type run struct {
	act
	end    Result
	endErr error
}

func (r *run) Finalize() (Result, error) {
	r.stage.note("finalize %d", r.code)
	return r.end, r.endErr
}

// active registers an act under code.
func (s *stage) active(code uint16) *act {
	a := &act{stage: s, code: code}
	s.Register(code, a)
	return a
}

// finalizing registers a run under code.
func (s *stage) finalizing(code uint16) *run {
	r := &run{act: act{stage: s, code: code}}
	s.Register(code, r)
	return r
}

// record adds one step without parameters for each code.
func (s *stage) record(t *testing.T, codes ...uint16) {
	t.Helper()
	for _, code := range codes {
		if err := s.Record(code); err != nil {
			t.Fatal(err)
		}
	}
}

// sandbox makes a sandbox that logs its notices.
func (s *stage) sandbox(t *testing.T, start int) *Sandbox {
	t.Helper()
	b, err := s.CreateSandbox(start, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.watch(b)
	return b
}

func (s *stage) watch(b *Sandbox) {
	b.AddHooks(SandboxHooks{
		OnStep:         func(step format.Step) { s.note("step %d", step.Index) },
		OnStartReplay:  func() { s.note("start") },
		OnPauseReplay:  func() { s.note("pause") },
		OnResumeReplay: func() { s.note("resume") },
		OnStopReplay:   func() { s.note("stop") },
		OnSpeedSet:     func(speed float64) { s.note("speed %v", speed) },
	})
}

// mustStep steps and wants true.
func mustStep(t *testing.T, b *Sandbox) {
	t.Helper()
	if ok, err := b.Step(); !ok || err != nil {
		t.Fatalf("Step gives %v, %v", ok, err)
	}
}

// failStep steps and wants false with an error of code.
func failStep(t *testing.T, b *Sandbox, code format.WarningCode) error {
	t.Helper()
	ok, err := b.Step()
	if ok || !errors.Is(err, code) {
		t.Fatalf("Step gives %v, %v; want false and %d", ok, err, code)
	}
	return err
}

// closed reports whether a channel is closed by now.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
