package format

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func clipped(t testing.TB, f *File, o ClipOptions) (*File, *ClipReport) {
	t.Helper()
	var out Buffer
	report, err := Clip(f, &out, o)
	if err != nil {
		t.Fatal(err)
	}
	return openBytes(t, out.Bytes()), report
}

// within gives the part of the model from first to before next.
func (s *session) within(first, next Tick) *session {
	part := *s
	in := func(t Tick) bool { return t >= first && t < next }
	part.meta.FirstTick, part.meta.Session = first, ""
	part.gaps = gapsWithin(s.gaps, first, next)
	part.ticks = slices.DeleteFunc(slices.Clone(s.ticks), func(m modelTick) bool { return !in(m.tick) })
	part.marks = slices.DeleteFunc(slices.Clone(s.marks), func(m Mark) bool { return !in(m.Tick) })
	part.reports = slices.DeleteFunc(slices.Clone(s.reports), func(r Report) bool { return !in(r.Of) })
	part.players = slices.DeleteFunc(slices.Clone(s.players), func(e PlayerEvent) bool { return e.Tick >= next })
	part.keyframes = slices.DeleteFunc(slices.Clone(s.keyframes), func(k Keyframe) bool { return !in(k.NextTick) && k.NextTick != next })
	return &part
}

func TestClipHoldsItsRange(t *testing.T) {
	cut := 0
	for seed := range uint64(90) {
		r := rand.New(rand.NewPCG(seed, 11))
		s := randomSession(r)
		if len(s.ticks) == 0 {
			continue
		}
		f, _ := s.file(t, 1+r.IntN(300))
		from := s.ticks[r.IntN(len(s.ticks))].tick
		to := from + Tick(r.Uint64N(uint64(f.Summary().NextTick-from)))
		first := s.clipStart(from)
		got, report := clipped(t, f, ClipOptions{From: from, To: to, WithoutKeyframe: true})
		want := s.within(first, to+1)
		want.meta.Labels = append(slices.Clone(s.meta.Labels), Label{LabelClipOf, report.Source})
		want.checkFile(t, got)
		checkWhole(t, got)
		if !strings.Contains(report.Source, f.Summary().Digest.String()) || !strings.HasSuffix(report.Source, fmt.Sprintf("ticks %d to %d", from, to)) {
			t.Errorf("the clip says of its source: %s", report.Source)
		}
		if report.First != first || report.Last != to || report.Ticks != uint64(len(want.ticks)) {
			t.Errorf("report %+v, the clip has the ticks %d to %d", report, first, to)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		cut++
	}
	if cut < 30 {
		t.Errorf("only %d clips were cut", cut)
	}
}

// clipStart is the last tick with a keyframe, or the first tick, from which
// no tick up to from is missing; from itself where there is none.
func (s *session) clipStart(from Tick) Tick {
	starts := []Tick{s.meta.FirstTick}
	for _, k := range s.keyframes {
		if k.NextTick <= from {
			starts = append(starts, k.NextTick)
		}
	}
	start := slices.Max(starts)
	recorded := 0
	for _, t := range s.ticks {
		if t.tick >= start && t.tick < from {
			recorded++
		}
	}
	keyed := slices.ContainsFunc(s.keyframes, func(k Keyframe) bool { return k.NextTick == start })
	if recorded == int(from-start) && keyed {
		return start
	}
	return from
}

func TestClipOfOneTick(t *testing.T) {
	s := smallSession()
	f, _ := s.file(t, 1)
	got, report := clipped(t, f, ClipOptions{From: 101, To: 101})
	if report.First != 100 || !report.Keyframe || report.Ticks != 2 || report.Hashes != 2 {
		t.Errorf("the clip of tick 101 is %+v: it begins with the keyframe before tick 100", report)
	}
	if m := got.Summary().Meta; m.Session != "" || m.FirstTick != 100 || m.StartedAt != s.meta.StartedAt {
		t.Errorf("metadata of the clip: %+v", m)
	}
	if want := "session match-7, root " + f.Summary().Digest.String() + ", ticks 101 to 101"; report.Source != want {
		t.Errorf("source %q, want %q", report.Source, want)
	}
}

// The keyframe behind the last tick is the state in which the clip ends.
func TestClipKeepsTheKeyframeBehindItsEnd(t *testing.T) {
	s := smallSession()
	s.keyframes = append(s.keyframes, Keyframe{NextTick: 102, State: []byte("at the end")}, Keyframe{NextTick: 105, State: []byte("later")})
	f, _ := s.file(t, 1)
	got, _ := clipped(t, f, ClipOptions{From: 100, To: 101})
	want := s.within(100, 102)
	want.keyframes = s.keyframes[:2]
	want.checkKeyframes(t, got)
}

func TestClipBeginsWithAStateThatIsGiven(t *testing.T) {
	f, _ := smallSession().file(t, 1)
	got, report := clipped(t, f, ClipOptions{From: 102, To: 105, State: []byte("made")})
	if report.First != 102 || !report.Keyframe {
		t.Fatalf("%+v", report)
	}
	k, err := got.Keyframe(0)
	if err != nil || k.NextTick != 102 || string(k.State) != "made" {
		t.Errorf("keyframe %+v, %v", k, err)
	}
	if gaps := got.Summary().Gaps; len(gaps) != 1 || gaps[0].First != 103 || gaps[0].Last != 104 {
		t.Errorf("gaps %v", gaps)
	}
	checkWhole(t, got)
}

func TestClipRefuses(t *testing.T) {
	whole := smallSession()
	noKeyframe := smallSession()
	noKeyframe.keyframes = nil
	for _, c := range []struct {
		s    *session
		o    ClipOptions
		want error
		text string
	}{
		{whole, ClipOptions{From: 99, To: 101}, ErrRange, "it has the ticks 100 to 105"},
		{whole, ClipOptions{From: 100, To: 106}, ErrRange, "it has the ticks 100 to 105"},
		{whole, ClipOptions{From: 102, To: 101}, ErrRange, "after"},
		{whole, ClipOptions{From: 103, To: 105}, ErrRange, "tick 103 is missing"},
		{whole, ClipOptions{From: 105, To: 105}, ErrNoStart, "ticks 103 to 104 are missing between the last keyframe, before tick 100, and tick 105"},
		{noKeyframe, ClipOptions{From: 101, To: 102}, ErrNoStart, "no keyframe stands at tick 101 or before it"},
	} {
		f, _ := c.s.file(t, 1)
		var out Buffer
		_, err := Clip(f, &out, c.o)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v", c.o, err)
		}
		if len(out.Bytes()) > 0 {
			t.Errorf("%+v: %d bytes were written", c.o, len(out.Bytes()))
		}
	}
	f, _ := noKeyframe.file(t, 1)
	if _, report := clipped(t, f, ClipOptions{From: 100, To: 102}); report.First != 100 || report.Keyframe {
		t.Errorf("from the first tick: %+v", report)
	}
	if _, report := clipped(t, f, ClipOptions{From: 101, To: 102, WithoutKeyframe: true}); report.First != 101 {
		t.Errorf("without a keyframe: %+v", report)
	}
}

// segmentsOf computes the leaves of a file's segments.
func segmentsOf(t testing.TB, f *File) map[uint64]Segment {
	t.Helper()
	tracker := NewTracker()
	if _, err := follow(tracker, f.src, f.size, nil); err != nil {
		t.Fatal(err)
	}
	tracker.content.closeSegment()
	leaves := map[uint64]Segment{}
	for _, s := range tracker.content.segments {
		leaves[s.Index] = s
	}
	return leaves
}

func TestWholeSegmentsOfAClipKeepTheirLeaves(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := &session{meta: Metadata{Game: "g", Width: Width16, HashBytes: 8}, end: End{State: EndSealed}, late: map[Tick]bool{}}
	time := int64(0)
	for tick := range Tick(5000) {
		s.ticks = append(s.ticks, randomTick(r, s, tick, &time))
	}
	s.late = map[Tick]bool{}
	s.keyframes = []Keyframe{{NextTick: 1000, State: []byte("k")}}
	f, _ := s.file(t, 500)
	got, _ := clipped(t, f, ClipOptions{From: 1000, To: 4095})
	source, leaves := segmentsOf(t, f), segmentsOf(t, got)
	for i := uint64(1); i <= 3; i++ {
		if leaves[i] != source[i] {
			t.Errorf("segment %d has other leaves in the clip", i)
		}
	}
	if reflect.DeepEqual(leaves[0], source[0]) {
		t.Error("segment 0 is not whole in the clip, but has the same leaves")
	}
}

func TestClipNamesWhoSignedItsSource(t *testing.T) {
	_, b := smallSession().file(t, 1)
	one, other := testKey(1), testKey(2)
	id := func(n byte) string { return publicKey(testKey(n)).ID() }
	plain := openBytes(t, b)
	statement := NewStatement(EndSealed, Digest{}, plain.Summary().Meta)
	for name, c := range map[string]struct {
		file    []byte
		signers string
		doubt   string
	}{
		"nobody":   {b, "", ""},
		"one":      {signedFile(t, b, one), ", signed by key " + id(1), ""},
		"two":      {signedFile(t, b, one, other), ", signed by key " + id(1) + ", key " + id(2), ""},
		"nor this": {signedAs(t, b, appendSignature(nil, statement.Sign(one))), "", "has signed is another content"},
	} {
		got, report := clipped(t, openBytes(t, c.file), ClipOptions{From: 101, To: 101})
		want := "session match-7, root " + plain.Summary().Digest.String() + ", ticks 101 to 101" + c.signers
		if report.Source != want || got.Summary().Meta.Labels[len(got.Summary().Meta.Labels)-1] != (Label{LabelClipOf, want}) {
			t.Errorf("%s: the clip says %q, want %q", name, report.Source, want)
		}
		if doubt := fmt.Sprint(report.Doubt); (report.Doubt != nil) != (c.doubt != "") || !strings.Contains(doubt, c.doubt) {
			t.Errorf("%s: doubt %v", name, report.Doubt)
		}
		if len(got.Signatures()) > 0 {
			t.Errorf("%s: the clip is signed by %v", name, got.Signatures())
		}
		if merged := matchOf(got.Summary().Meta); merged != "match-7" {
			t.Errorf("%s: the clip is of %q", name, merged)
		}
	}
}

func TestWhatWasMadeOfACopySaysWhatThatLacks(t *testing.T) {
	_, b := privateSession().file(t, 700)
	thin := archiveOf(t, openBytes(t, b), ArchiveOptions{HashEvery: 20})
	_, red := redact(t, thin, erasedLabels)
	for file, want := range map[string]string{string(b): "", string(thin): ", thinned", string(red): ", redacted, thinned"} {
		f := openBytes(t, []byte(file))
		if got := identity(f.Summary()); !strings.HasSuffix(got, f.Summary().Digest.String()+want) {
			t.Errorf("%s, want%s behind the root", got, want)
		}
	}
}
