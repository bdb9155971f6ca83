package marbles

import (
	"encoding/hex"
	"math"
	"testing"

	"reprise/format"
	"reprise/player"
)

// run plays a sample match and gives the game behind it.
func run(t *testing.T, seed uint64, ticks int) (g *Game, ignored int) {
	t.Helper()
	g = new(Game)
	if err := g.Reset(player.Start{Meta: Metadata(seed)}); err != nil {
		t.Fatal(err)
	}
	for tick, pushes := range SampleMatch(seed, ticks) {
		for _, p := range pushes {
			result, err := g.Step(format.Tick(tick), format.Step{Code: p.Op, Params: p.Params()})
			if result == player.Failed {
				t.Fatal(err)
			}
			if result == player.Ignored {
				ignored++
			}
		}
		if err := g.EndTick(format.Tick(tick)); err != nil {
			t.Fatal(err)
		}
	}
	return g, ignored
}

// TestGolden: any change of the rules shows, here and in every other language.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		seed    uint64
		ticks   int
		ignored int
		hash    string
	}{
		{1, 0, 0, "34ae3b38133d4ec1"}, {1, 1, 0, "93f74807dafb8052"}, {1, 2000, 92, "2f65c996df1f42e3"},
		{math.MaxUint64, 2000, 105, "367e6afc56a9b308"},
	} {
		g, ignored := run(t, c.seed, c.ticks)
		if got := hex.EncodeToString(g.Hash(nil)); got != c.hash || ignored != c.ignored {
			t.Errorf("seed %d, %d ticks: hash %s, %d ignored; want %s, %d", c.seed, c.ticks, got, ignored, c.hash, c.ignored)
		}
	}
}

func TestCommands(t *testing.T) {
	ints := func(values ...int64) (params []format.Value) {
		for _, v := range values {
			params = append(params, format.Int(v))
		}
		return params
	}
	for name, c := range map[string]struct {
		code   uint16
		params []format.Value
		want   player.Result
	}{
		"push":                 {OpPush, ints(1, 15, 64, -64), player.Success},
		"stop":                 {OpStop, ints(1, 0), player.Success},
		"no marble":            {OpPush, ints(1, 16, 1, 1), player.Ignored},
		"negative marble":      {OpStop, ints(1, -1), player.Ignored},
		"hard push":            {OpPush, ints(1, 0, 65, 0), player.Ignored},
		"hard push, back":      {OpPush, ints(1, 0, 0, -65), player.Ignored},
		"push without measure": {OpPush, ints(1, 0, math.MinInt64, 0), player.Ignored},
		"no such command":      {3, ints(1, 0), player.Failed},
		"too few":              {OpPush, ints(1, 0), player.Failed},
		"a text":               {OpStop, []format.Value{format.Int(1), format.String("0")}, player.Failed},
		"beyond 64 bits":       {OpStop, []format.Value{format.Int(1), format.Uint(math.MaxUint64)}, player.Failed},
	} {
		g := new(Game)
		if result, _ := g.Step(0, format.Step{Code: c.code, Params: c.params}); result != c.want {
			t.Errorf("%s: %d, want %d", name, result, c.want)
		}
	}
	if err := new(Game).Reset(player.Start{Meta: Metadata(1), State: []byte{}}); err == nil {
		t.Error("a keyframe is taken")
	}
}

// TestDumpCoversTheState: what the hash covers, the dump names.
func TestDumpCoversTheState(t *testing.T) {
	g, _ := run(t, 1, 10)
	before := g.Dump()
	if len(before) != 1+4*marbles {
		t.Fatalf("%d fields", len(before))
	}
	g.marbles[7].vy++
	g.random++
	changed := 0
	for i, f := range g.Dump() {
		if f != before[i] {
			changed++
		}
	}
	if changed != 2 {
		t.Errorf("%d fields changed", changed)
	}
}
