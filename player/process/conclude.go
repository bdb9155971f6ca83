package process

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"reprise/player"
)

// endGrace is how long a child that closed its connection may take to end by
// itself, so that the way it ended can be told.
const endGrace = time.Second

// conclude finds out why the connection ended, and ends the child.
func (l *link) conclude(err error) {
	l.mu.Lock()
	closing, cause := l.closing, l.cause
	l.mu.Unlock()
	if closing {
		return
	}
	if cause != nil {
		l.child.kill()
		l.fail(cause)
		return
	}
	what, ended := l.describe(err)
	if !ended {
		l.child.kill()
	}
	if isGone(err) || errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	l.fail(l.failure(what, l.child.report(err, !ended)))
}

// describe says what the child did, and whether it ended by itself.
func (l *link) describe(err error) (what string, ended bool) {
	switch {
	case isGone(err) && l.child.awaitEnd(endGrace):
		return "ended", true
	case isGone(err):
		return "closed its connection", false
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("did not answer within %v", l.patience()), false
	}
	return "answered badly", false
}

func (l *link) patience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timeout
}

// isGone reports whether err is that of a connection that is no more.
func isGone(err error) bool {
	var broken *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &broken) && !errors.Is(err, os.ErrDeadlineExceeded)
}

// failure names the tick that was being simulated.
func (l *link) failure(what string, report *ChildError) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &player.SimulationError{What: what, Err: report}
	if x := l.expected.oldest(); x != nil && !l.dropping {
		e.Tick, e.HasTick = x.tick, true
	}
	return e
}

func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}
