package wasm

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"reprise/format"
	"reprise/player"
	"reprise/player/games/marbles"
	"reprise/player/internal/playtest"
)

//go:embed samples/marbles.wasm
var marblesFile []byte

var update = flag.Bool("update", false, "write samples/marbles.golden anew")

// compile compiles a module for one test.
func compile(t testing.TB, file []byte, o Options) *Module {
	t.Helper()
	m, err := Compile(context.Background(), file, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// simulate gives a simulation of a module for one test.
func simulate(t testing.TB, m *Module) *Simulation {
	t.Helper()
	s := m.New()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestMarblesEqualTheLinkedGame(t *testing.T) {
	m := compile(t, marblesFile, Options{})
	sim, local := simulate(t, m), player.NewLocal(new(marbles.Game))
	for _, seed := range []uint64{1, 5, 1<<64 - 1} {
		start, ticks := playtest.Marbles(t, seed, 1000)
		if got, want := play(t, sim, start, ticks), play(t, local, start, ticks); !slices.Equal(got, want) {
			t.Fatalf("seed %d: the hashes differ", seed)
		}
		dump, err := sim.Dump()
		if want := local.Game().(player.Dumper).Dump(); err != nil || !slices.Equal(dump, want) {
			t.Errorf("seed %d: dump %v, %v; want %v", seed, dump, err, want)
		}
	}
	if program := m.Program(); program != "marbles in C" {
		t.Errorf("program %q", program)
	}
	offers := m.Offers()
	if len(offers) != 1 || offers[0].Name != "marbles" || offers[0].Build != "marbles-1" || !offers[0].CanDump || offers[0].HashBytes != 8 {
		t.Errorf("offers %+v", offers)
	}
}

// TestMarblesGolden holds the module against hashes that were recorded once.
func TestMarblesGolden(t *testing.T) {
	sim := simulate(t, compile(t, marblesFile, Options{}))
	start, ticks := playtest.Marbles(t, 9, 500)
	var got strings.Builder
	for i, hash := range play(t, sim, start, ticks) {
		fmt.Fprintf(&got, "%d %x\n", i, hash)
	}
	path := filepath.Join("samples", "marbles.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	want, lines := strings.Split(got.String(), "\n"), bufio.NewScanner(file)
	n := 0
	for ; lines.Scan(); n++ {
		if n >= len(want) || lines.Text() != want[n] {
			t.Fatalf("line %d of %s is %q, the module gives %q", n+1, path, lines.Text(), want[n])
		}
	}
	if n != len(ticks) {
		t.Errorf("%s has %d lines, the match %d ticks", path, n, len(ticks))
	}
}

// TestMarblesAreBuiltFromTheSource builds the module anew where clang is here.
// Another version of it may give other bytes, which must behave alike.
func TestMarblesAreBuiltFromTheSource(t *testing.T) {
	for _, tool := range []string{"clang", "wasm-ld"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not here: samples/marbles.wasm is not built anew (apt-get install clang lld)", tool)
		}
	}
	path := filepath.Join(t.TempDir(), "built.wasm")
	if out, err := exec.Command("sh", "samples/build.sh", path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	built, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(built, marblesFile) {
		return
	}
	t.Logf("%d bytes, in samples/marbles.wasm %d: another compiler", len(built), len(marblesFile))
	start, ticks := playtest.Marbles(t, 9, 500)
	stored, fresh := simulate(t, compile(t, marblesFile, Options{})), simulate(t, compile(t, built, Options{}))
	if !slices.Equal(play(t, stored, start, ticks), play(t, fresh, start, ticks)) {
		t.Error("what is built from samples/module.c behaves otherwise than samples/marbles.wasm")
	}
}

// TestSnapshotsGoAnywhere moves to random ticks by snapshots, in memory and as
// bytes, in the same simulation and in others, and compares what follows.
func TestSnapshotsGoAnywhere(t *testing.T) {
	m := compile(t, marblesFile, Options{})
	start, ticks := playtest.Marbles(t, 3, 400)
	a, b := simulate(t, m), simulate(t, m)
	want := play(t, a, start, ticks)
	if err := a.Reset(start); err != nil {
		t.Fatal(err)
	}
	kept, states := map[int]player.Snapshot{}, map[int][]byte{}
	for i := range ticks {
		if i%7 == 0 {
			s, err := a.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if s.NextTick() != format.Tick(i) {
				t.Fatalf("a snapshot before tick %d says %d", i, s.NextTick())
			}
			kept[i], states[i] = s, save(t, a)
		}
		advance(t, a, ticks[i:i+1])
	}
	if err := b.Reset(start); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		at := r.IntN(len(ticks)/7) * 7
		end := at + 1 + r.IntN(len(ticks)-at)
		sim := []*Simulation{a, b}[round%2]
		var err error
		switch round % 3 {
		case 0:
			err = sim.Restore(kept[at])
		case 1:
			err = sim.Load(states[at], format.Tick(at))
		default:
			from := start
			from.State, from.NextTick = states[at], format.Tick(at)
			err = sim.Reset(from)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(save(t, sim), states[at]) {
			t.Fatalf("round %d: the state before tick %d is not what was kept", round, at)
		}
		if got := advance(t, sim, ticks[at:end]); !slices.Equal(got, want[at:end]) {
			t.Fatalf("round %d: hashes of ticks %d to %d differ", round, at, end)
		}
	}
	if n := kept[7].Held(); n > 64<<10 {
		t.Errorf("a snapshot of few changes holds %d bytes", n)
	}
}

// TestSimulationsRunTogether: many at once give what one alone does.
func TestSimulationsRunTogether(t *testing.T) {
	m := compile(t, marblesFile, Options{})
	start, ticks := playtest.Marbles(t, 4, 300)
	want := play(t, simulate(t, m), start, ticks)
	sims := make([]*Simulation, 6)
	for i := range sims {
		sims[i] = simulate(t, m)
	}
	var all sync.WaitGroup
	results := make([][]string, len(sims))
	for i, sim := range sims {
		all.Go(func() { results[i] = play(t, sim, start, ticks) })
	}
	all.Wait()
	for i, got := range results {
		if !slices.Equal(got, want) {
			t.Errorf("simulation %d gives other hashes", i)
		}
	}
}

func TestStepsThatFail(t *testing.T) {
	sim := simulate(t, compile(t, marblesFile, Options{}))
	start, _ := playtest.Marbles(t, 1, 0)
	ticks := playtest.NewScript(t).Empty(2).One(9, format.Bool(true)).Ticks
	_, err := player.Run(context.Background(), sim, playtest.Source(ticks), player.EngineOptions{Start: start, Trace: func(format.Tick, []byte) error { return nil }})
	var failure *player.StepFailure
	if !errors.As(err, &failure) || failure.Tick != 2 || failure.Code != 9 || failure.Err == nil || failure.Err.Error() != "no such command" {
		t.Errorf("got %v", err)
	}
	if err := sim.Advance(&ticks[0], false, nil); !errors.As(err, &failure) {
		t.Errorf("a tick after it: %v", err)
	}
	start.State = []byte("of another game")
	if err := sim.Reset(start); !errors.Is(err, player.ErrStart) || !strings.Contains(err.Error(), "from the beginning alone") {
		t.Errorf("a keyframe: %v", err)
	}
}

func TestWhichReplaysFit(t *testing.T) {
	m := compile(t, marblesFile, Options{})
	any := compile(t, marblesFile, Options{AnyGame: true})
	for _, c := range []struct {
		game, build    string
		missing, wrong bool
	}{
		{"marbles", "marbles-1", false, false},
		{"marbles", m.Build(), false, false},
		{"", "", false, false},
		{"marbles", "marbles-2", false, true},
		{"marbles", "", false, true},
		{"marbles", BuildPrefix + hex.EncodeToString(make([]byte, 32)), false, true},
		{"tower", "marbles-1", true, false},
	} {
		start, ticks := playtest.Marbles(t, 1, 3)
		start.Meta.Game, start.Meta.Build = c.game, c.build
		err := simulate(t, m).Reset(start)
		var missing *player.GameMissingError
		var wrong *player.BuildMismatchError
		if errors.As(err, &missing) != c.missing || errors.As(err, &wrong) != c.wrong || (err != nil) != (c.missing || c.wrong) {
			t.Errorf("%q, build %q: %v", c.game, c.build, err)
		}
		play(t, simulate(t, any), start, ticks)
	}
	start, _ := playtest.Marbles(t, 1, 0)
	start.Meta.HashBytes = 4
	if err := simulate(t, m).Reset(start); !errors.Is(err, player.ErrStart) {
		t.Errorf("hashes of another width: %v", err)
	}
}
