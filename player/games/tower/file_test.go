package tower

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"reprise/format"
	"reprise/player"
)

// writeFile records a game as a replay file with keyframes of the running
// game, and gives the file and its hashes.
func writeFile(t *testing.T, seed uint64, mapName string) (*format.File, map[format.Tick][]byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "game.rply")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := format.NewWriter(out, Metadata("game", seed, mapName), CodeBook())
	if err != nil {
		t.Fatal(err)
	}
	hashes := recordRun(t, w, seed, mapName)
	if err := errors.Join(w.Finish(format.EndSealed, ""), out.Close()); err != nil {
		t.Fatal(err)
	}
	file, err := format.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file, hashes
}

func recordRun(t *testing.T, w *format.Writer, seed uint64, mapName string) map[format.Tick][]byte {
	t.Helper()
	run, err := NewRun(seed, mapName)
	if err != nil {
		t.Fatal(err)
	}
	hashes := map[format.Tick][]byte{}
	for {
		turn, settled, ok := run.Next()
		if ok {
			turn.Steps(func(code uint16, params ...format.Value) { err = errors.Join(err, w.Step(code, params...)) })
			err = errors.Join(err, w.EndTick())
		}
		for _, s := range settled {
			hashes[s.Tick] = s.Hash
			err = errors.Join(err, w.Hash(s.Tick, s.Hash))
		}
		if ok && w.NextTick()%50 == 0 {
			err = errors.Join(err, w.Keyframe(format.Keyframe{NextTick: w.NextTick(), State: run.Save(nil)}))
		}
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return hashes
		}
	}
}

func verify(t *testing.T, source player.Source, start player.Start, last *format.Tick) (player.Report, error) {
	t.Helper()
	games := player.Games{Factory()}
	linked, err := games.Lookup(start.Meta)
	if err != nil {
		t.Fatal(err)
	}
	sim := linked.Simulation()
	defer sim.Close()
	return player.Run(t.Context(), sim, source, player.EngineOptions{Start: start, Last: last})
}

func TestFileIsVerified(t *testing.T) {
	file, hashes := writeFile(t, 21, "tower-6")
	start := player.Start{Meta: file.Summary().Meta, Book: file.Book()}
	report, err := verify(t, player.NewFileSource(file), start, nil)
	if err != nil || report.HashesCompared != len(hashes) || !report.Complete {
		t.Errorf("error %v, %d of %d hashes compared, complete %v", err, report.HashesCompared, len(hashes), report.Complete)
	}
}

// A verification may end at any tick: the hash of the last move of a run is
// compared also where the turn behind it is not played.
func TestVerificationEndsAnywhere(t *testing.T) {
	file, hashes := writeFile(t, 21, "tower-2")
	start := player.Start{Meta: file.Summary().Meta, Book: file.Book()}
	want := 0
	for last := range format.Tick(60) {
		if hashes[last] != nil {
			want++
		}
		report, err := verify(t, player.NewFileSource(file), start, &last)
		if want > 0 && err != nil || report.HashesCompared != want {
			t.Errorf("up to tick %d: error %v, %d hashes compared, want %d", last, err, report.HashesCompared, want)
		}
	}
}
