package skirmish

import (
	"reprise/format"
	"reprise/player"
)

// Step applies one input. A step that is no command of this game fails;
// a command that cannot be carried out is ignored, with a *Refusal.
func (g *Game) Step(tick format.Tick, step format.Step) (player.Result, error) {
	if err := g.expect(tick); err != nil {
		return player.Failed, err
	}
	c, err := ParseStep(step)
	if err != nil {
		return player.Failed, err
	}
	if reason := g.obey(c); reason != nil {
		return player.Ignored, &Refusal{Command: c, Reason: reason}
	}
	return player.Success, nil
}

// obey carries out a command, or says why not and changes nothing.
func (g *Game) obey(c Command) error {
	seat, err := g.seat(c.Player)
	if err != nil {
		return err
	}
	switch c.Op {
	case OpTrain:
		return g.orderTrain(seat, c)
	case OpStop:
		return g.orderStop(seat, c)
	case OpSurrender:
		g.sides[seat].standing = surrendered
		return nil
	}
	u, err := g.ownUnit(seat, c.Unit)
	if err != nil {
		return err
	}
	if c.Op == OpAttack {
		return g.orderAttack(u, c)
	}
	at := point{fixed(c.TX), fixed(c.TY)}
	if !g.board.holds(at) {
		return ErrOffMap
	}
	switch c.Op {
	case OpMove:
		return g.orderMove(u, at)
	case OpAttackMove:
		return g.orderMarch(u, at)
	default:
		return g.orderBuild(u, c, at)
	}
}

// seat finds a player who is still in the match.
func (g *Game) seat(id int64) (uint8, error) {
	for i := range g.sides {
		s := &g.sides[i]
		if int64(s.player) != id {
			continue
		}
		if g.over {
			return 0, ErrOver
		}
		if s.standing != playing {
			return 0, ErrOut
		}
		return uint8(i), nil
	}
	return 0, ErrUnknownPlayer
}

// absent says why an id that names nothing of the kind asked for does not.
func (g *Game) absent(id int64) error {
	switch {
	case id < 1 || id > int64(g.lastID):
		return ErrUnknownUnit
	case g.exists(uint32(id)):
		return ErrCannot
	}
	return ErrDead
}

func (g *Game) exists(id uint32) bool {
	_, ok := g.locate(id)
	return ok
}

// ownUnit and ownBuilding find what a command is for.
func (g *Game) ownUnit(seat uint8, id int64) (*unit, error) {
	i := g.findUnit(asID(id))
	if i < 0 {
		return nil, g.absent(id)
	}
	if g.units[i].owner != seat {
		return nil, ErrNotOwner
	}
	return &g.units[i], nil
}

func (g *Game) ownBuilding(seat uint8, id int64) (*building, error) {
	i := g.findBuilding(asID(id))
	if i < 0 {
		return nil, g.absent(id)
	}
	if g.buildings[i].owner != seat {
		return nil, ErrNotOwner
	}
	return &g.buildings[i], nil
}

// asID narrows a parameter; what is no id at all becomes 0, which no piece
// has.
func asID(v int64) uint32 {
	if v < 0 || v > 1<<32-1 {
		return 0
	}
	return uint32(v)
}

// orderMove sends a unit somewhere. A worker sent to a deposit gathers, one
// sent to a building of its own delivers there, builds or mends.
func (g *Game) orderMove(u *unit, at point) error {
	s := spot{at.x.tile(), at.y.tile()}
	if specs[u.kind].makes && !g.board.free(s.x, s.y) && g.orderWork(u, s) {
		return nil
	}
	return g.sendTo(u, moving, at)
}

func (g *Game) orderMarch(u *unit, at point) error { return g.sendTo(u, marching, at) }

// sendTo makes the nearest free ground the goal.
func (g *Game) sendTo(u *unit, o order, at point) error {
	goal, ok := g.freeGoal(at)
	if !ok {
		return ErrOffMap
	}
	u.command(o, 0, goal)
	return nil
}

// freeGoal is the point itself, or the middle of the nearest free tile.
func (g *Game) freeGoal(at point) (point, bool) {
	if g.board.freeAt(at) {
		return at, true
	}
	s, ok := g.board.freeNear(spot{at.x.tile(), at.y.tile()})
	return s.middle(), ok
}

// orderWork sets a worker to what stands on a tile, if it is work.
func (g *Game) orderWork(u *unit, s spot) bool {
	for i := range g.deposits {
		if d := &g.deposits[i]; int(d.x) == s.x && int(d.y) == s.y {
			if d.what != u.cargo {
				u.cargo, u.load = d.what, 0
			}
			u.source = d.id
			u.command(gathering, d.id, point{})
			return true
		}
	}
	for i := range g.buildings {
		b := &g.buildings[i]
		if b.owner == u.owner && around(b.spot(), 1).holds(s) {
			if u.load > 0 && b.finished() {
				u.command(delivering, b.id, point{})
			} else {
				u.command(constructing, b.id, point{})
			}
			return true
		}
	}
	return false
}

func (g *Game) orderAttack(u *unit, c Command) error {
	t, ok := g.locate(asID(c.Target))
	switch {
	case !ok && (c.Target < 1 || c.Target > int64(g.lastID)):
		return ErrUnknownUnit
	case !ok:
		return ErrDead
	case t.deposit >= 0 || g.owner(t) == u.owner:
		return ErrBadTarget
	}
	u.command(attacking, t.id, point{})
	return nil
}

// owner is the seat that a unit or building belongs to.
func (g *Game) owner(t target) uint8 {
	if t.unit >= 0 {
		return g.units[t.unit].owner
	}
	return g.buildings[t.building].owner
}

// orderStop halts a unit, or takes back the last in a building's queue.
func (g *Game) orderStop(seat uint8, c Command) error {
	if g.findBuilding(asID(c.Unit)) < 0 {
		u, err := g.ownUnit(seat, c.Unit)
		if err != nil {
			return err
		}
		u.rest()
		return nil
	}
	b, err := g.ownBuilding(seat, c.Unit)
	if err != nil {
		return err
	}
	if b.queued == 0 {
		return ErrCannot
	}
	g.unqueue(b)
	return nil
}

func (g *Game) unqueue(b *building) {
	b.queued--
	s := &specs[b.queue[b.queued]]
	b.queue[b.queued] = 0
	if b.queued == 0 {
		b.trained = 0
	}
	g.sides[b.owner].gold += s.gold
	g.sides[b.owner].wood += s.wood
}

// orderBuild founds a building and sends the worker to it.
func (g *Game) orderBuild(u *unit, c Command, at point) error {
	if !specs[u.kind].makes {
		return ErrCannot
	}
	k := kind(c.Target + buildingBase)
	if c.Target < 0 || c.Target > 255-buildingBase || !k.building() || k == hall {
		return ErrBadTarget
	}
	s := spot{at.x.tile(), at.y.tile()}
	if !g.board.siteFree(s) {
		return ErrNoSite
	}
	if g.countBuildings(u.owner) >= maxBuildings {
		return ErrFull
	}
	if !g.pay(u.owner, k) {
		return ErrCost
	}
	u.command(constructing, g.found(u.owner, k, s), point{})
	return nil
}

func (g *Game) countBuildings(owner uint8) int {
	n := 0
	for i := range g.buildings {
		if g.buildings[i].owner == owner {
			n++
		}
	}
	return n
}

// pay takes the price of a kind if the player has it.
func (g *Game) pay(seat uint8, k kind) bool {
	s, price := &g.sides[seat], &specs[k]
	if s.gold < price.gold || s.wood < price.wood {
		return false
	}
	s.gold -= price.gold
	s.wood -= price.wood
	return true
}

// orderTrain queues a unit at a building. A place other than 0, 0 becomes
// the building's rally point.
func (g *Game) orderTrain(seat uint8, c Command) error {
	b, err := g.ownBuilding(seat, c.Unit)
	if err != nil {
		return err
	}
	at := point{fixed(c.TX), fixed(c.TY)}
	if !g.board.holds(at) {
		return ErrOffMap
	}
	k := specs[b.kind].trains
	if c.Target != int64(k) {
		return ErrBadTarget
	}
	if !b.finished() {
		return ErrUnfinished
	}
	count, room := g.population(seat)
	if b.queued == maxQueue || count >= room {
		return ErrFull
	}
	if !g.pay(seat, k) {
		return ErrCost
	}
	b.queue[b.queued] = k
	b.queued++
	if at != (point{}) {
		b.rally, b.rallies = g.freeGoal(at)
	}
	return nil
}
