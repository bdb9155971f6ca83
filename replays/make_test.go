package replays

import (
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"reprise/format"
)

var add = flag.Bool("add", false, "write samples that are not there yet, and their sums")

// sample is one file. make gives the same bytes on every call of one version
// of the format's writers; what stands in the folder was made by the version
// that released it.
type sample struct {
	name string
	make func() []byte
}

// samples are all files but the areas of saveStates. Entries are added, never
// changed.
var samples = []sample{
	{"sealed.rply", func() []byte { return sealed(everything()) }},
	{"sealed-8bit.rply", func() []byte { return sealed(narrow()) }},
	{"live.rply", func() []byte { return live(everything()) }},
	{"torn.rply", func() []byte { return cut(live(everything()), 7) }},
	{"torn-zeros.rply", func() []byte { return append(live(everything()), make([]byte, 100)...) }},
	{"torn-footer.rply", func() []byte { return cut(sealed(everything()), 10) }},
	{"unfinished.rply", func() []byte { return finished(everything(), format.EndUnfinished, "producer gone for 5m0s") }},
	{"no-ticks.rply", func() []byte { return sealed(&match{meta: format.Metadata{Game: "sample", Width: format.Width16}}) }},
	{"one-tick.rply", func() []byte { return sealed(oneTick()) }},
	{"turns.rply", func() []byte { return sealed(turns()) }},
	{"empty-runs.rply", func() []byte { return sealed(emptyRuns()) }},
	{"late-ticks.rply", func() []byte { return sealed(beyond32Bits()) }},
	{"other-encodings.rply", otherEncodings},
	{"keyframe-parts.rply", keyframeParts},
	{"newer-minor.rply", newerMinor},
	{"sealed.rply.zst", func() []byte { return zst(sealed(everything())) }},
	{"sealed.rply.gz", func() []byte { return gz(sealed(everything())) }},
	{"lines.jsonl", func() []byte { return lines(sealed(everything())) }},
	{"lines-foreign.jsonl", func() []byte { return []byte(foreignLines) }},
	{"lines-torn.jsonl", func() []byte { return cut([]byte(foreignLines), 9) }},
	{"lines.jsonl.gz", func() []byte { return gz(lines(sealed(everything()))) }},
	{"rply1.rply", rply1},
	{"rply1-torn.rply", func() []byte { return cut(rply1(), 5) }},
	{"rply1-no-records.rply", func() []byte { return rply1()[:39+4] }},
	{"archive-fast.rply", func() []byte { return archived(sealed(everything()), format.ArchiveFast, 1) }},
	{"archive.rply", func() []byte { return archived(sealed(everything()), format.ArchiveDefault, 1) }},
	{"archive-max.rply", func() []byte { return archived(sealed(everything()), format.ArchiveMax, 1) }},
	{"archive-long.rply", func() []byte { return archived(sealed(long()), format.ArchiveDefault, 1) }},
	{"archive-long-max.rply", func() []byte { return archived(sealed(long()), format.ArchiveMax, 1) }},
	{"archive-thinned.rply", func() []byte { return archived(sealed(long()), format.ArchiveDefault, 8) }},
	{"signed.rply", func() []byte { return signed(sealed(everything())) }},
	{"signed-archive.rply", func() []byte { return archived(signed(sealed(everything())), format.ArchiveDefault, 1) }},
	{"redacted.rply", func() []byte { return redacted(signed(sealed(everything()))) }},
	{"archive-sparse.rply", func() []byte { return archived(sealed(emptyRuns()), format.ArchiveDefault, 1) }},
	{"archive-keyframes.rply", func() []byte { return archived(sealed(stateful()), format.ArchiveDefault, 1) }},
	{"thinned.rply", func() []byte { return unarchived(archived(sealed(long()), format.ArchiveDefault, 8)) }},
	{"archive-lists.rply", func() []byte { return archived(sealed(orders()), format.ArchiveDefault, 1) }},
}

// match is what a sample is made of.
type match struct {
	meta      format.Metadata
	book      *format.CodeBook
	salt      []byte
	players   []format.PlayerEvent
	marks     []format.Mark
	reports   []format.Report
	keyframes []format.Keyframe
	ticks     []matchTick
}

type matchTick struct {
	steps []format.Step
	hash  []byte
	// late hashes come after the next tick's chunk.
	late bool
	time int64 // -1 for none
	// gap stands in the tick's place.
	gap *format.Gap
	// empty is a number of ticks without anything.
	empty int
}

func act(code uint16, params ...format.Value) format.Step {
	return format.Step{Code: code, Params: params}
}

// everything has one of all that a replay can hold.
func everything() *match {
	return &match{
		meta: format.Metadata{Session: "sample-1.a_B", Game: "sample", Build: "1.2.3", Data: "sha256:00ff", Seed: 1<<64 - 1, Map: "plains é",
			TickRate: format.Rate{Num: 112, Den: 5}, FirstTick: 100, StartedAt: 1777000000_123456, HashBytes: 6,
			HashParts: []format.HashPart{{Name: "world", Bytes: 4}, {Name: "random", Bytes: 2}}, Width: format.Width16,
			Labels: []format.Label{{Key: "mode", Value: "ranked"}, {Key: "mode", Value: "again"}, {Key: "odd \x1b", Value: "\xff\xfe"}},
			Env:    []format.Label{{Key: "cpu", Value: "any"}}},
		book: &format.CodeBook{Codes: []format.CodeInfo{
			{Code: 1, Name: "move", Params: []format.ParamInfo{{Name: "player", Type: "int"}, {Name: "x", Type: "int"}, {Name: "y", Type: "float"}}},
			{Code: 2, Name: "chat", Params: []format.ParamInfo{{Name: "player", Type: "int"}, {Name: "text", Type: "string", Personal: true}}},
			{Code: 3, Name: "roll", Passive: true, Params: []format.ParamInfo{{Name: "values", Type: "ints"}}},
			{Code: 65535, Name: "anything"}}},
		salt: []byte("sixteen salt b's"),
		players: []format.PlayerEvent{{Tick: 100, ID: 1, Name: "Ada", Team: "red"}, {Tick: 100, ID: 2, Name: "\xffBob", Team: "blue"},
			{Tick: 101, ID: 7, Name: "Eve", Observer: true}, {Tick: 104, ID: 2, Leave: true}, {Tick: 108, ID: 2, Name: "Bob", Team: "blue"}},
		marks: []format.Mark{{Tick: 101, Kind: "kill", Player: 1, Text: "first blood"}, {Tick: 100, Kind: "\u202e", Text: "a\nb"}},
		reports: []format.Report{{At: 102, Of: 101, Peer: 1, Hash: []byte{1, 2, 3, 4, 5, 6}}, {At: 103, Of: 101, Peer: 2, Hash: []byte{9}},
			{At: 110, Of: 109, Peer: 1 << 63, Hash: bytes.Repeat([]byte{0xab}, 32)}},
		keyframes: []format.Keyframe{{NextTick: 100, State: []byte("the first state")}, {NextTick: 108, State: []byte{}}},
		ticks: []matchTick{
			{time: 0, hash: []byte{0xa0, 1, 2, 3, 4, 5}, steps: []format.Step{act(1, format.Int(1), format.Int(300), format.Float(-0.5)), act(2, format.Int(2), format.String("hi \u2028"))}},
			{time: 44643, hash: []byte{0xa1, 1, 2, 3, 4, 5}, late: true},
			{time: -1, hash: []byte{0xa2, 1, 2, 3, 4, 5}, steps: everyValue()},
			{gap: &format.Gap{First: 103, Last: 105, Reason: "spool full"}},
			{gap: &format.Gap{First: 106, Last: 107, Reason: "", ByRecorder: true}},
			{time: 267857, steps: []format.Step{act(1), act(3, format.Ints([]int64{6, -6})), act(3)}},
			{time: 267857, hash: []byte{0xa3, 1, 2, 3, 4, 5}, late: true},
			{empty: 3},
			{time: -1, steps: []format.Step{act(65535)}, hash: make([]byte, 6)},
		},
	}
}

// everyValue has every kind of parameter at its borders.
func everyValue() []format.Step {
	huge := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 2040), big.NewInt(1))
	var ints []format.Value
	for _, i := range []int64{0, 1, -1, 127, 128, -128, -129, 32767, 32768, -32768, -32769, 1<<31 - 1, 1 << 31, -1 << 31, -1<<31 - 1,
		1<<32 - 1, 1 << 32, -1<<32 - 1, 1<<53 - 1, 1<<53 + 1, math.MaxInt64, math.MinInt64} {
		ints = append(ints, format.Int(i))
	}
	ints = append(ints, format.Uint(1<<63), format.Uint(math.MaxUint64), format.Number(-(1<<63)*1.5))
	floats := []format.Value{format.Float(0), format.Float(math.Copysign(0, -1)), format.Float(1), format.Float(0.1), format.Float(math.NaN()),
		format.Float(math.Inf(1)), format.Float(math.Inf(-1)), format.Float(math.MaxFloat64), format.Float(5e-324), format.Float(1e21)}
	bigs := []format.Value{format.BigInt(big.NewInt(0)), format.BigInt(big.NewInt(5)), format.BigInt(big.NewInt(-1)), format.BigInt(big.NewInt(-256)),
		format.BigInt(new(big.Int).Lsh(big.NewInt(1), 64)), format.BigInt(new(big.Int).Neg(huge))}
	texts := []format.Value{format.String(""), format.String("hi"), format.String("\ufeffmark"), format.String("\xff\x00"), format.String(strings.Repeat("é", 112)),
		format.String(strings.Repeat("x", 223)), format.String("\U0001f600 \u202e \x1b[31m")}
	others := []format.Value{format.Bool(true), format.Bool(false), format.Bytes(nil), format.Bytes([]byte{0, 255}), format.Ints(nil), format.Ints([]int64{1, -2, 3}),
		format.Ints([]int64{300, -300}), format.Ints([]int64{1 << 31, 0}), format.Ints([]int64{math.MinInt64, math.MaxInt64})}
	many := make([]format.Value, 255)
	for i := range many {
		many[i] = format.Int(int64(i))
	}
	return []format.Step{act(10, ints...), act(11, floats...), act(12, bigs...), act(13, texts...), act(14, others...), act(15, many...), act(256)}
}

func narrow() *match {
	m := everything()
	m.meta.Width = format.Width8
	m.book = nil
	for i := range m.ticks {
		for n := range m.ticks[i].steps {
			m.ticks[i].steps[n].Code &= 255
		}
	}
	return m
}

func oneTick() *match {
	return &match{meta: format.Metadata{Game: "sample", Width: format.Width8, TickRate: format.Rate{Num: 20, Den: 1}},
		ticks: []matchTick{{time: -1, steps: []format.Step{act(42, format.Int(100))}}}}
}

// turns has no clock: a tick is an active step and the passive ones behind it.
func turns() *match {
	m := &match{meta: format.Metadata{Game: "sample-turns", Width: format.Width8, HashBytes: 1}, book: &format.CodeBook{Codes: []format.CodeInfo{
		{Code: 1, Name: "play"}, {Code: 2, Name: "draw", Passive: true}}}}
	for i := range int64(5) {
		m.ticks = append(m.ticks, matchTick{time: -1, hash: []byte{byte(i)}, steps: []format.Step{act(1, format.Int(i)), act(2, format.String("card")), act(2)}})
	}
	return m
}

// emptyRuns has many ticks in few bytes.
func emptyRuns() *match {
	m := &match{meta: format.Metadata{Game: "sample", Width: format.Width16, TickRate: format.Rate{Num: 1000, Den: 3}, FirstTick: 5}}
	for i := range int64(4) {
		m.ticks = append(m.ticks, matchTick{time: -1, empty: 20_000}, matchTick{time: -1, steps: []format.Step{act(uint16(i), format.Int(i))}})
	}
	m.ticks = append(m.ticks, matchTick{empty: 1})
	return m
}

// beyond32Bits has tick numbers and times that need 64 bits.
func beyond32Bits() *match {
	m := oneTick()
	m.meta.FirstTick, m.meta.HashBytes = 1<<32-1, 8
	m.ticks = []matchTick{{time: 1 << 33, hash: []byte("hash 0 8")}, {time: 1<<33 + 5, hash: []byte("hash 1 8")}, {gap: &format.Gap{First: 1<<32 + 1, Last: 1 << 40}},
		{time: 1 << 60, steps: []format.Step{act(1)}}}
	m.keyframes = []format.Keyframe{{NextTick: 1<<40 + 1, State: []byte("behind the gap")}}
	return m
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// write writes all but the end.
func write(m *match) (*format.Buffer, *format.Writer) {
	out := new(format.Buffer)
	w, err := format.NewWriter(out, &m.meta, m.book)
	check(err)
	if m.salt != nil {
		check(w.Players(m.salt, m.players[:2]))
		check(w.Players(nil, m.players[2:]))
	}
	var late []func() error
	for _, t := range m.ticks {
		for _, k := range m.keyframes {
			if k.NextTick == w.NextTick() {
				check(w.Keyframe(k))
			}
		}
		if t.gap != nil {
			check(w.Gap(*t.gap))
			continue
		}
		for range t.empty {
			check(w.EndTick())
		}
		if t.empty > 0 {
			continue
		}
		writeTick(w, t, &late)
	}
	check(w.Flush())
	for _, hash := range late {
		check(hash())
	}
	for _, x := range m.marks {
		check(w.Mark(x))
	}
	if m.reports != nil {
		check(w.Reports(m.reports))
	}
	return out, w
}

func writeTick(w *format.Writer, t matchTick, late *[]func() error) {
	for _, s := range t.steps {
		check(w.Step(s.Code, s.Params...))
	}
	at := w.NextTick()
	if t.time >= 0 {
		check(w.EndTickAt(t.time))
	} else {
		check(w.EndTick())
	}
	switch {
	case t.late:
		*late = append(*late, func() error { return w.Hash(at, t.hash) })
		check(w.Flush())
	case t.hash != nil:
		check(w.Hash(at, t.hash))
	}
}

func live(m *match) []byte {
	out, _ := write(m)
	return out.Bytes()
}

func finished(m *match, state format.EndState, reason string) []byte {
	out, w := write(m)
	check(w.Finish(state, reason))
	return out.Bytes()
}

func sealed(m *match) []byte { return finished(m, format.EndSealed, "") }

func cut(b []byte, n int) []byte { return b[:len(b)-n] }

func zst(b []byte) []byte {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	check(err)
	return enc.EncodeAll(b, nil)
}

func gz(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	check(errors.Join(err, w.Close()))
	return out.Bytes()
}

func opened(b []byte) *format.File {
	f, err := format.NewFile(bytes.NewReader(b), int64(len(b)))
	check(err)
	return f
}

func lines(b []byte) []byte {
	var out bytes.Buffer
	check(format.WriteJSONL(&out, opened(b), format.JSONLWriteOptions{}))
	return out.Bytes()
}

// unarchived is an archive that was taken back.
func unarchived(b []byte) []byte {
	var out bytes.Buffer
	check(format.Unarchive(opened(b), &out))
	return out.Bytes()
}

func archived(b []byte, level format.ArchiveLevel, hashEvery uint64) []byte {
	var out bytes.Buffer
	_, err := format.Archive(opened(b), &out, format.ArchiveOptions{Level: level, HashEvery: hashEvery})
	check(err)
	return out.Bytes()
}

// signed signs with a key that everybody can know.
func signed(b []byte) []byte {
	var out bytes.Buffer
	check(format.Sign(opened(b), ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), &out))
	return out.Bytes()
}

func redacted(b []byte) []byte {
	var out format.Buffer
	_, err := format.Redact(opened(b), format.RedactOptions{MarkTexts: true}, &out)
	check(err)
	return out.Bytes()
}

// long is long enough for every transform of an archive: several codes and
// players whose parameters grow, repeat and jump.
func long() *match {
	m := &match{meta: format.Metadata{Session: "sample-long", Game: "sample", TickRate: format.Rate{Num: 20, Den: 1}, HashBytes: 4, Width: format.Width16}}
	x := uint32(1)
	for n := range 90 {
		t := matchTick{time: -1}
		for range n % 3 {
			x = x*1664525 + 1013904223
			player := int64(1 + x>>30)
			switch x >> 20 & 3 {
			case 0:
				t.steps = append(t.steps, act(1, format.Int(player), format.Int(int64(n)), format.Int(int64(x>>22))))
			case 1:
				t.steps = append(t.steps, act(2, format.Int(player), format.String("unit"), format.Float(float64(n)/4)))
			default:
				t.steps = append(t.steps, act(300, format.Int(player), format.Bool(x>>19&1 == 1)))
			}
		}
		x = x*1664525 + 1013904223
		t.hash = binary.LittleEndian.AppendUint32(nil, x)
		m.ticks = append(m.ticks, t)
	}
	return m
}

// orders has steps with a counted list of units, enough for an archive to see
// them.
func orders() *match {
	m := &match{meta: format.Metadata{Session: "sample-orders", Game: "sample", TickRate: format.Rate{Num: 10, Den: 1}, Width: format.Width8}}
	x := uint32(1)
	for n := range 16 {
		t := matchTick{time: -1}
		for step := range 4 {
			count := (n + step) % 4
			params := []format.Value{format.Int(int64(1 + step%2)), format.Int(int64(count))}
			for range count {
				x = x*1664525 + 1013904223
				params = append(params, format.Int(int64(x>>17)))
			}
			t.steps = append(t.steps, act(4, append(params, format.Bool(true), format.Int(int64(300+n)))...))
		}
		m.ticks = append(m.ticks, t)
	}
	return m
}

// foreignLines are of a program that knows nothing of this format but the
// grammar of its lines.
const foreignLines = `{"game":"other","source":"a tool","licence":"MIT","tick_rate":22.4,"players":["x","y"],"extra":{"deep":[1,null]}}
{"t":3,"p":1,"c":7,"a":[1,-2.5,"x",true,[5,6],{"bigint":"123456789012345678901234567890"}]}
{"t":3,"p":2,"c":7,"a":[]}

{"a":[18446744073709551615],"c":9,"p":"name","t":4}
{"t":4,"hash":"00ff"}
{"t":9,"p":1,"of":4,"h":"0102"}
{"mark":"note","t":9,"text":"\u00e9"}
{"t":12,"p":1,"c":7}
`

// stateful has keyframes that compress, and one that does not.
func stateful() *match {
	m := narrow()
	m.keyframes = []format.Keyframe{{NextTick: m.meta.FirstTick, State: bytes.Repeat([]byte("unit 17 stands at 3,4; "), 60)},
		{NextTick: m.meta.FirstTick + 1, State: []byte("short")}}
	return m
}

// chunks frames chunks behind a file header.
func chunks(list ...format.Chunk) []byte {
	b := format.AppendHeader(nil)
	for _, c := range list {
		b = format.AppendChunk(b, c.Type, c.Seq, c.Body)
	}
	return b
}

// finishedChunks adds the footer that belongs to chunks.
func finishedChunks(list ...format.Chunk) []byte {
	b := chunks(list...)
	t := format.NewTracker()
	at := int64(format.HeaderSize)
	for _, c := range list {
		check(t.Add(c, at))
		at += int64(len(format.AppendChunk(nil, c.Type, c.Seq, c.Body)))
	}
	footer, err := t.Footer(bytes.NewReader(b), int64(len(b)), format.EndSealed, "")
	check(err)
	return append(b, footer...)
}

func sampleMeta() format.Chunk {
	return format.Chunk{Type: format.ChunkMeta, Body: format.AppendMeta(nil, &format.Metadata{Game: "sample", Width: format.Width8})}
}

// otherEncodings has parameters as a writer need not write them, but a reader
// takes them: wider than needed, with zeros, out of range.
func otherEncodings() []byte {
	params := []byte{
		2, 0, 5, // int16 5
		3, 0, 0, 0, 5, // int32 5
		4, 0, 0, 0, 5, 0, 0, 0, 0, // int64 5
		5, 0, 0, 0, 0, 0, 0, 0, 0, // negative int64 of magnitude 0
		5, 255, 255, 255, 255, 255, 255, 255, 255, // -(2^64 - 1)
		0, 2, // a boolean of neither value: false
		6, 0x7f, 0xf8, 0, 0, 0, 0, 0, 1, // another NaN
		7, 0, // a bigint without bytes: 0
		7, 3, 5, 0, 0, // a bigint with zeros at its end
		8, 1, 0, // a negative bigint of magnitude 0
		9, 0, 0, 0, 2, 'h', 'i', // a long string that is short
		11, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, // a list wider than needed
	}
	body := []byte{0, 1, 0, 1} // first tick, ticks, flags, steps
	body = binary.AppendUvarint(body, uint64(len(params)))
	body = append(body, 12, 77)
	body = append(append(body, params...), 1)
	return finishedChunks(sampleMeta(), format.Chunk{Type: format.ChunkTicks, Seq: 1, Body: body})
}

// keyframeParts has the parts of two keyframes mixed, behind later ticks, and
// one keyframe that is never whole.
func keyframeParts() []byte {
	part := func(seq, id uint64, next format.Tick, state string, from, to int) format.Chunk {
		return format.Chunk{Type: format.ChunkKeyframe, Seq: seq, Body: format.AppendKeyframePart(nil, format.KeyframePart{ID: id, NextTick: next,
			Total: uint64(len(state)), Offset: uint64(from), Data: []byte(state[from:to])})}
	}
	ticks := format.Chunk{Type: format.ChunkTicks, Seq: 3, Body: []byte{0, 4, 0, 0, 0, 6}} // four empty ticks
	return finishedChunks(sampleMeta(), part(1, 9, 0, "state zero", 0, 4), part(2, 4, 2, "before two", 0, 3), ticks,
		part(4, 9, 0, "state zero", 4, 10), part(5, 4, 2, "before two", 3, 9), part(6, 5, 3, "half", 0, 2), part(7, 4, 2, "before two", 9, 10))
}

// newerMinor has a higher minor version, an unknown field of the metadata and
// an unknown chunk that a reader may skip.
func newerMinor() []byte {
	meta := sampleMeta()
	meta.Body = append(meta.Body, 40, 3, 'n', 'e', 'w')
	b := finishedChunks(meta, format.Chunk{Type: 0xf0, Seq: 1, Body: []byte("of a newer version")}, format.Chunk{Type: format.ChunkTicks, Seq: 2, Body: []byte{0, 1, 0, 0, 0, 0}})
	b[11] = 9
	// The file header is the 12 bytes and their CRC-32C, as in each version.
	binary.BigEndian.PutUint32(b[12:], checksum(b[:12]))
	return b
}

// rply1 is written byte by byte, by the table of the specification.
func rply1() []byte {
	le := binary.LittleEndian
	b := append([]byte("RPLY1\x00"), 1, 0)
	b = le.AppendUint64(b, 12345)
	b = le.AppendUint16(b, 20)
	b = le.AppendUint64(b, 1777000000)
	b = append(b, 2)
	b = le.AppendUint32(b, 64)
	b = le.AppendUint32(b, 48)
	b = append(le.AppendUint32(b, 4), "snap"...)
	for _, tick := range []uint32{1, 2, 4, 5, 6} { // tick 3 is missing
		n := tick % 3
		b = le.AppendUint16(le.AppendUint32(b, tick), uint16(n))
		for i := range n {
			own := tick
			if tick == 5 && i == 1 {
				own = 4
			}
			b = append(b, byte(1+i), byte(1+tick))
			for _, v := range []uint32{7 * tick, 1 << 16, 0xffff0000, i, own} {
				b = le.AppendUint32(b, v)
			}
		}
		b = le.AppendUint64(b, 0x0102030405060700+uint64(tick))
	}
	return b
}

// addNew writes what is not there, and never touches what is.
func addNew(t *testing.T) {
	for _, s := range samples {
		b := s.make()
		if !bytes.Equal(b, s.make()) {
			t.Fatalf("%s: two calls make different bytes", s.name)
		}
		addFile(t, s.name, b)
		addFile(t, s.name+".json", read(t, opened(b)).document())
	}
	state := format.NewArray(format.Options{Width: format.Width16})
	for _, s := range everyValue() {
		state.Add(s.Code, s.Params...)
	}
	s := state.SaveState()
	addFile(t, "savestate.commands", s.CommandArray)
	addFile(t, "savestate.params", s.ParamArray)
	addFile(t, "savestate.commands.json", read(t, imported(t, s.CommandArray, s.ParamArray)).document())
	addSums(t)
}

func addFile(t *testing.T, name string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return
	}
	if err == nil {
		_, err = f.Write(b)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("added %s", name)
}

// addSums adds lines for files that have none.
func addSums(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile("SHA256SUMS")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	sums := parseSums(t, string(b))
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !isSample(e.Name()) || sums[e.Name()] != "" {
			continue
		}
		b, err := os.ReadFile(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		sums[e.Name()] = fmt.Sprintf("%x", sha256.Sum256(b))
	}
	var names []string
	for name := range sums {
		names = append(names, name)
	}
	slices.Sort(names)
	var out strings.Builder
	for _, name := range names {
		fmt.Fprintf(&out, "%s  %s\n", sums[name], name)
	}
	if err := os.WriteFile("SHA256SUMS", []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
