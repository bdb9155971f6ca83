package format

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func TestFloatsNarrowOnlyWhereTheyFit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 20_000 {
		bits := r.Uint64()
		if i%2 == 0 {
			bits = math.Float64bits(float64(math.Float32frombits(r.Uint32())))
		}
		x := math.Float64frombits(bits)
		f, ok := narrowFloat(bits)
		f32 := float32(x)
		normal := x == 0 || math.Abs(x) >= 0x1p-126 && !math.IsInf(x, 0)
		if want := float64(f32) == x && normal; ok != want {
			t.Fatalf("%x (%v): narrowed %v, want %v", bits, x, ok, want)
		}
		if ok && f != math.Float32bits(f32) {
			t.Fatalf("%x: %x, want %x", bits, f, math.Float32bits(f32))
		}
		if wide, back := widenFloat(f); ok && (!back || wide != bits) {
			t.Fatalf("%x comes back as %x, %v", bits, wide, back)
		}
	}
	for _, f := range []uint32{1, 0x7f800000, 0x7fc00000, 0x807fffff} {
		if _, ok := widenFloat(f); ok {
			t.Errorf("%08x was widened", f)
		}
	}
}

// codecBatch has every kind of parameter, canonical and not.
func codecBatch(t testing.TB) Batch {
	t.Helper()
	b := NewBatchBuilder(Width16, 8, 1000)
	odd := [][]byte{
		{typeBool, 7}, {typeInt16, 0, 1}, {typeInt64, 0, 0, 0, 1, 0, 0, 0, 0}, {typeNegInt64, 0, 0, 0, 0, 0, 0, 0, 0},
		{typeString, 0, 0, 0, 1, 'x'}, {typeInts, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}, {typeInts, 2, 0, 0, 0, 0}, {typeNegBig, 0},
	}
	for i := range 300 {
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(b.Step(uint16(300+i%3), Int(int64(i%4)), Int(int64(i)*1_000_003), Float(float64(i)/4), Bool(i%2 == 0), String(strings.Repeat("ab", i%5))))
		must(b.Step(7, Int(math.MinInt64), Int(math.MaxInt64), Uint(math.MaxUint64), Float(math.NaN()), Float(0.1), Float(math.Copysign(0, -1))))
		must(b.Step(8, Ints([]int64{int64(i), int64(i) + 1, -5}), Ints(nil), Bytes([]byte{1, 2}), BigInt(big.NewInt(-7)), String(strings.Repeat("y", 300))))
		must(b.Step(9))
		b.params, b.openParams = append(b.params, odd[i%len(odd)]...), b.openParams+len(odd[i%len(odd)])
		b.appendCommand(1, 10)
		b.openSteps++
		if i%5 == 0 {
			b.EndTickAt(int64(i) * 50_000)
		} else {
			b.EndTick()
		}
		for range i % 3 {
			b.EndTick()
		}
		if i%4 != 0 {
			b.Hash(b.NextTick()-1, bytes.Repeat([]byte{byte(i)}, 8))
		}
	}
	batch, err := ParseBatch(b.AppendBody(nil), 8)
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// body gives the body of a parsed batch again.
func batchBody(b *Batch) []byte {
	h := archiveHead{First: b.First, Ticks: b.Ticks, flags: b.flags(), Steps: b.Steps, params: len(b.Params)}
	body := appendBatchHead(nil, &h)
	for _, part := range [][]byte{b.Commands, b.Params, b.timeline, b.hashBits, b.hashes, b.timeBits, b.times} {
		body = append(body, part...)
	}
	return body
}

func TestEveryKindOfParameterComesBack(t *testing.T) {
	b := codecBatch(t)
	want := batchBody(&b)
	for _, level := range allLevels {
		a := NewArchiver()
		a.cols.begin()
		body, err := a.encode(&b, level)
		if err != nil {
			t.Fatal(err)
		}
		h, err := parseArchiveHead(body)
		if err != nil {
			t.Fatal(err)
		}
		if method := map[ArchiveLevel]byte{ArchiveFast: methodRows, ArchiveDefault: methodColumns, ArchiveMax: methodModel}[level]; h.method != method {
			t.Errorf("level %v took method %d", level, h.method)
		}
		var r archiveReader
		for range 2 {
			got, err := r.ticks(body)
			if err != nil {
				t.Fatalf("level %v: %v", level, err)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("level %v: other bytes came back", level)
			}
		}
	}
}

// TestModelsTablesAreThoseOfTheirRules holds a few entries against what the
// rules give by hand.
func TestModelsTablesAreThoseOfTheirRules(t *testing.T) {
	for logit, want := range map[int64]int32{0: 32768, 128: 40793, -128: 24743, 64: 36781, 2816: 65535, -2816: 1, 9999: 65535} {
		if got := squash(logit); got != want {
			t.Errorf("squash(%d) = %d, want %d", logit, got, want)
		}
	}
	for p := 1; p < 4096; p++ {
		if l := stretchTable[p]; l > -maxInput && l < maxInput && (int(squash(int64(l)))>>4 < p || int(squash(int64(l-1)))>>4 >= p) {
			t.Fatalf("stretch(%d) = %d is not the least logit", p, l)
		}
	}
	if reciprocals[0] != 43690 || reciprocals[chanceLimit] != 510 {
		t.Errorf("reciprocals %d, %d", reciprocals[0], reciprocals[chanceLimit])
	}
	// 0: nothing seen; then total 1: a zero, a one; total 2: two zeros, ...
	if states.next[0][0] != 1 || states.next[1][0] != 2 || states.total[1] != 1 || states.total[3] != 2 {
		t.Errorf("states begin with %v, %v", states.next[0][:4], states.next[1][:4])
	}
	if got := states.first[2] >> 10; got != 3262236 {
		t.Errorf("a one that was seen makes %d", got)
	}
}

func TestHostileArchiveChunks(t *testing.T) {
	head := func(ticks, steps, params, runs, times uint64, method byte) []byte {
		b := leb(0, ticks)
		b = append(b, batchWide)
		b = append(b, leb(steps, params, runs, times)...)
		return append(b, method)
	}
	for name, body := range map[string][]byte{
		"no ticks":           append(head(0, 0, 0, 1, 0, 0), 0),
		"too many ticks":     head(MaxChunkTicks+1, 0, 0, 1, 0, 0),
		"rows over limit":    head(1, MaxRowBytes/2, MaxRowBytes, 1, 0, 0),
		"runs over limit":    head(1, 0, 0, maxRuns+1, 0, 0),
		"times over limit":   head(1, 0, 0, 1, maxTimes+1, 0),
		"unknown method":     append(head(1, 0, 0, 1, 0, 9), 0),
		"coded part missing": head(1, 0, 0, 1, 0, 0),
		"stored short":       append(head(1, 0, 0, 1, 0, 0), 0),
		"rows: no frame":     append(head(1, 1, 100, 1, 0, methodRows), 0),
		"columns: nothing":   append(head(1, 1, 100, 1, 0, methodColumns), 0),
		"model: nothing":     append(head(1, 1, 100, 1, 0, methodModel), 0),
		"model: noise":       append(append(head(9, 100_000, 500_000, 200_000, 0, methodModel), leb(20)...), bytes.Repeat([]byte{0x5a}, 20)...),
		"hashes too many":    append(append(head(1, 0, 0, 1, 0, 0), 1, 0), make([]byte, MaxHashBytes+1)...),
	} {
		var r archiveReader
		_, err := r.batch(Chunk{Type: ChunkArchived, Body: body}, 0)
		var damage *CorruptError
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte("damaged")) {
			t.Errorf("%s: %v (%T)", name, err, damage)
		}
	}
}

// TestSpecArchiveExamples decodes each coded part that the specification shows.
func TestSpecArchiveExamples(t *testing.T) {
	parts := map[string][]byte{}
	for _, line := range strings.Split(specBlocks(t, "archive")[0], "\n") {
		fields := strings.SplitN(line, "|", 3)
		b, err := hex.DecodeString(strings.ReplaceAll(fields[1], " ", ""))
		if len(fields) != 3 || err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		name := strings.TrimSpace(fields[0])
		parts[name] = append(parts[name], b...)
	}
	b, err := ParseBatch(parts["ticks"], 2)
	if err != nil {
		t.Fatal(err)
	}
	a := NewArchiver()
	a.cols.begin()
	a.part = append(append(append(append([]byte(nil), b.Commands...), b.Params...), b.timeline...), b.hashBits...)
	columns, err := a.cols.encode(nil, &b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.cols.small, parts["small"]) {
		t.Errorf("the small streams are\n% x", a.cols.small)
	}
	made := map[string][]byte{"stored": a.part, "rows": a.quick.frame(nil, a.part), "columns": columns, "model": (&rowModel{}).encode(nil, &b, map[deltaKey]uint8{})}
	var r archiveReader
	for method, name := range []string{"stored", "rows", "columns", "model"} {
		h := archiveHead{First: b.First, Ticks: b.Ticks, flags: b.flags(), Steps: b.Steps, params: len(b.Params),
			runs: len(b.timeline) + len(b.hashBits), method: byte(method), coded: parts[name], hashes: b.hashes}
		got, err := r.ticks(appendArchive(nil, &h))
		if err != nil || !bytes.Equal(got, parts["ticks"]) {
			t.Errorf("%s: %v, % x\nthe code writes % x", name, err, got, made[name])
		}
	}
	if !bytes.Equal(parts["model"], made["model"]) {
		t.Errorf("the model writes % x", made["model"])
	}
}

// TestSpecNamesTheModelsNumbers compares the numbers of the specification with
// those of the code.
func TestSpecNamesTheModelsNumbers(t *testing.T) {
	text := specSection(t, "## Archive")
	for _, want := range []string{
		strings.Trim(strings.ReplaceAll(fmt.Sprint(squashPoints), " ", ", "), "[]"),
		strings.Trim(strings.ReplaceAll(fmt.Sprint(stateBounds), " ", ", "), "[]"),
		fmt.Sprintf("begins with %d", firstWeight), fmt.Sprintf("%d + %d", leastRate, firstRate),
		fmt.Sprintf("A nibble** has %d contexts", nibbleContexts), fmt.Sprintf("at most %d. Context", tableMost),
		fmt.Sprintf("with %d contexts. Context *i* has 2^%d chances", flagContexts, flagBits), fmt.Sprintf("grows by 1, up to %d.", chanceLimit),
	} {
		if !strings.Contains(regexp.MustCompile(`\s+`).ReplaceAllString(text, " "), want) {
			t.Errorf("the specification lacks %q", want)
		}
	}
}

func FuzzArchiveChunk(f *testing.F) {
	s := hashedSession(40)
	file, _ := s.file(f, 10)
	for _, level := range allLevels {
		b := archiveOf(f, file, ArchiveOptions{Level: level})
		for _, p := range places(f, b, 8) {
			if p.typ == ChunkArchived {
				c, _, _ := ParseChunk(b[p.start:])
				f.Add(bytes.Clone(c.Body))
			}
		}
	}
	few := fewSteps(f, rand.New(rand.NewPCG(8, 8)))
	for l := range layout(layouts) {
		f.Add(bytes.Clone(inLayout(f, NewArchiver(), &few, l)))
	}
	var r archiveReader
	f.Fuzz(func(t *testing.T, body []byte) {
		b, err := r.batch(Chunk{Type: ChunkArchived, Body: body}, 8)
		if err != nil {
			return
		}
		checkEncodes(t, &b)
	})
}

// FuzzArchiveTicks encodes whatever ticks chunks there can be.
func FuzzArchiveTicks(f *testing.F) {
	for _, s := range []*session{hashedSession(12), smallSession()} {
		_, b := s.file(f, 4)
		for _, p := range places(f, b, s.meta.HashBytes) {
			if p.typ == ChunkTicks {
				c, _, _ := ParseChunk(b[p.start:])
				f.Add(bytes.Clone(c.Body))
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if b, err := ParseBatch(body, 8); err == nil {
			checkEncodes(t, &b)
		}
	})
}

// checkEncodes encodes a batch at each level and compares what comes back.
func checkEncodes(t *testing.T, b *Batch) {
	t.Helper()
	want := batchBody(b)
	// The batch may lie in the memory of a reader that decodes again.
	own, err := ParseBatch(bytes.Clone(want), 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range allLevels {
		sharedArchiver.cols.begin()
		body, err := sharedArchiver.encode(&own, level)
		if err != nil {
			t.Fatal(err)
		}
		var r archiveReader
		got, err := r.ticks(body)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("level %v: %v, other bytes came back", level, err)
		}
	}
}
