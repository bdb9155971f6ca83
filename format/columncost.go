package format

import (
	"encoding/binary"
	"math/bits"
)

// What a stream takes in a frame is guessed: matches are looked for as an encoder
// does that is quick, and all other bytes have the entropy of their counts. It
// is integer arithmetic alone: every machine picks alike.

const (
	// matchCost is about what a match takes, in bits, beside its distance.
	matchCost = 10
	// leastMatch is how many bytes a match has at least.
	leastMatch = 4
	// symbolCost is about what a byte value takes in a table of codes, in bits.
	symbolCost = 4
	// logBits is the precision of logarithms, in bits.
	logBits = 10
	// seenBits is the size of the table of places, in bits.
	seenBits = 14
)

// logarithms are those of 1 to 1,023 to base 2, with logBits bits behind the
// point.
var logarithms = func() (table [1 << 10]uint32) {
	for i := 1; i < len(table); i++ {
		table[i] = logarithm(uint64(i))
	}
	return table
}()

// logarithm finds that of 1 to 1,023: the bits behind the point by squaring.
func logarithm(n uint64) uint32 {
	whole := bits.Len64(n) - 1
	log := uint32(whole) << logBits
	x := n << (31 - whole) // 1 to 2, as 2^31 to 2^32
	for bit := uint32(1) << (logBits - 1); bit > 0; bit >>= 1 {
		if x = x * x >> 31; x >= 1<<32 {
			log |= bit
			x >>= 1
		}
	}
	return log
}

// counts are how often each byte value comes.
type counts [256]uint32

// bits guesses what the counted bytes take, and forgets them.
func (c *counts) bits() int {
	all, sum, values := 0, 0, 0
	for i, n := range c {
		if n > 0 {
			all += int(n)
			sum += int(n) * log2(n)
			values++
			c[i] = 0
		}
	}
	if all == 0 {
		return 0
	}
	coded := max((all*log2(uint32(all))-sum)>>logBits, all) + values*symbolCost
	return min(coded, 8*all)
}

// log2 has logBits bits behind the point.
func log2(n uint32) int {
	log := 0
	for n >= uint32(len(logarithms)) {
		n >>= 1
		log += 1 << logBits
	}
	return log + int(logarithms[n])
}

// guesser guesses sizes in bits.
type guesser struct {
	seen       [1 << seenBits]uint32 // base + place of four bytes
	base, used uint32                // base is 0 before the first
	counts     counts
}

// bytes guesses a stream of bytes: it looks for matches as an encoder does that
// is quick, and the other bytes have the entropy of their counts.
func (g *guesser) bytes(b []byte) int {
	g.next(len(b))
	size, from := 0, 0
	for i := 0; i+leastMatch <= len(b); {
		s := &g.seen[binary.LittleEndian.Uint32(b[i:])*0x9e3779b1>>(32-seenBits)]
		at, n := *s-g.base, 0
		*s = g.base + uint32(i)
		if at < uint32(i) {
			n = common(b[at:], b[i:])
		}
		if n < leastMatch {
			i++
			continue
		}
		g.count(b[from:i])
		size += matchCost + bits.Len32(uint32(i)-at)
		i += n
		from = i
	}
	g.count(b[from:])
	return size + g.counts.bits()
}

// numbers guesses the bytes of count numbers in a form: each plane is a stream.
func (g *guesser) numbers(b []byte, form, count int) int {
	if form != formPlanes {
		return g.bytes(b)
	}
	size := 0
	for len(b) > 0 {
		size += g.bytes(b[:count])
		b = b[count:]
	}
	return size
}

// common is how many bytes a and the shorter b begin with alike.
func common(a, b []byte) int {
	n := 0
	for n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func (g *guesser) count(literals []byte) {
	for _, v := range literals {
		g.counts[v]++
	}
}

// next makes room for n places; those before it are no longer seen.
func (g *guesser) next(n int) {
	g.base += g.used
	g.used = uint32(n)
	if g.base == 0 || g.base > 1<<31 {
		clear(g.seen[:])
		g.base = 1
	}
}
