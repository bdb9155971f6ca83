package format

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// gappySession has three stretches of ticks with gaps between them: three
// archived chunks.
func gappySession() *session {
	s := smallSession()
	s.meta.FirstTick, s.late, s.gaps, s.ticks = 0, nil, nil, nil
	s.players = []PlayerEvent{{Tick: 0, ID: 1, Name: "Ada"}}
	s.keyframes = []Keyframe{{NextTick: 0, State: []byte("zero")}}
	next := Tick(0)
	for stretch := range 3 {
		for range 40 {
			s.ticks = append(s.ticks, modelTick{tick: next, steps: []Step{{Code: 1, Params: []Value{Int(1), Int(int64(next))}}}, hash: []byte{byte(next), 1, 2, 3}})
			next++
		}
		if stretch < 2 {
			s.gaps = append(s.gaps, Gap{First: next, Last: next + 9, Reason: "spool full"})
			next += 10
		}
	}
	return s
}

// gappyArchive is signed, redacted and archived; with every third hash where
// thinned.
func gappyArchive(t testing.TB, thinned bool) []byte {
	t.Helper()
	_, b := gappySession().file(t, 7)
	_, b = redact(t, signedFile(t, b, testKey(1)), RedactOptions{MarkTexts: true})
	o := ArchiveOptions{}
	if thinned {
		o.HashEvery = 3
	}
	b = archived(t, b, o)
	if n := len(openBytes(t, b).Signatures()); n != 1 {
		t.Fatalf("the archive has %d signatures", n)
	}
	return b
}

// archivePlaces finds the chunks of an archive; first and ticks are those of
// its archived ticks.
func archivePlaces(t testing.TB, b []byte) []place {
	t.Helper()
	list := places(t, b, 4)
	for i, p := range list {
		if p.typ != ChunkArchived {
			continue
		}
		c, _, err := ParseChunk(b[p.start:p.end])
		if err != nil {
			t.Fatal(err)
		}
		h, err := parseArchiveHead(c.Body)
		if err != nil {
			t.Fatal(err)
		}
		list[i].first, list[i].ticks = h.First, h.Ticks
	}
	return list
}

// TestRepairOfAnArchiveThatWasCut cuts it around the end of each chunk, and at
// every fifth byte.
func TestRepairOfAnArchiveThatWasCut(t *testing.T) {
	b := gappyArchive(t, true)
	list := archivePlaces(t, b)
	for cut := list[0].end; cut <= len(b); cut++ {
		if near := slices.ContainsFunc(list, func(p place) bool { return cut-p.end <= 1 && p.end-cut <= 1 }); !near && cut%5 != 0 {
			continue
		}
		var out Buffer
		report, err := Repair(bytes.NewReader(b[:cut]), int64(cut), &out)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		checkRepaired(t, fmt.Sprintf("cut at %d", cut), out.Bytes(), wholeTicks(list, cut))
		if cut == len(b) && !bytes.Equal(out.Bytes(), b) {
			t.Fatalf("the whole archive is repaired to %d bytes of %d", len(out.Bytes()), len(b))
		}
		if ended := slices.ContainsFunc(list, func(p place) bool { return p.typ == ChunkEnd && p.end <= cut }); report.Whole != ended {
			t.Fatalf("cut at %d: whole %v, ended %v", cut, report.Whole, ended)
		}
	}
}

// TestRepairOfADamagedArchive hurts each chunk in several ways: both sides are
// kept, and the ticks between are a gap.
func TestRepairOfADamagedArchive(t *testing.T) {
	b := gappyArchive(t, true)
	list := archivePlaces(t, b)
	all := wholeTicks(list, len(b))
	for _, p := range list[1:] {
		for way, hurt := range map[string]func([]byte){
			"a bit":    func(c []byte) { c[len(c)-1] ^= 1 },
			"zeros":    func(c []byte) { clear(c) },
			"a length": func(c []byte) { c[5] ^= 1 },
			"a marker": func(c []byte) { c[0] = 0 },
		} {
			name := fmt.Sprintf("%s in the %v chunk at %d", way, p.typ, p.start)
			part := bytes.Clone(b)
			hurt(part[p.start:p.end])
			var out Buffer
			report, err := Repair(bytes.NewReader(part), int64(len(part)), &out)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			checkRepaired(t, name, out.Bytes(), report.Ticks)
			if report.Ticks != all-uint64(p.ticks) {
				t.Errorf("%s: %d ticks kept of %d", name, report.Ticks, all)
			}
			f := openBytes(t, out.Bytes())
			if p.typ == ChunkArchived && p.first > 0 {
				// A gap that was declared in front of the lost ticks stays one of its own.
				lost := Gap{First: p.first, Last: p.first + Tick(p.ticks) - 1, ByRecorder: true, Reason: "lost to damage"}
				if !slices.Contains(f.Summary().Gaps, lost) {
					t.Errorf("%s: gaps %+v, want %+v among them", name, f.Summary().Gaps, lost)
				}
			}
			if intact := report.Whole; intact != (p.typ.ofFooter() || p.typ == ChunkEnd) {
				t.Errorf("%s: whole %v, lost %+v", name, intact, report.Losses)
			}
		}
	}
}

func TestTwoArchivesGluedTogether(t *testing.T) {
	b := gappyArchive(t, false)
	for name, file := range map[string][]byte{"whole": slices.Concat(b, b), "the first one cut": slices.Concat(b[:len(b)-40], b)} {
		var out Buffer
		report, err := Repair(bytes.NewReader(file), int64(len(file)), &out)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkRepaired(t, name, out.Bytes(), 120)
		if !slices.ContainsFunc(report.Losses, func(l Loss) bool { return strings.Contains(l.Why, "a second ") }) {
			t.Errorf("%s: %+v", name, report)
		}
	}
}
