package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/format"
	"reprise/player"
	"reprise/player/games/marbles"
	"reprise/player/internal/playtest"
)

// sampleCommands gives the command line of each sample adapter that can be
// run here.
func sampleCommands(t *testing.T) map[string]string {
	t.Helper()
	folder := t.TempDir()
	commands := map[string]string{}
	if python, err := exec.LookPath("python3"); err == nil {
		commands["Python"] = "'" + python + "' samples/marbles.py"
	}
	if cc, err := exec.LookPath("cc"); err == nil {
		program := filepath.Join(folder, "marbles")
		if out, err := exec.Command(cc, "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, "samples/socket.c").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		commands["C"] = "'" + program + "'"
	}
	return commands
}

// TestSampleAdapters: the same game in other languages gives the same answers
// as the linked one.
func TestSampleAdapters(t *testing.T) {
	commands := sampleCommands(t)
	for _, name := range []string{"Python", "C"} {
		t.Run(name, func(t *testing.T) {
			command, here := commands[name]
			if !here {
				t.Skipf("what runs %s (python3, cc) is not here: its adapter is not run", name)
			}
			for _, tcp := range []bool{false, true} {
				o := quick("")
				o.Env, o.TCP = nil, tcp
				child, err := New(context.Background(), command, o)
				if err != nil {
					t.Fatal(err)
				}
				playMarbles(t, child)
				if err := child.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func playMarbles(t *testing.T, child *Simulation) {
	t.Helper()
	start, ticks := playtest.Marbles(t, 5, 700)
	local := player.NewLocal(new(marbles.Game))
	sameRun(t, child, local, start, ticks, nil)
	dump, err := child.Dump()
	if want := local.Game().(player.Dumper).Dump(); err != nil || !slices.Equal(dump, want) {
		t.Errorf("dump %v, %v; want %v", dump, err, want)
	}
	start.Meta.Seed = 1<<64 - 1
	sameRun(t, child, local, start, ticks, nil)
	for name, params := range map[string][]format.Value{"text": {format.Int(1), format.String("x")}, "short": {format.Int(1)}} {
		bad := playtest.NewScript(t).Empty(3).Tick(func(add func(uint16, ...format.Value)) {
			add(marbles.OpStop, format.Int(1), format.Int(99))
			add(marbles.OpStop, params...)
		}).Empty(2)
		results, err := run(child, start, bad.Ticks, nil)
		if want := "error 72: tick 3, step 1 (code 2): execute failed: no such command"; err == nil || err.Error() != want || len(results) != 4 || results[3].ignored != 1 {
			t.Errorf("%s: %v, %d answers, want %s", name, err, len(results), want)
		}
	}
	if err := child.Reset(player.Start{Meta: start.Meta, State: []byte{1}}); !isStart(err) {
		t.Errorf("a keyframe: %v", err)
	}
}

// TestSamplesAreShort: an adapter can be read in one go.
func TestSamplesAreShort(t *testing.T) {
	for _, files := range [][]string{{"marbles.py"}, {"Marbles.cs"}, {"messages.h", "socket.c"}} {
		lines := 0
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join("samples", file))
			if err != nil {
				t.Fatal(err)
			}
			lines += strings.Count(string(text), "\n")
		}
		if lines >= 200 {
			t.Errorf("%v have %d lines", files, lines)
		}
	}
}
