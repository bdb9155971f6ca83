package player

import (
	"sync"
	"time"

	"reprise/format"
)

// Sandbox plays a step stream: it looks up each step's command and executes
// it. It owns neither the recording nor the game's state.
//
// One step is: the pending step is taken and the one behind it is read (the
// look-ahead, so that a passive step can be handed over while the active one
// asks for it). Where the taken step's code differs from that of the last
// active step, the last command is finalized first. A passive step that
// nobody took is skipped with warning 194.
//
// Play, Resume and Step do the work in the calling goroutine; no other runs.
// They must not be called from a command or a hook, which gives ErrBusy. All
// other methods may be called from anywhere at any time and never wait.
type Sandbox struct {
	lookup   func(code uint16) Command
	warn     func(format.Warning)
	steps    *cursor
	start    int
	clock    Clock
	interval time.Duration
	wake     chan struct{}
	// settled is called before an active step is taken, when the state
	// after all steps before it is final. An error leaves the step pending.
	settled func(next format.Step) error

	// last and finalizer belong to the goroutine that plays.
	last      format.Step
	finalizer Finalizer

	mu    sync.Mutex
	hooks []SandboxHooks
	state sandboxState
	// playing is set by Play, and reset by a stop or a failure.
	playing bool
	// driving is set while a goroutine is inside Play, Resume or Step.
	driving               bool
	pauseAsked, stopAsked bool
	// waiters are closed when no step is being executed.
	waiters []chan struct{}
	pace    pace
	// due is the position of the next step.
	due     float64
	ignored int
	// refused is a passive step that was answered Failed.
	refused *StepFailure
	err     error
}

type sandboxState uint8

const (
	sandboxReady   sandboxState = 0
	sandboxPlaying sandboxState = 1
	sandboxPaused  sandboxState = 2
	sandboxEnded   sandboxState = 3
	sandboxStopped sandboxState = 4
	sandboxFailed  sandboxState = 5
)

// over reports whether the state is final.
func (s sandboxState) over() bool { return s >= sandboxEnded }

// Playing reports whether playback was started and neither stopped nor failed.
// It stays true while paused, and at the end.
func (b *Sandbox) Playing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.playing
}

// Pausing reports whether playback is paused, or will be after this step.
func (b *Sandbox) Pausing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == sandboxPaused || b.state == sandboxPlaying && b.pauseAsked
}

// Ended reports whether all steps were played.
func (b *Sandbox) Ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == sandboxEnded
}

// Err gives what made playback fail: a StepFailure, a format.Warning of
// number 156 or 157, or the error of the stream. Nil where it did not fail.
func (b *Sandbox) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Ignored counts the answers that were Ignored.
func (b *Sandbox) Ignored() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ignored
}

// Speed is the present speed; 1 is normal.
func (b *Sandbox) Speed() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pace.speed
}

// Replayed is the number of steps read, with those before the start. It is
// one ahead of the step being executed, because the sandbox looks ahead; to
// find out whether playback is over, use Ended.
func (b *Sandbox) Replayed() int { return b.steps.replayed() }

// StartIndex is the index that playback starts at.
func (b *Sandbox) StartIndex() int { return b.start }

// advance plays one step: true where a step was executed or skipped, false at
// the end and with an error.
func (b *Sandbox) advance() (bool, error) {
	if err := b.usable(); err != nil {
		return false, err
	}
	next, ok, err := b.steps.peek()
	switch {
	case err != nil:
		return false, b.fail(err)
	case !ok:
		return false, b.finish()
	}
	command := b.lookup(next.Code)
	switch {
	case command == nil:
		w := format.Warning{Code: format.WarnUnknownCode, Step: next.Index - 1, Command: next.Code}
		b.warn(w)
		return false, b.fail(w)
	case command.Type() == Passive:
		b.skipPassive(next)
		return true, nil
	}
	if err := b.settle(next); err != nil {
		return false, err
	}
	if err := b.execute(command); err != nil {
		return false, err
	}
	return true, nil
}

// usable refuses to go on over an expired stream or after a failure.
func (b *Sandbox) usable() error {
	if b.steps.expired() {
		w := format.Warning{Code: format.WarnExpired, Step: b.steps.replayed()}
		b.warn(w)
		if b.started() {
			b.fail(w)
		}
		return w
	}
	b.mu.Lock()
	err, refused := b.err, b.refused
	b.mu.Unlock()
	if err == nil && refused != nil {
		return b.fail(refused)
	}
	return err
}

func (b *Sandbox) started() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == sandboxPlaying || b.state == sandboxPaused
}

func (b *Sandbox) skipPassive(step format.Step) {
	b.warn(format.Warning{Code: format.WarnPassiveSkipped, Step: step.Index - 1, Command: step.Code, After: b.last.Code})
	b.steps.skip()
}

// settle brings the steps before next to their end.
func (b *Sandbox) settle(next format.Step) error {
	if b.last.Code != next.Code {
		if err := b.finalize(); err != nil {
			return err
		}
	}
	if b.settled == nil {
		return nil
	}
	return b.settled(next)
}

// settleNext skips passive steps that nobody took and settles the last active
// step where the next one is known, as the next steps would do.
func (b *Sandbox) settleNext() error {
	for {
		if err := b.usable(); err != nil {
			return err
		}
		next, ok, err := b.steps.peek()
		if err != nil || !ok {
			return err
		}
		command := b.lookup(next.Code)
		if command == nil || command.Type() == Active {
			return b.settle(next)
		}
		b.skipPassive(next)
	}
}

// finalize ends the run of the last active command, once.
func (b *Sandbox) finalize() error {
	f := b.finalizer
	if f == nil {
		return nil
	}
	b.finalizer = nil
	result, err := f.Finalize()
	return b.judge(PhaseFinalize, b.last, result, err)
}

func (b *Sandbox) execute(command Command) error {
	step := b.steps.take()
	b.last = format.Step{Code: step.Code, Index: step.Index}
	b.finalizer, _ = command.(Finalizer)
	b.moveDue()
	if err := checkParams(command.ParamTypes(), step); err != nil {
		return b.judge(PhaseExecute, step, Failed, err)
	}
	result, err := command.Execute(step)
	if err := b.judge(PhaseExecute, step, result, err); err != nil {
		return err
	}
	b.mu.Lock()
	refused := b.refused
	b.mu.Unlock()
	if refused != nil {
		return b.fail(refused)
	}
	b.notifyStep(step)
	return nil
}

// judge turns an answer into a failure, a notice or nothing.
func (b *Sandbox) judge(phase Phase, step format.Step, result Result, err error) error {
	switch {
	case result == Success && err == nil:
		return nil
	case result == Ignored:
		b.notifyIgnored(step, err)
		return nil
	}
	return b.fail(&StepFailure{Step: step.Index - 1, Code: step.Code, Phase: phase, Err: err})
}

// finish ends playback behind the last step.
func (b *Sandbox) finish() error {
	if err := b.finalize(); err != nil {
		return err
	}
	b.close(sandboxEnded, nil)
	return nil
}

// fail ends playback with err and returns it.
func (b *Sandbox) fail(err error) error {
	b.close(sandboxFailed, err)
	return err
}

// close makes the state final and gives the stop notice, once.
func (b *Sandbox) close(state sandboxState, err error) {
	b.mu.Lock()
	if b.state.over() {
		b.mu.Unlock()
		return
	}
	b.state, b.err = state, err
	b.playing = b.playing && state == sandboxEnded
	b.mu.Unlock()
	b.steps.destroy()
	b.notifyPlain(onStop)
}
