package format

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// columnReader decodes rows from columns. Its memory is used again.
type columnReader struct {
	zstd   zstdReader
	c      cursor // over the small streams
	small  []byte
	large  []byte // the frames of the large streams that are left
	bytes  arena[byte]
	nums   arena[uint64]
	shapes []uint32
	uses   []int    // of each shape
	next   []int    // 1 + the next shape of the same code
	symbol []uint64 // the shape of each step
	codes  []codeReader
	places [1 << 16]uint16 // 1 + place of a code in codes
	// columns are those of all codes; an earlier chunk may have had more
	columns []*columnValues
	fresh   []byte   // the texts of the chunk
	taken   int      // bytes of the texts that were taken
	texts   []uint32 // where each text that was taken stands
	other   []byte   // other parameters that were not taken yet
	list    []int64
	// elements of lists that may still come
	elements int
}

// arena gives pieces of memory that all become free at once.
type arena[T any] struct{ free, all []T }

func (a *arena[T]) reset() { a.free = a.all }

func (a *arena[T]) take(n int) []T {
	if n > len(a.free) {
		a.all = make([]T, max(2*len(a.all), n, 4096))
		a.free = a.all
	}
	t := a.free[:n:n]
	a.free = a.free[n:]
	return t
}

// codeReader has the columns of one code. One without parameters is nil.
type codeReader struct {
	code    uint16
	layout  layout
	shapes  int // 1 + the last shape
	columns [countedColumns]*columnValues
}

// columnValues are the values of one column that were not taken yet.
type columnValues struct {
	count  int
	kind   byte // of all, or kinds where each has its own
	kinds  []byte
	values [streams]numberReader
}

// playerTable is how many players there can be. A stream with fewer numbers looks
// its players up in a list, so that its memory is that of its numbers.
const playerTable = 256

// numberReader gives the numbers of a stream. A player's last number stands in
// front of those to come: at the player's number in a table of its own, or where
// the player is in the list, among the numbers that were given already.
type numberReader struct {
	nums   []uint64
	listed []byte // players of the list; nil with a table
	last   uint64
	at     uint32 // of the next one in nums
	delta  uint8
}

func (r *numberReader) left() int { return len(r.nums) - int(r.at) }

func (r *numberReader) next(left uint64, player byte) (uint64, bool) {
	if int(r.at) >= len(r.nums) {
		return 0, false
	}
	d := r.nums[r.at]
	r.at++
	switch r.delta {
	case deltaLast:
		r.last = sumOf(d, r.last)
		return r.last, true
	case deltaPlayer:
		p := int(player)
		if r.listed != nil {
			p = r.place(player)
		}
		v := sumOf(d, r.nums[p])
		r.nums[p] = v
		return v, true
	case deltaLeft:
		return sumOf(d, left), true
	}
	return uint64(unzigzag(d)), true
}

// place finds a player in the list, which is never longer than the numbers that
// were given.
func (r *numberReader) place(player byte) int {
	p := bytes.IndexByte(r.listed, player)
	if p < 0 {
		p = len(r.listed)
		r.listed = append(r.listed, player)
		r.nums[p] = 0
	}
	return p
}

// decode fills parts from the coded part of a chunk.
func (r *columnReader) decode(parts []byte, h *archiveHead) error {
	defer r.drop()
	if err := r.open(h); err != nil {
		return err
	}
	r.readShapes(h)
	r.readTimeline(parts[h.rows():], h)
	for i := range r.codes {
		r.readCode(&r.codes[i])
	}
	r.fresh = r.stream(r.c.limitedInt("the bytes of texts", h.params))
	r.texts = slices.Grow(r.texts, len(r.fresh))
	r.other = r.stream(r.c.limitedInt("the bytes of other parameters", h.params))
	if r.c.err == nil && len(r.large) > 0 {
		r.c.fail("%d bytes behind the last stream", len(r.large))
	}
	if err := r.c.done(); err != nil {
		return err
	}
	return r.merge(parts, h)
}

func (c *cursor) limitedInt(field string, most int) int {
	return int(c.limited(field, uint64(most)))
}

// smallLimit bounds the small streams of a chunk that stands for so many
// bytes: the bytes that a parameter of one byte can take in them.
func smallLimit(size int) int { return min(MaxBody, 12*size+4096) }

// open unpacks the small streams.
func (r *columnReader) open(h *archiveHead) error {
	for i := range r.codes {
		r.places[r.codes[i].code] = 0
	}
	r.codes, r.shapes, r.uses, r.next, r.texts = r.codes[:0], r.shapes[:0], r.uses[:0], r.next[:0], r.texts[:0]
	r.taken, r.elements = 0, h.params
	r.bytes.reset()
	r.nums.reset()
	c := cursor{b: h.coded}
	size := c.limitedInt("the bytes of small streams", smallLimit(h.size()))
	frame := c.bytes(c.count("the bytes of their frame", MaxBody, 1), "the small streams")
	r.large = c.bytes(c.rest(), "the large streams")
	if err := c.done(); err != nil {
		return err
	}
	r.small = r.bytes.take(size)
	r.c = cursor{b: r.small}
	return r.zstd.into(r.small, frame)
}

// drop lets go of a chunk and of all memory that will not be used again.
func (r *columnReader) drop() {
	for _, col := range r.columns {
		*col = columnValues{}
	}
	r.columns = r.columns[:0]
	r.c, r.small, r.large, r.symbol, r.fresh, r.other = cursor{}, nil, nil, nil, nil, nil
}

// stream gives the n bytes of the next stream.
func (r *columnReader) stream(n int) []byte {
	if n < smallStream || r.c.err != nil {
		return r.c.bytes(n, "a stream")
	}
	size := r.c.limitedInt("the bytes of a stream's frame", len(r.large))
	if r.c.err != nil {
		return nil
	}
	frame := r.large[:size]
	r.large = r.large[size:]
	if size == n {
		return frame
	}
	b := r.bytes.take(n)
	if err := r.zstd.into(b, frame); err != nil {
		r.c.fail("a stream: %v", err)
		return nil
	}
	return b
}

// numbers reads a stream of n numbers.
func (r *columnReader) numbers(n int) numberReader {
	if n == 0 || r.c.err != nil {
		return numberReader{}
	}
	head := int(r.c.byte("the head of a stream"))
	form, width := head&3, head>>4
	if r.c.err == nil && (form >= forms || width < 1 || width > 8) {
		r.c.fail("numbers of form %d with %d bytes", form, width)
	}
	if r.c.err != nil {
		return numberReader{}
	}
	out := r.room(n, uint8(head>>2&3))
	nums := out.nums[out.at:]
	switch form {
	case formVarint:
		r.varints(nums)
	case formPlanes:
		r.planes(nums, width)
	default:
		fixed(nums, r.stream(n*width), width)
	}
	return out
}

// room takes memory for a stream of n numbers.
func (r *columnReader) room(n int, delta uint8) numberReader {
	switch {
	case delta != deltaPlayer:
		return numberReader{nums: r.nums.take(n), delta: delta}
	case n == 1: // no player has a number before it
		return numberReader{nums: r.nums.take(n), delta: deltaNone}
	case n < playerTable:
		return numberReader{nums: r.nums.take(n), listed: r.bytes.take(n)[:0], delta: delta}
	}
	nums := r.nums.take(playerTable + n)
	clear(nums[:playerTable])
	return numberReader{nums: nums, at: playerTable, delta: delta}
}

func (r *columnReader) varints(nums []uint64) {
	b := r.stream(r.c.limitedInt("the bytes of numbers", len(nums)*binary.MaxVarintLen64))
	for i := range nums {
		if len(b) > 0 && b[0] < 0x80 {
			nums[i], b = uint64(b[0]), b[1:]
			continue
		}
		v, n := binary.Uvarint(b)
		if n <= 0 {
			r.c.fail("number %d of %d is no uvarint", i, len(nums))
			return
		}
		nums[i], b = v, b[n:]
	}
	if len(b) > 0 {
		r.c.fail("%d bytes behind the last number", len(b))
	}
}

func (r *columnReader) planes(nums []uint64, width int) {
	clear(nums)
	for i := range width {
		b := r.stream(len(nums))
		if r.c.err != nil {
			return
		}
		for j, x := range b {
			nums[j] |= uint64(x) << (8 * i)
		}
	}
}

// fixed reads numbers of width bytes; b is nil after an error.
func fixed(nums []uint64, b []byte, width int) {
	if len(b) != len(nums)*width {
		return
	}
	for i := range nums {
		v := uint64(0)
		for j := range width {
			v |= uint64(b[j]) << (8 * j)
		}
		nums[i], b = v, b[width:]
	}
}

// readShapes reads the codes and counts of parameters that there are, and the
// one of each step.
func (r *columnReader) readShapes(h *archiveHead) {
	for range r.c.count("the number of shapes", maxShapes, 1) {
		shape := uint32(r.c.limitedInt("a shape", 1<<24-1))
		if r.c.err == nil && h.width() == Width8 && shape>>16 != 0 {
			r.c.fail("code %d in a chunk of 8-bit codes", shape>>8)
		}
		r.addShape(shape)
	}
	width := 1
	if len(r.shapes) > 256 {
		width = 2
	}
	r.symbol = r.nums.take(h.Steps)
	r.planes(r.symbol, width)
	params := 0
	for _, s := range r.symbol {
		if r.c.err != nil || s >= uint64(len(r.shapes)) {
			r.c.fail("a step of shape %d of %d", s, len(r.shapes))
			return
		}
		r.uses[s]++
		params += int(r.shapes[s] & 0xff)
	}
	if params > h.params {
		r.c.fail("%d parameters in %d bytes", params, h.params)
	}
}

func (r *columnReader) addShape(shape uint32) {
	code := uint16(shape >> 8)
	if r.places[code] == 0 {
		if len(r.codes) == maxColumnCodes {
			r.c.fail("more than %d codes", maxColumnCodes)
			return
		}
		r.codes = append(r.codes, codeReader{code: code})
		r.places[code] = uint16(len(r.codes))
	}
	c := &r.codes[r.places[code]-1]
	r.shapes, r.uses, r.next = append(r.shapes, shape), append(r.uses, 0), append(r.next, c.shapes)
	c.shapes = len(r.shapes)
}

// readTimeline reads runs and times into the end of a chunk's parts.
func (r *columnReader) readTimeline(parts []byte, h *archiveHead) {
	active := r.c.limitedInt("the number of ticks with steps", h.Ticks)
	rest := r.c.limitedInt("the number of empty ticks at the end", h.Ticks)
	gaps, steps := r.numbers(active), r.numbers(active)
	out := parts[:0]
	for range active {
		gap, _ := gaps.next(0, 0)
		n, _ := steps.next(0, 0)
		if r.c.err != nil || gap > uint64(h.Ticks) || n > uint64(h.Steps) {
			r.c.fail("a tick of %d steps behind %d empty ones", n, gap)
			return
		}
		out = appendEmpty(out, int(gap))
		out = binary.AppendUvarint(out, n<<1|1)
	}
	out = appendEmpty(out, rest)
	out = append(out, r.bitmap(h, batchHashShift)...)
	if r.c.err == nil && len(out) != h.runs {
		r.c.fail("%d bytes of runs, %d are due", len(out), h.runs)
	}
	out = append(out, r.bitmap(h, batchTimeShift)...)
	n := r.c.limitedInt("the number of times", h.Ticks)
	times := r.numbers(n)
	for range n {
		v, _ := times.next(0, 0)
		out = binary.AppendUvarint(out, v)
	}
	if r.c.err == nil && len(out) != h.runs+h.times {
		r.c.fail("%d bytes of runs and times, %d are due", len(out), h.runs+h.times)
	}
}

// bitmap reads a bitmap, if the flags say that there is one.
func (r *columnReader) bitmap(h *archiveHead, shift int) []byte {
	if h.flags>>shift&3 != presentBitmap {
		return nil
	}
	return r.stream((h.Ticks + 7) / 8)
}

// readCode reads the columns of a code.
func (r *columnReader) readCode(c *codeReader) {
	c.layout = layout(r.c.byte("a layout"))
	if r.c.err == nil && c.layout >= layouts {
		r.c.fail("layout %d", c.layout)
	}
	for i, n := range r.countColumns(c) {
		if n > 0 && r.c.err == nil {
			c.columns[i] = r.addColumn(n)
			r.readColumn(c.columns[i])
		}
	}
}

// countColumns finds how many parameters each column of a code has. With a
// counted list the shapes give no more than their sum.
func (r *columnReader) countColumns(c *codeReader) (counts [countedColumns]int) {
	params := 0
	for s := c.shapes; s > 0; s = r.next[s-1] {
		cols := stepColumns{layout: c.layout, count: int(r.shapes[s-1] & 0xff)}
		params += cols.count * r.uses[s-1]
		for i := 0; i < cols.count && c.layout < layoutCounted; i++ {
			counts[cols.column(i)] += r.uses[s-1]
		}
	}
	if c.layout < layoutCounted {
		return counts
	}
	for i := range counts {
		counts[i] = r.c.limitedInt("the parameters of a column", params)
		params -= counts[i]
	}
	if r.c.err == nil && params > 0 {
		r.c.fail("%d parameters without a column", params)
	}
	return counts
}

// addColumn gives an empty column of n parameters.
func (r *columnReader) addColumn(n int) *columnValues {
	if at := len(r.columns); at < cap(r.columns) {
		r.columns = r.columns[:at+1]
	} else {
		r.columns = append(r.columns, nil)
	}
	col := &r.columns[len(r.columns)-1]
	if *col == nil {
		*col = new(columnValues)
	}
	(*col).count = n
	return *col
}

func (r *columnReader) readColumn(col *columnValues) {
	col.kind = r.c.byte("a kind")
	var n [kinds]int
	switch {
	case col.kind < kinds:
		n[col.kind] = col.count
	case col.kind == kinds:
		col.kinds = r.stream(col.count)
		for _, k := range col.kinds {
			if k >= kinds {
				r.c.fail("kind %d", k)
				return
			}
			n[k]++
		}
	default:
		r.c.fail("kind %d", col.kind)
	}
	for s, k := range [...]int{streamInts: kindInt, streamF32: kindF32, streamF64: kindF64, streamTexts: kindText, streamLengths: kindList} {
		col.values[s] = r.numbers(n[k])
	}
	if n[kindList] > 0 {
		col.values[streamElements] = r.takeElements()
	}
}

// merge takes the values of every step from their columns.
func (r *columnReader) merge(parts []byte, h *archiveHead) error {
	commands := parts[:0:h.commands()]
	w := rowWriter{b: r.params(h), limit: h.params}
	for _, s := range r.symbol {
		shape := r.shapes[s]
		if h.width() == Width8 {
			commands = append(commands, byte(shape), byte(shape>>8))
		} else {
			commands = append(commands, byte(shape), byte(shape>>16), byte(shape>>8))
		}
		if err := r.step(&w, &r.codes[r.places[shape>>8]-1], int(shape&0xff)); err != nil {
			return err
		}
	}
	if w.at != h.params || r.taken < len(r.fresh) || len(r.other) > 0 {
		return errRows
	}
	copy(parts[h.commands():], w.b[:w.at])
	return nil
}

// params is memory for the parameter area and its slack.
func (r *columnReader) params(h *archiveHead) []byte { return r.bytes.take(h.params + rowSlack) }

func (r *columnReader) step(w *rowWriter, c *codeReader, count int) error {
	var left uint64
	var player byte
	s := stepColumns{layout: c.layout, count: count}
	for i := range count {
		col := c.columns[s.column(i)]
		if col == nil || col.count == 0 {
			return errRows
		}
		col.count--
		kind := col.kind
		if kind == kinds {
			kind, col.kinds = col.kinds[0], col.kinds[1:]
		}
		if kind == kindInt {
			v, ok := col.values[streamInts].next(left, player)
			if s.counts(i) {
				v += s.behind(i)
				s.setList(i, v)
			}
			if i == 0 {
				player = byte(v)
			}
			left = v
			w.int(int64(v))
			if !ok || w.at > w.limit {
				return errRows
			}
			continue
		}
		if !r.value(w, col, kind, left, player) || w.at > w.limit {
			return errRows
		}
	}
	return nil
}

// value puts a parameter that is no integer; false where it cannot be.
func (r *columnReader) value(w *rowWriter, col *columnValues, kind byte, left uint64, player byte) bool {
	switch kind {
	case kindF32:
		v, ok := col.values[streamF32].next(left, player)
		wide, fits := widenFloat(uint32(v))
		w.f64(wide)
		return ok && fits && uint64(int64(int32(v))) == v
	case kindF64:
		v, ok := col.values[streamF64].next(left, player)
		w.f64(v)
		return ok
	case kindText:
		v, ok := col.values[streamTexts].next(0, player)
		return ok && r.putText(w, v)
	case kindList:
		n, ok := col.values[streamLengths].next(0, player)
		return ok && r.putList(w, col, n, player)
	case kindOther:
		n, err := ParamLength(r.other)
		if err != nil || !w.other(r.other[:n]) {
			return false
		}
		r.other = r.other[n:]
		return true
	}
	w.bool(kind)
	return true
}

// putText puts text n of the chunk, or the next new one.
func (r *columnReader) putText(w *rowWriter, n uint64) bool {
	if n > uint64(len(r.texts)) {
		return false
	}
	if n > 0 {
		return w.text(r.text(int(r.texts[n-1])))
	}
	if left := len(r.fresh) - r.taken; left == 0 || left <= int(r.fresh[r.taken]) || r.fresh[r.taken] > maxShortString {
		return false
	}
	s := r.text(r.taken)
	r.texts = append(r.texts, uint32(r.taken))
	r.taken += 1 + len(s)
	return w.text(s)
}

// text is the one that stands at a place, which has been checked.
func (r *columnReader) text(at int) []byte {
	n := int(r.fresh[at])
	return r.fresh[at+1:][:n]
}

func (r *columnReader) putList(w *rowWriter, col *columnValues, n uint64, player byte) bool {
	if n > uint64(col.values[streamElements].left()) {
		return false
	}
	r.list = slices.Grow(r.list[:0], int(n))
	left := uint64(0)
	for range n {
		left, _ = col.values[streamElements].next(left, player)
		r.list = append(r.list, int64(left))
	}
	return w.list(r.list)
}

// takeElements reads the elements of a column's lists.
func (r *columnReader) takeElements() numberReader {
	n := r.c.limitedInt("the number of elements", r.elements)
	r.elements -= n
	return r.numbers(n)
}
