package tower

import (
	"reflect"
	"testing"
)

// flood gives what can be reached from start where doors and monsters are
// no hindrance, but places are, and stairs and crown cannot be crossed.
func flood(f *floor, start cell) map[cell]bool {
	seen := map[cell]bool{start: true}
	for todo := []cell{start}; len(todo) > 0; {
		c := todo[0]
		todo = todo[1:]
		for d := range direction(directions) {
			next := c.beside(d)
			t := f.grid[next]
			if seen[next] || t == tileWall {
				continue
			}
			seen[next] = true
			if !t.place() && next != f.entry && next != f.exit {
				todo = append(todo, next)
			}
		}
	}
	return seen
}

func TestEveryFloorIsWhole(t *testing.T) {
	places, doors := 0, 0
	for seed := range uint64(300) {
		s := newState(seed, 12)
		for level := range s.floors {
			f := &s.floors[level]
			fromBelow, fromAbove := flood(f, f.entry), flood(f, f.exit)
			for c, here := range &f.grid {
				if here != tileWall && !(fromBelow[cell(c)] && fromAbove[cell(c)]) {
					t.Fatalf("seed %d, floor %d: %s at %s cannot be reached", seed, level, here, cell(c))
				}
				if here.place() {
					places++
				}
			}
			doors += checkKeys(t, f, seed, level)
		}
		if err := s.check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if places < 3000 || doors < 3000 {
		t.Errorf("%d places and %d doors in 3600 floors", places, doors)
	}
}

// checkKeys finds no door without a key of its colour on the same floor.
func checkKeys(t *testing.T, f *floor, seed uint64, level int) int {
	t.Helper()
	var doors, keys [colours]int
	for _, here := range &f.grid {
		if c, ok := here.door(); ok {
			doors[c]++
		}
		if c, ok := here.key(); ok {
			keys[c]++
		}
	}
	for c := range doors {
		if keys[c] < doors[c] {
			t.Fatalf("seed %d, floor %d: %d %s doors and %d keys", seed, level, doors[c], colourNames[c], keys[c])
		}
	}
	return doors[yellow] + doors[blue] + doors[red]
}

func TestFloorsJoin(t *testing.T) {
	s := newState(42, 20)
	for level := 1; level < len(s.floors); level++ {
		below, f := &s.floors[level-1], &s.floors[level]
		if f.entry != below.exit || below.grid[below.exit] != tileUp || f.grid[f.entry] != tileDown {
			t.Errorf("floor %d begins at %s, the one below ends at %s", level, f.entry, below.exit)
		}
	}
	top := &s.floors[len(s.floors)-1]
	if top.grid[top.exit] != tileCrown {
		t.Errorf("the top floor ends in %s", top.grid[top.exit])
	}
}

func TestSeedsDiffer(t *testing.T) {
	a, b, again := newState(1, 5), newState(2, 5), newState(1, 5)
	if !reflect.DeepEqual(a, again) {
		t.Error("one seed gave two towers")
	}
	if reflect.DeepEqual(a.floors, b.floors) {
		t.Error("two seeds gave one tower")
	}
}

// A taller tower has the same lower floors, but for the one that was its
// top.
func TestHeightChangesNothingBelow(t *testing.T) {
	low, high := newState(9, 5), newState(9, 12)
	if !reflect.DeepEqual(low.floors[:4], high.floors[:4]) {
		t.Error("the lower floors differ")
	}
}

func TestMapNames(t *testing.T) {
	for name, floors := range map[string]int{"tower-2": 2, "tower-10": 10, "tower-60": 60} {
		if n, err := parseMap(name); err != nil || n != floors {
			t.Errorf("%q: %d floors, %v", name, n, err)
		}
	}
	for _, name := range []string{"", "tower", "tower-", "tower-1", "tower-61", "tower-010", "tower-+5", "tower- 5", "Tower-5", "tower-5x", "plain-5", "tower--5", "tower-99999999999999999999"} {
		if n, err := parseMap(name); err == nil {
			t.Errorf("%q stands for %d floors", name, n)
		}
	}
}
