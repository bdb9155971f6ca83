package tower

// patience is how many turns for each floor of the tower a climber plays
// before giving up.
const patience = 300

// climber plays a game as a person might: it gathers what is free, fights
// what is weak, buys, explores, goes up, and errs now and then. It decides
// by the state and by a generator of its own, so that one seed always gives
// the same game.
type climber struct {
	mind random
	// errand is the lower floor that the climber returns to for a shop, or
	// -1; bought is the number of purchases when the last errand began.
	errand int64
	bought int64
	// weary climbers go on no further errand: the last one was in vain.
	weary bool
}

func newClimber(seed uint64) climber {
	return climber{mind: from(seed, 1<<32), errand: -1, bought: -1}
}

// view is what a decision looks at.
type view struct {
	*state
	floor *floor
	here  cell
	reach *distances
}

func look(s *state) view {
	v := view{state: s, floor: s.floor(), here: cell(s.hero.cell)}
	v.reach = v.floor.survey(v.here)
	return v
}

func (v view) tired() bool { return v.hero.turns >= patience*int64(len(v.floors)) }

// decide picks the next turn of a game that is not over.
func (c *climber) decide(s *state) Turn {
	v := look(s)
	for _, idea := range []func(view) (Turn, bool){
		c.whim, c.bombard, c.gather, c.visit, c.skirmish, c.run,
		c.dare, c.ascend, c.recover, c.struggle, c.tunnel, c.turnBack,
	} {
		if turn, ok := idea(v); ok && !v.tired() {
			return turn
		}
	}
	return c.lastStand(v)
}

// whim is what people do for no reason.
func (c *climber) whim(v view) (Turn, bool) {
	switch draw := c.mind.below(1000); {
	case draw < 20:
		return c.amble(v, tileWall)
	case draw < 35:
		return c.amble(v, tileGround)
	case draw < 37:
		return Turn{Code: CodeOpen}, !v.facing().place()
	case draw < 39:
		return useOf(bomb), v.hero.bag[bomb] == 0
	case draw < 41:
		return Turn{Code: CodeRest}, true
	case draw < 44:
		return useOf(scroll), v.hero.bag[scroll] > 0
	case draw < 47:
		return useOf(wings, answer(CodeDestination, int64(c.mind.below(int(v.hero.highest)+1)))), v.hero.bag[wings] > 0
	}
	return Turn{}, false
}

func (v view) facing() tile { return v.floor.grid[v.ahead()] }

// amble moves towards any t beside the hero.
func (c *climber) amble(v view, t tile) (Turn, bool) {
	d := direction(c.mind.below(directions))
	return move(d), v.floor.grid[v.here.beside(d)] == t
}

// bombard clears a dangerous monster out of the way.
func (c *climber) bombard(v view) (Turn, bool) {
	k, ok := v.facing().monster()
	if !ok || k == guardian || v.hero.bag[bomb] == 0 {
		return Turn{}, false
	}
	f := v.hero.forecast(k.on(int(v.hero.level)))
	return useOf(bomb), !f.possible || f.damage > v.hero.health/8
}

// approach goes to the nearest cell that suits.
func (v view) approach(suits func(cell) bool) (Turn, bool) {
	goal, ok := v.reach.nearest(suits)
	if !ok {
		return Turn{}, false
	}
	return move(v.floor.toward(v.here, goal, direction(v.hero.facing))), true
}

// gather picks up what lies around.
func (c *climber) gather(v view) (Turn, bool) {
	return v.approach(func(at cell) bool { return v.floor.grid[at].treasure() })
}

// skirmish fights what does little harm, and opens doors that cost a common
// key.
func (c *climber) skirmish(v view) (Turn, bool) {
	return v.approach(func(at cell) bool { return v.harmless(at, 20) || v.opens(at, yellow) })
}

// harmless says whether a fight at c costs at most 1/share of the health.
func (v view) harmless(c cell, share int64) bool {
	k, ok := v.floor.grid[c].monster()
	if !ok {
		return false
	}
	f := v.hero.forecast(k.on(int(v.hero.level)))
	return f.possible && f.damage <= v.hero.health/share
}

func (v view) opens(c cell, only colour) bool {
	colour, ok := v.floor.grid[c].door()
	return ok && colour == only && v.hero.keys[colour] > 0
}

// dare takes bigger risks.
func (c *climber) dare(v view) (Turn, bool) {
	return v.approach(func(at cell) bool {
		return v.harmless(at, 6) || v.opens(at, blue) || v.opens(at, red)
	})
}

// ascend takes the stairs up, or the crown.
func (c *climber) ascend(v view) (Turn, bool) {
	return v.approach(func(at cell) bool { return at == v.floor.exit })
}

// recover mends the hero before a fight that has to be.
func (c *climber) recover(v view) (Turn, bool) {
	switch {
	case v.hero.health >= 60*growth(int(v.hero.level)):
		return Turn{}, false
	case v.hero.bag[elixir] > 0:
		return useOf(elixir), true
	case v.hero.bag[ration] > 1 && c.mind.percent(30):
		return useOf(ration), true
	}
	return Turn{Code: CodeRest}, v.hero.bag[ration] > 0
}

// struggle fights the cheapest fight that the hero survives.
func (c *climber) struggle(v view) (Turn, bool) {
	least := v.hero.health
	v.each(func(f fight) { least = min(least, f.damage) })
	if least == v.hero.health {
		return Turn{}, false
	}
	return v.approach(func(at cell) bool {
		k, ok := v.floor.grid[at].monster()
		if !ok {
			return false
		}
		f := v.hero.forecast(k.on(int(v.hero.level)))
		return f.possible && f.damage == least
	})
}

// each visits the fights that can be begun from where the hero is.
func (v view) each(visit func(fight)) {
	for c, t := range &v.floor.grid {
		if k, ok := t.monster(); ok && v.reach[c] > 0 {
			if f := v.hero.forecast(k.on(int(v.hero.level))); f.possible {
				visit(f)
			}
		}
	}
}

// lastStand ends a game that leads nowhere.
func (c *climber) lastStand(v view) Turn {
	turn, ok := v.approach(func(at cell) bool {
		k, ok := v.floor.grid[at].monster()
		return ok && v.hero.forecast(k.on(int(v.hero.level))).possible
	})
	if ok && !v.tired() && c.mind.percent(95) {
		return turn
	}
	return Turn{Code: CodeSurrender}
}
