package wasm

import (
	"io"
	"testing"

	"reprise/format"
	"reprise/player"
)

// script makes ticks of a replay.
type script struct {
	t     testing.TB
	next  format.Tick
	ticks []format.TickRecord
}

func newScript(t testing.TB) *script { return &script{t: t} }

// tick adds a tick with the steps that fill adds.
func (s *script) tick(fill func(add func(code uint16, params ...format.Value))) *script {
	s.t.Helper()
	b := format.NewBatchBuilder(format.Width16, 0, s.next)
	if fill != nil {
		fill(func(code uint16, params ...format.Value) {
			if err := b.Step(code, params...); err != nil {
				s.t.Fatal(err)
			}
		})
	}
	b.EndTick()
	batch, err := format.ParseBatch(b.AppendBody(nil), 0)
	if err != nil {
		s.t.Fatal(err)
	}
	reader := batch.Reader()
	var record format.TickRecord
	if !reader.Next(&record) {
		s.t.Fatal("no tick in the batch")
	}
	s.ticks = append(s.ticks, record)
	s.next++
	return s
}

// one adds a tick of one step.
func (s *script) one(code uint16, params ...format.Value) *script {
	s.t.Helper()
	return s.tick(func(add func(uint16, ...format.Value)) { add(code, params...) })
}

// empty adds n ticks without steps.
func (s *script) empty(n int) *script {
	s.t.Helper()
	for range n {
		s.tick(nil)
	}
	return s
}

// records is a source of ticks.
type records struct {
	ticks []format.TickRecord
}

func (r *records) Next() (player.Item, error) {
	if len(r.ticks) == 0 {
		return player.Item{}, io.EOF
	}
	tick := &r.ticks[0]
	r.ticks = r.ticks[1:]
	return player.Item{Tick: tick}, nil
}

// play plays ticks from the start of a replay and gives every hash.
func play(t testing.TB, sim player.Simulation, start player.Start, ticks []format.TickRecord) []string {
	t.Helper()
	if err := sim.Reset(start); err != nil {
		t.Fatal(err)
	}
	return advance(t, sim, ticks)
}

// advance plays on.
func advance(t testing.TB, sim player.Simulation, ticks []format.TickRecord) []string {
	t.Helper()
	var hashes []string
	emit := func(o player.Outcome) error {
		hashes = append(hashes, string(o.Hash))
		return nil
	}
	for i := range ticks {
		if err := sim.Advance(&ticks[i], true, emit); err != nil {
			t.Fatal(err)
		}
	}
	if err := sim.Flush(false, emit); err != nil || len(hashes) != len(ticks) {
		t.Fatalf("%d answers to %d ticks: %v", len(hashes), len(ticks), err)
	}
	return hashes
}

func save(t testing.TB, sim player.Keeper) []byte {
	t.Helper()
	state, err := sim.Save(nil)
	if err != nil {
		t.Fatal(err)
	}
	return state
}
