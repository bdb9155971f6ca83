package tower

// visit opens chests, altars and merchants that are worth it.
func (c *climber) visit(v view) (Turn, bool) {
	goal, ok := v.reach.nearest(func(at cell) bool { return v.worth(v.floor.grid[at]) })
	if !ok {
		return Turn{}, false
	}
	if v.ahead() == goal {
		return Turn{Code: CodeOpen, Passives: c.answers(v, v.floor.grid[goal])}, true
	}
	return move(v.floor.toward(v.here, goal, direction(v.hero.facing))), true
}

func (v view) worth(t tile) bool {
	switch t {
	case tileChest:
		return true
	case tileAltar:
		return v.hero.health > 60*growth(int(v.hero.level))
	case tileShop:
		return v.hero.gold >= v.wares()[0].price
	case tileTrader:
		return v.hero.keys[yellow] == 0 && v.hero.gold >= 3*v.supplies()[0].price
	}
	return false
}

// answers prepares the passive steps for a place.
func (c *climber) answers(v view, t tile) []Answer {
	switch t {
	case tileAltar:
		return []Answer{answer(CodeChoose, int64(c.mind.below(altarLeave+1)))}
	case tileShop:
		return c.shop(v)
	case tileTrader:
		return []Answer{answer(CodeChoose, 0), answer(CodeChoose, 0), answer(CodeChoose, int64(len(v.supplies())))}
	}
	return nil
}

// shop spends all that the hero has on whichever strength is behind.
func (c *climber) shop(v view) []Answer {
	s := state{hero: v.hero}
	var answers []Answer
	offers := s.wares()
	for ; s.hero.gold >= offers[0].price; offers = s.wares() {
		choice := c.want(&s.hero)
		answers = append(answers, answer(CodeChoose, choice))
		s.hero.gold -= offers[choice].price
		offers[choice].grant(&s.hero)
	}
	if c.mind.percent(10) {
		answers = append(answers, answer(CodeChoose, 0))
	}
	return append(answers, answer(CodeChoose, int64(len(offers))))
}

// want picks one of a shop's wares.
func (c *climber) want(h *hero) int64 {
	switch {
	case h.health < 30*growth(int(h.level)):
		return 0
	case h.attack <= h.defence || c.mind.percent(20):
		return 1
	}
	return 2
}

// run follows an errand downwards.
func (c *climber) run(v view) (Turn, bool) {
	if c.errand < 0 || v.hero.level <= c.errand {
		c.errand = -1
		return Turn{}, false
	}
	if v.hero.bag[wings] > 0 {
		return useOf(wings, answer(CodeDestination, c.errand)), true
	}
	if v.hero.bag[scroll] > 0 && v.reach[v.floor.entry] > 6 {
		return useOf(scroll), true
	}
	turn, ok := v.approach(func(at cell) bool { return at == v.floor.entry })
	if !ok {
		c.errand, c.weary = -1, true
	}
	return turn, ok
}

// turnBack begins an errand where nothing else is left to do: gold that is
// carried helps nobody.
func (c *climber) turnBack(v view) (Turn, bool) {
	if c.weary || v.hero.gold < v.wares()[0].price || v.hero.purchases == c.bought {
		c.weary = true
		return Turn{}, false
	}
	for level := v.hero.level - 1; level >= 0; level-- {
		if v.floors[level].has(tileShop) {
			c.errand, c.bought = level, v.hero.purchases
			return c.run(v)
		}
	}
	return Turn{}, false
}

func (f *floor) has(want tile) bool {
	for _, t := range &f.grid {
		if t == want {
			return true
		}
	}
	return false
}

// tunnel breaks through a wall to where no way leads.
func (c *climber) tunnel(v view) (Turn, bool) {
	if v.hero.bag[pickaxe] == 0 {
		return Turn{}, false
	}
	if v.breach(v.here, direction(v.hero.facing)) {
		return useOf(pickaxe), true
	}
	if way, ok := v.breaches(v.here); ok {
		return move(way), true
	}
	return v.approach(func(at cell) bool {
		_, ok := v.breaches(at)
		return ok && v.floor.free(at)
	})
}

// breaches gives a direction in which a wall hides something new.
func (v view) breaches(c cell) (direction, bool) {
	for way := range direction(directions) {
		if v.breach(c, way) {
			return way, true
		}
	}
	return 0, false
}

func (v view) breach(c cell, way direction) bool {
	if c.rim() {
		return false
	}
	wall := c.beside(way)
	if v.floor.grid[wall] != tileWall || wall.rim() {
		return false
	}
	beyond := wall.beside(way)
	return v.reach[beyond] == unreached && v.floor.free(beyond)
}
