package player

import (
	"time"

	"reprise/format"
)

// schedule gives every tick its position in the replay's own time, in
// nanoseconds from the first tick that is run: by the tick rate or by the
// recorded times.
type schedule struct {
	period   float64
	recorded bool
	// last is the position of the tick before; running is false before the
	// first tick and behind a gap, which takes no time.
	last    float64
	running bool
	// The tick, and with recorded times the time, that stand at origin.
	origin     float64
	originTick format.Tick
	originTime int64
	timed      bool
}

func newSchedule(meta *format.Metadata, o EngineOptions) schedule {
	s := schedule{period: float64(time.Second), recorded: o.RecordedTimes}
	switch {
	case meta.TickRate.Float() > 0:
		s.period = float64(time.Second) * float64(meta.TickRate.Den) / float64(meta.TickRate.Num)
	case o.TurnInterval > 0:
		s.period = float64(o.TurnInterval)
	}
	s.last = -s.period
	return s
}

// restart makes the next tick follow the last one by a period.
func (s *schedule) restart() { s.running = false }

// due gives the position of t.
func (s *schedule) due(t *format.TickRecord) float64 {
	if !s.running {
		s.running, s.timed = true, false
		s.origin, s.originTick = s.last+s.period, t.Tick
	}
	if s.recorded {
		s.last = s.byTime(t)
	} else {
		s.last = s.origin + float64(t.Tick-s.originTick)*s.period
	}
	return s.last
}

// byTime gives the position of a recorded time; a tick without one follows
// the last one by a period.
func (s *schedule) byTime(t *format.TickRecord) float64 {
	switch {
	case !t.HasTime:
		return s.last + s.period
	case !s.timed:
		s.timed = true
		s.origin, s.originTime = s.last+s.period, t.Time
	}
	return s.origin + float64(t.Time-s.originTime)*float64(time.Microsecond)
}
