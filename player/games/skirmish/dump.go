package skirmish

import (
	"strconv"

	"reprise/player"
)

// Dump gives every field of the state, in a fixed order.
func (g *Game) Dump() []player.Field {
	var d dumper
	d.uint("seed", g.seed)
	d.add("map", g.mapName)
	d.uint("tick", g.tick)
	d.uint("last_id", uint64(g.lastID))
	d.uint("cursor", uint64(g.cursor))
	d.uint("random", uint64(g.random))
	d.add("over", strconv.FormatBool(g.over))
	d.uint("winner", uint64(g.winner))
	for i := range g.sides {
		g.sides[i].dump(d.in("sides", uint64(i)))
	}
	for i := range g.deposits {
		g.deposits[i].dump(d.in("deposits", uint64(g.deposits[i].id)))
	}
	for i := range g.buildings {
		g.buildings[i].dump(d.in("buildings", uint64(g.buildings[i].id)))
	}
	for i := range g.units {
		g.units[i].dump(d.in("units", uint64(g.units[i].id)))
	}
	for i := range g.arrows {
		g.arrows[i].dump(d.in("arrows", uint64(i)))
	}
	return d.fields
}

func (s *side) dump(d *dumper) {
	d.uint("player", s.player)
	d.add("standing", s.standing.String())
	d.int("gold", s.gold)
	d.int("wood", s.wood)
}

func (p *deposit) dump(d *dumper) {
	d.int("x", int64(p.x))
	d.int("y", int64(p.y))
	d.add("what", p.what.String())
	d.int("left", int64(p.left))
}

func (b *building) dump(d *dumper) {
	d.uint("owner", uint64(b.owner))
	d.add("kind", b.kind.String())
	d.int("x", int64(b.x))
	d.int("y", int64(b.y))
	d.int("hp", int64(b.hp))
	d.int("built", int64(b.built))
	for i, k := range b.queue[:b.queued] {
		d.add("queue["+strconv.Itoa(i)+"]", k.String())
	}
	d.int("queued", int64(b.queued))
	d.int("trained", int64(b.trained))
	d.point("rally", b.rally)
	d.add("rallies", strconv.FormatBool(b.rallies))
}

func (u *unit) dump(d *dumper) {
	d.uint("owner", uint64(u.owner))
	d.add("kind", u.kind.String())
	d.point("at", u.at)
	d.int("hp", int64(u.hp))
	d.int("recharge", int64(u.recharge))
	d.add("order", u.order.String())
	d.point("goal", u.goal)
	d.uint("target", uint64(u.target))
	d.uint("foe", uint64(u.foe))
	d.add("cargo", u.cargo.String())
	d.int("load", int64(u.load))
	d.int("work", int64(u.work))
	d.uint("source", uint64(u.source))
	u.route.dump(d)
}

func (r *route) dump(d *dumper) {
	for i, t := range r.tiles[:r.length] {
		d.int("route.tiles["+strconv.Itoa(i)+"]", int64(t))
	}
	d.int("route.length", int64(r.length))
	d.int("route.next", int64(r.next))
	d.add("route.asked", strconv.FormatBool(r.asked))
	d.int("route.rest", int64(r.rest))
	d.int("route.nearest", int64(r.nearest))
	d.int("route.stall", int64(r.stall))
	d.int("route.tries", int64(r.tries))
}

func (a *arrow) dump(d *dumper) {
	d.point("at", a.at)
	d.uint("target", uint64(a.target))
	d.int("damage", int64(a.damage))
}

// dumper collects fields under a common prefix.
type dumper struct {
	fields []player.Field
	prefix string
}

// in sets the prefix to an element of a list, for example "units[12].".
func (d *dumper) in(list string, key uint64) *dumper {
	d.prefix = list + "[" + strconv.FormatUint(key, 10) + "]."
	return d
}

func (d *dumper) add(name, value string) {
	d.fields = append(d.fields, player.Field{Name: d.prefix + name, Value: value})
}

func (d *dumper) int(name string, v int64)   { d.add(name, strconv.FormatInt(v, 10)) }
func (d *dumper) uint(name string, v uint64) { d.add(name, strconv.FormatUint(v, 10)) }

// point prints the raw Q16.16 numbers, which are exact.
func (d *dumper) point(name string, p point) {
	d.int(name+".x", int64(p.x))
	d.int(name+".y", int64(p.y))
}
