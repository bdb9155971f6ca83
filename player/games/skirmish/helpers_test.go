package skirmish

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"reprise/format"
	"reprise/player"
)

// startOf is the start of a match as a recording describes it.
func startOf(seed uint64, players int, mapName string) player.Start {
	return player.Start{Meta: NewMetadata(seed, mapName, players), Book: CodeBook(), Players: NewPlayers(players)}
}

func newGame(t testing.TB, seed uint64, players int, mapName string) *Game {
	t.Helper()
	g := new(Game)
	if err := g.Reset(startOf(seed, players, mapName)); err != nil {
		t.Fatal(err)
	}
	return g
}

// newDuel is a match of two on open ground with nothing on it but the
// halls, for tests that place their own units.
func newDuel(t testing.TB) *Game {
	t.Helper()
	g := newGame(t, 1, 2, "plains-64")
	g.units = g.units[:0]
	return g
}

// put places a unit at a tile.
func put(g *Game, owner uint8, k kind, x, y int) uint32 {
	return g.enlist(owner, k, spot{x, y}).id
}

// unitOf is the unit with an id; the pointer is good for this tick only.
func unitOf(t testing.TB, g *Game, id uint32) *unit {
	t.Helper()
	i := g.findUnit(id)
	if i < 0 {
		t.Fatalf("tick %d: there is no unit %d", g.tick, id)
	}
	return &g.units[i]
}

// run simulates ticks without steps.
func run(t testing.TB, g *Game, ticks int) {
	t.Helper()
	for range ticks {
		if err := g.EndTick(g.Tick()); err != nil {
			t.Fatal(err)
		}
	}
}

// give applies a command as a recorded step.
func give(g *Game, c Command) (player.Result, error) {
	return g.Step(g.Tick(), format.Step{Code: c.Op, Params: c.AppendParams(nil)})
}

func mustGive(t testing.TB, g *Game, c Command) {
	t.Helper()
	if result, err := give(g, c); result != player.Success || err != nil {
		t.Fatalf("tick %d: %+v: result %d, %v", g.tick, c, result, err)
	}
}

// tape is a recorded match: the commands of every tick and the hash after it.
type tape struct {
	start    player.Start
	commands [][]Command
	hashes   [][]byte
}

// record plays a match to its end or for as many ticks.
func record(t testing.TB, seed uint64, players int, mapName string, ticks int) *tape {
	t.Helper()
	m, err := NewMatch(seed, players, mapName)
	if err != nil {
		t.Fatal(err)
	}
	rec := &tape{start: startOf(seed, players, mapName)}
	for range ticks {
		_, commands, done := m.Next()
		if done {
			break
		}
		rec.commands = append(rec.commands, slices.Clone(commands))
		if err := m.Simulate(); err != nil {
			t.Fatal(err)
		}
		rec.hashes = append(rec.hashes, m.Game().Hash(nil))
	}
	return rec
}

// play gives the tape's ticks from the game's present one to before end and
// compares every hash.
func (rec *tape) play(g *Game, end int) error {
	for i := int(g.tick - uint64(rec.start.NextTick)); i < end; i++ {
		for _, c := range rec.commands[i] {
			if result, err := give(g, c); result == player.Failed {
				return err
			}
		}
		if err := g.EndTick(g.Tick()); err != nil {
			return err
		}
		if got := g.Hash(nil); !bytes.Equal(got, rec.hashes[i]) {
			return fmt.Errorf("after tick %d the hash is %x, recorded %x", i, got, rec.hashes[i])
		}
	}
	return nil
}

// checkState holds a state against what must be true between any two ticks.
func checkState(t testing.TB, g *Game) {
	t.Helper()
	var board board
	board.copyFrom(&g.layout.board)
	for i := range g.deposits {
		board.set(g.deposits[i].spot(), mined)
	}
	for i := range g.buildings {
		if !board.allFree(g.buildings[i].spot(), 1) {
			t.Fatalf("tick %d: building %d stands on something", g.tick, g.buildings[i].id)
		}
		board.stamp(g.buildings[i].spot(), built)
	}
	if !slices.Equal(board.tiles, g.board.tiles) {
		t.Fatalf("tick %d: the board is not what the state makes", g.tick)
	}
	for i := range g.units {
		u := &g.units[i]
		if !board.freeAt(u.at) || u.hp < 1 || u.route.next > u.route.length {
			t.Fatalf("tick %d: bad unit %+v", g.tick, *u)
		}
		if i > 0 && u.id <= g.units[i-1].id {
			t.Fatalf("tick %d: unit %d comes after %d", g.tick, u.id, g.units[i-1].id)
		}
		for k := u.route.length; k < maxRoute; k++ {
			if u.route.tiles[k] != 0 {
				t.Fatalf("tick %d: unit %d has a tile beyond its route", g.tick, u.id)
			}
		}
	}
	checkConnected(t, &board)
	if err := new(Game).Load(g.Save(nil)); err != nil {
		t.Fatalf("tick %d: %v", g.tick, err)
	}
}

// checkConnected counts the connected regions of free tiles by merging
// neighbours, which is not how the board's flood does it.
func checkConnected(t testing.TB, b *board) {
	t.Helper()
	parent := make([]int, len(b.tiles))
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	regions := 0
	for i := range b.tiles {
		s := b.spot(i)
		if !b.free(s.x, s.y) {
			continue
		}
		regions++
		for _, n := range [...]spot{{s.x - 1, s.y}, {s.x, s.y - 1}} {
			if b.free(n.x, n.y) && root(i) != root(b.index(n.x, n.y)) {
				parent[root(i)] = root(b.index(n.x, n.y))
				regions--
			}
		}
	}
	if regions != 1 {
		t.Fatalf("the free ground falls into %d regions", regions)
	}
}
