package format

import "math/bits"

// Numbers of the mixers are part of the format. They must not change.
const (
	// nibbleContexts is how many contexts a nibble has.
	nibbleContexts = 5
	// matches is how many match models there are.
	matches = 2
	// flagContexts is how many contexts a flag has.
	flagContexts = 7
	// inputPairs is half of the mixer's inputs: contexts, match models, and a
	// constant.
	inputPairs = 4

	// Weights are in 1/2^weightBits. Each set of the first kind begins with
	// firstWeight for every input, of the second kind with 0.
	weightBits  = 24
	firstWeight = 4_194_304
	firstSets   = 256
	secondSets  = 2048
	// A set that was used n times learns at the rate
	// leastRate + firstRate·32/(32+n); n stops at usesLimit.
	leastRate = 32
	firstRate = 240
	usesLimit = 1023
	// constantInput is the input that always is the same.
	constantInput = 256

	// bucketBytes is the size of a bucket: a check, and the states of the 15
	// nodes of a nibble. A table has 2^tableLeast to 2^tableMost buckets.
	bucketBytes = 16
	tableLeast  = 12
	tableMost   = 17
	flagBits    = 13
)

// Inputs, and weights, stand in pairs: one + 2^32·other, as a whole number. So
// one multiplication and one addition teach two weights. The parts can be told
// apart again: the lower half is one, and what is left is the other's.
type pairs [inputPairs]int64

func pair(one, other int32) int64 { return int64(one) + int64(other)<<32 }

// product is that of both parts, added up.
func product(x, y int64) int64 {
	return int64(int32(x))*int64(int32(y)) + (x+1<<31)>>32*((y+1<<31)>>32)
}

// weights are a set.
type weights struct {
	pairs
	uses uint32
}

func (w *weights) teach(in *pairs, miss int32) {
	by := int64((miss*rates[w.uses&usesLimit] + 1<<12) >> 13)
	w.uses = min(w.uses+1, usesLimit)
	w.pairs[0] += in[0] * by
	w.pairs[1] += in[1] * by
	w.pairs[2] += in[2] * by
	w.pairs[3] += in[3] * by
}

var rates = makeRates()

func makeRates() (t [usesLimit + 1]int32) {
	for n := range t {
		t[n] = leastRate + firstRate*32/(32+int32(n))
	}
	return t
}

// mixer adds inputs by the weights of two sets.
type mixer struct {
	first  [firstSets]weights
	second [secondSets]weights
}

func (m *mixer) reset() {
	*m = mixer{}
	for i := range m.first {
		for j := range inputPairs {
			m.first[i].pairs[j] = pair(firstWeight, firstWeight)
		}
	}
}

// mixed gives the probability.
func mixed(in *pairs, a, b *weights) int32 {
	sum := product(in[0], a.pairs[0]+b.pairs[0]) + product(in[1], a.pairs[1]+b.pairs[1]) +
		product(in[2], a.pairs[2]+b.pairs[2]) + product(in[3], a.pairs[3]+b.pairs[3])
	return squash(sum >> weightBits)
}

// teach moves the weights by the error of a probability.
func teach(in *pairs, a, b *weights, bit uint32, p int32) {
	miss := int32(bit<<16) - p
	a.teach(in, miss)
	b.teach(in, miss)
}

type bucket [bucketBytes]uint8

// nibbles codes four bits at a time under hashed contexts.
type nibbles struct {
	table []bucket
	shift uint
	maps  [nibbleContexts][256]chance
	match [matches][32]chance
	mixer mixer
}

// reset makes the model new, for a chunk of so many bytes.
func (m *nibbles) reset(size int) {
	n := max(tableLeast, min(tableMost, bits.Len(uint(size))))
	if len(m.table) != 1<<n {
		m.table = make([]bucket, 1<<n)
	} else {
		clear(m.table)
	}
	m.shift = uint(32 - n)
	for i := range m.maps {
		m.maps[i] = states.first
	}
	for i := range m.match {
		for j := range m.match[i] {
			p := uint32(1<<22 - 1<<21/(j/2+2))
			if j&1 == 0 {
				p = 1<<22 - p
			}
			m.match[i][j] = chance(p << 10)
		}
	}
	m.mixer.reset()
}

// findAll finds the buckets of all contexts. It touches them all first, so that
// the memory brings them at once.
func (m *nibbles) findAll(contexts *[nibbleContexts]uint32, after uint32, found *[nibbleContexts]*bucket) {
	var hashes [nibbleContexts]uint32
	var checks [nibbleContexts]uint8
	for i, h := range contexts {
		x := (h ^ after) * 0x9e3779b1
		x ^= x >> 15
		hashes[i] = x
		found[i] = &m.table[x>>(m.shift&31)]
		checks[i] = found[i][0]
	}
	for i, x := range hashes {
		if check := uint8(x>>3) | 1; checks[i] != check {
			found[i] = m.find(x>>(m.shift&31), check)
		}
	}
}

// find gives the bucket of a check, whose place is at or its neighbour. Where
// neither has it, the one whose first node has seen less begins anew.
func (m *nibbles) find(at uint32, check uint8) *bucket {
	own, other := &m.table[at], &m.table[at^1]
	switch {
	case own[0] == check:
		return own
	case other[0] == check:
		return other
	case states.total[other[1]] < states.total[own[1]]:
		own = other
	}
	*own = bucket{check}
	return own
}

// expected is what a match model says about a nibble: its value, and how sure
// it is; sure is 0 where it says nothing.
type expected struct {
	nibble uint32
	sure   int
}

// code codes a nibble. The contexts are those of all nibbles of the value, after
// tells this one apart. Their steps stand in a row and not in a loop, for most of
// the time goes by here.
func (m *nibbles) code(c *bitCoder, contexts *[nibbleContexts]uint32, after uint32, nibble uint32, e *[matches]expected, first, second int) uint32 {
	var at [nibbleContexts]*bucket
	m.findAll(contexts, after, &at)
	a, b := &m.mixer.first[first], &m.mixer.second[second]
	node := uint32(1)
	for left := uint(4); left > 0; left-- {
		n := node & 15
		s0, s1, s2, s3, s4 := &at[0][n], &at[1][n], &at[2][n], &at[3][n], &at[4][n]
		c0, c1, c2, c3, c4 := &m.maps[0][*s0], &m.maps[1][*s1], &m.maps[2][*s2], &m.maps[3][*s3], &m.maps[4][*s4]
		var cells [matches]*chance
		var logits [matches]int32
		for i := range e {
			if e[i].sure > 0 && (e[i].nibble|16)>>left == node {
				cells[i] = &m.match[i][2*e[i].sure+int(e[i].nibble>>(left-1)&1)]
				logits[i] = cells[i].logit()
			}
		}
		in := pairs{pair(c0.logit(), c1.logit()), pair(c2.logit(), c3.logit()), pair(c4.logit(), logits[0]), pair(logits[1], constantInput)}
		p := mixed(&in, a, b)
		bit := c.bit(nibble>>(left-1)&1, p)
		teach(&in, a, b, bit, p)
		c0.learn(bit)
		c1.learn(bit)
		c2.learn(bit)
		c3.learn(bit)
		c4.learn(bit)
		next := &states.next[bit&1]
		*s0, *s1, *s2, *s3, *s4 = next[*s0], next[*s1], next[*s2], next[*s3], next[*s4]
		for _, cell := range cells {
			if cell != nil {
				cell.learn(bit)
			}
		}
		node = node<<1 | bit
	}
	return node & 15
}

// flags codes single bits under contexts.
type flags struct {
	chances [flagContexts][1 << flagBits]chance
	mixer   mixer
}

func (m *flags) reset() {
	for i := range m.chances {
		for j := range m.chances[i] {
			m.chances[i][j] = 1 << 31
		}
	}
	m.mixer.reset()
}

// code codes a flag.
func (m *flags) code(c *bitCoder, contexts *[flagContexts]uint32, bit uint32, first, second int) uint32 {
	var cells [flagContexts]*chance
	var x [flagContexts]int32
	for i, h := range contexts {
		cells[i] = &m.chances[i][h*0x9e3779b1>>(32-flagBits)]
		x[i] = cells[i].logit()
	}
	in := pairs{pair(x[0], x[1]), pair(x[2], x[3]), pair(x[4], x[5]), pair(x[6], constantInput)}
	a, b := &m.mixer.first[first], &m.mixer.second[second]
	p := mixed(&in, a, b)
	bit = c.bit(bit, p)
	teach(&in, a, b, bit, p)
	for _, cell := range cells {
		cell.learn(bit)
	}
	return bit
}

// hash2 and hash3 mix numbers.
func hash2(a, b uint32) uint32 {
	h := a*0x2c1b3c6d + b*0x297a2d39 + 0x3d4d51cb
	return h ^ h>>15
}

func hash3(a, b, c uint32) uint32 { return hash2(hash2(a, b), c) }

// fold makes 32 bits of 64.
func fold(v uint64) uint32 { return uint32(v) ^ uint32(v>>32)*0x9e3779b1 }
