package skirmish

// woodShare is the percentage of gatherers that a bot wants on wood.
const woodShare = 40

// employ gives work to idle workers, crews to sites and damaged buildings,
// and keeps gold and wood in balance.
func (b *Bot) employ(g *Game) {
	v := &b.view
	for n, i := range v.workers {
		u := &g.units[i]
		if u.order == idle && u.id != b.plan.scout && n < 4 {
			b.sendToGather(g, u, b.wanted())
		}
	}
	b.crew(g)
	if b.wanted() == wood && len(v.workers) > 3 && b.random.chance(60) {
		b.shift(g, gold, wood)
	} else if v.wood > 400 && v.gold < 150 && b.random.chance(60) {
		b.shift(g, wood, gold)
	}
}

// wanted is the resource that the next gatherer should bring.
func (b *Bot) wanted() resource {
	v := &b.view
	if v.gatherers[wood]*100 < woodShare*(v.gatherers[gold]+v.gatherers[wood]) && v.wood < 500 {
		return wood
	}
	return gold
}

// shift moves one empty-handed gatherer to another resource.
func (b *Bot) shift(g *Game, from, to resource) {
	for _, i := range b.view.workers {
		u := &g.units[i]
		if u.order == gathering && u.cargo == from && u.load == 0 {
			b.sendToGather(g, u, to)
			b.view.gatherers[from]--
			b.view.gatherers[to]++
			return
		}
	}
}

// sendToGather moves a worker onto the deposit that is nearest to home.
func (b *Bot) sendToGather(g *Game, u *unit, what resource) {
	home := b.view.home.middle()
	best, nearest := -1, int64(0)
	for i := range g.deposits {
		d := &g.deposits[i]
		away := home.squared(d.spot().middle())
		if d.what == what && (best < 0 || away < nearest) {
			best, nearest = i, away
		}
	}
	if best >= 0 {
		d := &g.deposits[best]
		b.order(move(u, d.spot().middle()), b.reaction())
	}
}

func move(u *unit, to point) Command {
	return Command{Op: OpMove, Unit: int64(u.id), TX: int64(to.x), TY: int64(to.y)}
}

// crew sends a worker to a building that needs one and has none.
func (b *Bot) crew(g *Game) {
	for _, i := range b.view.own {
		c := &g.buildings[i]
		hurt := c.hp < specs[c.kind].hp/2 && len(b.view.intruders) == 0
		if c.finished() && !hurt || b.crewed(g, c.id) {
			continue
		}
		if u := b.handNear(g, c.spot().middle()); u != nil {
			b.order(move(u, c.spot().middle()), b.reaction())
			return
		}
	}
}

func (b *Bot) crewed(g *Game, id uint32) bool {
	for _, i := range b.view.workers {
		if u := &g.units[i]; u.order == constructing && u.target == id {
			return true
		}
	}
	return false
}

// handNear is the worker next to a point that builds nothing and carries
// nothing; nil where all are busy.
func (b *Bot) handNear(g *Game, p point) *unit {
	var best *unit
	for _, i := range b.view.workers {
		u := &g.units[i]
		if u.order == constructing || u.load > 0 || u.id == b.plan.scout {
			continue
		}
		if best == nil || u.at.squared(p) < best.at.squared(p) {
			best = u
		}
	}
	return best
}

// Buildings a bot wants besides its hall, at most.
const mostHouses = 6

// expand founds a building when there is need for one and the means.
func (b *Bot) expand(g *Game) {
	v := &b.view
	if len(v.own) > mostHouses || b.now < b.plan.building {
		return
	}
	rich := v.gold > 200 && v.wood > 250
	crowded := v.population+3 >= v.room && v.room < maxUnits
	if len(v.own) > 1 && !rich && !crowded {
		return
	}
	k := b.nextHouse()
	if v.gold < specs[k].gold || v.wood < specs[k].wood {
		return
	}
	at, ok := b.site(g)
	u := b.handNear(g, at.middle())
	if !ok || u == nil {
		return
	}
	v.gold -= specs[k].gold
	v.wood -= specs[k].wood
	b.plan.building = b.now + 100
	p := at.middle()
	b.order(Command{Op: OpBuild, Unit: int64(u.id), TX: int64(p.x), TY: int64(p.y), Target: int64(k - buildingBase)}, b.reaction())
}

func (b *Bot) nextHouse() kind {
	if len(b.view.own) <= 1 {
		return b.temper.opening
	}
	return [...]kind{barracks, archery, stable}[b.random.below(3)]
}

// site looks for free ground near home.
func (b *Bot) site(g *Game) (spot, bool) {
	for range 15 {
		at := spot{b.view.home.x + b.random.between(-9, 9), b.view.home.y + b.random.between(-9, 9)}
		if !around(b.view.home, 4).holds(at) && g.board.siteFree(at) {
			return at, true
		}
	}
	return spot{}, false
}

// recruit keeps the queues of all buildings filled.
func (b *Bot) recruit(g *Game) {
	v := &b.view
	workers := len(v.workers)
	for _, i := range v.own {
		c := &g.buildings[i]
		k := specs[c.kind].trains
		s := &specs[k]
		if !c.finished() || c.queued > 1 || v.population >= v.room || v.gold < s.gold || v.wood < s.wood {
			continue
		}
		if k == worker {
			if workers+int(c.queued) >= b.temper.workers {
				continue
			}
		} else if len(v.own) < 3 && v.wood < 100 && b.random.chance(50) {
			continue // saves for a second building
		}
		v.gold -= s.gold
		v.wood -= s.wood
		v.population++
		b.order(b.training(g, c, k), b.reaction())
	}
}

// training queues a unit; a building without a rally point gets one.
func (b *Bot) training(g *Game, c *building, k kind) Command {
	order := Command{Op: OpTrain, Unit: int64(c.id), Target: int64(k)}
	if k != worker && !c.rallies {
		p := b.muster(g)
		order.TX, order.TY = int64(p.x), int64(p.y)
	}
	return order
}
