package skirmish

import (
	"fmt"
	"strconv"
	"strings"

	"reprise/format"
	"reprise/player"
)

// Bug is a fault planted into the game, to try out what finds it: from a tick
// on, one field of the state is off by one after every tick. Its text is
// FIELD@TICK, for example gold@300; the fields are gold (of the first player)
// and hp (of the oldest unit).
type Bug struct {
	Field string
	Tick  format.Tick
}

// ParseBug reads FIELD@TICK.
func ParseBug(text string) (Bug, error) {
	field, at, ok := strings.Cut(text, "@")
	tick, err := strconv.ParseUint(at, 10, 64)
	if !ok || err != nil || field != "gold" && field != "hp" {
		return Bug{}, fmt.Errorf("%q is no bug: use gold@TICK or hp@TICK", text)
	}
	return Bug{Field: field, Tick: format.Tick(tick)}, nil
}

// plant changes the field.
func (g *Game) plant(field string) {
	switch field {
	case "gold":
		g.sides[0].gold++
	case "hp":
		if len(g.units) > 0 {
			g.units[0].hp++
		}
	}
}

// Factory offers a build of the game with the bug in it.
func (b Bug) Factory() player.Factory {
	return player.Factory{
		Name:  Name,
		Build: fmt.Sprintf("%s-bug-%s@%d", Build, b.Field, b.Tick),
		New:   func() player.Game { return &buggy{bug: b} },
	}
}

type buggy struct {
	Game
	bug Bug
}

func (g *buggy) EndTick(tick format.Tick) error {
	err := g.Game.EndTick(tick)
	if err == nil && tick >= g.bug.Tick {
		g.plant(g.bug.Field)
	}
	return err
}
