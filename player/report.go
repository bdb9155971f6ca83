package player

import (
	"bytes"
	"cmp"
	"slices"

	"reprise/format"
)

// Report says what a run did. It is worth reading after an error, too.
type Report struct {
	// TicksRun counts the ticks that were simulated and answered; StepsRun
	// their steps, and Ignored those of them that had no effect.
	TicksRun, StepsRun, Ignored int
	// HashesCompared counts the recorded hashes that were compared, equal
	// or not. Where it is 0, nothing was verified.
	HashesCompared int
	// FirstTick and LastTick bound the ticks that were run; only where
	// TicksRun is not 0.
	FirstTick, LastTick format.Tick
	// Keyframe is set where the run started from a keyframe, not from the
	// game's initial state.
	Keyframe bool
	// Desync is the first desync; nil where there is none. Desyncs are the
	// first ones in order, at most MaxDesyncs, and DesyncCount is the number
	// of all of them; more than one only with KeepGoing.
	Desync      *DesyncError
	Desyncs     []*DesyncError
	DesyncCount int
	// Gaps are the gaps that were met, in order.
	Gaps []*GapError
	// Rebased counts how often the schedule was more than a second late and
	// started anew: the run then took longer than the match.
	Rebased int
	// Complete is set where the source was run to its end, or to
	// EngineOptions.Last.
	Complete bool

	// good is the last tick whose hash was equal; only with hasGood.
	good    format.Tick
	hasGood bool
}

// MaxDesyncs bounds Report.Desyncs.
const MaxDesyncs = 1000

func (r *Report) addDesync(d *DesyncError) {
	if r.Desync == nil {
		r.Desync = d
	}
	r.DesyncCount++
	if len(r.Desyncs) < MaxDesyncs {
		r.Desyncs = append(r.Desyncs, d)
	}
}

// desyncedLike reports whether the same desync was found.
func (r *Report) desyncedLike(d *DesyncError) bool {
	return slices.ContainsFunc(r.Desyncs, func(e *DesyncError) bool {
		return e.Tick == d.Tick && bytes.Equal(e.Got, d.Got)
	})
}

// openGap gives the first gap that nothing was started behind, nil where there
// is none.
func (r *Report) openGap() *GapError {
	for _, g := range r.Gaps {
		if !g.Restarted {
			return g
		}
	}
	return nil
}

// Add adds another run of the same replay.
func (r *Report) Add(o *Report) {
	if o.TicksRun > 0 {
		if r.TicksRun == 0 {
			r.FirstTick, r.LastTick = o.FirstTick, o.LastTick
		}
		r.FirstTick, r.LastTick = min(r.FirstTick, o.FirstTick), max(r.LastTick, o.LastTick)
	}
	r.TicksRun += o.TicksRun
	r.StepsRun += o.StepsRun
	r.Ignored += o.Ignored
	r.HashesCompared += o.HashesCompared
	r.DesyncCount += o.DesyncCount
	r.Desyncs = append(r.Desyncs, o.Desyncs...)
	slices.SortStableFunc(r.Desyncs, func(a, b *DesyncError) int { return cmp.Compare(a.Tick, b.Tick) })
	r.Desyncs = slices.CompactFunc(r.Desyncs, func(a, b *DesyncError) bool { return a.Tick == b.Tick && bytes.Equal(a.Got, b.Got) })
	r.Desyncs = r.Desyncs[:min(len(r.Desyncs), MaxDesyncs)]
	if len(r.Desyncs) > 0 {
		r.Desync = r.Desyncs[0]
	}
	r.Gaps = append(r.Gaps, o.Gaps...)
	r.Rebased += o.Rebased
	if o.hasGood && (!r.hasGood || o.good > r.good) {
		r.good, r.hasGood = o.good, true
	}
}
