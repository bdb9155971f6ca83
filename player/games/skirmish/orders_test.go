package skirmish

import (
	"errors"
	"math"
	"strings"
	"testing"

	"reprise/format"
	"reprise/player"
)

// TestRefusals gives every kind of command that cannot be carried out.
func TestRefusals(t *testing.T) {
	g := newGame(t, 1, 3, "plains-64")
	mustGive(t, g, Command{Op: OpSurrender, Player: 3})
	run(t, g, 1)
	hallOf := func(seat uint8) int64 {
		for i := range g.buildings {
			if g.buildings[i].owner == seat {
				return int64(g.buildings[i].id)
			}
		}
		return 0
	}
	var workers [2]int64
	for i := range g.units {
		workers[g.units[i].owner] = int64(g.units[i].id)
	}
	fighter := int64(put(g, 0, soldier, 32, 32))
	dead := int64(put(g, 0, soldier, 33, 33))
	unitOf(t, g, uint32(dead)).hp = 0
	run(t, g, 1)
	site := int64(g.found(0, barracks, clearSite(t, g)))
	g.sides[0].gold, g.sides[0].wood = 1000, 1000
	home := g.layout.starts[0].middle()
	next, mine := int64(g.lastID)+1, int64(g.deposits[0].id)
	free := clearSite(t, g).middle()
	fx, fy := int64(free.x), int64(free.y)

	tests := []struct {
		name    string
		command Command
		want    error
	}{
		{"player 0", Command{Op: OpMove, Unit: fighter}, ErrUnknownPlayer},
		{"player -1", Command{Op: OpMove, Player: -1, Unit: fighter}, ErrUnknownPlayer},
		{"player 4", Command{Op: OpSurrender, Player: 4}, ErrUnknownPlayer},
		{"who surrendered", Command{Op: OpSurrender, Player: 3}, ErrOut},
		{"unit 0", Command{Op: OpMove, Player: 1}, ErrUnknownUnit},
		{"unit not there yet", Command{Op: OpMove, Player: 1, Unit: next}, ErrUnknownUnit},
		{"negative unit", Command{Op: OpAttack, Player: 1, Unit: math.MinInt64}, ErrUnknownUnit},
		{"unit beyond 32 bits", Command{Op: OpStop, Player: 1, Unit: fighter + 1<<32}, ErrUnknownUnit},
		{"dead unit", Command{Op: OpAttackMove, Player: 1, Unit: dead}, ErrDead},
		{"dead unit stops", Command{Op: OpStop, Player: 1, Unit: dead}, ErrDead},
		{"dead building trains", Command{Op: OpTrain, Player: 1, Unit: dead, Target: 1}, ErrDead},
		{"a foe's unit", Command{Op: OpMove, Player: 1, Unit: workers[1]}, ErrNotOwner},
		{"a foe's unit stops", Command{Op: OpStop, Player: 1, Unit: workers[1]}, ErrNotOwner},
		{"a foe's hall", Command{Op: OpTrain, Player: 1, Unit: hallOf(1), Target: 1}, ErrNotOwner},
		{"a foe's queue", Command{Op: OpStop, Player: 1, Unit: hallOf(1)}, ErrNotOwner},
		{"a hall walks", Command{Op: OpMove, Player: 1, Unit: hallOf(0)}, ErrCannot},
		{"a mine walks", Command{Op: OpMove, Player: 1, Unit: mine}, ErrCannot},
		{"a worker trains", Command{Op: OpTrain, Player: 1, Unit: workers[0], Target: 1}, ErrCannot},
		{"an empty queue", Command{Op: OpStop, Player: 1, Unit: hallOf(0)}, ErrCannot},
		{"a soldier builds", Command{Op: OpBuild, Player: 1, Unit: fighter, TX: fx, TY: fy, Target: 2}, ErrCannot},
		{"left of the map", Command{Op: OpMove, Player: 1, Unit: fighter, TX: -1}, ErrOffMap},
		{"below the map", Command{Op: OpAttackMove, Player: 1, Unit: fighter, TY: 64 << 16}, ErrOffMap},
		{"far away", Command{Op: OpMove, Player: 1, Unit: fighter, TX: math.MaxInt64, TY: math.MinInt64}, ErrOffMap},
		{"a site off the map", Command{Op: OpBuild, Player: 1, Unit: workers[0], TX: 1 << 40, Target: 2}, ErrOffMap},
		{"a rally off the map", Command{Op: OpTrain, Player: 1, Unit: hallOf(0), TX: 1 << 40, Target: 1}, ErrOffMap},
		{"no target", Command{Op: OpAttack, Player: 1, Unit: fighter}, ErrUnknownUnit},
		{"a dead target", Command{Op: OpAttack, Player: 1, Unit: fighter, Target: dead}, ErrDead},
		{"an own target", Command{Op: OpAttack, Player: 1, Unit: fighter, Target: workers[0]}, ErrBadTarget},
		{"itself", Command{Op: OpAttack, Player: 1, Unit: fighter, Target: fighter}, ErrBadTarget},
		{"a mine", Command{Op: OpAttack, Player: 1, Unit: fighter, Target: mine}, ErrBadTarget},
		{"builds a hall", Command{Op: OpBuild, Player: 1, Unit: workers[0], TX: fx, TY: fy, Target: 1}, ErrBadTarget},
		{"builds nothing", Command{Op: OpBuild, Player: 1, Unit: workers[0], TX: fx, TY: fy}, ErrBadTarget},
		{"builds 258", Command{Op: OpBuild, Player: 1, Unit: workers[0], TX: fx, TY: fy, Target: 258}, ErrBadTarget},
		{"builds -14", Command{Op: OpBuild, Player: 1, Unit: workers[0], TX: fx, TY: fy, Target: -14}, ErrBadTarget},
		{"builds on the hall", Command{Op: OpBuild, Player: 1, Unit: workers[0], TX: int64(home.x), TY: int64(home.y), Target: 2}, ErrNoSite},
		{"builds at the border", Command{Op: OpBuild, Player: 1, Unit: workers[0], Target: 2}, ErrNoSite},
		{"a hall trains soldiers", Command{Op: OpTrain, Player: 1, Unit: hallOf(0), Target: 2}, ErrBadTarget},
		{"a hall trains nothing", Command{Op: OpTrain, Player: 1, Unit: hallOf(0)}, ErrBadTarget},
		{"a site trains", Command{Op: OpTrain, Player: 1, Unit: site, Target: 2}, ErrUnfinished},
	}
	before := string(g.Save(nil))
	for _, test := range tests {
		refuse(t, g, test.name, test.command, test.want)
		if string(g.Save(nil)) != before {
			t.Fatalf("%s: the refused command changed the state", test.name)
		}
	}
}

// refuse gives a command that must be ignored for a reason.
func refuse(t *testing.T, g *Game, name string, c Command, want error) {
	t.Helper()
	result, err := give(g, c)
	var refusal *Refusal
	if result != player.Ignored || !errors.Is(err, want) || !errors.As(err, &refusal) || refusal.Command != c {
		t.Errorf("%s: result %d, %v; want Ignored, %v", name, result, err, want)
	}
	if err != nil && !strings.Contains(err.Error(), opName(c.Op)) {
		t.Errorf("%s: %q does not name the operation", name, err)
	}
}

// clearSite is a spot where a building fits.
func clearSite(t *testing.T, g *Game) spot {
	t.Helper()
	for i := range g.board.tiles {
		if s := g.board.spot(i); g.board.siteFree(s) && !around(s, 6).holds(g.layout.starts[0]) {
			return s
		}
	}
	t.Fatal("there is no free site")
	return spot{}
}

func TestPricesAndLimits(t *testing.T) {
	g := newGame(t, 1, 2, "plains-64")
	home, hand := int64(g.buildings[0].id), int64(g.units[0].id)
	train := Command{Op: OpTrain, Player: 1, Unit: home, Target: 1}
	for range 4 {
		mustGive(t, g, train)
	}
	if g.sides[0].gold != 0 {
		t.Fatalf("%d gold left of 200 after four workers", g.sides[0].gold)
	}
	refuse(t, g, "no gold", train, ErrCost)
	g.sides[0].gold = 1000
	mustGive(t, g, train)
	refuse(t, g, "a full queue", train, ErrFull)
	mustGive(t, g, Command{Op: OpStop, Player: 1, Unit: home})
	if b := &g.buildings[0]; b.queued != 4 || g.sides[0].gold != 1000 {
		t.Fatalf("after a stop %d are queued, %d gold", b.queued, g.sides[0].gold)
	}
	for range 4 {
		put(g, 0, soldier, 30, 30)
	}
	refuse(t, g, "a full population", train, ErrFull)

	at := clearSite(t, g).middle()
	build := Command{Op: OpBuild, Player: 1, Unit: hand, TX: int64(at.x), TY: int64(at.y), Target: 2}
	g.sides[0].wood = 119
	refuse(t, g, "no wood", build, ErrCost)
	g.sides[0].wood = 120
	mustGive(t, g, build)
	if g.sides[0].wood != 0 || len(g.buildings) != 3 {
		t.Fatalf("%d wood, %d buildings after a barracks for 120", g.sides[0].wood, len(g.buildings))
	}
	g.sides[0].wood = 120
	refuse(t, g, "the same site", build, ErrNoSite)
	for g.countBuildings(0) < maxBuildings {
		g.buildings = append(g.buildings, building{owner: 0, kind: barracks})
	}
	at = clearSite(t, g).middle()
	build.TX, build.TY = int64(at.x), int64(at.y)
	refuse(t, g, "too many buildings", build, ErrFull)
}

func TestNothingWorksAfterTheEnd(t *testing.T) {
	g := newGame(t, 1, 2, "plains-64")
	mustGive(t, g, Command{Op: OpSurrender, Player: 2})
	refuse(t, g, "twice", Command{Op: OpSurrender, Player: 2}, ErrOut)
	if _, over := g.Winner(); over {
		t.Fatal("over before the end of the tick")
	}
	run(t, g, 1)
	if id, over := g.Winner(); id != 1 || !over {
		t.Fatalf("winner %d, over %v; want 1, true", id, over)
	}
	for i := range g.units {
		if g.units[i].owner != 0 {
			t.Fatal("the loser still has units")
		}
	}
	refuse(t, g, "the winner moves", Command{Op: OpMove, Player: 1, Unit: int64(g.units[0].id)}, ErrOver)
	run(t, g, 50)
	checkState(t, g)
}

func TestBothSurrender(t *testing.T) {
	g := newGame(t, 1, 2, "plains-64")
	mustGive(t, g, Command{Op: OpSurrender, Player: 1})
	mustGive(t, g, Command{Op: OpSurrender, Player: 2})
	run(t, g, 2)
	if id, over := g.Winner(); id != 0 || !over {
		t.Fatalf("winner %d, over %v; want nobody, true", id, over)
	}
}

func TestTicksComeInOrder(t *testing.T) {
	start := startOf(1, 2, "plains-64")
	start.NextTick = 100
	g := new(Game)
	if err := g.EndTick(0); err == nil {
		t.Error("a game without a state simulates")
	}
	if result, err := g.Step(0, format.Step{Code: OpMove}); result != player.Failed || err == nil {
		t.Error("a game without a state takes a step")
	}
	if got := g.Hash(nil); len(got) != 0 {
		t.Errorf("a game without a state has hash %x", got)
	}
	if err := g.Reset(start); err != nil {
		t.Fatal(err)
	}
	for _, tick := range []format.Tick{0, 99, 101} {
		if err := g.EndTick(tick); err == nil {
			t.Errorf("tick %d was taken for tick 100", tick)
		}
		if result, err := g.Step(tick, format.Step{}); result != player.Failed || err == nil {
			t.Errorf("a step of tick %d was taken for one of tick 100", tick)
		}
	}
	if err := g.EndTick(100); err != nil || g.Tick() != 101 {
		t.Errorf("tick 100: %v, next is %d", err, g.Tick())
	}
}
