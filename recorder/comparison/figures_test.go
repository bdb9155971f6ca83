package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestQuantile compares with the definition: the smallest wait that at least
// the part q of all does not exceed.
func TestQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 60; n++ {
		v := make([]uint32, n)
		for i := range v {
			v[i] = r.Uint32N(20)
		}
		slices.Sort(v)
		for _, q := range []float64{0.25, 0.5, 0.75, 1} {
			want := slices.IndexFunc(v, func(x uint32) bool {
				below := 0
				for _, y := range v {
					if y <= x {
						below++
					}
				}
				return float64(below) >= q*float64(n)
			})
			if got := quantile(v, q); got != time.Duration(v[want])*time.Microsecond {
				t.Fatalf("quantile(%v, %v) = %v, want %d µs", v, q, got, v[want])
			}
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("of nothing: %v, want 0", got)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		acked []float64
		want  float64
	}{
		{[]float64{7}, 7}, {[]float64{9, 1}, 5}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5},
	} {
		var runs []figures
		for _, v := range c.acked {
			runs = append(runs, figures{acked: v})
		}
		if got := median(runs, func(f figures) float64 { return f.acked }); got != c.want {
			t.Errorf("median of %v: %v, want %v", c.acked, got, c.want)
		}
	}
	if got := median(nil, func(f figures) float64 { return 1 }); !math.IsNaN(got) {
		t.Errorf("median of nothing: %v, want NaN", got)
	}
}

func TestMeter(t *testing.T) {
	var m meter
	m.add(time.Second)
	m.on.Store(true)
	for _, d := range []time.Duration{3 * time.Millisecond, -time.Second, 1500 * time.Nanosecond, 2 * time.Hour} {
		m.add(d)
	}
	got := m.sorted()
	if want := []uint32{0, 1, 3000, math.MaxUint32}; !slices.Equal(got, want) {
		t.Errorf("waits %v, want %v", got, want)
	}
	m.add(time.Second)
	if got := m.sorted(); len(got) != 4 {
		t.Errorf("%d waits after it was read, want 4", len(got))
	}
}
