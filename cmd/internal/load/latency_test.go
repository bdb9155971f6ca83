package load

import (
	"testing"
	"time"

	"reprise/format"
)

// A tick's latency is from its own end, however many wait.
func TestEnds(t *testing.T) {
	start := time.Now()
	at := func(tick format.Tick) time.Time { return start.Add(time.Duration(tick) * time.Millisecond) }
	var e ends
	var h Histogram
	for tick := format.Tick(5); tick < 2000; tick++ {
		if tick < 100 || tick >= 110 { // the others were left out
			e.add(tick, at(tick))
		}
	}
	e.settle(3, at(2000), &h)
	if h.Count() != 0 {
		t.Fatalf("%d ticks counted before the first one", h.Count())
	}
	e.settle(6, at(2000), &h)
	if got := h.Quantile(1); h.Count() != 1 || got != 1995*time.Millisecond {
		t.Errorf("%d ticks up to %v, want 1 of 1995ms", h.Count(), got)
	}
	h = Histogram{}
	e.settle(120, at(200), &h)
	if got := h.Quantile(1); h.Count() != 120-6-10 || got != 194*time.Millisecond {
		t.Errorf("%d ticks up to %v, want 104 up to 194ms", h.Count(), got)
	}
	e.settle(5000, at(2000), &h)
	if h.Count() != 1995-10-1 {
		t.Errorf("%d ticks, want all of 1984", h.Count())
	}
	e.settle(6000, at(2000), &h)
	e.add(7000, at(7000))
	e.settle(7001, at(7001), &h)
	if h.Count() != 1985 || h.Quantile(0) > time.Millisecond+time.Millisecond/64 {
		t.Errorf("%d ticks from %v, want 1985 from 1ms", h.Count(), h.Quantile(0))
	}
}
