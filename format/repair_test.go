package format

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestRepairRefusesWhatIsNoReplay(t *testing.T) {
	var out Buffer
	src := []byte("hello, this is text")
	if _, err := Repair(bytes.NewReader(src), int64(len(src)), &out); !errors.Is(err, ErrNotReplay) {
		t.Errorf("%v, want not a replay", err)
	}
	if len(out.Bytes()) > 0 {
		t.Errorf("%d bytes were written", len(out.Bytes()))
	}
}

// rows are a session of five ticks chunks of four ticks each, with a mark
// behind each.
type rows struct {
	s    *session
	b    []byte
	list []place
}

// The chunks of rows by their place; ticks chunk i stands at rowTicks+2i.
const rowTicks = 3

func newRows(t *testing.T) *rows {
	t.Helper()
	s := &session{meta: Metadata{Width: Width8, HashBytes: 1, FirstTick: 100}, end: End{State: EndSealed, Reason: "over"},
		book: &CodeBook{Codes: []CodeInfo{{Code: 1, Name: "move"}}}, salt: testSalt, players: []PlayerEvent{{Tick: 100, ID: 1, Name: "Ada"}}}
	var out Buffer
	w, err := NewWriter(&out, &s.meta, s.book)
	if err != nil {
		t.Fatal(err)
	}
	err = w.Players(s.salt, s.players)
	for i := range Tick(20) {
		m := modelTick{tick: 100 + i, steps: []Step{{Code: 1, Params: []Value{Int(int64(i)), String("step")}}}, hash: []byte{byte(i)}, time: int64(i), timed: true}
		s.ticks = append(s.ticks, m)
		err = errors.Join(err, s.writeTick(w, m))
		if i%4 == 3 {
			mark := Mark{Tick: m.tick, Kind: "four", Text: fmt.Sprint(i)}
			s.marks = append(s.marks, mark)
			err = errors.Join(err, w.Flush(), w.Mark(mark))
		}
	}
	if err = errors.Join(err, w.Finish(s.end.State, s.end.Reason)); err != nil {
		t.Fatal(err)
	}
	return &rows{s, out.Bytes(), places(t, out.Bytes(), 1)}
}

// chunk gives the bytes of one chunk, end those from the end chunk on.
func (r *rows) chunk(i int) []byte { return r.b[r.list[i].start:r.list[i].end] }

func (r *rows) end() int { return r.list[len(r.list)-5].start }

// with gives the file with the chunks of these places in this order.
func (r *rows) with(order ...int) []byte {
	b := bytes.Clone(r.b[:HeaderSize])
	for _, i := range order {
		b = append(b, r.chunk(i)...)
	}
	return b
}

// all are the places of all chunks, without some.
func (r *rows) all(but ...int) []int {
	var order []int
	for i := range r.list {
		if !slices.Contains(but, i) {
			order = append(order, i)
		}
	}
	return order
}

// repair repairs b and checks what comes out.
func (r *rows) repair(t *testing.T, name string, b []byte) (*RepairReport, *File) {
	t.Helper()
	var out Buffer
	report, err := Repair(bytes.NewReader(b), int64(len(b)), &out)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	checkRepaired(t, name, out.Bytes(), report.Ticks)
	f := openBytes(t, out.Bytes())
	if s := f.Summary(); s.Complete() != (report.Whole && len(s.Gaps) == 0) || (s.End.State == EndSealed) != report.Whole || !reflect.DeepEqual(report.Gaps, s.Gaps) {
		t.Errorf("%s: report %+v, summary %+v", name, report, s)
	}
	return report, f
}

// checkKept checks that of the ticks exactly those outside of the gaps are
// there, unchanged.
func (r *rows) checkKept(t *testing.T, name string, f *File, gaps ...[2]Tick) {
	t.Helper()
	var want []modelTick
	for _, m := range r.s.ticks {
		if !slices.ContainsFunc(gaps, func(g [2]Tick) bool { return m.tick >= g[0] && m.tick <= g[1] }) {
			want = append(want, m)
		}
	}
	ticks, err := readTicks(f.Reader())
	if d := differs(ticks, want); err != nil || d != "" {
		t.Errorf("%s: %s %v", name, d, err)
	}
	var have [][2]Tick
	for _, g := range f.Summary().Gaps {
		have = append(have, [2]Tick{g.First, g.Last})
		if !g.ByRecorder || g.Reason != "lost to damage" {
			t.Errorf("%s: gap %+v", name, g)
		}
	}
	if !slices.Equal(have, gaps) {
		t.Errorf("%s: gaps %v, want %v", name, have, gaps)
	}
}

// TestDamagedChunkCostsItselfOnly damages each chunk in turn, in several
// ways: both sides are kept, with a gap in between where ticks are lost.
func TestDamagedChunkCostsItselfOnly(t *testing.T) {
	r := newRows(t)
	damages := map[string]func(b []byte, p place) []byte{
		"a bit of the body": func(b []byte, p place) []byte { b[p.end-1] ^= 4; return b },
		"the checksum":      func(b []byte, p place) []byte { b[p.start+7] ^= 4; return b },
		"the marker":        func(b []byte, p place) []byte { b[p.start] = 0; return b },
		"the type":          func(b []byte, p place) []byte { b[p.start+1] ^= 0x20; return b },
		"a short length":    func(b []byte, p place) []byte { b[p.start+5]--; return b },
		"a long length":     func(b []byte, p place) []byte { b[p.start+5]++; return b },
		"a length past end": func(b []byte, p place) []byte { b[p.start+3] = 0x80; return b },
		"an endless length": func(b []byte, p place) []byte { b[p.start+2] = 0x80; return b },
		"the sequence":      func(b []byte, p place) []byte { b[p.start+10] ^= 1; return b },
		"zeros":             func(b []byte, p place) []byte { clear(b[p.start:p.end]); return b },
		"cut out":           func(b []byte, p place) []byte { return append(b[:p.start], b[p.end:]...) },
		"half cut out":      func(b []byte, p place) []byte { return append(b[:p.end-5], b[p.end:]...) },
		"bytes put in":      func(b []byte, p place) []byte { return slices.Insert(b, p.end-3, 0xC5, 0x03, 0, 0, 0, 9) },
	}
	for i, p := range r.list {
		for what, damage := range damages {
			name := fmt.Sprintf("%s of chunk %d, %v", what, i, p.typ)
			if p.typ == ChunkMeta && strings.HasSuffix(what, "in") || p.typ == ChunkMeta && strings.HasSuffix(what, "out") {
				continue // the trailer does not lead to the summary any more
			}
			report, f := r.repair(t, name, damage(bytes.Clone(r.b), p))
			footer := i >= len(r.list)-4
			switch {
			case p.typ == ChunkTicks:
				r.checkKept(t, name, f, [2]Tick{p.first, p.first + 3})
			default:
				r.checkKept(t, name, f)
			}
			if whole := footer || p.typ == ChunkMeta; report.Whole != whole {
				t.Errorf("%s: whole %v: %+v", name, report.Whole, report)
			}
			if footer && !bytes.Equal(rawBytes(t, f), r.b) {
				t.Errorf("%s: the footer is not made again as it was", name)
			}
			if what != "cut out" && len(report.Losses) != 1 && what != "bytes put in" {
				t.Errorf("%s: losses %+v", name, report.Losses)
			}
			if len(report.Losses) > 0 && report.Losses[0].Offset != int64(p.start) && what != "cut out" {
				t.Errorf("%s: the first loss at %d, want %d", name, report.Losses[0].Offset, p.start)
			}
		}
	}
}

func rawBytes(t testing.TB, f *File) []byte {
	t.Helper()
	b := make([]byte, f.size)
	if err := readFull(f.src, b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCheckNamesChunksThatAreNotWhereTheyBelong moves whole chunks, whose
// checksums hold.
func TestCheckNamesChunksThatAreNotWhereTheyBelong(t *testing.T) {
	r := newRows(t)
	const two, three = rowTicks + 2, rowTicks + 4 // ticks 104 to 107, 108 to 111
	swap := r.all()
	swap[two], swap[three] = three, two
	for _, c := range []struct {
		name  string
		b     []byte
		says  string
		gaps  [][2]Tick
		marks int
	}{
		{"ticks dropped", r.with(r.all(two)...), "chunk 5 out of order: 4 was due", [][2]Tick{{104, 107}}, 5},
		{"a mark dropped", r.with(r.all(two + 1)...), "chunk 6 out of order: 5 was due", nil, 4},
		{"ticks twice", r.with(slices.Insert(r.all(), two, two)...), "chunk 4 out of order: 5 was due", nil, 5},
		{"a mark twice", r.with(slices.Insert(r.all(), two+1, two+1)...), "chunk 5 out of order: 6 was due", nil, 5},
		{"ticks swapped", r.with(swap...), "chunk 6 out of order: 4 was due", [][2]Tick{{104, 107}}, 4},
		{"the book dropped", r.with(r.all(1)...), "not what was sealed", nil, 5},
		{"a mark put in", slices.Concat(r.b[:r.list[two].start], AppendChunk(nil, ChunkMark, 0, AppendMark(nil, Mark{Text: "forged"})), r.b[r.list[two].start:]), "not what was sealed", nil, 6},
		{"a mark exchanged", slices.Concat(r.b[:r.list[two+1].start], AppendChunk(nil, ChunkMark, 5, AppendMark(nil, Mark{Tick: 107, Text: "forged"})), r.b[r.list[two+1].end:]), "not what was sealed", nil, 5},
	} {
		f, err := NewFile(bytes.NewReader(c.b), int64(len(c.b)))
		if err == nil {
			_, err = f.Check()
		}
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want damage with %q", c.name, err, c.says)
		}
		report, repaired := r.repair(t, c.name, c.b)
		r.checkKept(t, c.name, repaired, c.gaps...)
		if n := len(repaired.Summary().Marks); n != c.marks {
			t.Errorf("%s: %d marks, want %d", c.name, n, c.marks)
		}
		whole := c.name == "ticks twice" || c.name == "a mark twice"
		if report.Whole != whole {
			t.Errorf("%s: whole %v: %+v", c.name, report.Whole, report)
		}
		if whole && !bytes.Equal(rawBytes(t, repaired), r.b) {
			t.Errorf("%s: not as it was", c.name)
		}
	}
}

// TestRepairDoesNotSealWhatWasChanged exchanges arguments and keeps every
// count: only the digest shows it.
func TestRepairDoesNotSealWhatWasChanged(t *testing.T) {
	r := newRows(t)
	p := r.list[rowTicks+2]
	c, _, err := ParseChunk(r.b[p.start:p.end])
	if err != nil {
		t.Fatal(err)
	}
	c.Body[bytes.Index(c.Body, []byte("step"))] = 'S'
	changed := slices.Concat(r.b[:p.start], AppendChunk(nil, c.Type, c.Seq, c.Body), r.b[p.end:])
	report, f := r.repair(t, "changed", changed)
	if report.Whole || f.Summary().End.State != EndUnfinished || f.Summary().Ticks != 20 {
		t.Errorf("%+v, end %+v", report, f.Summary().End)
	}
	if len(report.Losses) != 1 || report.Losses[0].Why != "the inputs of segment 0 (ticks 0 to 1023) are not what was sealed" || report.Losses[0].Offset != int64(r.list[len(r.list)-4].start) {
		t.Errorf("losses %+v", report.Losses)
	}
	// Without the digest there is nothing to tell it by but the counts.
	digest := r.list[len(r.list)-4]
	changed[digest.start+20] ^= 1
	if report, _ := r.repair(t, "changed, and no digest", changed); !report.Whole {
		t.Errorf("%+v", report)
	}
}

func TestTicksLostBeforeTheEndAreAGap(t *testing.T) {
	r := newRows(t)
	last := r.list[rowTicks+8]
	hurt := bytes.Clone(r.b)
	hurt[last.end-1] ^= 1
	report, f := r.repair(t, "the last ticks", hurt)
	r.checkKept(t, "the last ticks", f, [2]Tick{116, 119})
	if last, ok := f.Summary().LastTick(); report.Whole || !ok || last != 115 {
		t.Errorf("last tick %d, %v, %+v", last, ok, report)
	}
	// Without the end nobody knows that there were more.
	_, f = r.repair(t, "the last ticks and the end", hurt[:r.end()])
	r.checkLive(t, f, 16)
}

// checkLive checks a repaired file of which only the first ticks are left.
func (r *rows) checkLive(t *testing.T, f *File, n int) {
	t.Helper()
	ticks, err := readTicks(f.Reader())
	if d := differs(ticks, r.s.ticks[:n]); err != nil || d != "" {
		t.Errorf("%s %v", d, err)
	}
	if len(f.Summary().Gaps) > 0 || f.Summary().End.State != EndUnfinished {
		t.Errorf("%+v", f.Summary())
	}
}

func TestMetadataComeFromTheSummary(t *testing.T) {
	r := newRows(t)
	hurt := bytes.Clone(r.b)
	clear(hurt[HeaderSize : HeaderSize+20])
	report, f := r.repair(t, "no metadata", hurt)
	if !report.Whole || len(report.Mended) != 1 || !strings.Contains(report.Mended[0], "metadata") || !bytes.Equal(rawBytes(t, f), r.b) {
		t.Errorf("%+v", report)
	}
	live := hurt[:r.end()]
	var out Buffer
	if _, err := Repair(bytes.NewReader(live), int64(len(live)), &out); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "the opening is lost") {
		t.Errorf("a live file without metadata: %v", err)
	}
}

func TestRepairOfALiveFileEndsIt(t *testing.T) {
	r := newRows(t)
	report, f := r.repair(t, "live", r.b[:r.end()])
	r.checkLive(t, f, 20)
	if report.Whole || len(report.Losses) != 0 || report.Chunks != len(r.list)-5 {
		t.Errorf("%+v", report)
	}
}

func TestZeroedPageInTheMiddle(t *testing.T) {
	s := &session{meta: Metadata{Width: Width8, HashBytes: 1}, end: End{State: EndSealed}}
	for i := range Tick(5000) {
		s.ticks = append(s.ticks, modelTick{tick: i, hash: []byte{byte(i)}, steps: []Step{{Code: 1, Params: []Value{Int(int64(i)), Int(77)}}}})
	}
	_, b := s.file(t, 100)
	list := places(t, b, 1)
	const page = 4096
	for at := page; at+page < len(b); at += page {
		hurt := bytes.Clone(b)
		clear(hurt[at : at+page])
		want := slices.DeleteFunc(slices.Clone(s.ticks), func(m modelTick) bool {
			return slices.ContainsFunc(list, func(p place) bool {
				return p.typ == ChunkTicks && p.start < at+page && p.end > at && m.tick >= p.first && m.tick < p.first+Tick(p.ticks)
			})
		})
		var out Buffer
		report, err := Repair(bytes.NewReader(hurt), int64(len(hurt)), &out)
		if err != nil || report.Whole || len(report.Losses) == 0 {
			t.Fatalf("page at %d: %+v, %v", at, report, err)
		}
		checkRepaired(t, "a page", out.Bytes(), uint64(len(want)))
		ticks, err := readTicks(openBytes(t, out.Bytes()).Reader())
		if d := differs(ticks, want); err != nil || d != "" {
			t.Fatalf("page at %d: %s %v", at, d, err)
		}
	}
}

func TestTornFileWithAnotherBehindIt(t *testing.T) {
	r := newRows(t)
	other := smallSession()
	_, second := other.file(t, 1)
	for cut := r.list[rowTicks+4].start; cut <= r.list[rowTicks+6].end; cut++ {
		glued := slices.Concat(r.b[:cut], second)
		if f, err := NewFile(bytes.NewReader(glued), int64(len(glued))); !errors.Is(err, ErrCorrupt) && (err != nil || f.Torn == nil) {
			t.Fatalf("cut at %d: %v, neither damaged nor torn", cut, err)
		}
		report, f := r.repair(t, fmt.Sprintf("cut at %d", cut), glued)
		if whole := wholeTicks(r.list, cut); report.Ticks != whole {
			t.Fatalf("cut at %d: %d ticks, want %d: %+v", cut, report.Ticks, whole, report)
		}
		r.checkLive(t, f, int(report.Ticks))
	}
}

// forgery has a player's bytes in every other tick that look like a chunk of
// ticks that follow.
func forgery(t *testing.T) (*session, []byte) {
	t.Helper()
	s := &session{meta: Metadata{Width: Width8}, end: End{State: EndSealed}}
	for i := range Tick(8) {
		forged := NewBatchBuilder(Width8, 0, i+1)
		if err := forged.Step(6, String("forged")); err != nil {
			t.Fatal(err)
		}
		forged.EndTick()
		chunk := AppendChunk(nil, ChunkTicks, uint64(i+2), forged.AppendBody(nil))
		s.ticks = append(s.ticks, modelTick{tick: i, steps: []Step{{Code: 1, Params: []Value{Bytes(chunk), Bytes(append(chunk, chunk...))}}}})
	}
	_, b := s.file(t, 1)
	return s, b
}

// TestBytesOfPlayersAreNeverTakenForChunks cuts and damages a file whose
// bodies hold what looks like chunks.
func TestBytesOfPlayersAreNeverTakenForChunks(t *testing.T) {
	s, b := forgery(t)
	list := places(t, b, 0)
	check := func(name string, hurt []byte) {
		t.Helper()
		var out Buffer
		if _, err := Repair(bytes.NewReader(hurt), int64(len(hurt)), &out); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ticks, err := readTicks(openBytes(t, out.Bytes()).Reader())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, m := range ticks {
			if d := differs([]modelTick{m}, s.ticks[m.tick:m.tick+1]); d != "" {
				t.Fatalf("%s: %s", name, d)
			}
		}
	}
	live := endOf(t, b)
	for cut := list[0].end; cut <= live; cut++ {
		f, err := NewFile(bytes.NewReader(b[:cut]), int64(cut))
		if err != nil || f.Summary().Ticks != wholeTicks(list, cut) {
			t.Fatalf("cut at %d: %v, want torn", cut, err)
		}
		check(fmt.Sprintf("cut at %d", cut), b[:cut])
	}
	for _, p := range list[1:] {
		for at := p.start + chunkMinSize; at < p.end; at++ {
			for _, end := range []int{len(b), live} {
				hurt := bytes.Clone(b[:end])
				if at < end {
					hurt[at] ^= 0x10
					check(fmt.Sprintf("byte %d of %d", at, end), hurt)
				}
			}
		}
	}
}

// TestDamageAnywhereKeepsEveryWholeChunk overwrites or removes one stretch of
// a random file: every tick of a whole chunk is kept, and no other.
func TestDamageAnywhereKeepsEveryWholeChunk(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 51))
		s := randomSession(r)
		_, b := s.file(t, 1+r.IntN(60))
		list := places(t, b, s.meta.HashBytes)
		from := HeaderSize + r.IntN(len(b)-HeaderSize)
		to := min(len(b), from+1+r.IntN(1+r.IntN(len(b))/2))
		hurt := bytes.Clone(b)
		name := fmt.Sprintf("seed %d: %d to %d of %d", seed, from, to, len(b))
		if r.IntN(3) == 0 {
			name += " removed"
			hurt = slices.Delete(hurt, from, to)
		} else {
			for i := from; i < to; i++ {
				hurt[i] ^= byte(1 + r.IntN(255))
			}
		}
		whole := slices.DeleteFunc(slices.Clone(list), func(p place) bool { return p.start < to && p.end > from })
		var out Buffer
		report, err := Repair(bytes.NewReader(hurt), int64(len(hurt)), &out)
		footer := slices.ContainsFunc(whole, func(p place) bool { return p.typ == ChunkTrailer }) && slices.ContainsFunc(whole, func(p place) bool { return p.typ == ChunkSummary }) && !strings.Contains(name, "removed")
		if opening := len(whole) > 0 && whole[0].typ == ChunkMeta; !opening && !footer {
			if err == nil {
				t.Fatalf("%s: repaired without an opening: %+v", name, report)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := s.inChunks(t, b, whole)
		checkRepaired(t, name, out.Bytes(), uint64(len(want)))
		ticks, err := readTicks(openBytes(t, out.Bytes()).Reader())
		if d := differs(ticks, want); err != nil || d != "" {
			t.Fatalf("%s: %s %v", name, d, err)
		}
	}
}

// inChunks gives the ticks of some of a file's chunks, with those late
// hashes that are there, too.
func (s *session) inChunks(t *testing.T, b []byte, whole []place) []modelTick {
	t.Helper()
	late := map[Tick]bool{}
	in := map[Tick]bool{}
	for _, p := range whole {
		c, _, err := ParseChunk(b[p.start:p.end])
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.ticks {
			in[p.first+Tick(i)] = true
		}
		if c.Type == ChunkHashes {
			hashes, err := ParseHashes(c.Body, s.meta.HashBytes)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range hashes {
				late[h.Tick] = true
			}
		}
	}
	var ticks []modelTick
	for _, m := range s.ticks {
		if !in[m.tick] {
			continue
		}
		if s.late[m.tick] && !late[m.tick] {
			m.hash = nil
		}
		ticks = append(ticks, m)
	}
	return ticks
}

// TestHuntIsBounded counts what is read of files that are full of false
// beginnings of chunks.
func TestHuntIsBounded(t *testing.T) {
	valid := AppendChunk(nil, ChunkMark, 0, AppendMark(nil, Mark{Text: "a whole chunk"}))
	small := AppendChunk(nil, ChunkMark, 0, nil)
	cut := []byte{chunkMarker, byte(ChunkTicks), 0, 0xff, 0xff, 0xff, 1, 2, 3, 4, 0}
	for name, file := range map[string][]byte{
		"a cut chunk full of whole ones": slices.Concat(falseBeginnings(0), cut, bytes.Repeat(small, 1<<16)),
		"false beginnings":               falseBeginnings(2 << 20),
		"with whole chunks":              mixIn(falseBeginnings(512<<10), valid),
		"only markers":                   append(falseBeginnings(200), bytes.Repeat([]byte{chunkMarker}, 1<<18)...),
		"small beginnings":               append(falseBeginnings(200), bytes.Repeat([]byte{chunkMarker, byte(ChunkTicks), 0, 0, 0, 9, 1, 2, 3, 4, 0}, 1<<15)...),
	} {
		src := &countingReader{src: bytes.NewReader(file)}
		var out Buffer
		report, err := Repair(src, int64(len(file)), &out)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if most := int64(3*huntWork*len(file) + 4*MaxBody); src.bytes > most {
			t.Errorf("%s: %d bytes read of a file of %d", name, src.bytes, len(file))
		}
		if len(report.Losses) == 0 {
			t.Errorf("%s: %+v", name, report)
		}
	}
}

// mixIn overwrites places of file, ever further apart, with chunk.
func mixIn(file, chunk []byte) []byte {
	for at, step := 1000, 1000; at+len(chunk) < len(file); at, step = at+step, step+500 {
		copy(file[at:], chunk)
	}
	return file
}

// failingFile fails to take more than so many bytes.
type failingFile struct {
	Buffer
	room int
}

func (f *failingFile) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errDisk
	}
	return f.Buffer.Write(p)
}

func TestRepairSaysThatItCouldNotWrite(t *testing.T) {
	r := newRows(t)
	hurt := bytes.Clone(r.b)
	hurt[r.list[rowTicks+2].end-1] ^= 1
	for name, b := range map[string][]byte{"whole": r.b, "damaged": hurt} {
		for room := range 900 {
			out := &failingFile{room: room}
			_, err := Repair(bytes.NewReader(b), int64(len(b)), out)
			if err == nil {
				if openBytes(t, out.Bytes()).Summary().End == nil || room < 500 {
					t.Fatalf("%s: room for %d bytes is enough", name, room)
				}
				break
			}
			if !errors.Is(err, errDisk) || IsDamage(err) {
				t.Fatalf("%s: room for %d bytes: %v", name, room, err)
			}
		}
	}
}
