package main

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// meter collects how long ticks wait, while it is on.
type meter struct {
	on     atomic.Bool
	mu     sync.Mutex
	micros []uint32
}

// add counts a wait, to a microsecond.
func (m *meter) add(d time.Duration) {
	if !m.on.Load() {
		return
	}
	us := uint32(min(max(d.Microseconds(), 0), math.MaxUint32))
	m.mu.Lock()
	m.micros = append(m.micros, us)
	m.mu.Unlock()
}

// sorted switches the meter off and gives its waits in order.
func (m *meter) sorted() []uint32 {
	m.on.Store(false)
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.Sort(m.micros)
	return m.micros
}

// quantile is the smallest wait that the part q of all does not exceed; 0
// where there are none.
func quantile(sorted []uint32, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return time.Duration(sorted[min(max(rank, 0), len(sorted)-1)]) * time.Microsecond
}

// figures are the outcome of one measurement.
type figures struct {
	// acked is ticks acknowledged a second.
	acked    float64
	p50, p99 time.Duration
	// cpu is the server's CPU time in seconds for a million ticks.
	cpu float64
	// memory is its resident memory in bytes.
	memory float64
	// written is bytes that the disk was given, kept those that the server's
	// files have in the end, both for a byte of rows.
	written, kept float64
}

// median of some runs; the mean of the middle two where their number is even,
// NaN where there is none.
func median(runs []figures, of func(figures) float64) float64 {
	if len(runs) == 0 {
		return math.NaN()
	}
	v := make([]float64, 0, len(runs))
	for _, r := range runs {
		v = append(v, of(r))
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// per divides; NaN by nothing.
func per(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}
