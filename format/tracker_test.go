package format

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// chain is a session's file as its chunks come.
type chain struct {
	file   []byte
	chunks []Chunk
	places []int64
	seq    uint64
}

func newChain(meta *Metadata) *chain {
	c := &chain{file: AppendHeader(nil)}
	c.insert(ChunkMeta, AppendMeta(nil, meta))
	return c
}

func (c *chain) append(typ ChunkType, seq uint64, body []byte) {
	c.chunks = append(c.chunks, Chunk{Type: typ, Seq: seq, Body: body})
	c.places = append(c.places, int64(len(c.file)))
	c.file = AppendChunk(c.file, typ, seq, body)
}

// insert appends a chunk outside of the stream, next one of the stream.
func (c *chain) insert(typ ChunkType, body []byte) { c.append(typ, 0, body) }

func (c *chain) next(typ ChunkType, body []byte) {
	c.seq++
	c.append(typ, c.seq, body)
}

// feed gives chunks from to before until to a tracker.
func (c *chain) feed(t *testing.T, tr *Tracker, from, until int) {
	t.Helper()
	for i := from; i < until; i++ {
		if err := tr.Add(c.chunks[i], c.places[i]); err != nil {
			t.Fatalf("%v chunk %d: %v", c.chunks[i].Type, i, err)
		}
	}
}

func (c *chain) footer(t *testing.T, tr *Tracker) []byte {
	t.Helper()
	footer, err := tr.Footer(bytes.NewReader(c.file), int64(len(c.file)), EndSealed, "over")
	if err != nil {
		t.Fatal(err)
	}
	return footer
}

// ticksBody is the body of a ticks chunk of one step in every tick. A time
// below zero means none; hashed tells which ticks have a hash, ascending.
func ticksBody(width Width, first Tick, times []int64, hashed ...Tick) []byte {
	b := NewBatchBuilder(width, 2, first)
	for _, time := range times {
		if err := b.Step(7, Int(int64(b.NextTick()))); err != nil {
			panic(err)
		}
		if time >= 0 {
			b.EndTickAt(time)
		} else {
			b.EndTick()
		}
	}
	for _, t := range hashed {
		b.Hash(t, []byte{byte(t), 1})
	}
	return b.AppendBody(nil)
}

func lateHashes(ticks ...Tick) []byte {
	var list []TickHash
	for _, t := range ticks {
		list = append(list, TickHash{t, []byte{byte(t), 2}})
	}
	return AppendHashes(nil, list)
}

func keyPart(id uint64, next Tick, total, offset uint64, data string) []byte {
	return AppendKeyframePart(nil, KeyframePart{ID: id, NextTick: next, Total: total, Offset: offset, Data: []byte(data)})
}

var testSalt = []byte("0123456789abcdef")

// The places in everyChain after which a refused chunk is tried.
const (
	afterMeta = iota + 1
	afterBook
	afterJoin
	afterTicks
	afterMark
	afterHalfKeyframe
	afterGap
	afterMoreTicks
	afterLateHash
	afterKeyframe
	afterReports
	afterLeave
)

// everyChain has every kind of chunk that comes before the end.
func everyChain() *chain {
	c := newChain(&Metadata{Width: Width8, HashBytes: 2, FirstTick: 10})
	c.insert(ChunkBook, AppendBook(nil, &CodeBook{Codes: []CodeInfo{{Code: 7, Name: "move"}}}))
	c.next(ChunkPlayers, AppendPlayers(nil, testSalt, []PlayerEvent{{Tick: 10, ID: 1, Name: "Ada"}}))
	c.next(ChunkTicks, ticksBody(Width8, 10, []int64{100, -1, -1, 400}, 10, 12))
	c.next(ChunkMark, AppendMark(nil, Mark{Tick: 11, Kind: "kill"}))
	c.next(ChunkKeyframe, keyPart(1, 14, 6, 0, "abc"))
	c.next(ChunkGap, AppendGap(nil, Gap{First: 14, Last: 19}))
	c.next(ChunkTicks, ticksBody(Width8, 20, []int64{-1, -1}))
	c.next(ChunkHashes, lateHashes(11))
	c.next(ChunkKeyframe, keyPart(1, 14, 6, 3, "def"))
	c.next(ChunkReports, AppendReports(nil, []Report{{At: 12, Of: 11, Peer: 3, Hash: []byte{1}}}))
	c.next(ChunkPlayers, AppendPlayers(nil, nil, []PlayerEvent{{Tick: 21, ID: 1, Leave: true}, {Tick: 21, ID: 2, Name: "Bob"}}))
	return c
}

// everyTotals are the counts of everyChain.
var everyTotals = Totals{NextTick: 22, Ticks: 6, Steps: 6, Hashes: 3}

func endWith(change func(*End)) []byte {
	e := End{State: EndSealed, Totals: everyTotals}
	change(&e)
	return AppendEnd(nil, e)
}

func players(salt []byte, events ...PlayerEvent) []byte { return AppendPlayers(nil, salt, events) }

// refusals are chunks that cannot follow. A sequence number of 0 means the
// one that is due.
var refusals = []struct {
	name  string
	after int
	typ   ChunkType
	seq   uint64
	body  []byte
	want  error
	says  string
}{
	{"a second metadata", afterMeta, ChunkMeta, 0, AppendMeta(nil, &Metadata{Width: Width8}), ErrOrder, "a second metadata chunk"},
	{"a second book", afterBook, ChunkBook, 0, AppendBook(nil, &CodeBook{}), ErrOrder, "code book after the opening"},
	{"a book after ticks", afterTicks, ChunkBook, 0, AppendBook(nil, &CodeBook{}), ErrOrder, "code book after the opening"},
	{"a book with a code twice", afterMeta, ChunkBook, 0, AppendBook(nil, &CodeBook{Codes: []CodeInfo{{Code: 1}, {Code: 1}}}), ErrCorrupt, "code 1 stands twice"},

	{"a sequence number that jumps", afterTicks, ChunkMark, 4, AppendMark(nil, Mark{}), ErrOrder, "chunk 4 out of order: 3 was due"},
	{"a sequence number again", afterTicks, ChunkMark, 2, AppendMark(nil, Mark{}), ErrOrder, "chunk 2 out of order: 3 was due"},
	{"the last sequence number", afterTicks, ChunkMark, 1<<64 - 1, AppendMark(nil, Mark{}), ErrOrder, "3 was due"},

	{"ticks that were there", afterTicks, ChunkTicks, 0, ticksBody(Width8, 13, []int64{-1}), ErrOrder, "tick 13 out of order: 14 was due"},
	{"ticks that jump", afterTicks, ChunkTicks, 0, ticksBody(Width8, 15, []int64{-1}), ErrOrder, "tick 15 out of order: 14 was due"},
	{"ticks before the first", afterJoin, ChunkTicks, 0, ticksBody(Width8, 9, []int64{-1, -1}), ErrOrder, "tick 9 out of order: 10 was due"},
	{"ticks of another width", afterTicks, ChunkTicks, 0, ticksBody(Width16, 14, []int64{-1}), ErrOrder, "codes of 16 bits in a session of 8"},
	{"times that go back", afterTicks, ChunkTicks, 0, ticksBody(Width8, 14, []int64{-1, 399}), ErrOrder, "time in microseconds 399 out of order: 400 was due"},
	{"a ticks chunk of nothing", afterTicks, ChunkTicks, 0, nil, ErrCorrupt, "the first tick"},

	{"a hash of a tick to come", afterMoreTicks, ChunkHashes, 0, lateHashes(22), ErrOrder, "hash of tick 22, which is not recorded"},
	{"a hash before the first tick", afterMoreTicks, ChunkHashes, 0, lateHashes(9, 11), ErrOrder, "hash of tick 9, which is not recorded"},
	{"a hash in a gap", afterMoreTicks, ChunkHashes, 0, lateHashes(11, 19), ErrOrder, "hash of tick 19, which is not recorded"},
	{"a second hash", afterMoreTicks, ChunkHashes, 0, lateHashes(11, 12), ErrOrder, "tick 12 has a hash already"},
	{"a second late hash", afterLateHash, ChunkHashes, 0, lateHashes(11), ErrOrder, "tick 11 has a hash already"},
	{"no hashes", afterMoreTicks, ChunkHashes, 0, lateHashes(), ErrCorrupt, "0 late hashes"},
	{"hashes that do not ascend", afterMoreTicks, ChunkHashes, 0, lateHashes(11, 11), ErrCorrupt, "ticks must ascend"},

	{"a keyframe from its middle", afterTicks, ChunkKeyframe, 0, keyPart(2, 14, 6, 3, "def"), ErrOrder, "keyframe 2 begins at byte 3"},
	{"a part again", afterHalfKeyframe, ChunkKeyframe, 0, keyPart(1, 14, 6, 0, "abc"), ErrOrder, "part at byte 0 of 6 before tick 14, due is 3 of 6 before tick 14"},
	{"a part that jumps", afterHalfKeyframe, ChunkKeyframe, 0, keyPart(1, 14, 6, 4, "ef"), ErrOrder, "due is 3"},
	{"a part for another tick", afterHalfKeyframe, ChunkKeyframe, 0, keyPart(1, 15, 6, 3, "def"), ErrOrder, "before tick 15, due"},
	{"a part of another size", afterHalfKeyframe, ChunkKeyframe, 0, keyPart(1, 14, 7, 3, "def"), ErrOrder, "of 7 before"},
	{"a part of a keyframe that is whole", afterKeyframe, ChunkKeyframe, 0, keyPart(1, 14, 6, 3, "def"), ErrOrder, "begins at byte 3"},
	{"a keyframe before the first tick", afterTicks, ChunkKeyframe, 0, keyPart(2, 9, 3, 0, "abc"), ErrOrder, "keyframe before tick 9, the first is 10"},
	{"a part past its end", afterTicks, ChunkKeyframe, 0, keyPart(2, 14, 2, 0, "abc"), ErrCorrupt, "part of 3 bytes at 0 of 2"},
	{"a part without data", afterTicks, ChunkKeyframe, 0, keyPart(2, 14, 2, 0, ""), ErrCorrupt, "without data"},
	{"a part that is too large", afterTicks, ChunkKeyframe, 0, keyPart(2, 14, MaxKeyframe, 0, strings.Repeat("x", MaxKeyframePart+1)), ErrCorrupt, "the most is 32768 at once"},
	{"a keyframe that is too large", afterTicks, ChunkKeyframe, 0, keyPart(2, 14, MaxKeyframe+1, 0, "x"), ErrCorrupt, "1073741824 in all"},

	{"players without a salt", afterBook, ChunkPlayers, 0, players(nil, PlayerEvent{ID: 1}), ErrOrder, "the salt stands in the first players chunk"},
	{"a second salt", afterJoin, ChunkPlayers, 0, players(testSalt), ErrOrder, "only there"},
	{"a short salt", afterBook, ChunkPlayers, 0, players(testSalt[:8]), ErrCorrupt, "salt of 8 bytes"},
	{"a join twice", afterJoin, ChunkPlayers, 0, players(nil, PlayerEvent{ID: 2}, PlayerEvent{ID: 1}), ErrOrder, "player 1, event 1: joins twice"},
	{"a join twice in one chunk", afterJoin, ChunkPlayers, 0, players(nil, PlayerEvent{ID: 2}, PlayerEvent{ID: 2}), ErrOrder, "player 2, event 1: joins twice"},
	{"a leave of nobody", afterJoin, ChunkPlayers, 0, players(nil, PlayerEvent{ID: 2, Leave: true}), ErrOrder, "player 2, event 0: leaves without having joined"},
	{"a leave twice", afterLeave, ChunkPlayers, 0, players(nil, PlayerEvent{ID: 1, Leave: true}), ErrOrder, "leaves without having joined"},

	{"a gap over ticks that are there", afterTicks, ChunkGap, 0, AppendGap(nil, Gap{First: 13, Last: 20}), ErrOrder, "gap's first tick 13 out of order: 14 was due"},
	{"a gap that jumps", afterTicks, ChunkGap, 0, AppendGap(nil, Gap{First: 15, Last: 20}), ErrOrder, "gap's first tick 15 out of order: 14 was due"},
	{"a gap that ends before it begins", afterTicks, ChunkGap, 0, AppendGap(nil, Gap{First: 14, Last: 13}), ErrCorrupt, "gap from 14 to 13"},
	{"a gap without an end", afterTicks, ChunkGap, 0, AppendGap(nil, Gap{First: 14, Last: MaxTick}), ErrLimit, "gap up to tick"},

	{"an end with another next tick", afterLeave, ChunkEnd, 0, endWith(func(e *End) { e.NextTick-- }), ErrTotals, "next tick: declared 21, recorded 22"},
	{"an end with another count of ticks", afterLeave, ChunkEnd, 0, endWith(func(e *End) { e.Ticks++ }), ErrTotals, "ticks: declared 7, recorded 6"},
	{"an end with another count of steps", afterLeave, ChunkEnd, 0, endWith(func(e *End) { e.Steps = 0 }), ErrTotals, "steps: declared 0, recorded 6"},
	{"an end with another count of hashes", afterLeave, ChunkEnd, 0, endWith(func(e *End) { e.Hashes++ }), ErrTotals, "hashes: declared 4, recorded 3"},
	{"an end of no known state", afterLeave, ChunkEnd, 0, endWith(func(e *End) { e.State = 3 }), ErrCorrupt, "end state 3"},
	{"a digest before the end", afterLeave, ChunkDigest, 0, nil, ErrOrder, "digest chunk before the end"},
	{"a summary before the end", afterLeave, ChunkSummary, 0, nil, ErrOrder, "summary chunk before the end"},
	{"a seek table before the end", afterLeave, ChunkSeek, 0, nil, ErrOrder, "seek table chunk before the end"},
	{"a trailer before the end", afterTicks, ChunkTrailer, 0, nil, ErrOrder, "trailer chunk before the end"},
}

// TestRefusedChunkChangesNothing tries each refusal in the middle of a
// session: what comes after it, and the end of the file, are as if it had
// never been tried.
func TestRefusedChunkChangesNothing(t *testing.T) {
	c := everyChain()
	fresh := NewTracker()
	c.feed(t, fresh, 0, len(c.chunks))
	if fresh.Totals() != everyTotals {
		t.Fatalf("totals %+v, want %+v", fresh.Totals(), everyTotals)
	}
	want := c.footer(t, fresh)
	for _, r := range refusals {
		tr := NewTracker()
		c.feed(t, tr, 0, r.after)
		seq := r.seq
		if seq == 0 {
			seq = tr.Seq() + 1
		}
		err := tr.Add(Chunk{Type: r.typ, Seq: seq, Body: r.body}, 1<<40)
		if !errors.Is(err, r.want) || !strings.Contains(err.Error(), r.says) {
			t.Errorf("%s: %v, want %v with %q", r.name, err, r.want, r.says)
			continue
		}
		c.feed(t, tr, r.after, len(c.chunks))
		if got := c.footer(t, tr); !bytes.Equal(got, want) {
			t.Errorf("%s: it left a trace in the footer", r.name)
		}
		if n := tr.TakeNotices(); n != nil {
			t.Errorf("%s: notices %q", r.name, n)
		}
	}
}

func TestTrackerWantsMetadataFirst(t *testing.T) {
	for typ := range chunkNames {
		if typ == ChunkMeta {
			continue
		}
		if err := NewTracker().Add(Chunk{Type: typ}, HeaderSize); !errors.Is(err, ErrOrder) {
			t.Errorf("%v before the metadata: %v, want out of order", typ, err)
		}
	}
}

func TestNothingFollowsTheEndButTheFooter(t *testing.T) {
	c := everyChain()
	tr := NewTracker()
	c.feed(t, tr, 0, len(c.chunks))
	c.footer(t, tr)
	for i, chunk := range c.chunks[1:] {
		chunk.Seq = 0
		if err := tr.Add(chunk, 1<<40); !errors.Is(err, ErrOrder) {
			t.Errorf("%v chunk %d after the end: %v", chunk.Type, i, err)
		}
	}
	for _, typ := range []ChunkType{ChunkEnd, 0x80} {
		if err := tr.Add(Chunk{Type: typ, Body: endWith(func(*End) {})}, 1<<40); !errors.Is(err, ErrOrder) {
			t.Errorf("%v after the end: %v", typ, err)
		}
	}
	if _, err := tr.Footer(bytes.NewReader(c.file), int64(len(c.file)), EndSealed, ""); !errors.Is(err, ErrOrder) {
		t.Errorf("a second footer: %v", err)
	}
	for _, typ := range []ChunkType{ChunkDigest, ChunkSummary, ChunkSeek, ChunkTrailer, 0x8f, 0xff} {
		if err := tr.Add(Chunk{Type: typ}, 1<<40); err != nil {
			t.Errorf("%v in the footer: %v", typ, err)
		}
	}
}

func TestChunksOutsideOfTheStreamLeaveItsNumbers(t *testing.T) {
	c := everyChain()
	tr := NewTracker()
	c.feed(t, tr, 0, afterTicks)
	for _, chunk := range []Chunk{
		{Type: ChunkGap, Body: AppendGap(nil, Gap{First: 14, Last: 14, ByRecorder: true})},
		{Type: 0x90, Body: []byte("unknown and optional")},
		{Type: ChunkTicks, Seq: 3, Body: ticksBody(Width8, 15, []int64{-1})},
		{Type: 0x91, Seq: 4},
	} {
		if err := tr.Add(chunk, 1<<40); err != nil {
			t.Fatalf("%v chunk: %v", chunk.Type, err)
		}
	}
	if tr.Seq() != 4 || tr.Totals().NextTick != 16 {
		t.Errorf("sequence number %d, next tick %d", tr.Seq(), tr.Totals().NextTick)
	}
}

func TestPlayersMayComeBack(t *testing.T) {
	c := everyChain()
	tr := NewTracker()
	c.feed(t, tr, 0, len(c.chunks))
	back := players(nil, PlayerEvent{Tick: 22, ID: 1, Name: "Ada"}, PlayerEvent{Tick: 22, ID: 1, Leave: true}, PlayerEvent{Tick: 22, ID: 1, Name: "Ada II"})
	if err := tr.Add(Chunk{Type: ChunkPlayers, Body: back}, 1<<40); err != nil {
		t.Fatal(err)
	}
	want := []Player{{ID: 1, Name: "Ada II", Stays: []Stay{{Joined: 10, Left: 21}, {Joined: 22, Left: 22}, {Joined: 22, Open: true}}},
		{ID: 2, Name: "Bob", Stays: []Stay{{Joined: 21, Open: true}}}}
	if got := tr.Summary().Roster(); !reflect.DeepEqual(got, want) {
		t.Errorf("roster %+v, want %+v", got, want)
	}
}

// TestLateHashReachesBackAsFarAsTheLimit tries the oldest tick that may
// still get its hash, and the one before it, with and without a hash of its
// own.
func TestLateHashReachesBackAsFarAsTheLimit(t *testing.T) {
	for _, step := range []int{1, 1000, MaxHashLag - 1, MaxHashLag, MaxHashLag + 1, MaxChunkTicks} {
		c := newChain(&Metadata{Width: Width8, HashBytes: 2, FirstTick: 1<<40 - 7})
		b := NewBatchBuilder(Width8, 2, 1<<40-7)
		tr := NewTracker()
		for b.NextTick() < 1<<40+2*MaxHashLag {
			if b.NextTick()%3 == 0 {
				b.Hash(b.EndTick(), []byte{1, 2})
			} else {
				b.EndTick()
			}
			if b.Ticks() == step {
				c.next(ChunkTicks, b.AppendBody(nil))
				b.Cut()
			}
			if step == 1 && len(c.chunks) > MaxHashLag+300 {
				break
			}
		}
		c.feed(t, tr, 0, len(c.chunks))
		next := tr.Totals().NextTick
		for lag := Tick(1); lag <= MaxHashLag+4 && next-lag >= 1<<40-7; lag++ {
			tick := next - lag
			_, err := tr.Check(Chunk{Type: ChunkHashes, Body: lateHashes(tick)})
			switch {
			case lag > MaxHashLag:
				if !errors.Is(err, ErrLimit) {
					t.Fatalf("chunks of %d: lag %d: %v, want over the limit", step, lag, err)
				}
			case tick%3 == 0:
				if !errors.Is(err, ErrOrder) {
					t.Fatalf("chunks of %d: tick %d has a hash: %v", step, tick, err)
				}
			case err != nil:
				t.Fatalf("chunks of %d: lag %d: %v", step, lag, err)
			}
		}
	}
}

func TestTicksEndAtTheLargest(t *testing.T) {
	c := newChain(&Metadata{Width: Width8, HashBytes: 2, FirstTick: MaxTick - 2})
	tr := NewTracker()
	c.feed(t, tr, 0, 1)
	tooMany := Chunk{Type: ChunkTicks, Body: ticksBody(Width8, MaxTick-2, []int64{-1, -1, -1})}
	if err := tr.Add(tooMany, 0); !errors.Is(err, ErrLimit) {
		t.Errorf("ticks up to the largest number: %v", err)
	}
	if err := tr.Add(Chunk{Type: ChunkTicks, Body: ticksBody(Width8, MaxTick-2, []int64{-1, -1})}, 0); err != nil {
		t.Error(err)
	}
	if err := tr.Add(Chunk{Type: ChunkTicks, Body: ticksBody(Width8, MaxTick, []int64{-1})}, 0); !errors.Is(err, ErrLimit) {
		t.Errorf("one more tick: %v", err)
	}
	if err := tr.Add(Chunk{Type: ChunkGap, Body: AppendGap(nil, Gap{First: MaxTick, Last: MaxTick})}, 0); !errors.Is(err, ErrLimit) {
		t.Errorf("a gap behind it: %v", err)
	}
}

func TestSessionWithoutHashesTakesNone(t *testing.T) {
	c := newChain(&Metadata{Width: Width8})
	tr := NewTracker()
	c.feed(t, tr, 0, 1)
	b := NewBatchBuilder(Width8, 0, 0)
	b.EndTick()
	if err := tr.Add(Chunk{Type: ChunkTicks, Body: b.AppendBody(nil)}, 0); err != nil {
		t.Fatal(err)
	}
	if err := tr.Add(Chunk{Type: ChunkHashes, Body: []byte{1, 0}}, 0); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a late hash of no bytes: %v", err)
	}
	if err := tr.Add(Chunk{Type: ChunkTicks, Body: ticksBody(Width8, 1, []int64{-1}, 1)}, 0); !errors.Is(err, ErrCorrupt) {
		t.Errorf("ticks with hashes: %v", err)
	}
}

// TestNotesAreBounded fills each list that the summary repeats.
func TestNotesAreBounded(t *testing.T) {
	long := strings.Repeat("x", MaxText)
	for name, body := range map[string]func(i int) (ChunkType, []byte){
		"marks": func(i int) (ChunkType, []byte) {
			return ChunkMark, AppendMark(nil, Mark{Kind: long, Text: long})
		},
		"gaps": func(i int) (ChunkType, []byte) {
			return ChunkGap, AppendGap(nil, Gap{First: Tick(i), Last: Tick(i), Reason: long})
		},
		"players": func(i int) (ChunkType, []byte) {
			salt := testSalt
			if i > 0 {
				salt = nil
			}
			return ChunkPlayers, players(salt, PlayerEvent{ID: uint64(i), Name: long, Team: long})
		},
	} {
		c := newChain(&Metadata{Width: Width8})
		tr := NewTracker()
		c.feed(t, tr, 0, 1)
		size := 0
		for i := 0; ; i++ {
			typ, b := body(i)
			err := tr.Add(Chunk{Type: typ, Body: b}, 0)
			if size+len(b) > MaxNoteBytes {
				if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), name) {
					t.Errorf("%s: %d bytes and %d more: %v", name, size, len(b), err)
				}
				break
			}
			if err != nil {
				t.Fatalf("%s: %d bytes and %d more: %v", name, size, len(b), err)
			}
			size += len(b)
		}
		footer, err := tr.Footer(bytes.NewReader(nil), 1<<20, EndSealed, "")
		if err != nil || len(footer) < size-MaxText {
			t.Errorf("%s: a full list: %d bytes of footer, %v", name, len(footer), err)
		}
	}
}

func TestOpeningIsBounded(t *testing.T) {
	book := &CodeBook{}
	for i := range MaxOpening/MaxText + 1 {
		book.Codes = append(book.Codes, CodeInfo{Code: uint16(i), Name: strings.Repeat("x", MaxText)})
	}
	if _, err := NewWriter(&Buffer{}, &Metadata{Width: Width8}, book); !errors.Is(err, ErrLimit) {
		t.Errorf("a book of %d bytes: %v", len(AppendBook(nil, book)), err)
	}
	book.Codes = book.Codes[:len(book.Codes)-10]
	if _, err := NewWriter(&Buffer{}, &Metadata{Width: Width8}, book); err != nil {
		t.Errorf("a book of %d bytes: %v", len(AppendBook(nil, book)), err)
	}
}

// TestKeyframesAreBounded sends more empty keyframes than count; a search
// through them for each would take minutes.
func TestKeyframesAreBounded(t *testing.T) {
	c := newChain(&Metadata{Width: Width8})
	tr := NewTracker()
	c.feed(t, tr, 0, 1)
	if err := tr.Add(Chunk{Type: ChunkGap, Body: AppendGap(nil, Gap{Last: 1 << 40})}, 0); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(MaxKeyframes + 100) {
		if err := tr.Add(Chunk{Type: ChunkKeyframe, Body: keyPart(i, Tick(i), 0, 0, "")}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(tr.Summary().Keyframes); n != MaxKeyframes {
		t.Errorf("%d keyframes count", n)
	}
	notices := tr.TakeNotices()
	if len(notices) != maxNotices || !strings.Contains(notices[0], fmt.Sprintf("before tick %d is ignored", MaxKeyframes)) || !strings.Contains(notices[maxNotices-1], "left out") {
		t.Errorf("%d notices, the first %q", len(notices), notices[0])
	}
	if _, err := tr.Footer(bytes.NewReader(nil), 1<<40, EndSealed, ""); err != nil {
		t.Errorf("its end: %v", err)
	}
}

func TestFifthOpenKeyframeDropsTheOldest(t *testing.T) {
	c := newChain(&Metadata{Width: Width8})
	for i := range uint64(MaxOpenKeyframes + 1) {
		c.next(ChunkKeyframe, keyPart(i, Tick(100+i), 6, 0, "abc"))
	}
	tr := NewTracker()
	c.feed(t, tr, 0, len(c.chunks))
	if n := tr.TakeNotices(); len(n) != 1 || n[0] != "keyframe before tick 100 is dropped: 3 of 6 bytes came" {
		t.Errorf("notices %q", n)
	}
	if err := tr.Add(Chunk{Type: ChunkKeyframe, Body: keyPart(0, 100, 6, 3, "def")}, 0); !errors.Is(err, ErrOrder) {
		t.Errorf("the rest of the dropped one: %v", err)
	}
	if err := tr.Add(Chunk{Type: ChunkKeyframe, Body: keyPart(1, 101, 6, 3, "def")}, 0); err != nil {
		t.Errorf("the rest of another: %v", err)
	}
	for i, last := range []Tick{99, 100} {
		if n := len(tr.Summary().Keyframes); n != 0 {
			t.Errorf("%d keyframes count before tick %d is there", n, last)
		}
		if err := tr.Add(Chunk{Type: ChunkGap, Body: AppendGap(nil, Gap{First: Tick(100 * i), Last: last})}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := tr.Summary().Keyframes; len(got) != 1 || got[0].NextTick != 101 || got[0].Offset != c.places[2] {
		t.Errorf("keyframes %+v, want the one before tick 101 at %d", got, c.places[2])
	}
}

func TestSummaryIsACopy(t *testing.T) {
	c := everyChain()
	tr := NewTracker()
	c.feed(t, tr, 0, afterGap)
	before := tr.Summary()
	marks, gaps := slices.Clone(before.Marks), slices.Clone(before.Gaps)
	c.feed(t, tr, afterGap, len(c.chunks))
	if !reflect.DeepEqual(before.Marks, marks) || !reflect.DeepEqual(before.Gaps, gaps) || before.Ticks != 4 || len(before.Keyframes) != 0 {
		t.Errorf("the summary changed with the session: %+v", before)
	}
	if last, timed := tr.LastTime(); last != 400 || !timed {
		t.Errorf("last time %d, %v", last, timed)
	}
}

func TestReasonThatIsTooLongEndsNothing(t *testing.T) {
	var out Buffer
	w, err := NewWriter(&out, &Metadata{Width: Width8}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(EndSealed, strings.Repeat("x", MaxText+1)); !errors.Is(err, ErrLimit) {
		t.Errorf("%v, want over the limit", err)
	}
	if err := errors.Join(w.EndTick(), w.Finish(EndSealed, strings.Repeat("x", MaxText))); err != nil {
		t.Fatal(err)
	}
	if s := openBytes(t, out.Bytes()).Summary(); s.Ticks != 1 || len(s.End.Reason) != MaxText {
		t.Errorf("%+v", s)
	}
}

// TestTrackerTakesTicksWithoutAllocating: a session that goes on takes no
// memory for a small chunk of ticks.
func TestTrackerTakesTicksWithoutAllocating(t *testing.T) {
	const runs = 200
	tr := NewTracker()
	if err := tr.Add(Chunk{Type: ChunkMeta, Body: AppendMeta(nil, &Metadata{Width: Width16})}, HeaderSize); err != nil {
		t.Fatal(err)
	}
	builder := NewBatchBuilder(Width16, 0, 0)
	var chunks []Chunk
	for seq := range uint64(runs + 1) {
		for range 2 {
			if err := builder.Step(7, Int(3), Int(70_000), Int(-12)); err != nil {
				t.Fatal(err)
			}
			builder.EndTick()
		}
		chunks = append(chunks, Chunk{Type: ChunkTicks, Seq: seq + 1, Body: builder.AppendBody(nil)})
		builder.Cut()
	}
	allocs := testing.AllocsPerRun(runs, func() {
		if err := tr.Add(chunks[tr.Seq()], HeaderSize); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 || tr.Seq() != runs+1 {
		t.Errorf("%v allocations for a chunk, %d chunks taken", allocs, tr.Seq())
	}
}

// TestTrackerKeepsTicksTogether: what a ticks chunk touches fills two cache
// lines of 64 bytes, and the first begins with eight bytes of the allocator.
func TestTrackerKeepsTicksTogether(t *testing.T) {
	var tr Tracker
	end := unsafe.Offsetof(tr.content) + unsafe.Offsetof(tr.content.open) + unsafe.Offsetof(tr.content.open.hashes)
	if end > 2*64-8 {
		t.Errorf("it ends at byte %d", end)
	}
}
