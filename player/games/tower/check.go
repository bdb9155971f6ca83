package tower

import "fmt"

// check says whether a loaded state is one that the rules can go on from:
// afterwards no step can leave the grid or the tower.
func (s *state) check() error {
	if s.outcome >= outcomes {
		return fmt.Errorf("%w: no outcome %d", ErrState, s.outcome)
	}
	for level := range s.floors {
		if err := s.checkFloor(level); err != nil {
			return err
		}
	}
	return s.checkHero()
}

func (s *state) checkHero() error {
	h := &s.hero
	if h.level > h.highest || h.highest >= int64(len(s.floors)) {
		return fmt.Errorf("%w: the hero is on floor %d of %d, highest %d", ErrState, h.level, len(s.floors), h.highest)
	}
	if t := s.floor().grid[h.cell]; t != tileGround && t != tileUp && t != tileDown && t != tileCrown {
		return fmt.Errorf("%w: the hero stands on %s", ErrState, t)
	}
	if (h.health == 0) != (s.outcome == fallen) {
		return fmt.Errorf("%w: %s with health %d", ErrState, outcomeNames[s.outcome], h.health)
	}
	return nil
}

func (s *state) checkFloor(level int) error {
	f := &s.floors[level]
	if int(f.entry) >= cells || int(f.exit) >= cells || f.entry == f.exit {
		return fmt.Errorf("%w: floor %d leads from cell %d to %d", ErrState, level, f.entry, f.exit)
	}
	for c, t := range &f.grid {
		if err := s.checkCell(level, cell(c), t); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) checkCell(level int, c cell, t tile) error {
	if !t.known() {
		return fmt.Errorf("%w: floor %d has no tile %d (cell %d)", ErrState, level, t, c)
	}
	if c.rim() && t != tileWall {
		return fmt.Errorf("%w: floor %d is open at cell %d", ErrState, level, c)
	}
	if want, end := s.endTile(level, c); end && t != want || !end && (t == tileUp || t == tileDown || t == tileCrown) {
		return fmt.Errorf("%w: floor %d has %s at cell %d", ErrState, level, t, c)
	}
	return nil
}

// endTile says what must lie on c where it is one of the floor's ends.
func (s *state) endTile(level int, c cell) (tile, bool) {
	f := &s.floors[level]
	switch {
	case c == f.exit && level == len(s.floors)-1:
		return tileCrown, true
	case c == f.exit:
		return tileUp, true
	case c == f.entry && level > 0:
		return tileDown, true
	case c == f.entry:
		return tileGround, true
	}
	return tileGround, false
}
