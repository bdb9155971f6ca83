package format

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestNotReplay(t *testing.T) {
	text := strings.ReplaceAll(string(AppendHeader(nil)), "\r\n", "\n")
	for _, c := range []struct{ b, says string }{
		{"", "the file is empty"}, {"x", "no known magic at offset 0"}, {"hello, this is text", "no known magic"}, {"\x00\x00\x00\x00", "no known magic"},
		{"\x89PNG\r\n\x1a\n", "byte 50 at offset 1, where the magic of RPLY2 has 52"}, {text, "byte 0a at offset 6"}, {"RPLY9\x00", "offset 4, where the magic of RPLY1 has 31"},
	} {
		if _, err := NewFile(bytes.NewReader([]byte(c.b)), int64(len(c.b))); !errors.Is(err, ErrNotReplay) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want not a replay with %q", c.b, err, c.says)
		}
	}
}

func TestOpenOfWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); !errors.Is(err, ErrNotReplay) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "none.rply")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestOpenOfAFile(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 2)
	path := filepath.Join(t.TempDir(), "match.rply")
	if err := os.WriteFile(path, b, 0o400); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s.checkFileWithIndexes(t, f)
	if f.Source != "rply2" || f.Wrapping != "" || f.Bytes != int64(len(b)) || f.Unproven() {
		t.Errorf("%+v", f)
	}
	if raw, err := io.ReadAll(f.Raw()); err != nil || !bytes.Equal(raw, b) {
		t.Errorf("raw bytes differ: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestGrowingFileIsAWholePrefix opens a file again and again while it is
// written, as one that watches a live match does.
func TestGrowingFileIsAWholePrefix(t *testing.T) {
	var out Buffer
	w, err := NewWriter(&out, &Metadata{Width: Width8, HashBytes: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		err := errors.Join(w.Step(1, Int(int64(i))), w.EndTick(), w.Flush(), w.Hash(Tick(i), []byte{byte(i)}))
		if err != nil {
			t.Fatal(err)
		}
		f := openBytes(t, out.Bytes())
		s := f.Summary()
		if last, ok := s.LastTick(); s.End != nil || s.Complete() || f.Torn != nil || s.Ticks != uint64(i+1) || !ok || last != Tick(i) || s.Hashes != s.Ticks {
			t.Fatalf("after %d ticks: %+v, torn %v", i+1, s, f.Torn)
		}
		ticks, err := readTicks(f.Reader())
		if err != nil || len(ticks) != i+1 || ticks[i].hash[0] != byte(i) || len(ticks[i].steps) != 1 {
			t.Fatalf("after %d ticks: %d are read, %v", i+1, len(ticks), err)
		}
		if report := checkWhole(t, f); report.Root != nil {
			t.Fatal("a digest before the end")
		}
	}
}

// lateSession gives every hash late, by any number of ticks up to the most.
func lateSession(t *testing.T, seed uint64, ticks int) (*session, []byte) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 41))
	s := &session{meta: Metadata{Width: Width8, HashBytes: 2, FirstTick: 1<<40 - 100}, end: End{State: EndSealed}}
	var out Buffer
	w, err := NewWriter(&out, &s.meta, nil)
	if err != nil {
		t.Fatal(err)
	}
	due := map[Tick][]TickHash{}
	for i := range ticks {
		tick := s.meta.FirstTick + Tick(i)
		m := modelTick{tick: tick}
		if r.IntN(20) == 0 {
			m.steps = []Step{{Code: 3, Params: []Value{Int(int64(i))}}}
			err = errors.Join(err, w.Step(3, Int(int64(i))))
		}
		err = errors.Join(err, w.EndTick())
		if i%300 == 299 {
			err = errors.Join(err, w.Flush())
		}
		if r.IntN(4) > 0 {
			m.hash = []byte{byte(i), byte(i >> 8)}
			lag := []int{1, 500, 3000, MaxHashLag - 600}[r.IntN(4)]
			at := min(ticks-1, i+r.IntN(lag))
			due[s.meta.FirstTick+Tick(at)] = append(due[s.meta.FirstTick+Tick(at)], TickHash{tick, m.hash})
		}
		s.ticks = append(s.ticks, m)
		for _, h := range due[tick] {
			err = errors.Join(err, w.Hash(h.Tick, h.Hash))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(s.end.State, ""); err != nil {
		t.Fatal(err)
	}
	return s, out.Bytes()
}

// TestLateHashesFarAway reads and seeks where every hash stands far behind
// its tick, by the seek table of a finished file and by that of a scan.
func TestLateHashesFarAway(t *testing.T) {
	s, b := lateSession(t, 1, 40_000)
	finished := openBytes(t, b)
	if got, want := *finished.Summary().Digest, s.modelRoot(); got != want {
		t.Errorf("digest %v, want %v", got, want)
	}
	checkWhole(t, finished)
	for name, f := range map[string]*File{"finished": finished, "scanned": openBytes(t, b[:endOf(t, b)])} {
		ticks, err := readTicks(f.Reader())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := differs(ticks, s.ticks); d != "" {
			t.Fatalf("%s: %s", name, d)
		}
		r := rand.New(rand.NewPCG(2, 2))
		reader := f.Reader()
		for range 60 {
			i := r.IntN(len(s.ticks))
			reader.Seek(s.ticks[i].tick)
			var rec TickRecord
			for n := i; n < min(len(s.ticks), i+1500); n++ {
				if err := reader.Next(&rec); err != nil || rec.Tick != s.ticks[n].tick || !bytes.Equal(rec.Hash, s.ticks[n].hash) {
					t.Fatalf("%s: after a seek to %d: tick %d with hash %x, %v, want tick %d with %x", name, s.ticks[i].tick, rec.Tick, rec.Hash, err, s.ticks[n].tick, s.ticks[n].hash)
				}
			}
		}
	}
}

// endOf is the place of a finished file's end chunk.
func endOf(t testing.TB, b []byte) int {
	t.Helper()
	for at := HeaderSize; at < len(b); {
		c, n, err := ParseChunk(b[at:])
		if err != nil {
			t.Fatal(err)
		}
		if c.Type == ChunkEnd {
			return at
		}
		at += n
	}
	t.Fatal("no end chunk")
	return 0
}

func TestSeekFromEveryTickToEveryTick(t *testing.T) {
	s := &session{meta: Metadata{Width: Width8, HashBytes: 1, FirstTick: 1<<32 - 4}, late: map[Tick]bool{}, end: End{State: EndSealed},
		gaps: []Gap{{First: 1<<32 - 4, Last: 1<<32 - 4}, {First: 1<<32 + 2, Last: 1<<32 + 3}, {First: 1<<32 + 6, Last: 1<<32 + 8}}}
	for _, tick := range []Tick{1<<32 - 3, 1<<32 - 2, 1<<32 - 1, 1 << 32, 1<<32 + 1, 1<<32 + 4, 1<<32 + 5} {
		s.ticks = append(s.ticks, modelTick{tick: tick, hash: []byte{byte(tick)}})
		s.late[tick] = tick%2 == 0
	}
	for _, chunk := range []int{1, 2, 100} {
		f, _ := s.file(t, chunk)
		s.checkFile(t, f)
		if last, ok := f.Summary().LastTick(); !ok || last != 1<<32+5 {
			t.Errorf("last tick %d, %v", last, ok)
		}
		r := f.Reader()
		for from := s.meta.FirstTick - 1; from <= f.Summary().NextTick; from++ {
			for to := s.meta.FirstTick - 1; to <= f.Summary().NextTick; to++ {
				r.Seek(from)
				var rec TickRecord
				_ = r.Next(&rec)
				r.Seek(to)
				rest, err := readTicks(r)
				at := slices.IndexFunc(s.ticks, func(m modelTick) bool { return m.tick >= to })
				if at < 0 {
					at = len(s.ticks)
				}
				if d := differs(rest, s.ticks[at:]); err != nil || d != "" {
					t.Fatalf("chunks of %d, %d then %d: %s %v", chunk, from, to, d, err)
				}
			}
		}
	}
}

// sparse is a file of which only some places may be read.
type sparse map[int64][]byte

func (s sparse) ReadAt(b []byte, at int64) (int, error) {
	n := 0
	for n < len(b) {
		part := s.part(at + int64(n))
		if part == nil {
			return n, fmt.Errorf("a read of %d bytes at %d leaves what is there", len(b), at)
		}
		n += copy(b[n:], part)
	}
	return n, nil
}

func (s sparse) part(at int64) []byte {
	for start, part := range s {
		if at >= start && at < start+int64(len(part)) {
			return part[at-start:]
		}
	}
	return nil
}

// TestFileBeyondFourGiB has chunks and keyframes behind offsets of 2 and 4
// GiB, and a footer at 5: opening and seeking read none of what lies between.
func TestFileBeyondFourGiB(t *testing.T) {
	tr := NewTracker()
	file := sparse{}
	size := int64(0)
	pad := bytes.Repeat([]byte{0}, 2*scanBuffer) // a scan reads ahead
	put := func(at int64, chunks ...Chunk) {
		t.Helper()
		var b []byte
		if at == 0 {
			b = AppendHeader(b)
		}
		for _, c := range chunks {
			if err := tr.Add(c, at+int64(len(b))); err != nil {
				t.Fatal(err)
			}
			b = AppendChunk(b, c.Type, c.Seq, c.Body)
		}
		size = at + int64(len(b))
		file[at] = append(b, pad...)
	}
	ticks := func(first Tick, n int) Chunk {
		b := NewBatchBuilder(Width8, 1, first)
		for range n {
			b.Hash(b.EndTick(), []byte{byte(b.NextTick())})
		}
		return Chunk{Type: ChunkTicks, Body: b.AppendBody(nil)}
	}
	key := func(next Tick) Chunk {
		state := fmt.Sprintf("before %d", next)
		return Chunk{Type: ChunkKeyframe, Body: keyPart(uint64(next), next, uint64(len(state)), 0, state)}
	}
	put(0, Chunk{Type: ChunkMeta, Body: AppendMeta(nil, &Metadata{Width: Width8, HashBytes: 1})}, key(0), ticks(0, 10))
	put(1<<31+5, key(10), ticks(10, 10))
	put(1<<32+7, key(20), ticks(20, 10), key(30))
	footer, err := tr.Footer(file, size, EndSealed, "")
	if err != nil {
		t.Fatal(err)
	}
	// What follows the last ticks is read up to the end chunk.
	file[1<<32+7] = append(file[1<<32+7][:size-(1<<32+7)], footer...)
	size += int64(len(footer))
	f, err := NewFile(file, size)
	if err != nil {
		t.Fatal(err)
	}
	if f.Summary().Ticks != 30 || len(f.Summary().Keyframes) != 4 {
		t.Fatalf("%+v", f.Summary())
	}
	for i, next := range []Tick{0, 10, 20, 30} {
		k, err := f.Keyframe(i)
		if err != nil || k.NextTick != next || string(k.State) != fmt.Sprintf("before %d", next) {
			t.Errorf("keyframe %d: %+v, %v", i, k, err)
		}
	}
	r := f.Reader()
	for _, tick := range []Tick{29, 0, 19, 10, 20, 9} {
		r.Seek(tick)
		var rec TickRecord
		if err := r.Next(&rec); err != nil || rec.Tick != tick || rec.Hash[0] != byte(tick+1) {
			t.Errorf("seek to %d: %+v, %v", tick, rec, err)
		}
	}
}

// withFooter gives a finished file whose digest, summary, seek table or
// trailer is what change makes of it, with right checksums.
func withFooter(t testing.TB, b []byte, typ ChunkType, change func([]byte) []byte) []byte {
	t.Helper()
	out := bytes.Clone(b[:HeaderSize])
	for at := HeaderSize; at < len(b); {
		c, n, err := ParseChunk(b[at:])
		if err != nil {
			t.Fatal(err)
		}
		if c.Type == typ {
			c.Body = change(bytes.Clone(c.Body))
		}
		out = AppendChunk(out, c.Type, c.Seq, c.Body)
		at += n
	}
	return out
}

func changeSummary(change func(*Summary)) func([]byte) []byte {
	return func(body []byte) []byte {
		s, err := parseSummary(body)
		if err != nil {
			panic(err)
		}
		change(s)
		s.End.Totals = s.Totals
		return appendSummary(nil, s)
	}
}

// TestFooterThatLies has right checksums: what cannot be is not believed,
// and the file is scanned; Check names whatever is not as the content says.
func TestFooterThatLies(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 1)
	want := *openBytes(t, b).Summary()
	for name, c := range map[string]struct {
		typ      ChunkType
		change   func([]byte) []byte
		believed bool
	}{
		"a next tick before the first":  {ChunkSummary, changeSummary(func(s *Summary) { s.NextTick = 0 }), false},
		"more ticks than there is room": {ChunkSummary, changeSummary(func(s *Summary) { s.Ticks = 1 << 63 }), false},
		"no ticks":                      {ChunkSummary, changeSummary(func(s *Summary) { s.Ticks = 0 }), false},
		"more hashes than ticks":        {ChunkSummary, changeSummary(func(s *Summary) { s.Hashes = 5 }), false},
		"a gap before the first tick":   {ChunkSummary, changeSummary(func(s *Summary) { s.Gaps[0].First = 3 }), false},
		"a gap behind the last tick":    {ChunkSummary, changeSummary(func(s *Summary) { s.Gaps[0].Last = MaxTick }), false},
		"times that go back":            {ChunkSummary, changeSummary(func(s *Summary) { s.FirstTime, s.LastTime = 5, 4 }), false},
		"no digest":                     {ChunkSummary, func(b []byte) []byte { return b[:bytes.LastIndex(b, []byte{summaryDigest, 32})] }, false},
		"a field twice":                 {ChunkSummary, func(b []byte) []byte { return append(b, b[bytes.LastIndex(b, []byte{summaryDigest, 32}):]...) }, false},
		"an empty summary":              {ChunkSummary, func([]byte) []byte { return nil }, false},
		"one step more":                 {ChunkSummary, changeSummary(func(s *Summary) { s.Steps++ }), true},
		"one hash less":                 {ChunkSummary, changeSummary(func(s *Summary) { s.Hashes-- }), true},
		"a keyframe elsewhere":          {ChunkSummary, changeSummary(func(s *Summary) { s.Keyframes[0].Offset++ }), true},
		"no keyframe":                   {ChunkSummary, changeSummary(func(s *Summary) { s.Keyframes = nil }), true},
		"another mark":                  {ChunkSummary, changeSummary(func(s *Summary) { s.Marks[0].Text = "another" }), true},
		"another end":                   {ChunkSummary, changeSummary(func(s *Summary) { s.End.State = EndUnfinished }), true},
		"another game":                  {ChunkSummary, changeSummary(func(s *Summary) { s.Meta.Game = "other" }), true},
		"another digest":                {ChunkSummary, changeSummary(func(s *Summary) { s.Digest[0] ^= 1 }), true},
		"an empty seek table":           {ChunkSeek, func([]byte) []byte { return []byte{0} }, true},
		"no seek table":                 {ChunkSeek, func([]byte) []byte { return nil }, false},
		"a tick behind the last":        {ChunkSeek, func([]byte) []byte { return leb(1, 106, 0, 16, 0) }, false},
		"a tick before the first":       {ChunkSeek, func([]byte) []byte { return leb(1, 99, 0, 16, 0) }, false},
		"an offset behind the content":  {ChunkSeek, func([]byte) []byte { return leb(1, 100, 0, uint64(len(b)), 0) }, false},
		"an offset in the file header":  {ChunkSeek, func([]byte) []byte { return leb(1, 100, 0, 15, 0) }, false},
		"two entries of one tick":       {ChunkSeek, func([]byte) []byte { return leb(2, 100, 0, 16, 0, 0, 0, 9, 0) }, false},
		"more entries than chunks":      {ChunkSeek, func([]byte) []byte { return append(leb(uint64(len(b))/chunkMinSize), make([]byte, len(b))...) }, false},
		"more marks than there may be":  {ChunkSummary, changeSummary(func(s *Summary) { s.Marks = make([]Mark, MaxNoteBytes/4+10) }), false},
		"endless entries":               {ChunkSeek, func([]byte) []byte { return leb(1 << 62) }, false},
		"another root":                  {ChunkDigest, func(b []byte) []byte { b[0] ^= 1; return b }, true},
		"another leaf":                  {ChunkDigest, func(b []byte) []byte { b[40] ^= 1; return b }, true},
		"a trailer that points nowhere": {ChunkTrailer, func(b []byte) []byte { return slices.Concat(be64(7), b[8:]) }, false},
		"a trailer that points behind":  {ChunkTrailer, func(b []byte) []byte { return slices.Concat(be64(1<<62), b[8:]) }, false},
		"a trailer that points back":    {ChunkTrailer, func(b []byte) []byte { return slices.Concat(be64(HeaderSize), b[8:]) }, false},
		"a trailer below zero":          {ChunkTrailer, func(b []byte) []byte { return slices.Concat(be64(1<<63), b[8:]) }, false},
		"another magic":                 {ChunkTrailer, func(b []byte) []byte { b[15] ^= 1; return b }, false},
	} {
		lie := withFooter(t, b, c.typ, c.change)
		f, err := NewFile(bytes.NewReader(lie), int64(len(lie)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		probe := File{src: f.src, size: f.size}
		if believed := probe.openFinished() == nil; believed != c.believed {
			t.Errorf("%s: believed %v", name, believed)
		}
		if got := *f.Summary(); !c.believed && (got.Totals != want.Totals || !reflect.DeepEqual(got.Gaps, want.Gaps)) {
			t.Errorf("%s: believed: %+v", name, got)
		}
		_, err = f.Check()
		var at *CorruptError
		if !errors.As(err, &at) || at.Offset < int64(endOf(t, b)) {
			t.Errorf("%s: %v, want damage in the footer", name, err)
		}
		var out Buffer
		if report, err := Repair(bytes.NewReader(lie), int64(len(lie)), &out); err != nil || report.Ticks != 4 {
			t.Errorf("%s: repair: %+v, %v", name, report, err)
		} else {
			checkRepaired(t, name, out.Bytes(), 4)
		}
	}
}

func TestFooterIsNotOfTheStream(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 1)
	list := places(t, b, s.meta.HashBytes)
	seq := uint64(0)
	for _, p := range list {
		c, _, err := ParseChunk(b[p.start:p.end])
		if err != nil {
			t.Fatal(err)
		}
		seq = max(seq, c.Seq)
		if p.start <= endOf(t, b) {
			continue
		}
		numbered := slices.Concat(b[:p.start], AppendChunk(nil, c.Type, seq+1, c.Body), b[p.end:])
		if _, err := openBytes(t, numbered).Check(); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "in the footer") {
			t.Errorf("%v with a sequence number: %v", c.Type, err)
		}
	}
}

// TestFooterOfANewerMinorVersion has an optional chunk between any two of the
// footer's, and a field of the summary that is not known.
func TestFooterOfANewerMinorVersion(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 1)
	list := places(t, b, s.meta.HashBytes)
	trailer := len(list) - 1
	for i := trailer - 3; i <= trailer; i++ {
		extra := AppendChunk(nil, 0xB0, 0, []byte("signature"))
		newer := slices.Concat(b[:list[i].start], extra, b[list[i].start:])
		if i < trailer-1 { // the summary moved
			newer = withFooter(t, newer, ChunkTrailer, func(b []byte) []byte {
				return slices.Concat(be64(binary.BigEndian.Uint64(b)+uint64(len(extra))), b[8:])
			})
		}
		checkNewer(t, fmt.Sprintf("a chunk before the %v", list[i].typ), newer)
	}
	checkNewer(t, "a field of the summary", withFooter(t, b, ChunkSummary, func(b []byte) []byte { return append(b, leb(77, 3, 1, 2, 3)...) }))
}

func checkNewer(t *testing.T, name string, b []byte) {
	t.Helper()
	f := openBytes(t, b)
	if f.openFinished() != nil {
		t.Errorf("%s: the footer is not used", name)
	}
	if _, err := f.Check(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	var out Buffer
	if report, err := Repair(bytes.NewReader(b), int64(len(b)), &out); err != nil || !report.Whole || !bytes.Equal(out.Bytes(), b) {
		t.Errorf("%s: repair: %+v, %v", name, report, err)
	}
}

// TestOpeningReadsLittle counts what is read of a finished file.
func TestOpeningReadsLittle(t *testing.T) {
	s := &session{meta: Metadata{Width: Width8}, book: &CodeBook{Codes: []CodeInfo{{Code: 1, Name: "move"}}}, end: End{State: EndSealed}}
	for i := range Tick(60_000) {
		s.ticks = append(s.ticks, modelTick{tick: i, steps: []Step{{Code: 1, Params: []Value{Int(int64(i)), String("some more bytes")}}}})
	}
	_, b := s.file(t, 500)
	src := &countingReader{src: bytes.NewReader(b)}
	f, err := NewFile(src, int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if src.reads > 5 || src.bytes > 2*scanBuffer || f.Book() == nil {
		t.Errorf("%d reads of %d bytes of %d, book %v", src.reads, src.bytes, len(b), f.Book())
	}
}

// failingReader fails where a disk would.
type failingReader struct {
	src  io.ReaderAt
	from int64
}

var errDisk = errors.New("disk error")

func (r *failingReader) ReadAt(b []byte, at int64) (int, error) {
	if n := max(0, r.from-at); n < int64(len(b)) {
		read, _ := r.src.ReadAt(b[:n], at)
		return read, errDisk
	}
	return r.src.ReadAt(b, at)
}

// TestReadErrorIsNoDamage fails at every place: the error is the disk's, and
// nothing says that the replay is wrong.
func TestReadErrorIsNoDamage(t *testing.T) {
	_, b := smallSession().file(t, 1)
	live := b[:endOf(t, b)+5]
	for from := range int64(len(live)) {
		src := &failingReader{bytes.NewReader(live), from}
		if _, err := NewFile(src, int64(len(live))); !errors.Is(err, errDisk) || IsDamage(err) {
			t.Fatalf("a disk error at %d: %v", from, err)
		}
		var out Buffer
		if _, err := Repair(src, int64(len(live)), &out); !errors.Is(err, errDisk) || IsDamage(err) {
			t.Fatalf("a disk error at %d: repair: %v", from, err)
		}
	}
	for name, wrapped := range map[string][]byte{"gz": gzipped(t, b), "zst": zstandard(t, b)} {
		for from := range int64(len(wrapped)) {
			if _, err := NewFile(&failingReader{bytes.NewReader(wrapped), from}, int64(len(wrapped))); !errors.Is(err, errDisk) || IsDamage(err) {
				t.Fatalf("%s: a disk error at %d: %v", name, from, err)
			}
		}
	}
	if _, err := NewFile(bytes.NewReader(live[:20]), int64(len(live))); !errors.Is(err, io.ErrUnexpectedEOF) || IsDamage(err) {
		t.Errorf("a file that shrank: %v", err)
	}
}

func TestFailedReaderStaysFailed(t *testing.T) {
	s := &session{meta: Metadata{Width: Width8}, end: End{State: EndSealed}}
	for i := range Tick(20) {
		s.ticks = append(s.ticks, modelTick{tick: i, steps: []Step{{Code: 1, Params: []Value{Int(1)}}}})
	}
	_, b := s.file(t, 5)
	list := places(t, b, 0)
	b[list[3].start+20] ^= 1 // ticks 10 to 14
	f := openBytes(t, b)
	r := f.Reader()
	ticks, err := readTicks(r)
	var c *CorruptError
	if len(ticks) != 10 || !errors.As(err, &c) || c.Offset != int64(list[3].start+6) {
		t.Fatalf("%d ticks, %v, want 10 and damage at %d", len(ticks), err, list[3].start+6)
	}
	var rec TickRecord
	if again := r.Next(&rec); again != err {
		t.Errorf("then %v", again)
	}
	r.Seek(3)
	if err := r.Next(&rec); err != nil || rec.Tick != 3 {
		t.Errorf("a seek away from it: tick %d, %v", rec.Tick, err)
	}
}

func TestFooterIsBelievedOnlyWhereTheTicksAgree(t *testing.T) {
	s := &session{meta: Metadata{Width: Width8}, end: End{State: EndSealed}}
	for i := range Tick(20) {
		s.ticks = append(s.ticks, modelTick{tick: i})
	}
	_, b := s.file(t, 5)
	list := places(t, b, 0)
	for name, c := range map[string]struct {
		file []byte
		read int
		says string
	}{
		"a chunk cut out":    {cutOut(t, b, list[2]), 5, "tick 10 stands where tick 5 is due"},
		"the last chunk out": {cutOut(t, b, list[4]), 15, "the ticks end before 15, the summary says before 20"},
	} {
		ticks, err := readTicks(openBytes(t, c.file).Reader())
		if len(ticks) != c.read || !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %d ticks, %v, want %d and %q", name, len(ticks), err, c.read, c.says)
		}
	}
}

// cutOut removes a chunk and puts the trailer right; the seek table keeps
// what it said.
func cutOut(t testing.TB, b []byte, p place) []byte {
	t.Helper()
	return withFooter(t, slices.Concat(b[:p.start], b[p.end:]), ChunkTrailer, func(b []byte) []byte {
		return slices.Concat(be64(binary.BigEndian.Uint64(b)-uint64(p.end-p.start)), b[8:])
	})
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zstandard(t testing.TB, b []byte, options ...zstd.EOption) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, append(options, zstd.WithEncoderConcurrency(1))...)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(b, nil)
}

func TestWrappedFiles(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 2)
	live := b[:endOf(t, b)+3]
	half := len(b) / 2
	for name, c := range map[string]struct {
		wrapping string
		b        []byte
		torn     bool
	}{
		"gzip":               {"gz", gzipped(t, b), false},
		"zstd":               {"zst", zstandard(t, b), false},
		"gzip in two parts":  {"gz", append(gzipped(t, b[:half]), gzipped(t, b[half:])...), false},
		"zstd in two frames": {"zst", append(zstandard(t, b[:half]), zstandard(t, b[half:])...), false},
		"a torn file inside": {"zst", zstandard(t, live), true},
	} {
		f := openBytes(t, c.b)
		if f.Wrapping != c.wrapping || f.Source != "rply2" || f.Bytes != int64(len(c.b)) || (f.Torn != nil) != c.torn {
			t.Errorf("%s: %+v", name, f)
		}
		if c.torn {
			continue
		}
		s.checkFileWithIndexes(t, f)
		checkWhole(t, f)
	}
}

func TestDamagedWrappings(t *testing.T) {
	_, b := smallSession().file(t, 2)
	for name, wrapped := range map[string][]byte{"gz": gzipped(t, b), "zst": zstandard(t, b)} {
		for cut := 4; cut < len(wrapped); cut++ {
			if _, err := NewFile(bytes.NewReader(wrapped[:cut]), int64(cut)); !errors.Is(err, ErrTorn) {
				t.Fatalf("%s cut at %d of %d: %v", name, cut, len(wrapped), err)
			}
		}
		for bit := 32; bit < 8*len(wrapped); bit++ {
			hurt := bytes.Clone(wrapped)
			hurt[bit/8] ^= 1 << (bit % 8)
			f, err := NewFile(bytes.NewReader(hurt), int64(len(hurt)))
			if err == nil {
				raw, rerr := io.ReadAll(f.Raw())
				if rerr != nil || !bytes.Equal(raw, b) {
					t.Fatalf("%s: bit %d flipped: other bytes, without a word", name, bit)
				}
			} else if !IsDamage(err) && !errors.Is(err, ErrLimit) {
				t.Fatalf("%s: bit %d flipped: %v", name, bit, err)
			}
		}
	}
	for name, wrapped := range map[string][]byte{"gz": gzipped(t, []byte("hello")), "zst": zstandard(t, []byte("hello"))} {
		if _, err := NewFile(bytes.NewReader(wrapped), int64(len(wrapped))); !errors.Is(err, ErrNotReplay) {
			t.Errorf("%s of text: %v", name, err)
		}
	}
}

// TestWrappedBombs holds what unwrapping may grow to, with a limit that a
// test can reach.
func TestWrappedBombs(t *testing.T) {
	const limit = 1 << 20
	for name, wrap := range map[string]func([]byte) []byte{
		"gz":  func(b []byte) []byte { return gzipped(t, b) },
		"zst": func(b []byte) []byte { return zstandard(t, b) },
	} {
		for _, size := range []int{limit, limit + 1, 8 * limit} {
			bomb := wrap(make([]byte, size))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			out, err := decompress(name, io.NewSectionReader(bytes.NewReader(bomb), 0, int64(len(bomb))), limit)
			runtime.ReadMemStats(&after)
			if size <= limit && (err != nil || len(out) != size) || size > limit && !errors.Is(err, ErrLimit) {
				t.Errorf("%s of %d bytes: %d, %v", name, size, len(out), err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 24<<20 {
				t.Errorf("%s of %d bytes: %d allocated", name, size, used)
			}
		}
	}
}

// TestWindowTooLarge asks for more memory than may be given before a byte
// was read.
func TestWindowTooLarge(t *testing.T) {
	frame := []byte(zstdMagic + "\x00\xff") // a window of nearly 4 TiB
	frame = append(frame, 1, 0, 0)
	_, err := NewFile(bytes.NewReader(frame), int64(len(frame)))
	if !errors.Is(err, ErrLimit) || IsDamage(err) {
		t.Errorf("%v, want over the limit", err)
	}
}

func TestUnknownCriticalChunkInAFinishedFile(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 1)
	list := places(t, b, s.meta.HashBytes)
	critical := AppendChunk(nil, 0x40, 0, []byte("needs a newer program"))
	at := list[len(list)-6]
	newer := slices.Concat(b[:at.start], critical, b[at.start:])
	newer = withoutParse(newer, uint64(len(critical)))
	f, err := NewFile(bytes.NewReader(newer), int64(len(newer)))
	if err == nil {
		_, err = readTicks(f.Reader())
	}
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "0x40") {
		t.Errorf("%v, want newer", err)
	}
	var out Buffer
	if _, err := Repair(bytes.NewReader(newer), int64(len(newer)), &out); !errors.Is(err, ErrNewer) {
		t.Errorf("repair: %v, want newer", err)
	}
}

// withoutParse moves the trailer's offset by more.
func withoutParse(b []byte, more uint64) []byte {
	at := len(b) - trailerSize
	body := b[at+chunkMinSize:]
	summary := binary.BigEndian.Uint64(body) + more
	return AppendChunk(bytes.Clone(b[:at]), ChunkTrailer, 0, slices.Concat(be64(summary), body[8:]))
}
