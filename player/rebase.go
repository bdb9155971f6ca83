package player

import (
	"bytes"
	"context"
	"errors"

	"reprise/format"
)

// RebaseReport says what Rebase found.
type RebaseReport struct {
	// Changed is the first tick whose hash became another; only with
	// HasChanged. Hashes are all that were written.
	Changed    format.Tick
	HasChanged bool
	Hashes     int
	// Dropped counts the keyframes that were left out, because the game
	// cannot save its state there.
	Dropped int
}

// Rebase writes a replay anew with the hashes and keyframes that sim gives for
// its inputs: for an intended change of the game. The keyframes that the game
// starts from, before the first tick and behind a gap, are kept as they are.
// The errors are those of Playback; a step that the changed game refuses is a
// StepFailure, and a replay without hashes ErrNothingCompared. out must be
// empty; after an error it is of no use.
func Rebase(ctx context.Context, file *format.File, sim Simulation, build string, out format.ReplayFile) (RebaseReport, error) {
	s := file.Summary()
	if s.Hashes == 0 {
		return RebaseReport{}, ErrNothingCompared
	}
	r := &rebase{ctx: ctx, file: file}
	r.playback = NewPlayback(file, sim, PlaybackOptions{Budget: -1, Trace: r.note})
	if LooksAhead(sim) {
		if err := r.playAll(sim); err != nil {
			return RebaseReport{}, err
		}
	} else {
		r.keeper, _ = sim.(Keeper)
	}
	err := format.Rebase(file, out, format.RebaseOptions{Build: build, Hash: r.hash, Keyframe: r.keyframe})
	return r.report, err
}

// rebase plays a replay as far as its copy is written.
type rebase struct {
	ctx      context.Context
	file     *format.File
	playback *Playback
	keeper   Keeper
	report   RebaseReport
	// last is the hash after the last tick played.
	last []byte
	// all holds every hash of a game that looks ahead: it cannot be halted
	// between two ticks.
	all map[format.Tick][]byte
}

// playAll plays the whole replay.
func (r *rebase) playAll(sim Simulation) error {
	r.all = map[format.Tick][]byte{}
	trace := func(tick format.Tick, hash []byte) error {
		r.all[tick] = bytes.Clone(hash)
		return nil
	}
	report, err := Run(r.ctx, sim, NewFileSource(r.file), EngineOptions{Start: StartOf(r.file), KeepGoing: true, Trace: trace})
	if report.Complete {
		return nil // desyncs are what is to be replaced
	}
	return err
}

func (r *rebase) note(tick format.Tick, hash []byte) error {
	r.last = append(r.last[:0], hash...)
	return nil
}

func (r *rebase) hash(t *format.TickRecord) ([]byte, error) {
	if r.all != nil {
		r.last = r.all[t.Tick]
	} else if err := r.playback.Play(r.ctx, t.Tick+1); err != nil {
		return nil, err
	}
	r.report.Hashes++
	if !r.report.HasChanged && !bytes.Equal(t.Hash, r.last) {
		r.report.Changed, r.report.HasChanged = t.Tick, true
	}
	return r.last, nil
}

func (r *rebase) keyframe(k *format.Keyframe) ([]byte, error) {
	if r.starts(k.NextTick) {
		return k.State, nil
	}
	if r.keeper == nil {
		r.report.Dropped++
		return nil, nil
	}
	if err := r.playback.Play(r.ctx, k.NextTick); err != nil {
		return nil, err
	}
	state, err := r.keeper.Save(nil)
	if errors.Is(err, ErrUnable) {
		r.report.Dropped++
		return nil, nil
	}
	return state, err
}

// starts reports whether a simulation begins, or begins anew, before tick.
func (r *rebase) starts(tick format.Tick) bool {
	s := r.file.Summary()
	here := stretchAt(s, tick)
	return tick == s.Meta.FirstTick || !here.missing && tick == here.first
}
