package archive

import (
	"fmt"
	"time"
)

// clock keeps a clock that jumps from making everything look old. Where it
// has, nothing is removed by age for a day.
type clock struct {
	// wall is what it said when it was looked at last, up how long the
	// archiver had run by then.
	wall    time.Time
	up      time.Duration
	started bool
	// until is when it is believed again; why says why it is not.
	until time.Duration
	why   string
}

const (
	// mostJump is how far the clock may be from where it should be by the time
	// that went by.
	mostJump = time.Hour
	// mostQuiet is how long ago the last session may have ended at a start.
	mostQuiet = 30 * 24 * time.Hour
	// mistrust is how long a clock that jumped is not believed.
	mistrust = 24 * time.Hour
)

// check takes what the clock says when the archiver has run for so long, and
// tells why that is not to be trusted; empty where it is.
func (c *clock) check(wall time.Time, up time.Duration, newest time.Time) string {
	jump := wall.Round(0).Sub(c.wall.Round(0)) - (up - c.up)
	switch {
	case c.started && jump > mostJump:
		c.why, c.until = fmt.Sprintf("the clock jumped ahead by %v", jump.Round(time.Second)), up+mistrust
	case !c.started && !newest.IsZero() && wall.Sub(newest) > mostQuiet:
		c.why, c.until = fmt.Sprintf("the last session ended %v ago, if the clock is right", wall.Sub(newest).Round(time.Hour)), up+mistrust
	}
	c.wall, c.up, c.started = wall, up, true
	if up < c.until {
		return c.why + ": nothing is removed by age until a day has passed, see that the clock is right"
	}
	return ""
}
