package skirmish

import "sort"

// target is something with an id that a unit can go to: another unit, a
// building or a deposit.
type target struct {
	id uint32
	// low and high are the corners of what it covers; equal for a unit.
	low, high point
	// Exactly one of these is an index, the others are -1.
	unit, building, deposit int
}

// locate finds what an id names; false when it is gone or never was.
func (g *Game) locate(id uint32) (target, bool) {
	if i := g.findUnit(id); i >= 0 {
		at := g.units[i].at
		return target{id, at, at, i, -1, -1}, true
	}
	if i := g.findBuilding(id); i >= 0 {
		return g.buildings[i].target(i), true
	}
	if i := g.findDeposit(id); i >= 0 {
		d := &g.deposits[i]
		low, high := corners(d.x, d.y, 0)
		return target{id, low, high, -1, -1, i}, true
	}
	return target{}, false
}

func (b *building) target(index int) target {
	low, high := corners(b.x, b.y, 1)
	return target{b.id, low, high, -1, index, -1}
}

// corners are those of the square of tiles up to radius away.
func corners(x, y uint8, radius fixed) (low, high point) {
	cx, cy := fixed(x), fixed(y)
	return point{(cx - radius) * one, (cy - radius) * one}, point{(cx + radius + 1) * one, (cy + radius + 1) * one}
}

// squared is the square of the distance from a point to the target's edge.
func (t target) squared(p point) int64 { return p.squared(t.nearest(p)) }

// nearest is the target's point that is nearest to p.
func (t target) nearest(p point) point {
	return point{clamp(p.x, t.low.x, t.high.x), clamp(p.y, t.low.y, t.high.y)}
}

// ring is the area from which the target can be touched. A unit is
// approached to its own tile, what stands to the tiles around it.
func (t target) ring() area {
	low := spot{t.low.x.tile(), t.low.y.tile()}
	if t.unit >= 0 {
		return area{low, low}
	}
	return area{spot{low.x - 1, low.y - 1}, spot{t.high.x.tile(), t.high.y.tile()}}
}

// findUnit, findBuilding and findDeposit give the index of an id, or -1.
// The lists are in the order of their ids.
func (g *Game) findUnit(id uint32) int {
	i := sort.Search(len(g.units), func(i int) bool { return g.units[i].id >= id })
	if i < len(g.units) && g.units[i].id == id {
		return i
	}
	return -1
}

func (g *Game) findBuilding(id uint32) int {
	i := sort.Search(len(g.buildings), func(i int) bool { return g.buildings[i].id >= id })
	if i < len(g.buildings) && g.buildings[i].id == id {
		return i
	}
	return -1
}

func (g *Game) findDeposit(id uint32) int {
	i := sort.Search(len(g.deposits), func(i int) bool { return g.deposits[i].id >= id })
	if i < len(g.deposits) && g.deposits[i].id == id {
		return i
	}
	return -1
}
