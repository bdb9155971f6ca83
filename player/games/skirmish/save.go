package skirmish

import "encoding/binary"

// A saved state begins with stateMagic and the version and ends with a
// digest of all before it, eight bytes. In between every number is a
// varint; doc.go has the table. These values must not change.
const (
	stateMagic   = "SKIR"
	stateVersion = 1
	sumBytes     = 8
)

// Save appends the whole state.
func (g *Game) Save(dst []byte) []byte {
	from := len(dst)
	w := writer(append(append(dst, stateMagic...), stateVersion))
	w.uint(g.seed)
	w.text(g.mapName)
	w.uint(uint64(len(g.sides)))
	for i := range g.sides {
		g.sides[i].save(&w)
	}
	w.uint(g.tick)
	w.uint(uint64(g.lastID))
	w.uint(uint64(g.cursor))
	w.uint(uint64(g.random))
	w.flag(g.over)
	w.uint(uint64(g.winner))
	w.uint(uint64(len(g.deposits)))
	for i := range g.deposits {
		w.uint(uint64(g.deposits[i].id)) // place and kind follow from the map
		w.uint(uint64(g.deposits[i].left))
	}
	w.uint(uint64(len(g.buildings)))
	for i := range g.buildings {
		g.buildings[i].save(&w)
	}
	w.uint(uint64(len(g.units)))
	for i := range g.units {
		g.units[i].save(&w)
	}
	w.uint(uint64(len(g.arrows)))
	for i := range g.arrows {
		g.arrows[i].save(&w)
	}
	return binary.LittleEndian.AppendUint64(w, stateSum(w[from:]))
}

func stateSum(b []byte) uint64 {
	d := newDigest(6)
	d.addBytes(b)
	return d.long()
}

func (s *side) save(w *writer) {
	w.uint(s.player)
	w.uint(uint64(s.standing))
	w.uint(uint64(s.gold))
	w.uint(uint64(s.wood))
}

func (b *building) save(w *writer) {
	w.uint(uint64(b.id))
	w.uint(uint64(b.owner))
	w.uint(uint64(b.kind))
	w.uint(uint64(b.x))
	w.uint(uint64(b.y))
	w.uint(uint64(b.hp))
	w.uint(uint64(b.built))
	w.uint(uint64(b.queued)) // all of the one kind that the building trains
	w.uint(uint64(b.trained))
	w.flag(b.rallies)
	if b.rallies {
		w.point(b.rally)
	}
}

func (u *unit) save(w *writer) {
	w.uint(uint64(u.id))
	w.uint(uint64(u.owner))
	w.uint(uint64(u.kind))
	w.point(u.at)
	w.uint(uint64(u.hp))
	w.uint(uint64(u.recharge))
	w.uint(uint64(u.order))
	w.point(u.goal)
	w.uint(uint64(u.target))
	w.uint(uint64(u.foe))
	w.uint(uint64(u.cargo))
	w.uint(uint64(u.load))
	w.uint(uint64(u.work))
	w.uint(uint64(u.source))
	u.route.save(w)
}

func (r *route) save(w *writer) {
	w.uint(uint64(r.length))
	for _, t := range r.tiles[:r.length] {
		w.uint(uint64(t))
	}
	w.uint(uint64(r.next))
	w.flag(r.asked)
	w.uint(uint64(r.rest))
	w.uint(uint64(r.nearest))
	w.uint(uint64(r.stall))
	w.uint(uint64(r.tries))
}

func (a *arrow) save(w *writer) {
	w.point(a.at)
	w.uint(uint64(a.target))
	w.uint(uint64(a.damage))
}

// writer is the bytes written so far.
type writer []byte

func (w *writer) uint(v uint64) { *w = binary.AppendUvarint(*w, v) }

func (w *writer) flag(b bool) { *w = append(*w, byte(bit(b))) }

func (w *writer) point(p point) {
	w.uint(uint64(p.x))
	w.uint(uint64(p.y))
}

func (w *writer) text(s string) {
	w.uint(uint64(len(s)))
	*w = append(*w, s...)
}
