package format

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// columnWriter encodes rows as columns. Its choices of layouts and forms stay
// for a whole archive.
type columnWriter struct {
	best   *zstdWriter
	good   *zstdWriter
	places [1 << 16]uint16 // 1 + place of a code in codes
	codes  []codeWriter
	shapes map[uint32]uint64
	texts  map[string]uint64

	layouts map[uint16]layout
	forms   map[streamKey]byte
	learned map[uint16]learned
	volumes []volume
	tried   codeWriter

	small, large []byte
	text, other  []byte
	symbols      []uint64
	nums         []uint64
	bytes, frame []byte
	second       []byte
	gaps, steps  []number
	guess        guesser
}

// streamKey names a stream of an archive.
type streamKey struct {
	code          uint16
	place, stream uint8
}

// Streams without a column stand at a place that no column has.
const noColumn = 255

type codeWriter struct {
	code    uint16
	layout  layout
	columns [countedColumns]column
}

// column has the values of one column.
type column struct {
	kinds  []byte
	values [streams][]number
}

// number is a value with what its transforms refer to.
type number struct {
	v, left uint64
	player  byte
}

// errColumns is returned for a chunk of more codes or shapes than columns take.
var errColumns = errors.New("too many codes for columns")

// begin forgets what was learned from another archive.
func (w *columnWriter) begin() {
	w.layouts, w.forms, w.learned = map[uint16]layout{}, map[streamKey]byte{}, map[uint16]learned{}
}

func (w *columnWriter) reset() {
	for i := range w.codes {
		w.places[w.codes[i].code] = 0
	}
	w.codes = w.codes[:0]
	w.shapes, w.texts = map[uint32]uint64{}, map[string]uint64{}
	w.text, w.other = w.text[:0], w.other[:0]
	w.small, w.large, w.symbols = w.small[:0], w.large[:0], w.symbols[:0]
}

// encode appends the coded part of a batch.
func (w *columnWriter) encode(dst []byte, b *Batch) ([]byte, error) {
	w.reset()
	w.pickLayouts(b)
	shapes, err := w.split(b)
	if err != nil {
		return nil, err
	}
	w.writeShapes(shapes)
	w.writeTimeline(b)
	for i := range w.codes {
		w.writeCode(&w.codes[i])
	}
	w.small = binary.AppendUvarint(w.small, uint64(len(w.text)))
	w.stream(w.text)
	w.small = binary.AppendUvarint(w.small, uint64(len(w.other)))
	w.stream(w.other)
	if len(w.small) > smallLimit(len(b.Commands)+len(b.Params)) {
		return nil, errColumns
	}
	w.frame = w.good.frame(w.frame[:0], w.small)
	dst = binary.AppendUvarint(dst, uint64(len(w.small)))
	dst = binary.AppendUvarint(dst, uint64(len(w.frame)))
	dst = append(dst, w.frame...)
	return append(dst, w.large...), nil
}

// split gives every parameter to its column, and the shapes that there are.
func (w *columnWriter) split(b *Batch) ([]uint64, error) {
	var shapes []uint64
	at, entry := 0, b.Width.entry()
	for i := 0; i < len(b.Commands); i += entry {
		count, code := readCommand(b.Commands[i:], b.Width)
		shape := uint32(code)<<8 | uint32(count)
		s, ok := w.shapes[shape]
		if !ok {
			s = uint64(len(shapes))
			w.shapes[shape] = s
			shapes = append(shapes, uint64(shape))
		}
		w.symbols = append(w.symbols, s)
		at = w.step(w.codeOf(code), b.Params, at, count)
	}
	if len(shapes) > maxShapes || len(w.codes) > maxColumnCodes {
		return nil, errColumns
	}
	return shapes, nil
}

// codeOf finds the columns of a code.
func (w *columnWriter) codeOf(code uint16) *codeWriter {
	if w.places[code] == 0 {
		if len(w.codes) == cap(w.codes) {
			w.codes = append(w.codes, codeWriter{})
		} else {
			w.codes = w.codes[:len(w.codes)+1]
		}
		w.codes[len(w.codes)-1].reset(code, w.layouts[code])
		w.places[code] = uint16(len(w.codes))
	}
	return &w.codes[w.places[code]-1]
}

func (c *codeWriter) reset(code uint16, l layout) {
	c.code, c.layout = code, l
	for i := range c.columns {
		col := &c.columns[i]
		col.kinds = col.kinds[:0]
		for s := range col.values {
			col.values[s] = col.values[s][:0]
		}
	}
}

// step gives the parameters of one step to their columns.
func (w *columnWriter) step(c *codeWriter, params []byte, at, count int) int {
	var left uint64
	var player byte
	s := stepColumns{layout: c.layout, count: count}
	for i := range count {
		t, n := takeToken(params[at:])
		at += n
		col := &c.columns[s.column(i)]
		col.kinds = append(col.kinds, t.kind)
		switch t.kind {
		case kindInt:
			v := t.num
			if s.counts(i) {
				s.setList(i, v)
				v -= s.behind(i)
			}
			col.add(streamInts, number{v, left, player})
			left = t.num
			if i == 0 {
				player = byte(t.num)
			}
		case kindF32:
			col.add(streamF32, number{uint64(int64(int32(t.num))), left, player})
		case kindF64:
			col.add(streamF64, number{t.num, left, player})
		case kindText:
			col.add(streamTexts, number{w.textNumber(t.data), 0, player})
		case kindList:
			col.add(streamLengths, number{t.num, 0, player})
			col.addElements(t, player)
		case kindOther:
			w.other = append(w.other, t.data...)
		}
	}
	return at
}

func (c *column) add(stream int, n number) { c.values[stream] = append(c.values[stream], n) }

func (c *column) addElements(t token, player byte) {
	if t.num == 0 {
		return
	}
	width := len(t.data) / int(t.num)
	var left uint64
	for at := 0; at < len(t.data); at += width {
		e := uint64(element(t.data[at:], width))
		c.add(streamElements, number{e, left, player})
		left = e
	}
}

// textNumber is 0 for a text that is new, else 1 + its place among the texts.
func (w *columnWriter) textNumber(s []byte) uint64 {
	if n, ok := w.texts[string(s)]; ok {
		return n
	}
	w.texts[string(s)] = uint64(len(w.texts)) + 1
	w.text = append(append(w.text, byte(len(s))), s...)
	return 0
}

// writeShapes writes the shapes that there are, and the one of each step.
func (w *columnWriter) writeShapes(shapes []uint64) {
	w.small = binary.AppendUvarint(w.small, uint64(len(shapes)))
	for _, s := range shapes {
		w.small = binary.AppendUvarint(w.small, s)
	}
	width := 1
	if len(shapes) > 256 {
		width = 2
	}
	w.planes(w.symbols, width)
}

// writeTimeline writes runs and times.
func (w *columnWriter) writeTimeline(b *Batch) {
	w.gaps, w.steps = w.gaps[:0], w.steps[:0]
	gap := uint64(0)
	for at := 0; at < len(b.timeline); {
		run, n := binary.Uvarint(b.timeline[at:])
		at += n
		if run&1 == 0 {
			gap = run>>1 + 1
			continue
		}
		w.gaps, w.steps = append(w.gaps, number{v: gap}), append(w.steps, number{v: run >> 1})
		gap = 0
	}
	w.small = binary.AppendUvarint(w.small, uint64(len(w.gaps)))
	w.small = binary.AppendUvarint(w.small, gap)
	w.numbers(streamKey{place: noColumn, stream: 0}, w.gaps)
	w.numbers(streamKey{place: noColumn, stream: 1}, w.steps)
	w.stream(b.hashBits)
	w.stream(b.timeBits)
	times := w.gaps[:0]
	for at := 0; at < len(b.times); {
		v, n := binary.Uvarint(b.times[at:])
		at += n
		times = append(times, number{v: v})
	}
	w.gaps = times
	w.small = binary.AppendUvarint(w.small, uint64(len(times)))
	w.numbers(streamKey{place: noColumn, stream: 2}, times)
}

func (w *columnWriter) writeCode(c *codeWriter) {
	w.small = append(w.small, byte(c.layout))
	if c.layout >= layoutCounted {
		for i := range c.columns {
			w.small = binary.AppendUvarint(w.small, uint64(len(c.columns[i].kinds)))
		}
	}
	for i := range c.columns {
		col := &c.columns[i]
		if len(col.kinds) == 0 {
			continue
		}
		lists := w.writeKinds(col.kinds)
		for s := range col.values {
			if s == streamElements && lists {
				w.small = binary.AppendUvarint(w.small, uint64(len(col.values[s])))
			}
			w.numbers(streamKey{c.code, uint8(i), uint8(s)}, col.values[s])
		}
	}
}

// writeKinds writes the kind that all have, or that each has its own and then
// the kind of each. It tells whether lists are among them.
func (w *columnWriter) writeKinds(k []byte) bool {
	mixed, lists := false, false
	for _, x := range k {
		mixed = mixed || x != k[0]
		lists = lists || x == kindList
	}
	if !mixed {
		w.small = append(w.small, k[0])
		return lists
	}
	w.small = append(w.small, kinds)
	w.stream(k)
	return lists
}

// numbers writes a stream of numbers in the form that a trial found smallest.
func (w *columnWriter) numbers(key streamKey, values []number) {
	if len(values) == 0 {
		return
	}
	how, ok := w.forms[key]
	if !ok {
		how = w.pick(values)
		if len(values) >= learnedNumbers {
			w.forms[key] = how
		}
	}
	w.nums = transform(w.nums[:0], values, int(how>>2))
	width := planesOf(w.nums)
	form := int(how & 3)
	w.small = append(w.small, numbersHead(form, int(how>>2), width))
	if form == formPlanes {
		w.planes(w.nums, width)
		return
	}
	w.bytes = appendNumbers(w.bytes[:0], w.nums, form, width)
	if form == formVarint {
		w.small = binary.AppendUvarint(w.small, uint64(len(w.bytes)))
	}
	w.stream(w.bytes)
}

func transform(dst []uint64, values []number, delta int) []uint64 {
	var last uint64
	var lasts [256]uint64
	for i := range values {
		n := &values[i]
		ref := uint64(0)
		switch delta {
		case deltaLast:
			ref, last = last, n.v
		case deltaPlayer:
			ref, lasts[n.player] = lasts[n.player], n.v
		case deltaLeft:
			ref = n.left
		}
		dst = append(dst, deltaOf(n.v, ref))
	}
	return dst
}

// planesOf is how many bytes the largest number takes; at least one.
func planesOf(nums []uint64) int {
	var used uint64
	for _, v := range nums {
		used |= v
	}
	return max(1, (bits.Len64(used)+7)/8)
}

func appendNumbers(dst []byte, nums []uint64, form, width int) []byte {
	switch form {
	case formVarint:
		for _, v := range nums {
			dst = binary.AppendUvarint(dst, v)
		}
	case formPlanes:
		for i := range width {
			dst = appendPlane(dst, nums, i)
		}
	case formFixed:
		for _, v := range nums {
			for i := range width {
				dst = append(dst, byte(v>>(8*i)))
			}
		}
	}
	return dst
}

func appendPlane(dst []byte, nums []uint64, i int) []byte {
	for _, v := range nums {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}

// planes writes the planes of numbers, each a stream.
func (w *columnWriter) planes(nums []uint64, width int) {
	for i := range width {
		w.bytes = appendPlane(w.bytes[:0], nums, i)
		w.stream(w.bytes)
	}
}

// worthBest is how many times shorter than a stream its frame has to be for the
// best encoder to be worth its time: it is quick in long matches alone.
const worthBest = 10

// stream writes a stream whose length the reader knows.
func (w *columnWriter) stream(b []byte) {
	if len(b) < smallStream {
		w.small = append(w.small, b...)
		return
	}
	w.frame = w.good.frame(w.frame[:0], b)
	if len(w.frame)*worthBest < len(b) {
		if w.second = w.best.frame(w.second[:0], b); len(w.second) < len(w.frame) {
			w.frame, w.second = w.second, w.frame
		}
	}
	if len(w.frame) >= len(b) {
		w.frame = append(w.frame[:0], b...)
	}
	w.small = binary.AppendUvarint(w.small, uint64(len(w.frame)))
	w.large = append(w.large, w.frame...)
}
