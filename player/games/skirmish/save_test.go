package skirmish

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/player"
)

// TestSaveAndLoadChangeNothing plays a recorded match once straight and once
// from a state saved at a random tick, in a fresh game, and compares every
// later hash and the last state field by field.
func TestSaveAndLoadChangeNothing(t *testing.T) {
	for _, m := range []struct {
		players int
		mapName string
	}{{2, "plains-100"}, {4, "canyon-100"}, {8, "woods-100"}} {
		t.Run(m.mapName, func(t *testing.T) {
			rec := record(t, 21, m.players, m.mapName, 4000)
			end := len(rec.hashes)
			r := rand.New(rand.NewPCG(13, uint64(m.players)))
			cuts := []int{0, 1, end}
			for range 6 {
				cuts = append(cuts, r.IntN(end))
			}
			slices.Sort(cuts)
			straight := new(Game)
			if err := straight.Reset(rec.start); err != nil {
				t.Fatal(err)
			}
			var saved [][]byte
			for _, cut := range cuts {
				if err := rec.play(straight, cut); err != nil {
					t.Fatal(err)
				}
				saved = append(saved, straight.Save(nil))
			}
			for i, cut := range cuts {
				checkResumed(t, rec, straight, saved[i], cut, min(end, cut+500))
			}
		})
	}
}

// checkResumed loads a state saved before tick cut, plays on from it to end
// and, where that is the end of the tape, compares with the straight game.
func checkResumed(t *testing.T, rec *tape, straight *Game, state []byte, cut, end int) {
	t.Helper()
	g := new(Game)
	if err := g.Load(state); err != nil {
		t.Fatalf("state of tick %d: %v", cut, err)
	}
	if again := g.Save(nil); !bytes.Equal(again, state) {
		t.Fatalf("state of tick %d: loaded and saved it differs", cut)
	}
	if err := rec.play(g, end); err != nil {
		t.Fatalf("from tick %d: %v", cut, err)
	}
	if end < len(rec.hashes) {
		return
	}
	want, got := straight.Dump(), g.Dump()
	if !slices.Equal(want, got) {
		t.Fatalf("from tick %d the last state differs in %v", cut, differing(want, got))
	}
}

func differing(a, b []player.Field) []string {
	var names []string
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			names = append(names, fmt.Sprintf("%s: %s, %s", a[i].Name, a[i].Value, b[i].Value))
		}
	}
	return names
}

// battle is a saved state of the middle of a match, with arrows in the air
// and queues filled.
func battle(t testing.TB) *Game {
	t.Helper()
	m, err := NewMatch(4, 4, "canyon-100")
	if err != nil {
		t.Fatal(err)
	}
	for m.game.tick < 3000 || len(m.game.arrows) == 0 {
		if _, _, done := m.Next(); done {
			t.Fatal("the match ended without a battle")
		}
		if err := m.Simulate(); err != nil {
			t.Fatal(err)
		}
	}
	return m.game
}

func TestLoadRefusesDamage(t *testing.T) {
	good := battle(t).Save(nil)
	for n := range good {
		if err := new(Game).Load(good[:n]); !errors.Is(err, ErrState) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	for n := 0; n < len(good); n += 3 {
		bad := slices.Clone(good)
		bad[n] ^= 1 << (n % 8)
		if err := new(Game).Load(bad); !errors.Is(err, ErrState) {
			t.Fatalf("a bit of byte %d turned: %v", n, err)
		}
	}
	if err := new(Game).Load(append(slices.Clone(good), 0)); !errors.Is(err, ErrState) {
		t.Errorf("one byte more: %v", err)
	}
	if err := new(Game).Load(nil); !errors.Is(err, ErrState) {
		t.Errorf("no bytes: %v", err)
	}
}

// resum puts the right digest under bytes that were changed.
func resum(state []byte) []byte {
	if len(state) < sumBytes {
		return state
	}
	body := state[:len(state)-sumBytes]
	return binary.LittleEndian.AppendUint64(slices.Clip(body), stateSum(body))
}

// TestLoadRefusesImpossibleStates: the digest fits, the content does not.
func TestLoadRefusesImpossibleStates(t *testing.T) {
	tests := map[string]func(g *Game){
		"an unknown map":              func(g *Game) { g.mapName = "sea-100" },
		"a map's name too long":       func(g *Game) { g.mapName += "0000000000000000000000000000000000" },
		"another map":                 func(g *Game) { g.mapName = "plains-64" },
		"one player":                  func(g *Game) { g.sides = g.sides[:1] },
		"nine players":                func(g *Game) { g.sides = append(g.sides, make([]side, 5)...) },
		"a player twice":              func(g *Game) { g.sides[1].player = g.sides[0].player },
		"a player above 63 bits":      func(g *Game) { g.sides[3].player = 1 << 63 },
		"a standing without meaning":  func(g *Game) { g.sides[0].standing = 3 },
		"an owner who is out":         func(g *Game) { g.sides[0].standing = defeated },
		"negative gold":               func(g *Game) { g.sides[0].gold = -1 },
		"a last id below the map's":   func(g *Game) { g.lastID = 1 },
		"a last id below a unit's":    func(g *Game) { g.lastID = g.units[len(g.units)-1].id - 1 },
		"a last id near the end":      func(g *Game) { g.lastID = mostID + 1 },
		"a winner's seat of none":     func(g *Game) { g.over, g.winner = true, 5 },
		"a winner too early":          func(g *Game) { g.winner = 1 },
		"a deposit that is not there": func(g *Game) { g.deposits[len(g.deposits)-1].id = g.layout.lastID + 1 },
		"deposits out of order":       func(g *Game) { g.deposits[0].id = g.deposits[1].id },
		"an empty deposit":            func(g *Game) { g.deposits[0].left = 0 },
		"a deposit that grew":         func(g *Game) { g.deposits[0].left = mineGold + 1 },
		"a building's owner of none":  func(g *Game) { g.buildings[0].owner = 4 },
		"a building that walks":       func(g *Game) { g.buildings[0].kind = soldier },
		"a building over the border":  func(g *Game) { g.buildings[0].x = 0 },
		"a building off the map":      func(g *Game) { g.buildings[0].x = 200 },
		"a building on another":       func(g *Game) { g.buildings[1].x, g.buildings[1].y = g.buildings[0].x, g.buildings[0].y },
		"a building on a deposit":     func(g *Game) { g.buildings[0].x, g.buildings[0].y = g.deposits[0].x, g.deposits[0].y },
		"a building on a unit": func(g *Game) {
			g.units[0].at = g.buildings[0].spot().middle()
		},
		"a fallen building":           func(g *Game) { g.buildings[0].hp = 0 },
		"a building too strong":       func(g *Game) { g.buildings[0].hp = 1201 },
		"a building too finished":     func(g *Game) { g.buildings[0].built = 1 },
		"a queue too long":            func(g *Game) { g.buildings[0].queued = maxQueue + 1 },
		"a site that trains":          func(g *Game) { b := firstOf(g, barracks); b.built, b.queued = 3, 1 },
		"training of nothing":         func(g *Game) { b := firstOf(g, barracks); b.queued, b.trained = 0, 9 },
		"training too long":           func(g *Game) { b := firstOf(g, barracks); b.queued, b.trained = 1, 241 },
		"a rally off the map":         func(g *Game) { g.buildings[0].rallies, g.buildings[0].rally.x = true, 100*one },
		"buildings out of order":      func(g *Game) { g.buildings[0].id = g.buildings[1].id },
		"a unit's id of a building":   func(g *Game) { g.units[0].id = g.buildings[0].id },
		"a unit that stands":          func(g *Game) { g.units[0].kind = hall },
		"a unit of kind 0":            func(g *Game) { g.units[0].kind = 0 },
		"a unit off the map":          func(g *Game) { g.units[0].at.y = -1 },
		"a dead unit":                 func(g *Game) { g.units[0].hp = 0 },
		"a unit too strong":           func(g *Game) { g.units[0].hp = 999 },
		"an order without meaning":    func(g *Game) { g.units[0].order = 7 },
		"a goal off the map":          func(g *Game) { g.units[0].goal.x = 100 * one },
		"a target of the future":      func(g *Game) { g.units[0].target = g.lastID + 1 },
		"a foe of the future":         func(g *Game) { g.units[0].foe = g.lastID + 1 },
		"a source of the future":      func(g *Game) { g.units[0].source = g.lastID + 1 },
		"a cargo without meaning":     func(g *Game) { g.units[0].cargo = 3 },
		"a load too big":              func(g *Game) { g.units[0].load = loadSize + 1 },
		"a recharge too long":         func(g *Game) { g.units[0].recharge = 99 },
		"a route off the map":         func(g *Game) { r := &g.units[0].route; r.length, r.tiles[0] = 1, 10000 },
		"a route beyond its end":      func(g *Game) { r := &g.units[0].route; r.next = r.length + 1 },
		"a route asked for another":   func(g *Game) { r := &g.units[0].route; r.length, r.next, r.asked = 12, 12, true },
		"a route's distance negative": func(g *Game) { g.units[0].route.nearest = -1 },
		"an arrow off the map":        func(g *Game) { g.arrows[0].at.x = 100 * one },
		"an arrow at the future":      func(g *Game) { g.arrows[0].target = g.lastID + 1 },
		"an arrow that heals":         func(g *Game) { g.arrows[0].damage = -1 },
		"too many units": func(g *Game) {
			for range maxUnits {
				put(g, 0, soldier, g.units[0].at.x.tile(), g.units[0].at.y.tile())
			}
		},
	}
	state := battle(t).Save(nil)
	for name, spoil := range tests {
		g := new(Game)
		if err := g.Load(state); err != nil {
			t.Fatal(err)
		}
		spoil(g)
		loaded := new(Game)
		err := loaded.Load(g.Save(nil))
		if !errors.Is(err, ErrState) {
			t.Errorf("%s: %v, want ErrState", name, err)
		}
		if err := loaded.EndTick(loaded.Tick()); err == nil {
			t.Errorf("%s: the game plays on after a failed Load", name)
		}
	}
	if err := new(Game).Load(resum(slices.Insert(slices.Clone(state), 6, 0x80))); !errors.Is(err, ErrState) {
		t.Errorf("a longer form of a number: %v", err)
	}
	newer := slices.Clone(state)
	newer[len(stateMagic)]++
	if err := new(Game).Load(resum(newer)); !errors.Is(err, ErrState) {
		t.Errorf("a newer version: %v", err)
	}
}

func firstOf(g *Game, k kind) *building {
	for i := range g.buildings {
		if g.buildings[i].kind == k {
			return &g.buildings[i]
		}
	}
	return nil
}

func TestResetToKeyframe(t *testing.T) {
	rec := record(t, 30, 3, "woods-100", 900)
	g := new(Game)
	if err := g.Reset(rec.start); err != nil {
		t.Fatal(err)
	}
	if err := rec.play(g, 500); err != nil {
		t.Fatal(err)
	}
	start := rec.start
	start.State, start.NextTick = g.Save(nil), 500
	fresh := new(Game)
	if err := fresh.Reset(start); err != nil {
		t.Fatal(err)
	}
	if err := rec.play(fresh, 900); err != nil {
		t.Fatal(err)
	}
	start.Players = nil // erased from the replay
	if err := fresh.Reset(start); err != nil {
		t.Errorf("a keyframe without players: %v", err)
	}
	for name, spoil := range map[string]func(s *player.Start){
		"another tick":   func(s *player.Start) { s.NextTick = 501 },
		"another seed":   func(s *player.Start) { s.Meta = NewMetadata(31, "woods-100", 3) },
		"another map":    func(s *player.Start) { s.Meta = NewMetadata(30, "woods-101", 3) },
		"another number": func(s *player.Start) { s.Meta, s.Players = NewMetadata(30, "woods-100", 2), NewPlayers(2) },
		"other players":  func(s *player.Start) { s.Players = NewPlayers(3); s.Players[0].ID = 9 },
		"damage":         func(s *player.Start) { s.State = s.State[1:] },
		"no bytes":       func(s *player.Start) { s.State = []byte{} },
	} {
		bad := start
		spoil(&bad)
		if err := fresh.Reset(bad); err == nil {
			t.Errorf("%s: the keyframe was taken", name)
		}
		if err := fresh.EndTick(fresh.Tick()); err == nil {
			t.Errorf("%s: the game plays on", name)
		}
	}
}

// FuzzLoad feeds states with a right digest. What loads must save as the
// same bytes and play on without harm.
func FuzzLoad(f *testing.F) {
	state := battle(f).Save(nil)
	f.Add(state)
	f.Add(newGame(f, 1, 2, "plains-64").Save(nil))
	over := newGame(f, 2, 2, "woods-64")
	over.sides[0].standing = surrendered
	run(f, over, 1)
	f.Add(over.Save(nil))
	g := new(Game)
	f.Fuzz(func(t *testing.T, data []byte) {
		data = resum(data)
		if err := g.Load(data); err != nil {
			if !errors.Is(err, ErrState) {
				t.Fatalf("an error that is not ErrState: %v", err)
			}
			return
		}
		if again := g.Save(nil); !bytes.Equal(again, data) {
			t.Fatalf("%x loads and saves as %x", data, again)
		}
		g.Hash(nil)
		g.Dump()
		for range 30 {
			if g.tick == 1<<64-1 {
				return
			}
			run(t, g, 1)
		}
		for i := range g.units {
			if !g.board.freeAt(g.units[i].at) {
				t.Fatalf("a unit stands in the way: %+v", g.units[i])
			}
		}
	})
}
