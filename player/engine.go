package player

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"reprise/format"
)

// EngineOptions says how a replay is run. Only Start.Meta must be given.
type EngineOptions struct {
	// Start describes the replay's start. Where its State is nil, the run
	// starts from a keyframe before the source's first tick, if there is
	// one, and otherwise from the game's initial state, which only fits the
	// session's first tick. With a State, NextTick is the first tick.
	Start Start
	// Underway says that the simulation is in the state before
	// Start.NextTick already: it is not started again.
	Underway bool
	// Speed is the speed at first; 0 means Max. Paused starts paused.
	Speed  float64
	Paused bool
	// RecordedTimes paces by the times recorded with the ticks, where there
	// are some, and not by the tick rate.
	RecordedTimes bool
	// TurnInterval is the time of a tick in a game without a tick rate; 0
	// means a second.
	TurnInterval time.Duration
	// Clock paces; nil means SystemClock.
	Clock Clock
	// KeepGoing goes on after a desync. The first one still is the result.
	KeepGoing bool
	// Last is the last tick to run; nil means all. The game is then in the
	// state exactly after it.
	Last *format.Tick
	// Trace takes the hash after every tick; the bytes are valid only
	// during the call, and an error ends the run. Nil means that only ticks
	// with a recorded hash are hashed.
	Trace func(tick format.Tick, hash []byte) error
	// OnOutcome is told every answer before it is compared; it may be nil.
	OnOutcome func(Outcome)
}

// Engine runs one replay through a simulation: each tick when it is due, every
// recorded hash compared. Run does the work; the other methods control it, may
// be called from any goroutine and in every state, and never wait.
type Engine struct {
	sim    Simulation
	source Source
	o      EngineOptions

	// Of the goroutine that runs:
	report   Report
	queue    expectations
	compare  comparer
	next     format.Tick
	ready    bool // the simulation is in the state before next
	begun    bool
	keyframe format.Keyframe
	hasFrame bool
	schedule schedule

	// emit is take, made once: a method value of its own for every tick
	// would be an allocation.
	emit    func(Outcome) error
	control control
}

// NewEngine makes an engine that runs source through sim.
func NewEngine(sim Simulation, source Source, o EngineOptions) *Engine {
	e := &Engine{sim: sim, source: source, o: o}
	meta := o.Start.Meta
	e.compare = comparer{parts: meta.HashParts, width: meta.HashBytes}
	e.schedule = newSchedule(meta, o)
	e.next = meta.FirstTick
	if o.Start.State != nil || o.Underway {
		e.next = o.Start.NextTick
	}
	e.ready, e.begun = o.Underway, o.Underway
	e.emit = e.take
	e.control.init(o)
	return e
}

// Run makes an engine and runs it.
func Run(ctx context.Context, sim Simulation, source Source, o EngineOptions) (Report, error) {
	return NewEngine(sim, source, o).Run(ctx)
}

// errUsed is returned by a second Run.
var errUsed = errors.New("an engine runs once: make a new one")

// errLast ends a run at EngineOptions.Last.
var errLast = errors.New("the last tick that was asked for")

// Run runs the replay, once. Nil means that all ticks were run and that every
// recorded hash, at least one, was equal. Otherwise the error is or wraps, in
// the order of its weight: a DesyncError; a StepFailure; a SimulationError;
// ErrNothingCompared; a GapError; ErrStopped; ErrStart; ErrOutOfOrder; the
// error of the context, the source or the simulation. Several may be joined.
func (e *Engine) Run(ctx context.Context) (Report, error) {
	if !e.control.enter() {
		return Report{}, errUsed
	}
	err := e.run(ctx)
	e.report.Rebased = e.control.rebased()
	err = e.verdict(err)
	e.control.finish(err, e.report.Complete)
	return e.report, err
}

// run gives what ended the run, which a desync with KeepGoing does not.
func (e *Engine) run(ctx context.Context) error {
	err := e.play(ctx)
	if errors.Is(err, errLast) {
		err = nil
	}
	e.report.Complete = err == nil
	e.report.HashesCompared = e.compare.compared
	e.report.good, e.report.hasGood = e.compare.lastGood, e.compare.hasGood
	return err
}

// verdict joins what ended the run with what was found on the way.
func (e *Engine) verdict(err error) error {
	desync := e.report.Desync
	switch {
	case desync != nil && err == nil:
		return desync
	case desync != nil && !errors.Is(err, desync):
		return errors.Join(desync, err)
	}
	var gap *GapError
	if err == nil && len(e.report.Gaps) > 0 {
		err = e.report.Gaps[0]
	}
	switch {
	case e.compare.compared > 0:
		return err
	case err == nil:
		return ErrNothingCompared
	case errors.As(err, &gap):
		return errors.Join(ErrNothingCompared, err)
	}
	return err
}

// play takes item after item until something ends the run.
func (e *Engine) play(ctx context.Context) error {
	for {
		item, err := e.source.Next()
		switch {
		case err == io.EOF:
			return e.end()
		case err != nil:
			return e.breakOff(err)
		case item.Tick != nil:
			err = e.tick(ctx, item.Tick)
		case item.Gap != nil:
			err = e.gap(*item.Gap, true)
		case item.Keyframe != nil:
			e.keepFrame(item.Keyframe)
		}
		if err != nil {
			return err
		}
	}
}

// end settles the last ticks.
func (e *Engine) end() error {
	if e.ready {
		return e.flush(true)
	}
	if gap := e.report.openGap(); gap != nil {
		return gap
	}
	return nil
}

// breakOff has what was given answered before err ends the run.
func (e *Engine) breakOff(err error) error {
	if e.ready && !LooksAhead(e.sim) {
		if flushErr := e.flush(false); flushErr != nil {
			return errors.Join(flushErr, err)
		}
	}
	return err
}

// tick runs one tick when it is due.
func (e *Engine) tick(ctx context.Context, t *format.TickRecord) error {
	if len(t.Hash) > format.MaxHashBytes {
		return fmt.Errorf("tick %d: hash of %d bytes: %w", t.Tick, len(t.Hash), format.ErrCorrupt)
	}
	if err := e.prepare(t.Tick); err != nil {
		return err
	}
	if err := e.control.await(ctx, e.schedule.due(t)); err != nil {
		return e.breakOff(err)
	}
	e.expect(t)
	err := e.sim.Advance(t, t.Hash != nil || e.o.Trace != nil, e.emit)
	e.next = t.Tick + 1
	if err == nil && e.queue.count > 0 && (e.control.resting() || e.isLast(t.Tick)) && !LooksAhead(e.sim) {
		err = e.flush(false)
	}
	e.control.tickEnded()
	if err == nil && e.isLast(t.Tick) && !LooksAhead(e.sim) {
		return errLast
	}
	return err
}

// isLast reports whether nothing behind tick may be simulated.
func (e *Engine) isLast(tick format.Tick) bool { return e.o.Last != nil && tick >= *e.o.Last }

func (e *Engine) expect(t *format.TickRecord) {
	x := e.queue.push()
	x.tick, x.steps = t.Tick, t.Steps
	x.asked = t.Hash != nil || e.o.Trace != nil
	x.wide = copy(x.want[:], t.Hash)
}

// flush has every tick answered.
func (e *Engine) flush(final bool) error {
	if err := e.sim.Flush(final, e.emit); err != nil {
		return err
	}
	if x := e.queue.pop(); x != nil {
		return &SimulationError{Tick: x.tick, HasTick: true, What: "did not answer the tick"}
	}
	return nil
}

// take is given every answer, in tick order.
func (e *Engine) take(o Outcome) error {
	x := e.queue.pop()
	switch {
	case x == nil:
		return &SimulationError{Tick: o.Tick, HasTick: true, What: "answered a tick that was not given"}
	case x.tick != o.Tick:
		what := fmt.Sprintf("answered tick %d instead", o.Tick)
		return &SimulationError{Tick: x.tick, HasTick: true, What: what}
	case o.Failure != nil:
		return o.Failure
	}
	e.count(x, o)
	if e.o.OnOutcome != nil {
		e.o.OnOutcome(o)
	}
	return e.judge(x, o)
}

func (e *Engine) count(x *expectation, o Outcome) {
	if e.report.TicksRun == 0 {
		e.report.FirstTick = o.Tick
	}
	e.report.LastTick = o.Tick
	e.report.TicksRun++
	e.report.StepsRun += x.steps
	e.report.Ignored += o.Ignored
	e.control.reached(o.Tick)
}

func (e *Engine) judge(x *expectation, o Outcome) error {
	desync, err := e.compare.check(x, o.Hash)
	if err != nil {
		return err
	}
	if e.o.Trace != nil {
		if err := e.o.Trace(o.Tick, o.Hash); err != nil {
			return err
		}
	}
	if desync != nil {
		e.report.addDesync(desync)
		if !e.o.KeepGoing {
			return desync
		}
	}
	if e.isLast(o.Tick) && LooksAhead(e.sim) {
		return errLast // it holds ticks behind the last one
	}
	return nil
}
