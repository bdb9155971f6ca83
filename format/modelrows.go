package format

import "math/bits"

// rowModel codes rows, runs and times, and reads them, by the field writes of
// its coder: both ways take the same path, so that both learn the same.
type rowModel struct {
	c       bitCoder
	nibbles nibbles
	flags   flags
	rowState

	err error

	// For writing: the transforms of columns, and the numbers of texts.
	deltas map[deltaKey]uint8
	texts  map[string]uint64
	// For reading: the rows, texts by number - 1, and memory for a list's
	// elements or a parameter's bytes.
	rows  rowWriter
	known [][]byte
	ints  []int64
	other []byte
}

// deltaKey names the numbers of one kind in a column.
type deltaKey struct {
	code  uint32
	place uint8
	kind  uint8
}

// elementCode marks the column of a list's elements.
const elementCode = 1 << 16

// rowState is what the model remembers of the rows. Tables are found by hash,
// and columns that meet there share an entry.
type rowState struct {
	columns [1 << columnBits]columnMemory
	players [1 << playerBits]mark // a player's last in a column
	memory  [1 << memoryBits]memory
	shapes  [4]uint32 // the last shapes, 1 + their number
	hits    uint32    // the last flags
	player  uint32    // of the last step
	history []mark
	matches [matches]follower
}

// mark is what the model sees of a parameter: its kind and its number, which is
// an integer, the bits of a float, the number of a text (0: a new one), or
// how many elements or bytes follow.
type mark struct {
	num  uint64
	kind uint8
}

// kindShape is the kind of the mark that a step's shape leaves in the history.
const kindShape = kinds

func (k mark) hash() uint32 { return hash2(fold(k.num), uint32(k.kind)) }

// The tables' sizes are part of the format, and small enough for a processor's
// own memory to keep most of them. They must not change.
const (
	columnBits = 12
	playerBits = 14
	memoryBits = 15
	headBits   = 15
)

type columnMemory struct {
	last  mark
	delta [2]uint8 // of integers and of floats: 1 + the transform; 0 where none came
}

// memory is what stood behind a context, and how often in a row.
type memory struct {
	num   uint64
	kind  uint8
	times uint8 // 0: nothing stood there yet
}

func (x *memory) mark() mark { return mark{x.num, x.kind} }

func (x *memory) see(k mark) {
	if x.times > 0 && x.mark() == k {
		x.times = min(x.times, 254) + 1
		return
	}
	*x = memory{k.num, k.kind, 1}
}

// follower follows an earlier stretch of the history that ended like the latest.
type follower struct {
	// heads have, under a hash, a place of the history, in the lowest
	// placeBits, and above it bits of the hash that tell most others apart.
	heads  [1 << headBits]uint32
	hash   uint32
	at     uint32
	length int
}

// matchShifts say how far back the hash of a match reaches: a mark shifts out
// of its 32 bits. matchLeast is the shortest stretch that counts.
var (
	matchShifts = [matches]uint{8, 3}
	matchLeast  = [matches]int{4, 11}
)

// matchMost is how far back a new match is measured.
const matchMost = 32

// placeBits are enough for the history: each of its marks takes a byte of the
// rows at least.
const placeBits = 20

// foretold is the mark that a match model expects next, if it follows a match.
func (m *rowModel) foretold(j int) (mark, bool) {
	if x := &m.matches[j]; x.length > 0 {
		return m.history[x.at], true
	}
	return mark{}, false
}

// remember adds a mark to the history.
func (m *rowModel) remember(k mark) {
	h := k.hash()
	for j := range m.matches {
		x := &m.matches[j]
		if x.length > 0 && m.history[x.at] == k {
			x.length++
			x.at++
		} else {
			x.length = 0
		}
		x.hash = (x.hash + h) * 0x2c1b3c6d << matchShifts[j]
	}
	m.history = append(m.history, k)
	n := len(m.history)
	for j := range m.matches {
		x := &m.matches[j]
		slot := &x.heads[x.hash>>(32-headBits)]
		head := x.hash<<headBits>>placeBits<<placeBits | uint32(n)
		if x.length == 0 && (*slot^head)>>placeBits == 0 {
			m.follow(j, int(*slot&(1<<placeBits-1)))
		}
		*slot = head
	}
}

// follow follows the history from a place on, if enough before it is like the
// latest.
func (m *rowModel) follow(j, at int) {
	n, length := len(m.history), 0
	for length < min(matchMost, at) && m.history[at-1-length] == m.history[n-1-length] {
		length++
	}
	if length >= matchLeast[j] {
		m.matches[j].length, m.matches[j].at = length, uint32(at)
	}
}

// begin makes the model new for a chunk.
func (m *rowModel) begin(size int) {
	m.nibbles.reset(size)
	m.flags.reset()
	history := m.history[:0]
	m.rowState = rowState{history: history}
	m.texts, m.known, m.err = map[string]uint64{}, m.known[:0], nil
}

// stepSoFar is the context of a parameter within its step.
type stepSoFar struct {
	code   uint32
	count  int
	player uint32 // 256 before the first parameter
	left   [2]uint32
	number uint64 // the integer on the left
	all    uint32 // of all parameters so far
	change uint32 // what the parameter on the left is to the same player's before
	prior  uint32 // the shape before
}

// noPlayer is the player before a step's first parameter is known.
const noPlayer = 256

// param codes a parameter, and returns it.
func (m *rowModel) param(s *stepSoFar, i int, t token) token {
	v := &view{place: min(i, placeMost), end: min(s.count-i, placeMost)}
	m.look(s, v)
	k, guessed := m.guess(s, v, m.markOf(t))
	if !guessed {
		k = m.spell(s, v, k)
	}
	t, k = m.content(s, v, k, t)
	m.settle(s, v, i, k)
	return t
}

// markOf gives the mark of a parameter that is written.
func (m *rowModel) markOf(t token) mark {
	switch t.kind {
	case kindText:
		return mark{m.texts[string(t.data)], kindText}
	case kindOther:
		return mark{uint64(len(t.data)), kindOther}
	}
	return mark{t.num, t.kind}
}

// view is what is known before a parameter.
type view struct {
	place, end   int
	column       uint32 // hash of code and place
	fromEnd      uint32 // hash of code and place from the end
	own          *columnMemory
	past         *mark
	path, beside *memory
	rejected     [2]mark
	rejections   int
}

// look finds what is known at the view's place.
func (m *rowModel) look(s *stepSoFar, v *view) {
	v.column = hash3(s.code, uint32(v.place), 77)
	v.fromEnd = hash3(s.code, uint32(v.end), 78)
	v.own = &m.columns[v.column>>(32-columnBits)]
	v.past = &m.players[hash2(v.column, s.player)>>(32-playerBits)]
	v.path = &m.memory[hash2(s.all, v.column)>>(32-memoryBits)]
	v.beside = &m.memory[hash3(v.column, s.left[0], s.player)>>(32-memoryBits)]
}

// placeMost is the last place that has a column of its own, from either end.
const placeMost = 24

// guesses are where a candidate comes from.
const guesses = 5

// guess codes whether the parameter is one of the two likeliest candidates.
func (m *rowModel) guess(s *stepSoFar, v *view, k mark) (mark, bool) {
	var from [guesses]mark
	var has [guesses]bool
	for j := range m.matches {
		from[j], has[j] = m.foretold(j)
		has[j] = has[j] && from[j].kind != kindShape
	}
	from[2], has[2] = v.path.mark(), v.path.times > 0
	from[3], has[3] = v.beside.mark(), v.beside.times > 0
	from[4], has[4] = *v.past, true
	order := [guesses]int{1, 2, 0, 3, 4}
	if v.path.times > 3 && m.matches[1].length < 20 {
		order = [guesses]int{2, 1, 0, 3, 4}
	}
	for _, g := range order {
		x := from[g]
		if !has[g] || v.rejections > 0 && x == v.rejected[0] {
			continue
		}
		agree := uint32(v.rejections) << guesses
		for j := range from {
			if has[j] && from[j] == x {
				agree |= 1 << j
			}
		}
		if m.isIt(s, v, k, x, agree) {
			return x, true
		}
		v.rejected[v.rejections] = x
		if v.rejections++; v.rejections == len(v.rejected) {
			break
		}
	}
	return k, false
}

// isIt codes whether the parameter is x. agree are the sources that name it, and
// whether another was rejected.
func (m *rowModel) isIt(s *stepSoFar, v *view, k, x mark, agree uint32) bool {
	second := uint32(v.rejections) << 9
	sure := uint32(min(v.path.times, 4))
	length := uint32(min(max(m.matches[0].length, m.matches[1].length), 31)) >> 1
	h, at := x.hash(), v.column
	contexts := [flagContexts]uint32{
		hash3(at, agree, 3+sure<<8),
		hash3(agree, sure, length),
		hash3(at, m.hits&15, 5+second),
		hash3(at, s.player, h+second),
		hash3(s.left[0], s.left[1], h+second),
		hash3(v.fromEnd, uint32(s.count), 9+agree),
		hash3(at, v.own.last.hash(), h+second),
	}
	bit := uint32(0)
	if m.c.writes && k == x {
		bit = 1
	}
	bit = m.flags.code(&m.c, &contexts, bit, int(agree), int(at>>21))
	m.hits = m.hits<<1 | bit
	return bit == 1
}

// Symbols of a parameter are its kind; those of an integer tell how many bytes
// its number has: 8 and more fewer than eight, kindInt eight.
const symbolBytes = 8

func symbolOf(k mark, d uint64) uint32 {
	if n := (bits.Len64(d) + 7) / 8; k.kind == kindInt && n < 8 {
		return symbolBytes + uint32(n)
	}
	return uint32(k.kind)
}

// symbolSize is how many bytes follow a symbol.
func symbolSize(symbol uint32) (kind uint8, size int) {
	switch symbol {
	case kindFalse, kindTrue:
		return uint8(symbol), 0
	case kindF32:
		return kindF32, 4
	case kindF64, kindInt:
		return uint8(symbol), 8
	case kindText, kindList, kindOther:
		return uint8(symbol), 3
	}
	return kindInt, int(symbol - symbolBytes)
}

// reference is the number that another of its kind is coded as the distance to.
func (m *rowModel) reference(s *stepSoFar, v *view, kind uint8) (ref uint64, delta uint8) {
	if kind != kindInt && kind != kindF32 {
		return 0, deltaNone
	}
	d := &v.own.delta[kind-kindInt]
	if *d == 0 {
		chosen := uint64(m.deltas[deltaKey{s.code, uint8(min(v.place, maxColumns-1)), kind}])
		*d = 1 + uint8(m.number(numberDelta, chosen, 0)&3)
	}
	x := mark{kind: kind}
	switch delta = *d - 1; delta {
	case deltaLast:
		x = v.own.last
	case deltaPlayer:
		x = *v.past
	case deltaLeft:
		x.num = s.number
	}
	if x.kind != kind {
		return 0, delta
	}
	return x.num, delta
}

// distance is a mark's number as it is coded.
func distance(k mark, ref uint64) uint64 {
	switch k.kind {
	case kindInt:
		return deltaOf(k.num, ref)
	case kindF32:
		d := int32(uint32(k.num) - uint32(ref))
		return uint64(uint32(d<<1) ^ uint32(d>>31))
	}
	return k.num
}

// away is the way back.
func away(kind uint8, d, ref uint64) uint64 {
	switch kind {
	case kindInt:
		return sumOf(d, ref)
	case kindF32:
		return uint64(uint32(d)>>1 ^ -uint32(d&1) + uint32(ref))
	}
	return d
}

// spell codes a parameter that was not guessed: its symbol, then its number.
func (m *rowModel) spell(s *stepSoFar, v *view, k mark) mark {
	ref, delta := m.reference(s, v, kindInt)
	refs := [kinds]uint64{kindInt: ref}
	refs[kindF32], _ = m.reference(s, v, kindF32)
	deltaF := v.own.delta[1] - 1
	contexts := [nibbleContexts]uint32{
		v.column,
		hash2(v.column, v.past.hash()),
		hash2(v.column, s.player+2),
		hash3(s.player, s.left[0], uint32(v.end)),
		hash3(v.column, s.change, 5),
	}
	for i := range contexts {
		contexts[i] += uint32(i) * 0x10001
	}
	var e [matches]expected
	var want [matches]uint64
	for j := range m.matches {
		if k, ok := m.foretold(j); ok && k.kind != kindShape && !v.wasRejected(k) {
			want[j] = distance(k, refs[k.kind])
			e[j] = expected{symbolOf(k, want[j]), min(m.matches[j].length, 15)}
		}
	}
	second := int(v.column >> 21)
	symbol := m.nibbles.code(&m.c, &contexts, uint32(v.own.last.kind)+99, symbolOf(k, distance(k, refs[k.kind])), &e, int(delta), second)
	for j := range e {
		if e[j].nibble != symbol {
			e[j].sure = 0
		}
	}
	kind, size := symbolSize(symbol)
	set := setValues + int(kind)*8
	if kind == kindInt && delta != deltaNone || kind == kindF32 && deltaF != deltaNone {
		set += kinds * 8
	}
	d := m.value(&contexts, symbol*0x1234567+55, distance(k, refs[k.kind]), size, &e, want, set, second)
	return mark{away(kind, d, refs[kind]), kind}
}

func (v *view) wasRejected(k mark) bool {
	return v.rejections > 0 && k == v.rejected[0] || v.rejections > 1 && k == v.rejected[1]
}

// First sets of the nibbles' mixer. They must not change.
const (
	setDeltas  = 0   // symbols: the transform of integers
	setValues  = 4   // values: 8 for each kind, twice: without and with a transform
	setNumbers = 132 // numbers that stand alone
	setShapes  = 140
	setBytes   = 148
)

// value codes a number of size bytes, the highest nibble first.
func (m *rowModel) value(contexts *[nibbleContexts]uint32, after uint32, num uint64, size int, e *[matches]expected, want [matches]uint64, set, second int) uint64 {
	out := uint64(0)
	for at := size*8 - 4; at >= 0; at -= 4 {
		for j := range e {
			e[j].nibble = uint32(want[j]>>at) & 15
		}
		got := m.nibbles.code(&m.c, contexts, after, uint32(num>>at)&15, e, set+min(at>>3, 3)<<1+at>>2&1, second)
		after = hash2(after, got+17)
		out = out<<4 | uint64(got)
		for j := range e {
			if e[j].nibble != got {
				e[j].sure = 0
			}
		}
	}
	return out
}

// settle remembers a parameter that is known.
func (m *rowModel) settle(s *stepSoFar, v *view, i int, k mark) {
	v.path.see(k)
	v.beside.see(k)
	m.remember(k)
	v.own.last = k
	s.change = fold(k.num - v.past.num)
	*v.past = k
	if i == 0 {
		s.player = uint32(k.num) & 255
	}
	if k.kind == kindInt {
		s.number = k.num
	}
	h := k.hash()
	s.left = [2]uint32{h, s.left[0]}
	s.all = hash2(s.all, h)
}
