package tower

// builder makes one floor. What a floor looks like depends on the seed, its
// level and where the stairs from below arrive.
type builder struct {
	random random
	level  int
	floor  floor
	leaves []rect
	gates  []cell
	rooms  []room
}

func build(seed uint64, level int, entry cell, top bool) floor {
	b := builder{random: from(seed, uint64(level)+1), level: level}
	b.floor.entry = entry
	b.rim()
	b.divide(rect{1, 1, side - 2, side - 2})
	b.link()
	b.stairs(top)
	b.bar(top)
	b.furnish()
	return b.floor
}

func (b *builder) rim() {
	for c := range cell(cells) {
		if c.rim() {
			b.floor.grid[c] = tileWall
		}
	}
}

// stairs sets both ends of the floor: the way up is in the deepest room.
func (b *builder) stairs(top bool) {
	last := b.exitRoom()
	b.floor.exit = b.corner(&b.rooms[last])
	b.floor.grid[b.floor.exit] = tileUp
	if top {
		b.floor.grid[b.floor.exit] = tileCrown
	}
	if b.level > 0 {
		b.floor.grid[b.floor.entry] = tileDown
	}
}

func (b *builder) exitRoom() int {
	last := 0
	for i := range b.rooms {
		if b.rooms[i].depth >= b.rooms[last].depth {
			last = i
		}
	}
	return last
}

// corner picks a cell with odd coordinates that is not beside the room's
// gate. No wall of any floor stands on such a cell, so the next floor can
// begin there.
func (b *builder) corner(r *room) cell {
	for {
		x := r.x0 + 2*b.random.below((r.x1-r.x0)/2+1)
		y := r.y0 + 2*b.random.below((r.y1-r.y0)/2+1)
		if c := at(x, y); !neighbours(c, r.gate) {
			return c
		}
	}
}

// bar closes gates with doors and monsters. The key of a door lies in a
// room that comes before it.
func (b *builder) bar(top bool) {
	exit := b.exitRoom()
	for i := 1; i < len(b.rooms); i++ {
		gate := &b.floor.grid[b.rooms[i].gate]
		switch draw := b.random.below(100); {
		case top && i == exit:
			*gate = tileMonster + tile(guardian)
		case draw < 35:
			b.lock(i, yellow)
		case draw < 65:
			*gate = b.monster()
		case draw < 75 && i != exit:
			b.lock(i, blue)
		case draw < 80 && i != exit && b.level > 1:
			b.lock(i, red)
		}
	}
}

func (b *builder) lock(i int, c colour) {
	b.floor.grid[b.rooms[i].gate] = tileDoor + tile(c)
	b.rooms[i].rich = c != yellow
	b.drop(&b.rooms[b.random.below(i)], tileKey+tile(c))
}

// monster picks one that lives on this level.
func (b *builder) monster() tile {
	for {
		k := kind(b.random.below(len(bestiary)))
		from := bestiary[k].from
		if k != guardian && from <= b.level && from+5 >= min(b.level, 6) {
			return tileMonster + tile(k)
		}
	}
}

// drop puts t on a free cell of r; a room without one gets nothing.
func (b *builder) drop(r *room, t tile) {
	width, height := r.x1-r.x0+1, r.y1-r.y0+1
	first := b.random.below(width * height)
	for n := range width * height {
		i := (first + n) % (width * height)
		c := at(r.x0+i%width, r.y0+i/width)
		if b.floor.grid[c] == tileGround && c != b.floor.entry {
			b.floor.grid[c] = t
			return
		}
	}
}
