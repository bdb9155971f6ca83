package skirmish

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"reprise/format"
	"reprise/player"
)

// Name and Build are what recordings of this game carry. Build changes with
// every change of the simulation, for then old replays no longer play.
const (
	Name  = "skirmish"
	Build = "skirmish-1"
)

// TicksPerSecond is the default tick rate.
const TicksPerSecond = 20

// playersLabel is the label of the metadata that counts the players, so
// that a replay still plays when its players were erased.
const playersLabel = "players"

// HashParts are the parts of the state hash, and what they cover:
//
//	world    map, tick, outcome, deposits, buildings
//	units    units and arrows
//	economy  the players' standing, gold and wood
//	random   the random generator and the counter of ids
func HashParts() []format.HashPart {
	return []format.HashPart{
		{Name: "world", Bytes: 4}, {Name: "units", Bytes: 4}, {Name: "economy", Bytes: 4}, {Name: "random", Bytes: 4},
	}
}

const hashBytes = 16

// NewMetadata describes a match for a recording; session, start and labels
// are the caller's to add.
func NewMetadata(seed uint64, mapName string, players int) *format.Metadata {
	return &format.Metadata{
		Game:      Name,
		Build:     Build,
		Seed:      seed,
		Map:       mapName,
		TickRate:  format.Rate{Num: TicksPerSecond, Den: 1},
		HashBytes: hashBytes,
		HashParts: HashParts(),
		Width:     format.Width16,
		Labels:    []format.Label{{Key: playersLabel, Value: strconv.Itoa(players)}},
	}
}

// NewPlayers lists the players of a match, numbered from 1.
func NewPlayers(players int) []format.Player {
	list := make([]format.Player, players)
	for i := range list {
		list[i] = format.Player{ID: uint64(i + 1), Name: "player " + strconv.Itoa(i+1)}
	}
	return list
}

// playersOf finds the numbers of those who play, in ascending order: the
// known players who do not only watch, else as many as the label says,
// numbered from 1. The list is empty where neither says anything.
func playersOf(start player.Start) ([]uint64, error) {
	var ids []uint64
	for _, p := range start.Players {
		if !p.Observer {
			ids = append(ids, p.ID)
		}
	}
	slices.Sort(ids)
	if len(ids) > 0 && ids[len(ids)-1] > math.MaxInt64 {
		return nil, fmt.Errorf("skirmish: player number %d is above %d, which no command can carry", ids[len(ids)-1], uint64(math.MaxInt64))
	}
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		return nil, fmt.Errorf("skirmish: players %v: a number stands twice", ids)
	}
	labelled, err := labelledPlayers(start.Meta)
	if err != nil || labelled == 0 {
		return ids, err
	}
	if len(ids) > 0 && len(ids) != labelled {
		return nil, fmt.Errorf("skirmish: %d players are known before the first tick, label %q says %d", len(ids), playersLabel, labelled)
	}
	for i := len(ids); i < labelled; i++ {
		ids = append(ids, uint64(i+1))
	}
	return ids, nil
}

// labelledPlayers reads the label that counts the players; 0 without one.
func labelledPlayers(meta *format.Metadata) (int, error) {
	for _, l := range meta.Labels {
		if l.Key != playersLabel {
			continue
		}
		n, err := strconv.Atoi(l.Value)
		if err != nil || n < minPlayers || n > maxPlayers {
			return 0, fmt.Errorf("skirmish: label %q is %q, not a number from %d to %d", playersLabel, l.Value, minPlayers, maxPlayers)
		}
		return n, nil
	}
	return 0, nil
}

// hashShape reads how a session wants its state hashed.
func hashShape(meta *format.Metadata) (bytes int, whole bool, err error) {
	if len(meta.HashParts) == 0 {
		if meta.HashBytes < 0 || meta.HashBytes > maxHash {
			return 0, false, fmt.Errorf("skirmish: a state hash of %d bytes; 0 to %d can be made", meta.HashBytes, maxHash)
		}
		return meta.HashBytes, true, nil
	}
	if meta.HashBytes != hashBytes || !slices.Equal(meta.HashParts, HashParts()) {
		return 0, false, fmt.Errorf("skirmish: the replay splits its state hash as %s; %s splits it as %s, or not at all",
			describeParts(meta.HashParts), Build, describeParts(HashParts()))
	}
	return hashBytes, false, nil
}

func describeParts(parts []format.HashPart) string {
	words := make([]string, len(parts))
	for i, p := range parts {
		words[i] = p.Name + ":" + strconv.Itoa(p.Bytes)
	}
	return strings.Join(words, " ")
}
