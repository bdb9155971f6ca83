package skirmish

import "testing"

func TestNewWorkersBringGold(t *testing.T) {
	g := newGame(t, 3, 2, "plains-64")
	run(t, g, 1200)
	for i, s := range g.sides {
		if s.gold < startGold+60 || s.gold%loadSize != 0 || s.wood != startWood {
			t.Errorf("player %d has %d gold, %d wood after a minute of four workers", i, s.gold, s.wood)
		}
		var left int64
		for _, d := range g.deposits {
			if d.what == gold {
				left += int64(d.left)
			}
		}
		var mines int64
		for _, d := range g.layout.deposits {
			if d.what == gold {
				mines += mineGold
			}
		}
		carried := int64(0)
		for i := range g.units {
			carried += int64(g.units[i].load)
		}
		if got := g.sides[0].gold + g.sides[1].gold - 2*startGold + carried + left; got != mines {
			t.Errorf("delivered, carried and left are %d gold, the mines held %d", got, mines)
		}
	}
}

func TestWorkerGathersWhatItIsSentTo(t *testing.T) {
	g := newDuel(t)
	at := g.layout.starts[0]
	id := put(g, 0, worker, at.x+2, at.y+2)
	u := unitOf(t, g, id)
	u.cargo, u.load = gold, 7
	grove := nearestDeposit(g, wood, at)
	p := grove.spot().middle()
	mustGive(t, g, Command{Op: OpMove, Player: 1, Unit: int64(id), TX: int64(p.x), TY: int64(p.y)})
	if u.order != gathering || u.target != grove.id || u.load != 0 || u.cargo != wood {
		t.Fatalf("sent to a grove it is %v of %d with %d %v", u.order, u.target, u.load, u.cargo)
	}
	run(t, g, 1500)
	if g.sides[0].wood < startWood+3*loadSize || g.sides[0].gold != startGold {
		t.Errorf("%d wood, %d gold", g.sides[0].wood, g.sides[0].gold)
	}
	if left := g.deposits[g.findDeposit(grove.id)].left; left > groveWood-3*loadSize {
		t.Errorf("the grove it was sent to still has %d", left)
	}
}

func nearestDeposit(g *Game, what resource, to spot) deposit {
	best := deposit{}
	for _, d := range g.deposits {
		if d.what == what && (best.id == 0 || d.spot().middle().squared(to.middle()) < best.spot().middle().squared(to.middle())) {
			best = d
		}
	}
	return best
}

func TestExhaustedDepositGivesWay(t *testing.T) {
	g := newDuel(t)
	at := g.layout.starts[0]
	grove := nearestDeposit(g, wood, at)
	g.deposits[g.findDeposit(grove.id)].left = 13
	id := put(g, 0, worker, at.x+2, at.y+2)
	p := grove.spot().middle()
	mustGive(t, g, Command{Op: OpMove, Player: 1, Unit: int64(id), TX: int64(p.x), TY: int64(p.y)})
	for g.findDeposit(grove.id) >= 0 {
		if g.tick > 1200 {
			t.Fatal("the grove is still there after a minute")
		}
		run(t, g, 1)
	}
	if !g.board.free(int(grove.x), int(grove.y)) {
		t.Error("its tile is not free")
	}
	if u := unitOf(t, g, id); u.load != 3 {
		t.Errorf("the last load is %d, want 3", u.load)
	}
	run(t, g, 400)
	if u := unitOf(t, g, id); u.cargo != wood || u.order == idle || u.source == grove.id && u.load == 0 && u.order != gathering {
		t.Errorf("afterwards the worker is %v with %v", u.order, u.cargo)
	}
	checkState(t, g)
}

func TestBuildTrainRally(t *testing.T) {
	g := newDuel(t)
	start := g.layout.starts[0]
	id := put(g, 0, worker, start.x+2, start.y+2)
	site := spot{start.x - 4, start.y}
	for !g.board.siteFree(site) {
		site.x--
	}
	p := site.middle()
	blocker := put(g, 1, worker, site.x, site.y)
	mustGive(t, g, Command{Op: OpBuild, Player: 1, Unit: int64(id), TX: int64(p.x), TY: int64(p.y), Target: 2})
	house := g.buildings[2].id
	if u := unitOf(t, g, blocker); !g.board.freeAt(u.at) {
		t.Error("a unit was built over")
	}
	if b := &g.buildings[2]; b.hp != 60 || b.finished() {
		t.Fatalf("the site starts as %+v", *b)
	}
	run(t, g, 300)
	if g.buildings[2].finished() {
		t.Fatal("finished too early")
	}
	_, room := g.population(0)
	run(t, g, 400)
	b := &g.buildings[2]
	if !b.finished() || b.hp != specs[barracks].hp {
		t.Fatalf("after 700 ticks it is %+v", *b)
	}
	if _, now := g.population(0); room != 12 || now != 20 {
		t.Errorf("room %d before, %d after; want 12, 20", room, now)
	}
	rally := spot{g.board.size / 2, g.board.size / 2}.middle()
	mustGive(t, g, Command{Op: OpTrain, Player: 1, Unit: int64(house), TX: int64(rally.x), TY: int64(rally.y), Target: 2})
	run(t, g, int(specs[soldier].ticks))
	if last := g.units[len(g.units)-1]; last.kind == soldier {
		t.Fatal("trained too early")
	}
	run(t, g, 1)
	fresh := g.units[len(g.units)-1]
	if fresh.kind != soldier || fresh.owner != 0 || fresh.hp != 100 {
		t.Fatalf("trained %+v", fresh)
	}
	run(t, g, 900)
	if u := unitOf(t, g, fresh.id); u.order != idle || u.at.squared(rally) > square(2*one) {
		t.Errorf("after the walk to the rally it is %v at %v, want idle at %v", u.order, u.at, rally)
	}
}

func TestTwoWorkersBuildTwiceAsFast(t *testing.T) {
	g := newDuel(t)
	site := spot{32, 32}
	for !g.board.siteFree(site) {
		site.x++
	}
	house := g.found(0, barracks, site)
	for _, x := range []int{site.x - 2, site.x + 2} {
		u := unitOf(t, g, put(g, 0, worker, x, site.y))
		u.command(constructing, house, point{})
	}
	run(t, g, 100)
	b := &g.buildings[g.findBuilding(house)]
	if b.built < 190 || b.built > 200 {
		t.Errorf("two workers built %d ticks' worth in 100", b.built)
	}
	if want := siteHP(&specs[barracks]) + siteGain(&specs[barracks], b.built); b.hp != want {
		t.Errorf("it has %d hp, want %d", b.hp, want)
	}
}

func TestMending(t *testing.T) {
	g := newDuel(t)
	s := g.layout.starts[0]
	g.buildings[0].hp = 1000
	id := put(g, 0, worker, s.x+2, s.y)
	mustGive(t, g, Command{Op: OpMove, Player: 1, Unit: int64(id), TX: int64(s.middle().x), TY: int64(s.middle().y)})
	run(t, g, 150)
	if hp := g.buildings[0].hp; hp < 1140 || hp > 1150 {
		t.Errorf("%d hp after 150 ticks from 1000", hp)
	}
	run(t, g, 150)
	if u := unitOf(t, g, id); g.buildings[0].hp != 1200 || u.order == constructing {
		t.Errorf("%d hp in the end, the worker is %v", g.buildings[0].hp, u.order)
	}
}
