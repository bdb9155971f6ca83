package format

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// unarchived takes an archive back, and expects a whole file without archived
// ticks.
func unarchived(t testing.TB, a *File) *File {
	t.Helper()
	var out bytes.Buffer
	if err := Unarchive(a, &out); err != nil {
		t.Fatal(err)
	}
	f := openBytes(t, out.Bytes())
	for _, p := range places(t, out.Bytes(), f.Summary().Meta.HashBytes) {
		if p.typ == ChunkArchived || p.typ == ChunkHashes {
			t.Errorf("a chunk of %v", p.typ)
		}
	}
	if f.Summary().Archived() {
		t.Error("it says that it is an archive")
	}
	return f
}

func TestUnarchiveGivesTheSourceBack(t *testing.T) {
	for seed := range uint64(6) {
		s := randomSession(rand.New(rand.NewPCG(seed, 21)))
		f, _ := s.file(t, int(1+seed%5))
		level := allLevels[seed%3]
		t.Run(fmt.Sprintf("%d/%v", seed, level), func(t *testing.T) {
			back := unarchived(t, openBytes(t, archiveOf(t, f, ArchiveOptions{Level: level})))
			s.checkFile(t, back)
			if report := checkWhole(t, back); *report.Root != s.modelRoot() {
				t.Errorf("root %v, the session's is %v", report.Root, s.modelRoot())
			}
			if err := SameContent(f, back); err != nil {
				t.Error(err)
			}
			if back.Summary().Archive != nil {
				t.Errorf("the summary says %+v", back.Summary().Archive)
			}
			want, _ := ExportState(f)
			got, err := ExportState(back)
			if err != nil || !bytes.Equal(got.CommandArray, want.CommandArray) || !bytes.Equal(got.ParamArray, want.ParamArray) {
				t.Errorf("another saveState, %v", err)
			}
		})
	}
}

// TestUnarchiveCutsChunks: an archived chunk holds more than a recorder takes
// as one.
func TestUnarchiveCutsChunks(t *testing.T) {
	f, _ := wideSession(20_000).file(t, 2000)
	back := unarchived(t, openBytes(t, archiveOf(t, f, ArchiveOptions{Level: ArchiveFast})))
	if err := SameContent(f, back); err != nil {
		t.Fatal(err)
	}
	s := scanner{src: back.src, size: back.data, at: HeaderSize}
	chunks, want := 0, uint64(0)
	for {
		c, _, err := s.next()
		if err != nil || c.Type == ChunkEnd {
			break
		}
		if c.Seq != 0 {
			if want++; c.Seq != want {
				t.Fatalf("chunk %d stands where %d is due", c.Seq, want)
			}
		}
		if c.Type == ChunkTicks {
			chunks++
			if n, _ := ticksOf(c); n > writerTicks || len(c.Body) > writerRows+4096 {
				t.Errorf("a chunk of %d ticks and %d bytes", n, len(c.Body))
			}
		}
	}
	if chunks < 4 {
		t.Errorf("%d ticks chunks", chunks)
	}
}

// TestUnarchiveKeepsWhatStandsForTheMissing: hashes that were left out, what was
// redacted, and the signature over the whole.
func TestUnarchiveKeepsWhatStandsForTheMissing(t *testing.T) {
	_, b := privateSession().file(t, 700)
	f := openBytes(t, signedFile(t, b, testKey(1)))
	thin := archiveOf(t, f, ArchiveOptions{HashEvery: 20})
	_, red := redact(t, thin, erasedLabels)
	redacted := openBytes(t, red)
	back := unarchived(t, redacted)
	report := checkWhole(t, back)
	if *report.Root != *f.Summary().Digest || len(report.Signatures) != 1 {
		t.Errorf("root %v with %d signatures, was %v with one", report.Root, len(report.Signatures), f.Summary().Digest)
	}
	if got := back.Summary().Archive; got == nil || got.Level != ArchiveNone || got.HashEvery != 20 || got.HashesLeft != redacted.Summary().Archive.HashesLeft {
		t.Errorf("of hashes left out it says %+v", got)
	}
	if got := back.Summary().Redaction; !reflect.DeepEqual(got, redacted.Summary().Redaction) {
		t.Errorf("of the redaction it says %+v", got)
	}
	if err := SameContent(redacted, back); err != nil {
		t.Error(err)
	}
	again := openBytes(t, archiveOf(t, back, ArchiveOptions{HashEvery: 2}))
	if got := again.Summary().Archive; !again.Summary().Archived() || got.HashEvery != 40 || *checkWhole(t, again).Root != *report.Root {
		t.Errorf("archived again: %+v", got)
	}
}

func TestUnarchiveRefuses(t *testing.T) {
	s := hashedSession(50)
	f, _ := s.file(t, 10)
	b := archiveOf(t, f, ArchiveOptions{})
	var out bytes.Buffer
	hurt := slices.Clone(b)
	hurt[len(b)/3] ^= 1
	if err := Unarchive(openBytes(t, hurt), &out); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a damaged archive: %v", err)
	}
	for _, p := range places(t, b, 8) {
		if p.typ == ChunkEnd {
			if err := Unarchive(openBytes(t, b[:p.start]), &out); !errors.Is(err, ErrNoEnd) {
				t.Errorf("one without an end: %v", err)
			}
		}
	}
	if out.Len() > 0 {
		t.Errorf("%d bytes were written", out.Len())
	}
}
