package player

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

// TestMeasureFindsTheSlowTick runs games that sleep, in virtual time.
func TestMeasureFindsTheSlowTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := recordMatch(t, matchPlan{ticks: 50, hashEvery: 5})
		sleeper := func(each time.Duration) *Local {
			g := &mixer{}
			g.endTick = func(tick format.Tick) error {
				time.Sleep(each)
				if tick == 123 {
					time.Sleep(time.Second)
				}
				return nil
			}
			return NewLocal(g)
		}
		r, err := Measure(context.Background(), m.file, []Simulation{sleeper(10 * time.Millisecond), sleeper(20 * time.Millisecond)}, 4, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(r[0].Rounds) != 4 || r[0].Ticks != 50 || r[0].Rounds[3] != 1500*time.Millisecond || r[1].Rounds[0] != 2*time.Second {
			t.Errorf("%+v", r)
		}
		if got := r[0].TicksPerSecond(); math.Abs(got-50/1.5) > 1e-9 {
			t.Errorf("%v ticks a second", got)
		}
		if p50, p98, p99 := r[1].Percentile(50), r[1].Percentile(98), r[1].Percentile(99); p50 != 20*time.Millisecond || p98 != p50 || p99 != 1020*time.Millisecond {
			t.Errorf("percentiles %v %v %v", p50, p98, p99)
		}
		if s := r[0].Slowest(2); len(s) != 2 || s[0] != (TickTime{123, 1010 * time.Millisecond}) || s[1].Tick != 100 {
			t.Errorf("slowest %v", s)
		}
		if q := r[1].RatioTo(&r[0]); math.Abs(q.Value-2.0/1.5) > 1e-9 || math.Abs(q.High-q.Low) > 1e-9 {
			t.Errorf("ratio %+v", q)
		}
	})
}

// TestRatioHasStudentsInterval compares with an interval computed by hand: the
// logarithms 0.1, 0.2 and 0.3 have mean 0.2 and deviation 0.1, and t(2) is
// 4.303.
func TestRatioHasStudentsInterval(t *testing.T) {
	second := float64(time.Second)
	at := func(x float64) time.Duration { return time.Duration(second * math.Exp(x)) }
	a := Measurement{Rounds: []time.Duration{at(0.1), at(0.2), at(0.3)}}
	b := Measurement{Rounds: []time.Duration{time.Second, time.Second, time.Second}}
	half := 4.303 * 0.1 / math.Sqrt(3)
	got := a.RatioTo(&b)
	want := Ratio{math.Exp(0.2), math.Exp(0.2 - half), math.Exp(0.2 + half)}
	for _, d := range []float64{got.Value - want.Value, got.Low - want.Low, got.High - want.High} {
		if math.Abs(d) > 1e-6 {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestMeasureRefusesWhatItCannotTime(t *testing.T) {
	gapped := recordMatch(t, matchPlan{ticks: 50, gaps: []format.Gap{{First: 110, Last: 119, Reason: "x"}}, frames: []format.Tick{120}})
	_, err := Measure(context.Background(), gapped.file, []Simulation{NewLocal(&mixer{})}, 2, nil)
	wantGap(t, err, 110, 119, true, false)
	empty := recordMatch(t, matchPlan{})
	if _, err := Measure(context.Background(), empty.file, []Simulation{NewLocal(&mixer{})}, 2, nil); !errors.Is(err, ErrNothingCompared) {
		t.Errorf("no ticks: %v", err)
	}
}
