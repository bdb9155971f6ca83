package tower

// The inside of a floor is cut into rooms by walls on even rows and columns.
// Each wall has one gate, on an odd row or column, so no wall ever ends in
// front of a gate, and the rooms form a tree: every gate matters.

// rect is a room's inside, both corners included, all of them odd.
type rect struct{ x0, y0, x1, y1 int }

func (r rect) holds(c cell) bool {
	return c.x() >= r.x0 && c.x() <= r.x1 && c.y() >= r.y0 && c.y() <= r.y1
}

// room is one leaf of the division, seen from the floor's entry.
type room struct {
	rect
	// gate leads here from the room before; unset for the entry's room.
	gate cell
	// depth counts the gates on the way from the entry.
	depth int
	// rich rooms get the better things: they lie behind costly doors.
	rich bool
	// place is set where the room has a shop, a trader, an altar or a chest;
	// one of them cannot cut a room in two.
	place bool
}

// divide cuts r until no side is longer than five cells.
func (b *builder) divide(r rect) {
	width, height := r.x1-r.x0+1, r.y1-r.y0+1
	switch {
	case max(width, height) < 7:
		b.leaves = append(b.leaves, r)
	case width > height || width == height && b.random.percent(50):
		b.divideAcross(r, r.x0+b.cut(width))
	default:
		b.divideDown(r, r.y0+b.cut(height))
	}
}

// cut picks how far into a side of the given length a wall stands: three
// cells or more are left on both sides.
func (b *builder) cut(length int) int {
	return 3 + 2*b.random.below((length-7)/2+1)
}

func (b *builder) divideAcross(r rect, x int) {
	for y := r.y0; y <= r.y1; y++ {
		b.floor.grid[at(x, y)] = tileWall
	}
	b.gates = append(b.gates, b.gate(r.y0, r.y1, func(y int) cell { return at(x, y) }))
	b.divide(rect{r.x0, r.y0, x - 1, r.y1})
	b.divide(rect{x + 1, r.y0, r.x1, r.y1})
}

func (b *builder) divideDown(r rect, y int) {
	for x := r.x0; x <= r.x1; x++ {
		b.floor.grid[at(x, y)] = tileWall
	}
	b.gates = append(b.gates, b.gate(r.x0, r.x1, func(x int) cell { return at(x, y) }))
	b.divide(rect{r.x0, r.y0, r.x1, y - 1})
	b.divide(rect{r.x0, y + 1, r.x1, r.y1})
}

// gate opens the wall on an odd coordinate that is not beside the entry:
// stairs in front of a gate could not be walked around.
func (b *builder) gate(from, to int, on func(int) cell) cell {
	first := b.random.below((to-from)/2 + 1)
	for i := 0; ; i++ {
		c := on(from + 2*((first+i)%((to-from)/2+1)))
		if !neighbours(c, b.floor.entry) {
			b.floor.grid[c] = tileGround
			return c
		}
	}
}

// neighbours says whether one step leads from a to b.
func neighbours(a, b cell) bool {
	dx, dy := a.x()-b.x(), a.y()-b.y()
	return dx*dx+dy*dy == 1
}

// link lists the rooms in an order in which they can be entered: each but
// the first lies behind a gate of an earlier one.
func (b *builder) link() {
	first := b.leafAt(b.floor.entry)
	b.rooms = append(b.rooms, room{rect: b.leaves[first]})
	open := append([]cell(nil), b.gates...)
	for len(open) > 0 {
		i, next := b.nextGate(open)
		b.rooms = append(b.rooms, next)
		open = append(open[:i], open[i+1:]...)
	}
}

// nextGate picks a gate between a listed room and one not yet listed.
func (b *builder) nextGate(open []cell) (int, room) {
	first := b.random.below(len(open))
	for n := 0; ; n++ {
		i := (first + n) % len(open)
		for d := range direction(directions) {
			behind := open[i].beside(d)
			ahead := open[i].beside(d ^ 1)
			r := b.roomAt(ahead)
			if r >= 0 && b.floor.grid[behind] != tileWall && b.roomAt(behind) < 0 {
				return i, room{rect: b.leaves[b.leafAt(behind)], gate: open[i], depth: b.rooms[r].depth + 1}
			}
		}
	}
}

func (b *builder) leafAt(c cell) int {
	for i, r := range b.leaves {
		if r.holds(c) {
			return i
		}
	}
	return -1
}

// roomAt gives the listed room that c lies in, -1 for none.
func (b *builder) roomAt(c cell) int {
	for i := range b.rooms {
		if b.rooms[i].holds(c) {
			return i
		}
	}
	return -1
}
