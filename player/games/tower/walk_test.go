package tower

import (
	"reflect"
	"testing"
)

func TestWalk(t *testing.T) {
	tests := []struct {
		name, drawing, path string
		check               func(t *testing.T, s *state)
	}{
		{"a wall stops and counts", "@#", "r", func(t *testing.T, s *state) {
			s.expect(t, at(1, 1), map[string]int64{"turns": 1, "bumps": 1, "facing": int64(right)})
		}},
		{"a run goes on after a bump", "@.. ###", "rdr", func(t *testing.T, s *state) {
			s.expect(t, at(3, 1), map[string]int64{"turns": 3, "bumps": 1})
		}},
		{"a door without key", "@1.", "rr", func(t *testing.T, s *state) {
			s.expect(t, at(1, 1), map[string]int64{"bumps": 2})
		}},
		{"a key opens one door", "@y1.1", "rrrr", func(t *testing.T, s *state) {
			s.expect(t, at(4, 1), map[string]int64{"bumps": 1, "keys.yellow": 0})
		}},
		{"a key of another colour", "@b1", "rr", func(t *testing.T, s *state) {
			s.expect(t, at(2, 1), map[string]int64{"bumps": 1, "keys.blue": 1})
		}},
		{"treasures act at once", "@rdpFSHP", "rrrrrrr", func(t *testing.T, s *state) {
			s.expect(t, at(8, 1), map[string]int64{"attack": 12 + 1 + 6, "defence": 10 + 1 + 6, "health": 1000 + 100 + 250, "bag.pickaxe": 1})
		}},
		{"a monster falls", "@s.", "rr", func(t *testing.T, s *state) {
			// Slime: health 36, attack 15, armour 1; 4 rounds of 11, 3 blows of 5.
			s.expect(t, at(3, 1), map[string]int64{"health": 1000 - 15, "kills": 1})
			if pay := s.hero.gold; pay < 3 || pay > 5 {
				t.Errorf("a slime paid %d gold, want 3 to 5", pay)
			}
		}},
		{"stairs up lead to the entry", "@<", "r", func(t *testing.T, s *state) {
			s.expect(t, s.floors[1].entry, map[string]int64{"level": 1, "highest": 1})
		}},
		{"a place bars the way", "@$", "r", func(t *testing.T, s *state) {
			s.expect(t, at(1, 1), map[string]int64{"bumps": 1})
		}},
		{"the crown ends the game", "@*.", "rrr", func(t *testing.T, s *state) {
			s.expect(t, at(2, 1), map[string]int64{"turns": 1})
			if s.outcome != crowned {
				t.Errorf("outcome %s", outcomeNames[s.outcome])
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := scene(t, test.drawing)
			s.moves(test.path)
			test.check(t, s)
		})
	}
}

// expect compares the hero's cell and some of his numbers.
func (s *state) expect(t *testing.T, c cell, want map[string]int64) {
	t.Helper()
	if cell(s.hero.cell) != c {
		t.Errorf("the hero is at %s, want %s", cell(s.hero.cell), c)
	}
	seen := 0
	for _, f := range s.hero.stats() {
		if n, ok := want[f.name]; ok {
			seen++
			if n != *f.value {
				t.Errorf("%s is %d, want %d", f.name, *f.value, n)
			}
		}
	}
	if seen != len(want) {
		t.Errorf("some of %v are no numbers of the hero", want)
	}
}

func TestLostFightEndsTheGame(t *testing.T) {
	s := scene(t, "@s.")
	s.hero.health = 15
	s.moves("rrr")
	s.expect(t, at(1, 1), map[string]int64{"health": 0, "turns": 1, "kills": 0})
	if s.outcome != fallen || s.floor().grid[at(2, 1)] != tileMonster {
		t.Errorf("outcome %s, the monster became %s", outcomeNames[s.outcome], s.floor().grid[at(2, 1)])
	}
}

func TestStairsDownLeadToTheExit(t *testing.T) {
	s := scene(t, "@<")
	s.moves("r")
	below, here := s.floors[0].exit, cell(s.hero.cell)
	for d := range direction(directions) {
		if s.floor().grid[here.beside(d)] == tileGround {
			s.plan(d)
			s.plan(d ^ 1)
			s.walk()
			s.expect(t, below, map[string]int64{"level": 0, "highest": 1})
			return
		}
	}
	t.Fatal("the entry of floor 1 has no free neighbour")
}

// A run that is walked as a whole must come to the same as one walked move
// by move, whatever happens on the way.
func TestQueuedRunEqualsSingleMoves(t *testing.T) {
	for seed := range uint64(200) {
		whole, single := newState(seed, 3), newState(seed, 3)
		mind := random(seed)
		for range 60 {
			d := direction(mind.below(directions))
			for range 1 + mind.below(8) {
				whole.plan(d)
				single.plan(d)
				single.walk()
			}
			whole.walk()
		}
		if !reflect.DeepEqual(whole.dump(), single.dump()) {
			t.Fatalf("seed %d: the states differ", seed)
		}
	}
}

func TestLongRunIsWalkedInPieces(t *testing.T) {
	s := scene(t, "@.")
	for range maxQueue + 7 {
		s.plan(right)
	}
	if len(s.queue) != 7 {
		t.Errorf("%d moves wait, want 7", len(s.queue))
	}
	s.walk()
	s.expect(t, at(2, 1), map[string]int64{"turns": maxQueue + 7, "bumps": maxQueue + 6})
}
