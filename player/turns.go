package player

import (
	"errors"
	"fmt"

	"reprise/format"
)

// TurnGame is one running simulation of a turn-based game, whose commands are
// registered in a replay system. One tick is one active step with the passive
// steps that follow it. Calls never overlap. Everything it computes must
// follow from Start and the steps alone.
//
// While a replay is played the system's sandbox is current, so a command that
// needs a passive step calls System().Sandbox().GetPassive(), and recording
// is disabled.
type TurnGame interface {
	// System gives the game's replay system with every command registered.
	// It is the same one for the game's whole life.
	System() *ReplaySystem
	// Reset puts the game into the state that start describes; it may be
	// called any number of times. An error means that this replay cannot be
	// played by this game; it is final.
	Reset(start Start) error
	// Hash appends the hash of the present state, as wide as Meta.HashBytes
	// says. The hash of a tick is taken when the tick is settled: after its
	// steps and, where the next active step has another code, the finalize,
	// and before that next step is executed. A recorder hashes at the same
	// moment.
	Hash(dst []byte) []byte
}

// TurnFactory makes turn-based games of one name; see Factory.
type TurnFactory struct {
	// Name is compared with the replay's Meta.Game.
	Name string
	// Build is compared with the replay's Meta.Build; empty plays every
	// build.
	Build string
	// Data is the hash of the game's data files, compared with the replay's
	// Meta.Data where both are set; empty plays every data.
	Data string
	// New makes a game; Reset is called before anything else.
	New func() TurnGame
}

// Turns is the simulation of a turn-based game in this process. A sandbox
// plays the steps, so look-ahead, passive steps and finalize work across the
// borders of ticks. An active step is executed and settled once the next one is
// known, so its tick is answered one active step late.
type Turns struct {
	game    TurnGame
	feed    *turnFeed
	sandbox *Sandbox
	hash    []byte
	emit    func(Outcome) error
	// halted is the error of emit that ended the present call.
	halted error
	// broken is set where the game's state is worth nothing until a Reset.
	broken error
}

// NewTurns makes the simulation of g, which nothing else may use.
func NewTurns(g TurnGame) *Turns { return &Turns{game: g, broken: errNotReset} }

// Game gives the game, to save or dump its state between two calls.
func (t *Turns) Game() TurnGame { return t.game }

// LooksAhead is true: the last tick is settled by the step behind it.
func (t *Turns) LooksAhead() bool { return true }

// Reset starts the game, with a new sandbox and with recording disabled; an
// error of the game matches ErrStart.
func (t *Turns) Reset(start Start) (err error) {
	defer func() { t.broken = err }()
	defer rescue(&err, start.NextTick)
	if err := t.game.Reset(start); err != nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	system := t.game.System()
	system.Disable()
	t.feed = &turnFeed{isActive: activeIn(system)}
	if t.sandbox, err = system.CreateSandboxOver(t.feed, nil, nil); err != nil {
		return err
	}
	t.sandbox.settled = t.settled
	t.sandbox.AddHooks(SandboxHooks{OnIgnored: t.noteIgnored})
	return nil
}

// activeIn tells which codes are active. An unknown one is taken as active:
// the sandbox stops at it.
func activeIn(system *ReplaySystem) func(code uint16) bool {
	return func(code uint16) bool {
		command := system.Command(code)
		return command == nil || command.Type() == Active
	}
}

// Advance takes the tick and plays every active step that has another one
// behind it.
func (t *Turns) Advance(tick *format.TickRecord, wantHash bool, emit func(Outcome) error) error {
	if t.broken != nil {
		return t.broken
	}
	if t.sandbox.Ended() {
		return errFlushed
	}
	if err := t.feed.push(tick, wantHash); err != nil {
		t.broken = err
		return err
	}
	return t.call(emit, func() error { return t.play(2) })
}

// Flush plays and answers every tick given. Without final, more steps may
// come: the last tick is then answered before its finalize, if it has one.
func (t *Turns) Flush(final bool, emit func(Outcome) error) error {
	if t.broken != nil {
		return t.broken
	}
	return t.call(emit, func() error {
		if err := t.playOut(final); err != nil {
			return err
		}
		return t.answer(t.feed.given)
	})
}

// errNotReset is returned for a tick before the first Reset.
var errNotReset = errors.New("a tick was given before a start: reset first")

// errFlushed is returned for a tick behind the last one.
var errFlushed = errors.New("a tick was given behind the final flush: reset first")

// Close releases the sandbox and enables recording again.
func (t *Turns) Close() error {
	if t.sandbox != nil {
		t.game.System().Release()
		t.game.System().Revert()
	}
	return nil
}

// call runs f and sorts its error: of emit, of a step, or of the game.
func (t *Turns) call(emit func(Outcome) error, f func() error) (err error) {
	t.emit, t.halted = emit, nil
	err = t.protect(f)
	if err == nil || t.halted != nil {
		return err
	}
	if failure := t.feed.locate(err); failure != nil {
		t.broken = failure
		if err := emit(Outcome{Tick: t.feed.oldest().tick, Failure: failure}); err != nil {
			return err
		}
		return failure
	}
	t.broken = err
	return err
}

// protect is f, with a panic as an error.
func (t *Turns) protect(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(t.feed.oldest().tick, p)
		}
	}()
	err = f()
	if err == ErrStopped && t.halted == nil {
		return &SimulationError{Tick: t.feed.oldest().tick, HasTick: true, What: "stopped the sandbox that plays it"}
	}
	return err
}

// play executes steps while at least ahead active ones are waiting, each when
// the ticks before it are settled and answered.
func (t *Turns) play(ahead int) error {
	for t.feed.active > 0 {
		if err := t.sandbox.settleNext(); err != nil {
			return err
		}
		if t.feed.active < ahead {
			return nil
		}
		if _, err := t.sandbox.Step(); err != nil {
			return err
		}
		t.feed.active--
	}
	return nil
}

// playOut plays every active step, and skips the passive ones behind the last
// that nobody took: their tick is over. With final it runs the last finalize.
func (t *Turns) playOut(final bool) error {
	if err := t.play(1); err != nil {
		return err
	}
	if err := t.sandbox.settleNext(); err != nil || !final {
		return err
	}
	_, err := t.sandbox.Step()
	return err
}

// settled answers the ticks before the one of next.
func (t *Turns) settled(next format.Step) error { return t.answer(next.Index - 1) }

// answer emits the ticks whose steps all are among the first steps.
func (t *Turns) answer(steps int) error {
	for {
		tick, ok := t.feed.pop(steps)
		if !ok {
			return nil
		}
		outcome := Outcome{Tick: tick.tick, Ignored: tick.ignored}
		if tick.wantHash {
			t.hash = t.game.Hash(t.hash[:0])
			outcome.Hash = t.hash
		}
		if err := t.emit(outcome); err != nil {
			t.halted = err
			return err
		}
	}
}

func (t *Turns) noteIgnored(step format.Step, err error) {
	if tick := t.feed.tickOf(step.Index); tick != nil {
		tick.ignored++
	}
}
