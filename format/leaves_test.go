package format

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// longSession has four segments with steps, hashes and times in every tick,
// and notes of every kind.
func longSession() *session {
	s := smallSession()
	s.meta.FirstTick, s.meta.HashBytes, s.meta.HashParts, s.late = 0, 4, nil, nil
	s.gaps = []Gap{{First: 4000, Last: 4009, Reason: "spool full"}}
	s.players = []PlayerEvent{{Tick: 0, ID: 1, Name: "Ada"}}
	s.marks = []Mark{{Tick: 5, Kind: "kill", Text: "first"}, {Tick: 9, Kind: "kill", Text: "second"}, {Tick: 9, Kind: "kill", Text: "third"}}
	s.keyframes = []Keyframe{{NextTick: 0, State: []byte("zero")}, {NextTick: 2000, State: []byte("two thousand")}}
	s.ticks = nil
	for i := range Tick(4000) {
		s.ticks = append(s.ticks, modelTick{tick: i, steps: []Step{{Code: 1, Params: []Value{Int(1), Int(int64(i) % 100)}}}, hash: []byte{byte(i >> 8), byte(i), 0, 1}, time: int64(i) * 50, timed: true})
	}
	return s
}

// forge gives the file of a changed session under the seal of the original:
// its digest, leaves and signature. Everything else, from the checksums to the
// seek table, is as it has to be for the changed content.
func forge(t testing.TB, original, changed []byte) []byte {
	t.Helper()
	for _, typ := range []ChunkType{ChunkDigest, ChunkLeaves, ChunkSignature} {
		body := chunkOf(t, original, typ)
		changed = withFooter(t, changed, typ, func([]byte) []byte { return body })
	}
	at := int64(HeaderSize)
	for at < int64(len(changed)) {
		c, n, err := ParseChunk(changed[at:])
		if err != nil {
			t.Fatal(err)
		}
		if c.Type == ChunkSummary {
			break
		}
		at += int64(n)
	}
	return withFooter(t, changed, ChunkTrailer, func([]byte) []byte { return appendTrailer(nil, at) })
}

func TestCheckNamesWhatWasChanged(t *testing.T) {
	_, b := longSession().file(t, 700)
	original := signedFile(t, b, testKey(1))
	renumber := func(s *session) {
		for i := range s.ticks {
			s.ticks[i].tick = Tick(i)
		}
		s.gaps = nil
	}
	for name, c := range map[string]struct {
		change func(*session)
		says   string
	}{
		"a step in segment 2": {func(s *session) { s.ticks[2100].steps[0].Code = 2 }, "the inputs of segment 2 (ticks 2048 to 3071)"},
		"a hash in segment 1": {func(s *session) { s.ticks[1024].hash[3] = 9 }, "the hashes of segment 1 (ticks 1024 to 2047)"},
		"a time in segment 3": {func(s *session) { s.ticks[3999].time++ }, "the times of segment 3"},
		"segment 1 dropped":   {func(s *session) { s.ticks = slices.Delete(s.ticks, 1024, 2048); renumber(s) }, "the inputs of segment 1"},
		"segment 1 made a gap": {func(s *session) {
			s.ticks = slices.Delete(s.ticks, 1024, 2048)
			s.gaps = []Gap{{First: 1024, Last: 2047}}
		}, "segment 1 (from tick 1024) was sealed, but is not there"},
		"the last one dropped": {func(s *session) { s.ticks, s.gaps = s.ticks[:3072], nil }, "segment 3 (from tick 3072) was sealed, but is not there"},
		"a tick dropped":       {func(s *session) { s.ticks = slices.Delete(s.ticks, 1500, 1501); renumber(s) }, "the inputs of segment 1"},
		"a tick inserted": {func(s *session) {
			s.ticks = slices.Insert(s.ticks, 2050, modelTick{time: s.ticks[2049].time, timed: true})
			renumber(s)
		}, "the inputs of segment 2"},
		"ticks at the end": {func(s *session) {
			s.gaps = nil
			for i := range Tick(200) {
				s.ticks = append(s.ticks, modelTick{tick: 4000 + i})
			}
		}, "the inputs of segment 3"},
		"a segment at the end": {func(s *session) {
			s.gaps = []Gap{{First: 4000, Last: 4199}}
			s.ticks = append(s.ticks, modelTick{tick: 4200})
		}, "segment 4 (from tick 4096) is there, but was not sealed"},
		"segments 1 and 2": {func(s *session) {
			for i := 1024; i < 2048; i++ {
				s.ticks[i].steps, s.ticks[i+1024].steps = s.ticks[i+1024].steps, s.ticks[i].steps
			}
		}, "the inputs of segment 1"},
		"the game":               {func(s *session) { s.meta.Game = "other" }, "the metadata are not what was sealed"},
		"the code book":          {func(s *session) { s.book.Codes[0].Name = "walk" }, "the code book is not what was sealed"},
		"no code book":           {func(s *session) { s.book = nil }, "a code book was sealed, but is not there"},
		"a player":               {func(s *session) { s.players[0].Name = "Eve" }, "the players are not what was sealed"},
		"the second keyframe":    {func(s *session) { s.keyframes[1].State = []byte("two million") }, "keyframe 2 of 2 is not what was sealed"},
		"no keyframe":            {func(s *session) { s.keyframes = s.keyframes[:1] }, "it has 1 keyframe, and was sealed with 2"},
		"the third mark":         {func(s *session) { s.marks[2].Text = "3rd" }, "mark 3 of 3 is not what was sealed"},
		"two marks swapped":      {func(s *session) { s.marks[0], s.marks[1] = s.marks[1], s.marks[0] }, "mark 1 of 3 is not what was sealed"},
		"a mark more":            {func(s *session) { s.marks = append(s.marks, s.marks[0]) }, "it has 4 marks, and was sealed with 3"},
		"a report":               {func(s *session) { s.reports[0].Peer = 8 }, "report 1 of 1 is not what was sealed"},
		"a gap":                  {func(s *session) { s.gaps[0].Reason = "" }, "gap 1 of 1 is not what was sealed"},
		"a longer gap":           {func(s *session) { s.gaps[0].Last++ }, "gap 1 of 1 is not what was sealed"},
		"the end state":          {func(s *session) { s.end.State = EndUnfinished }, "has signed is another content, end state or metadata"},
		"nothing, but unsigned?": {func(*session) {}, ""},
	} {
		s := longSession()
		c.change(s)
		_, b := s.file(t, 700)
		_, err := openBytes(t, forge(t, original, signedFile(t, b, testKey(2)))).Check()
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// TestLeavesThatWereChangedToo are those of an attacker who knows what they
// are for, but has no key.
func TestLeavesThatWereChangedToo(t *testing.T) {
	_, b := longSession().file(t, 700)
	original := signedFile(t, b, testKey(1))
	s := longSession()
	s.marks[1].Text = "2nd"
	_, b = s.file(t, 700)
	changed := signedFile(t, b, testKey(2))
	for name, c := range map[string]struct {
		kept []ChunkType // of the original
		says string
	}{
		"digest and signature are kept": {[]ChunkType{ChunkDigest, ChunkSignature}, "the leaves that would name the place were changed, too"},
		"the signature is kept":         {[]ChunkType{ChunkSignature}, "has signed is another content"},
	} {
		forged := changed
		for _, typ := range c.kept {
			body := chunkOf(t, original, typ)
			forged = withFooter(t, forged, typ, func([]byte) []byte { return body })
		}
		if _, err := openBytes(t, forged).Check(); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// TestLeavesAreThoseOfTheModel compares with digests that the tests compute
// on their own.
func TestLeavesAreThoseOfTheModel(t *testing.T) {
	for seed := range uint64(30) {
		s := randomSession(rand.New(rand.NewPCG(seed, 7)))
		f, _ := s.file(t, 500)
		l, err := Leaves(f)
		if err != nil {
			t.Fatal(err)
		}
		groups := s.modelGroups()
		for _, kind := range listedKinds {
			var have [][]byte
			for _, leaf := range l.lists[kind] {
				have = append(have, bytes.Clone(leaf[:]))
			}
			if !reflect.DeepEqual(have, groups[kind]) {
				t.Fatalf("seed %d: leaves of kind %d are %x, want %x", seed, kind, have, groups[kind])
			}
		}
		if l.Root != s.modelRoot() || l.computed(l.Segments) != l.Root {
			t.Fatalf("seed %d: root %v, from its leaves %v, want %v", seed, l.Root, l.computed(l.Segments), s.modelRoot())
		}
		body := l.AppendBody(nil)
		parsed, err := parseLeaves(body)
		if err != nil || !bytes.Equal(parsed.AppendBody(nil), body) || parsed.groups != l.groups && parsed.computed(l.Segments) != l.Root {
			t.Fatalf("seed %d: read back: %+v, %v", seed, parsed, err)
		}
	}
}

func TestGroupOfMoreLeavesThanAreListed(t *testing.T) {
	l := &LeafList{}
	var lists leafLists
	var m merkle
	for i := range maxListed + 7 {
		d := Digest(sha(be64(uint64(i))))
		lists.add(leafReport, d)
		m.add(d)
	}
	if n := len(lists[leafReport]); n > maxListed+1 {
		t.Errorf("%d leaves are held", n)
	}
	l.groups[leafReport] = leafGroup{n: m.n, root: m.root()}
	body := l.AppendBody(nil)
	if len(body) != 1+len(leb(m.n))+32 {
		t.Errorf("%d bytes for a group that is not listed", len(body))
	}
	parsed, err := parseLeaves(body)
	if err != nil || parsed.groups[leafReport] != l.groups[leafReport] {
		t.Fatalf("%+v, %v", parsed, err)
	}
	other := &LeafList{}
	other.groups[leafReport] = leafGroup{n: m.n}
	if why := other.differs(parsed); why != "the reports are not what was sealed" {
		t.Errorf("%q", why)
	}
}

func TestBadLeavesChunks(t *testing.T) {
	d := bytes.Repeat([]byte{7}, 32)
	for name, c := range map[string]struct {
		body []byte
		says string
	}{
		"inputs":               {slices.Concat([]byte{leafInputs, 1}, d), "leaves of kind 4"},
		"kind 0":               {slices.Concat([]byte{0, 1}, d), "leaves of kind 0"},
		"kind 12":              {slices.Concat([]byte{12, 1}, d), "leaves of kind 12"},
		"a kind twice":         {slices.Concat([]byte{1, 1}, d, []byte{1, 1}, d), "leaves of kind 1"},
		"kinds that descend":   {slices.Concat([]byte{2, 1}, d, []byte{1, 1}, d), "leaves of kind 1"},
		"no leaf":              {[]byte{1, 0}, "no leaf of kind 1"},
		"half a leaf":          {slices.Concat([]byte{1, 1}, d[:16]), "body ends inside a leaf"},
		"leaves without end":   {slices.Concat([]byte{9}, leb(maxListed), d), "body ends inside a leaf"},
		"a number without end": {slices.Concat([]byte{1}, bytes.Repeat([]byte{0xff}, 12)), "shortest uvarint"},
	} {
		if _, err := parseLeaves(c.body); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func TestLeavesOfAFileWithoutAnEnd(t *testing.T) {
	_, b := smallSession().file(t, 1)
	if _, err := Leaves(openBytes(t, b[:endOf(t, b)])); !errors.Is(err, ErrNoEnd) {
		t.Errorf("%v", err)
	}
}

func FuzzLeavesChunk(f *testing.F) {
	file, _ := smallSession().file(f, 1)
	l, err := Leaves(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(l.AppendBody(nil))
	f.Fuzz(func(t *testing.T, body []byte) {
		if l, err := parseLeaves(body); err == nil && !bytes.Equal(l.AppendBody(nil), body) {
			t.Errorf("%x is written back as %x", body, l.AppendBody(nil))
		}
	})
}
