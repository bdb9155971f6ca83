package skirmish

import "sort"

// Patience of a walking unit, in ticks and in routes.
const (
	routeRest  = 10 // ticks between two requests for a route
	stallTicks = 12 // ticks without progress until it asks again
	mostTries  = 4  // routes that led nowhere until it gives up
)

// far is more than any distance on a map.
const far = fixed(maxSize) * one * 2

// crowdRadius is how near to its goal a unit counts as arrived when others
// stand in its way.
const crowdRadius = 3 * one

// drop forgets the way, but not how often the unit has asked.
func (r *route) drop() {
	*r = route{asked: r.asked, rest: r.rest, tries: r.tries, nearest: far}
}

// ask requests a new route.
func (r *route) ask() {
	r.drop()
	r.asked = true
}

// start is the route of a unit with a new order: it asks at once.
func (r *route) start() { *r = route{asked: true, nearest: far} }

// serveRoutes searches ways for units that asked, in turn, while this
// tick's effort lasts.
func (g *Game) serveRoutes() {
	first := sort.Search(len(g.units), func(i int) bool { return g.units[i].id > g.cursor })
	effort := 0
	for i := range g.units {
		u := &g.units[(first+i)%len(g.units)]
		if !u.route.asked {
			continue
		}
		if effort >= effortPerTick {
			return
		}
		effort += g.serve(u)
		g.cursor = u.id
	}
}

// serve gives a unit its route and returns the effort it took.
func (g *Game) serve(u *unit) int {
	u.route.asked = false
	u.route.rest = routeRest
	goal, ok := g.destination(u)
	if !ok {
		return 1
	}
	start := spot{u.at.x.tile(), u.at.y.tile()}
	r := &u.route
	if goal.low == goal.high && g.board.free(goal.low.x, goal.low.y) && g.board.clear(start, goal.low) {
		r.tiles[0] = uint16(g.board.index(goal.low.x, goal.low.y))
		r.length = 1
		return 1
	}
	g.finder.search(&g.board, start, goal)
	r.length = uint8(g.board.corners(&r.tiles, start, g.finder.trail))
	if r.length == 0 { // on the right tile already, but not near enough
		r.tiles[0] = uint16(g.board.index(start.x, start.y))
		r.length = 1
	}
	return g.finder.effort
}

// destination is where a unit wants to be: the tile of its goal or foe, or
// the ring around a building or deposit.
func (g *Game) destination(u *unit) (area, bool) {
	id := u.target
	switch {
	case u.foe != 0:
		id = u.foe
	case u.order == idle:
		return area{}, false
	case u.order == moving || u.order == marching:
		return around(spot{u.goal.x.tile(), u.goal.y.tile()}, 0), true
	}
	t, ok := g.locate(id)
	return t.ring(), ok
}

// travel walks one tick along the unit's route, and asks for one where it
// has none. It tells whether the unit has come to its goal.
func (g *Game) travel(u *unit) bool {
	r := &u.route
	if r.asked {
		return false
	}
	if r.next == r.length {
		g.retry(u)
		return false
	}
	to, slack, last := g.nextCorner(u)
	if g.approach(u, to, slack) {
		r.corner()
		return last
	}
	if r.stall < stallTicks {
		return false
	}
	if u.walksToPoint() && u.at.squared(u.goal) < square(crowdRadius) {
		return true
	}
	g.retry(u)
	return false
}

// corner goes on to the next corner. A way of a single one proves no
// progress: it may be all there is of a way that leads nowhere.
func (r *route) corner() {
	r.next++
	r.nearest, r.stall = far, 0
	if r.length > 1 {
		r.tries = 0
	}
}

// walksToPoint is true of a unit whose way ends at its goal.
func (u *unit) walksToPoint() bool {
	return u.foe == 0 && (u.order == moving || u.order == marching)
}

// nextCorner is the point that the unit walks to now, how near it must come,
// and whether that is its goal.
func (g *Game) nextCorner(u *unit) (to point, slack fixed, last bool) {
	s := g.board.spot(int(u.route.tiles[u.route.next]))
	if u.walksToPoint() && s.x == u.goal.x.tile() && s.y == u.goal.y.tile() {
		return u.goal, specs[u.kind].speed, true
	}
	return s.middle(), one / 4, false
}

// retry asks for another route as soon as the unit may, and gives up after
// several that led nowhere.
func (g *Game) retry(u *unit) {
	r := &u.route
	if r.rest > 0 {
		return
	}
	if r.tries == mostTries {
		g.giveUp(u)
		return
	}
	r.tries++
	r.ask()
}

// approach takes one step and notes whether it brought the unit nearer.
func (g *Game) approach(u *unit, to point, slack fixed) bool {
	distance := g.step(u, to)
	if distance <= slack {
		return true
	}
	if distance < u.route.nearest-one/64 {
		u.route.nearest, u.route.stall = distance, 0
	} else {
		u.route.stall++
	}
	return false
}

// step moves a unit one tick towards a point and returns how far away the
// point was before.
func (g *Game) step(u *unit, to point) fixed {
	dx, dy := to.x-u.at.x, to.y-u.at.y
	distance := length(dx, dy)
	speed := specs[u.kind].speed
	if distance > speed {
		dx, dy = dx*speed/distance, dy*speed/distance
	}
	g.shift(u, dx, dy)
	return distance
}

// shift moves a unit where the ground is free, else along the obstacle.
func (g *Game) shift(u *unit, dx, dy fixed) {
	for _, to := range [...]point{
		{u.at.x + dx, u.at.y + dy}, {u.at.x + dx, u.at.y}, {u.at.x, u.at.y + dy},
	} {
		if g.board.freeAt(to) {
			u.at = to
			return
		}
	}
}
