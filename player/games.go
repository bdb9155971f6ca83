package player

import (
	"errors"
	"slices"

	"reprise/format"
)

// ErrStart is returned where a game refuses to start a replay: a map that it
// does not have, a keyframe that is damaged or that it cannot restore.
var ErrStart = errors.New("the game cannot start this replay")

// Linked is a game that this program can play: a Factory or a TurnFactory.
type Linked interface {
	// Identity gives the name and build that replays are matched with.
	Identity() (name, build string)
	// Simulation makes a new simulation of the game.
	Simulation() Simulation
}

// DataIdentity is a Linked game that tells the hash of its data files, with
// which the recorded Metadata.Data is compared; empty means that it does not
// know.
type DataIdentity interface {
	DataIdentity() string
}

// DataOf gives the hash of a game's data files; empty where it tells none.
func DataOf(g Linked) string {
	if d, ok := g.(DataIdentity); ok {
		return d.DataIdentity()
	}
	return ""
}

// Identity gives the factory's name and build.
func (f Factory) Identity() (name, build string) { return f.Name, f.Build }

// DataIdentity gives the factory's data.
func (f Factory) DataIdentity() string { return f.Data }

// Simulation makes a Local of a new game.
func (f Factory) Simulation() Simulation { return NewLocal(f.New()) }

// Identity gives the factory's name and build.
func (f TurnFactory) Identity() (name, build string) { return f.Name, f.Build }

// DataIdentity gives the factory's data.
func (f TurnFactory) DataIdentity() string { return f.Data }

// Simulation makes a Turns of a new game.
func (f TurnFactory) Simulation() Simulation { return NewTurns(f.New()) }

// Games are the games that there are. The same name may stand there with
// several builds, and a build with several data.
type Games []Linked

// Lookup finds the game that recorded a replay: of the recorded build and data
// or, for want of one, a game that plays every build or every data. A replay
// without data is one of any. The error is a GameMissingError, a
// BuildMismatchError or a DataMismatchError.
func (g Games) Lookup(meta *format.Metadata) (Linked, error) {
	var best Linked
	highest := 0
	var builds, data []string
	for _, game := range g {
		name, build := game.Identity()
		switch own := DataOf(game); {
		case name != meta.Game:
		case build != meta.Build && build != "":
			builds = append(builds, build)
		case own != meta.Data && own != "" && meta.Data != "":
			data = append(data, own)
		default:
			if rank := 1 + 2*oneIf(build == meta.Build) + oneIf(own == meta.Data); rank > highest {
				best, highest = game, rank
			}
		}
	}
	switch {
	case best != nil:
		return best, nil
	case data != nil:
		return nil, &DataMismatchError{Game: meta.Game, Build: meta.Build, Recorded: meta.Data, Present: data}
	case builds != nil:
		return nil, &BuildMismatchError{Game: meta.Game, Recorded: meta.Build, Present: builds}
	}
	return nil, &GameMissingError{Game: meta.Game, Build: meta.Build, Present: g.Names()}
}

func oneIf(set bool) int {
	if set {
		return 1
	}
	return 0
}

// Names gives the names of the games, each once, in order.
func (g Games) Names() []string {
	var names []string
	for _, game := range g {
		name, _ := game.Identity()
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
