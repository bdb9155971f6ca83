package skirmish

import (
	"fmt"
	"strconv"
	"strings"
)

// Sizes of a map's side, in tiles.
const (
	minSize = 64
	maxSize = 200
)

// spot is a tile.
type spot struct{ x, y int }

func (s spot) middle() point { return point{middle(s.x), middle(s.y)} }

// style is how a kind of map is drawn. Counts are per 10,000 tiles.
type style struct {
	name string
	// rocks blobs of up to rockSize tiles, and walls of rock.
	rocks, rockSize, walls int
	// groves and mines away from the players' starts.
	groves, mines int
}

var styles = [...]style{
	{name: "plains", rocks: 26, rockSize: 12, groves: 24, mines: 5},
	{name: "woods", rocks: 14, rockSize: 8, groves: 90, mines: 4},
	{name: "canyon", rocks: 10, rockSize: 10, walls: 14, groves: 24, mines: 6},
}

// parseMap reads a map's name: a style, a hyphen, the size of a side.
func parseMap(name string) (style, int, error) {
	word, digits, _ := strings.Cut(name, "-")
	size, err := strconv.Atoi(digits)
	for _, s := range styles {
		if s.name == word && err == nil && size >= minSize && size <= maxSize && digits == strconv.Itoa(size) {
			return s, size, nil
		}
	}
	return style{}, 0, fmt.Errorf("%w: %q; a map is plains-N, woods-N or canyon-N with N from %d to %d, for example plains-100",
		ErrUnknownMap, name, minSize, maxSize)
}

func (d *deposit) spot() spot  { return spot{int(d.x), int(d.y)} }
func (b *building) spot() spot { return spot{int(b.x), int(b.y)} }

// layout is what a match's seed and map name make: it is drawn once and
// then only read.
type layout struct {
	board    board // rocks only
	starts   []spot
	deposits []deposit
	lastID   uint32
	// sum is a digest of the rocks.
	sum uint32
}

// draftsman draws one layout.
type draftsman struct {
	*layout
	style  style
	random random
}

// draw makes the layout of a match. Every free tile of it can be reached
// from every other.
func draw(seed uint64, mapName string, players int) (*layout, error) {
	s, size, err := parseMap(mapName)
	if err != nil {
		return nil, err
	}
	d := draftsman{
		layout: &layout{board: newBoard(size)},
		style:  s,
		random: random(scramble(seed ^ textSum(mapName))),
	}
	d.placeStarts(players)
	d.scatterRocks()
	d.raiseWalls()
	d.connect()
	d.placeDeposits()
	for _, p := range d.deposits { // whoever reads the layout puts them back
		d.board.set(p.spot(), open)
	}
	d.sum = d.board.sum()
	return d.layout, nil
}

// placeStarts spreads the players evenly along a square near the border.
func (d *draftsman) placeStarts(players int) {
	const inset = 11
	side := d.board.size - 2*inset
	offset := d.random.below(4 * side)
	for i := range players {
		at := (offset + 4*side*i/players) % (4 * side)
		along := at % side
		var s spot
		switch at / side {
		case 0:
			s = spot{along, 0}
		case 1:
			s = spot{side, along}
		case 2:
			s = spot{side - along, side}
		default:
			s = spot{0, side - along}
		}
		d.starts = append(d.starts, spot{s.x + inset, s.y + inset})
	}
}

// scaled turns a count per 10,000 tiles into one for this map.
func (d *draftsman) scaled(count int) int {
	return count * d.board.size * d.board.size / 10000
}

func (d *draftsman) anywhere() spot {
	return spot{d.random.below(d.board.size), d.random.below(d.board.size)}
}

// scatterRocks draws blobs, each a random walk.
func (d *draftsman) scatterRocks() {
	for range d.scaled(d.style.rocks) {
		at := d.anywhere()
		for range d.random.between(4, d.style.rockSize) {
			d.rock(at)
			next := d.random.below(4)
			at.x += [4]int{1, 0, -1, 0}[next]
			at.y += [4]int{0, 1, 0, -1}[next]
		}
	}
}

// raiseWalls draws long lines, two tiles thick, that drift sideways.
func (d *draftsman) raiseWalls() {
	for range d.scaled(d.style.walls) {
		at := d.anywhere()
		upright := d.random.chance(50)
		for range d.random.between(d.board.size/8, d.board.size/4) {
			d.rock(at)
			d.rock(spot{at.x + 1, at.y + 1})
			drift := d.random.below(7) / 3 // 0, 1, or seldom 2
			if upright {
				at.y, at.x = at.y+1, at.x+drift/2
			} else {
				at.x, at.y = at.x+1, at.y+drift/2
			}
		}
	}
}

// rock puts a rock unless it would be outside or close to a start.
func (d *draftsman) rock(at spot) {
	const clear = 8
	if !d.board.inside(at.x, at.y) {
		return
	}
	for _, s := range d.starts {
		if abs(at.x-s.x) <= clear && abs(at.y-s.y) <= clear {
			return
		}
	}
	d.board.set(at, rocky)
}

// connect digs a way to every start that cannot be reached from the first,
// and fills with rock what no start can reach.
func (d *draftsman) connect() {
	reached := d.board.flood(d.starts[0])
	for _, s := range d.starts[1:] {
		if !reached[d.board.index(s.x, s.y)] {
			d.dig(s, d.starts[0])
			reached = d.board.flood(d.starts[0])
		}
	}
	for i, ok := range reached {
		if !ok {
			d.board.tiles[i] = rocky
		}
	}
}

// dig clears an L-shaped corridor, two tiles wide.
func (d *draftsman) dig(from, to spot) {
	at := from
	for at != to {
		if at.x != to.x {
			at.x += sign(to.x - at.x)
		} else {
			at.y += sign(to.y - at.y)
		}
		for _, s := range [...]spot{at, {at.x + 1, at.y}, {at.x, at.y + 1}} {
			if d.board.inside(s.x, s.y) {
				d.board.set(s, open)
			}
		}
	}
}

// placeDeposits gives every start the same and strews the rest.
func (d *draftsman) placeDeposits() {
	for _, s := range d.starts {
		d.depositsNear(s, gold, 3)
		d.depositsNear(s, wood, 8)
	}
	d.strew(gold, d.scaled(d.style.mines))
	d.strew(wood, d.scaled(d.style.groves))
}

// depositsNear places count deposits in a ring around a start.
func (d *draftsman) depositsNear(s spot, what resource, count int) {
	for tries := 0; count > 0 && tries < 1000; tries++ {
		at := spot{s.x + d.random.between(-8, 8), s.y + d.random.between(-8, 8)}
		if max(abs(at.x-s.x), abs(at.y-s.y)) >= 5 && d.deposit(at, what) {
			count--
		}
	}
}

func (d *draftsman) strew(what resource, count int) {
	for range count {
		d.deposit(d.anywhere(), what)
	}
}

// deposit places one where its eight neighbours are free. They stay free of
// all but units for good (see board.siteFree), and so a deposit never cuts
// a way off.
func (d *draftsman) deposit(at spot, what resource) bool {
	if len(d.deposits) == maxDeposits || !d.board.allFree(at, 1) || d.nearStart(at, 3) {
		return false
	}
	left := int32(mineGold)
	if what == wood {
		left = groveWood
	}
	d.lastID++
	d.deposits = append(d.deposits, deposit{id: d.lastID, x: uint8(at.x), y: uint8(at.y), what: what, left: left})
	d.board.set(at, mined)
	return true
}

func (d *draftsman) nearStart(at spot, distance int) bool {
	for _, s := range d.starts {
		if max(abs(at.x-s.x), abs(at.y-s.y)) <= distance {
			return true
		}
	}
	return false
}

func abs(v int) int { return max(v, -v) }

func sign(v int) int {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

// textSum is FNV-1a, 64 bits.
func textSum(s string) uint64 {
	sum := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		sum = (sum ^ uint64(s[i])) * 0x100000001b3
	}
	return sum
}
