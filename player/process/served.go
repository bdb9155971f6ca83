package process

import (
	"reprise/player"
)

// served is one game of a child.
type served struct {
	info gameInfo
	data string
	sim  player.Simulation
	// saver and dumper are nil where the game is none.
	saver  player.Saver
	dumper player.Dumper
}

func newServed(g player.Linked) *served {
	s := &served{sim: g.Simulation(), data: player.DataOf(g)}
	s.info.name, s.info.build = g.Identity()
	game := gameOf(s.sim)
	s.saver, _ = game.(player.Saver)
	s.dumper, _ = game.(player.Dumper)
	ahead, ok := s.sim.(player.LookAhead)
	looks := ok && ahead.LooksAhead()
	s.info.abilities = bit(canSave, s.saver != nil) | bit(canDump, s.dumper != nil) | bit(looksFar, looks)
	// What holds steps back starts anew from a state only in a reset.
	s.info.abilities |= bit(canLoad, s.saver != nil && !looks)
	return s
}

func bit(a abilities, set bool) abilities {
	if set {
		return a
	}
	return 0
}

// gameOf gives the game behind a simulation of this process, and any other
// simulation itself.
func gameOf(sim player.Simulation) any {
	switch s := sim.(type) {
	case interface{ Game() player.Game }:
		return s.Game()
	case interface{ Game() player.TurnGame }:
		return s.Game()
	}
	return sim
}
