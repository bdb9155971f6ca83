package format

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// fewSteps has too few steps of a code for its layout to be picked: lists that
// are counted rightly, wrongly or by no integer, at any place.
func fewSteps(t testing.TB, r *rand.Rand) Batch {
	t.Helper()
	b := NewBatchBuilder(Width8, 0, 0)
	for range learnedSteps - 1 {
		params := make([]Value, r.IntN(60))
		for i := range params {
			switch r.IntN(8) {
			case 0:
				params[i] = String("abc"[:r.IntN(4)])
			case 1:
				params[i] = Float(float64(r.IntN(9)) / 4)
			case 2:
				params[i] = Int(r.Int64() - r.Int64())
			default:
				params[i] = Int(int64(r.IntN(70) - 5))
			}
		}
		if err := b.Step(3, params...); err != nil {
			t.Fatal(err)
		}
		b.EndTick()
	}
	return builtBatch(t, b)
}

func builtBatch(t testing.TB, b *BatchBuilder) Batch {
	t.Helper()
	batch, err := ParseBatch(b.AppendBody(nil), 0)
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// inLayout encodes few steps of code 3 in a layout.
func inLayout(t testing.TB, a *Archiver, b *Batch, l layout) []byte {
	t.Helper()
	a.cols.begin()
	a.cols.layouts[3] = l
	body, err := a.encode(b, ArchiveDefault)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestEveryLayoutComesBack(t *testing.T) {
	b := fewSteps(t, rand.New(rand.NewPCG(4, 4)))
	want := batchBody(&b)
	for l := range layout(layouts) {
		a := NewArchiver()
		body := inLayout(t, a, &b, l)
		if h, err := parseArchiveHead(body); err != nil || h.method != methodColumns {
			t.Fatalf("layout %d: %v, method %d", l, err, h.method)
		}
		if !bytes.Contains(a.cols.small, []byte{byte(l)}) || a.cols.codes[0].layout != l {
			t.Errorf("layout %d became %d", l, a.cols.codes[0].layout)
		}
		var r archiveReader
		got, err := r.ticks(body)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("layout %d: %v, other bytes came back", l, err)
		}
	}
}

// TestCountedListsAreFound records lists behind a count at each place, and
// what looks like one but is not.
func TestCountedListsAreFound(t *testing.T) {
	for place := 1; place <= layouts-layoutCounted; place++ {
		b := NewBatchBuilder(Width8, 0, 0)
		for i := range 2 * learnedSteps {
			params := make([]Value, place)
			for j := range params {
				params[j] = Float(0.5)
			}
			n := 3 + i%17
			params = append(params, Int(int64(n)))
			for j := range n {
				params = append(params, Int(int64(100_000*i%700_001+j*j)))
			}
			params = append(params, String("end"), Int(1), Float(float64(i)))
			if err := b.Step(3, params...); err != nil {
				t.Fatal(err)
			}
			b.EndTick()
		}
		batch := builtBatch(t, b)
		var w columnWriter
		w.begin()
		w.reset()
		w.pickLayouts(&batch)
		if got := w.layouts[3]; got != layout(layoutCounted+place-1) {
			t.Errorf("lists counted by parameter %d have layout %d", place, got)
		}
	}
}

// TestListsThatAreNotAlwaysCounted records a number that counts integers in half
// of all steps.
func TestListsThatAreNotAlwaysCounted(t *testing.T) {
	b := NewBatchBuilder(Width8, 0, 0)
	for i := range 2 * learnedSteps {
		params := []Value{Int(1), Int(3), Int(int64(i)), Int(7), Int(8)}
		if i%2 == 0 {
			params[3] = Float(0.5)
		}
		if err := b.Step(3, params...); err != nil {
			t.Fatal(err)
		}
		b.EndTick()
	}
	batch := builtBatch(t, b)
	var steps []sample
	for i := range 2 * learnedSteps {
		at := 0
		if i > 0 {
			n, _ := skipParams(batch.Params, steps[i-1].at, 5)
			at = n
		}
		steps = append(steps, sample{at, 5})
	}
	if got := countedLayout(batch.Params, steps); got != 0 {
		t.Errorf("layout %d", got)
	}
}

// TestWrongCountsOfColumnsAreRefused moves a parameter from a column to
// another, in columns of many kinds.
func TestWrongCountsOfColumnsAreRefused(t *testing.T) {
	b := fewSteps(t, rand.New(rand.NewPCG(6, 6)))
	a := NewArchiver()
	inLayout(t, a, &b, layoutCounted)
	counts := make([]uint64, countedColumns)
	for i := range counts {
		counts[i] = uint64(len(a.cols.codes[0].columns[i].kinds))
	}
	head := append([]byte{layoutCounted}, leb(counts...)...)
	before, after, found := bytes.Cut(a.cols.small, head)
	if !found {
		t.Fatal("the small streams lack the counts")
	}
	for from := range counts {
		for to := range counts {
			if from == to || counts[from] == 0 {
				continue
			}
			wrong := slices.Clone(counts)
			wrong[from]--
			wrong[to]++
			small := slices.Concat(before, []byte{layoutCounted}, leb(wrong...), after)
			if got, err := decodeSmall(a, &b, small); err == nil {
				t.Errorf("a parameter of column %d in column %d gives %d bytes", from, to, len(got))
			}
		}
	}
}

// decodeSmall decodes small streams, and the large ones of a, as those of a
// batch.
func decodeSmall(a *Archiver, b *Batch, small []byte) ([]byte, error) {
	frame := a.good.frame(nil, small)
	coded := slices.Concat(leb(uint64(len(small)), uint64(len(frame))), frame, a.cols.large)
	h := archiveHead{First: b.First, Ticks: b.Ticks, flags: b.flags(), Steps: b.Steps, params: len(b.Params), runs: len(b.timeline), method: methodColumns, coded: coded}
	var r archiveReader
	return r.ticks(appendArchive(nil, &h))
}

// TestSpecCountedExample decodes the specification's example of a counted list,
// and refuses it with any count changed.
func TestSpecCountedExample(t *testing.T) {
	parts := map[string][]byte{}
	for _, line := range strings.Split(specBlocks(t, "counted")[0], "\n") {
		fields := strings.SplitN(line, "|", 3)
		b, err := hex.DecodeString(strings.ReplaceAll(fields[1], " ", ""))
		if len(fields) != 3 || err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		name := strings.TrimSpace(fields[0])
		parts[name] = append(parts[name], b...)
	}
	b, err := ParseBatch(parts["ticks"], 0)
	if err != nil {
		t.Fatal(err)
	}
	a := NewArchiver()
	a.cols.begin()
	a.cols.layouts[2] = layoutCounted
	if _, err := a.cols.encode(nil, &b); err != nil || !bytes.Equal(a.cols.small, parts["small"]) {
		t.Errorf("%v; the small streams are\n% x", err, a.cols.small)
	}
	if got, err := decodeSmall(a, &b, parts["small"]); err != nil || !bytes.Equal(got, parts["ticks"]) {
		t.Errorf("%v, % x", err, got)
	}
	counts := bytes.Index(parts["small"], []byte{layoutCounted, 2, 2, 1}) + 1
	for i := range countedColumns {
		for _, change := range []struct{ here, next byte }{{1, 0}, {255, 0}, {1, 255}, {255, 1}} {
			small := bytes.Clone(parts["small"])
			small[counts+i] += change.here
			small[counts+(i+1)%countedColumns] += change.next
			if got, err := decodeSmall(a, &b, small); err == nil {
				t.Errorf("the counts of columns from %d on changed by %v give % x", i, change, got)
			}
		}
	}
}

// playerSteps have so many steps of code 3: a player, and a value of every kind
// that columns keep as numbers.
func playerSteps(t testing.TB, r *rand.Rand, steps, players int) Batch {
	t.Helper()
	b := NewBatchBuilder(Width8, 0, 0)
	for range steps {
		list := make([]int64, r.IntN(4))
		for i := range list {
			list[i] = r.Int64N(1000)
		}
		params := []Value{Int(int64(r.IntN(players))), Int(r.Int64() - r.Int64()), Float(float64(r.IntN(50)) / 4), Float(r.Float64()), String("abc"[:r.IntN(4)]), Ints(list)}
		if err := b.Step(3, params...); err != nil {
			t.Fatal(err)
		}
		b.EndTick()
	}
	return builtBatch(t, b)
}

// TestDistancesOfPlayersComeBack writes every stream as distances to the same
// player's number, with few and many numbers and players, and reads all with one
// reader.
func TestDistancesOfPlayersComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	a, reader := NewArchiver(), &archiveReader{}
	for _, steps := range []int{1, 2, 3, 100, playerTable - 1, playerTable, playerTable + 1, 900} {
		for _, players := range []int{1, 2, 7, 255, 256} {
			for form := range byte(forms) {
				b := playerSteps(t, r, steps, players)
				a.cols.begin()
				a.cols.layouts[3] = 0
				for place := range uint8(maxColumns) {
					for stream := range uint8(streams) {
						a.cols.forms[streamKey{3, place, stream}] = form | deltaPlayer<<2
					}
				}
				coded, err := a.cols.encode(nil, &b)
				if err != nil {
					t.Fatal(err)
				}
				h := archiveHead{First: b.First, Ticks: b.Ticks, flags: b.flags(), Steps: b.Steps, params: len(b.Params), runs: len(b.timeline), method: methodColumns, coded: coded}
				got, err := reader.ticks(appendArchive(nil, &h))
				if err != nil || !bytes.Equal(got, batchBody(&b)) {
					t.Errorf("%d steps of %d players in form %d: %v, other bytes came back", steps, players, form, err)
				}
			}
		}
	}
}

// zeroStream is a stream of n zeros, each in one byte.
func zeroStream(w *columnWriter, delta, n int) {
	w.small = append(w.small, numbersHead(formFixed, delta, 1))
	w.stream(make([]byte, n))
}

// hostileChunk makes the streams of a tick in which each code has so many
// steps of count parameters; column writes a column of n of them, and text is
// what follows the columns.
func hostileChunk(w *columnWriter, codes, steps, count int, column func(n int), text []byte) Batch {
	w.reset()
	w.small = leb(uint64(codes))
	var symbols []uint64
	for i := range codes {
		w.small = append(w.small, leb(uint64(i<<8|count))...)
		symbols = append(symbols, slices.Repeat([]uint64{uint64(i)}, steps)...)
	}
	width := 1
	if codes > 256 {
		width = 2
	}
	w.planes(symbols, width)
	runs := leb(uint64(len(symbols)-1)<<1 | 1)
	w.small = append(w.small, 1, 0, numbersHead(formVarint, deltaNone, 1), 1, 0)
	most := leb(uint64(len(symbols)-1) << 1)
	w.small = append(append(w.small, numbersHead(formVarint, deltaNone, 1), byte(len(most))), most...)
	w.small = append(w.small, 0)
	for range codes {
		w.small = append(w.small, 0)
		for i := range min(count, maxColumns) {
			n := steps
			if i == maxColumns-1 {
				n *= count - i
			}
			column(n)
		}
	}
	w.small = append(w.small, leb(uint64(len(text)))...)
	w.stream(text)
	w.small = append(w.small, 0)
	return Batch{Ticks: 1, Width: Width16, Steps: len(symbols), Params: make([]byte, MaxRowBytes-len(symbols)*Width16.entry()), timeline: runs}
}

// TestHostileColumnsTakeLittleMemory decodes chunks of a few KB that hold as
// many streams, or texts, as they can.
func TestHostileColumnsTakeLittleMemory(t *testing.T) {
	a := NewArchiver()
	w := &a.cols
	mixed := func(each int) func(int) {
		return func(n int) {
			w.small = append(w.small, kinds)
			k := slices.Concat(bytes.Repeat([]byte{kindInt}, n-4*each), bytes.Repeat([]byte{kindF32, kindF64, kindText, kindList}, each))
			w.stream(k)
			zeroStream(w, deltaPlayer, n-4*each)
			for range 4 {
				zeroStream(w, deltaPlayer, each)
			}
			w.small = append(w.small, byte(each))
			zeroStream(w, deltaPlayer, each)
		}
	}
	texts := func(n int) {
		w.small = append(w.small, kindText)
		zeroStream(w, deltaNone, n)
	}
	for name, c := range map[string]struct {
		codes, steps, count int
		column              func(int)
		text                []byte
	}{
		"streams of one number":  {maxColumnCodes, 5, 16, mixed(1), nil},
		"streams of two numbers": {maxColumnCodes, 10, 16, mixed(2), nil},
		"texts":                  {1, 4000, 255, texts, make([]byte, 4000*255)},
	} {
		b := hostileChunk(w, c.codes, c.steps, c.count, c.column, c.text)
		small := bytes.Clone(w.small)
		a.good.frame(nil, small)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decodeSmall(a, &b, small)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), errRows.Error()) {
			t.Errorf("%s: %v", name, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 24<<20 {
			t.Errorf("%s: %d bytes allocated", name, used)
		}
	}
}
