package player

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Max is the speed without any waiting.
var Max = math.Inf(1)

// ErrSpeed is returned for a speed that is none: negative, not a number, or 0
// where only a pause halts playback. The speed stays what it was.
var ErrSpeed = errors.New("not a speed")

// checkSpeed refuses what no schedule can follow.
func checkSpeed(speed float64) error {
	if !(speed > 0) {
		return fmt.Errorf("%w: %v (use a number above 0, or pause)", ErrSpeed, speed)
	}
	return nil
}

// lateLimit is how late a due step may be before the schedule starts anew.
// Below it playback catches up, so that short stalls leave no drift; above it
// (a suspended process, a simulation that is too slow) catching up would be a
// burst.
const lateLimit = time.Second

// maxWait keeps durations far from overflow, whatever times a replay holds.
const maxWait = time.Hour

// pace maps positions of a replay, in nanoseconds of its own time, to moments
// of the clock. Every deadline is computed from one base, never from the
// deadline before it, so errors do not add up; a change of speed moves the
// base to the exact position reached. It is frozen at first.
type pace struct {
	speed   float64
	pos     float64 // the position at base, or while frozen
	base    time.Time
	running bool
}

// unlimited reports whether nothing is waited for. The position then is that
// of the last step.
func (p *pace) unlimited() bool { return math.IsInf(p.speed, 1) }

// position is where the replay stands at now.
func (p *pace) position(now time.Time) float64 {
	elapsed := float64(now.Sub(p.base))
	if !p.running || p.unlimited() || elapsed <= 0 {
		return p.pos
	}
	return p.pos + elapsed*p.speed
}

// run goes on from a frozen position.
func (p *pace) run(now time.Time) {
	if !p.running {
		p.base, p.running = now, true
	}
}

// freeze stops at the position of now.
func (p *pace) freeze(now time.Time) {
	p.pos = p.position(now)
	p.running = false
}

// setSpeed changes the speed from now on.
func (p *pace) setSpeed(now time.Time, speed float64) {
	p.pos = p.position(now)
	p.base, p.speed = now, speed
}

// wait is the time from now until position pos is due, and not above 0 when
// it is due already. Long waits are cut: ask again.
func (p *pace) wait(now time.Time, pos float64) time.Duration {
	if p.unlimited() {
		return 0
	}
	due := (pos-p.pos)/p.speed - float64(now.Sub(p.base))
	limit := float64(maxWait)
	return time.Duration(math.Ceil(max(-limit, min(due, limit))))
}

// rebase starts the schedule anew at pos where it is later than the limit, and
// reports whether it was.
func (p *pace) rebase(now time.Time, pos float64) bool {
	if p.unlimited() {
		p.pos = pos
		return false
	}
	if p.wait(now, pos) > -lateLimit {
		return false
	}
	p.pos, p.base = pos, now
	return true
}
