package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
)

// place is one chunk of a file as an independent scan finds it.
type place struct {
	typ        ChunkType
	start, end int
	ticks      int
	first      Tick
}

// places finds the chunks of an undamaged file.
func places(t testing.TB, b []byte, hashBytes int) []place {
	t.Helper()
	var list []place
	for at := HeaderSize; at < len(b); {
		c, n, err := ParseChunk(b[at:])
		if err != nil {
			t.Fatal(err)
		}
		p := place{typ: c.Type, start: at, end: at + n}
		if c.Type == ChunkTicks {
			batch, err := ParseBatch(c.Body, hashBytes)
			if err != nil {
				t.Fatal(err)
			}
			p.ticks, p.first = batch.Ticks, batch.First
		}
		list = append(list, p)
		at += n
	}
	return list
}

// wholeTicks counts the ticks in the chunks that end at or before cut.
func wholeTicks(list []place, cut int) (ticks uint64) {
	for _, p := range list {
		if p.end <= cut {
			ticks += uint64(p.ticks)
		}
	}
	return ticks
}

func TestCutAtEveryByte(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 1)
	list := places(t, b, s.meta.HashBytes)
	opening := list[0].end
	for cut := range len(b) + 1 {
		part := b[:cut]
		want := wholeTicks(list, cut)
		f, err := NewFile(bytes.NewReader(part), int64(cut))
		var out Buffer
		report, rerr := Repair(bytes.NewReader(part), int64(cut), &out)
		if cut < opening {
			if cut == 0 && !errors.Is(err, ErrNotReplay) || cut > 0 && !errors.Is(err, ErrTorn) {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			if rerr == nil {
				t.Fatalf("cut at %d: repaired without an opening: %+v", cut, report)
			}
			continue
		}
		if err != nil || f.Summary().Ticks != want {
			t.Fatalf("cut at %d of %d: %v, want %d ticks", cut, len(b), err, want)
		}
		// A live file may end behind any chunk; once there is an end, the
		// footer belongs to it.
		ended := cut >= list[len(list)-5].end
		boundary := slices.ContainsFunc(list, func(p place) bool { return p.end == cut })
		if whole := boundary && !ended || cut == len(b); (f.Torn == nil) != whole {
			t.Fatalf("cut at %d: torn %v, whole %v", cut, f.Torn, whole)
		}
		if ticks, err := readTicks(f.Reader()); err != nil || uint64(len(ticks)) != want {
			t.Fatalf("cut at %d: %d ticks, error %v, want %d", cut, len(ticks), err, want)
		}
		if rerr != nil || report.Ticks != want {
			t.Fatalf("cut at %d: repair kept %+v, error %v, want %d ticks", cut, report, rerr, want)
		}
		checkRepaired(t, fmt.Sprintf("cut at %d", cut), out.Bytes(), want)
		if report.Whole != ended || ended && !bytes.Equal(out.Bytes(), b) {
			t.Fatalf("cut at %d: whole %v, want %v", cut, report.Whole, ended)
		}
	}
}

// checkRepaired checks that a repaired file stands every test, and repairs
// to itself.
func checkRepaired(t *testing.T, name string, b []byte, ticks uint64) {
	t.Helper()
	f, err := NewFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatalf("%s: the repaired file does not open: %v", name, err)
	}
	if _, err := f.Check(); err != nil {
		t.Fatalf("%s: the repaired file: %v", name, err)
	}
	if got, err := readTicks(f.Reader()); err != nil || uint64(len(got)) != ticks || f.Summary().Ticks != ticks {
		t.Fatalf("%s: the repaired file reads %d ticks, error %v, want %d", name, len(got), err, ticks)
	}
	var again Buffer
	if report, err := Repair(bytes.NewReader(b), int64(len(b)), &again); err != nil || !report.Whole || !bytes.Equal(again.Bytes(), b) {
		t.Fatalf("%s: repairing twice: %+v, %v", name, report, err)
	}
}

func TestEveryBitThatFlipsIsNoticed(t *testing.T) {
	long(t)
	s := smallSession()
	_, b := s.file(t, 1)
	list := places(t, b, s.meta.HashBytes)
	for bit := range 8 * len(b) {
		hurt := bytes.Clone(b)
		hurt[bit/8] ^= 1 << (bit % 8)
		f, err := NewFile(bytes.NewReader(hurt), int64(len(hurt)))
		if err == nil {
			_, err = f.Check()
		}
		if err == nil {
			t.Fatalf("bit %d of byte %d: not noticed", bit%8, bit/8)
		}
		if !IsDamage(err) {
			t.Fatalf("bit %d of byte %d: %v is no damage", bit%8, bit/8, err)
		}
		var out Buffer
		if report, err := Repair(bytes.NewReader(hurt), int64(len(hurt)), &out); err == nil {
			want := wholeTicks(list, len(b))
			for _, p := range list {
				if bit/8 >= p.start && bit/8 < p.end {
					want -= uint64(p.ticks)
				}
			}
			if report.Ticks != want {
				t.Fatalf("bit %d of byte %d: repair kept %d ticks, want %d: %+v", bit%8, bit/8, report.Ticks, want, report)
			}
			if bit%8 == 0 { // the other bits lose the same chunk
				checkRepaired(t, fmt.Sprintf("byte %d", bit/8), out.Bytes(), want)
			}
		} else if bit/8 >= list[0].end {
			t.Fatalf("bit %d of byte %d: nothing could be kept: %v", bit%8, bit/8, err)
		}
	}
}

func TestRepairMendsTheFileHeader(t *testing.T) {
	_, b := smallSession().file(t, 2)
	for at := len(Magic); at < HeaderSize; at++ {
		hurt := bytes.Clone(b)
		hurt[at] ^= 0x40
		var out Buffer
		report, err := Repair(bytes.NewReader(hurt), int64(len(hurt)), &out)
		if err != nil || !report.Whole || len(report.Losses) != 1 || !bytes.Equal(out.Bytes(), b) {
			t.Errorf("byte %d: %+v, %v", at, report, err)
		}
	}
}

func TestRepairKeepsLateHashesOfKeptTicks(t *testing.T) {
	s := &session{meta: Metadata{Width: Width8, HashBytes: 1}, end: End{State: EndSealed}, late: map[Tick]bool{}}
	for i := range Tick(4) {
		s.ticks = append(s.ticks, modelTick{tick: i, hash: []byte{byte(i)}})
	}
	var out Buffer
	w, err := NewWriter(&out, &s.meta, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range s.ticks {
		err = errors.Join(err, w.EndTick(), w.Flush())
	}
	var late []TickHash
	for _, tick := range s.ticks {
		late = append(late, TickHash{tick.tick, tick.hash})
	}
	err = errors.Join(err, w.next(ChunkHashes, AppendHashes(nil, late)), w.Finish(EndSealed, ""))
	if err != nil {
		t.Fatal(err)
	}
	b := out.Bytes()
	b[places(t, b, 1)[2].start+12] ^= 1 // in the chunk of tick 1
	var repaired Buffer
	report, err := Repair(bytes.NewReader(b), int64(len(b)), &repaired)
	if err != nil || report.Ticks != 3 || len(report.Gaps) != 1 || report.Gaps[0].First != 1 || report.Gaps[0].Last != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	ticks, err := readTicks(openBytes(t, repaired.Bytes()).Reader())
	if d := differs(ticks, slices.Delete(s.ticks, 1, 2)); err != nil || d != "" {
		t.Error(d, err)
	}
}

func TestRepairStopsAtASecondFile(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 2)
	two := append(bytes.Clone(b), b...)
	if _, err := NewFile(bytes.NewReader(two), int64(len(two))); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), fmt.Sprintf("offset %d", len(b))) {
		t.Errorf("two files in one: %v, want damage at offset %d", err, len(b))
	}
	var out Buffer
	report, err := Repair(bytes.NewReader(two), int64(len(two)), &out)
	if err != nil || !bytes.Equal(out.Bytes(), b) {
		t.Errorf("%+v, %v: not the first file", report, err)
	}
}

func TestTailOfZerosIsTorn(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 1)
	list := places(t, b, s.meta.HashBytes)
	live := b[:list[len(list)-5].start]
	for _, zeros := range []int{1, 9, 4096, 200_000} {
		tail := append(bytes.Clone(live), make([]byte, zeros)...)
		f := openBytes(t, tail)
		if f.Torn == nil || f.Torn.Offset != int64(len(live)) || f.Torn.NextTick != 106 || f.Summary().Ticks != 4 {
			t.Errorf("%d zeros: torn %+v with %d ticks", zeros, f.Torn, f.Summary().Ticks)
		}
		if _, err := f.Check(); !errors.Is(err, ErrTorn) {
			t.Errorf("%d zeros: check says %v", zeros, err)
		}
	}
	after := append(bytes.Clone(b), 0, 0, 0)
	if _, err := NewFile(bytes.NewReader(after), int64(len(after))); !errors.Is(err, ErrCorrupt) {
		t.Errorf("zeros behind a finished file: %v, want damage", err)
	}
}

// withChunk puts a chunk in front of place i of a file, without its footer.
func withChunk(t *testing.T, s *session, b []byte, i int, chunk []byte) []byte {
	t.Helper()
	list := places(t, b, s.meta.HashBytes)
	return slices.Concat(b[:list[i].start], chunk, b[list[i].start:list[len(list)-5].start])
}

func TestUnknownChunks(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 1)
	list := places(t, b, s.meta.HashBytes)
	for i := 1; i < len(list)-5; i++ {
		optional := withChunk(t, s, b, i, AppendChunk(nil, 0xE5, 0, []byte("from a newer minor version")))
		f := openBytes(t, optional)
		if _, err := f.Check(); err != nil || f.Summary().Ticks != 4 || f.Book() == nil {
			t.Fatalf("optional chunk at place %d: %v, %d ticks", i, err, f.Summary().Ticks)
		}
		var out Buffer
		if _, err := Repair(bytes.NewReader(optional), int64(len(optional)), &out); err != nil || !bytes.Contains(out.Bytes(), []byte("from a newer minor version")) {
			t.Fatalf("optional chunk at place %d: repair does not keep it: %v", i, err)
		}
		checkRepaired(t, "optional chunk", out.Bytes(), 4)
		critical := withChunk(t, s, b, i, AppendChunk(nil, 0x65, 0, []byte("needs a newer program")))
		if _, err := NewFile(bytes.NewReader(critical), int64(len(critical))); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "0x65") {
			t.Fatalf("critical chunk at place %d: %v, want newer", i, err)
		}
	}
}

func TestNewerMajorVersion(t *testing.T) {
	_, b := smallSession().file(t, 1)
	b[10]++
	binary.BigEndian.PutUint32(b[12:], chunkSumOf(b[:12]))
	if _, err := NewFile(bytes.NewReader(b), int64(len(b))); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "2.0") {
		t.Errorf("%v, want newer", err)
	}
}

// chunkSumOf is CRC-32C computed bit by bit, as the specification says it.
func chunkSumOf(parts ...[]byte) uint32 {
	crc := ^uint32(0)
	for _, p := range parts {
		for _, x := range p {
			crc ^= uint32(x)
			for range 8 {
				crc = crc>>1 ^ 0x82f63b78*(crc&1)
			}
		}
	}
	return ^crc
}

// TestFieldsWithBadNumbers puts bad numbers in place of every byte where a
// number may stand, with the checksum made right again: a clean error or a
// readable file, within bounded memory, and never a panic.
func TestFieldsWithBadNumbers(t *testing.T) {
	long(t)
	s := smallSession()
	_, b := s.file(t, 2)
	var numbers, fixed [][]byte
	for _, v := range []uint64{0, 1, math.MaxInt32, math.MaxUint32, 1 << 63, math.MaxUint64, uint64(len(b)) + 1} {
		numbers = append(numbers, binary.AppendUvarint(nil, v))
		fixed = append(fixed, binary.BigEndian.AppendUint64(nil, v), binary.BigEndian.AppendUint32(nil, uint32(v)))
	}
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	for _, p := range places(t, b, s.meta.HashBytes) {
		c, _, err := ParseChunk(b[p.start:p.end])
		if err != nil {
			t.Fatal(err)
		}
		numbers := numbers
		if c.Type == ChunkTicks || c.Type == ChunkTrailer {
			numbers = slices.Concat(numbers, fixed)
		}
		// The digests in the footer hold no numbers: there, some places do.
		for at := 0; at <= len(c.Body); at += 1 + len(c.Body)/40 {
			for _, n := range numbers {
				for _, drop := range []int{0, len(n)} {
					body := slices.Concat(c.Body[:at], n, c.Body[min(len(c.Body), at+drop):])
					hurt := slices.Concat(b[:p.start], AppendChunk(nil, c.Type, c.Seq, body), b[p.end:])
					metrics.Read(allocated)
					before := allocated[0].Value.Uint64()
					tryFile(t, hurt)
					metrics.Read(allocated)
					if used := allocated[0].Value.Uint64() - before; used > 40<<20 {
						t.Fatalf("%v chunk, byte %d, number %x: %d bytes allocated", c.Type, at, n, used)
					}
				}
			}
		}
	}
}

// tryFile does all that can be done with any bytes.
func tryFile(t testing.TB, b []byte) {
	t.Helper()
	var out Buffer
	if _, err := Repair(bytes.NewReader(b), int64(len(b)), &out); err == nil {
		if f, err := NewFile(bytes.NewReader(out.Bytes()), int64(len(out.Bytes()))); err != nil {
			t.Fatalf("the repaired file does not open: %v\n%x", err, b)
		} else if _, err := f.Check(); err != nil {
			t.Fatalf("the repaired file: %v\n%x", err, b)
		}
	}
	f, err := NewFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return
	}
	_, _ = f.Check()
	r := f.Reader()
	var rec TickRecord
	for range 100_000 {
		if r.Next(&rec) != nil {
			break
		}
	}
	for i := range f.Summary().Keyframes {
		if i == 8 {
			break
		}
		_, _ = f.Keyframe(i)
	}
	_ = f.Reports(func(Report) error { return nil })
	f.Summary().Roster()
	f.Summary().LastTick()
}

func TestChunkLengthsThatLie(t *testing.T) {
	_, b := smallSession().file(t, 2)
	for _, p := range places(t, b, 4) {
		for _, length := range []uint32{0, 1, math.MaxInt32, math.MaxUint32, MaxBody, MaxBody + 1} {
			hurt := bytes.Clone(b)
			binary.BigEndian.PutUint32(hurt[p.start+2:], length)
			f, err := NewFile(bytes.NewReader(hurt), int64(len(hurt)))
			if err == nil {
				_, err = f.Check()
			}
			if !IsDamage(err) {
				t.Errorf("%v chunk of length %d: %v", p.typ, length, err)
			}
		}
	}
}

func TestSequenceNumberThatNeverEnds(t *testing.T) {
	chunk := append([]byte{chunkMarker, byte(ChunkMark), 0, 0, 0, 0, 0, 0, 0, 0}, bytes.Repeat([]byte{0x80}, 12)...)
	if _, _, err := ParseChunk(chunk); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v, want damage", err)
	}
	if _, _, err := ParseChunk(chunk[:15]); !errors.Is(err, ErrTorn) {
		t.Errorf("cut inside: %v, want torn", err)
	}
}

func TestDamageInTheMiddleIsNotTorn(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 1)
	list := places(t, b, s.meta.HashBytes)
	p := list[len(list)-8]
	hurt := bytes.Clone(b)
	binary.BigEndian.PutUint32(hurt[p.start+2:], uint32(len(b))) // runs past the end
	live := hurt[:list[len(list)-5].start]
	_, err := NewFile(bytes.NewReader(live), int64(len(live)))
	var c *CorruptError
	if !errors.As(err, &c) || c.Offset != int64(p.start) {
		t.Errorf("%v, want damage at offset %d", err, p.start)
	}
}

func TestCheckNamesTheSegmentThatWasChanged(t *testing.T) {
	s := &session{meta: Metadata{Width: Width8, HashBytes: 1}, end: End{State: EndSealed}}
	for i := range Tick(3000) {
		s.ticks = append(s.ticks, modelTick{tick: i, hash: []byte{byte(i)}, steps: []Step{{Code: 1, Params: []Value{Int(7)}}}})
	}
	_, b := s.file(t, 500)
	p := places(t, b, 1)[4] // ticks 1500 to 1999
	c, _, err := ParseChunk(b[p.start:p.end])
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(c.Body, []byte{1, 7})
	c.Body[at+1] = 8 // another argument, with a checksum that fits
	hurt := slices.Concat(b[:p.start], AppendChunk(nil, c.Type, c.Seq, c.Body), b[p.end:])
	_, err = openBytes(t, hurt).Check()
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "the inputs of segment 1 (ticks 1024 to 2047)") {
		t.Errorf("%v", err)
	}
}

// long leaves a test out with -short: under the race detector it takes a
// minute, and there is nothing in it that could race.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: not run with -short")
	}
}
