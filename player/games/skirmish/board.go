package skirmish

// ground is what stands on a tile. Units do not count.
type ground uint8

const (
	open  ground = 0
	rocky ground = 1
	mined ground = 2 // a deposit
	built ground = 3 // part of a building
)

// board is the grid of tiles, row by row.
type board struct {
	size  int
	tiles []ground
}

func newBoard(size int) board {
	return board{size: size, tiles: make([]ground, size*size)}
}

// copyFrom makes b equal to another board, reusing its memory.
func (b *board) copyFrom(other *board) {
	b.size = other.size
	b.tiles = append(b.tiles[:0], other.tiles...)
}

func (b *board) index(x, y int) int { return y*b.size + x }

func (b *board) spot(index int) spot { return spot{index % b.size, index / b.size} }

func (b *board) inside(x, y int) bool {
	return uint(x) < uint(b.size) && uint(y) < uint(b.size)
}

// free tells whether units may stand on a tile; none may outside.
func (b *board) free(x, y int) bool {
	return b.inside(x, y) && b.tiles[b.index(x, y)] == open
}

// freeAt is free for the tile under a point.
func (b *board) freeAt(p point) bool { return b.free(p.x.tile(), p.y.tile()) }

// holds tells whether a point lies on the map.
func (b *board) holds(p point) bool {
	edge := fixed(b.size) * one
	return p.x >= 0 && p.y >= 0 && p.x < edge && p.y < edge
}

func (b *board) set(s spot, g ground) { b.tiles[b.index(s.x, s.y)] = g }

// stamp sets the three by three tiles of a building.
func (b *board) stamp(centre spot, g ground) {
	for y := centre.y - 1; y <= centre.y+1; y++ {
		for x := centre.x - 1; x <= centre.x+1; x++ {
			b.set(spot{x, y}, g)
		}
	}
}

// allFree tells whether every tile up to radius away is free.
func (b *board) allFree(centre spot, radius int) bool {
	for y := centre.y - radius; y <= centre.y+radius; y++ {
		for x := centre.x - radius; x <= centre.x+radius; x++ {
			if !b.free(x, y) {
				return false
			}
		}
	}
	return true
}

// siteFree tells whether a building fits. It must keep a free ring around
// itself and leave that of every other obstacle, so that no building ever
// cuts a way off.
func (b *board) siteFree(centre spot) bool { return b.allFree(centre, 2) }

// freeNear finds the free tile that is nearest to a spot, ring by ring.
func (b *board) freeNear(s spot) (spot, bool) {
	for radius := range b.size {
		for y := s.y - radius; y <= s.y+radius; y++ {
			step := 2 * radius
			if abs(y-s.y) == radius || radius == 0 {
				step = 1
			}
			for x := s.x - radius; x <= s.x+radius; x += step {
				if b.free(x, y) {
					return spot{x, y}, true
				}
			}
		}
	}
	return spot{}, false
}

// clear tells whether a straight line between two tiles' middles touches
// only free tiles; the first tile is not looked at.
func (b *board) clear(from, to spot) bool {
	dx, dy := abs(to.x-from.x), abs(to.y-from.y)
	sx, sy := sign(to.x-from.x), sign(to.y-from.y)
	at := from
	for ix, iy := 0, 0; ix < dx || iy < dy; {
		// Which border comes first: the next column's or the next row's?
		first := (1+2*ix)*dy - (1+2*iy)*dx
		if first == 0 && !(b.free(at.x+sx, at.y) && b.free(at.x, at.y+sy)) {
			return false
		}
		if first <= 0 {
			at.x += sx
			ix++
		}
		if first >= 0 {
			at.y += sy
			iy++
		}
		if !b.free(at.x, at.y) {
			return false
		}
	}
	return true
}

// flood marks every tile that can be reached from a spot.
func (b *board) flood(from spot) []bool {
	reached := make([]bool, len(b.tiles))
	reached[b.index(from.x, from.y)] = true
	queue := []spot{from}
	for len(queue) > 0 {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, n := range [...]spot{{s.x + 1, s.y}, {s.x - 1, s.y}, {s.x, s.y + 1}, {s.x, s.y - 1}} {
			if b.free(n.x, n.y) && !reached[b.index(n.x, n.y)] {
				reached[b.index(n.x, n.y)] = true
				queue = append(queue, n)
			}
		}
	}
	return reached
}

// sum is a digest of the tiles.
func (b *board) sum() uint32 {
	d := newDigest(uint64(b.size))
	for _, g := range b.tiles {
		d.add(uint64(g))
	}
	return d.short()
}
