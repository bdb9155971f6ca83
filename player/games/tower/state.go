package tower

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A tower has 2 to maxFloors floors; the map's name says how many.
const (
	mapPrefix = "tower-"
	minFloors = 2
	maxFloors = 60
)

// ErrMap is returned for a map name that is not "tower-N" with N from 2 to
// 60: the replay belongs to another game, or to a newer build of this one.
var ErrMap = errors.New("tower: unknown map")

// outcome says whether and how a game ended; saved states hold these
// numbers, which must not change.
type outcome uint8

const (
	climbing    outcome = 0
	crowned     outcome = 1
	fallen      outcome = 2
	surrendered outcome = 3
)

const outcomes = 4

var outcomeNames = [outcomes]string{"climbing", "crowned", "fallen", "surrendered"}

// state is the whole game.
type state struct {
	seed    uint64
	random  random
	outcome outcome
	hero    hero
	floors  []floor
	// queue holds moves that have been given and not yet walked.
	queue []direction
}

// parseMap gives the number of floors that a map name stands for.
func parseMap(name string) (int, error) {
	digits, ok := strings.CutPrefix(name, mapPrefix)
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < minFloors || n > maxFloors || strconv.Itoa(n) != digits {
		return 0, fmt.Errorf("%w %q: want tower-%d to tower-%d", ErrMap, name, minFloors, maxFloors)
	}
	return n, nil
}

// newState builds the tower of a seed with its hero at the foot.
func newState(seed uint64, floors int) state {
	s := state{seed: seed, random: from(seed, 0), floors: make([]floor, floors)}
	entry := at(side/2|1, side-2)
	for level := range s.floors {
		s.floors[level] = build(seed, level, entry, level == floors-1)
		entry = s.floors[level].exit
	}
	s.hero = newHero(s.floors[0].entry)
	return s
}

// floor is the one that the hero is on.
func (s *state) floor() *floor { return &s.floors[s.hero.level] }

// ahead is the cell that the hero faces.
func (s *state) ahead() cell {
	return cell(s.hero.cell).beside(direction(s.hero.facing))
}

func (s *state) over() bool { return s.outcome != climbing }
