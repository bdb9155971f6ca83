package playtest

import (
	"testing"

	"reprise/format"
	"reprise/player"
	"reprise/player/games/marbles"
	"reprise/player/games/skirmish"
)

// Skirmish plays the first ticks of a match among bots, with the hash after
// each.
func Skirmish(t testing.TB, ticks int) (player.Start, []format.TickRecord) {
	t.Helper()
	m, err := skirmish.NewMatch(3, 4, "plains-100")
	if err != nil {
		t.Fatal(err)
	}
	s := NewScript(t)
	for range ticks {
		_, commands, done := m.Next()
		if done {
			break
		}
		s.Tick(func(add func(uint16, ...format.Value)) {
			for _, c := range commands {
				add(c.Op, c.AppendParams(nil)...)
			}
		})
		if err := m.Simulate(); err != nil {
			t.Fatal(err)
		}
		s.Ticks[len(s.Ticks)-1].Hash = m.Game().Hash(nil)
	}
	return player.Start{Meta: m.Metadata(), Book: skirmish.CodeBook(), Players: m.Players()}, s.Ticks
}

// Marbles gives the ticks of a sample match, without hashes.
func Marbles(t testing.TB, seed uint64, ticks int) (player.Start, []format.TickRecord) {
	t.Helper()
	s := NewScript(t)
	for _, pushes := range marbles.SampleMatch(seed, ticks) {
		s.Tick(func(add func(uint16, ...format.Value)) {
			for _, p := range pushes {
				add(p.Op, p.Params()...)
			}
		})
	}
	return player.Start{Meta: marbles.Metadata(seed)}, s.Ticks
}
