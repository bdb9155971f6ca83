package format

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// bodies are one body of every kind of chunk that has a parser and an
// encoder, by the name of the kind.
func bodies(t testing.TB) map[string][]byte {
	t.Helper()
	s := smallSession()
	meta := s.meta
	meta.Data, meta.Map = "data", "100x100"
	meta.Env = []Label{{"os", "any"}, {"\xff", "\x00"}}
	meta.Origin = Origin{Format: "rply1", Header: []byte("header")}
	b := NewBatchBuilder(Width16, 4, 7)
	err := errors.Join(b.Step(300, samples()[1:]...), b.Step(1))
	if err != nil {
		t.Fatal(err)
	}
	b.EndTickAt(5)
	b.EndTick()
	b.EndTick()
	b.EndTickAt(900)
	b.Hash(8, []byte("hash"))
	return map[string][]byte{
		"metadata":  AppendMeta(nil, &meta),
		"code book": AppendBook(nil, s.book),
		"ticks":     b.AppendBody(nil),
		"gap":       AppendGap(nil, s.gaps[0]),
		"mark":      AppendMark(nil, s.marks[0]),
		"reports":   AppendReports(nil, s.reports),
		"hashes":    AppendHashes(nil, []TickHash{{1, []byte("1111")}, {1 << 40, []byte("2222")}}),
		"keyframe":  AppendKeyframePart(nil, KeyframePart{ID: 3, NextTick: 9, Total: 10, Offset: 4, Data: []byte("part")}),
		"players":   AppendPlayers(nil, s.salt, s.players),
		"end":       AppendEnd(nil, End{State: EndSealed, Totals: Totals{NextTick: 4, Ticks: 3, Steps: 2, Hashes: 1}, Reason: "over"}),
	}
}

// rewrite parses a body of a kind and encodes what it held.
func rewrite(kind string, body []byte) ([]byte, error) {
	switch kind {
	case "metadata":
		m, err := ParseMeta(body)
		if err != nil {
			return nil, err
		}
		return AppendMeta(nil, m), nil
	case "code book":
		b, err := ParseBook(body)
		if err != nil {
			return nil, err
		}
		return AppendBook(nil, b), nil
	case "ticks":
		return rebuild(body)
	case "gap":
		g, err := ParseGap(body)
		return AppendGap(nil, g), err
	case "mark":
		m, err := ParseMark(body)
		return AppendMark(nil, m), err
	case "reports":
		r, err := ParseReports(body)
		return AppendReports(nil, r), err
	case "hashes":
		h, err := ParseHashes(body, 4)
		return AppendHashes(nil, h), err
	case "keyframe":
		p, err := ParseKeyframePart(body)
		return AppendKeyframePart(nil, p), err
	case "players":
		salt, events, err := ParsePlayers(body)
		return AppendPlayers(nil, salt, events), err
	}
	e, err := ParseEnd(body)
	return AppendEnd(nil, e), err
}

// rebuild reads the ticks of a batch one by one and builds a batch of them.
func rebuild(body []byte) ([]byte, error) {
	batch, err := ParseBatch(body, 4)
	if err != nil {
		return nil, err
	}
	b := NewBatchBuilder(batch.Width, 4, batch.First)
	r := batch.Reader()
	for t := (TickRecord{}); r.Next(&t); {
		if err := b.Add(&t); err != nil {
			return nil, err
		}
	}
	return b.AppendBody(nil), nil
}

func TestBodiesAreWrittenAsTheyAreRead(t *testing.T) {
	for kind, body := range bodies(t) {
		got, err := rewrite(kind, body)
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("%s: %v\n got %x\nwant %x", kind, err, got, body)
		}
	}
}

func TestBodiesCutOrLongerAreRefused(t *testing.T) {
	for kind, body := range bodies(t) {
		for cut := range body {
			got, err := rewrite(kind, body[:cut])
			if err == nil && !bytes.Equal(got, body[:cut]) {
				t.Errorf("%s cut at %d of %d is read as something else", kind, cut, len(body))
			}
			if err == nil && kind != "metadata" && kind != "keyframe" {
				t.Errorf("%s cut at %d of %d is taken", kind, cut, len(body))
			}
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s cut at %d: %v is no damage", kind, cut, err)
			}
		}
		if kind == "keyframe" || kind == "metadata" {
			continue // their last field has no end of its own
		}
		if _, err := rewrite(kind, append(bytes.Clone(body), 0)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s with a byte more: %v", kind, err)
		}
	}
}

func TestMetadataKeepsFieldsOfANewerVersion(t *testing.T) {
	body := append(AppendMeta(nil, &Metadata{Width: Width8, Game: "g"}), 0x63, 3, 'n', 'e', 'w', 0x63, 0)
	m, err := ParseMeta(body)
	if err != nil || !bytes.Equal(AppendMeta(nil, m), body) {
		t.Errorf("%v: wrote %x, want %x", err, AppendMeta(nil, m), body)
	}
}

func TestMetadataThatIsRefused(t *testing.T) {
	long := strings.Repeat("x", MaxText+1)
	for name, m := range map[string]Metadata{
		"no width":                   {},
		"a session id with a slash":  {Width: 8, Session: "a/b"},
		"a session id of dots":       {Width: 8, Session: ".."},
		"a session id too long":      {Width: 8, Session: strings.Repeat("x", 65)},
		"a long game":                {Width: 8, Game: long},
		"a long label":               {Width: 8, Labels: []Label{{"k", long}}},
		"too many labels":            {Width: 8, Labels: make([]Label, MaxLabels+1)},
		"a rate without denominator": {Width: 8, TickRate: Rate{1, 0}},
		"a wide hash":                {Width: 8, HashBytes: 33},
		"parts that do not add up":   {Width: 8, HashBytes: 8, HashParts: []HashPart{{"a", 4}}},
		"a part of nothing":          {Width: 8, HashBytes: 8, HashParts: []HashPart{{"a", 8}, {"b", 0}}},
		"a first tick too late":      {Width: 8, FirstTick: MaxTick + 1},
		"a long foreign header":      {Width: 8, Origin: Origin{"jsonl", make([]byte, MaxOrigin+1)}},
	} {
		if err := m.Validate(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	for name, body := range map[string]string{
		"an empty field":      "\x02\x00\x0c\x01\x08",
		"a zero":              "\x05\x01\x00\x0c\x01\x08",
		"fields that go back": "\x0c\x01\x08\x02\x01g",
		"a field twice":       "\x02\x01g\x02\x01g\x0c\x01\x08",
		"field zero":          "\x00\x00\x0c\x01\x08",
	} {
		if _, err := ParseMeta([]byte(body)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v, want damage", name, err)
		}
	}
}

func TestRateText(t *testing.T) {
	for _, c := range []struct {
		rate Rate
		text string
	}{{Rate{112, 5}, "22.4"}, {Rate{60, 1}, "60"}, {Rate{10319, 200}, "51.595"}, {Rate{1000, 3}, "1000/3"}, {Rate{}, "0"}} {
		if got := c.rate.String(); got != c.text {
			t.Errorf("%d/%d prints %s, want %s", c.rate.Num, c.rate.Den, got, c.text)
		}
	}
}

func TestRosterFoldsStays(t *testing.T) {
	s := Summary{Players: []PlayerEvent{
		{Tick: 0, ID: 7, Name: "Ada", Team: "red"}, {Tick: 0, ID: 8, Name: "Bob", Observer: true},
		{Tick: 50, ID: 7, Leave: true}, {Tick: 90, ID: 7, Name: "Ada L.", Team: "blue"},
	}}
	want := []Player{
		{ID: 7, Name: "Ada L.", Team: "blue", Stays: []Stay{{0, 50, false}, {90, 0, true}}},
		{ID: 8, Name: "Bob", Observer: true, Stays: []Stay{{0, 0, true}}},
	}
	if got := s.Roster(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestBatchRecodesItsWidth(t *testing.T) {
	narrow := NewBatchBuilder(Width8, 0, 0)
	if err := narrow.Step(200, Int(5), String("x")); err != nil {
		t.Fatal(err)
	}
	narrow.EndTick()
	batch, err := ParseBatch(narrow.AppendBody(nil), 0)
	if err != nil {
		t.Fatal(err)
	}
	wide := NewBatchBuilder(Width16, 0, 0)
	r := batch.Reader()
	var rec TickRecord
	r.Next(&rec)
	if err := wide.Add(&rec); err != nil {
		t.Fatal(err)
	}
	again, err := ParseBatch(wide.AppendBody(nil), 0)
	if err != nil || !bytes.Equal(again.Commands, []byte{2, 0, 200}) || !bytes.Equal(again.Params, batch.Params) {
		t.Errorf("%v: %x %x", err, again.Commands, again.Params)
	}
	if err := wide.Step(300); err != nil {
		t.Fatal(err)
	}
	wide.EndTick()
	wide.Cut()
	back := NewBatchBuilder(Width8, 0, 0)
	rec = TickRecord{Width: Width16, Steps: 2, Commands: []byte{0, 0, 1, 0, 1, 44}}
	if err := back.Add(&rec); !errors.Is(err, ErrStep) || back.OpenSteps() != 0 || back.Rows() != 0 {
		t.Errorf("code 300 in 8 bits: %v, %d open steps", err, back.OpenSteps())
	}
}

func TestBuilderKeepsTheOpenTickThroughACut(t *testing.T) {
	b := NewBatchBuilder(Width16, 2, 10)
	b.EndTick()
	if err := b.Step(7, Int(1)); err != nil {
		t.Fatal(err)
	}
	b.Hash(10, []byte{1, 2})
	first, err := ParseBatch(b.AppendBody(nil), 2)
	if err != nil || first.Ticks != 1 || first.Steps != 0 || first.Hashes != 1 {
		t.Fatalf("%v: %+v", err, first)
	}
	b.Cut()
	if b.Hash(10, []byte{1, 2}) {
		t.Error("a tick that was cut took a hash")
	}
	b.EndTick()
	second, err := ParseBatch(b.AppendBody(nil), 2)
	if err != nil || second.First != 11 || second.Steps != 1 || second.Hashes != 0 {
		t.Fatalf("%v: %+v", err, second)
	}
	if err := b.Step(8, Int(1)); err != nil {
		t.Fatal(err)
	}
	b.Drop()
	if b.OpenSteps() != 0 {
		t.Error("dropped steps are still there")
	}
	third, err := ParseBatch(b.AppendBody(nil), 2)
	if err != nil || third.Steps != 1 {
		t.Errorf("%v: %+v", err, third)
	}
}

func TestParsingABatchAllocatesNothing(t *testing.T) {
	body := bodies(t)["ticks"]
	var rec TickRecord
	var b Batch
	var r BatchReader
	if n := testing.AllocsPerRun(50, func() {
		b, _ = ParseBatch(body, 4)
		for r = b.Reader(); r.Next(&rec); {
		}
	}); n != 0 || rec.Tick != 10 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzBodies: what a parser takes, its encoder gives back byte for byte.
func FuzzBodies(f *testing.F) {
	kinds := []string{"metadata", "code book", "ticks", "gap", "mark", "reports", "hashes", "keyframe", "players", "end"}
	for i, k := range kinds {
		f.Add(byte(i), bodies(f)[k])
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		k := kinds[int(kind)%len(kinds)]
		got, err := rewrite(k, body)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%s: %v is no damage", k, err)
			}
			return
		}
		if !bytes.Equal(got, body) {
			t.Fatalf("%s: wrote %x, read %x", k, got, body)
		}
	})
}

func FuzzParseChunk(f *testing.F) {
	f.Add(AppendChunk(nil, ChunkMark, 1, []byte("body")))
	f.Add(AppendChunk(nil, 0xf0, 1<<63, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, n, err := ParseChunk(b)
		if err != nil {
			if !IsDamage(err) {
				t.Fatalf("%v is no damage", err)
			}
			return
		}
		if got := AppendChunk(nil, c.Type, c.Seq, c.Body); !bytes.Equal(got, b[:n]) {
			t.Fatalf("wrote %x, read %x", got, b[:n])
		}
	})
}

// FuzzOpen does everything with any bytes: they are taken as the chunks of a
// file, each with its checksum made right, and as a file as they are.
func FuzzOpen(f *testing.F) {
	_, b := smallSession().file(f, 2)
	f.Add(b, true)
	f.Add(b, false)
	f.Add(b[:len(b)-100], true)
	f.Fuzz(func(t *testing.T, b []byte, mend bool) {
		if mend {
			b = mendChecksums(b)
		}
		tryFile(t, b)
	})
}

// mendChecksums frames anew whatever looks like a chunk behind a header.
func mendChecksums(b []byte) []byte {
	out := AppendHeader(nil)
	for at := HeaderSize; at < len(b); {
		size, err := chunkSize(b[at:])
		if err != nil || size > int64(len(b)-at) {
			return append(out, b[at:]...)
		}
		chunk := bytes.Clone(b[at : at+int(size)])
		seq := (&cursor{b: chunk[chunkFixed:]}).uvarint("seq")
		out = append(out, finishChunk(chunk, 0, seq)...)
		at += int(size)
	}
	return out
}

func TestSmallReadsOfABuffer(t *testing.T) {
	var b Buffer
	if _, err := b.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 2)
	if n, err := b.ReadAt(p, 2); n != 1 || err != io.EOF || p[0] != 'c' {
		t.Errorf("%d %v %q", n, err, p)
	}
	if n, err := b.ReadAt(p, 3); n != 0 || err != io.EOF {
		t.Errorf("%d %v", n, err)
	}
}

func TestRandomBatchesRebuild(t *testing.T) {
	for seed := range uint64(30) {
		s := randomSession(rand.New(rand.NewPCG(seed, 6)))
		_, b := s.file(t, 64)
		for _, p := range places(t, b, s.meta.HashBytes) {
			if p.typ != ChunkTicks {
				continue
			}
			c, _, err := ParseChunk(b[p.start:p.end])
			if err != nil {
				t.Fatal(err)
			}
			batch, err := ParseBatch(c.Body, s.meta.HashBytes)
			if err != nil {
				t.Fatal(err)
			}
			builder := NewBatchBuilder(batch.Width, s.meta.HashBytes, batch.First)
			r := batch.Reader()
			for rec := (TickRecord{}); r.Next(&rec); {
				if err := builder.Add(&rec); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(builder.AppendBody(nil), c.Body) {
				t.Fatalf("seed %d: another body", seed)
			}
		}
	}
}
