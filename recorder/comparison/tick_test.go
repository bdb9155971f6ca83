package main

import (
	"bytes"
	"testing"

	"reprise/format"
)

// TestRow compares the bytes that go to JetStream with those that reprised
// gets for the same tick.
func TestRow(t *testing.T) {
	for _, session := range []int{0, 1, 9_999} {
		for _, tick := range []format.Tick{0, 1, 72_000} {
			row, err := appendRow(nil, session, tick)
			if err != nil {
				t.Fatal(err)
			}
			if len(row) != rowBytes {
				t.Fatalf("session %d, tick %d: a row of %d bytes, want %d", session, tick, len(row), rowBytes)
			}
			b := format.NewBatchBuilder(format.Width16, 0, tick)
			var f filler
			params := tickParams(session, tick, &f)
			if err := b.Step(tickCode, params[:]...); err != nil {
				t.Fatal(err)
			}
			b.EndTick()
			if b.Rows() != rowBytes {
				t.Errorf("session %d, tick %d: reprised gets %d row bytes, JetStream %d", session, tick, b.Rows(), rowBytes)
			}
			batch, err := format.ParseBatch(b.AppendBody(nil), 0)
			if err != nil {
				t.Fatal(err)
			}
			if want := append(bytes.Clone(batch.Commands), batch.Params...); !bytes.Equal(row, want) {
				t.Errorf("session %d, tick %d: JetStream gets %x, reprised %x", session, tick, row, want)
			}
		}
	}
}
