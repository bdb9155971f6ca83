package skirmish

import "testing"

// crowd is a state with 100 units: four players' workers at work, and their
// armies on the way to each other.
func crowd(b *testing.B) *Game {
	b.Helper()
	m, err := NewMatch(4, 4, "canyon-100")
	if err != nil {
		b.Fatal(err)
	}
	for len(m.game.units) < 100 {
		if _, _, done := m.Next(); done {
			b.Fatal("the match ended with fewer than 100 units")
		}
		if err := m.Simulate(); err != nil {
			b.Fatal(err)
		}
	}
	g := m.game
	centre := spot{g.board.size / 2, g.board.size / 2}.middle()
	for i := range g.units {
		if u := &g.units[i]; !specs[u.kind].makes {
			if err := g.orderMarch(u, centre); err != nil {
				b.Fatal(err)
			}
		}
	}
	return g
}

// benchmarkTicks simulates stretches of 600 ticks, half a minute with a
// march and a battle, always from the same state.
func benchmarkTicks(b *testing.B, hash bool) {
	g := crowd(b)
	state := g.Save(nil)
	var sum []byte
	var units, ticks int
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; b.Loop(); n++ {
		if n%600 == 0 {
			b.StopTimer()
			if err := g.Load(state); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		if err := g.EndTick(g.Tick()); err != nil {
			b.Fatal(err)
		}
		if hash {
			sum = g.Hash(sum[:0])
		}
		units += len(g.units)
		ticks++
	}
	b.ReportMetric(float64(units)/float64(ticks), "units")
}

func BenchmarkTick100(b *testing.B) {
	b.Run("simulate", func(b *testing.B) { benchmarkTicks(b, false) })
	b.Run("simulate+hash", func(b *testing.B) { benchmarkTicks(b, true) })
}

func BenchmarkSave100(b *testing.B) {
	g := crowd(b)
	var state []byte
	b.ReportAllocs()
	for b.Loop() {
		state = g.Save(state[:0])
	}
	b.ReportMetric(float64(len(state)), "bytes")
}

func BenchmarkLoad100(b *testing.B) {
	g := crowd(b)
	state := g.Save(nil)
	b.ReportAllocs()
	for b.Loop() {
		if err := g.Load(state); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMatchTick(b *testing.B) {
	m, err := NewMatch(5, 2, "plains-100")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for seed := uint64(6); b.Loop(); {
		if _, _, done := m.Next(); done {
			if m, err = NewMatch(seed, 2, "plains-100"); err != nil {
				b.Fatal(err)
			}
			seed++
		}
		if err := m.Simulate(); err != nil {
			b.Fatal(err)
		}
	}
}
