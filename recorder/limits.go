package recorder

import (
	"fmt"
	"time"

	"reprise/format"
)

// Limits are the bounds of a Config that may change while a Recorder runs. A
// zero field means its default.
type Limits struct {
	// MaxSessions, SessionWindow and MinFreeBytes are those of Config.
	MaxSessions   int
	SessionWindow int64
	MinFreeBytes  int64
	// SessionBytes is how large a session may become, but for the end of its
	// file: larger ones are refused what comes. Default: no bound.
	SessionBytes int64
	// SessionRate is how many bytes a second a session may bring in the long
	// run. What comes faster is refused until it is slow enough again, with
	// CodeRate. Default: no bound.
	SessionRate int64
}

// limits are those of a Config.
func (c *Config) limits() Limits {
	return Limits{MaxSessions: c.MaxSessions, SessionWindow: c.SessionWindow, MinFreeBytes: c.MinFreeBytes, SessionBytes: c.SessionBytes, SessionRate: c.SessionRate}
}

// Validate checks the fields that are set.
func (l Limits) Validate() error {
	for _, f := range [...]struct {
		name  string
		value int64
	}{
		{"MaxSessions", int64(l.MaxSessions)}, {"SessionWindow", l.SessionWindow}, {"SessionBytes", l.SessionBytes}, {"SessionRate", l.SessionRate},
	} {
		if f.value < 0 {
			return fmt.Errorf("field %s is %d: use a positive number, or 0 for the default", f.name, f.value)
		}
	}
	return nil
}

// SetLimits changes the limits. Sessions that run are not touched: what they
// have beyond a new limit stays. After an error nothing has changed.
func (r *Recorder) SetLimits(l Limits) error {
	if err := l.Validate(); err != nil {
		return fmt.Errorf("recorder limits: %w", err)
	}
	or(&l.MaxSessions, defaultMaxSessions)
	or(&l.SessionWindow, defaultSessionWindow)
	or(&l.MinFreeBytes, r.cfg.SegmentBytes)
	before := r.window()
	r.limits.Store(&l)
	if now := r.window(); now != before {
		for _, s := range r.all() {
			s.ack(func(a *Ack) {
				a.Window = now
				s.forgetStall()
			})
		}
	}
	return nil
}

// heldLimit is the most bytes of one session in memory while its file
// cannot be written: beyond it only this session is refused.
func (l *Limits) heldLimit() int64 { return 4*l.SessionWindow + format.MaxBody }

// pace measures how fast a session comes: a bucket that every chunk fills,
// and that empties at the rate that is allowed.
type pace struct {
	bytes float64
	at    time.Time
}

// paceSeconds of the rate fit into the bucket: so much may come at once, and
// as it needs not be empty for the next chunk, one chunk more.
const paceSeconds = 4

// level is how full the bucket is at a rate.
func (p *pace) level(rate int64) float64 {
	return max(0, p.bytes-time.Since(p.at).Seconds()*float64(rate))
}

// admits tells whether a chunk may come now, and a producer that was refused
// comes back: that only when there is room for more than a chunk.
func (p *pace) admits(rate int64, back bool) bool {
	most := float64(rate) * paceSeconds
	if back {
		most /= 2
	}
	return rate == 0 || p.level(rate) <= most
}

// add counts a chunk. What came without a bound does not count later.
func (p *pace) add(n int, rate int64) {
	if rate == 0 {
		*p = pace{}
		return
	}
	p.bytes, p.at = p.level(rate)+float64(n), time.Now()
}

// withinQuota holds the bounds on what a session may bring: for n more bytes.
// The caller holds entry.
func (s *recording) withinQuota(n int, due format.Tick) *Refusal {
	l := s.r.limits.Load()
	s.overQuota = l.SessionBytes > 0 && s.size+int64(n) > l.SessionBytes
	if s.overQuota {
		return refuse(CodeQuota, due, "session %s would have %d bytes, the most is %d: record the rest as another session, with this one in its label part-of", s.id, s.size+int64(n), l.SessionBytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.pace.admits(l.SessionRate, false) {
		return refuseRate(s.id, due, l.SessionRate)
	}
	s.pace.add(n, l.SessionRate)
	return nil
}

func refuseRate(id string, due format.Tick, rate int64) *Refusal {
	return refuse(CodeRate, due, "session %s brings more than %d bytes a second: go on more slowly", id, rate)
}
