package player

import "time"

// Clock tells the time that paces playback. It never reaches a simulation.
type Clock interface {
	// Now gives the present time; it never runs backwards.
	Now() time.Time
	// After sends the time once d has passed, at once where d is not
	// positive. The channel is buffered: nobody need receive from it.
	After(d time.Duration) <-chan time.Time
}

// SystemClock is the machine's monotonic clock.
type SystemClock struct{}

// Now gives time.Now.
func (SystemClock) Now() time.Time { return time.Now() }

// After is time.After.
func (SystemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// clockOr gives c, or the system's clock where c is nil.
func clockOr(c Clock) Clock {
	if c == nil {
		return SystemClock{}
	}
	return c
}
