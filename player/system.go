package player

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"reprise/format"
)

// ErrCodeWidth is returned for a step whose command code does not fit the
// recording's 8-bit width; nothing was recorded. Record in 16-bit width.
var ErrCodeWidth = errors.New("command code does not fit 8 bits: record in 16-bit width")

// SystemOptions says how a ReplaySystem is made. The zero SystemOptions are
// good.
type SystemOptions struct {
	// Array is for the recording. Its Warn is not used: see Warn.
	Array format.Options
	// Warn takes every warning of the system, its recording and its
	// sandboxes; nil drops them. It must not call back.
	Warn func(format.Warning)
	// StepInterval is the time from one active step to the next at speed 1;
	// 0 means that steps take only the time of their execution.
	StepInterval time.Duration
	// Clock paces sandboxes; nil means SystemClock.
	Clock Clock
}

// ReplaySystem holds a recording, the commands that its codes stand for, and
// the sandbox that plays it. Systems share nothing. Its methods may be called
// from any goroutine.
type ReplaySystem struct {
	options SystemOptions

	mu       sync.Mutex
	array    *format.ReplayArray
	warnings []format.Warning // of the array, until the lock is free
	commands map[uint16]Command
	sandbox  *Sandbox
	hooks    []SystemHooks
	safety   collection
}

// SystemHooks are told what a system does; each may be nil.
type SystemHooks struct {
	// OnRecordCommand: a step was added. The index is zero-based, the
	// parameters are as stored.
	OnRecordCommand func(code uint16, index int, params []format.Value)
	// OnCreateSandbox: sandbox is now the current one.
	OnCreateSandbox func(sandbox *Sandbox)
}

// Resetter puts a game into the state that a playback starts from.
type Resetter interface {
	// Reset restores save, or the game's initial state where it is nil.
	Reset(save []byte) error
}

// ResetFunc is a Resetter that is a function.
type ResetFunc func(save []byte) error

// Reset calls f.
func (f ResetFunc) Reset(save []byte) error { return f(save) }

// NewSystem makes a system with an empty recording, in 8-bit width unless
// the options say otherwise.
func NewSystem(o SystemOptions) *ReplaySystem {
	s := &ReplaySystem{commands: make(map[uint16]Command)}
	o.Array.Warn = func(w format.Warning) { s.warnings = append(s.warnings, w) }
	o.Clock = clockOr(o.Clock)
	if o.Warn == nil {
		o.Warn = func(format.Warning) {}
	}
	s.options = o
	s.array = format.NewArray(o.Array)
	s.deliver()
	return s
}

// AddHooks adds hooks to those that are there.
func (s *ReplaySystem) AddHooks(h SystemHooks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = append(s.hooks, h)
}

// Register gives a code its command. A code that has one keeps it, with
// warning 163.
func (s *ReplaySystem) Register(code uint16, command Command) {
	s.mu.Lock()
	_, taken := s.commands[code]
	if !taken {
		s.commands[code] = command
	}
	s.mu.Unlock()
	if taken {
		s.options.Warn(format.Warning{Code: format.WarnCodeTaken, Step: format.NoStep, Command: code})
	}
}

// Command gives the command of a code; nil where there is none.
func (s *ReplaySystem) Command(code uint16) Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commands[code]
}

// Record adds a step to the recording. While recording is disabled it does
// nothing. An error means that the step was not added: ErrCodeWidth, or
// warning 150 where the recording is at its maximum.
func (s *ReplaySystem) Record(code uint16, params ...format.Value) error {
	s.mu.Lock()
	if s.array.Width() == format.Width8 && code > 255 {
		s.mu.Unlock()
		return fmt.Errorf("%w (code %d)", ErrCodeWidth, code)
	}
	added := s.array.Add(code, params...)
	full := fullWarning(s.warnings)
	hooks := s.hooks
	var step format.Step
	if added && len(hooks) > 0 {
		step, _ = s.array.Get(s.array.Len() - 1)
	}
	s.mu.Unlock()
	s.deliver()
	if !added {
		return full
	}
	for _, h := range hooks {
		if h.OnRecordCommand != nil {
			h.OnRecordCommand(step.Code, step.Index, step.Params)
		}
	}
	return nil
}

// fullWarning finds the reason why nothing was added.
func fullWarning(warnings []format.Warning) error {
	for _, w := range warnings {
		if w.Code == format.WarnFull {
			return w
		}
	}
	return nil
}

// Disable switches recording off: Record adds nothing.
func (s *ReplaySystem) Disable() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.array.Disable()
}

// Revert switches recording on again.
func (s *ReplaySystem) Revert() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.array.Revert()
}

// Array gives the recording itself, to read and edit it while nothing else
// uses the system. Edits expire the streams of sandboxes.
func (s *ReplaySystem) Array() *format.ReplayArray { return s.array }

// SaveState gives the recording. Its areas are the live ones: copy them to
// keep them.
func (s *ReplaySystem) SaveState() format.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.array.SaveState()
}

// LoadState replaces the recording, and may go on using the state's areas. It
// checks all of it first: an error leaves the recording as it was. Commands
// stay; the stream of a sandbox expires.
func (s *ReplaySystem) LoadState(state format.State) error {
	s.mu.Lock()
	err := s.array.LoadState(state)
	s.mu.Unlock()
	s.deliver()
	return err
}

// CreateSandbox stops the present sandbox, resets the game (resetter may be
// nil) and makes a sandbox that plays the recording from step start on. It
// does not begin to play. Where another goroutine plays the present one, wait
// for its Release first. Switch recording off for as long as the new one
// plays: a step recorded meanwhile expires its stream.
func (s *ReplaySystem) CreateSandbox(start int, resetter Resetter, save []byte) (*Sandbox, error) {
	return s.createSandbox(resetter, save, func() StepStream {
		s.mu.Lock()
		defer s.mu.Unlock()
		return &lockedStream{system: s, stream: s.array.Stream(start)}
	})
}

// CreateSandboxOver is CreateSandbox for steps that come from elsewhere, such
// as the chunks of a file, with this system's commands.
func (s *ReplaySystem) CreateSandboxOver(stream StepStream, resetter Resetter, save []byte) (*Sandbox, error) {
	return s.createSandbox(resetter, save, func() StepStream { return stream })
}

// createSandbox opens the stream behind the reset, which may write.
func (s *ReplaySystem) createSandbox(resetter Resetter, save []byte, open func() StepStream) (*Sandbox, error) {
	s.Release()
	if resetter != nil {
		if err := resetter.Reset(save); err != nil {
			return nil, fmt.Errorf("reset before playback: %w", err)
		}
	}
	sandbox := s.newSandbox(open())
	s.mu.Lock()
	s.sandbox = sandbox
	hooks := s.hooks
	s.mu.Unlock()
	for _, h := range hooks {
		if h.OnCreateSandbox != nil {
			h.OnCreateSandbox(sandbox)
		}
	}
	return sandbox, nil
}

func (s *ReplaySystem) newSandbox(stream StepStream) *Sandbox {
	return &Sandbox{
		lookup:   s.Command,
		warn:     s.options.Warn,
		steps:    newCursor(stream),
		start:    stream.Index(),
		clock:    s.options.Clock,
		interval: s.options.StepInterval,
		wake:     make(chan struct{}, 1),
		pace:     pace{speed: 1},
	}
}

// Sandbox gives the current sandbox; nil where there is none.
func (s *ReplaySystem) Sandbox() *Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sandbox
}

// Release stops the current sandbox, if there is one, and forgets it. The
// channel is closed when no step of it is being executed any more.
func (s *ReplaySystem) Release() <-chan struct{} {
	s.mu.Lock()
	sandbox := s.sandbox
	s.sandbox = nil
	s.mu.Unlock()
	if sandbox != nil {
		return sandbox.Stop()
	}
	done := make(chan struct{})
	close(done)
	return done
}

// deliver hands on the array's warnings without the lock.
func (s *ReplaySystem) deliver() {
	s.mu.Lock()
	warnings := s.warnings
	s.warnings = nil
	s.mu.Unlock()
	for _, w := range warnings {
		s.options.Warn(w)
	}
}

// lockedStream reads the recording under the system's lock, so that recording
// in another goroutine expires it and does no harm.
type lockedStream struct {
	system *ReplaySystem
	stream *format.ReadStream
}

func (l *lockedStream) Read() (format.Step, bool) {
	defer l.system.deliver()
	l.system.mu.Lock()
	defer l.system.mu.Unlock()
	return l.stream.Read()
}

func (l *lockedStream) Index() int {
	l.system.mu.Lock()
	defer l.system.mu.Unlock()
	return l.stream.Index()
}

func (l *lockedStream) Len() int {
	l.system.mu.Lock()
	defer l.system.mu.Unlock()
	return l.stream.Len()
}

func (l *lockedStream) Expired() bool {
	l.system.mu.Lock()
	defer l.system.mu.Unlock()
	return l.stream.Expired()
}

func (l *lockedStream) Destroy() {
	l.system.mu.Lock()
	defer l.system.mu.Unlock()
	l.stream.Destroy()
}
