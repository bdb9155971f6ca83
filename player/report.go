package player

import "reprise/format"

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
