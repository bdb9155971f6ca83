package player_test

import (
	"bytes"
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"reprise/format"
	"reprise/player"
	"reprise/player/games/skirmish"
)

// match is a recorded match of the sample game, with a hash after every tick.
type match struct {
	start   player.Start
	records []*format.TickRecord
	at      int
}

func (m *match) Next() (player.Item, error) {
	if m.at == len(m.records) {
		return player.Item{}, io.EOF
	}
	m.at++
	return player.Item{Tick: m.records[m.at-1]}, nil
}

func recordMatch(b *testing.B, ticks int) *match {
	b.Helper()
	live, err := skirmish.NewMatch(4, 4, "canyon-100")
	if err != nil {
		b.Fatal(err)
	}
	m := &match{start: player.Start{Meta: live.Metadata(), Book: skirmish.CodeBook(), Players: live.Players()}}
	for range ticks {
		tick, commands, done := live.Next()
		if done {
			break
		}
		a := format.NewArray(format.Options{Width: format.Width16})
		for _, c := range commands {
			a.Add(c.Op, c.AppendParams(nil)...)
		}
		if err := live.Simulate(); err != nil {
			b.Fatal(err)
		}
		m.records = append(m.records, &format.TickRecord{
			Tick: tick, Width: format.Width16, Steps: a.Len(),
			Commands: a.CommandArea(), Params: a.ParamArea(), Hash: live.Game().Hash(nil),
		})
	}
	return m
}

// BenchmarkSkirmish verifies a match of the sample game with the engine, and
// with a bare loop around the same calls.
func BenchmarkSkirmish(b *testing.B) {
	m := recordMatch(b, 4000)
	game := skirmish.Factory().New()
	perTick := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(m.records)), "ns/tick")
	}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			bareMatch(b, m, game)
		}
		perTick(b)
	})
	b.Run("engine", func(b *testing.B) {
		for b.Loop() {
			m.at = 0
			if _, err := player.Run(context.Background(), player.NewLocal(game), m, player.EngineOptions{Start: m.start}); err != nil {
				b.Fatal(err)
			}
		}
		perTick(b)
	})
}

// BenchmarkOverhead runs the bare loop and the engine in turn: the median of the
// ratios of the pairs is what playing and comparing costs.
func BenchmarkOverhead(b *testing.B) {
	m := recordMatch(b, 4000)
	game := skirmish.Factory().New()
	local := player.NewLocal(game)
	var ratios []float64
	for b.Loop() {
		began := time.Now()
		bareMatch(b, m, game)
		bare := time.Since(began)
		m.at = 0
		began = time.Now()
		if _, err := player.Run(context.Background(), local, m, player.EngineOptions{Start: m.start}); err != nil {
			b.Fatal(err)
		}
		ratios = append(ratios, time.Since(began).Seconds()/bare.Seconds())
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "of-bare-time")
	b.ReportMetric(float64(len(ratios)), "pairs")
	b.ReportMetric(0, "ns/op")
}

func bareMatch(b *testing.B, m *match, game player.Game) {
	var reader format.StepReader
	var step format.Step
	var hash []byte
	if err := game.Reset(m.start); err != nil {
		b.Fatal(err)
	}
	for _, r := range m.records {
		reader.Reset(r)
		for reader.Next(&step) {
			if result, err := game.Step(r.Tick, step); result == player.Failed {
				b.Fatal(err)
			}
		}
		if err := game.EndTick(r.Tick); err != nil {
			b.Fatal(err)
		}
		if hash = game.Hash(hash[:0]); !bytes.Equal(hash, r.Hash) {
			b.Fatalf("desync at tick %d", r.Tick)
		}
	}
}
