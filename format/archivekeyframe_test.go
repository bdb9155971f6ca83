package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// frameStates are states of several sizes and kinds, by the ticks before which
// they stand.
func frameStates() []Keyframe {
	noise := make([]byte, 100_000)
	r := rand.New(rand.NewPCG(4, 2))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	return []Keyframe{
		{NextTick: 0, State: []byte{}},
		{NextTick: 10, State: []byte("short")},
		{NextTick: 20, State: bytes.Repeat([]byte("unit 17 at 3,4; "), 5_000)},
		{NextTick: 30, State: noise},
		{NextTick: 40, State: slices.Concat(make([]byte, maxArchivedPart), noise, bytes.Repeat([]byte("x"), 50_000))},
	}
}

func frameSession() *session {
	s := &session{meta: Metadata{Width: Width16}, end: End{State: EndSealed}, keyframes: frameStates()}
	for tick := range Tick(60) {
		s.ticks = append(s.ticks, modelTick{tick: tick, steps: []Step{{Code: 1, Params: []Value{Int(int64(tick))}}}})
	}
	return s
}

// parts gives the parts of a file's keyframes as they are stored.
func parts(t testing.TB, b []byte) (kinds string, list []KeyframePart) {
	t.Helper()
	var r archiveReader
	s := scanner{src: bytes.NewReader(b), size: int64(len(b)), at: HeaderSize}
	for {
		c, _, err := s.next()
		if err == io.EOF {
			return kinds, list
		}
		if err != nil {
			t.Fatal(err)
		}
		if !c.Type.holdsKeyframe() {
			continue
		}
		p, err := r.part(c)
		if err != nil {
			t.Fatal(err)
		}
		p.Data = bytes.Clone(p.Data)
		list = append(list, p)
		kinds += map[ChunkType]string{ChunkKeyframe: "p", ChunkArchivedKeyframe: "z"}[c.Type]
	}
}

func TestArchivesCompressKeyframes(t *testing.T) {
	s := frameSession()
	f, b := s.file(t, 7)
	for _, level := range allLevels {
		a := archiveOf(t, f, ArchiveOptions{Level: level})
		file := openBytes(t, a)
		s.checkFile(t, file)
		if report := checkWhole(t, file); *report.Root != s.modelRoot() {
			t.Errorf("%v: root %v", level, report.Root)
		}
		if err := SameContent(f, file); err != nil {
			t.Errorf("%v: %v", level, err)
		}
		kinds, list := parts(t, a)
		// Nothing, a text, letters; noise in four parts of 32 KiB; zeros, then
		// noise and letters.
		if want := "ppz" + "pppp" + "zz"; kinds != want {
			t.Errorf("%v: parts %s, want %s", level, kinds, want)
		}
		if max := 210_000; len(a) > max || len(b) < 1_300_000 {
			t.Errorf("%v: %d bytes of %d, want %d", level, len(a), len(b), max)
		}
		back := unarchived(t, file)
		s.checkFile(t, back)
		for _, p := range list {
			if len(p.Data) > maxArchivedPart {
				t.Errorf("%v: a part of %d bytes", level, len(p.Data))
			}
		}
		again := archiveOf(t, file, ArchiveOptions{Level: level})
		if !bytes.Equal(again, a) {
			t.Errorf("%v: an archive of the archive has other bytes", level)
		}
	}
}

// TestArchivesOfMixedParts: of keyframes whose parts are mixed, with ticks
// between them, of which one never becomes whole and one comes too late for its
// tick.
func TestArchivesOfMixedParts(t *testing.T) {
	state := func(n byte) []byte { return bytes.Repeat([]byte{n}, 2*MaxKeyframePart+9) }
	one, two := SplitKeyframe(1, Keyframe{NextTick: 0, State: state(1)}), SplitKeyframe(2, Keyframe{NextTick: 2, State: state(2)})
	half := SplitKeyframe(3, Keyframe{NextTick: 1, State: state(3)})
	second := SplitKeyframe(4, Keyframe{NextTick: 2, State: state(4)[:9]})
	var out Buffer
	w, err := NewWriter(&out, &Metadata{Width: Width16}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]KeyframePart{{one[0], two[0]}, {half[0], two[1]}, {one[1], half[1]}, {two[2]}, {one[2]}, {second[0]}} {
		for _, p := range list {
			err = errors.Join(err, w.next(ChunkKeyframe, AppendKeyframePart(nil, p)))
		}
		err = errors.Join(err, w.EndTick(), w.Flush())
	}
	if err = errors.Join(err, w.Finish(EndSealed, "")); err != nil {
		t.Fatal(err)
	}
	f := openBytes(t, out.Bytes())
	a := archiveOf(t, f, ArchiveOptions{})
	if kinds, _ := parts(t, a); kinds != "zz" {
		t.Errorf("parts %s", kinds)
	}
	checkWhole(t, openBytes(t, a))
	if err := SameContent(f, openBytes(t, a)); err != nil {
		t.Error(err)
	}
}

func TestArchivedKeyframeRefuses(t *testing.T) {
	data := bytes.Repeat([]byte("abc"), 100)
	frame := NewArchiver().best.frame(nil, data)
	good := KeyframePart{ID: 1, NextTick: 7, Total: 500, Offset: 100, Data: data}
	body := appendArchivedPart(nil, good, frame)
	var r archiveReader
	if p, err := r.part(Chunk{Type: ChunkArchivedKeyframe, Body: body}); err != nil || p.Offset != 100 || p.Total != 500 || !bytes.Equal(p.Data, data) {
		t.Fatalf("%+v, %v", p, err)
	}
	for n := range body {
		if _, err := r.part(Chunk{Type: ChunkArchivedKeyframe, Body: body[:n]}); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d of %d bytes: %v", n, len(body), err)
		}
	}
	for name, p := range map[string]KeyframePart{
		"beyond the state":     {Total: 399, Offset: 100, Data: data},
		"other size":           {Total: 500, Offset: 100, Data: data[1:]},
		"no data":              {Total: 500, Offset: 100},
		"a state over a limit": {Total: MaxKeyframe + 1, Data: data},
		"a part over a limit":  {Total: MaxKeyframe, Data: make([]byte, maxArchivedPart+1)},
	} {
		if _, err := r.part(Chunk{Type: ChunkArchivedKeyframe, Body: appendArchivedPart(nil, p, frame)}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	producer := NewTracker()
	if err := producer.Add(Chunk{Type: ChunkMeta, Body: AppendMeta(nil, &Metadata{Width: Width16})}, 0); err != nil {
		t.Fatal(err)
	}
	if err := producer.Add(Chunk{Type: ChunkArchivedKeyframe, Seq: 1, Body: body}, 0); !errors.Is(err, ErrOrder) {
		t.Errorf("from a producer: %v", err)
	}
}

func TestSpecArchivedKeyframeIsThatOfTheExample(t *testing.T) {
	var shown []byte
	for line := range strings.Lines(specBlocks(t, "archivedkeyframe")[0]) {
		hex, _, _ := strings.Cut(line, "|")
		shown = append(shown, unhex(t, hex)...)
	}
	var r archiveReader
	p, err := r.part(Chunk{Type: ChunkArchivedKeyframe, Body: shown})
	if want := bytes.Repeat([]byte("a"), 64); err != nil || p.ID != 1 || p.NextTick != 7 || p.Total != 64 || p.Offset != 0 || !bytes.Equal(p.Data, want) {
		t.Errorf("%+v, %v", p, err)
	}
	if text, want := specSection(t, "### Archived keyframe, `08`"), fmt.Sprintf("at most %s", thousands(maxArchivedPart)); !strings.Contains(text, want) {
		t.Errorf("the specification lacks %q", want)
	}
}

func FuzzArchivedKeyframe(f *testing.F) {
	data := bytes.Repeat([]byte("abc"), 100)
	f.Add(appendArchivedPart(nil, KeyframePart{ID: 1, NextTick: 7, Total: 500, Offset: 100, Data: data}, NewArchiver().best.frame(nil, data)))
	var r archiveReader
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := r.part(Chunk{Type: ChunkArchivedKeyframe, Body: body})
		if err == nil && (len(p.Data) == 0 || len(p.Data) > maxArchivedPart || p.Offset+uint64(len(p.Data)) > p.Total || p.Total > MaxKeyframe) {
			t.Errorf("%d bytes at %d of %d", len(p.Data), p.Offset, p.Total)
		}
	})
}
