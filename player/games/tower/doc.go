// Package tower is a sample game of the turn-based kind, and everything that
// a recorder of it needs: the rules, the commands for the replay system, and
// a climber that plays by itself.
//
// A hero climbs a tower of N floors (the map is named "tower-N") for the
// crown at its top. Floors are made from the seed: rooms whose gates are
// closed by coloured doors and by monsters, with keys, gems, potions and
// tools lying about. Fights are without chance, so a player can reckon
// whether one is worth its cost; shops, traders and altars sell strength; a
// lost fight ends the game.
//
// # Steps
//
//	code  name         kind     parameter
//	 1-4  up … right   active   -
//	   5  use          active   item
//	   6  open         active   -
//	   7  rest         active   -
//	   8  surrender    active   -
//	  16  choose       passive  choice, answers open
//	  17  destination  passive  floor, answers use of wings
//
// A turn is a tick: one active step and the passive steps that answer what it
// asks. An attempt that cannot succeed, such as a move into a wall, is a turn
// like any other and is recorded.
//
// # Settled ticks
//
// In play a move is carried out at once. In a replay a move only joins a
// queue, and the whole run of equal moves is walked when it ends (the
// commands' Finalize). Both come to the same state, but not after every
// tick: only the last move of a run is settled, and its hash is known when
// the next turn begins. [Run] gives hashes for settled ticks only.
//
// # Layout
//
//	tile.go item.go monster.go hero.go floor.go   what there is
//	rooms.go build.go furnish.go                  how floors are made
//	act.go walk.go fight.go open.go use.go ask.go the rules
//	state.go hash.go save.go check.go dump.go     the state as a whole
//	codes.go commands.go game.go                  the replay's side
//	turn.go run.go climber.go errand.go route.go  a game that plays itself
package tower
