package tower

// maxQueue bounds the moves that wait to be walked. A longer run is walked
// in several pieces, which comes to the same.
const maxQueue = 4096

// plan queues one move; nothing happens before the walk.
func (s *state) plan(d direction) {
	if len(s.queue) == maxQueue {
		s.walk()
	}
	s.queue = append(s.queue, d)
}

// walk carries out every queued move with all that happens on the way.
func (s *state) walk() {
	for _, d := range s.queue {
		s.step(d)
	}
	s.queue = s.queue[:0]
}

// step is one attempt to move. It takes a turn and turns the hero also
// where the way is barred: a replay repeats failed attempts, too.
func (s *state) step(d direction) {
	if s.over() {
		return
	}
	s.turn()
	s.hero.facing = int64(d)
	if !s.clear(s.ahead()) {
		gain(&s.hero.bumps, 1)
		return
	}
	if !s.over() {
		s.enter(s.ahead())
	}
}

func (s *state) turn() { gain(&s.hero.turns, 1) }

// clear makes way on c and says whether the hero can go there; a hero who
// falls in the attempt stays where he is.
func (s *state) clear(c cell) bool {
	here := &s.floor().grid[c]
	if colour, ok := here.door(); ok {
		return s.unlock(here, colour)
	}
	if k, ok := here.monster(); ok {
		return s.attack(here, k)
	}
	return *here <= tileCrown && *here != tileWall || here.treasure()
}

func (s *state) unlock(door *tile, c colour) bool {
	if s.hero.keys[c] == 0 {
		return false
	}
	s.hero.keys[c]--
	*door = tileGround
	return true
}

// attack fights the monster on t to the end.
func (s *state) attack(t *tile, k kind) bool {
	m := k.on(int(s.hero.level))
	f := s.hero.forecast(m)
	if !f.possible {
		return false
	}
	if f.damage >= s.hero.health {
		s.hero.health = 0
		s.outcome = fallen
		return true
	}
	s.hero.health -= f.damage
	gain(&s.hero.gold, m.pay+int64(s.random.below(3)))
	gain(&s.hero.kills, 1)
	*t = tileGround
	return true
}

// enter puts the hero on c and does what the place does.
func (s *state) enter(c cell) {
	s.hero.cell = int64(c)
	switch t := &s.floor().grid[c]; {
	case *t == tileUp:
		s.arrive(s.hero.level+1, false)
	case *t == tileDown:
		s.arrive(s.hero.level-1, true)
	case *t == tileCrown:
		s.outcome = crowned
	case t.treasure():
		s.take(*t)
		*t = tileGround
	}
}

// arrive puts the hero at one end of another floor.
func (s *state) arrive(level int64, descending bool) {
	s.hero.level = level
	s.hero.highest = max(s.hero.highest, level)
	s.hero.cell = int64(s.floor().arrival(descending))
}

// take gives the hero what lies on a cell.
func (s *state) take(t tile) {
	h, g := &s.hero, growth(int(s.hero.level))
	if c, ok := t.key(); ok {
		gain(&h.keys[c], 1)
		return
	}
	if i, ok := t.tool(); ok {
		gain(&h.bag[i], 1)
		return
	}
	switch t {
	case tileRedGem:
		gain(&h.attack, g/10)
	case tileBlueGem:
		gain(&h.defence, g/10)
	case tilePotion:
		gain(&h.health, 10*g)
	case tileBigFlask:
		gain(&h.health, 25*g)
	case tileSword:
		gain(&h.attack, 6*g/10)
	case tileShield:
		gain(&h.defence, 6*g/10)
	}
}
