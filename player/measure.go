package player

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"time"

	"reprise/format"
)

// Measurement is how long a simulation takes over a replay.
type Measurement struct {
	Ticks int
	// Rounds are the times of whole runs, in order, without the start.
	Rounds []time.Duration
	// PerTick holds the time of each tick, the fastest of the passes that
	// timed single ticks, so that what disturbed one pass does not show.
	// Empty where the game looks ahead: its ticks cannot be told apart.
	PerTick []TickTime
}

// TickTime is the time that one tick took.
type TickTime struct {
	Tick format.Tick
	Time time.Duration
}

// TicksPerSecond is the speed of the median round.
func (m *Measurement) TicksPerSecond() float64 {
	rounds := slices.Clone(m.Rounds)
	slices.Sort(rounds)
	return float64(m.Ticks) / rounds[len(rounds)/2].Seconds()
}

// Percentile gives the time that p percent of the ticks do not exceed.
func (m *Measurement) Percentile(p float64) time.Duration {
	if len(m.PerTick) == 0 {
		return 0
	}
	times := make([]time.Duration, len(m.PerTick))
	for i, t := range m.PerTick {
		times[i] = t.Time
	}
	slices.Sort(times)
	i := int(math.Ceil(p/100*float64(len(times)))) - 1
	return times[max(0, min(i, len(times)-1))]
}

// Slowest gives the n slowest ticks, the slowest first.
func (m *Measurement) Slowest(n int) []TickTime {
	ticks := slices.Clone(m.PerTick)
	slices.SortStableFunc(ticks, func(a, b TickTime) int { return cmp.Compare(b.Time, a.Time) })
	return ticks[:min(n, len(ticks))]
}

// Ratio is a ratio of times with its 95 % confidence interval.
type Ratio struct{ Value, Low, High float64 }

// RatioTo compares the rounds of m with those of o, pair by pair: the
// geometric mean of the ratios, with Student's interval of their logarithms.
// Two rounds at least are needed; below 1 m is faster.
func (m *Measurement) RatioTo(o *Measurement) Ratio {
	n := min(len(m.Rounds), len(o.Rounds))
	logs := make([]float64, n)
	mean := 0.0
	for i := range logs {
		logs[i] = math.Log(m.Rounds[i].Seconds() / o.Rounds[i].Seconds())
		mean += logs[i] / float64(n)
	}
	variance := 0.0
	for _, l := range logs {
		variance += (l - mean) * (l - mean) / float64(n-1)
	}
	half := student95(n-1) * math.Sqrt(variance/float64(n))
	return Ratio{Value: math.Exp(mean), Low: math.Exp(mean - half), High: math.Exp(mean + half)}
}

// student95 is the two-sided 95 % quantile of Student's distribution, up to
// 30 degrees of freedom; beyond, that of the normal distribution is near.
func student95(freedom int) float64 {
	table := [...]float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
		2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042}
	switch {
	case freedom < 1:
		return math.Inf(1)
	case freedom <= len(table):
		return table[freedom-1]
	}
	return 1.96
}

// tickPasses is how often single ticks are timed.
const tickPasses = 3

// Measure times simulations over the same replay, in turn within each round,
// the first one first in every other round, so that what disturbs the machine
// disturbs all. Nothing is hashed or compared. The replay must have no gap.
func Measure(ctx context.Context, file *format.File, sims []Simulation, rounds int, clock Clock) ([]Measurement, error) {
	if len(file.Summary().Gaps) > 0 {
		return nil, &GapError{Gap: file.Summary().Gaps[0], Declared: true}
	}
	if file.Summary().Ticks == 0 {
		return nil, ErrNothingCompared
	}
	results := make([]Measurement, len(sims))
	order := make([]int, len(sims))
	for i := range order {
		order[i] = i
	}
	for range rounds {
		for _, i := range order {
			m := meter{ctx: ctx, file: file, sim: sims[i], clock: clockOr(clock)}
			if err := m.round(&results[i]); err != nil {
				return nil, fmt.Errorf("simulation %d: %w", i+1, err)
			}
		}
		slices.Reverse(order)
	}
	for range tickPasses {
		for _, i := range order {
			m := meter{ctx: ctx, file: file, sim: sims[i], clock: clockOr(clock)}
			if err := m.ticks(&results[i]); err != nil {
				return nil, fmt.Errorf("simulation %d: %w", i+1, err)
			}
		}
		slices.Reverse(order)
	}
	return results, nil
}

// meter runs one simulation once.
type meter struct {
	ctx   context.Context
	file  *format.File
	sim   Simulation
	clock Clock
}

// each starts the simulation and gives it every tick.
func (m *meter) each(tick func(t *format.TickRecord) error) error {
	source := NewFileSource(m.file)
	start := StartOf(m.file)
	runtime.GC() // what was left behind is not this run's
	for {
		item, err := source.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case item.Keyframe != nil:
			start.State = append([]byte{}, item.Keyframe.State...)
			continue
		}
		if item.Tick.Tick == start.Meta.FirstTick {
			if err := m.sim.Reset(start); err != nil {
				return err
			}
		}
		if err := m.ctx.Err(); err != nil {
			return err
		}
		if err := tick(item.Tick); err != nil {
			return err
		}
	}
}

func ignore(o Outcome) error {
	if o.Failure != nil {
		return o.Failure
	}
	return nil
}

// round times a whole run. Reading the replay is not counted.
func (m *meter) round(r *Measurement) error {
	var spent time.Duration
	ticks := 0
	timed := func(f func() error) error {
		began := m.clock.Now()
		err := f()
		spent += m.clock.Now().Sub(began)
		return err
	}
	err := m.each(func(t *format.TickRecord) error {
		ticks++
		return timed(func() error { return m.sim.Advance(t, false, ignore) })
	})
	if err == nil {
		err = timed(func() error { return m.sim.Flush(true, ignore) })
	}
	r.Ticks, r.Rounds = ticks, append(r.Rounds, spent)
	return err
}

// ticks times every tick, with its answer.
func (m *meter) ticks(r *Measurement) error {
	if LooksAhead(m.sim) {
		return nil
	}
	n := 0
	return m.each(func(t *format.TickRecord) error {
		began := m.clock.Now()
		err := errors.Join(m.sim.Advance(t, false, ignore), m.sim.Flush(false, ignore))
		took := m.clock.Now().Sub(began)
		if n == len(r.PerTick) {
			r.PerTick = append(r.PerTick, TickTime{t.Tick, took})
		}
		r.PerTick[n].Time = min(r.PerTick[n].Time, took)
		n++
		return err
	})
}
