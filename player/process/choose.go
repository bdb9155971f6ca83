package process

import (
	"fmt"

	"reprise/format"
	"reprise/player"
)

// Offer is one game that a child offers.
type Offer struct {
	Name, Build string
	// Data is the hash of its data files; empty where it does not tell.
	Data string
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

func (h *hello) offers() []Offer {
	var offers []Offer
	for i := range h.games {
		o := h.games[i].offer()
		o.Data = h.dataOf(i)
		offers = append(offers, o)
	}
	return offers
}

// choose finds the game of a hello that recorded a replay, by the rule for
// linked games. A replay that names no game, as in a format that cannot, is
// one of the only game that there is. With any, a game of another name or
// build does as well. Build is another name for every game's build; with it,
// a game that gives none does not play every build.
func (h *hello) choose(meta *format.Metadata, build string, any bool) (int, error) {
	if meta.Game == "" && len(h.games) == 1 {
		return 0, nil
	}
	var games player.Games
	for i := range h.games {
		g := &h.games[i]
		if g.build != "" || build == "" {
			games = append(games, candidate{g, i, g.build, h.dataOf(i)})
		}
		if build != "" {
			games = append(games, candidate{g, i, build, h.dataOf(i)})
		}
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
	as       string // its build
	data     string
}

func (c candidate) Identity() (name, build string) { return c.name, c.as }

func (c candidate) DataIdentity() string { return c.data }

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
