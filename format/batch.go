package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// TickRecord is one tick of a replay. Its slices point into the reader's
// memory and are valid until the next read.
type TickRecord struct {
	Tick Tick
	// Width is the width of command codes in Commands.
	Width Width
	// Steps is the number of steps; Commands holds Steps entries of the
	// command area and Params exactly their parameters.
	Steps            int
	Commands, Params []byte
	// Hash is the state hash after the tick; nil where none was recorded.
	Hash []byte
	// Time is microseconds since the session's start; only with HasTime.
	Time    int64
	HasTime bool
}

// Width is the number of bits of a command code in a command area.
type Width uint8

// The two widths are stored in files. They must not change.
const (
	Width8  Width = 8
	Width16 Width = 16
)

// entry is the size of one entry of a command area: count and code.
func (w Width) entry() int { return 1 + int(w)/8 }

// code reads the code of the entry at c[0:].
func (w Width) code(c []byte) uint16 {
	if w == Width8 {
		return uint16(c[1])
	}
	return binary.BigEndian.Uint16(c[1:])
}

// A ticks chunk holds a delta saveState and the timeline of its ticks:
//
//	first tick · ticks · flags · steps · bytes of parameters
//	command area: steps × (count u8, code u8 or u16)
//	parameter area
//	timeline: runs, a uvarint each; 2(n-1) is n empty ticks,
//	          2(s-1)+1 is one tick of s steps
//	hashes:   [bitmap], then the hash of each hashed tick
//	times:    [bitmap], then a uvarint for each timed tick: microseconds
//	          since the session's start, later ones since the one before
//
// Bitmaps have one bit for each tick, lowest bit first.

// Flags of a ticks chunk are stored in files. They must not change.
const (
	batchWide      = 0x01 // codes of 16 bits
	batchHashShift = 1    // two bits: how hashes are present
	batchTimeShift = 3    // two bits: how times are present
	batchFlags     = 0x1f

	presentNone   = 0
	presentAll    = 1
	presentBitmap = 2
)

// maxTime is the largest tick time, in microseconds.
const maxTime = 1<<62 - 1

// Batch is the parsed body of a ticks chunk. Its slices point into the
// body.
type Batch struct {
	// First is the first of Ticks contiguous ticks.
	First Tick
	Ticks int
	// Width, Steps, Commands and Params are the delta saveState.
	Width            Width
	Steps            int
	Commands, Params []byte
	// Hashes counts the ticks that carry a hash.
	Hashes int
	// LastTime is the last tick's time where HasTimes.
	LastTime int64
	HasTimes bool

	firstTime  int64
	hashBytes  int
	timeline   []byte
	hashMode   byte
	hashBits   []byte
	hashes     []byte
	timeMode   byte
	timeBits   []byte
	times      []byte
	timesCount int
}

// Next is the tick after the batch's last one.
func (b *Batch) Next() Tick { return b.First + Tick(b.Ticks) }

// State is the batch's steps as a delta saveState.
func (b *Batch) State() State {
	return State{Length: b.Steps, CommandWidth: b.Width, CommandArray: b.Commands, ParamArray: b.Params}
}

// ParseBatch reads and checks the body of a ticks chunk of a session whose
// hashes have hashBytes bytes: counts, every parameter, the timeline. It
// allocates nothing but the error.
func ParseBatch(body []byte, hashBytes int) (b Batch, err error) {
	err = b.parse(body, hashBytes)
	return b, err
}

// parse is ParseBatch in place.
func (b *Batch) parse(body []byte, hashBytes int) error {
	c := cursor{b: body}
	*b = Batch{First: c.tick("the first tick"), Ticks: int(c.limited("the number of ticks", MaxChunkTicks)), hashBytes: hashBytes}
	flags := c.byte("the flags")
	b.Steps = int(c.limited("the number of steps", MaxRowBytes/2))
	params := int(c.limited("the bytes of parameters", MaxRowBytes))
	if c.err == nil && (b.Ticks == 0 || flags&^batchFlags != 0) {
		c.fail("%d ticks with flags %#02x", b.Ticks, flags)
	}
	b.Width = Width8
	if flags&batchWide != 0 {
		b.Width = Width16
	}
	if rows := b.Steps*b.Width.entry() + params; c.err == nil && rows > MaxRowBytes {
		c.fail("%d row bytes, the most is %d", rows, MaxRowBytes)
	}
	b.Commands = c.bytes(b.Steps*b.Width.entry(), "the command area")
	b.Params = c.bytes(params, "the parameter area")
	if c.err == nil {
		b.checkParams(&c)
	}
	b.parseTimeline(&c)
	b.parseHashes(&c, flags>>batchHashShift&3)
	b.parseTimes(&c, flags>>batchTimeShift&3)
	return c.done()
}

// checkParams walks the parameter area by the counts of the command area.
func (b *Batch) checkParams(c *cursor) {
	start := c.off - len(b.Params)
	off := 0
	for i := 0; i < len(b.Commands); i += b.Width.entry() {
		n, err := ParamsLength(b.Params[off:], int(b.Commands[i]))
		if err != nil {
			c.off = start + off
			var bad *ParamError
			if errors.As(err, &bad) {
				c.off += bad.Offset
			}
			c.fail("step %d: %v", i/b.Width.entry(), err)
			return
		}
		off += n
	}
	if off != len(b.Params) {
		c.off = start + off
		c.fail("%d bytes after the last parameter", len(b.Params)-off)
	}
}

func (b *Batch) parseTimeline(c *cursor) {
	start := c.off
	ticks, steps, wasEmpty := 0, 0, false
	for c.err == nil && ticks < b.Ticks {
		run := c.uvarint("the timeline")
		empty := run&1 == 0
		n := run>>1 + 1
		switch {
		case c.err != nil:
		case empty && (wasEmpty || n > uint64(b.Ticks-ticks)):
			c.fail("timeline: a run of %d empty ticks at tick %d of %d", n, ticks, b.Ticks)
		case !empty && n > uint64(b.Steps-steps):
			c.fail("timeline: %d steps in tick %d, %d are left", n, ticks, b.Steps-steps)
		case empty:
			ticks += int(n)
		default:
			ticks++
			steps += int(n)
		}
		wasEmpty = empty
	}
	if c.err == nil && steps != b.Steps {
		c.fail("timeline: %d steps, the chunk has %d", steps, b.Steps)
	}
	b.timeline = c.b[start:c.off]
}

// presence reads how a column stands: for none, all or the ticks of a
// bitmap, which must then be neither.
func (b *Batch) presence(c *cursor, mode byte, field string) (bitmap []byte, n int) {
	switch mode {
	case presentNone:
	case presentAll:
		n = b.Ticks
	case presentBitmap:
		bitmap = c.bytes((b.Ticks+7)/8, "a bitmap")
		for _, x := range bitmap {
			n += bits.OnesCount8(x)
		}
		if c.err == nil && (n == 0 || n == b.Ticks || b.Ticks%8 != 0 && bitmap[len(bitmap)-1]>>(b.Ticks%8) != 0) {
			c.fail("the bitmap of %s has %d of %d ticks", field, n, b.Ticks)
		}
	default:
		c.fail("flags say presence %d for %s", mode, field)
	}
	return bitmap, n
}

func (b *Batch) parseHashes(c *cursor, mode byte) {
	b.hashMode = mode
	b.hashBits, b.Hashes = b.presence(c, mode, "hashes")
	if c.err == nil && b.Hashes > 0 && b.hashBytes == 0 {
		c.fail("hashes in a session that declares none")
	}
	b.hashes = c.bytes(b.Hashes*b.hashBytes, "the hashes")
}

func (b *Batch) parseTimes(c *cursor, mode byte) {
	b.timeMode = mode
	b.timeBits, b.timesCount = b.presence(c, mode, "times")
	start := c.off
	for i := 0; i < b.timesCount && c.err == nil; i++ {
		d := c.uvarint("a time")
		if c.err == nil && d > uint64(maxTime-b.LastTime) {
			c.fail("time of %d microseconds", d)
		}
		b.LastTime += int64(d)
		if i == 0 {
			b.firstTime = b.LastTime
		}
	}
	b.HasTimes = b.timesCount > 0
	b.times = c.b[start:c.off]
}

// Reader starts reading the batch's ticks.
func (b *Batch) Reader() BatchReader { return BatchReader{b: b} }

// BatchReader gives the ticks of a Batch in order.
type BatchReader struct {
	b        *Batch
	index    int // of the next tick
	empty    int // empty ticks left in the present run
	time     int64
	commands int
	params   int
	timeline int
	hashes   int
	times    int
}

// Next fills t with the next tick; false at the end.
func (r *BatchReader) Next(t *TickRecord) bool {
	b := r.b
	if r.index >= b.Ticks {
		return false
	}
	*t = TickRecord{Tick: b.First + Tick(r.index), Width: b.Width}
	if r.empty > 0 {
		r.empty--
	} else {
		r.takeSteps(t)
	}
	if b.hashMode|b.timeMode == presentNone {
		r.index++
		return true
	}
	if present(b.hashMode, b.hashBits, r.index) {
		t.Hash = b.hashes[r.hashes : r.hashes+b.hashBytes : r.hashes+b.hashBytes]
		r.hashes += b.hashBytes
	}
	if present(b.timeMode, b.timeBits, r.index) {
		d, n := binary.Uvarint(b.times[r.times:])
		r.times += n
		r.time += int64(d)
		t.Time, t.HasTime = r.time, true
	}
	r.index++
	return true
}

func (r *BatchReader) takeSteps(t *TickRecord) {
	b := r.b
	run, n := binary.Uvarint(b.timeline[r.timeline:])
	r.timeline += n
	if run&1 == 0 {
		r.empty = int(run >> 1)
		return
	}
	t.Steps = int(run>>1) + 1
	end := r.commands + t.Steps*b.Width.entry()
	t.Commands = b.Commands[r.commands:end:end]
	r.commands = end
	size := len(b.Params) - r.params // the last steps have all that is left
	if end < len(b.Commands) {
		size = b.paramsOf(t.Commands, r.params)
	}
	t.Params = b.Params[r.params : r.params+size : r.params+size]
	r.params += size
}

// paramsOf measures the parameters of a stretch of commands, which begin at a
// place in the parameter area.
func (b *Batch) paramsOf(commands []byte, at int) (size int) {
	for i := 0; i < len(commands); i += b.Width.entry() {
		// ParseBatch has checked every parameter: this cannot fail.
		n, _ := ParamsLength(b.Params[at+size:], int(commands[i]))
		size += n
	}
	return size
}

// skipEmpty passes over at most so many ticks of which nothing is recorded,
// without looking at each: a few bytes may stand for MaxChunkTicks of them.
func (r *BatchReader) skipEmpty(most int) int {
	if r.b.hashMode != presentNone || r.b.timeMode != presentNone {
		return 0
	}
	n := min(r.empty, most)
	r.empty -= n
	r.index += n
	return n
}

func present(mode byte, bitmap []byte, i int) bool {
	return mode == presentAll || mode == presentBitmap && bitmap[i/8]>>(i%8)&1 == 1
}

// StepReader decodes the steps of one tick. The zero StepReader is ready
// for Reset; reusing one allocates nothing.
type StepReader struct {
	t        *TickRecord
	index    int
	params   int
	values   []Value
	commands int
}

// Reset starts with the first step of t.
func (r *StepReader) Reset(t *TickRecord) {
	r.t, r.index, r.params, r.commands = t, 0, 0, 0
}

// Next decodes the next step; false at the end. Index is the step's
// position in its tick. The parameters are valid until the next call and
// point into the tick.
func (r *StepReader) Next(step *Step) bool {
	if r.index >= r.t.Steps {
		return false
	}
	count, code := readCommand(r.t.Commands[r.commands:], r.t.Width)
	if count > len(r.values) {
		r.values = make([]Value, max(count, 8))
	}
	values := r.values[:count]
	n, at := readNumbers(values, r.t.Params, r.params)
	for ; n < count; n++ {
		v, size, err := ParseParam(r.t.Params[at:])
		if err != nil {
			return false
		}
		values[n] = v
		at += size
	}
	r.params = at
	r.commands += r.t.Width.entry()
	*step = Step{Code: code, Index: r.index, Params: values}
	r.index++
	return true
}

// BatchBuilder collects ticks into the body of a ticks chunk. Appending
// allocates nothing once its memory has grown.
type BatchBuilder struct {
	width     Width
	hashBytes int

	// What every tick touches stands together.
	first Tick
	ticks int
	steps int
	// The open tick's steps stand at the ends of commands and params.
	openSteps, openCommands, openParams int

	commands []byte
	params   []byte
	timeline []byte
	empty    int // empty ticks not yet in timeline
	hashes   []byte
	hashBits []byte
	hashed   int
	times    []int64
	timeBits []byte
	timed    int
}

// NewBatchBuilder starts a builder for a session's width and hash width
// whose next tick is first.
func NewBatchBuilder(width Width, hashBytes int, first Tick) *BatchBuilder {
	return &BatchBuilder{width: width, hashBytes: hashBytes, first: first}
}

// reset makes b a new builder that has its memory.
func (b *BatchBuilder) reset(width Width, hashBytes int, first Tick) {
	b.Drop()
	b.Cut()
	b.commands, b.params = b.commands[:0], b.params[:0]
	b.width, b.hashBytes, b.first = width, hashBytes, first
}

// Errors of a step that cannot be recorded. Nothing is recorded then.
var (
	// ErrStep is returned for a step that no command area or parameter
	// area can hold: a code above the width, too many or unsupported
	// parameters.
	ErrStep = errors.New("step cannot be stored")
	// ErrTickSize is returned where a tick would exceed MaxRowBytes.
	ErrTickSize = errors.New("tick is too large")
)

// Step adds one step to the open tick. The error matches ErrStep or
// ErrTickSize, and the tick is then as before.
func (b *BatchBuilder) Step(code uint16, params ...Value) error {
	if len(params) > MaxParams {
		return fmt.Errorf("%w: code %d has %d parameters, the most is %d", ErrStep, code, len(params), MaxParams)
	}
	if b.width == Width8 && code > 255 {
		return fmt.Errorf("%w: code %d in a session of 8-bit codes", ErrStep, code)
	}
	mark := len(b.params)
	for i, v := range params {
		var err error
		if b.params, err = AppendParam(b.params, v); err != nil {
			b.params = b.params[:mark]
			return fmt.Errorf("%w: code %d, parameter %d: %w", ErrStep, code, i, err)
		}
	}
	if b.openRows()+len(b.params)-mark+b.width.entry() > MaxRowBytes {
		b.params = b.params[:mark]
		return fmt.Errorf("%w: more than %d bytes with code %d", ErrTickSize, MaxRowBytes, code)
	}
	b.openParams += len(b.params) - mark
	b.appendCommand(byte(len(params)), code)
	b.openSteps++
	return nil
}

func (b *BatchBuilder) appendCommand(count byte, code uint16) {
	n := len(b.commands)
	if b.width == Width8 {
		b.commands = append(b.commands, count, byte(code))
	} else {
		b.commands = append(b.commands, count, byte(code>>8), byte(code))
	}
	b.openCommands += len(b.commands) - n
}

func (b *BatchBuilder) openRows() int { return b.openCommands + b.openParams }

// Rows is the size of the closed ticks' row bytes.
func (b *BatchBuilder) Rows() int { return len(b.commands) + len(b.params) - b.openRows() }

// Ticks is the number of closed ticks.
func (b *BatchBuilder) Ticks() int { return b.ticks }

// OpenSteps is the number of steps in the open tick.
func (b *BatchBuilder) OpenSteps() int { return b.openSteps }

// NextTick is the open tick.
func (b *BatchBuilder) NextTick() Tick { return b.first + Tick(b.ticks) }

// Open gives the open tick's steps as a record, without hash and time. Its
// slices are valid until the next call that changes the builder.
func (b *BatchBuilder) Open() TickRecord {
	return TickRecord{Tick: b.NextTick(), Width: b.width, Steps: b.openSteps,
		Commands: b.commands[len(b.commands)-b.openCommands:], Params: b.params[len(b.params)-b.openParams:]}
}

// Full tells whether closing the open tick needs a chunk of its own: the
// caller takes the closed ticks with AppendBody and Cut first.
func (b *BatchBuilder) Full() bool {
	return b.ticks > 0 && (b.ticks >= MaxChunkTicks || len(b.commands)+len(b.params) > MaxRowBytes)
}

// EndTick closes the open tick and returns it.
func (b *BatchBuilder) EndTick() Tick {
	if b.openSteps == 0 {
		b.empty++
	} else {
		b.timeline = appendEmpty(b.timeline, b.empty)
		b.timeline = binary.AppendUvarint(b.timeline, uint64(b.openSteps-1)<<1|1)
		b.empty = 0
	}
	b.steps += b.openSteps
	b.openSteps, b.openCommands, b.openParams = 0, 0, 0
	b.ticks++
	return b.NextTick() - 1
}

// EndTickAt closes the open tick with its time in microseconds since the
// session's start. Times must not decrease.
func (b *BatchBuilder) EndTickAt(time int64) Tick {
	b.timeBits = setBit(b.timeBits, b.ticks)
	b.times = append(b.times, time)
	b.timed++
	return b.EndTick()
}

func setBit(bitmap []byte, i int) []byte {
	for len(bitmap) <= i/8 {
		bitmap = append(bitmap, 0)
	}
	bitmap[i/8] |= 1 << (i % 8)
	return bitmap
}

// appendEmpty appends a run of empty ticks; nothing for none.
func appendEmpty(timeline []byte, ticks int) []byte {
	if ticks == 0 {
		return timeline
	}
	return binary.AppendUvarint(timeline, uint64(ticks-1)<<1)
}

// Drop forgets the steps of the open tick.
func (b *BatchBuilder) Drop() {
	b.commands = b.commands[:len(b.commands)-b.openCommands]
	b.params = b.params[:len(b.params)-b.openParams]
	b.openSteps, b.openCommands, b.openParams = 0, 0, 0
}

// Hash sets the state hash of a closed tick; false where t is not in the
// batch, has a hash already, or h has not the session's width.
func (b *BatchBuilder) Hash(t Tick, h []byte) bool {
	if t < b.first || t >= b.NextTick() || len(h) != b.hashBytes || b.hashBytes == 0 {
		return false
	}
	i := int(t - b.first)
	if i/8 < len(b.hashBits) && b.hashBits[i/8]>>(i%8)&1 == 1 {
		return false
	}
	b.hashBits = setBit(b.hashBits, i)
	b.hashed++
	need := (i + 1) * b.hashBytes
	for len(b.hashes) < need {
		b.hashes = append(b.hashes, 0)
	}
	copy(b.hashes[i*b.hashBytes:], h)
	return true
}

// Add closes a whole tick by copying a record: its steps are recoded only
// where its width differs from the builder's. The builder must have no open
// step, and t.Tick must be due.
func (b *BatchBuilder) Add(t *TickRecord) error {
	if t.Tick != b.NextTick() || b.openSteps > 0 {
		return &OrderError{What: "tick", Want: uint64(b.NextTick()), Got: uint64(t.Tick)}
	}
	if t.Hash != nil && len(t.Hash) != b.hashBytes {
		return fmt.Errorf("%w: hash of %d bytes in a session of %d", ErrStep, len(t.Hash), b.hashBytes)
	}
	if err := b.copySteps(t); err != nil {
		return err
	}
	if t.HasTime {
		b.EndTickAt(t.Time)
	} else {
		b.EndTick()
	}
	if t.Hash != nil {
		b.Hash(t.Tick, t.Hash)
	}
	return nil
}

// addEmpty closes so many ticks of which nothing is recorded. The builder must
// have no open step.
func (b *BatchBuilder) addEmpty(ticks int) {
	b.empty += ticks
	b.ticks += ticks
}

func (b *BatchBuilder) copySteps(t *TickRecord) error {
	if size := t.Steps*b.width.entry() + len(t.Params); size > MaxRowBytes {
		return fmt.Errorf("%w: tick %d has %d row bytes, the most is %d", ErrTickSize, t.Tick, size, MaxRowBytes)
	}
	if t.Width == b.width {
		b.commands = append(b.commands, t.Commands...)
		b.openCommands = len(t.Commands)
	} else {
		for i := 0; i < len(t.Commands); i += t.Width.entry() {
			code := t.Width.code(t.Commands[i:])
			if b.width == Width8 && code > 255 {
				b.Drop()
				return fmt.Errorf("%w: tick %d has code %d in a session of 8-bit codes", ErrStep, t.Tick, code)
			}
			b.appendCommand(t.Commands[i], code)
		}
	}
	b.params = append(b.params, t.Params...)
	b.openParams = len(t.Params)
	b.openSteps = t.Steps
	return nil
}

// AppendBody appends the body of a ticks chunk with the closed ticks, which
// it keeps. There must be at least one.
func (b *BatchBuilder) AppendBody(dst []byte) []byte {
	commands := b.commands[:len(b.commands)-b.openCommands]
	params := b.params[:len(b.params)-b.openParams]
	hashMode := presenceMode(b.hashed, b.ticks)
	timeMode := presenceMode(b.timed, b.ticks)
	flags := hashMode<<batchHashShift | timeMode<<batchTimeShift
	if b.width == Width16 {
		flags |= batchWide
	}
	dst = binary.AppendUvarint(dst, uint64(b.first))
	dst = binary.AppendUvarint(dst, uint64(b.ticks))
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, uint64(b.steps))
	dst = binary.AppendUvarint(dst, uint64(len(params)))
	dst = append(dst, commands...)
	dst = append(dst, params...)
	dst = append(dst, b.timeline...)
	dst = appendEmpty(dst, b.empty)
	b.hashBits = padBitmap(b.hashBits, b.ticks)
	dst = appendBitmap(dst, hashMode, b.hashBits)
	for i := range b.ticks {
		if present(hashMode, b.hashBits, i) {
			dst = append(dst, b.hashes[i*b.hashBytes:(i+1)*b.hashBytes]...)
		}
	}
	b.timeBits = padBitmap(b.timeBits, b.ticks)
	dst = appendBitmap(dst, timeMode, b.timeBits)
	last := int64(0)
	for _, t := range b.times {
		dst = binary.AppendUvarint(dst, uint64(t-last))
		last = t
	}
	return dst
}

func presenceMode(n, ticks int) byte {
	switch n {
	case 0:
		return presentNone
	case ticks:
		return presentAll
	}
	return presentBitmap
}

func padBitmap(bitmap []byte, ticks int) []byte {
	for len(bitmap) < (ticks+7)/8 {
		bitmap = append(bitmap, 0)
	}
	return bitmap
}

func appendBitmap(dst []byte, mode byte, bitmap []byte) []byte {
	if mode != presentBitmap {
		return dst
	}
	return append(dst, bitmap...)
}

// Cut drops the closed ticks and keeps the open one.
func (b *BatchBuilder) Cut() {
	b.first = b.NextTick()
	b.commands = append(b.commands[:0], b.commands[len(b.commands)-b.openCommands:]...)
	b.params = append(b.params[:0], b.params[len(b.params)-b.openParams:]...)
	b.ticks, b.steps, b.empty, b.hashed, b.timed = 0, 0, 0, 0, 0
	b.timeline, b.hashes, b.hashBits = b.timeline[:0], b.hashes[:0], b.hashBits[:0]
	b.times, b.timeBits = b.times[:0], b.timeBits[:0]
}

// Skip moves an empty builder over a gap: next becomes the open tick, and
// keeps its steps.
func (b *BatchBuilder) Skip(next Tick) { b.first = next }
