package skirmish

// area is a rectangle of tiles, both corners included.
type area struct{ low, high spot }

// around is the area of all tiles up to radius away from s.
func around(s spot, radius int) area {
	return area{spot{s.x - radius, s.y - radius}, spot{s.x + radius, s.y + radius}}
}

func (a area) holds(s spot) bool {
	return s.x >= a.low.x && s.x <= a.high.x && s.y >= a.low.y && s.y <= a.high.y
}

// Costs of a step to a neighbour tile: ten times the distance.
const (
	straight = 10
	diagonal = 14
)

// estimate is the cost to an area over open ground.
func (a area) estimate(s spot) uint32 {
	dx := max(a.low.x-s.x, s.x-a.high.x, 0)
	dy := max(a.low.y-s.y, s.y-a.high.y, 0)
	return uint32(straight*max(dx, dy) + (diagonal-straight)*min(dx, dy))
}

// Effort is counted in tiles looked at. One search is cut off at searchMost
// and then leads to the best tile so far; when searches of one tick come to
// effortPerTick, units that ask later wait for the next tick.
const (
	searchMost    = 4000
	effortPerTick = 3000
)

// finder searches ways by A*. It keeps nothing from one search to the next
// but its memory.
type finder struct {
	// seen, cost and from belong to the tiles whose turn is this search's.
	turn uint32
	seen []uint32
	done []uint32
	cost []uint32
	from []uint16
	heap []uint64
	// trail is the last result, from the tile after the start to the end.
	trail []spot
	// effort is the number of tiles the last search looked at.
	effort int
}

// begin makes room for a board and forgets the last search.
func (f *finder) begin(b *board) {
	if len(f.seen) != len(b.tiles) || f.turn == 1<<32-1 {
		n := len(b.tiles)
		f.turn, f.seen, f.done = 0, make([]uint32, n), make([]uint32, n)
		f.cost, f.from = make([]uint32, n), make([]uint16, n)
	}
	f.turn++
	f.effort = 0
	f.heap = f.heap[:0]
	f.trail = f.trail[:0]
}

// search finds the cheapest way from start into goal, or, where the effort
// runs out or there is none, to the tile nearest to it.
func (f *finder) search(b *board, start spot, goal area) {
	f.begin(b)
	first := b.index(start.x, start.y)
	best, bestLeft := first, goal.estimate(start)
	f.reach(first, first, 0, bestLeft)
	for len(f.heap) > 0 && f.effort < searchMost {
		tile, left := f.pop()
		if f.done[tile] == f.turn {
			continue
		}
		f.done[tile] = f.turn
		f.effort++
		if left < bestLeft {
			best, bestLeft = tile, left
		}
		if left == 0 {
			break
		}
		f.expand(b, tile, goal)
	}
	f.trace(b, first, best)
}

// expand reaches the neighbours of a tile. A diagonal step needs both tiles
// beside it free.
func (f *finder) expand(b *board, tile int, goal area) {
	s := b.spot(tile)
	cost := f.cost[tile]
	east, west := b.free(s.x+1, s.y), b.free(s.x-1, s.y)
	south, north := b.free(s.x, s.y+1), b.free(s.x, s.y-1)
	f.visit(b, east, tile, spot{s.x + 1, s.y}, cost+straight, goal)
	f.visit(b, west, tile, spot{s.x - 1, s.y}, cost+straight, goal)
	f.visit(b, south, tile, spot{s.x, s.y + 1}, cost+straight, goal)
	f.visit(b, north, tile, spot{s.x, s.y - 1}, cost+straight, goal)
	f.visit(b, east && south, tile, spot{s.x + 1, s.y + 1}, cost+diagonal, goal)
	f.visit(b, east && north, tile, spot{s.x + 1, s.y - 1}, cost+diagonal, goal)
	f.visit(b, west && south, tile, spot{s.x - 1, s.y + 1}, cost+diagonal, goal)
	f.visit(b, west && north, tile, spot{s.x - 1, s.y - 1}, cost+diagonal, goal)
}

func (f *finder) visit(b *board, may bool, from int, to spot, cost uint32, goal area) {
	if !may || !b.free(to.x, to.y) {
		return
	}
	tile := b.index(to.x, to.y)
	if f.seen[tile] == f.turn && f.cost[tile] <= cost {
		return
	}
	f.reach(tile, from, cost, goal.estimate(to))
}

// reach notes a cheaper way to a tile and queues it.
func (f *finder) reach(tile, from int, cost, left uint32) {
	f.seen[tile] = f.turn
	f.cost[tile] = cost
	f.from[tile] = uint16(from)
	f.push(uint64(cost+left)<<32 | uint64(left)<<16 | uint64(tile))
}

// trace writes the trail that ends at a tile.
func (f *finder) trace(b *board, first, tile int) {
	for tile != first {
		f.trail = append(f.trail, b.spot(tile))
		tile = int(f.from[tile])
	}
	for i, j := 0, len(f.trail)-1; i < j; i, j = i+1, j-1 {
		f.trail[i], f.trail[j] = f.trail[j], f.trail[i]
	}
}

// push and pop keep a binary heap of keys: cost of the whole way, then cost
// left, then tile. No two keys that matter are equal, so the order in which
// tiles come out does not depend on how the heap is built.
func (f *finder) push(key uint64) {
	f.heap = append(f.heap, key)
	h := f.heap
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if h[up] <= key {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = key
}

func (f *finder) pop() (tile int, left uint32) {
	h := f.heap
	top, key := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	f.heap = h
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1] < h[down] {
			down++
		}
		if h[down] >= key {
			break
		}
		h[i] = h[down]
		i = down
	}
	if len(h) > 0 {
		h[i] = key
	}
	return int(top & 0xffff), uint32(top >> 16 & 0xffff)
}

// corners thins a trail to the tiles where a straight walk must end, as
// many as fit, and returns how many there are.
func (b *board) corners(dst *[maxRoute]uint16, start spot, trail []spot) int {
	n, at := 0, start
	for i := 0; i < len(trail) && n < maxRoute; n++ {
		for i+1 < len(trail) && b.clear(at, trail[i+1]) {
			i++
		}
		at = trail[i]
		dst[n] = uint16(b.index(at.x, at.y))
		i++
	}
	return n
}
