package player

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"reprise/format"
)

// EngineState is what an engine is doing.
type EngineState uint8

const (
	// EngineReady: Run was not called yet.
	EngineReady   EngineState = 0
	EnginePlaying EngineState = 1
	// EnginePaused: resting between two ticks, or about to.
	EnginePaused EngineState = 2
	// EngineEnded: all was run; what was found on the way is in Err.
	EngineEnded EngineState = 3
	// EngineStopped: Stop ended the run.
	EngineStopped EngineState = 4
	// EngineFailed: something else ended the run; see Err.
	EngineFailed EngineState = 5
)

var engineStates = [...]string{"ready", "playing", "paused", "ended", "stopped", "failed"}

// String gives the state's name.
func (s EngineState) String() string {
	if int(s) < len(engineStates) {
		return engineStates[s]
	}
	return "unknown"
}

// Status is a moment of a run.
type Status struct {
	State EngineState
	// Tick is the last tick answered; only with HasTick.
	Tick    format.Tick
	HasTick bool
	// Speed is the present speed; 0 is a halt.
	Speed float64
	// Err is what Run returned; nil before that.
	Err error
}

// Play goes on where the run is paused, also by a speed of 0, which becomes
// the speed before it.
func (e *Engine) Play() { e.control.play() }

// Resume is Play.
func (e *Engine) Resume() { e.control.play() }

// Pause rests after the current tick. The channel is closed when no tick is
// being simulated any more. A game must not wait for it: it is part of the
// tick.
func (e *Engine) Pause() <-chan struct{} { return e.control.pause() }

// Step pauses and runs one tick. The channel is closed when that tick was run,
// or when the run is over. Steps add up.
func (e *Engine) Step() <-chan struct{} { return e.control.step() }

// Stop ends the run after the current tick; Run gives ErrStopped. The channel
// is as with Pause. A run that waits for its source ends with the next item.
func (e *Engine) Stop() <-chan struct{} { return e.control.stop() }

// SetSpeed changes the speed from now on: 1 is the tick rate or the recorded
// times, Max waits for nothing, 0 is a pause that lasts until another speed is
// set. Anything else is ErrSpeed.
func (e *Engine) SetSpeed(speed float64) error { return e.control.setSpeed(speed) }

// Status tells where the run is.
func (e *Engine) Status() Status { return e.control.status() }

// control is the part of an engine that other goroutines reach.
type control struct {
	clock Clock
	wake  chan struct{}
	// answered is the last tick answered plus one; 0 means none.
	answered atomic.Uint64

	mu    sync.Mutex
	state EngineState
	// paused and halted hold the run: by Pause, or by a speed of 0.
	paused, halted, stopped bool
	// steps are the channels of the ticks to run nevertheless, stepped that
	// of the one being run.
	steps   []chan struct{}
	stepped chan struct{}
	// inTick is set while a tick is being run, and waiters wait for its end.
	inTick  bool
	waiters []chan struct{}
	pace    pace
	// timed is set once the first tick has begun the schedule.
	timed bool
	late  int
	err   error
}

func (c *control) init(o EngineOptions) {
	c.clock = clockOr(o.Clock)
	c.wake = make(chan struct{}, 1)
	c.paused = o.Paused
	c.pace.speed = Max
	if o.Speed > 0 {
		c.pace.speed = o.Speed
	}
}

func (c *control) play() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused, c.halted = false, false
	c.follow()
}

func (c *control) pause() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = true
	c.follow()
	return c.rest()
}

func (c *control) step() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := make(chan struct{})
	if c.state >= EngineEnded {
		close(done)
		return done
	}
	c.paused = true
	c.steps = append(c.steps, done)
	c.follow()
	return done
}

func (c *control) stop() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.follow()
	return c.rest()
}

func (c *control) setSpeed(speed float64) error {
	if speed != 0 {
		if err := checkSpeed(speed); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.halted = speed == 0
	if !c.halted {
		c.pace.setSpeed(c.clock.Now(), speed)
	}
	c.follow()
	return nil
}

func (c *control) status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{State: c.state, Speed: c.pace.speed, Err: c.err}
	if n := c.answered.Load(); n > 0 {
		s.Tick, s.HasTick = format.Tick(n-1), true
	}
	if c.halted {
		s.Speed = 0
	}
	if s.State == EnginePlaying && c.holding() {
		s.State = EnginePaused
	}
	return s
}

func (c *control) holding() bool { return c.paused || c.halted }

// follow lets the schedule and the running goroutine follow a change.
func (c *control) follow() {
	switch {
	case c.holding():
		c.pace.freeze(c.clock.Now())
	case c.timed:
		c.pace.run(c.clock.Now())
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// rest gives a channel that is closed when no tick is being run.
func (c *control) rest() <-chan struct{} {
	done := make(chan struct{})
	if c.inTick {
		c.waiters = append(c.waiters, done)
	} else {
		close(done)
	}
	return done
}

// enter begins the run; false where there was one.
func (c *control) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != EngineReady {
		return false
	}
	c.state = EnginePlaying
	return true
}

// await waits until the tick at position due may be run.
func (c *control) await(ctx context.Context, due float64) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		wait, run, err := c.permit(due)
		if run || err != nil {
			return err
		}
		var timer <-chan time.Time
		if wait > 0 {
			timer = c.clock.After(wait)
		}
		select {
		case <-c.wake:
		case <-timer:
		case <-ctx.Done():
		}
	}
}

// permit says that the tick at position due may be run, or how long that has
// to wait: 0 means until something changes.
func (c *control) permit(due float64) (wait time.Duration, run bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begin(due)
	switch {
	case c.stopped:
		return 0, false, ErrStopped
	case c.holding() && len(c.steps) == 0:
		return 0, false, nil
	case c.holding() || c.pace.unlimited():
		c.pace.pos = due
	default:
		now := c.clock.Now()
		if wait := c.pace.wait(now, due); wait > 0 {
			return wait, false, nil
		}
		if c.pace.rebase(now, due) {
			c.late++
		}
	}
	c.inTick = true
	if len(c.steps) > 0 {
		c.stepped, c.steps = c.steps[0], c.steps[1:]
	}
	return 0, true, nil
}

// begin lets the schedule begin with the first tick.
func (c *control) begin(due float64) {
	if c.timed {
		return
	}
	c.timed = true
	c.pace.pos = due
	if !c.holding() {
		c.pace.run(c.clock.Now())
	}
}

// resting reports whether no further tick is wanted for now.
func (c *control) resting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped || c.holding() && len(c.steps) == 0
}

// tickEnded lets go of those who wait for the tick.
func (c *control) tickEnded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inTick = false
	if c.stepped != nil {
		close(c.stepped)
		c.stepped = nil
	}
	closeAll(&c.waiters)
}

func closeAll(waiters *[]chan struct{}) {
	for _, w := range *waiters {
		close(w)
	}
	*waiters = nil
}

func (c *control) reached(tick format.Tick) { c.answered.Store(uint64(tick) + 1) }

// finish ends the run and lets go of everyone.
func (c *control) finish(err error, complete bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	switch {
	case complete:
		c.state = EngineEnded
	case errors.Is(err, ErrStopped):
		c.state = EngineStopped
	default:
		c.state = EngineFailed
	}
	c.inTick = false
	closeAll(&c.waiters)
	closeAll(&c.steps)
}

// rebased counts how often the schedule started anew.
func (c *control) rebased() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.late
}
