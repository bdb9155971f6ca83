package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The quantiles agree with those of a sorted slice, to the width of a bucket.
func TestHistogramAgainstSorted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, span := range map[string]func() time.Duration{
		"small":   func() time.Duration { return time.Duration(r.IntN(200)) },
		"uniform": func() time.Duration { return time.Duration(r.Int64N(int64(time.Second))) },
		"any":     func() time.Duration { return time.Duration(math.Exp(r.Float64() * 43)) },
		"one":     func() time.Duration { return 7 * time.Millisecond },
	} {
		for _, n := range []int{1, 2, 99, 10_000} {
			var h Histogram
			sorted := []time.Duration{}
			for range n {
				d := span()
				h.Add(d)
				sorted = append(sorted, d)
			}
			slices.Sort(sorted)
			for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
				want, got := sorted[int(q*float64(n-1))], h.Quantile(q)
				if got < want || float64(got) > float64(want)*(1+1.0/subBuckets) {
					t.Errorf("quantile %v of %d: %v, want %v to at most 1/64 more", q, n, got, want)
				}
			}
			if h.Count() != uint64(n) || h.Max() != sorted[n-1] {
				t.Errorf("%d spans up to %v, want %d up to %v", h.Count(), h.Max(), n, sorted[n-1])
			}
		}
	}
}

func TestHistogramOfNothing(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 || h.Count() != 0 || h.Max() != 0 {
		t.Error("an empty histogram counts something")
	}
	h.Add(-time.Second)
	if h.Quantile(1) != 0 || h.Count() != 1 {
		t.Error("a negative span does not count as 0")
	}
	h.Add(math.MaxInt64)
	if h.Quantile(1) != math.MaxInt64 {
		t.Errorf("the longest span is %v", h.Quantile(1))
	}
}

// Every value is in the bucket whose bounds it lies between.
func TestBuckets(t *testing.T) {
	for shift := range 63 {
		for _, d := range []int64{-1, 0, 1} {
			v := uint64(max(0, int64(1)<<shift+d))
			if b := bucket(v); v < floor(b) || v >= floor(b+1) {
				t.Errorf("%d is in the bucket from %d to %d", v, floor(b), floor(b+1))
			}
		}
	}
}
