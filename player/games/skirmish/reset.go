package skirmish

import (
	"errors"
	"fmt"
	"slices"

	"reprise/player"
)

// Reset puts the game into the state that start describes.
func (g *Game) Reset(start player.Start) error {
	g.ready = false
	if start.Meta == nil {
		return errors.New("skirmish: a match cannot start without metadata")
	}
	bytes, whole, err := hashShape(start.Meta)
	if err != nil {
		return err
	}
	g.hashBytes, g.whole = bytes, whole
	ids, err := playersOf(start)
	if err != nil {
		return err
	}
	if start.State != nil {
		return g.resetTo(start, ids)
	}
	if len(ids) < minPlayers || len(ids) > maxPlayers {
		return fmt.Errorf("skirmish: %d players; a match has %d to %d, known before its first tick or counted by label %q",
			len(ids), minPlayers, maxPlayers, playersLabel)
	}
	if err := g.arrange(start.Meta.Seed, start.Meta.Map, ids); err != nil {
		return fmt.Errorf("skirmish: %w", err)
	}
	g.tick = uint64(start.NextTick)
	g.populate()
	g.ready = true
	return nil
}

// resetTo loads a keyframe and holds it against the replay it came with.
func (g *Game) resetTo(start player.Start, ids []uint64) error {
	if err := g.Load(start.State); err != nil {
		return err
	}
	g.ready = false
	switch {
	case g.seed != start.Meta.Seed || g.mapName != start.Meta.Map:
		return fmt.Errorf("skirmish: the keyframe is of seed %d on %q, the replay of seed %d on %q",
			g.seed, g.mapName, start.Meta.Seed, start.Meta.Map)
	case g.tick != uint64(start.NextTick):
		return fmt.Errorf("skirmish: the keyframe is the state before tick %d, not before tick %d", g.tick, start.NextTick)
	case len(ids) > 0 && !slices.Equal(ids, g.playerIDs()):
		return fmt.Errorf("skirmish: the keyframe has players %v, the replay %v", g.playerIDs(), ids)
	}
	g.ready = true
	return nil
}

func (g *Game) playerIDs() []uint64 {
	ids := make([]uint64, len(g.sides))
	for i := range g.sides {
		ids[i] = g.sides[i].player
	}
	return ids
}

// arrange makes an empty state for a match, with its board; the layout of
// the last match is kept where it is the same.
func (g *Game) arrange(seed uint64, mapName string, ids []uint64) error {
	same := g.layout != nil && g.seed == seed && g.mapName == mapName && len(g.sides) == len(ids)
	if !same {
		l, err := draw(seed, mapName, len(ids))
		if err != nil {
			g.layout = nil
			return err
		}
		g.layout = l
	}
	g.state = state{
		seed: seed, mapName: mapName, sides: g.sides[:0],
		deposits: g.deposits[:0], buildings: g.buildings[:0], units: g.units[:0], arrows: g.arrows[:0],
	}
	for _, id := range ids {
		g.sides = append(g.sides, side{player: id})
	}
	g.board.copyFrom(&g.layout.board)
	return nil
}

// populate puts everything in its place for the first tick.
func (g *Game) populate() {
	g.random = random(scramble(g.seed))
	g.lastID = g.layout.lastID
	g.deposits = append(g.deposits, g.layout.deposits...)
	for i := range g.deposits {
		g.stampDeposit(&g.deposits[i])
	}
	for i := range g.sides {
		g.sides[i].gold, g.sides[i].wood = startGold, startWood
		at := g.layout.starts[i]
		g.found(uint8(i), hall, at)
		g.buildings[i].hp = specs[hall].hp
		for n := range startWorkers {
			u := g.enlist(uint8(i), worker, spot{at.x - 2 + n, at.y + 2})
			g.seekWork(u)
		}
	}
}

func (g *Game) stampDeposit(d *deposit) { g.board.set(d.spot(), mined) }
