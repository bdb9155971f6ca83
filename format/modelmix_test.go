package format

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestPairsAreTwoNumbers holds the arithmetic of pairs against that of two
// numbers each.
func TestPairsAreTwoNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var plain [2 * inputPairs]int64
	var w weights
	for i := range 20_000 {
		var in pairs
		sum, rate := int64(0), leastRate+firstRate*32/(32+min(int64(i), usesLimit))
		miss := r.Int64N(1<<17) - 1<<16
		for j := range in {
			x, y := int32(r.IntN(2*maxInput+1)-maxInput), int32(r.IntN(2*maxInput+1)-maxInput)
			in[j] = pair(x, y)
			sum += int64(x)*plain[2*j] + int64(y)*plain[2*j+1]
			plain[2*j] += int64(x) * ((miss*rate + 4096) >> 13)
			plain[2*j+1] += int64(y) * ((miss*rate + 4096) >> 13)
		}
		if got, want := mixed(&in, &w, &weights{}), squash(sum>>weightBits); got != want {
			t.Fatalf("bit %d: probability %d, want %d", i, got, want)
		}
		w.teach(&in, int32(miss))
		for _, x := range plain {
			if int64(int32(x)) != x {
				t.Fatalf("bit %d: a weight of %d: the test went too far", i, x)
			}
		}
	}
}

// TestModelTakesTheMostMarks codes a chunk whose history is as long as it can
// be: one list, whose elements take a byte each.
func TestModelTakesTheMostMarks(t *testing.T) {
	long(t)
	list := make([]int64, MaxRowBytes-100)
	for i := range list {
		list[i] = int64(i*i>>7) & 63
	}
	builder := NewBatchBuilder(Width8, 0, 0)
	if err := builder.Step(1, Ints(list)); err != nil {
		t.Fatal(err)
	}
	builder.EndTick()
	b, err := ParseBatch(builder.AppendBody(nil), 0)
	if err != nil {
		t.Fatal(err)
	}
	body, err := sharedArchiver.encode(&b, ArchiveMax)
	if err != nil {
		t.Fatal(err)
	}
	var r archiveReader
	got, err := r.ticks(body)
	if err != nil || !bytes.Equal(got, batchBody(&b)) {
		t.Fatalf("other bytes came back: %v", err)
	}
	if n := len(r.model.history); n != len(list)+2 || n >= 1<<placeBits {
		t.Errorf("a history of %d marks", n)
	}
}
