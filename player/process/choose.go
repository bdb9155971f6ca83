package process

import (
	"fmt"

	"reprise/format"
	"reprise/player"
)

// Offer is one game that a child offers.
type Offer struct {
	Name, Build string
	// CanSave, CanLoad and CanDump say what Save, Load and Dump can do.
	CanSave, CanLoad, CanDump bool
	// LooksAhead is set for a game whose last tick is settled by the next.
	LooksAhead bool
	// HashBytes is the width of its state hashes; 0 means whatever the
	// replay declares.
	HashBytes int
}

func (g *gameInfo) offer() Offer {
	return Offer{
		Name: g.name, Build: g.build,
		CanSave: g.abilities.has(canSave), CanLoad: g.abilities.has(canLoad), CanDump: g.abilities.has(canDump),
		LooksAhead: g.abilities.has(looksFar), HashBytes: int(g.hashBytes),
	}
}

// choose finds the game of a hello that recorded a replay, by the rule for
// linked games. A replay that names no game, as in a format that cannot, is
// one of the only game that there is. With any, a game of another name or
// build does as well.
func (h *hello) choose(meta *format.Metadata, any bool) (int, error) {
	if meta.Game == "" && len(h.games) == 1 {
		return 0, nil
	}
	var games player.Games
	for i := range h.games {
		games = append(games, candidate{&h.games[i], i})
	}
	found, err := games.Lookup(meta)
	switch {
	case err == nil:
		return found.(candidate).position, nil
	case any:
		return h.nearest(meta.Game), nil
	}
	return 0, err
}

// nearest finds a game of the name or, for want of one, the first.
func (h *hello) nearest(name string) int {
	for i, g := range h.games {
		if g.name == name {
			return i
		}
	}
	return 0
}

// candidate is a game to be looked up.
type candidate struct {
	*gameInfo
	position int
}

func (c candidate) Identity() (name, build string) { return c.name, c.build }

// Simulation is nil: the child plays the game, and a candidate is only looked
// up.
func (c candidate) Simulation() player.Simulation { return nil }

// hashWidth gives the width of the hashes that the replay and the game agree
// on; 0 where neither says anything.
func (g *gameInfo) hashWidth(meta *format.Metadata) (int, error) {
	own := int(g.hashBytes)
	switch {
	case own == 0 || own == meta.HashBytes:
		return meta.HashBytes, nil
	case meta.HashBytes == 0:
		return own, nil
	}
	return 0, fmt.Errorf("%w: it makes state hashes of %d bytes, the replay has %d", player.ErrStart, own, meta.HashBytes)
}
