package player

import (
	"context"
	"errors"
	"testing"

	"reprise/format"
)

// TestRebaseMakesTheChangedGamePass rebases for a game that differs from a
// tick on: it then verifies, in parts too, and the old one fails at that tick.
func TestRebaseMakesTheChangedGamePass(t *testing.T) {
	m := recordMatch(t, matchPlan{ticks: 300, hashEvery: 10, frames: []format.Tick{100, 150, 260, 320}, gaps: []format.Gap{{First: 230, Last: 259, Reason: "x"}}})
	ctx := context.Background()
	for _, fault := range []format.Tick{100, 147, 215, 300} {
		var out format.Buffer
		report, err := Rebase(ctx, m.file, NewLocal(faulty(fault)()), "2.0", &out)
		if err != nil {
			t.Fatal(err)
		}
		if want := (fault + 9) / 10 * 10; !report.HasChanged || report.Changed != want || report.Hashes != 27 || report.Dropped != 0 {
			t.Errorf("fault at %d: %+v", fault, report)
		}
		file := openBytes(t, out.Bytes())
		s, old := file.Summary(), m.file.Summary()
		if s.Meta.Build != "2.0" || s.Ticks != old.Ticks || s.Steps != old.Steps || len(s.Gaps) != 1 || len(s.Keyframes) != 4 || s.End.State != format.EndSealed {
			t.Errorf("fault at %d: %+v", fault, s)
		}
		o := SegmentOptions{Jobs: 2, Simulation: func() (Simulation, func(), error) { return NewLocal(faulty(fault)()), func() {}, nil }}
		verified, err := VerifySegments(ctx, file, o)
		wantGap(t, err, 230, 259, true, true)
		if verified.HashesCompared != 27 || verified.Desync != nil {
			t.Errorf("fault at %d: %+v", fault, verified)
		}
		_, err = Run(ctx, NewLocal(&mixer{}), NewFileSource(file), EngineOptions{Start: StartOf(file)})
		wantDesync(t, err, report.Changed)
	}
	var out format.Buffer
	if report, err := Rebase(ctx, m.file, NewLocal(&mixer{}), "same", &out); err != nil || report.HasChanged {
		t.Errorf("for the same game: %+v, %v", report, err)
	}
}

// TestRebaseOfATurnBasedGame: its ticks are settled late.
func TestRebaseOfATurnBasedGame(t *testing.T) {
	meta := &format.Metadata{Game: "walker", HashBytes: 8, Width: format.Width16}
	file := recordTurns(t, meta, 40)
	var out format.Buffer
	report, err := Rebase(context.Background(), file, NewTurns(newWalker()), "2", &out)
	if err != nil || report.Hashes != 40 || !report.HasChanged || report.Changed != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	again := openBytes(t, out.Bytes())
	if _, err := Run(context.Background(), NewTurns(newWalker()), NewFileSource(again), EngineOptions{Start: StartOf(again)}); err != nil {
		t.Error(err)
	}
}

// recordTurns writes a walk whose hashes are all zero.
func recordTurns(t *testing.T, meta *format.Metadata, turns int) *format.File {
	t.Helper()
	var out format.Buffer
	w, err := format.NewWriter(&out, meta, nil)
	for i := range turns {
		step := moveStep(int64(1 + i%7))
		err = errors.Join(err, w.Step(step.Code, step.Params...), w.EndTick(), w.Hash(format.Tick(i), make([]byte, meta.HashBytes)))
	}
	if err = errors.Join(err, w.Finish(format.EndSealed, "")); err != nil {
		t.Fatal(err)
	}
	return openBytes(t, out.Bytes())
}

func TestRebaseRefusesWhatHasNoHashes(t *testing.T) {
	m := recordMatch(t, matchPlan{ticks: 30})
	if _, err := Rebase(context.Background(), m.file, NewLocal(&mixer{}), "2", new(format.Buffer)); !errors.Is(err, ErrNothingCompared) {
		t.Error(err)
	}
}
