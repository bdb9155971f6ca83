package wasm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"reprise/format"
	"reprise/player"
	"reprise/player/process"
)

// Simulation plays replays with a module. It is a player.Simulation, and keeps
// states without help from the game.
type Simulation struct {
	module   *Module
	dialogue process.Dialogue
	watch    *watch
	log      outputLog
	// instance plays; nil before the first reset and after a fault.
	instance *instance
	// fresh is set while the instance has seen no replay.
	fresh bool
	next  format.Tick
	out   []byte
	// base are the pages of the snapshot that was taken or restored last,
	// with which the next one shares what is equal.
	base   []*page
	broken error
}

var (
	_ player.Simulation  = (*Simulation)(nil)
	_ player.Keeper      = (*Simulation)(nil)
	_ player.Inspector   = (*Simulation)(nil)
	_ player.Snapshotter = (*Simulation)(nil)
)

var errNoReset = errors.New("no replay was started: reset first")

// open makes an instance that has said hello.
func (s *Simulation) open() error {
	s.drop()
	in, err := s.module.instantiate(&s.log, s.watch)
	if err != nil {
		return s.failure(err, nil)
	}
	s.instance, s.fresh = in, true
	err = in.begin()
	var answer []byte
	if err == nil {
		answer, err = in.send(s.dialogue.AppendWelcome(nil), startFactor)
	}
	if err == nil {
		if err = s.dialogue.TakeHello(answer); err != nil {
			err = fmt.Errorf("%w: %w", ErrModule, err)
		}
	}
	if err != nil {
		s.drop()
		return s.failure(err, nil)
	}
	return nil
}

func (s *Simulation) drop() {
	if s.instance != nil {
		s.instance.close()
		s.instance = nil
	}
}

// failure makes a fault the error that the player knows, with what the module
// wrote last; tick is the one that was being simulated, or nil.
func (s *Simulation) failure(err error, tick *format.Tick) error {
	var f *fault
	if s.module.ctx.Err() != nil {
		return context.Cause(s.module.ctx)
	}
	if !errors.As(err, &f) {
		return err
	}
	e := &player.SimulationError{What: f.what, Err: f.err}
	if tick != nil {
		e.Tick, e.HasTick = *tick, true
	}
	if lines := s.log.lines(); lines != nil {
		wrote := fmt.Errorf("the last that it wrote:\n\t%s", strings.Join(lines, "\n\t"))
		if e.Err != nil {
			wrote = fmt.Errorf("%w; %w", e.Err, wrote)
		}
		e.Err = wrote
	}
	return e
}

// Reset starts a replay in an instance that has seen none. A State that Save
// gave is restored by the host; any other is given to the game. The error is a
// player.GameMissingError or BuildMismatchError where the module does not
// offer the recorded game, matches player.ErrStart where the game refuses the
// replay, and else is a player.SimulationError.
func (s *Simulation) Reset(start player.Start) error {
	s.log.begin()
	s.broken = s.reset(start)
	if s.broken != nil {
		s.drop()
	}
	return s.broken
}

func (s *Simulation) reset(start player.Start) error {
	if isSaved(start.State) {
		if err := s.prepare(start.Meta); err != nil {
			return err
		}
		return s.Load(start.State, start.NextTick)
	}
	if s.instance == nil || !s.fresh {
		if err := s.open(); err != nil {
			return err
		}
	}
	out, err := s.dialogue.AppendReset(s.out[:0], start)
	if err != nil {
		return err
	}
	s.out, s.fresh, s.base = out, false, nil
	s.instance.world.begin(start.Meta.Seed, start.Meta.TickRate)
	answer, err := s.instance.send(out, startFactor)
	if err == nil {
		err = answered(s.dialogue.TakeReady(answer))
	}
	if err != nil {
		return s.failure(err, nil)
	}
	s.next = start.NextTick
	return nil
}

// prepare picks the game of a replay without starting it.
func (s *Simulation) prepare(meta *format.Metadata) error {
	if s.instance == nil {
		if err := s.open(); err != nil {
			return err
		}
	}
	if _, err := s.dialogue.Choose(meta); err != nil {
		return err
	}
	s.instance.world.begin(meta.Seed, meta.TickRate)
	return nil
}

// Advance simulates the tick and answers it.
func (s *Simulation) Advance(tick *format.TickRecord, wantHash bool, emit func(player.Outcome) error) error {
	if s.broken != nil {
		return s.broken
	}
	outcome, err := s.simulate(tick, wantHash)
	if err != nil {
		s.broken = err
		return err
	}
	if outcome.Failure != nil {
		s.broken = outcome.Failure
	}
	if err := emit(outcome); err != nil {
		return err
	}
	return s.broken
}

func (s *Simulation) simulate(tick *format.TickRecord, wantHash bool) (player.Outcome, error) {
	out, err := s.dialogue.AppendTick(s.out[:0], tick, wantHash)
	if err != nil {
		return player.Outcome{}, err
	}
	s.out = out
	s.instance.world.tick(tick.Tick)
	answer, err := s.instance.send(out, 1)
	if err != nil {
		return player.Outcome{}, s.failure(err, &tick.Tick)
	}
	outcome, err := s.dialogue.TakeTick(answer)
	s.next = tick.Tick + 1
	if err != nil {
		return outcome, s.failure(answered(err), &tick.Tick)
	}
	return outcome, nil
}

// answered tells a bad answer from a good one that says no.
func answered(err error) error {
	var e *player.SimulationError
	if err == nil || errors.As(err, &e) || errors.Is(err, player.ErrStart) || errors.Is(err, player.ErrUnable) {
		return err
	}
	return &fault{"answered badly", err}
}

// Flush does nothing: every tick was answered.
func (s *Simulation) Flush(final bool, emit func(player.Outcome) error) error { return s.broken }

// Dump gives every field of the game's state. What the module does to answer
// leaves no trace, where snapshots can be taken.
func (s *Simulation) Dump() ([]player.Field, error) {
	switch {
	case s.broken != nil:
		return nil, s.broken
	case !s.dialogue.CanDump():
		return nil, fmt.Errorf("%w: the game cannot dump", player.ErrUnable)
	}
	kept, err := s.Snapshot()
	answer, sendErr := s.instance.send(s.dialogue.AppendDump(s.out[:0]), startFactor)
	var fields []player.Field
	if sendErr == nil {
		fields, sendErr = s.dialogue.TakeFields(answer)
		sendErr = answered(sendErr)
	}
	if err == nil {
		err = s.Restore(kept)
	} else if errors.Is(err, player.ErrUnable) {
		err = nil
	}
	if sendErr != nil {
		return nil, s.failure(sendErr, nil)
	}
	return fields, err
}

// Close ends the simulation.
func (s *Simulation) Close() error {
	if s.watch != nil {
		s.drop()
		s.watch.close()
		s.watch = nil
	}
	return nil
}
