package player

import (
	"reprise/format"
)

// Simulation is what the tick engine drives: a game in this process, or one
// behind a socket. Calls never overlap.
type Simulation interface {
	// Reset puts the simulation into the state that start describes. It may
	// be called again at any time; ticks not yet answered are dropped.
	Reset(start Start) error
	// Advance gives the next tick; wantHash asks for the hash after it.
	// Outcomes are handed to emit in tick order, one for every tick, now or
	// during a later Advance or Flush: a host in another process keeps
	// several ticks under way, and a turn-based game must see the next step
	// first. An error of emit stops the simulation right there and is
	// returned as it is; a simulation in this process is then in the state
	// exactly after the emitted tick. The memory of tick is valid only
	// during the call.
	Advance(tick *format.TickRecord, wantHash bool, emit func(Outcome) error) error
	// Flush returns when every tick given has been answered. With final no
	// further step will come, so a turn-based game runs its last finalize.
	Flush(final bool, emit func(Outcome) error) error
	// Close frees what the simulation holds. Nothing may be called after it.
	Close() error
}

// Outcome is a simulation's answer to one tick.
type Outcome struct {
	Tick format.Tick
	// Hash is the state hash after the tick; nil where it was not asked
	// for. It is valid during emit only.
	Hash []byte
	// Ignored counts the tick's steps that had no effect.
	Ignored int
	// Failure tells of the step that could not be carried out; the tick is
	// then the last one. Nil where all steps succeeded.
	Failure *StepFailure
}

// LookAhead is a Simulation whose last tick is not settled before the next one
// is known, so that flushing it early would change its answer. The engine then
// flushes only at the replay's end.
type LookAhead interface {
	LooksAhead() bool
}

// LooksAhead reports whether s must not be flushed early.
func LooksAhead(s Simulation) bool {
	l, ok := s.(LookAhead)
	return ok && l.LooksAhead()
}
