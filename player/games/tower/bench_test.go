package tower

import (
	"testing"

	"reprise/player"
)

// BenchmarkReplay gives the time of one tick of a whole game, hashes
// compared.
func BenchmarkReplay(b *testing.B) {
	rec := play(b, 4000012, "tower-10")
	ticks := rec.ticks(b)
	sim := Factory().Simulation()
	start := player.Start{Meta: Metadata("", rec.seed, rec.mapName)}
	emit := func(player.Outcome) error { return nil }
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%len(ticks) == 0 {
			if err := sim.Reset(start); err != nil {
				b.Fatal(err)
			}
		}
		tick := &ticks[i%len(ticks)]
		if err := sim.Advance(tick, tick.Hash != nil, emit); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkClimber gives the time of one turn of a game that plays itself.
func BenchmarkClimber(b *testing.B) {
	b.ReportAllocs()
	var r *Run
	for ok := false; b.Loop(); {
		if !ok {
			r, _ = NewRun(4000012, "tower-10")
		}
		_, _, ok = r.Next()
	}
}
