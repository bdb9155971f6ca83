package wasm

import (
	"testing"

	"reprise/format"
	"reprise/player"
)

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
