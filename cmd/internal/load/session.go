package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"reprise/format"
	"reprise/transport"
)

// Session records a script. Tick is called by one goroutine; Promise and
// what Recording offers by any.
type Session struct {
	// Recording is the client's end of the session.
	Recording *transport.Recording

	script Script
	write  writer
	ends   *ends // nil for a session whose latency is not looked at

	mu      sync.Mutex
	leftOut []format.Gap
}

// Open begins a session.
func Open(c *transport.Client, s Script) (*Session, error) {
	r, err := c.Open(s.Spec())
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", s.Session, err)
	}
	return newSession(s, r), nil
}

// Resume goes on with a session from the client's spool. What an earlier
// process left out is not known to it.
func Resume(c *transport.Client, s Script) (*Session, error) {
	r, err := c.Resume(s.Session)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", s.Session, err)
	}
	return newSession(s, r), nil
}

// Continue goes on with a session whose recording was closed, with nothing
// left of it but the key.
func Continue(ctx context.Context, c *transport.Client, s Script, key [transport.KeySize]byte, at format.Tick) (*Session, error) {
	spec := s.Spec()
	spec.Key = key
	r, err := c.Continue(ctx, spec, at)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", s.Session, err)
	}
	return newSession(s, r), nil
}

func newSession(s Script, r *transport.Recording) *Session {
	session := &Session{Recording: r, script: s}
	session.write.script = &session.script
	return session
}

// Tick records the next tick. One that the client has no room for is left
// out, which the promise tells, and is no error.
func (s *Session) Tick() error {
	tick := s.Recording.NextTick()
	for player := range s.script.players() {
		code, params := s.write.step(tick, player)
		if err := s.Recording.Step(code, params...); err != nil {
			return fmt.Errorf("session %s, tick %d: %w", s.script.Session, tick, err)
		}
	}
	switch err := s.Recording.EndTick(); {
	case errors.Is(err, transport.ErrFull):
		s.leaveOut(tick)
	case err != nil:
		return fmt.Errorf("session %s, tick %d: %w", s.script.Session, tick, err)
	case s.ends != nil:
		s.ends.add(tick, time.Now())
	}
	return nil
}

func (s *Session) leaveOut(tick format.Tick) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.leftOut); n > 0 && s.leftOut[n-1].Last+1 == tick {
		s.leftOut[n-1].Last = tick
		return
	}
	s.leftOut = append(s.leftOut, format.Gap{First: tick, Last: tick})
}

// LeftOut counts the ticks that the client left out.
func (s *Session) LeftOut() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return inGaps(s.leftOut, s.Recording.NextTick())
}

// Promise is what the daemon has promised so far.
func (s *Session) Promise() Promise {
	durable := s.Recording.Durable()
	_, _, sealed := s.Recording.Sealed()
	s.mu.Lock()
	defer s.mu.Unlock()
	return Promise{Script: s.script, Durable: durable, Next: s.Recording.NextTick(), LeftOut: append([]format.Gap(nil), s.leftOut...), Sealed: sealed}
}
