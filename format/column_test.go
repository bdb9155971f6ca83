package format

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
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
		batch, err := ParseBatch(b.AppendBody(nil), 0)
		if err != nil {
			t.Fatal(err)
		}
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
	batch, err := ParseBatch(b.AppendBody(nil), 0)
	if err != nil {
		t.Fatal(err)
	}
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
