package skirmish

// chaseSight is how far a unit goes straight for a foe in plain view, and
// strayed how far a foe may have walked from where the route ends.
const (
	chaseSight = 6
	strayed    = 2
)

// guard fights whatever foe is in sight, and tells whether there is one.
// Workers mind their own business.
func (g *Game) guard(u *unit) bool {
	if specs[u.kind].makes {
		return false
	}
	if (g.tick+uint64(u.id))%watchEvery == 0 {
		if seen := g.nearestFoe(u); seen != u.foe {
			u.engage(seen)
		}
	}
	if u.foe == 0 {
		return false
	}
	if !g.fight(u, u.foe) {
		u.engage(0)
	}
	return true
}

// engage turns a unit to a foe, or with 0 back to its order.
func (u *unit) engage(foe uint32) {
	u.foe = foe
	u.route.start()
	u.route.asked = foe != 0 || u.order == marching
}

// nearestFoe is the closest enemy in sight, units before buildings.
func (g *Game) nearestFoe(u *unit) uint32 {
	best, nearest := uint32(0), square(sight)+1
	for it := g.cells.within(u.at, sight); it.next(); {
		for i := it.first(); i >= 0; i = g.cells.after[i] {
			v := &g.units[i]
			if v.owner == u.owner {
				continue
			}
			d := u.at.squared(v.at)
			if d < nearest || d == nearest && v.id < best {
				best, nearest = v.id, d
			}
		}
	}
	if best != 0 {
		return best
	}
	for i := range g.buildings {
		b := &g.buildings[i]
		if b.owner == u.owner {
			continue
		}
		if d := b.target(i).squared(u.at); d < nearest {
			best, nearest = b.id, d
		}
	}
	return best
}

// fight strikes a foe in reach and goes after one that is not; false when
// it is gone.
func (g *Game) fight(u *unit, foe uint32) bool {
	t, ok := g.locate(foe)
	if !ok || t.deposit >= 0 {
		return false
	}
	distance := t.squared(u.at)
	if distance > square(specs[u.kind].reach) {
		g.chase(u, t, distance)
		return true
	}
	if u.route.length > 0 || u.route.asked {
		u.route.drop()
		u.route.asked = false
	}
	if u.recharge == 0 {
		u.recharge = specs[u.kind].recharge
		g.strike(u, t)
	}
	return true
}

// chase goes straight for a unit in plain view and by a route otherwise.
func (g *Game) chase(u *unit, t target, distance int64) {
	if t.unit >= 0 && distance < square(chaseSight*one) && g.seesWay(u, t) {
		if u.route.length > 0 {
			u.route.drop()
		}
		u.route.asked = false
		g.step(u, t.low)
		return
	}
	if g.outdated(u, t) && u.route.rest == 0 {
		u.route.ask()
	}
	g.travel(u)
}

func (g *Game) seesWay(u *unit, t target) bool {
	return g.board.clear(spot{u.at.x.tile(), u.at.y.tile()}, spot{t.low.x.tile(), t.low.y.tile()})
}

// outdated tells whether a route leads where its target is no more.
func (g *Game) outdated(u *unit, t target) bool {
	r := &u.route
	if r.length == 0 || r.asked || t.unit < 0 {
		return false
	}
	end := g.board.spot(int(r.tiles[r.length-1]))
	return r.length < maxRoute && !around(end, strayed).holds(t.ring().low)
}

// strike hits a foe, or shoots at it.
func (g *Game) strike(u *unit, t target) {
	damage := specs[u.kind].damage + int32(g.random.below(3))
	if t.unit >= 0 {
		if g.units[t.unit].kind == specs[u.kind].beats {
			damage += damage / 2
		}
	} else {
		damage = max(1, damage-wallArmour)
	}
	if specs[u.kind].reach > one && len(g.arrows) < maxArrows {
		g.arrows = append(g.arrows, arrow{at: u.at, target: t.id, damage: damage})
		return
	}
	g.hurt(t, damage)
}

// hurt takes hit points; who has none left acts until the tick's end, so
// that no unit gains by coming first.
func (g *Game) hurt(t target, damage int32) {
	if t.unit >= 0 {
		g.units[t.unit].hp -= damage
	} else {
		g.buildings[t.building].hp -= damage
	}
}

// fly moves the arrows; those that arrive or lost their target go.
func (g *Game) fly() {
	g.arrows = keep(g.arrows, func(a *arrow) bool {
		t, ok := g.locate(a.target)
		if !ok || t.deposit >= 0 {
			return false
		}
		to := t.nearest(a.at)
		dx, dy := to.x-a.at.x, to.y-a.at.y
		distance := length(dx, dy)
		if distance <= arrowSpeed {
			g.hurt(t, a.damage)
			return false
		}
		a.at.x += dx * arrowSpeed / distance
		a.at.y += dy * arrowSpeed / distance
		return true
	})
}

// bury removes what was destroyed.
func (g *Game) bury() {
	g.units = keep(g.units, func(u *unit) bool { return u.hp > 0 })
	g.buildings = keep(g.buildings, func(b *building) bool {
		if b.hp <= 0 {
			g.board.stamp(b.spot(), open)
		}
		return b.hp > 0
	})
}

// keep removes the elements that do not stay. It asks about each once, in
// order, and moves none before the first that goes.
func keep[T any](list []T, stays func(*T) bool) []T {
	kept := 0
	for i := range list {
		if !stays(&list[i]) {
			continue
		}
		if kept < i {
			list[kept] = list[i]
		}
		kept++
	}
	return list[:kept]
}
