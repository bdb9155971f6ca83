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

// Identity gives the factory's name and build.
func (f Factory) Identity() (name, build string) { return f.Name, f.Build }

// Simulation makes a Local of a new game.
func (f Factory) Simulation() Simulation { return NewLocal(f.New()) }

// Identity gives the factory's name and build.
func (f TurnFactory) Identity() (name, build string) { return f.Name, f.Build }

// Simulation makes a Turns of a new game.
func (f TurnFactory) Simulation() Simulation { return NewTurns(f.New()) }

// Games are the games that there are. The same name may stand there with
// several builds.
type Games []Linked

// Lookup finds the game that recorded a replay: of the recorded build or, for
// want of one, a game that plays every build. The error is a GameMissingError
// or a BuildMismatchError.
func (g Games) Lookup(meta *format.Metadata) (Linked, error) {
	var anyBuild Linked
	var builds []string
	for _, game := range g {
		name, build := game.Identity()
		switch {
		case name != meta.Game:
		case build == meta.Build:
			return game, nil
		case build == "":
			anyBuild = game
		default:
			builds = append(builds, build)
		}
	}
	switch {
	case anyBuild != nil:
		return anyBuild, nil
	case builds != nil:
		return nil, &BuildMismatchError{Game: meta.Game, Recorded: meta.Build, Present: builds}
	}
	return nil, &GameMissingError{Game: meta.Game, Build: meta.Build, Present: g.Names()}
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
