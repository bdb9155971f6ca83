package player

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"reprise/format"
)

// worker is a mixer whose ticks cost a given number of rounds of work.
type worker struct {
	mixer
	rounds int
}

func (w *worker) EndTick(tick format.Tick) error {
	x := w.random
	for range w.rounds {
		x = x*1664525 + 1013904223
	}
	w.random = x
	return nil
}

// rounds15 is about 15 microseconds of work.
const rounds15 = 9_000

// workload is a tape of worker's ticks with a hash each.
func workload(b testing.TB, ticks, rounds int) *tape {
	s := tapeOf(b, ticks, 0)
	game := &worker{rounds: rounds}
	local := NewLocal(game)
	local.Reset(Start{Meta: s.meta})
	for _, item := range s.items {
		err := local.Advance(item.Tick, true, func(o Outcome) error { item.Tick.Hash = bytes.Clone(o.Hash); return nil })
		if err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// bareLoop is the least that verifying takes: decode, step, hash, compare.
func bareLoop(b testing.TB, s *tape, game *worker) {
	var reader format.StepReader
	var step format.Step
	var hash []byte
	game.Reset(Start{Meta: s.meta})
	for _, item := range s.items {
		reader.Reset(item.Tick)
		for reader.Next(&step) {
			game.Step(item.Tick.Tick, step)
		}
		game.EndTick(item.Tick.Tick)
		if hash = game.Hash(hash[:0]); !bytes.Equal(hash, item.Tick.Hash) {
			b.Fatal("desync")
		}
	}
}

func engineLoop(b testing.TB, s *tape, game *worker) {
	s.at = 0
	if _, err := Run(context.Background(), NewLocal(game), s, EngineOptions{Start: Start{Meta: s.meta}}); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkTick compares the engine with a bare loop, over a game that costs
// nothing and one that costs 15 microseconds a tick.
func BenchmarkTick(b *testing.B) {
	loops := []struct {
		name string
		run  func(testing.TB, *tape, *worker)
	}{{"bare", bareLoop}, {"engine", engineLoop}}
	for _, rounds := range []int{0, rounds15} {
		for _, loop := range loops {
			b.Run(fmt.Sprintf("rounds=%d/%s", rounds, loop.name), func(b *testing.B) {
				const ticks = 2000
				s := workload(b, ticks, rounds)
				game := &worker{rounds: rounds}
				b.ReportAllocs()
				for b.Loop() {
					loop.run(b, s, game)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/ticks, "ns/tick")
			})
		}
	}
}

// BenchmarkTurn is the cost of a turn of a game that costs nothing.
func BenchmarkTurn(b *testing.B) {
	s := &tape{meta: &format.Metadata{}}
	for i := range 2000 {
		s.items = append(s.items, Item{Tick: tickOf(format.Tick(i), talkStep(1), answerStep(int64(i)))})
	}
	b.ReportAllocs()
	for b.Loop() {
		s.at = 0
		Run(context.Background(), NewTurns(newWalker()), s, EngineOptions{Start: Start{Meta: s.meta}})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000, "ns/turn")
}

func TestEngineAllocatesNothingPerTick(t *testing.T) {
	allocations := func(ticks int) float64 {
		s, game := workload(t, ticks, 0), &worker{}
		return testing.AllocsPerRun(10, func() {
			game.resets = game.resets[:0]
			engineLoop(t, s, game)
		})
	}
	if few, many := allocations(100), allocations(2000); many > few {
		t.Errorf("%v allocations for 100 ticks, %v for 2,000", few, many)
	}
}
