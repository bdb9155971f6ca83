package skirmish

// mood is what a bot's army is at.
type mood uint8

const (
	gatheringForces mood = 0
	attackingFoe    mood = 1
	retreatingHome  mood = 2
)

// plan is what a bot remembers from one thought to the next.
type plan struct {
	mood  mood
	since uint64 // the mood's first tick
	// rival is the seat that it fights, plus 1; 0 is none yet.
	rival uint8
	// regroup, building: not again before this tick.
	regroup, building uint64
	// scout is the unit on tour, leg the next start it looks at.
	scout uint32
	leg   int
	tours int
	// lost is how many attacks failed; each makes the next one bigger.
	lost int
}

// muster is where the army gathers: before the home, towards the middle.
func (b *Bot) muster(g *Game) point {
	h, centre := b.view.home, g.board.size/2
	return spot{h.x + clampInt(centre-h.x, 6), h.y + clampInt(centre-h.y, 6)}.middle()
}

func clampInt(v, most int) int { return max(-most, min(v, most)) }

// wage leads the army.
func (b *Bot) wage(g *Game) {
	if len(b.view.army) == 0 {
		b.turn(gatheringForces)
		return
	}
	switch b.plan.mood {
	case gatheringForces:
		b.gatherForces(g)
	case attackingFoe:
		b.attackFoe(g)
	case retreatingHome:
		b.retreatHome(g)
	}
	b.micromanage(g)
}

func (b *Bot) turn(m mood) {
	if b.plan.mood != m {
		b.plan.mood, b.plan.since, b.plan.regroup = m, b.now, 0
	}
}

// gatherForces defends the base, and attacks when the army is big enough.
func (b *Bot) gatherForces(g *Game) {
	v := &b.view
	if len(v.intruders) > 0 {
		if b.now >= b.plan.regroup {
			b.march(g, g.units[v.intruders[0]].at, 2)
			b.plan.regroup = b.now + 80
		}
		return
	}
	full := v.population >= v.room && v.room == maxUnits
	ready := len(v.army) >= min(b.temper.army+2*b.plan.lost, 30) || full && len(v.army) > 10
	if ready && b.now >= b.temper.peace {
		b.turn(attackingFoe)
		return
	}
	b.collect(g, 4)
}

// collect calls some of the idle to the muster point.
func (b *Bot) collect(g *Game, most int) {
	p, delay := b.muster(g), b.reaction()
	for _, i := range b.view.army {
		u := &g.units[i]
		if most > 0 && u.order == idle && u.foe == 0 && u.at.squared(p) > square(7*one) {
			b.order(b.marchTo(g, u, p, 2), delay)
			most--
		}
	}
}

// march sends the whole army somewhere, spread over some tiles.
func (b *Bot) march(g *Game, to point, spread int) {
	delay := b.reaction()
	for n, i := range b.view.army {
		b.order(b.marchTo(g, &g.units[i], to, spread), delay+n/8)
	}
}

func (b *Bot) marchTo(g *Game, u *unit, to point, spread int) Command {
	to = b.scatter(g, to, spread)
	return Command{Op: OpAttackMove, Unit: int64(u.id), TX: int64(to.x), TY: int64(to.y)}
}

// scatter moves a point by up to some tiles, within the map.
func (b *Bot) scatter(g *Game, p point, spread int) point {
	edge := fixed(g.board.size)*one - 1
	n := spread * int(one)
	return point{
		clamp(p.x+fixed(b.random.between(-n, n)), 0, edge),
		clamp(p.y+fixed(b.random.between(-n, n)), 0, edge),
	}
}

// attackFoe leads the army to the rival's nearest building, and home again
// when the fight goes badly.
func (b *Bot) attackFoe(g *Game) {
	v := &b.view
	own, foes := v.near(g, b.seat, v.centre, 12*one)
	if own*100 < foes*b.temper.courage {
		b.plan.lost++
		b.turn(retreatingHome)
		return
	}
	if len(v.intruders) > len(v.army)/2 && b.random.chance(40) {
		b.turn(gatheringForces)
		return
	}
	if b.now < b.plan.regroup {
		return
	}
	goal, ok := b.objective(g)
	if !ok {
		return
	}
	b.march(g, goal, 3)
	b.plan.regroup = b.now + uint64(b.random.between(140, 240))
}

// objective is the building of the rival that is nearest to the army.
func (b *Bot) objective(g *Game) (point, bool) {
	if r := b.plan.rival; r == 0 || g.sides[r-1].standing != playing {
		b.plan.rival = b.chooseRival(g)
	}
	best, nearest := -1, int64(0)
	for i := range g.buildings {
		c := &g.buildings[i]
		away := c.target(i).squared(b.view.centre)
		if c.owner+1 == b.plan.rival && (best < 0 || away < nearest) {
			best, nearest = i, away
		}
	}
	if best < 0 {
		return point{}, false
	}
	return g.buildings[best].spot().middle(), true
}

// chooseRival picks the foe whose first building is nearest to home, or
// sometimes any other; seat plus 1.
func (b *Bot) chooseRival(g *Game) uint8 {
	best, nearest := uint8(0), int64(0)
	for i := range g.buildings {
		c := &g.buildings[i]
		if c.owner == b.seat {
			continue
		}
		away := c.target(i).squared(b.view.home.middle())
		if best == 0 || away < nearest || b.random.chance(5) {
			best, nearest = c.owner+1, away
		}
	}
	return best
}

// retreatHome moves the army home and then stops it.
func (b *Bot) retreatHome(g *Game) {
	home := b.muster(g)
	if b.plan.regroup == 0 {
		delay := b.reaction()
		for n, i := range b.view.army {
			b.order(move(&g.units[i], b.scatter(g, home, 3)), delay+n/8)
		}
		b.plan.regroup = b.now + 400
		return
	}
	if b.view.centre.squared(home) > square(8*one) && b.now < b.plan.regroup {
		return
	}
	for n, i := range b.view.army {
		if u := &g.units[i]; n < 3 && u.order == moving {
			b.order(Command{Op: OpStop, Unit: int64(u.id)}, b.reaction())
		}
	}
	b.turn(gatheringForces)
}

// micromanage now and then lets some fighters strike the weakest foe near
// the army, and pulls a badly hurt one back.
func (b *Bot) micromanage(g *Game) {
	foe := b.weakestFoe(g)
	if foe == nil {
		return
	}
	if b.random.chance(50) {
		delay, most := b.reaction(), b.random.between(2, 6)
		for _, i := range b.view.army {
			u := &g.units[i]
			if most > 0 && u.at.squared(foe.at) < square(8*one) {
				b.order(Command{Op: OpAttack, Unit: int64(u.id), Target: int64(foe.id)}, delay)
				most--
			}
		}
	}
	if b.random.chance(30) {
		b.rescue(g)
	}
}

func (b *Bot) weakestFoe(g *Game) *unit {
	var weakest *unit
	for i := range g.units {
		u := &g.units[i]
		if u.owner == b.seat || u.at.squared(b.view.centre) > square(9*one) {
			continue
		}
		if weakest == nil || u.hp < weakest.hp {
			weakest = u
		}
	}
	return weakest
}

// rescue sends the first badly hurt fighter home.
func (b *Bot) rescue(g *Game) {
	for _, i := range b.view.army {
		u := &g.units[i]
		if u.hp*4 < specs[u.kind].hp && u.order != moving {
			b.order(move(u, b.muster(g)), b.reaction())
			return
		}
	}
}

// fidget moves idle fighters about for no reason, as people do.
func (b *Bot) fidget(g *Game) {
	v := &b.view
	if len(v.army) == 0 || !b.random.chance(50) {
		return
	}
	p, delay := b.muster(g), b.reaction()
	for n := b.random.between(1, 4); n > 0; n-- {
		u := &g.units[v.army[b.random.below(len(v.army))]]
		if u.order == idle && u.foe == 0 {
			b.order(move(u, b.scatter(g, p, 5)), delay)
		}
	}
}

// scout sends one unit on a tour of the other starts.
func (b *Bot) scout(g *Game) {
	p := &b.plan
	if p.scout == 0 {
		if b.now >= b.temper.scouting && p.tours < 2 && len(b.view.workers) > 4 {
			p.scout = g.units[b.view.workers[b.random.below(len(b.view.workers))]].id
			p.leg = 0
			p.tours++
			b.temper.scouting = b.now + 6000
			b.nextLeg(g)
		}
		return
	}
	i := g.findUnit(p.scout)
	if i < 0 {
		p.scout = 0
		return
	}
	if u := &g.units[i]; u.order != moving {
		b.nextLeg(g)
	}
}

// nextLeg moves the scout on; after the last start it is an idle worker.
func (b *Bot) nextLeg(g *Game) {
	p := &b.plan
	if p.leg == int(b.seat) {
		p.leg++
	}
	if p.leg >= len(g.layout.starts) {
		p.scout = 0
		return
	}
	i := g.findUnit(p.scout)
	to := b.scatter(g, g.layout.starts[p.leg].middle(), 8)
	b.order(move(&g.units[i], to), b.reaction())
	p.leg++
}
