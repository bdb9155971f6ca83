package wasm

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"reprise/player"
	"reprise/player/games/skirmish"
	"reprise/player/internal/playtest"
)

// buildSkirmish builds the sample game once and gives its bytes.
var buildSkirmish = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "reprise-wasm-test-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "skirmish.wasm")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-buildmode=c-shared", "-o", path, "reprise/player/games/skirmish/wasm")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, errors.New(err.Error() + "\n" + string(out))
	}
	return os.ReadFile(path)
})

var skirmishModule = sync.OnceValues(func() (*Module, error) {
	file, err := buildSkirmish()
	if err != nil {
		return nil, err
	}
	return Compile(context.Background(), file, Options{})
})

// newSkirmish gives a simulation of the sample game as a module.
func newSkirmish(t testing.TB) *Simulation {
	t.Helper()
	if testing.Short() || underRace {
		t.Skip("compiling a module with Go's runtime takes long: not with -short, nor under the race detector, which cannot look into it")
	}
	m, err := skirmishModule()
	if err != nil {
		t.Fatal(err)
	}
	s := m.New()
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestSkirmishEqualsTheLinkedGame(t *testing.T) {
	sim := newSkirmish(t)
	start, ticks := playtest.Skirmish(t, 1500)
	report, err := player.Run(context.Background(), sim, playtest.Source(ticks), player.EngineOptions{Start: start})
	if err != nil || report.TicksRun != 1500 || report.HashesCompared != 1500 || report.StepsRun < 100 {
		t.Errorf("%+v, %v", report, err)
	}
	local := player.NewLocal(new(skirmish.Game))
	if _, err := player.Run(context.Background(), local, playtest.Source(ticks), player.EngineOptions{Start: start}); err != nil {
		t.Fatal(err)
	}
	dump, err := sim.Dump()
	if want := local.Game().(player.Dumper).Dump(); err != nil || !slices.Equal(dump, want) {
		t.Errorf("%d fields dumped, %v; want %d", len(dump), err, len(want))
	}
	// The linked game's own keyframe restarts the module, too.
	start.State, start.NextTick = local.Game().(player.Saver).Save(nil), 1500
	if err := sim.Reset(start); err != nil {
		t.Fatal(err)
	}
	if again, err := sim.Dump(); err != nil || !slices.Equal(dump, again) {
		t.Errorf("from the linked game's keyframe: %d fields, %v", len(again), err)
	}
	start.State = start.State[:len(start.State)-1]
	if err := sim.Reset(start); !errors.Is(err, player.ErrStart) {
		t.Errorf("from a damaged keyframe: %v", err)
	}
}

// TestSkirmishMemoryIsDeterministic: not only the game but all of Go's
// runtime, with its maps and its garbage collector, does the same twice, and
// from a snapshot on.
func TestSkirmishMemoryIsDeterministic(t *testing.T) {
	start, ticks := playtest.Skirmish(t, 600)
	a, b := newSkirmish(t), newSkirmish(t)
	whole := play(t, a, start, ticks)
	play(t, b, start, ticks[:300])
	kept, err := b.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	play(t, b, start, ticks[:10])
	if err := b.Restore(kept); err != nil {
		t.Fatal(err)
	}
	if rest := advance(t, b, ticks[300:]); !slices.Equal(rest, whole[300:]) {
		t.Error("the hashes behind a snapshot differ")
	}
	if !bytes.Equal(save(t, a), save(t, b)) {
		t.Error("the memory of two runs differs")
	}
}
