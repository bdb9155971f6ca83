package player

import (
	"fmt"
	"runtime/debug"

	"reprise/format"
)

// Local is the simulation of a game in this process. It answers every tick at
// once. A game that panics is a SimulationError, and the process goes on.
type Local struct {
	game  Game
	steps format.StepReader
	hash  []byte
	// broken is set where the game's state is worth nothing until a Reset.
	broken error
}

// NewLocal makes the simulation of g, which nothing else may use.
func NewLocal(g Game) *Local { return &Local{game: g, broken: errNotReset} }

// Game gives the game, to save or dump its state between two calls.
func (l *Local) Game() Game { return l.game }

// Reset starts the game; an error of the game matches ErrStart.
func (l *Local) Reset(start Start) (err error) {
	defer func() { l.broken = err }()
	defer rescue(&err, start.NextTick)
	if err := l.game.Reset(start); err != nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	return nil
}

// Advance simulates the tick and answers it.
func (l *Local) Advance(tick *format.TickRecord, wantHash bool, emit func(Outcome) error) error {
	if l.broken != nil {
		return l.broken
	}
	outcome, err := l.simulate(tick, wantHash)
	if err != nil {
		l.broken = err
		return err
	}
	if outcome.Failure != nil {
		l.broken = outcome.Failure
	}
	if err := emit(outcome); err != nil {
		return err
	}
	return l.broken
}

// Apply applies the first steps of tick and does not end it: what comes next
// must be a Reset or a Load.
func (l *Local) Apply(tick *format.TickRecord, steps int) (err error) {
	if l.broken != nil {
		return l.broken
	}
	defer rescue(&err, tick.Tick)
	_, failure, err := l.applySteps(tick, min(steps, tick.Steps))
	if err == nil && failure != nil {
		return failure
	}
	return err
}

// simulate runs the game over one tick. Up to a failed step the tick is done.
func (l *Local) simulate(tick *format.TickRecord, wantHash bool) (o Outcome, err error) {
	defer rescue(&err, tick.Tick)
	o.Tick = tick.Tick
	o.Ignored, o.Failure, err = l.applySteps(tick, tick.Steps)
	if err != nil || o.Failure != nil {
		return o, err
	}
	if err := l.game.EndTick(tick.Tick); err != nil {
		return o, &SimulationError{Tick: tick.Tick, HasTick: true, What: "could not end the tick", Err: err}
	}
	if wantHash {
		l.hash = l.game.Hash(l.hash[:0])
		o.Hash = l.hash
	}
	return o, nil
}

func (l *Local) applySteps(tick *format.TickRecord, steps int) (ignored int, failure *StepFailure, err error) {
	var step format.Step
	l.steps.Reset(tick)
	for i := range steps {
		if !l.steps.Next(&step) {
			return ignored, nil, unreadable(tick.Tick, i)
		}
		result, err := l.game.Step(tick.Tick, step)
		switch {
		case result == Success && err == nil:
		case result == Ignored:
			ignored++
		case result == Failed:
			return ignored, failedStep(tick.Tick, step, err), nil
		default:
			return ignored, nil, badAnswer(tick.Tick, step, result, err)
		}
	}
	return ignored, nil, nil
}

func failedStep(tick format.Tick, step format.Step, err error) *StepFailure {
	return &StepFailure{Tick: tick, HasTick: true, Step: step.Index, Code: step.Code, Phase: PhaseExecute, Err: err}
}

// unreadable is a tick whose bytes do not hold the steps that it claims.
func unreadable(tick format.Tick, step int) error {
	return fmt.Errorf("tick %d: step %d cannot be read: %w", tick, step, format.ErrCorrupt)
}

func badAnswer(tick format.Tick, step format.Step, result Result, err error) error {
	what := fmt.Sprintf("answered step %d (code %d) with result %d", step.Index, step.Code, result)
	if result == Success {
		what = fmt.Sprintf("answered step %d (code %d) with success and an error", step.Index, step.Code)
	}
	return &SimulationError{Tick: tick, HasTick: true, What: what, Err: err}
}

// Flush does nothing: every tick was answered.
func (l *Local) Flush(final bool, emit func(Outcome) error) error { return l.broken }

// Close does nothing: a game holds only memory.
func (l *Local) Close() error { return nil }

// rescue turns the panic of a game into a SimulationError.
func rescue(err *error, tick format.Tick) {
	if p := recover(); p != nil {
		*err = panicked(tick, p)
	}
}

func panicked(tick format.Tick, p any) *SimulationError {
	return &SimulationError{Tick: tick, HasTick: true, What: fmt.Sprintf("panicked: %v", p), Stack: debug.Stack()}
}
