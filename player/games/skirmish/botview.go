package skirmish

// view is what a bot sees in one look. Indexes are those of the game's
// lists and hold only for that tick.
type view struct {
	gold, wood int64
	home       spot
	workers    []int
	army       []int
	own        []int // buildings, finished or not
	intruders  []int // enemy units near an own building
	// gatherers counts workers by what they gather.
	gatherers [wood + 1]int
	// population with room to grow.
	population, room int
	// strength is the worth of every side's units.
	strength [maxPlayers]int
	// centre is the middle of the army.
	centre point
}

// intrusion is how near to a building a foe counts as attacking it.
const intrusion = 9 * one

func (v *view) look(g *Game, seat uint8) {
	s := &g.sides[seat]
	*v = view{
		gold: s.gold, wood: s.wood, home: v.home,
		workers: v.workers[:0], army: v.army[:0], own: v.own[:0], intruders: v.intruders[:0],
	}
	v.population, v.room = g.population(seat)
	v.lookAtBuildings(g, seat)
	v.lookAtUnits(g, seat)
}

func (v *view) lookAtBuildings(g *Game, seat uint8) {
	for i := range g.buildings {
		b := &g.buildings[i]
		if b.owner != seat {
			continue
		}
		if len(v.own) == 0 || b.kind == hall {
			v.home = b.spot()
		}
		v.own = append(v.own, i)
	}
}

func (v *view) lookAtUnits(g *Game, seat uint8) {
	for i := range g.units {
		u := &g.units[i]
		v.strength[u.owner] += worth(u)
		switch {
		case u.owner != seat:
			if v.intrudes(g, u) {
				v.intruders = append(v.intruders, i)
			}
		case specs[u.kind].makes:
			v.workers = append(v.workers, i)
			if u.order == gathering || u.order == delivering {
				v.gatherers[u.cargo]++
			}
		default:
			v.army = append(v.army, i)
			v.centre.x += u.at.x
			v.centre.y += u.at.y
		}
	}
	if n := fixed(len(v.army)); n > 0 {
		v.centre.x /= n
		v.centre.y /= n
	}
}

func (v *view) intrudes(g *Game, u *unit) bool {
	for _, i := range v.own {
		if g.buildings[i].target(i).squared(u.at) < square(intrusion) {
			return true
		}
	}
	return false
}

// worth is a unit's strength: what is left of it, by its damage.
func worth(u *unit) int { return int(u.hp) * int(specs[u.kind].damage) / 50 }

// near sums up the worth of a side's fighters, or of all its foes', near p.
func (v *view) near(g *Game, seat uint8, p point, radius fixed) (own, foes int) {
	for i := range g.units {
		u := &g.units[i]
		if specs[u.kind].makes || u.at.squared(p) > square(radius) {
			continue
		}
		if u.owner == seat {
			own += worth(u)
		} else {
			foes += worth(u)
		}
	}
	return own, foes
}

// least is the smallest strength among the sides that still play.
func (v *view) least(g *Game) int {
	least := -1
	for i := range g.sides {
		if g.sides[i].standing == playing && (least < 0 || v.strength[i] < least) {
			least = v.strength[i]
		}
	}
	return least
}
