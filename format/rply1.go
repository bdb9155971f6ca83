package format

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
)

// RPLY1 is the format before this one. It is little-endian: a header and a
// snapshot of the first state,
//
//	 0       6       8      16      18      26        27     31     35         39
//	┌───────┬───────┬──────┬───────┬───────┬─────────┬──────┬──────┬──────────┬──────────┐
//	│ magic │ proto │ seed │ rate  │ start │ players │ mapW │ mapH │ snap_len │ snapshot │
//	│       │ u16   │ u64  │ u16   │ i64 s │ u8      │ i32  │ i32  │ u32      │          │
//	└───────┴───────┴──────┴───────┴───────┴─────────┴──────┴──────┴──────────┴──────────┘
//
// and then, for each tick,
//
//	 0      4       6            6+22n    14+22n
//	┌──────┬───────┬────────────┬────────┐      command: player u8, op u8, unit u32,
//	│ tick │ n u16 │ n commands │ hash   │               tx i32, ty i32, target u32,
//	│ u32  │       │            │ u64    │               tick u32
//	└──────┴───────┴────────────┴────────┘
//
// It has no checksums and no end mark, so plausibility decides what is damage:
//
//   - Ticks ascend. A tick that does not is damage, and so is a jump of
//     more than rply1MaxJump ticks, unless rply1Chain records in a row, with
//     it, ascend by no more. Smaller jumps are gaps.
//   - A record that runs past the end of the file is torn, and so is a tail
//     of zeros. It is damage if a chain of consecutive records begins inside.
//   - Zeros that begin at a sector's boundary inside the last record are a
//     lost write: that record is no tick either.
const (
	rply1HeaderSize  = 39
	rply1StateAt     = 35 // snap_len
	rply1RecordSize  = 14 // without commands
	rply1CommandSize = 22
	rply1HashBytes   = 8

	// rply1MaxJump is the most ticks that a jump needs no proof for.
	rply1MaxJump = 4096
	// rply1Chain is how many records in a row prove each other.
	rply1Chain = 4
	// rply1Sector is what a lost write blanks at least.
	rply1Sector = 512

	originRPLY1 = "rply1"
	rply1Gap    = "missing in the RPLY1 file"
	rply1End    = "RPLY1 has no end mark"
)

// rply1Codes are the commands that RPLY1's server knows.
var rply1Codes = [...]string{1: "move", 2: "attack", 3: "stop", 4: "attack-move", 5: "build", 6: "train", 7: "surrender"}

// rply1Params name the parameters that a command becomes; a sixth, the
// command's own tick, follows where it differs from the record's.
var rply1Params = [...]string{"player", "unit", "tx", "ty", "target"}

// rply1Book is the code book of every replay that was RPLY1.
func rply1Book() *CodeBook {
	book := &CodeBook{}
	for code, name := range rply1Codes {
		if name == "" {
			continue
		}
		info := CodeInfo{Code: uint16(code), Name: name}
		for _, p := range rply1Params {
			info.Params = append(info.Params, ParamInfo{Name: p, Type: "int"})
		}
		book.Codes = append(book.Codes, info)
	}
	return book
}

// rply1Header is the header without its magic.
type rply1Header struct {
	proto      uint16
	seed       uint64
	rate       uint16
	start      int64 // seconds since 1970
	players    uint8
	mapW, mapH int32
	snapshot   uint32 // its length
}

func parseRPLY1Header(b []byte) rply1Header {
	le := binary.LittleEndian
	return rply1Header{proto: le.Uint16(b[6:]), seed: le.Uint64(b[8:]), rate: le.Uint16(b[16:]), start: int64(le.Uint64(b[18:])),
		players: b[26], mapW: int32(le.Uint32(b[27:])), mapH: int32(le.Uint32(b[31:])), snapshot: le.Uint32(b[rply1StateAt:])}
}

func (h *rply1Header) append(dst []byte) []byte {
	le := binary.LittleEndian
	dst = append(dst, rply1Magic...)
	dst = le.AppendUint16(dst, h.proto)
	dst = le.AppendUint64(dst, h.seed)
	dst = le.AppendUint16(dst, h.rate)
	dst = le.AppendUint64(dst, uint64(h.start))
	dst = append(dst, h.players)
	dst = le.AppendUint32(dst, uint32(h.mapW))
	dst = le.AppendUint32(dst, uint32(h.mapH))
	return le.AppendUint32(dst, h.snapshot)
}

// metadata is what the header says. What has no place in it stays in the
// origin.
func (h *rply1Header) metadata(first Tick) *Metadata {
	m := &Metadata{Seed: h.seed, Map: fmt.Sprintf("%dx%d", h.mapW, h.mapH), FirstTick: first, HashBytes: rply1HashBytes, Width: Width16,
		Labels: []Label{{Key: "players", Value: strconv.Itoa(int(h.players))}},
		Origin: Origin{Format: originRPLY1, Header: h.append(nil)}}
	if h.rate > 0 {
		m.TickRate = Rate{Num: uint32(h.rate), Den: 1}
	}
	if micros := h.start * 1_000_000; micros/1_000_000 == h.start {
		m.StartedAt = micros
	}
	return m
}

// rply1Record is one tick of a file in memory.
type rply1Record struct {
	tick    uint32
	at, end int
}

// rply1 is an RPLY1 file in memory.
type rply1 struct {
	b      []byte
	header rply1Header
	first  int // the place of the first record
}

// loadRPLY1 reads a whole file, which must not be larger than
// MaxUnwrapped, and its header.
func loadRPLY1(src io.ReaderAt, size int64) (*rply1, error) {
	if size > MaxUnwrapped {
		return nil, fmt.Errorf("%w: %d bytes of rply1, the most is %d", ErrLimit, size, MaxUnwrapped)
	}
	f := &rply1{b: make([]byte, size)}
	if err := readFull(src, f.b, 0); err != nil {
		return nil, err
	}
	if n := min(len(f.b), len(rply1Magic)); n == 0 || string(f.b[:n]) != rply1Magic[:n] {
		return nil, notReplay(f.b[:min(len(f.b), HeaderSize)])
	}
	if len(f.b) < rply1HeaderSize {
		return nil, &TornError{Size: size}
	}
	f.header = parseRPLY1Header(f.b)
	f.first = rply1HeaderSize + int(f.header.snapshot)
	return f, nil
}

// checkSnapshot tells whether the snapshot's length can be right.
func (f *rply1) checkSnapshot() error {
	n := f.header.snapshot
	if n > MaxKeyframe {
		return corrupt(rply1StateAt, "snapshot length %d, the most is %d", n, MaxKeyframe)
	}
	if f.first <= len(f.b) {
		return nil
	}
	if at, found := f.hunt(rply1HeaderSize); found {
		return corrupt(rply1StateAt, "snapshot length %d runs past the end of the file, but ticks begin at offset %d", n, at)
	}
	return &TornError{Size: int64(len(f.b))}
}

func (f *rply1) snapshot() []byte { return f.b[rply1HeaderSize:f.first:f.first] }

// record reads the record at offset at; false where it does not fit.
func (f *rply1) record(at int) (rply1Record, bool) {
	if len(f.b)-at < rply1RecordSize {
		return rply1Record{}, false
	}
	end := at + rply1RecordSize + int(binary.LittleEndian.Uint16(f.b[at+4:]))*rply1CommandSize
	return rply1Record{tick: binary.LittleEndian.Uint32(f.b[at:]), at: at, end: end}, end <= len(f.b)
}

func (f *rply1) hash(r rply1Record) uint64 {
	return binary.LittleEndian.Uint64(f.b[r.end-rply1HashBytes:])
}

func (f *rply1) commands(r rply1Record) []byte { return f.b[r.at+6 : r.end-rply1HashBytes] }

// chain tells whether rply1Chain records stand in a row from offset at on,
// each at most jump ticks after the one before.
func (f *rply1) chain(at int, jump uint32) bool {
	r, ok := f.record(at)
	for i := 1; ok && i < rply1Chain; i++ {
		var next rply1Record
		if next, ok = f.record(r.end); !ok || next.tick <= r.tick || next.tick-r.tick > jump {
			return false
		}
		r = next
	}
	return ok
}

// hunt looks for a chain of consecutive ticks at or after offset at, up to
// a second header or the end of the file: where it stopped, and whether it
// found one. A blank record begins none: zeros before the first tick would
// look like a tick 0.
func (f *rply1) hunt(at int) (int, bool) {
	for ; at+rply1Chain*rply1RecordSize <= len(f.b); at++ {
		if f.secondHeader(at) {
			return at, false
		}
		if f.chain(at, 1) && !f.blank(at) {
			return at, true
		}
	}
	return len(f.b), false
}

// blank tells whether the record at offset at is nothing but zeros.
func (f *rply1) blank(at int) bool {
	return zeros(f.b[at:at+rply1RecordSize]) == rply1RecordSize
}

// secondHeader tells whether another file begins at offset at.
func (f *rply1) secondHeader(at int) bool {
	return at >= rply1HeaderSize && bytes.HasPrefix(f.b[at:], []byte(rply1Magic))
}

// follows tells whether the record at offset at can follow the tick last.
func (f *rply1) follows(at int, tick, last uint32) bool {
	return tick > last && (tick-last <= rply1MaxJump || f.chain(at, rply1MaxJump))
}

// zeros counts the zero bytes that b begins with.
func zeros(b []byte) int {
	for i, x := range b {
		if x != 0 {
			return i
		}
	}
	return len(b)
}

// blankFrom is where a lost write began whose zeros reach up to offset at:
// at a sector's boundary inside of r, the record before, or at.
func (f *rply1) blankFrom(r rply1Record, at int) int {
	if at >= len(f.b) || f.b[at] != 0 {
		return at
	}
	start := at
	for start > r.at+1 && f.b[start-1] == 0 {
		start--
	}
	return min(at, (start+rply1Sector-1)/rply1Sector*rply1Sector)
}

// verdict says what the bytes after the records are: nothing, a cut, or
// damage. last is the last record, if there is one.
func (f *rply1) verdict(records []rply1Record, at int) error {
	rest := f.b[at:]
	if len(rest) == 0 {
		return nil
	}
	var last rply1Record
	if len(records) > 0 {
		last = records[len(records)-1]
	}
	if zeros(rest) == len(rest) || len(rest) < 4 {
		return f.torn(records, at)
	}
	tick := binary.LittleEndian.Uint32(rest)
	switch {
	case f.secondHeader(at):
		return corrupt(at, "a second file begins here: tick %d out of order after %d; cut the file here to keep the first one", tick, last.tick)
	case len(records) > 0 && !f.follows(at, tick, last.tick):
		return f.outOfOrder(last, at, tick)
	}
	if from, found := f.hunt(at + rply1RecordSize); found {
		return corrupt(at+4, "the commands of tick %d run past the end of the file, but ticks follow at offset %d", tick, from)
	}
	return f.torn(records, at)
}

func (f *rply1) outOfOrder(last rply1Record, at int, tick uint32) error {
	if blank := f.blankFrom(last, at); blank < at {
		return corrupt(blank, "zeros inside the record of tick %d: tick %d out of order at offset %d", last.tick, tick, at)
	}
	what := "tick %d out of order after %d"
	if tick > last.tick {
		what = "tick %d out of order after %d: no other ticks follow such a jump"
	}
	return corrupt(at, what, tick, last.tick)
}

func (f *rply1) torn(records []rply1Record, at int) error {
	e := &TornError{Offset: int64(at), Size: int64(len(f.b)), Ticks: uint64(len(records))}
	if len(records) > 0 {
		e.NextTick = Tick(records[len(records)-1].tick) + 1
	}
	return e
}

// records gives every record up to a cut, which is returned as a
// TornError, or all that damage allows with a CorruptError.
func (f *rply1) records() ([]rply1Record, error) {
	var list []rply1Record
	at := f.first
	for {
		r, fits := f.record(at)
		if !fits || len(list) > 0 && !f.follows(at, r.tick, list[len(list)-1].tick) {
			break
		}
		list = append(list, r)
		at = r.end
	}
	if n := len(list); n > 0 && at < len(f.b) && f.blankFrom(list[n-1], at) < at && zeros(f.b[at:]) == len(f.b)-at {
		at = list[n-1].at
		list = list[:n-1]
		return list, f.torn(list, at)
	}
	return list, f.verdict(list, at)
}

// readRPLY1 turns an RPLY1 file into a finished RPLY2 one. A cut file gives
// its whole ticks and a TornError.
func readRPLY1(src *io.SectionReader, out *Buffer) error {
	f, err := loadRPLY1(src, src.Size())
	if err != nil {
		return err
	}
	if err := f.checkSnapshot(); err != nil {
		return err
	}
	records, cut := f.records()
	if _, torn := cut.(*TornError); cut != nil && !torn {
		return cut
	}
	if err := f.transcode(records, out); err != nil {
		return err
	}
	return cut
}

func (f *rply1) transcode(records []rply1Record, out *Buffer) error {
	var first Tick
	if len(records) > 0 {
		first = Tick(records[0].tick)
	}
	w, err := NewWriter(out, f.header.metadata(first), rply1Book())
	if err != nil {
		return err
	}
	if err := w.Keyframe(Keyframe{NextTick: first, State: f.snapshot()}); err != nil {
		return err
	}
	for _, r := range records {
		if err := f.transcodeTick(w, r); err != nil {
			return fmt.Errorf("tick %d at offset %d: %w", r.tick, r.at, err)
		}
	}
	return w.Finish(EndUnfinished, rply1End)
}

func (f *rply1) transcodeTick(w *Writer, r rply1Record) error {
	tick := Tick(r.tick)
	if due := w.NextTick(); tick > due {
		if err := w.Gap(Gap{First: due, Last: tick - 1, Reason: rply1Gap, ByRecorder: true}); err != nil {
			return err
		}
	}
	var params [6]Value
	for c := f.commands(r); len(c) > 0; c = c[rply1CommandSize:] {
		if err := w.Step(uint16(c[1]), rply1Values(&params, c, r.tick)...); err != nil {
			return err
		}
	}
	if err := w.EndTick(); err != nil {
		return err
	}
	return w.Hash(tick, binary.BigEndian.AppendUint64(nil, f.hash(r)))
}

// rply1Values gives the parameters of the command at c[0:] of a record of
// tick.
func rply1Values(params *[6]Value, c []byte, tick uint32) []Value {
	le := binary.LittleEndian
	own := le.Uint32(c[18:])
	*params = [6]Value{Int(int64(c[0])), Int(int64(le.Uint32(c[2:]))), Int(int64(int32(le.Uint32(c[6:])))),
		Int(int64(int32(le.Uint32(c[10:])))), Int(int64(le.Uint32(c[14:]))), Int(int64(own))}
	if own == tick {
		return params[:5]
	}
	return params[:]
}
