package format

import "math/bits"

// Numbers of the mixers are part of the format. They must not change.
const (
	// nibbleContexts is how many contexts a nibble has.
	nibbleContexts = 10
	// matches is how many match models there are.
	matches = 2
	// nibbleInputs are the contexts, the match models and a constant.
	nibbleInputs = nibbleContexts + matches + 1
	// flagContexts is how many contexts a flag has.
	flagContexts = 14
	flagInputs   = flagContexts + 1

	// Weights are in 1/65536. Each set of the first kind begins with
	// firstWeight for every input, of the second kind with 0.
	firstWeight = 14000
	firstSets   = 256
	secondSets  = 2048
	// A set that was used n times learns at the rate
	// leastRate + firstRate·16/(16+n).
	leastRate = 24
	firstRate = 120
	// constantInput is the input that always is the same.
	constantInput = 256

	// bucketBytes is the size of a bucket: a check, and the states of the 15
	// nodes of a nibble.
	bucketBytes = 16
	flagBits    = 15
)

// mixer adds inputs by the weights of two sets.
type mixer struct {
	inputs int
	sets   []int32 // inputs weights and a count of uses each
}

func (m *mixer) reset(inputs int) {
	m.inputs = inputs
	size := inputs + 1
	if m.sets == nil {
		m.sets = make([]int32, (firstSets+secondSets)*size)
	}
	clear(m.sets)
	for i := range firstSets {
		for j := range inputs {
			m.sets[i*size+j] = firstWeight
		}
	}
}

// pair gives the weights of a set of each kind.
func (m *mixer) pair(first, second int) (a, b []int32) {
	size := m.inputs + 1
	a = m.sets[first*size:][:size]
	return a, m.sets[(firstSets+second)*size:][:size]
}

// mix gives the probability.
func mixed(inputs, a, b []int32) int32 {
	sum := int64(0)
	a, b = a[:len(inputs)], b[:len(inputs)]
	for i, x := range inputs {
		sum += int64(x) * int64(a[i]+b[i])
	}
	return squash(sum >> 16)
}

// teach moves the weights by the error of a probability.
func teach(inputs, a, b []int32, bit uint32, p int32) {
	miss := (int32(bit<<16) - p) >> 3
	last := len(inputs)
	rateA, rateB := rateOf(a[last]), rateOf(b[last])
	a[last]++
	b[last]++
	a, b = a[:last], b[:last]
	for i, x := range inputs {
		d := x * miss >> 8
		a[i] += (d*rateA + 512) >> 10
		b[i] += (d*rateB + 512) >> 10
	}
}

func rateOf(uses int32) int32 { return leastRate + firstRate*16/(16+uses) }

// nibbles codes four bits at a time under hashed contexts.
type nibbles struct {
	table []byte
	shift uint
	maps  [nibbleContexts][256]chance
	match [matches][32]chance
	mixer mixer
	slots [nibbleContexts]uint32
	// touched only keeps the compiler from leaving out what touches memory.
	touched byte
	inputs  [nibbleInputs]int32
}

// reset makes the model new, for a chunk of so many bytes.
func (m *nibbles) reset(size int) {
	n := max(12, min(18, bits.Len(uint(size))))
	if len(m.table) != bucketBytes<<n {
		m.table = make([]byte, bucketBytes<<n)
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
	m.mixer.reset(nibbleInputs)
}

// findAll finds the buckets of all contexts. It touches them all first, so that
// the memory brings them at once.
func (m *nibbles) findAll(contexts *[nibbleContexts]uint32, after uint32) {
	var hashes [nibbleContexts]uint32
	for i, h := range contexts {
		x := hash2(h, after) * 0x9e3779b1
		x ^= x >> 15
		x *= 0x85ebca6b
		hashes[i] = x
		m.touched += m.table[x>>m.shift*bucketBytes]
	}
	for i, x := range hashes {
		m.slots[i] = m.find(x)
	}
}

// find gives the bucket of a hash. Where neither of the two that it can have is
// its own, the one whose first node has seen less begins anew.
func (m *nibbles) find(x uint32) uint32 {
	check := byte(x>>3) | 1
	at := x >> m.shift * bucketBytes
	if m.table[at] == check {
		return at
	}
	other := at ^ bucketBytes
	if m.table[other] == check {
		return other
	}
	if states.total[m.table[other+1]] < states.total[m.table[at+1]] {
		at = other
	}
	b := m.table[at:][:bucketBytes]
	clear(b)
	b[0] = check
	return at
}

// expected is what a match model says about a nibble: its value, and how sure
// it is; sure is 0 where it says nothing.
type expected struct {
	nibble uint32
	sure   int
}

// code codes a nibble. The contexts are those of all nibbles of the value, after
// tells this one apart.
func (m *nibbles) code(c *bitCoder, contexts *[nibbleContexts]uint32, after uint32, nibble uint32, e *[matches]expected, first, second int) uint32 {
	m.findAll(contexts, after)
	a, b := m.mixer.pair(first, second)
	node := uint32(1)
	for left := 4; left > 0; left-- {
		for i, slot := range m.slots {
			m.inputs[i] = m.maps[i][m.table[slot+node]].logit()
		}
		var cells [matches]*chance
		for i := range e {
			m.inputs[nibbleContexts+i] = 0
			if e[i].sure > 0 && (e[i].nibble|16)>>left == node {
				cells[i] = &m.match[i][2*e[i].sure+int(e[i].nibble>>(left-1)&1)]
				m.inputs[nibbleContexts+i] = cells[i].logit()
			}
		}
		m.inputs[nibbleInputs-1] = constantInput
		p := mixed(m.inputs[:], a, b)
		bit := c.bit(nibble>>(left-1)&1, p)
		teach(m.inputs[:], a, b, bit, p)
		for i, slot := range m.slots {
			s := &m.table[slot+node]
			m.maps[i][*s].learn(bit)
			*s = states.next[*s][bit]
		}
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
	inputs  [flagInputs]int32
}

func (m *flags) reset() {
	for i := range m.chances {
		for j := range m.chances[i] {
			m.chances[i][j] = 1 << 31
		}
	}
	m.mixer.reset(flagInputs)
}

// code codes a flag. What a context has seen fewer than four times counts less.
func (m *flags) code(c *bitCoder, contexts *[flagContexts]uint32, bit uint32, first, second int) uint32 {
	var cells [flagContexts]*chance
	for i, h := range contexts {
		cell := &m.chances[i][h*0x9e3779b1>>(32-flagBits)]
		cells[i] = cell
		m.inputs[i] = cell.logit() * min(cell.seen(), 4) >> 2
	}
	m.inputs[flagInputs-1] = constantInput
	a, b := m.mixer.pair(first, second)
	p := mixed(m.inputs[:], a, b)
	bit = c.bit(bit, p)
	teach(m.inputs[:], a, b, bit, p)
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
