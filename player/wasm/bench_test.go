package wasm

import (
	"context"
	"fmt"
	"testing"
	"time"

	"reprise/format"
	"reprise/player"
	"reprise/player/games/marbles"
	"reprise/player/games/skirmish"
	"reprise/player/internal/playtest"
)

// BenchmarkTick measures what a tick costs beside the module's own work: a
// module that does nothing is given ticks without steps, and with four, and
// is asked for no hash; and marbles, whose own work is measured by a tick of
// the linked game.
func BenchmarkTick(b *testing.B) {
	for _, steps := range []int{0, 4} {
		b.Run(fmt.Sprintf("idle/steps=%d", steps), func(b *testing.B) { benchmarkIdle(b, steps) })
	}
	b.Run("marbles", benchmarkMarbles)
}

func benchmarkIdle(b *testing.B, steps int) {
	s := simulate(b, compile(b, assemble(parts{}), Options{}))
	tick := playtest.NewScript(b).Tick(func(add func(uint16, ...format.Value)) {
		for range steps {
			add(1, format.Int(1), format.Int(200), format.Int(30_000), format.Int(-4), format.Int(1<<40))
		}
	}).Ticks[0]
	if err := s.Reset(testStart()); err != nil {
		b.Fatal(err)
	}
	emit := func(player.Outcome) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Advance(&tick, false, emit); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkMarbles(b *testing.B) {
	start, ticks := playtest.Marbles(b, 1, 2000)
	here, there := player.NewLocal(new(marbles.Game)), simulate(b, compile(b, marblesFile, Options{}))
	benchmarkBoth(b, here, there, start, ticks)
}

// BenchmarkSkirmish is a whole game, compiled by Go.
func BenchmarkSkirmish(b *testing.B) {
	start, ticks := playtest.Skirmish(b, 3000)
	benchmarkBoth(b, player.NewLocal(new(skirmish.Game)), newSkirmish(b), start, ticks)
}

// benchmarkBoth plays the same ticks linked and as a module by turns, with
// every hash.
func benchmarkBoth(b *testing.B, here, there player.Simulation, start player.Start, ticks []format.TickRecord) {
	var spent [2]time.Duration
	n := 0
	for b.Loop() {
		for i, sim := range []player.Simulation{here, there} {
			if err := sim.Reset(start); err != nil {
				b.Fatal(err)
			}
			began := time.Now()
			advance(b, sim, ticks)
			spent[i] += time.Since(began)
		}
		n += len(ticks)
	}
	b.ReportMetric(float64(spent[0].Nanoseconds())/float64(n), "ns-linked/tick")
	b.ReportMetric(float64(spent[1].Nanoseconds())/float64(n), "ns-module/tick")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSnapshot keeps and restores a module of 16 MiB, all of it in use, of
// which a few pages change between two snapshots.
func BenchmarkSnapshot(b *testing.B) {
	const memory = 16 << 20
	m := compile(b, assemble(parts{memory: string(append([]byte{0}, appendU32(nil, memory/wasmPage)...))}), Options{})
	s := simulate(b, m)
	if err := firstTick(b, s); err != nil {
		b.Fatal(err)
	}
	bytes := memoryOf(s.instance)
	for i := 1 << 17; i < len(bytes); i++ {
		bytes[i] = byte(i * 131 >> 7)
	}
	kept, err := s.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	dirty := func(round int) {
		memory := memoryOf(s.instance)
		for i := range 20 {
			memory[1<<17+(round*7919+i*524_287)%(len(memory)-1<<17)]++
		}
	}
	b.Run("take", func(b *testing.B) {
		for round := 0; b.Loop(); round++ {
			dirty(round)
			if _, err := s.Snapshot(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("restore", func(b *testing.B) {
		for b.Loop() {
			if err := s.Restore(kept); err != nil {
				b.Fatal(err)
			}
		}
	})
	var state []byte
	b.Run("save", func(b *testing.B) {
		for b.Loop() {
			if state, err = s.Save(state[:0]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			if err := s.Load(state, s.next); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCompile compiles the sample modules.
func BenchmarkCompile(b *testing.B) {
	file, err := buildSkirmish()
	if err != nil {
		b.Fatal(err)
	}
	for name, file := range map[string][]byte{"marbles": marblesFile, "skirmish": file} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				m, err := Compile(context.Background(), file, Options{})
				if err != nil {
					b.Fatal(err)
				}
				_ = m.Close()
			}
		})
	}
}
