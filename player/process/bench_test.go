package process

import (
	"fmt"
	"testing"
	"time"

	"reprise/format"
	"reprise/player"
	"reprise/player/games/skirmish"
	"reprise/player/internal/playtest"
)

// burner is a game whose ticks take a given time.
type burner struct {
	counter
	rounds int64
}

func burnerFactory() player.Factory {
	return player.Factory{Name: "burner", Build: "1", New: func() player.Game { return new(burner) }}
}

func (b *burner) Step(_ format.Tick, step format.Step) (player.Result, error) {
	b.rounds, _ = step.Params[0].Int64()
	b.sum += uint64(step.Code)
	return player.Success, nil
}

func (b *burner) EndTick(format.Tick) error {
	for range b.rounds {
		b.sum = b.sum*6364136223846793005 + 1442695040888963407
		b.sum ^= b.sum >> 29
	}
	return nil
}

// rounds finds out how many rounds take so long.
func rounds(d time.Duration) int64 {
	var b burner
	b.rounds = 1 << 20
	best := time.Hour
	for range 5 {
		begun := time.Now()
		_ = b.EndTick(0)
		best = min(best, time.Since(begun))
	}
	return int64(d) * (1 << 20) / int64(best)
}

// BenchmarkChild plays the same ticks in this process and in a child by turns.
// It reports the child's speed as a part of this process's, and what a tick
// costs more in the child.
func BenchmarkChild(b *testing.B) {
	for _, work := range []time.Duration{0, 5 * time.Microsecond, 20 * time.Microsecond, 200 * time.Microsecond} {
		for _, steps := range []int{0, 4} {
			b.Run(fmt.Sprintf("work=%v/steps=%d", work, steps), func(b *testing.B) { benchmarkChild(b, work, steps) })
		}
	}
}

func benchmarkChild(b *testing.B, work time.Duration, steps int) {
	child, err := New(b.Context(), command(), quick("burner"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = child.Close() }()
	local := player.NewLocal(new(burner))
	s := playtest.NewScript(b)
	n := format.Int(rounds(work))
	s.One(1, n)
	for range 2000 {
		s.Tick(func(add func(uint16, ...format.Value)) {
			for range steps {
				add(2, n, format.Int(1234), format.Int(5))
			}
		})
	}
	meta := counterMeta()
	meta.Game = "burner"
	start := player.Start{Meta: meta}
	var here, there time.Duration
	for b.Loop() {
		here += timed(b, local, start, s.Ticks)
		there += timed(b, child, start, s.Ticks)
	}
	report(b, here, there, len(s.Ticks))
}

func timed(b *testing.B, sim player.Simulation, start player.Start, ticks []format.TickRecord) time.Duration {
	if err := sim.Reset(start); err != nil {
		b.Fatal(err)
	}
	answers := 0
	emit := func(player.Outcome) error { answers++; return nil }
	begun := time.Now()
	for i := range ticks {
		if err := sim.Advance(&ticks[i], i%10 == 0, emit); err != nil {
			b.Fatal(err)
		}
	}
	if err := sim.Flush(true, emit); err != nil || answers != len(ticks) {
		b.Fatal(answers, err)
	}
	return time.Since(begun)
}

// BenchmarkSkirmish is BenchmarkChild with a whole game.
func BenchmarkSkirmish(b *testing.B) {
	child, err := New(b.Context(), command(), quick("skirmish"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = child.Close() }()
	start, ticks := playtest.Skirmish(b, 5000)
	local := player.NewLocal(new(skirmish.Game))
	var here, there time.Duration
	for b.Loop() {
		here += timed(b, local, start, ticks)
		there += timed(b, child, start, ticks)
	}
	report(b, here, there, len(ticks))
}

func report(b *testing.B, here, there time.Duration, perLoop int) {
	ticks := float64(b.N * perLoop)
	b.ReportMetric(float64(here)/float64(there), "of-local-speed")
	b.ReportMetric(float64(there-here)/ticks/1000, "µs-more/tick")
	b.ReportMetric(float64(here)/ticks/1000, "µs-local/tick")
	b.ReportMetric(0, "ns/op")
}
