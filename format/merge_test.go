package format

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func merged(t testing.TB, files ...*File) (*File, *MergeReport, []byte) {
	t.Helper()
	var out Buffer
	report, err := Merge(files, &out)
	if err != nil {
		t.Fatal(err)
	}
	return openBytes(t, out.Bytes()), report, out.Bytes()
}

// Clips that overlap or leave holes, in any order, give back what they were cut
// from, and the holes as gaps.
func TestMergeOfClips(t *testing.T) {
	runs := 0
	for seed := range uint64(70) {
		r := rand.New(rand.NewPCG(seed, 21))
		s := randomSession(r)
		if len(s.ticks) < 3 {
			continue
		}
		s.meta.Session = "match"
		f, _ := s.file(t, 100)
		next := f.Summary().NextTick
		var parts []*File
		in := map[Tick]int{}
		for range 1 + r.IntN(4) {
			from := s.ticks[r.IntN(len(s.ticks))].tick
			to := from + Tick(r.Uint64N(uint64(next-from)))
			clip, report := clipped(t, f, ClipOptions{From: from, To: to, WithoutKeyframe: true})
			parts = append(parts, clip)
			for _, m := range s.ticks {
				if m.tick >= report.First && m.tick <= to {
					in[m.tick]++
				}
			}
		}
		got, report, once := merged(t, parts...)
		want := slices.DeleteFunc(slices.Clone(s.ticks), func(m modelTick) bool { return in[m.tick] == 0 })
		ticks, err := readTicks(got.Reader())
		if err != nil {
			t.Fatal(err)
		}
		if d := differs(ticks, want); d != "" {
			t.Fatalf("seed %d: %s", seed, d)
		}
		checkWhole(t, got)
		checkMergedGaps(t, s, got, in)
		if report.Ticks != uint64(len(want)) {
			t.Errorf("%d ticks are reported, want %d", report.Ticks, len(want))
		}
		for range 3 {
			r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			if _, _, again := merged(t, append(parts, parts[0])...); !bytes.Equal(again, once) {
				t.Fatalf("seed %d: another order gives another file", seed)
			}
		}
		runs++
	}
	if runs < 25 {
		t.Errorf("only %d runs", runs)
	}
}

// checkMergedGaps holds that every tick that no part has lies in a gap: with the
// reason of the match where that declared it.
func checkMergedGaps(t testing.TB, s *session, got *File, in map[Tick]int) {
	t.Helper()
	for _, g := range got.Summary().Gaps {
		for tick := g.First; tick <= g.Last; tick++ {
			declared := gapsWithin(s.gaps, tick, tick+1)
			switch {
			case in[tick] > 0:
				t.Fatalf("tick %d is recorded, and lies in the gap %v", tick, g)
			case len(declared) == 0 && g.Reason != holeReason:
				t.Fatalf("tick %d is in no part; its gap says %q", tick, g.Reason)
			case len(declared) > 0 && g.Reason != declared[0].Reason && g.Reason != holeReason:
				t.Fatalf("tick %d was declared missing with %q, now with %q", tick, declared[0].Reason, g.Reason)
			}
		}
	}
}

// The whole and its own clip are the whole again, but for the labels.
func TestMergeOfTheWholeAndItsClips(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 22))
		s := randomSession(r)
		if len(s.ticks) == 0 {
			continue
		}
		s.meta.Session = "match"
		slices.SortStableFunc(s.marks, func(a, b Mark) int { return cmp.Compare(a.Tick, b.Tick) })
		slices.SortStableFunc(s.reports, func(a, b Report) int { return cmp.Compare(a.At, b.At) })
		slices.SortStableFunc(s.players, func(a, b PlayerEvent) int { return cmp.Compare(a.Tick, b.Tick) })
		f, _ := s.file(t, 100)
		from := s.ticks[r.IntN(len(s.ticks))].tick
		clip, _ := clipped(t, f, ClipOptions{From: from, To: from + Tick(r.Uint64N(uint64(f.Summary().NextTick-from))), WithoutKeyframe: true})
		got, report, _ := merged(t, clip, f)
		s.meta.Labels = got.Summary().Meta.Labels
		s.checkFile(t, got)
		if n := len(s.meta.Labels); n != 3 && report.Duplicates == 0 {
			t.Errorf("labels %v", s.meta.Labels)
		}
		if report.Overlap != clip.Summary().Ticks || len(report.Holes) > 0 {
			t.Errorf("%+v, the clip has %d ticks", report, clip.Summary().Ticks)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A copy of a replay is no part of its own: nothing is changed by it.
func TestMergeOfDuplicates(t *testing.T) {
	s := smallSession()
	f, _ := s.file(t, 1)
	again, _ := s.file(t, 100)
	got, report, _ := merged(t, f, again, f)
	if *got.Summary().Digest != *f.Summary().Digest || report.Parts != 1 || report.Duplicates != 2 {
		t.Errorf("%+v, root %v, want %v", report, got.Summary().Digest, f.Summary().Digest)
	}
	if got.Summary().End.Reason != "over" || got.Summary().End.State != EndSealed {
		t.Errorf("end %+v", got.Summary().End)
	}
}

// A recording that went on as another session, an hour later.
func TestMergeOfALinkedPart(t *testing.T) {
	a, b := smallSession(), smallSession()
	a.end = End{State: EndUnfinished, Reason: "producer gone"}
	b.meta.Session, b.meta.FirstTick, b.meta.StartedAt = "match-7b", 110, a.meta.StartedAt+3600_000000
	b.meta.Labels = append(slices.Clone(b.meta.Labels), Label{LabelPartOf, "match-7"})
	b.gaps, b.keyframes, b.marks, b.reports, b.players, b.salt = nil, []Keyframe{{NextTick: 110, State: []byte("s")}}, nil, nil, nil, nil
	b.ticks = []modelTick{{tick: 110, time: 5, timed: true}, {tick: 111}}
	b.late = nil
	fa, _ := a.file(t, 1)
	fb, _ := b.file(t, 1)
	got, report, _ := merged(t, fb, fa)
	sum := got.Summary()
	if sum.Meta.Session != "match-7" || sum.Meta.FirstTick != 100 || sum.NextTick != 112 || sum.End.State != EndSealed {
		t.Errorf("%+v, %+v", sum.Meta, sum.Totals)
	}
	hole := Gap{First: 106, Last: 109, Reason: holeReason, ByRecorder: true}
	if !reflect.DeepEqual(report.Holes, []Gap{hole}) || !reflect.DeepEqual(sum.Gaps, []Gap{a.gaps[0], hole}) {
		t.Errorf("holes %v, gaps %v", report.Holes, sum.Gaps)
	}
	if sum.LastTime != 3600_000005 {
		t.Errorf("the last time is %d microseconds after the start", sum.LastTime)
	}
	var labels []string
	for _, l := range sum.Meta.Labels {
		labels = append(labels, l.Key)
	}
	if fmt.Sprint(labels) != "[mode merged-from merged-from]" {
		t.Errorf("labels %v", sum.Meta.Labels)
	}
}

func TestMergeConflicts(t *testing.T) {
	for _, c := range []struct {
		what   string
		tick   Tick
		change func(*session)
	}{
		{"list of steps", 102, func(s *session) { s.ticks[2].steps = []Step{{Code: 1, Params: []Value{Int(1), Int(1)}}} }},
		{"list of steps", 100, func(s *session) { s.ticks[0].steps = s.ticks[0].steps[:1] }},
		{"list of steps", 102, func(s *session) { s.ticks[2].steps[0].Code = 9 }},
		{"state hash", 105, func(s *session) { s.ticks[3].hash = []byte{1, 2, 3, 4} }},
		{"time", 102, func(s *session) { s.ticks[2].time++ }},
		{"keyframe", 100, func(s *session) { s.keyframes[0].State = []byte("another") }},
	} {
		f, _ := smallSession().file(t, 1)
		other := smallSession()
		c.change(other)
		g, _ := other.file(t, 1)
		for _, files := range [][]*File{{f, g}, {g, f}, {f, f, g}} {
			var out Buffer
			_, err := Merge(files, &out)
			var conflict *ConflictError
			if !errors.As(err, &conflict) || !errors.Is(err, ErrConflict) || conflict.Tick != c.tick || conflict.What != c.what || conflict.A >= conflict.B {
				t.Errorf("%s at tick %d: %v", c.what, c.tick, err)
			}
		}
	}
}

// What one copy lacks, another one may have: hashes, and times.
func TestMergeCompletes(t *testing.T) {
	thin := smallSession()
	thin.ticks[0].hash, thin.ticks[3].hash, thin.late = nil, nil, nil
	thin.ticks[2].timed, thin.ticks[2].time = false, 0
	full, _ := smallSession().file(t, 1)
	f, _ := thin.file(t, 1)
	got, _, _ := merged(t, f, full)
	ticks, err := readTicks(got.Reader())
	if err != nil {
		t.Fatal(err)
	}
	if d := differs(ticks, smallSession().ticks); d != "" {
		t.Error(d)
	}
}

func TestMergeRefusesOtherMatches(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*session)
	}{
		{"session match-7 and session match-8", func(s *session) { s.meta.Session = "match-8" }},
		{"the game of part 1 and part 2 differ", func(s *session) { s.meta.Game = "chess" }},
		{"the build of part", func(s *session) { s.meta.Build = "" }},
		{"the seed of part", func(s *session) { s.meta.Seed++ }},
		{"the map of part", func(s *session) { s.meta.Map = "m" }},
		{"the tick rate of part", func(s *session) { s.meta.TickRate = Rate{} }},
		{"the hash parts of part", func(s *session) { s.meta.HashParts = nil }},
		{"the code book of part", func(s *session) { s.book = &CodeBook{} }},
	} {
		f, _ := smallSession().file(t, 1)
		other := smallSession()
		c.change(other)
		g, _ := other.file(t, 1)
		var out Buffer
		_, err := Merge([]*File{f, g}, &out)
		if !errors.Is(err, ErrOtherMatch) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
