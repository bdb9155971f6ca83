package process

import (
	"errors"
	"fmt"

	"reprise/format"
	"reprise/player"
)

// Save appends the game's whole state after the last tick, which must be
// flushed. The error is player.ErrUnable where the game cannot save.
func (s *Simulation) Save(dst []byte) ([]byte, error) {
	r, err := s.state(canSave, appendEmpty(nil, typeSave), typeSave, typeSaved)
	if err != nil {
		return dst, err
	}
	return append(dst, r.state...), nil
}

// Dump gives every field of the game's state after the last tick, which must
// be flushed. The error is player.ErrUnable where the game cannot dump.
func (s *Simulation) Dump() ([]player.Field, error) {
	r, err := s.state(canDump, appendEmpty(nil, typeDump), typeDump, typeFields)
	if err != nil {
		return nil, err
	}
	return r.fields, nil
}

// Load restores a state that Save gave in the same replay; next is the tick
// that will be given. It is what Reset does with a State, but need not build
// the game anew. The error is player.ErrUnable where the game cannot load; after any
// other one, reset.
func (s *Simulation) Load(state []byte, next format.Tick) error {
	_, err := s.state(canLoad, (&load{next: next, state: state}).append(nil), typeLoad, typeReady)
	if err != nil && !errors.Is(err, player.ErrUnable) && !errors.Is(err, errUnderWay) {
		s.broken = err
	}
	return err
}

// state asks for something that concerns the state between two ticks.
func (s *Simulation) state(ability abilities, message []byte, t, answer messageType) (*reply, error) {
	switch {
	case s.broken != nil:
		return nil, s.broken
	case !s.game.abilities.has(ability):
		return nil, fmt.Errorf("%w: game %q cannot %s", player.ErrUnable, s.game.name, t)
	case len(s.batch) > 0 || s.handed < len(s.answers):
		return nil, errUnderWay
	}
	if n := s.link.news(); n.batches > 0 || n.unanswered > 0 || n.answers > 0 {
		return nil, errUnderWay
	}
	return s.request(message, t, answer)
}

// request sends a message and waits for its reply.
func (s *Simulation) request(message []byte, t, answer messageType) (*reply, error) {
	if length := len(message) - lengthBytes; length > messages[t].most {
		return nil, fmt.Errorf("%q of %d bytes, the most is %d: %w", t.String(), length, messages[t].most, format.ErrLimit)
	}
	s.link.ask(answer, s.o.StateTimeout)
	s.link.write(message)
	for {
		n := s.link.news()
		switch {
		case n.reply != nil:
			return n.reply, n.reply.refusal(t)
		case n.err != nil:
			return nil, n.err
		}
		<-s.link.wake
	}
}

// refusal is the error of a refused request; nil where it was not refused.
func (r *reply) refusal(t messageType) error {
	if r.kind != typeRefused {
		return nil
	}
	reason := reasonError(r.refused.text)
	if reason == nil {
		reason = errors.New("it gave no reason")
	}
	switch {
	case r.refused.fault:
		return &player.SimulationError{What: fmt.Sprintf("failed in %q", t.String()), Err: reason}
	case t == typeReset || t == typeLoad:
		return fmt.Errorf("%w: %w", player.ErrStart, reason)
	}
	return fmt.Errorf("%w: %q: %w", player.ErrUnable, t.String(), reason)
}
