package skirmish

import (
	"errors"
	"fmt"

	"reprise/format"
	"reprise/player"
)

// ErrUnknownMap is returned by Reset and NewMatch for a map name that is
// not of this game; the replay cannot be played.
var ErrUnknownMap = errors.New("unknown map")

// errUnready is returned while there is no state: before the first Reset,
// and after one that failed.
var errUnready = errors.New("skirmish: no state; call Reset or Load first")

// Game is one match. Its zero value is ready for Reset.
type Game struct {
	state
	ready bool
	// hashBytes is the width of the state hash; whole is true where it is
	// one part without a name.
	hashBytes int
	whole     bool

	// What follows is derived from state, or scratch memory of one tick.
	layout *layout
	board  board
	cells  cells
	finder finder
}

var (
	_ player.Game   = (*Game)(nil)
	_ player.Saver  = (*Game)(nil)
	_ player.Dumper = (*Game)(nil)
)

// Factory offers the game to a player.
func Factory() player.Factory {
	return player.Factory{
		Name:  Name,
		Build: Build,
		New:   func() player.Game { return new(Game) },
	}
}

// Tick is the next tick to be simulated.
func (g *Game) Tick() format.Tick { return format.Tick(g.tick) }

// Winner tells whether the match is over, and who won; 0 is nobody.
func (g *Game) Winner() (id uint64, over bool) {
	if g.winner == 0 {
		return 0, g.over
	}
	return g.sides[g.winner-1].player, g.over
}

// EndTick simulates a tick after its last step.
func (g *Game) EndTick(tick format.Tick) error {
	if err := g.expect(tick); err != nil {
		return err
	}
	g.cells.fill(g.board.size, g.units)
	g.serveRoutes()
	g.act()
	g.spread()
	g.fly()
	g.bury()
	g.produce()
	g.judge()
	g.tick++
	return nil
}

// expect refuses a tick out of order.
func (g *Game) expect(tick format.Tick) error {
	if !g.ready {
		return errUnready
	}
	if uint64(tick) != g.tick {
		return fmt.Errorf("skirmish: tick %d given where %d is next; give every tick once and in order", tick, g.tick)
	}
	return nil
}

// act lets every unit do what it is at.
func (g *Game) act() {
	for i := range g.units {
		u := &g.units[i]
		u.recharge -= min(u.recharge, 1)
		u.route.rest -= min(u.route.rest, 1)
		switch u.order {
		case idle:
			g.guard(u)
		case moving:
			if g.travel(u) {
				u.rest()
			}
		case attacking:
			if !g.fight(u, u.target) {
				u.rest()
			}
		case marching:
			if !g.guard(u) && g.travel(u) {
				u.rest()
			}
		case gathering:
			g.gather(u)
		case delivering:
			g.deliver(u)
		case constructing:
			g.construct(u)
		}
	}
}

// command gives a unit a new order.
func (u *unit) command(o order, target uint32, goal point) {
	u.order, u.target, u.goal = o, target, goal
	u.foe, u.work = 0, 0
	u.route.start()
}

// rest ends a unit's order where it stands.
func (u *unit) rest() {
	u.command(idle, 0, point{})
	u.route.asked = false
}

// giveUp ends what a unit cannot get to. Workers look for other work.
func (g *Game) giveUp(u *unit) {
	switch {
	case u.foe != 0:
		u.engage(0)
	case u.order == gathering || u.order == delivering:
		g.seekWork(u)
	default:
		u.rest()
	}
}
