package playtest

import (
	"io"
	"testing"

	"reprise/format"
	"reprise/player"
)

// Script makes ticks of a replay, one by one from tick 0 on.
type Script struct {
	// Width is that of the command codes of the ticks that follow.
	Width format.Width
	// Ticks are those made so far.
	Ticks []format.TickRecord

	t testing.TB
}

// NewScript begins with 16 bit wide command codes. A step that no replay can
// hold fails the test.
func NewScript(t testing.TB) *Script { return &Script{Width: format.Width16, t: t} }

// Tick adds a tick with the steps that fill adds; nil adds none.
func (s *Script) Tick(fill func(add func(code uint16, params ...format.Value))) *Script {
	s.t.Helper()
	b := format.NewBatchBuilder(s.Width, 0, format.Tick(len(s.Ticks)))
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
	s.Ticks = append(s.Ticks, record)
	return s
}

// One adds a tick of one step.
func (s *Script) One(code uint16, params ...format.Value) *Script {
	s.t.Helper()
	return s.Tick(func(add func(uint16, ...format.Value)) { add(code, params...) })
}

// Empty adds n ticks without steps.
func (s *Script) Empty(n int) *Script {
	s.t.Helper()
	for range n {
		s.Tick(nil)
	}
	return s
}

// Source gives ticks to an engine.
func Source(ticks []format.TickRecord) player.Source { return &records{ticks} }

type records struct {
	ticks []format.TickRecord
}

// Next gives the next tick.
func (r *records) Next() (player.Item, error) {
	if len(r.ticks) == 0 {
		return player.Item{}, io.EOF
	}
	tick := &r.ticks[0]
	r.ticks = r.ticks[1:]
	return player.Item{Tick: tick}, nil
}
