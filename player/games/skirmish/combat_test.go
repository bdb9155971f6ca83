package skirmish

import (
	"math/rand/v2"
	"testing"
)

// duel lets one unit of each player fight on open ground and returns the
// winner's owner, or 2 if both fell.
func duel(t *testing.T, first, second kind, seed uint64) int {
	t.Helper()
	g := newDuel(t)
	g.random = random(seed)
	at := openField(t, g)
	a, b := put(g, 0, first, at.x-3, at.y), put(g, 1, second, at.x+3, at.y)
	for range 1000 {
		run(t, g, 1)
		i, j := g.findUnit(a), g.findUnit(b)
		switch {
		case i < 0 && j < 0:
			return 2
		case i < 0:
			return 1
		case j < 0:
			return 0
		}
	}
	t.Fatalf("%v and %v do not come to an end", first, second)
	return 0
}

// openField is the middle of a wide free place away from the starts.
func openField(t *testing.T, g *Game) spot {
	t.Helper()
	for radius := 7; radius > 3; radius-- {
		for i := range g.board.tiles {
			s := g.board.spot(i)
			if g.board.allFree(s, radius) && s.x > 20 && s.y > 20 {
				return s
			}
		}
	}
	t.Fatal("there is no open field")
	return spot{}
}

func TestWhoBeatsWhom(t *testing.T) {
	for _, pair := range [][2]kind{{soldier, cavalry}, {cavalry, archer}, {soldier, worker}} {
		wins := [3]int{}
		for seed := range uint64(9) {
			wins[duel(t, pair[0], pair[1], seed)]++
			swapped := duel(t, pair[1], pair[0], seed)
			wins[[3]int{1, 0, 2}[swapped]]++
		}
		if wins[0] < 16 {
			t.Errorf("%v won %d of 18 against %v", pair[0], wins[0], pair[1])
		}
	}
}

// TestEqualsFallTogether: the dead act until the tick's end, so the lower id
// has no advantage.
func TestEqualsFallTogether(t *testing.T) {
	g := newDuel(t)
	at := openField(t, g)
	a, b := put(g, 0, soldier, at.x, at.y), put(g, 1, soldier, at.x+1, at.y)
	unitOf(t, g, a).hp, unitOf(t, g, b).hp = 5, 5
	mustGive(t, g, Command{Op: OpAttack, Player: 1, Unit: int64(a), Target: int64(b)})
	mustGive(t, g, Command{Op: OpAttack, Player: 2, Unit: int64(b), Target: int64(a)})
	run(t, g, 1)
	if g.findUnit(a) >= 0 || g.findUnit(b) >= 0 {
		t.Errorf("units left: %+v", g.units)
	}
}

func TestArchersShootFromAfar(t *testing.T) {
	g := newDuel(t)
	at := openField(t, g)
	a := put(g, 0, archer, at.x-2, at.y)
	b := put(g, 1, worker, at.x+2, at.y)
	run(t, g, watchEvery)
	if len(g.arrows) != 1 || unitOf(t, g, b).hp != 40 {
		t.Fatalf("%d arrows, the foe has %d hp; want one on its way", len(g.arrows), unitOf(t, g, b).hp)
	}
	run(t, g, 8)
	if hp := unitOf(t, g, b).hp; len(g.arrows) != 0 || hp < 30 || hp > 32 {
		t.Errorf("%d arrows, the foe has %d hp; want 30 to 32", len(g.arrows), hp)
	}
	if u := unitOf(t, g, a); u.at != (spot{at.x - 2, at.y}).middle() {
		t.Error("the archer walked")
	}
}

func TestArrowsVanishWithTheirTarget(t *testing.T) {
	g := newDuel(t)
	at := openField(t, g)
	put(g, 0, archer, at.x-2, at.y)
	b := put(g, 1, worker, at.x+2, at.y)
	run(t, g, watchEvery)
	unitOf(t, g, b).hp = 0
	run(t, g, 2)
	if len(g.arrows) != 0 {
		t.Errorf("%d arrows fly at nothing", len(g.arrows))
	}
}

func TestAttackOrderFollows(t *testing.T) {
	g := newDuel(t)
	at := openField(t, g)
	a := put(g, 0, cavalry, at.x-3, at.y)
	b := put(g, 1, worker, at.x+3, at.y)
	mustGive(t, g, Command{Op: OpAttack, Player: 1, Unit: int64(a), Target: int64(b)})
	home := g.layout.starts[1].middle()
	mustGive(t, g, Command{Op: OpMove, Player: 2, Unit: int64(b), TX: int64(home.x), TY: int64(home.y)})
	run(t, g, 400)
	if g.findUnit(b) >= 0 {
		t.Error("the worker escaped")
	}
	if u := unitOf(t, g, a); u.order != idle {
		t.Errorf("afterwards the cavalry is %v", u.order)
	}
}

func TestMarchFightsAndMoveDoesNot(t *testing.T) {
	for _, op := range []uint16{OpMove, OpAttackMove} {
		g := newDuel(t)
		at := openField(t, g)
		a, b := put(g, 0, soldier, at.x-6, at.y), put(g, 1, worker, at.x, at.y+2)
		to := spot{at.x + 6, at.y}.middle()
		mustGive(t, g, Command{Op: op, Player: 1, Unit: int64(a), TX: int64(to.x), TY: int64(to.y)})
		for g.tick < 300 && unitOf(t, g, a).order != idle {
			run(t, g, 1)
		}
		if op == OpMove {
			u := unitOf(t, g, a)
			if hp := unitOf(t, g, b).hp; hp != 40 || u.at != to {
				t.Errorf("after a move the worker has %d hp and the soldier is at %v, not %v", hp, u.at, to)
			}
			continue
		}
		if u := unitOf(t, g, a); g.findUnit(b) >= 0 || u.at.squared(to) > square(one) || u.order != idle {
			t.Errorf("after an attack-move the soldier is %v at %v", u.order, u.at)
		}
	}
}

func TestArmyTakesABase(t *testing.T) {
	g := newDuel(t)
	to := g.layout.starts[1].middle()
	at := openField(t, g)
	for i := range 12 {
		id := put(g, 0, soldier, at.x+i%4, at.y+i/4)
		mustGive(t, g, Command{Op: OpAttackMove, Player: 1, Unit: int64(id), TX: int64(to.x), TY: int64(to.y)})
	}
	run(t, g, 1500)
	if id, over := g.Winner(); id != 1 || !over || g.sides[1].standing != defeated {
		t.Errorf("winner %d, over %v, the foe is %v", id, over, g.sides[1].standing)
	}
	checkState(t, g)
}

// TestGroupArrives: a crowd sent to one point settles around it.
func TestGroupArrives(t *testing.T) {
	g := newDuel(t)
	at := openField(t, g)
	var ids []uint32
	for i := range 20 {
		ids = append(ids, put(g, 0, soldier, at.x+i%5-2, at.y+i/5-2))
	}
	to := g.layout.starts[0].middle()
	to.x += 4 * one
	for _, id := range ids {
		mustGive(t, g, Command{Op: OpMove, Player: 1, Unit: int64(id), TX: int64(to.x), TY: int64(to.y)})
	}
	run(t, g, 1200)
	for i, id := range ids {
		u := unitOf(t, g, id)
		if u.order != idle || u.at.squared(to) > square(4*one) {
			t.Errorf("unit %d is %v at %v, want idle near %v", id, u.order, u.at, to)
		}
		for _, other := range ids[:i] {
			if u.at.squared(unitOf(t, g, other).at) < square(one/4) {
				t.Errorf("units %d and %d stand in one place", id, other)
			}
		}
	}
}

// TestNearestFoeAgainstEveryone compares the search by cells with a look at
// every unit.
func TestNearestFoeAgainstEveryone(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	g := newGame(t, 5, 4, "plains-64")
	g.buildings = g.buildings[:0]
	for len(g.units) < 200 {
		s := spot{r.IntN(64), r.IntN(64)}
		if g.board.free(s.x, s.y) {
			put(g, uint8(r.IntN(4)), soldier, s.x, s.y)
		}
	}
	g.cells.fill(g.board.size, g.units)
	found := 0
	for i := range g.units {
		u := &g.units[i]
		want, nearest := uint32(0), square(sight)+1
		for j := range g.units {
			v := &g.units[j]
			if d := u.at.squared(v.at); v.owner != u.owner && d < nearest {
				want, nearest = v.id, d
			}
		}
		if got := g.nearestFoe(u); got != want {
			t.Fatalf("unit %d sees %d, want %d", u.id, got, want)
		}
		if want != 0 {
			found++
		}
	}
	if found < 100 {
		t.Errorf("only %d units see a foe", found)
	}
}
