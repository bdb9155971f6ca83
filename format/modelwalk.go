package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// errModel is returned where a coded part does not give rows.
var errModel = errors.New("the model's bytes give no rows of the declared size")

// Numbers that stand alone are told apart by what they are. They must not change.
const (
	numberDelta    = 1
	numberShapes   = 2
	numberShape    = 3
	numberGap      = 4
	numberRest     = 5
	numberTimeKind = 6
	numberTime     = 7
)

// number codes a number that stands alone: how many bytes it has, then these.
func (m *rowModel) number(what uint32, num uint64, seen ...uint32) uint64 {
	contexts := spread(what, seen)
	var none [matches]expected
	size := m.nibbles.code(&m.c, &contexts, 3, uint32(bits.Len64(num)+7)/8, &none, setNumbers, int(what))
	if size > 8 {
		m.fail()
		return 0
	}
	return m.value(&contexts, size+100, num, int(size), &none, [matches]uint64{}, setNumbers, int(what))
}

// spread makes contexts of what was seen; the last stands for those that are
// left.
func spread(what uint32, seen []uint32) (contexts [nibbleContexts]uint32) {
	for i := range contexts {
		contexts[i] = hash3(what, seen[min(i, len(seen)-1)], uint32(i))
	}
	return contexts
}

func (m *rowModel) fail() {
	if m.err == nil {
		m.err = errModel
	}
}

// Bytes that stand alone are told apart like numbers.
const (
	bytesText   = 16
	bytesOther  = 17
	bytesBitmap = 18
)

// bytes codes bytes, each by the five before it, and fills b where it reads.
func (m *rowModel) bytes(what uint32, b []byte) {
	var none [matches]expected
	var past [5]uint32
	for i := range b {
		two := hash2(past[0], past[1])
		contexts := spread(what, []uint32{0, past[0], two, hash2(two, past[2]), hash2(past[4], past[3])})
		num := uint64(0)
		if m.c.writes {
			num = uint64(b[i])
		}
		num = m.value(&contexts, 2, num, 1, &none, [matches]uint64{}, setBytes, int(what))
		if !m.c.writes {
			b[i] = byte(num)
		}
		past = [5]uint32{uint32(num) + 1, past[0], past[1], past[2], past[3]}
	}
}

// content codes what a parameter has besides its mark. The mark of a new text
// becomes that of the text.
func (m *rowModel) content(s *stepSoFar, v *view, k mark, t token) (token, mark) {
	if !m.c.writes {
		t = token{kind: k.kind, num: k.num}
	}
	if s.code&elementCode != 0 && k.kind != kindInt {
		// Before what it holds: an element that is a list would go on for as
		// deep as a file likes.
		m.fail()
		return t, k
	}
	switch k.kind {
	case kindText:
		return m.text(k, t)
	case kindList:
		m.elements(s, v, t)
	case kindOther:
		if !m.c.writes {
			t.data = m.space(k.num)
		}
		m.bytes(bytesOther, t.data)
	}
	return t, k
}

// space is memory for n bytes of a parameter, if the rows have room for them.
func (m *rowModel) space(n uint64) []byte {
	if n > uint64(m.rows.limit) || !m.rows.room(int(n)) {
		m.fail()
		return nil
	}
	m.other = append(m.other[:0], make([]byte, n)...)
	return m.other
}

func (m *rowModel) text(k mark, t token) (token, mark) {
	switch {
	case m.c.writes && k.num > 0:
	case m.c.writes:
		k.num = uint64(len(m.texts)) + 1
		m.texts[string(t.data)] = k.num
		m.number(bytesText, uint64(len(t.data)), 0)
		m.bytes(bytesText, t.data)
	case k.num > uint64(len(m.known)):
		m.fail()
	case k.num > 0:
		t.data = m.known[k.num-1]
	default:
		n := m.number(bytesText, 0, 0)
		if n > maxShortString || !m.rows.room(int(n)) {
			m.fail()
			return t, k
		}
		t.data = make([]byte, n)
		m.bytes(bytesText, t.data)
		m.known = append(m.known, t.data)
		k.num = uint64(len(m.known))
	}
	return t, k
}

// elements codes the elements of a list, as integers of a column of their own.
func (m *rowModel) elements(s *stepSoFar, v *view, t token) {
	if !m.c.writes {
		if t.num > uint64(m.rows.limit) || !m.rows.room(int(t.num)) {
			m.fail()
			return
		}
		m.ints = m.ints[:0]
	}
	width := 0
	if t.num > 0 {
		width = len(t.data) / int(t.num)
	}
	inner := *s
	inner.code, inner.number = s.code|elementCode, 0
	for i := 0; i < int(t.num) && m.err == nil; i++ {
		e := token{kind: kindInt}
		if m.c.writes {
			e.num = uint64(element(t.data[i*width:], width))
		}
		e = m.param(&inner, max(v.place, 1), e)
		if !m.c.writes {
			m.ints = append(m.ints, int64(e.num))
		}
	}
}

// encode appends the coded part of a batch.
func (m *rowModel) encode(dst []byte, b *Batch, deltas map[deltaKey]uint8) []byte {
	m.begin(len(b.Commands) + len(b.Params))
	m.c.write(dst)
	m.deltas = deltas
	shapes, symbols := shapesOf(b)
	m.number(numberShapes, uint64(len(shapes)), 0)
	for _, s := range shapes {
		m.number(numberShape, uint64(s), 0)
	}
	w := walk{m: m, shapes: shapes}
	for at := 0; at < len(b.timeline); {
		run, n := binary.Uvarint(b.timeline[at:])
		at += n
		if run&1 == 0 {
			w.gap = run>>1 + 1
			continue
		}
		w.tick()
		for left := run>>1 + 1; left > 0; left-- {
			w.params = b.Params
			w.step(symbols[w.steps], left > 1)
		}
		w.gap = 0
	}
	m.number(numberRest, w.gap, 0)
	m.bytes(bytesBitmap, append([]byte(nil), b.hashBits...))
	m.bytes(bytesBitmap, append([]byte(nil), b.timeBits...))
	m.writeTimes(b.times)
	m.c.end()
	return m.c.out
}

// shapesOf gives the pairs of code and parameter count that there are, and the
// one of each step.
func shapesOf(b *Batch) (shapes []uint32, symbols []uint32) {
	at := map[uint32]uint32{}
	for i := 0; i < len(b.Commands); i += b.Width.entry() {
		count, code := readCommand(b.Commands[i:], b.Width)
		shape := uint32(code)<<8 | uint32(count)
		n, ok := at[shape]
		if !ok {
			n = uint32(len(shapes))
			at[shape] = n
			shapes = append(shapes, shape)
		}
		symbols = append(symbols, n)
	}
	return shapes, symbols
}

// walk goes through the steps of a chunk.
type walk struct {
	m      *rowModel
	shapes []uint32
	// params and at are where the parameters that are written stand.
	params   []byte
	at       int
	steps    int
	gap      uint64 // empty ticks before the present one
	gaps     [2]uint32
	stepped  int // steps of the present tick
	commands []byte
}

// tick codes how many empty ticks stand before one with steps.
func (w *walk) tick() {
	m := w.m
	last := m.shapes[0]
	w.gap = m.number(numberGap, w.gap, 0, w.gaps[0], hash2(w.gaps[0], w.gaps[1]), last, hash2(last, m.player))
	w.gaps = [2]uint32{uint32(w.gap) + 1, w.gaps[0]}
	w.stepped = 0
}

// step codes a step, and whether another follows in its tick; it returns
// whether one does.
func (w *walk) step(symbol uint32, more bool) bool {
	m := w.m
	prior := m.shapes[0]
	symbol = w.symbol(symbol)
	if m.err != nil {
		return false
	}
	shape := w.shapes[symbol]
	s := stepSoFar{code: shape >> 8, count: int(shape & 255), player: noPlayer, all: hash2(shape, 3), prior: prior,
		left: [2]uint32{hash2(m.player, uint32(min(w.stepped, 1))), prior}}
	for i := 0; i < s.count && m.err == nil; i++ {
		w.param(&s, i)
	}
	if s.count > 0 {
		m.player = s.player
	}
	w.steps++
	w.stepped++
	return w.follows(&s, symbol+1, more)
}

// param codes a parameter, and puts it into the rows where it reads.
func (w *walk) param(s *stepSoFar, i int) {
	m := w.m
	if m.c.writes {
		t, n := takeToken(w.params[w.at:])
		w.at += n
		m.param(s, i, t)
		return
	}
	t := m.param(s, i, token{})
	if m.err == nil && !m.put(t) {
		m.fail()
	}
}

// put puts a parameter into the rows; false where it has no room.
func (m *rowModel) put(t token) bool {
	switch t.kind {
	case kindInt:
		m.rows.int(int64(t.num))
	case kindF32:
		wide, ok := widenFloat(uint32(t.num))
		if !ok || t.num>>32 != 0 {
			return false
		}
		m.rows.f64(wide)
	case kindF64:
		m.rows.f64(t.num)
	case kindText:
		return m.rows.text(t.data)
	case kindList:
		return m.rows.list(m.ints)
	case kindOther:
		return m.rows.other(t.data)
	default:
		m.rows.bool(t.kind)
	}
	return m.rows.at <= m.rows.limit
}

// symbol codes the number of a step's shape.
func (w *walk) symbol(symbol uint32) uint32 {
	m := w.m
	a, b, c, d := m.shapes[0], m.shapes[1], m.shapes[2], m.shapes[3]
	contexts := [nibbleContexts]uint32{1, hash2(a, 2), hash3(a, m.player, 5), hash3(a, b, m.player+6), hash3(hash2(a, b), c, d)}
	for i := range contexts {
		contexts[i] += uint32(i) * 0x10001
	}
	var e [matches]expected
	var want [matches]uint64
	for j := range m.matches {
		if k, ok := m.foretold(j); ok && k.kind == kindShape {
			want[j], e[j].sure = k.num, min(m.matches[j].length, 15)
		}
	}
	size := 1
	if len(w.shapes) > 256 {
		size = 2
	}
	symbol = uint32(m.value(&contexts, 7, uint64(symbol), size, &e, want, setShapes, 0))
	if int(symbol) >= len(w.shapes) {
		m.fail()
	}
	m.remember(mark{uint64(symbol), kindShape})
	m.shapes = [4]uint32{symbol + 1, a, b, c}
	return symbol
}

// Sets of the flags' mixer behind those of agreeing sources.
const setMore = 96

// follows codes whether another step follows in the tick.
func (w *walk) follows(s *stepSoFar, symbol uint32, more bool) bool {
	m := w.m
	n, player := uint32(min(w.stepped, 255)), m.player+noPlayer
	seen := [flagContexts]uint32{n, hash2(symbol, player), player, hash2(symbol, w.gaps[0]), hash3(symbol, s.prior, m.shapes[2]), hash3(symbol, s.prior, player), symbol}
	var contexts [flagContexts]uint32
	for i := range contexts {
		contexts[i] = hash3(setMore, seen[i], uint32(i))
	}
	bit := uint32(0)
	if more {
		bit = 1
	}
	return m.flags.code(&m.c, &contexts, bit, setMore, int(symbol&(secondSets-1))) == 1
}

// writeTimes writes the times: their distances, or the distances of these.
func (m *rowModel) writeTimes(times []byte) {
	if len(times) == 0 {
		return
	}
	var nums []uint64
	plain, second, last := 0, 0, uint64(0)
	for len(times) > 0 {
		v, n := binary.Uvarint(times)
		times = times[n:]
		nums = append(nums, v)
		plain += bits.Len64(v)
		second += bits.Len64(deltaOf(v, last))
		last = v
	}
	kind := uint64(deltaNone)
	if second < plain {
		kind = deltaLast
	}
	m.times(kind, nums)
}

// times codes numbers that stand for times.
func (m *rowModel) times(kind uint64, nums []uint64) {
	kind = m.number(numberTimeKind, kind, 0)
	if kind > deltaLast {
		m.fail()
	}
	var past [2]uint32
	last := uint64(0)
	for i := range nums {
		if m.err != nil {
			return
		}
		ref := last
		if kind == deltaNone {
			ref = 0
		}
		d := m.number(numberTime, deltaOf(nums[i], ref), 0, past[0], hash2(past[0], past[1]), fold(last)+1)
		last = sumOf(d, ref)
		nums[i] = last
		past = [2]uint32{fold(d) + 1, past[0]}
	}
}

// decode fills parts from the coded part of a chunk.
func (m *rowModel) decode(parts []byte, h *archiveHead) error {
	m.begin(h.rows())
	m.c.read(h.coded)
	m.rows = rowWriter{b: make([]byte, h.params+rowSlack), limit: h.params}
	w := walk{m: m}
	w.readShapes(h)
	runs := make([]byte, 0, h.runs+h.times)
	w.commands = parts[:0:h.commands()]
	for w.steps < h.Steps && m.err == nil {
		runs = w.readTick(runs, h)
	}
	if rest := m.number(numberRest, 0, 0); rest <= uint64(h.Ticks) {
		runs = appendEmpty(runs, int(rest))
	}
	runs = m.readBitmap(runs, h, batchHashShift)
	if m.err == nil && len(runs) != h.runs {
		return fmt.Errorf("%w: %d bytes of runs, %d are due", errModel, len(runs), h.runs)
	}
	runs = m.readBitmap(runs, h, batchTimeShift)
	runs = m.readTimes(runs, h)
	switch {
	case m.err != nil:
		return m.err
	case m.rows.at != h.params || len(runs) != h.runs+h.times || !m.c.whole():
		return errModel
	}
	copy(parts[h.commands():], m.rows.b[:h.params])
	copy(parts[h.rows():], runs)
	return nil
}

func (w *walk) readShapes(h *archiveHead) {
	m := w.m
	n := m.number(numberShapes, 0, 0)
	if n > maxShapes || n > uint64(h.Steps) {
		m.fail()
		return
	}
	for range n {
		shape := m.number(numberShape, 0, 0)
		if m.err != nil || shape >= 1<<24 || h.width() == Width8 && shape >= 1<<16 {
			m.fail()
			return
		}
		w.shapes = append(w.shapes, uint32(shape))
	}
}

// readTick reads the empty ticks before a tick, and its steps.
func (w *walk) readTick(runs []byte, h *archiveHead) []byte {
	w.tick()
	if w.gap > uint64(h.Ticks) {
		w.m.fail()
		return runs
	}
	runs = appendEmpty(runs, int(w.gap))
	n := uint64(1)
	for w.readStep(h) {
		n++
	}
	return binary.AppendUvarint(runs, (n-1)<<1|1)
}

// readStep reads a step, and whether another follows in its tick.
func (w *walk) readStep(h *archiveHead) bool {
	if w.steps == h.Steps {
		w.m.fail()
		return false
	}
	more := w.step(0, false)
	if w.m.err != nil {
		return false
	}
	shape := w.shapes[w.m.shapes[0]-1]
	if h.width() == Width8 {
		w.commands = append(w.commands, byte(shape), byte(shape>>8))
	} else {
		w.commands = append(w.commands, byte(shape), byte(shape>>16), byte(shape>>8))
	}
	return more
}

// readBitmap reads a bitmap, if the flags say that there is one.
func (m *rowModel) readBitmap(dst []byte, h *archiveHead, shift int) []byte {
	if h.flags>>shift&3 != presentBitmap || m.err != nil {
		return dst
	}
	n := len(dst)
	dst = append(dst, make([]byte, (h.Ticks+7)/8)...)
	m.bytes(bytesBitmap, dst[n:])
	return dst
}

// readTimes reads the times, behind their bitmap in runs.
func (m *rowModel) readTimes(dst []byte, h *archiveHead) []byte {
	n := h.Ticks
	switch h.flags >> batchTimeShift & 3 {
	case presentNone:
		return dst
	case presentBitmap:
		n = 0
		for _, x := range dst[min(h.runs, len(dst)):] {
			n += bits.OnesCount8(x)
		}
	}
	nums := make([]uint64, n)
	if n > 0 {
		m.times(0, nums)
	}
	for _, v := range nums {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}
