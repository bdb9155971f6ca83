package load

import (
	"math/bits"
	"time"
)

// Histogram counts time spans in buckets that are at most 1.6 % wide. The
// zero Histogram is empty.
type Histogram struct {
	counts [64 * subBuckets]uint64
	n      uint64
	max    time.Duration
}

// subBuckets divide every power of two.
const subBuckets = 64

// Add counts d.
func (h *Histogram) Add(d time.Duration) {
	h.counts[bucket(uint64(max(d, 0)))]++
	h.n++
	h.max = max(h.max, d)
}

// bucket gives small values one bucket each, larger ones one of 64 within
// their power of two.
func bucket(v uint64) int {
	if v < subBuckets {
		return int(v)
	}
	shift := bits.Len64(v) - 7
	return (shift+1)*subBuckets + int(v>>shift) - subBuckets
}

// floor is the smallest value of a bucket.
func floor(b int) uint64 {
	if b < subBuckets {
		return uint64(b)
	}
	shift := b/subBuckets - 1
	return uint64(b%subBuckets+subBuckets) << shift
}

// Count is the number of spans.
func (h *Histogram) Count() uint64 { return h.n }

// Max is the longest span.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile gives a span that the part q of all does not exceed, at most 1.6 %
// above the smallest such; 0 where nothing was counted.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := uint64(q*float64(h.n-1)) + 1
	for b, n := range h.counts {
		if rank <= n {
			return min(time.Duration(floor(b+1)-1), h.max)
		}
		rank -= n
	}
	return h.max
}
