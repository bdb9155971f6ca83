package format

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// sparseSession has steps, hashes and times in some segments only.
func sparseSession() *session {
	s := &session{meta: Metadata{HashBytes: 2, Width: Width16}, late: map[Tick]bool{}, end: End{State: EndSealed}}
	for tick := range Tick(5*SegmentTicks + 300) {
		m := modelTick{tick: tick}
		switch tick {
		case 7:
			m.steps, m.hash = []Step{{Code: 1, Params: []Value{Int(2), Int(300)}}}, []byte{0xaa, 0xbb}
		case 4 * SegmentTicks:
			m.time, m.timed = 5000, true
		case 5 * SegmentTicks:
			m.hash = []byte{0xcc, 0xdd}
		}
		s.ticks = append(s.ticks, m)
	}
	return s
}

// A sparse digest leaves out leaves of nothing, and says the same.
func TestSparseDigest(t *testing.T) {
	s := sparseSession()
	f, b := s.file(t, 900)
	a := archiveOf(t, f, ArchiveOptions{})
	if hasChunk(t, b, ChunkSparse) || hasChunk(t, a, ChunkDigest) {
		t.Fatal("sparse digests belong into archives, and only there")
	}
	body := chunkOf(t, a, ChunkSparse)
	// Inputs of the first and of the last, which is not whole; hashes of both;
	// times of the last but one.
	if want := 32 + 1 + 6*2 + 5*32; len(body) != want {
		t.Errorf("%d bytes, want %d", len(body), want)
	}
	sparse, err := parseSparse(body)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := parseDigest(chunkOf(t, b, ChunkDigest))
	if err != nil || whole.root != sparse.root || !slices.Equal(whole.segments, sparse.segments) {
		t.Errorf("the digests differ: %v", err)
	}
	if report := checkWhole(t, openBytes(t, a)); *report.Root != s.modelRoot() {
		t.Errorf("root %v", report.Root)
	}
	signed := signedFile(t, a, testKey(1))
	checkWhole(t, openBytes(t, signed))
	if !hasChunk(t, signed, ChunkSparse) {
		t.Error("the signed archive has another digest chunk")
	}
	plain := withSealing(t, a, Chunk{Type: ChunkDigest, Body: appendDigest(nil, whole.root, whole.segments)}, Chunk{})
	checkWhole(t, openBytes(t, plain))
}

func hasChunk(t testing.TB, b []byte, typ ChunkType) bool {
	return slices.ContainsFunc(places(t, b, 2), func(p place) bool { return p.typ == typ })
}

// withSealing puts chunks into the places of a sparse digest and of the leaves.
func withSealing(t testing.TB, b []byte, digest, leaves Chunk) []byte {
	t.Helper()
	var out []byte
	at := 0
	for _, p := range places(t, b, 2) {
		c, ok := map[ChunkType]Chunk{ChunkSparse: digest, ChunkLeaves: leaves}[p.typ]
		if !ok || c.Body == nil {
			continue
		}
		out = AppendChunk(append(out, b[at:p.start]...), c.Type, 0, c.Body)
		at = p.end
	}
	out = append(out, b[at:len(b)-trailerSize]...)
	summary, _ := parseTrailer(b)
	return AppendChunk(out, ChunkTrailer, 0, appendTrailer(nil, summary+int64(len(out)+trailerSize-len(b))))
}

func TestSparseDigestNamesTheChangedSegment(t *testing.T) {
	s := sparseSession()
	f, _ := s.file(t, 900)
	a := archiveOf(t, f, ArchiveOptions{})
	for want, change := range map[string]func(*session){
		"the inputs of segment 0": func(s *session) { s.ticks[7].steps = nil },
		"the inputs of segment 2": func(s *session) { s.ticks[2*SegmentTicks].steps = []Step{{Code: 9}} },
		"the hashes of segment 3": func(s *session) { s.ticks[3*SegmentTicks+1].hash = []byte{1, 2} },
		"the times of segment 4":  func(s *session) { s.ticks[4*SegmentTicks].time++ },
		"the inputs of segment 5": func(s *session) { s.ticks = s.ticks[:len(s.ticks)-1] },
	} {
		other := sparseSession()
		change(other)
		g, _ := other.file(t, 900)
		b := withSealing(t, archiveOf(t, g, ArchiveOptions{}), Chunk{Type: ChunkSparse, Body: chunkOf(t, a, ChunkSparse)},
			Chunk{Type: ChunkLeaves, Body: chunkOf(t, a, ChunkLeaves)})
		_, err := openBytes(t, b).Check()
		if !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestSparseDigestRefuses(t *testing.T) {
	f, _ := sparseSession().file(t, 900)
	a := archiveOf(t, f, ArchiveOptions{})
	body := chunkOf(t, a, ChunkSparse)
	for n := range body {
		if _, err := parseSparse(body[:n]); err == nil {
			t.Fatalf("%d of %d bytes are taken", n, len(body))
		}
	}
	for name, change := range map[string]func([]byte) []byte{
		"another flag":   func(b []byte) []byte { b[34] |= 8; return b },
		"one byte more":  func(b []byte) []byte { return append(b, 0) },
		"a segment more": func(b []byte) []byte { b[32]++; return append(b, 1, 0) },
		"what is empty, written out": func(b []byte) []byte {
			empty := emptySegment(1)
			at := 32 + 1 + 2 + 64
			return slices.Concat(b[:at+1], []byte{sparseTimes}, empty.Times[:], b[at+2:])
		},
	} {
		changed := withSealing(t, a, Chunk{Type: ChunkSparse, Body: change(bytes.Clone(body))}, Chunk{})
		if _, err := openBytes(t, changed).Check(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSparseDigestOfAnySegments goes both ways.
func TestSparseDigestOfAnySegments(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for range 200 {
		var segments []Segment
		index := uint64(0)
		for range r.IntN(20) {
			s := emptySegment(index)
			s.eachLeaf(&s, func(_ byte, leaf, _ *Digest) {
				if r.IntN(2) == 0 {
					leaf[r.IntN(32)]++
				}
			})
			segments = append(segments, s)
			index += 1 + r.Uint64N(300)
		}
		got, err := parseSparse(appendSparse(nil, Digest{1}, segments))
		if err != nil || got.root != (Digest{1}) || !slices.Equal(got.segments, segments) {
			t.Fatalf("%v: %v became %v", err, segments, got.segments)
		}
	}
}

func TestSpecSparseDigestIsThatOfTheExample(t *testing.T) {
	f, _ := exampleSession().file(t, 3)
	l, err := Leaves(f)
	if err != nil {
		t.Fatal(err)
	}
	segments := append(slices.Clone(l.Segments), emptySegment(1), emptySegment(3))
	var shown []byte
	for line := range strings.Lines(specBlocks(t, "sparse")[0]) {
		hex, _, _ := strings.Cut(line, "|")
		shown = append(shown, unhex(t, hex)...)
	}
	if got := appendSparse(nil, Digest{}, segments)[32:]; !bytes.Equal(got, shown) {
		t.Errorf("the specification shows\n%x\nthe example gives\n%x", shown, got)
	}
	empty := emptySegment(1)
	for _, leaf := range []Digest{empty.Inputs, empty.Hashes, empty.Times} {
		if !strings.Contains(specSection(t, "### Sparse digest, `8c`"), leaf.String()) {
			t.Errorf("the specification lacks %v", leaf)
		}
	}
}

func FuzzSparseDigest(f *testing.F) {
	file, _ := sparseSession().file(f, 900)
	f.Add(chunkOf(f, archiveOf(f, file, ArchiveOptions{}), ChunkSparse))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := parseSparse(body)
		if err != nil {
			return
		}
		if again := appendSparse(nil, d.root, d.segments); !bytes.Equal(again, body) {
			t.Errorf("%x is written back as %x", body, again)
		}
	})
}
