package skirmish

// touch is how near a worker must come to gather, deliver and build.
const touch = one

// seekWork sends a worker to the nearest deposit of what it gathered last,
// gold at first, else of anything.
func (g *Game) seekWork(u *unit) {
	what := max(u.cargo, gold)
	best, nearest, match := uint32(0), int64(0), false
	for i := range g.deposits {
		d := &g.deposits[i]
		away := u.at.squared(d.spot().middle())
		same := d.what == what
		if best == 0 || same && !match || same == match && away < nearest {
			best, nearest, match = d.id, away, same
		}
	}
	if best == 0 {
		u.rest()
		return
	}
	u.command(gathering, best, point{})
}

// resume sends a worker back to where it gathered last.
func (g *Game) resume(u *unit) {
	if g.findDeposit(u.source) < 0 {
		g.seekWork(u)
		return
	}
	u.command(gathering, u.source, point{})
}

// gather fills a worker's hands at its deposit.
func (g *Game) gather(u *unit) {
	if u.load > 0 {
		g.bringHome(u)
		return
	}
	t, ok := g.locate(u.target)
	if !ok || t.deposit < 0 {
		g.seekWork(u)
		return
	}
	if t.squared(u.at) > square(touch) {
		g.travel(u)
		return
	}
	if u.work++; u.work < loadTicks {
		return
	}
	d := &g.deposits[t.deposit]
	u.cargo, u.load, u.source = d.what, uint8(min(loadSize, d.left)), d.id
	d.left -= int32(u.load)
	if d.left == 0 {
		g.exhaust(t.deposit)
	}
	g.bringHome(u)
}

// exhaust removes an empty deposit.
func (g *Game) exhaust(index int) {
	d := &g.deposits[index]
	g.board.set(d.spot(), open)
	g.deposits = append(g.deposits[:index], g.deposits[index+1:]...)
}

// bringHome sends a worker to its nearest finished building; without one it
// waits with its load.
func (g *Game) bringHome(u *unit) {
	best, nearest := uint32(0), int64(0)
	for i := range g.buildings {
		b := &g.buildings[i]
		if b.owner != u.owner || !b.finished() {
			continue
		}
		if away := b.target(i).squared(u.at); best == 0 || away < nearest {
			best, nearest = b.id, away
		}
	}
	if best == 0 {
		u.rest()
		return
	}
	u.command(delivering, best, point{})
}

func (g *Game) deliver(u *unit) {
	t, ok := g.locate(u.target)
	if !ok || t.building < 0 {
		g.bringHome(u)
		return
	}
	if t.squared(u.at) > square(touch) {
		g.travel(u)
		return
	}
	s := &g.sides[u.owner]
	if u.cargo == gold {
		s.gold += int64(u.load)
	} else {
		s.wood += int64(u.load)
	}
	u.load = 0
	g.resume(u)
}

func (b *building) finished() bool { return b.built == specs[b.kind].ticks }

// construct works on a site, or mends a building.
func (g *Game) construct(u *unit) {
	t, ok := g.locate(u.target)
	if !ok || t.building < 0 {
		g.resume(u)
		return
	}
	if t.squared(u.at) > square(touch) {
		g.travel(u)
		return
	}
	b := &g.buildings[t.building]
	s := &specs[b.kind]
	switch {
	case !b.finished():
		b.hp += siteGain(s, b.built+1) - siteGain(s, b.built)
		b.built++
	case b.hp < s.hp:
		b.hp++
	default:
		g.resume(u)
	}
}

// siteHP is what a new site starts with; siteGain is what it gains in the
// first ticks of building, so that it ends with the full hit points.
func siteHP(s *spec) int32 { return s.hp / 10 }

func siteGain(s *spec, ticks uint16) int32 {
	return int32(int64(s.hp-siteHP(s)) * int64(ticks) / int64(s.ticks))
}

// found puts down a new site of a building and returns its id.
func (g *Game) found(owner uint8, k kind, at spot) uint32 {
	g.lastID++
	g.buildings = append(g.buildings, building{
		id: g.lastID, owner: owner, kind: k, x: uint8(at.x), y: uint8(at.y), hp: siteHP(&specs[k]),
	})
	g.board.stamp(at, built)
	g.evict(at)
	return g.lastID
}

// evict moves units off the ground of a new building.
func (g *Game) evict(at spot) {
	for i := range g.units {
		u := &g.units[i]
		s := spot{u.at.x.tile(), u.at.y.tile()}
		if !around(at, 1).holds(s) {
			continue
		}
		if out, ok := g.board.freeNear(s); ok {
			u.at = out.middle()
		}
	}
}

// produce goes on with all training.
func (g *Game) produce() {
	for i := range g.buildings {
		b := &g.buildings[i]
		if b.queued == 0 || !b.finished() {
			continue
		}
		if b.trained < specs[b.queue[0]].ticks {
			b.trained++
			continue
		}
		if g.spawn(b) {
			copy(b.queue[:], b.queue[1:])
			b.queue[maxQueue-1] = 0
			b.queued--
			b.trained = 0
		}
	}
}

// spawn puts the trained unit beside its building.
func (g *Game) spawn(b *building) bool {
	at, ok := g.board.freeNear(b.spot())
	if !ok {
		return false
	}
	u := g.enlist(b.owner, b.queue[0], at)
	switch {
	case b.rallies:
		u.command(moving, 0, b.rally)
	case specs[u.kind].makes:
		g.seekWork(u)
	}
	return true
}

// enlist adds a unit.
func (g *Game) enlist(owner uint8, k kind, at spot) *unit {
	g.lastID++
	g.units = append(g.units, unit{
		id: g.lastID, owner: owner, kind: k, at: at.middle(), hp: specs[k].hp, route: route{nearest: far},
	})
	return &g.units[len(g.units)-1]
}

// population counts a player's units, those in training included; room is
// how many its buildings allow.
func (g *Game) population(owner uint8) (count, room int) {
	for i := range g.units {
		if g.units[i].owner == owner {
			count++
		}
	}
	for i := range g.buildings {
		if b := &g.buildings[i]; b.owner == owner {
			count += int(b.queued)
			if b.finished() {
				room += specs[b.kind].room
			}
		}
	}
	return count, min(room, maxUnits)
}
