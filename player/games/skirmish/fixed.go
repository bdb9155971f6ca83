package skirmish

import "math/bits"

// fixed is a Q16.16 number: a length in tiles, or a speed in tiles a tick.
// Map sizes keep positions below 2^24, so products of two fit 64 bits.
type fixed int64

const one fixed = 1 << 16

// tile is the number of the tile that a coordinate lies in.
func (f fixed) tile() int { return int(f >> 16) }

// middle is the coordinate of a tile's middle.
func middle(tile int) fixed { return fixed(tile)*one + one/2 }

// point is a position on the map.
type point struct{ x, y fixed }

// squared is the square of the distance between two points, in Q32.32.
func (p point) squared(q point) int64 {
	dx, dy := int64(p.x-q.x), int64(p.y-q.y)
	return dx*dx + dy*dy
}

// square is a distance in the unit of squared.
func square(f fixed) int64 { return int64(f) * int64(f) }

// root is the integer square root, rounded down.
func root(v uint64) uint64 {
	if v < 2 {
		return v
	}
	// Newton's method from above never rises, so the first estimate that
	// does not fall is the answer.
	r := uint64(1) << ((bits.Len64(v) + 1) / 2)
	for {
		next := (r + v/r) / 2
		if next >= r {
			return r
		}
		r = next
	}
}

// length is the length of a vector.
func length(dx, dy fixed) fixed {
	return fixed(root(uint64(dx*dx + dy*dy)))
}

func clamp(v, low, high fixed) fixed { return max(low, min(v, high)) }
