package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var allLevels = [...]ArchiveLevel{ArchiveFast, ArchiveDefault, ArchiveMax}

// sharedArchiver is used again on purpose: nothing of one archive may be left
// for the next.
var sharedArchiver = NewArchiver()

// archiveOf archives a file and gives the archive's bytes.
func archiveOf(t testing.TB, f *File, o ArchiveOptions) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := sharedArchiver.Archive(f, &out, o); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestArchivesSayWhatTheirSourcesSay writes random sessions in chunks of several
// sizes, with late hashes, gaps, keyframes and notes.
func TestArchivesSayWhatTheirSourcesSay(t *testing.T) {
	long(t)
	for seed := range uint64(8) {
		s := randomSession(rand.New(rand.NewPCG(seed, 1)))
		f, _ := s.file(t, int(1+seed%7))
		for _, level := range allLevels {
			t.Run(fmt.Sprintf("%d/%v", seed, level), func(t *testing.T) {
				b := archiveOf(t, f, ArchiveOptions{Level: level})
				a := openBytes(t, b)
				s.checkFile(t, a)
				report := checkWhole(t, a)
				if *report.Root != s.modelRoot() {
					t.Errorf("root %v, the session's is %v", report.Root, s.modelRoot())
				}
				if err := SameContent(f, a); err != nil {
					t.Error(err)
				}
				if info := a.Summary().Archive; info == nil || *info != (ArchiveInfo{Level: level, HashEvery: 1}) {
					t.Errorf("the summary says %+v", info)
				}
				if again := archiveOf(t, f, ArchiveOptions{Level: level}); !bytes.Equal(again, b) {
					t.Error("a second archive has other bytes")
				}
			})
		}
	}
}

func TestArchivesAreArchivedAgain(t *testing.T) {
	f, _ := randomSession(rand.New(rand.NewPCG(5, 5))).file(t, 3)
	direct := archiveOf(t, f, ArchiveOptions{Level: ArchiveMax})
	step := openBytes(t, archiveOf(t, f, ArchiveOptions{Level: ArchiveFast}))
	if got := archiveOf(t, step, ArchiveOptions{Level: ArchiveMax}); !bytes.Equal(got, direct) {
		t.Error("an archive of an archive differs from one of the source")
	}
}

// hashedSession has a state hash for each of n ticks, of which some come late.
func hashedSession(n int) *session {
	s := &session{meta: Metadata{HashBytes: 8, Width: Width16}, late: map[Tick]bool{3: true, 40: true}, end: End{State: EndSealed}}
	for i := range n {
		tick := modelTick{tick: Tick(i), hash: bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 4)}
		if i%3 == 0 {
			tick.steps = []Step{{Code: uint16(300 + i%2), Params: []Value{Int(int64(i % 4)), Int(int64(i)), Float(float64(i) / 8)}}}
		}
		s.ticks = append(s.ticks, tick)
	}
	return s
}

func TestThinningKeepsOneInN(t *testing.T) {
	s := hashedSession(3000)
	f, _ := s.file(t, 50)
	a := openBytes(t, archiveOf(t, f, ArchiveOptions{HashEvery: 20}))
	if report, err := a.Check(); err != nil || *report.Root != s.modelRoot() {
		t.Fatalf("%v, root %v, the session's is %v", err, report.Root, s.modelRoot())
	}
	if err := SameContent(f, a); err != nil {
		t.Error(err)
	}
	want := ArchiveInfo{Level: ArchiveDefault, HashEvery: 20, HashesLeft: 3000 - 151}
	if got := *a.Summary().Archive; got != want || a.Summary().Hashes != 151 {
		t.Errorf("the summary says %+v and %d hashes, want %+v and 151", got, a.Summary().Hashes, want)
	}
	ticks, err := readTicks(a.Reader())
	if err != nil {
		t.Fatal(err)
	}
	for _, tick := range ticks {
		if kept := tick.tick%20 == 0 || tick.tick == 2999; kept != (tick.hash != nil) {
			t.Fatalf("tick %d: hash %x", tick.tick, tick.hash)
		}
	}
	twice := openBytes(t, archiveOf(t, a, ArchiveOptions{HashEvery: 2}))
	if report, err := twice.Check(); err != nil || *report.Root != s.modelRoot() {
		t.Fatalf("thinned twice: %v, root %v", err, report.Root)
	}
	if got := *twice.Summary().Archive; got.HashEvery != 40 || got.HashesLeft+twice.Summary().Hashes != 3000 {
		t.Errorf("thinned twice: %+v and %d hashes", got, twice.Summary().Hashes)
	}
}

func TestSameContentNamesTheFirstDifference(t *testing.T) {
	s := hashedSession(100)
	f, _ := s.file(t, 10)
	for _, c := range []struct {
		name   string
		change func(*session)
		want   string
	}{
		{"parameter", func(s *session) { s.ticks[42].steps[0].Params[1] = Int(-1) }, "tick 42: the parameter areas differ"},
		{"code", func(s *session) { s.ticks[42].steps[0].Code++ }, "tick 42: the command areas differ"},
		{"hash", func(s *session) { s.ticks[41].hash = make([]byte, 8) }, "tick 41: the state hashes differ"},
		{"end", func(s *session) { s.end.Reason = "x" }, "end differ"},
		{"fewer ticks", func(s *session) { s.ticks = s.ticks[:99] }, "number of ticks differ"},
		{"game", func(s *session) { s.meta.Game = "x" }, "metadata differ"},
	} {
		other := hashedSession(100)
		c.change(other)
		g, _ := other.file(t, 10)
		// The roots differ as well; what is said first has to be the place.
		f.sum.Digest, g.sum.Digest = nil, nil
		var d *DifferenceError
		if err := SameContent(f, g); !errors.As(err, &d) || d.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	g, _ := hashedSession(100).file(t, 10)
	f.sum.Digest, g.sum.Digest = nil, nil
	if err := SameContent(f, g); err != nil {
		t.Errorf("of one content: %v", err)
	}
}

// wideSession has rows for several archived chunks.
func wideSession(n int) *session {
	s := &session{meta: Metadata{Width: Width16}, end: End{State: EndSealed}}
	r := rand.New(rand.NewPCG(7, 7))
	for i := range n {
		tick := modelTick{tick: Tick(i)}
		for range r.IntN(4) {
			tick.steps = append(tick.steps, Step{Code: uint16(r.IntN(5)), Params: []Value{Int(r.Int64N(8)), Int(r.Int64N(1 << 30)), String(strings.Repeat("x", r.IntN(30)))}})
		}
		s.ticks = append(s.ticks, tick)
	}
	return s
}

// TestSeekDecodesOneChunk counts what the reader of an archive decodes.
func TestSeekDecodesOneChunk(t *testing.T) {
	s := wideSession(60_000)
	f, _ := s.file(t, 2000)
	b := archiveOf(t, f, ArchiveOptions{})
	a := openBytes(t, b)
	chunks := 0
	for _, p := range places(t, b, 0) {
		if p.typ == ChunkArchived {
			chunks++
		}
	}
	if chunks < 4 {
		t.Fatalf("%d archived chunks", chunks)
	}
	for _, tick := range []Tick{0, 1, 20_000, 33_333, 59_999} {
		r := a.Reader()
		r.Seek(tick)
		var rec TickRecord
		if err := r.Next(&rec); err != nil || rec.Tick != tick {
			t.Fatalf("tick %d: %v, %d", tick, err, rec.Tick)
		}
		if r.dec.decoded != 1 {
			t.Errorf("tick %d: %d chunks were decoded", tick, r.dec.decoded)
		}
		if want := s.ticks[tick]; rec.Steps != len(want.steps) {
			t.Errorf("tick %d has %d steps, want %d", tick, rec.Steps, len(want.steps))
		}
	}
}

// TestArchiveOpensWithTwoReads: and one for the code book.
func TestArchiveOpensWithTwoReads(t *testing.T) {
	f, _ := wideSession(60_000).file(t, 2000)
	b := archiveOf(t, f, ArchiveOptions{})
	src := &countingReader{src: bytes.NewReader(b)}
	file := &File{src: src, size: int64(len(b))}
	if err := file.readFooter(); err != nil {
		t.Fatal(err)
	}
	if src.reads != 2 || file.sum.Archive == nil {
		t.Errorf("%d reads, archive %+v", src.reads, file.sum.Archive)
	}
}

func TestArchiveRefusesDamage(t *testing.T) {
	_, b := hashedSession(200).file(t, 10)
	f := openBytes(t, b)
	bad := bytes.Clone(b)
	bad[len(bad)/2] ^= 1
	g := openBytes(t, bad)
	if _, err := Archive(g, io.Discard, ArchiveOptions{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a damaged source: %v", err)
	}
	torn := openBytes(t, b[:len(b)/2])
	if _, err := Archive(torn, io.Discard, ArchiveOptions{}); !errors.Is(err, ErrTorn) {
		t.Errorf("a torn source: %v", err)
	}
	if _, err := Archive(f, io.Discard, ArchiveOptions{Level: 9}); err == nil {
		t.Error("level 9 was taken")
	}
	full := errors.New("full")
	if _, err := Archive(f, failingWriter{full}, ArchiveOptions{}); !errors.Is(err, full) {
		t.Errorf("a full disk: %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// TestLiveSessionsTakeNoArchivedTicks: decoding is work that no producer may
// order.
func TestLiveSessionsTakeNoArchivedTicks(t *testing.T) {
	f, _ := hashedSession(20).file(t, 10)
	b := archiveOf(t, f, ArchiveOptions{})
	tracker := NewTracker()
	for at := HeaderSize; at < len(b); {
		c, n, err := ParseChunk(b[at:])
		if err != nil {
			t.Fatal(err)
		}
		err = tracker.Add(c, int64(at))
		if archived := c.Type == ChunkArchived || c.Type == ChunkArchive; archived != errors.Is(err, ErrOrder) {
			t.Fatalf("%v chunk: %v", c.Type, err)
		}
		if c.Type == ChunkArchived {
			return
		}
		at += n
	}
	t.Error("no archived ticks")
}

// TestDamageInsideTheCodedPart gives chunks a good checksum over damaged bytes: each
// is refused as damage at the chunk's place, or decodes to other ticks, which
// the digest tells.
func TestDamageInsideTheCodedPart(t *testing.T) {
	long(t)
	for _, level := range allLevels {
		f, _ := hashedSession(90).file(t, 10)
		b := archiveOf(t, f, ArchiveOptions{Level: level})
		for _, p := range places(t, b, 8) {
			if p.typ != ChunkArchived {
				continue
			}
			c, _, _ := ParseChunk(b[p.start:])
			// A model's memory is large: every seventh byte does there.
			step := 1
			if level == ArchiveMax {
				step = 7
			}
			for i := 0; i < len(c.Body); i += step {
				body := bytes.Clone(c.Body)
				body[i] ^= 0x10
				bad := append(bytes.Clone(b[:p.start]), AppendChunk(nil, c.Type, c.Seq, body)...)
				bad = append(bad, b[p.end:]...)
				g, err := NewFile(bytes.NewReader(bad), int64(len(bad)))
				if err == nil {
					_, err = g.Check()
				}
				// A zstd frame has bits without a meaning.
				if err == nil && SameContent(f, g) == nil {
					continue
				}
				var where *CorruptError
				if !errors.As(err, &where) || where.Offset < int64(p.start) {
					t.Fatalf("%v, byte %d of the body: %v", level, i, err)
				}
			}
		}
	}
}

// corpusFiles gives the real matches, as far as they are there.
func corpusFiles(t testing.TB) map[string]*File {
	t.Helper()
	paths, _ := filepath.Glob("../../shared/data/corpus/*.jsonl.zst")
	files := map[string]*File{}
	for _, path := range paths {
		if strings.Contains(path, ".hashes.") {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		src, size, _, err := Unwrap(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		var out Buffer
		if err := ReadJSONL(io.NewSectionReader(src, 0, size), &out, JSONLOptions{PackLists: true}); err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = openBytes(t, out.Bytes())
	}
	if len(files) == 0 {
		t.Skip("no ../../shared/data/corpus: real matches are not here")
	}
	return files
}

// TestCorpusShrinks archives the small real matches, and holds their sizes
// against their plain rows in this program's zstd.
func TestCorpusShrinks(t *testing.T) {
	long(t)
	files := corpusFiles(t)
	logs := map[ArchiveLevel]float64{}
	n := 0
	for name, f := range files {
		if f.size > 300<<10 {
			continue
		}
		n++
		rows, err := PlainRows(f)
		if err != nil {
			t.Fatal(err)
		}
		base := len(CompressRows(rows))
		for level, most := range map[ArchiveLevel]float64{ArchiveDefault: 0.95, ArchiveMax: 0.80} {
			var out bytes.Buffer
			report, err := sharedArchiver.Archive(f, &out, ArchiveOptions{Level: level})
			if err != nil {
				t.Fatal(name, err)
			}
			if err := SameContent(f, openBytes(t, out.Bytes())); err != nil {
				t.Error(name, err)
			}
			ratio := float64(report.ArchivedBytes) / float64(base)
			logs[level] += math.Log(ratio)
			if ratio > most {
				t.Errorf("%s at level %v: %.3f of its rows in zstd", name, level, ratio)
			}
		}
	}
	for level, sum := range logs {
		t.Logf("level %v: geometric mean %.3f over %d files", level, math.Exp(sum/float64(n)), n)
	}
}
