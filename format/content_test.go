package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The content digest, computed a second time from the model: plain and
// recursive, with encodings of its own.

func be64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

func leb(values ...uint64) []byte {
	var b []byte
	for _, v := range values {
		for ; v >= 0x80; v >>= 7 {
			b = append(b, byte(v)|0x80)
		}
		b = append(b, byte(v))
	}
	return b
}

func lebText(s string) []byte { return append(leb(uint64(len(s))), s...) }

func sha(parts ...[]byte) []byte {
	sum := sha256.Sum256(slices.Concat(parts...))
	return sum[:]
}

// treeRoot is RFC 6962's tree: the left half is the largest power of two.
func treeRoot(leaves [][]byte) []byte {
	switch len(leaves) {
	case 0:
		return sha()
	case 1:
		return leaves[0]
	}
	k := 1
	for 2*k < len(leaves) {
		k *= 2
	}
	return sha([]byte{1}, treeRoot(leaves[:k]), treeRoot(leaves[k:]))
}

// modelGroups gives the leaves of the model by kind. Metadata and code book
// are the bodies of their chunks, which the tests of those cover.
func (s *session) modelGroups() [][][]byte {
	groups := make([][][]byte, 12)
	add := func(kind byte, content ...[]byte) {
		groups[kind] = append(groups[kind], sha([]byte{0, kind}, slices.Concat(content...)))
	}
	add(1, AppendMeta(nil, &s.meta))
	if s.book != nil {
		add(2, AppendBook(nil, s.book))
	}
	players := slices.Clone(s.salt)
	for _, e := range s.players {
		players = append(players, leb(uint64(e.Tick), e.ID)...)
		switch {
		case e.Leave:
			players = append(players, 1)
		case e.Observer:
			players = append(players, 2)
		default:
			players = append(players, 0)
		}
		if !e.Leave {
			players = slices.Concat(players, lebText(e.Name), lebText(e.Team))
		}
	}
	add(3, players)
	for i := 0; i < len(s.ticks); {
		segment := uint64(s.ticks[i].tick) / 1024
		inputs, hashes, times := be64(segment), be64(segment), be64(segment)
		n := uint64(0)
		for ; i < len(s.ticks) && uint64(s.ticks[i].tick)/1024 == segment; i++ {
			t, offset := s.ticks[i], uint64(s.ticks[i].tick)%1024
			n++
			if len(t.steps) > 0 {
				inputs = append(inputs, leb(offset, uint64(len(t.steps)))...)
				var params []byte
				for _, step := range t.steps {
					inputs = append(inputs, byte(len(step.Params)), byte(step.Code>>8), byte(step.Code))
					for _, v := range step.Params {
						params, _ = AppendParam(params, v)
					}
				}
				inputs = append(inputs, params...)
			}
			if t.hash != nil {
				hashes = slices.Concat(hashes, leb(offset), t.hash)
			}
			if t.timed {
				times = append(times, leb(offset, uint64(t.time))...)
			}
		}
		add(4, inputs, be64(n))
		add(5, hashes)
		add(6, times)
	}
	keyframes := slices.Clone(s.keyframes)
	slices.SortFunc(keyframes, func(a, b Keyframe) int { return int(int64(a.NextTick) - int64(b.NextTick)) })
	for _, k := range keyframes {
		add(7, be64(uint64(k.NextTick)), sha(k.State))
	}
	for _, m := range s.marks {
		add(8, leb(uint64(m.Tick), m.Player), lebText(m.Kind), lebText(m.Text))
	}
	for _, r := range s.reports {
		add(9, leb(uint64(r.At), uint64(r.Of), r.Peer, uint64(len(r.Hash))), r.Hash)
	}
	for _, g := range s.gaps {
		by := byte(0)
		if g.ByRecorder {
			by = 1
		}
		add(10, leb(uint64(g.First), uint64(g.Last)), []byte{by}, lebText(g.Reason))
	}
	next, ticks, steps, hashes := s.totals()
	add(11, leb(next, ticks, steps, hashes), be64(uint64(s.meta.FirstTick)))
	return groups
}

// modelRoot is the digest of the model.
func (s *session) modelRoot() Digest {
	groups := s.modelGroups()
	root := []byte{2}
	for kind := byte(1); kind <= 11; kind++ {
		root = slices.Concat(root, []byte{kind}, be64(uint64(len(groups[kind]))), treeRoot(groups[kind]))
	}
	return sha256.Sum256(root)
}

func (s *session) totals() (next, ticks, steps, hashes uint64) {
	next = uint64(s.meta.FirstTick)
	for _, t := range s.ticks {
		ticks++
		steps += uint64(len(t.steps))
		next = max(next, uint64(t.tick)+1)
		if t.hash != nil {
			hashes++
		}
	}
	for _, g := range s.gaps {
		next = max(next, uint64(g.Last)+1)
	}
	return next, ticks, steps, hashes
}

func TestDigestEqualsASecondComputation(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := randomSession(r)
		f, _ := s.file(t, 1+r.IntN(200))
		if got, want := *f.Summary().Digest, s.modelRoot(); got != want {
			t.Fatalf("seed %d: digest %v, want %v", seed, got, want)
		}
	}
	s := smallSession()
	f, _ := s.file(t, 1)
	if got, want := *f.Summary().Digest, s.modelRoot(); got != want {
		t.Errorf("small session: digest %v, want %v", got, want)
	}
}

func TestDigestIsOfTheContent(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 4))
	s := randomSession(r)
	for len(s.ticks) < 500 || s.meta.HashBytes == 0 || s.meta.Width == Width16 {
		s = randomSession(r)
	}
	want := s.modelRoot()
	for _, chunk := range []int{1, 7, 100, 5000} {
		if f, _ := s.file(t, chunk); *f.Summary().Digest != want {
			t.Errorf("chunks of %d ticks: another digest", chunk)
		}
	}
	for tick := range s.late {
		s.late[tick] = !s.late[tick]
	}
	if f, _ := s.file(t, 50); *f.Summary().Digest != want {
		t.Error("other hashes late: another digest")
	}
	s.meta.Width = Width16
	wide, _ := s.file(t, 50)
	if *wide.Summary().Digest == want || *wide.Summary().Digest != s.modelRoot() {
		t.Error("the width of codes must change the metadata's leaf alone")
	}
	s.end = End{State: EndUnfinished, Reason: "another one"}
	if f, _ := s.file(t, 50); *f.Summary().Digest != *wide.Summary().Digest {
		t.Error("how the session ended is in the digest")
	}
	s.ticks[3].steps = append(s.ticks[3].steps, Step{Code: 9})
	if f, _ := s.file(t, 50); *f.Summary().Digest == *wide.Summary().Digest {
		t.Error("another step: the same digest")
	}
}

// keyframeFile writes chunks by hand: parts of keyframes in any order among
// ticks.
func keyframeFile(t *testing.T, chunks ...[]byte) *File {
	t.Helper()
	b := AppendHeader(nil)
	b = AppendChunk(b, ChunkMeta, 0, AppendMeta(nil, &Metadata{Width: Width8}))
	return openBytes(t, append(b, slices.Concat(chunks...)...))
}

func part(seq, id uint64, next Tick, state string, from, to int) []byte {
	p := KeyframePart{ID: id, NextTick: next, Total: uint64(len(state)), Offset: uint64(from), Data: []byte(state[from:to])}
	return AppendChunk(nil, ChunkKeyframe, seq, AppendKeyframePart(nil, p))
}

// empty is a chunk of empty ticks.
func empty(seq uint64, first Tick, n int) []byte {
	b := NewBatchBuilder(Width8, 0, first)
	for range n {
		b.EndTick()
	}
	return AppendChunk(nil, ChunkTicks, seq, b.AppendBody(nil))
}

func TestKeyframePartsMayBeMixed(t *testing.T) {
	f := keyframeFile(t,
		part(1, 7, 0, "abcdef", 0, 2), part(2, 1<<63, 2, "ABCDEF", 0, 5), empty(3, 0, 1),
		part(4, 7, 0, "abcdef", 2, 6), part(5, 1<<63, 2, "ABCDEF", 5, 6), part(6, 9, 50, "never due", 0, 9), part(7, 10, 1, "torn", 0, 3), empty(8, 1, 1))
	want := map[Tick]string{0: "abcdef", 2: "ABCDEF"}
	if n := len(f.Summary().Keyframes); n != len(want) {
		t.Fatalf("%d keyframes, want %d: %+v", n, len(want), f.Summary().Keyframes)
	}
	for i := range f.Summary().Keyframes {
		k, err := f.Keyframe(i)
		if err != nil || want[k.NextTick] != string(k.State) {
			t.Errorf("keyframe %+v, %v", k, err)
		}
	}
	notices := strings.Join(checkWhole(t, f).Notices, "\n")
	for _, n := range []string{"keyframe before tick 50", "keyframe before tick 1 is not whole: 3 of 4 bytes"} {
		if !strings.Contains(notices, n) {
			t.Errorf("notices %q lack %q", notices, n)
		}
	}
}

func TestOfTwoKeyframesForOneTickTheFirstCounts(t *testing.T) {
	f := keyframeFile(t, part(1, 1, 0, "first", 0, 5), part(2, 2, 0, "second", 0, 6), empty(3, 0, 1))
	k, err := f.Keyframe(0)
	if err != nil || string(k.State) != "first" || len(f.Summary().Keyframes) != 1 {
		t.Errorf("%+v, %v", k, err)
	}
	if notices := checkWhole(t, f).Notices; len(notices) != 1 || !strings.Contains(notices[0], "second keyframe before tick 0") {
		t.Errorf("notices %q", notices)
	}
}

func TestHalfKeyframesDoNotKeepOutLaterOnes(t *testing.T) {
	var chunks [][]byte
	for i := range uint64(12) {
		chunks = append(chunks, part(i+1, i+1, Tick(i), "half a state", 0, 4))
	}
	chunks = append(chunks, part(13, 13, 0, "whole", 0, 5), empty(14, 0, 1))
	f := keyframeFile(t, chunks...)
	if k, err := f.Keyframe(0); err != nil || string(k.State) != "whole" {
		t.Errorf("%+v, %v", k, err)
	}
	if n := len(checkWhole(t, f).Notices); n != 12 {
		t.Errorf("%d notices, want 12", n)
	}
}

func TestKeyframesOrderDoesNotChangeTheDigest(t *testing.T) {
	one := keyframeFile(t, part(1, 1, 3, "three", 0, 5), part(2, 2, 1, "one", 0, 3), empty(3, 0, 4))
	two := keyframeFile(t, part(1, 1, 1, "one", 0, 3), empty(2, 0, 2), part(3, 2, 3, "three", 0, 5), empty(4, 2, 2))
	roots := map[Digest]bool{}
	for _, f := range []*File{one, two} {
		tr := NewTracker()
		if _, err := follow(tr, f.src, f.size, nil); err != nil {
			t.Fatal(err)
		}
		footer, err := tr.Footer(f.src, f.size, EndSealed, "")
		if err != nil {
			t.Fatal(err)
		}
		raw := make([]byte, f.size)
		if err := readFull(f.src, raw, 0); err != nil {
			t.Fatal(err)
		}
		done := openBytes(t, append(raw, footer...))
		checkWhole(t, done)
		roots[*done.Summary().Digest] = true
	}
	if len(roots) != 1 {
		t.Errorf("%d digests of one content", len(roots))
	}
}

func TestOriginOutlivesTheReadBuffer(t *testing.T) {
	s := smallSession()
	s.meta.Origin = Origin{Format: "jsonl", Header: bytes.Repeat([]byte("kept as it was "), 10)}
	for i := range Tick(6000) {
		s.ticks = append(s.ticks, modelTick{tick: 106 + i, steps: []Step{{Code: 1, Params: []Value{String(strings.Repeat("x", 200))}}}})
	}
	f, b := s.file(t, 100)
	s.checkFileWithIndexes(t, f)
	live := openBytes(t, b[:len(b)-20]) // scanned from the start
	if !bytes.Equal(live.Summary().Meta.Origin.Header, s.meta.Origin.Header) {
		t.Error("the origin's header was overwritten")
	}
}

// TestChunkSizesDoNotChangeTheLeaves: the entries of a few ticks are hashed one
// by one, those of many together.
func TestChunkSizesDoNotChangeTheLeaves(t *testing.T) {
	for _, width := range []Width{Width8, Width16} {
		want := leavesOf(t, width, 1)
		if len(want) != 3 {
			t.Fatalf("%d segments", len(want))
		}
		for _, size := range []int{3, gatherTicks - 1, gatherTicks, 1500} {
			if !slices.Equal(leavesOf(t, width, size), want) {
				t.Errorf("other leaves with %d ticks to a chunk and codes of %d bits", size, width)
			}
		}
	}
}

// leavesOf gives the segments of 2,100 ticks: some empty, most with up to ten
// steps, some with a hash or a time.
func leavesOf(t *testing.T, width Width, ticksToAChunk int) []Segment {
	t.Helper()
	tr := NewTracker()
	builder := NewBatchBuilder(width, 4, 0)
	err := tr.Add(Chunk{Type: ChunkMeta, Body: AppendMeta(nil, &Metadata{Width: width, HashBytes: 4})}, HeaderSize)
	for i := range 2100 {
		for n := range i % 11 {
			err = errors.Join(err, builder.Step(uint16(n), Int(int64(i)), String("step")))
		}
		if i%5 < 3 {
			builder.EndTickAt(int64(i) * 1_000_000)
		} else {
			builder.EndTick()
		}
		if i%3 > 0 {
			builder.Hash(Tick(i), []byte{1, 2, byte(i >> 8), byte(i)})
		}
		if builder.Ticks() == ticksToAChunk || i == 2099 {
			err = errors.Join(err, tr.Add(Chunk{Type: ChunkTicks, Body: builder.AppendBody(nil)}, HeaderSize))
			builder.Cut()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	tr.content.closeSegment()
	return tr.content.segments
}
