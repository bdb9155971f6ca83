package player

import (
	"math"
	"time"

	"reprise/format"
)

// Pacer says when ticks are due, for a program that plays them itself, such as
// with a Playback. Every tick's moment is computed from one base, so lateness
// does not add up; where it exceeds a second, after a suspended process say,
// the schedule starts anew in place of a burst. It is stopped at first, at
// speed 1. It reads no clock: each call is told the time.
type Pacer struct {
	pace   pace
	period float64
	// origin is the tick at position 0.
	origin format.Tick
}

// NewPacer follows the tick rate; a turn of a game without one takes a second.
func NewPacer(meta *format.Metadata) *Pacer {
	s := newSchedule(meta, EngineOptions{})
	return &Pacer{pace: pace{speed: 1}, period: s.period, origin: meta.FirstTick}
}

// Speed is the present speed.
func (p *Pacer) Speed() float64 { return p.pace.speed }

// SetSpeed changes the speed from now on: above 0, up to Max. Anything else is
// ErrSpeed.
func (p *Pacer) SetSpeed(now time.Time, speed float64) error {
	if err := checkSpeed(speed); err != nil {
		return err
	}
	p.pace.setSpeed(now, speed)
	return nil
}

// Start lets the time go on where Stop held it.
func (p *Pacer) Start(now time.Time) { p.pace.run(now) }

// Stop holds the time.
func (p *Pacer) Stop(now time.Time) { p.pace.freeze(now) }

// Move makes tick next due now, and those behind it follow.
func (p *Pacer) Move(now time.Time, next format.Tick) {
	p.origin, p.pace.pos, p.pace.base = next, 0, now
}

// Skip makes ticks take no time: those that the next one due stands behind.
func (p *Pacer) Skip(ticks format.Tick) { p.origin += ticks }

// Due is how many ticks, from next on, are due now; with speed Max it is the
// largest int. Where the first of them is more than a second late, the
// schedule starts anew with it.
func (p *Pacer) Due(now time.Time, next format.Tick) int {
	pos := p.position(next)
	switch {
	case !p.pace.running:
		return 0
	case p.pace.unlimited():
		p.pace.pos = pos
		return math.MaxInt
	}
	p.pace.rebase(now, pos)
	if p.pace.wait(now, pos) > 0 {
		return 0
	}
	return 1 + int((p.pace.position(now)-pos)/p.period)
}

// Wait is the time from now until tick next is due; 0 where it is.
func (p *Pacer) Wait(now time.Time, next format.Tick) time.Duration {
	return max(0, p.pace.wait(now, p.position(next)))
}

func (p *Pacer) position(tick format.Tick) float64 {
	if tick < p.origin {
		return -float64(p.origin-tick) * p.period
	}
	return float64(tick-p.origin) * p.period
}
