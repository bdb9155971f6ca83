package player

import (
	"errors"

	"reprise/format"
)

// turnFeed is the step stream of a turn-based replay: ticks are pushed at one
// end, the sandbox reads their steps at the other, and they stay until they
// are answered.
type turnFeed struct {
	isActive func(code uint16) bool
	// ticks are the unanswered ones; the first reading of them are read.
	ticks   []*turnTick
	reading int
	reader  format.StepReader
	spare   []*turnTick
	// given and read count steps; active counts the active steps that are
	// not being executed yet.
	given, read, active int
}

// turnTick is a tick with its own copy of the bytes.
type turnTick struct {
	tick     format.Tick
	wantHash bool
	ignored  int
	record   format.TickRecord
	// end is the number of steps up to and with this tick's last.
	end int
}

// push copies a tick to the end.
func (f *turnFeed) push(tick *format.TickRecord, wantHash bool) error {
	t := f.fresh()
	t.tick, t.wantHash, t.ignored = tick.Tick, wantHash, 0
	t.record = format.TickRecord{
		Tick: tick.Tick, Width: tick.Width, Steps: tick.Steps,
		Commands: append(t.record.Commands[:0], tick.Commands...),
		Params:   append(t.record.Params[:0], tick.Params...),
	}
	if err := f.countActive(t); err != nil {
		return err
	}
	f.given += tick.Steps
	t.end = f.given
	f.ticks = append(f.ticks, t)
	return nil
}

func (f *turnFeed) fresh() *turnTick {
	n := len(f.spare)
	if n == 0 {
		return new(turnTick)
	}
	t := f.spare[n-1]
	f.spare = f.spare[:n-1]
	return t
}

// countActive counts the tick's active steps, and checks that all steps can
// be read.
func (f *turnFeed) countActive(t *turnTick) error {
	var reader format.StepReader
	var step format.Step
	reader.Reset(&t.record)
	for i := range t.record.Steps {
		if !reader.Next(&step) {
			return unreadable(t.tick, i)
		}
		if f.isActive(step.Code) {
			f.active++
		}
	}
	return nil
}

// Read gives the next step of the ticks pushed so far.
func (f *turnFeed) Read() (format.Step, bool) {
	for f.reading < len(f.ticks) {
		t := f.ticks[f.reading]
		if f.read == t.end-t.record.Steps {
			f.reader.Reset(&t.record)
		}
		var step format.Step
		if f.read < t.end && f.reader.Next(&step) {
			f.read++
			step.Index = f.read
			return step, true
		}
		f.reading++
	}
	return format.Step{}, false
}

// Index is the number of steps read.
func (f *turnFeed) Index() int { return f.read }

// Len is unknown while ticks may come.
func (f *turnFeed) Len() int { return -1 }

// Expired is false: a tick that was pushed does not change.
func (f *turnFeed) Expired() bool { return false }

// pop removes the oldest tick where all its steps are among the first steps.
// Its bytes are used again by a later push.
func (f *turnFeed) pop(steps int) (turnTick, bool) {
	if len(f.ticks) == 0 || f.ticks[0].end > steps {
		return turnTick{}, false
	}
	t := f.ticks[0]
	f.ticks = append(f.ticks[:0], f.ticks[1:]...)
	f.reading = max(0, f.reading-1)
	f.spare = append(f.spare, t)
	return *t, true
}

// oldest gives the oldest unanswered tick; a zero one where there is none.
func (f *turnFeed) oldest() turnTick {
	if len(f.ticks) == 0 {
		return turnTick{}
	}
	return *f.ticks[0]
}

// tickOf gives the unanswered tick of the step with a one-based index.
func (f *turnFeed) tickOf(index int) *turnTick {
	for _, t := range f.ticks {
		if index <= t.end {
			return t
		}
	}
	return nil
}

// locate turns a failure of the sandbox into one that names tick and step;
// nil where err is none.
func (f *turnFeed) locate(err error) *StepFailure {
	var failure StepFailure
	var warning format.Warning
	var cause *StepFailure
	switch {
	case errors.As(err, &cause):
		failure = *cause
	case errors.As(err, &warning) && warning.Code == format.WarnUnknownCode:
		failure = StepFailure{Step: warning.Step, Code: warning.Command, Phase: PhaseExecute, Err: warning}
	default:
		return nil
	}
	t := f.tickOf(failure.Step + 1)
	if t == nil {
		return nil
	}
	failure.Tick, failure.HasTick = t.tick, true
	failure.Step -= t.end - t.record.Steps
	return &failure
}
