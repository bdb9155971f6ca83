package skirmish

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"reprise/format"
	"reprise/player"
)

var update = flag.Bool("update", false, "write testdata/golden.txt anew")

// TestGolden plays three matches to the end. Any change of the simulation,
// of the bots or of the saved form shows as another line.
func TestGolden(t *testing.T) {
	var got strings.Builder
	for _, m := range []struct {
		seed    uint64
		players int
		mapName string
	}{{1, 2, "plains-100"}, {2, 4, "canyon-100"}, {3, 8, "woods-160"}} {
		got.WriteString(finish(t, m.seed, m.players, m.mapName))
	}
	path := filepath.Join("testdata", "golden.txt")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the matches end as\n%s%s says\n%sIf the simulation was meant to change, change Build and run: go test ./player/games/skirmish -run Golden -update",
			got.String(), path, want)
	}
}

// finish plays a match and describes its end and all of its hashes.
func finish(t *testing.T, seed uint64, players int, mapName string) string {
	t.Helper()
	m, err := NewMatch(seed, players, mapName)
	if err != nil {
		t.Fatal(err)
	}
	all := newDigest(0)
	commands := 0
	var hash []byte
	for {
		_, c, done := m.Next()
		if done {
			break
		}
		commands += len(c)
		if err := m.Simulate(); err != nil {
			t.Fatal(err)
		}
		hash = m.Game().Hash(hash[:0])
		all.addBytes(hash)
	}
	winner, _ := m.Game().Winner()
	return fmt.Sprintf("%s seed %d players %d: ticks %d commands %d winner %d hash %x all %016x state %08x\n",
		mapName, seed, players, m.Game().Tick(), commands, winner, hash, all.long(), stateSum(m.Game().Save(nil)))
}

// TestResetEqualsFresh: what a game did before leaves nothing behind.
func TestResetEqualsFresh(t *testing.T) {
	tapes := []*tape{
		record(t, 41, 2, "plains-64", 700),
		record(t, 42, 5, "woods-100", 700),
		record(t, 43, 3, "canyon-80", 700),
		record(t, 44, 3, "canyon-80", 300),
		record(t, 41, 2, "plains-64", 900),
	}
	used := new(Game)
	for round := range 3 {
		for i, rec := range tapes {
			if err := used.Reset(rec.start); err != nil {
				t.Fatal(err)
			}
			// Some rounds stop halfway, or leave a failed Reset behind.
			end := len(rec.hashes) / (1 + (round+i)%2)
			if err := rec.play(used, end); err != nil {
				t.Fatalf("round %d, tape %d: %v", round, i, err)
			}
			if round == 1 {
				if err := used.Reset(startOf(1, 2, "sea-100")); !errors.Is(err, ErrUnknownMap) {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestConcurrentGames plays one tape in many goroutines at once, under one
// processor and under several.
func TestConcurrentGames(t *testing.T) {
	rec := record(t, 50, 4, "plains-100", 1500)
	for _, procs := range []int{1, 4} {
		old := runtime.GOMAXPROCS(procs)
		var wg sync.WaitGroup
		errs := make([]error, 6)
		for i := range errs {
			wg.Go(func() {
				g := new(Game)
				if errs[i] = g.Reset(rec.start); errs[i] == nil {
					errs[i] = rec.play(g, len(rec.hashes))
				}
			})
		}
		wg.Wait()
		runtime.GOMAXPROCS(old)
		if err := errors.Join(errs...); err != nil {
			t.Errorf("GOMAXPROCS %d: %v", procs, err)
		}
	}
}

// TestReplayThroughRecordedSteps: a game that gets nothing but start and
// steps gives the hashes of the match that bots played, and one command less
// is noticed.
func TestReplayThroughRecordedSteps(t *testing.T) {
	rec := record(t, 60, 3, "plains-100", 2400)
	g := new(Game)
	if err := g.Reset(rec.start); err != nil {
		t.Fatal(err)
	}
	if err := rec.play(g, len(rec.hashes)); err != nil {
		t.Fatal(err)
	}
	for i, commands := range rec.commands {
		if i > 200 && len(commands) > 0 {
			rec.commands[i] = commands[1:]
			break
		}
	}
	if err := g.Reset(rec.start); err != nil {
		t.Fatal(err)
	}
	if err := rec.play(g, len(rec.hashes)); err == nil {
		t.Error("a missing command was not noticed")
	}
}

// TestSeedMatters: another seed is another match from the first tick on.
func TestSeedMatters(t *testing.T) {
	a, b := newGame(t, 1, 2, "plains-64"), newGame(t, 2, 2, "plains-64")
	if x, y := a.Hash(nil), b.Hash(nil); bytes.Equal(x[:4], y[:4]) || bytes.Equal(x[12:], y[12:]) {
		t.Errorf("hashes %x and %x", x, y)
	}
}

// TestInvariants looks at matches for what must be true between any two ticks.
func TestInvariants(t *testing.T) {
	for seed, mapName := range []string{"plains-64", "woods-100", "canyon-100", "canyon-64"} {
		m, err := NewMatch(uint64(seed), 2+2*seed, mapName)
		if err != nil {
			t.Fatal(err)
		}
		for {
			tick, _, done := m.Next()
			if done || tick == 5000 {
				break
			}
			if tick%149 == 0 {
				checkState(t, m.Game())
			}
			if err := m.Simulate(); err != nil {
				t.Fatal(err)
			}
		}
		checkState(t, m.Game())
	}
}

// TestSourceKeepsTheRules reads the package's own source: no floating point,
// map, goroutine or channel, and no import that could let the outside in.
func TestSourceKeepsTheRules(t *testing.T) {
	allowed := map[string]bool{
		"encoding/binary": true, "errors": true, "fmt": true, "math": true, "math/bits": true, "slices": true,
		"sort": true, "strconv": true, "strings": true, "reprise/format": true, "reprise/player": true,
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		read++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			if !allowed[strings.Trim(i.Path.Value, `"`)] {
				t.Errorf("%s imports %s", name, i.Path.Value)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			what := ""
			switch n := n.(type) {
			case *ast.MapType:
				what = "a map"
			case *ast.GoStmt:
				what = "a goroutine"
			case *ast.ChanType, *ast.SelectStmt:
				what = "a channel"
			case *ast.BasicLit:
				if n.Kind == token.FLOAT {
					what = "a floating-point number"
				}
			case *ast.Ident:
				if n.Name == "float64" || n.Name == "float32" {
					what = "floating point"
				}
			}
			if what != "" {
				t.Errorf("%v: %s", set.Position(n.Pos()), what)
			}
			return true
		})
	}
	if read < 20 {
		t.Errorf("only %d files were read", read)
	}
}

// TestSteadyStateAllocatesNothing covers steps, ticks, hashes and saves.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	g := battle(t)
	step := format.Step{Code: OpMove, Params: make([]format.Value, 0, paramCount)}
	id := int64(g.units[len(g.units)-1].id)
	seat := int64(g.units[len(g.units)-1].owner)
	state, hash := g.Save(nil), g.Hash(nil)
	state = append(state, make([]byte, 4096)...)
	allocs := testing.AllocsPerRun(200, func() {
		c := Command{Op: OpMove, Player: int64(g.sides[seat].player), Unit: id, TX: int64(20 * one), TY: int64(20 * one)}
		step.Params = c.AppendParams(step.Params[:0])
		if result, err := g.Step(g.Tick(), step); result == player.Failed {
			t.Fatal(err)
		}
		if err := g.EndTick(g.Tick()); err != nil {
			t.Fatal(err)
		}
		hash = g.Hash(hash[:0])
		state = g.Save(state[:0])
	})
	if allocs > 1 {
		t.Errorf("%v allocations a tick", allocs)
	}
}

// FuzzSteps feeds arbitrary commands. Nothing may panic, fail or break the
// state.
func FuzzSteps(f *testing.F) {
	f.Add(uint64(1), []byte{1, 1, 20, 30, 30, 0, 5, 2, 21, 10, 10, 3})
	f.Add(uint64(2), []byte("a move, an attack, and then some"))
	f.Add(uint64(60), []byte{160, 1, 0, 0, 0, 0}) // a surrender, and the tick has not ended
	f.Fuzz(func(t *testing.T, seed uint64, data []byte) {
		g := newGame(t, seed, 2, "plains-64")
		for ; len(data) >= 6; data = data[6:] {
			c := Command{
				Op: uint16(data[0]%7) + 1, Player: int64(data[1] % 4), Unit: int64(data[2]),
				TX: int64(data[3]) << 14, TY: int64(data[4]) << 14, Target: int64(data[5]),
			}
			if data[0] >= 240 {
				c.Unit, c.TX, c.Target = -c.Unit<<40, -c.TX<<30, -c.Target<<50
			}
			if result, err := give(g, c); result == player.Failed {
				t.Fatalf("%+v: %v", c, err)
			}
			run(t, g, int(data[0]%32))
		}
		checkState(t, g)
	})
}
