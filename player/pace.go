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
// where only a pause stops playback. The speed stays what it was.
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

// pace is a schedule: it maps positions of the replay, in nanoseconds of its
// own time, to moments of the clock. Every deadline is computed from one base,
// never from the deadline before it, so errors do not add up; a change of
// speed moves the base to the exact position reached.
type pace struct {
	base  time.Time
	pos   float64 // position of the replay at base
	speed float64
}

// begin starts the schedule with position pos due at now.
func (p *pace) begin(now time.Time, pos float64) { p.base, p.pos = now, pos }

// position is where the schedule stands at now.
func (p *pace) position(now time.Time) float64 {
	elapsed := float64(now.Sub(p.base))
	if elapsed <= 0 || math.IsInf(p.speed, 1) {
		return p.pos
	}
	return p.pos + elapsed*p.speed
}

// setSpeed changes the speed from now on.
func (p *pace) setSpeed(now time.Time, speed float64) {
	p.begin(now, p.position(now))
	p.speed = speed
}

// wait is the time from now until position pos is due: 0 or less when it is
// due already. Waits are cut to maxWait; the caller asks again.
func (p *pace) wait(now time.Time, pos float64) time.Duration {
	if math.IsInf(p.speed, 1) {
		return 0
	}
	due := (pos-p.pos)/p.speed - float64(now.Sub(p.base))
	switch {
	case due > float64(maxWait):
		return maxWait
	case due > 0:
		return time.Duration(math.Ceil(due))
	case due < -float64(maxWait):
		return -maxWait
	}
	return time.Duration(due)
}

// maxWait keeps durations far from overflow, whatever times a replay holds.
const maxWait = time.Hour

// rebase starts the schedule anew at pos where it is later than the limit, and
// reports whether it was.
func (p *pace) rebase(now time.Time, pos float64) bool {
	if math.IsInf(p.speed, 1) {
		p.begin(now, pos)
		return false
	}
	if p.wait(now, pos) > -lateLimit {
		return false
	}
	p.begin(now, pos)
	return true
}
