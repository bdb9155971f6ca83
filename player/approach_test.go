package player

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"reprise/format"
)

// A move made in parts ends in the same state as one that is made as a whole,
// makes way with every part, and may be given up anywhere.
func TestPlaybackApproachesInParts(t *testing.T) {
	plan := matchPlan{ticks: 200, hashEvery: 1, frames: []format.Tick{100, 150, 260}, gaps: []format.Gap{{First: 240, Last: 259}},
		spoil: map[format.Tick]bool{150: true}}
	m := recordMatch(t, plan)
	ctx := context.Background()
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 5))
		game := &mixer{}
		p := NewPlayback(m.file, NewLocal(game), PlaybackOptions{Spacing: 16})
		for range 40 {
			to := m.first + format.Tick(rng.IntN(201))
			if to > 240 && to < 260 {
				continue
			}
			most := 1 + rng.IntN(40)
			for part := 0; ; part++ {
				arrived, err := p.Approach(ctx, to, most)
				if err != nil {
					t.Fatal(err)
				}
				m.wantAt(t, game, p, p.Position())
				if arrived != (p.Position() == to) {
					t.Fatalf("at tick %d of %d: arrived is %v", p.Position(), to, arrived)
				}
				if arrived || rng.IntN(50) == 0 {
					break
				}
				if part > 200 {
					t.Fatalf("no way is made towards tick %d", to)
				}
			}
		}
	}
}

func TestPlaybackApproachRefusesWhatSeekRefuses(t *testing.T) {
	m := recordMatch(t, matchPlan{ticks: 100, hashEvery: 1, gaps: []format.Gap{{First: 140, Last: 149}}})
	p := NewPlayback(m.file, NewLocal(&mixer{}), PlaybackOptions{})
	var gap *GapError
	if _, err := p.Approach(context.Background(), 160, 5); !errors.As(err, &gap) {
		t.Errorf("behind a gap: %v", err)
	}
	if _, err := p.Approach(context.Background(), 201, 5); !errors.Is(err, ErrNoSuchTick) {
		t.Errorf("behind the end: %v", err)
	}
}
