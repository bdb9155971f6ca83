package transport

import (
	"math/rand/v2"
	"testing"
)

// A flight counts as a plain list of chunks does, also of chunks that come
// again, and its memory stays within what was in flight at once.
func TestFlight(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, window := range []int{1, 50, 1000, 10_000} {
		var f flight
		f.window.Store(int64(window))
		var list []flown
		most, bytes := 0, 0
		for seq, durable := uint64(0), uint64(0); seq < 20_000; {
			if rng.IntN(3) == 0 {
				durable += rng.Uint64N(seq - durable + 1)
				f.settle(durable)
				for len(list) > 0 && list[0].seq <= durable {
					bytes -= list[0].size
					list = list[1:]
				}
			}
			next, size := seq+1, 1+rng.IntN(60)
			if seq > 0 && rng.IntN(20) == 0 {
				next = 1 + rng.Uint64N(seq)
			}
			fits := bytes == 0 || bytes+size <= window
			if got := f.add(next, size); got != fits {
				t.Fatalf("window %d, %d bytes in flight: a chunk of %d fits: %v, want %v", window, bytes, size, got, fits)
			}
			if fits {
				list, bytes, seq = append(list, flown{next, size}), bytes+size, max(seq, next)
				most = max(most, len(list))
			} else {
				durable = seq
				f.settle(durable)
				list, bytes = nil, 0
			}
			if f.bytes != bytes {
				t.Fatalf("window %d: %d bytes in flight, want %d", window, f.bytes, bytes)
			}
		}
		if n := cap(f.more); n > max(keepFlown, 4*most) {
			t.Errorf("window %d: room for %d chunks, at most %d were in flight", window, n, most)
		}
	}
}

// A flight that never lands takes no more memory the longer it lasts.
func TestLongFlight(t *testing.T) {
	const apart = 100
	var f flight
	f.window.Store(2 * apart)
	for seq := uint64(1); seq < 100_000; seq++ {
		f.settle(seq - min(seq, apart))
		if !f.add(seq, 1) || f.bytes != int(min(seq, apart)) {
			t.Fatalf("%d bytes in flight behind chunk %d", f.bytes, seq)
		}
	}
	if n := cap(f.more); n > 4*apart {
		t.Errorf("room for %d chunks, %d are in flight", n, apart)
	}
}
