package format

import (
	"errors"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
)

// nestedLists is the coded part of one step whose parameter is a list, whose
// element is a list, and so on.
func nestedLists(depth int) []byte {
	const code = 2
	m := new(rowModel)
	m.begin(MaxRowBytes)
	m.c.write(nil)
	m.number(numberShapes, 1, 0)
	m.number(numberShape, code<<8|1, 0)
	w := walk{m: m, shapes: []uint32{code<<8 | 1}}
	w.tick()
	prior := m.shapes[0]
	w.symbol(0)
	s := stepSoFar{code: code, count: 1, player: noPlayer, all: hash2(code<<8|1, 3), prior: prior, left: [2]uint32{hash2(m.player, 0), prior}}
	place := 0
	for range depth {
		v := &view{place: place, end: min(s.count-place, placeMost)}
		m.look(&s, v)
		k := mark{1, kindList}
		if _, ok := m.guess(&s, v, k); !ok {
			m.spell(&s, v, k)
		}
		s.code |= elementCode
		s.number, place = 0, 1
	}
	m.c.end()
	return m.c.out
}

// A list in a list is damage before what it holds is read: else a few bytes go
// deeper than any stack, which ends the process.
func TestListsDoNotNest(t *testing.T) {
	const inner = "REPRISE_TEST_NESTED_LISTS"
	if os.Getenv(inner) == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestListsDoNotNest$")
		cmd.Env = append(os.Environ(), inner+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%.400s", err, out)
		}
		return
	}
	debug.SetMaxStack(16 << 20)
	coded := nestedLists(500_000)
	if len(coded) > 1000 {
		t.Fatalf("%d bytes", len(coded))
	}
	var r archiveReader
	h := archiveHead{Ticks: 1, Steps: 1, params: 1000, runs: 1, method: methodModel, coded: coded}
	if _, err := r.ticks(appendArchive(nil, &h)); !IsDamage(err) {
		t.Errorf("error %v, want damage", err)
	}
}

// builtFile makes a finished file of ten ticks with what a test puts before
// them and the hashes it gives them.
func builtFile(t *testing.T, hashed int, before func(put func(Chunk) error) error) ([]byte, error) {
	t.Helper()
	meta := &Metadata{Width: Width8, Game: "x", HashBytes: 8, TickRate: Rate{60, 1}}
	tracker := NewTracker()
	tracker.archives = &archiveReader{}
	out := AppendHeader(nil)
	put := func(c Chunk) error {
		err := tracker.Add(c, int64(len(out)))
		out = AppendChunk(out, c.Type, c.Seq, c.Body)
		return err
	}
	b := NewBatchBuilder(Width8, 8, 0)
	for i := range 10 {
		tick := b.EndTick()
		if i < hashed {
			b.Hash(tick, make([]byte, 8))
		}
	}
	err := errors.Join(put(Chunk{Type: ChunkMeta, Body: AppendMeta(nil, meta)}), before(put))
	if err == nil {
		err = put(Chunk{Type: ChunkTicks, Seq: tracker.Seq() + 1, Body: b.AppendBody(nil)})
	}
	if err != nil {
		return nil, err
	}
	footer, err := tracker.Footer(strings.NewReader(string(out)), int64(len(out)), EndSealed, "")
	if err != nil {
		return nil, err
	}
	return append(out, footer...), nil
}

// Hashes that a session never had cannot stand under its digest: the sum of
// those that are there and those that were left out does not wrap.
func TestNoticesLeaveOutNoMoreThanThereWas(t *testing.T) {
	for _, c := range []struct {
		left uint64
		good bool
	}{
		{left: 4, good: true}, {left: 1024, good: true}, {left: 1025}, {left: 1<<64 - 10},
	} {
		b, err := builtFile(t, 10, func(put func(Chunk) error) error {
			n := &archiveNotice{ArchiveInfo: ArchiveInfo{Level: ArchiveNone, HashEvery: 2, HashesLeft: c.left}, leaves: []segmentLeaf{{0, emptySegment(0).Hashes}}}
			return put(Chunk{Type: ChunkArchive, Body: appendArchiveNotice(nil, n)})
		})
		if err == nil {
			_, err = openBytes(t, b).Check()
		}
		if c.good && err != nil || !c.good && !IsDamage(err) {
			t.Errorf("%d left out: %v", c.left, err)
		}
	}
}

// withSparse writes a finished file with a sparse digest in place of its own.
func withSparse(t *testing.T, b []byte) []byte {
	t.Helper()
	out := AppendHeader(nil)
	summary := 0
	for rest := b[HeaderSize:]; len(rest) > 0; {
		c, n, err := ParseChunk(rest)
		if err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
		switch c.Type {
		case ChunkDigest:
			d, err := parseDigest(c.Body)
			if err != nil {
				t.Fatal(err)
			}
			c.Type, c.Body = ChunkSparse, appendSparse(nil, d.root, d.segments)
		case ChunkSummary:
			summary = len(out)
		case ChunkTrailer:
			c.Body = appendTrailer(nil, int64(summary))
		}
		out = AppendChunk(out, c.Type, c.Seq, c.Body)
	}
	return out
}

// A sparse digest stands in files with an archive notice only.
func TestSparseDigestNeedsANotice(t *testing.T) {
	for _, noticed := range []bool{true, false} {
		b, err := builtFile(t, 10, func(put func(Chunk) error) error {
			if !noticed {
				return nil
			}
			n := &archiveNotice{ArchiveInfo: ArchiveInfo{Level: ArchiveFast, HashEvery: 1}}
			return put(Chunk{Type: ChunkArchive, Body: appendArchiveNotice(nil, n)})
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := openBytes(t, b).Check(); err != nil {
			t.Fatal(err)
		}
		if !noticed {
			b = withSparse(t, b)
		}
		_, err = openBytes(t, b).Check()
		var bad *CorruptError
		if refused := errors.As(err, &bad) && strings.Contains(bad.What, "without an archive notice"); refused == noticed {
			t.Errorf("notice %v: %v", noticed, err)
		}
	}
}
