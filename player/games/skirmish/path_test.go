package skirmish

import (
	"math/rand/v2"
	"testing"
)

// cheapest finds the cost of the cheapest way into goal by relaxing every
// tile until nothing changes; -1 where there is no way.
func cheapest(b *board, start spot, goal area) int {
	const none = 1 << 30
	cost := make([]int, len(b.tiles))
	for i := range cost {
		cost[i] = none
	}
	cost[b.index(start.x, start.y)] = 0
	for changed := true; changed; {
		changed = false
		for i := range cost {
			s := b.spot(i)
			if cost[i] == none {
				continue
			}
			for dy := -1; dy <= 1; dy++ {
				for dx := -1; dx <= 1; dx++ {
					if !b.free(s.x+dx, s.y+dy) {
						continue
					}
					step := straight
					if dx != 0 && dy != 0 {
						if !b.free(s.x+dx, s.y) || !b.free(s.x, s.y+dy) {
							continue
						}
						step = diagonal
					}
					if j := b.index(s.x+dx, s.y+dy); cost[i]+step < cost[j] {
						cost[j] = cost[i] + step
						changed = true
					}
				}
			}
		}
	}
	best := none
	for i, c := range cost {
		if goal.holds(b.spot(i)) {
			best = min(best, c)
		}
	}
	if best == none {
		return -1
	}
	return best
}

// walkCost is the cost of a trail, which must be a walk over free tiles.
func walkCost(t *testing.T, b *board, start spot, trail []spot) int {
	t.Helper()
	cost, at := 0, start
	for _, s := range trail {
		dx, dy := s.x-at.x, s.y-at.y
		if abs(dx) > 1 || abs(dy) > 1 || !b.free(s.x, s.y) {
			t.Fatalf("the trail steps from %v to %v", at, s)
		}
		if dx != 0 && dy != 0 {
			if !b.free(at.x+dx, at.y) || !b.free(at.x, at.y+dy) {
				t.Fatalf("the trail cuts the corner from %v to %v", at, s)
			}
			cost += diagonal
		} else {
			cost += straight
		}
		at = s
	}
	return cost
}

func TestSearchIsCheapest(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var f finder
	ways, walls := 0, 0
	for range 400 {
		b := scatterBoard(r, 14, 10+r.IntN(35))
		start := spot{r.IntN(14), r.IntN(14)}
		b.set(start, open)
		goal := around(spot{r.IntN(14), r.IntN(14)}, r.IntN(2))
		f.search(&b, start, goal)
		got := walkCost(t, &b, start, f.trail)
		end := start
		if len(f.trail) > 0 {
			end = f.trail[len(f.trail)-1]
		}
		want := cheapest(&b, start, goal)
		switch {
		case want < 0 && goal.holds(end):
			t.Fatalf("a way from %v to %v where there is none", start, goal)
		case want < 0:
			walls++
		case !goal.holds(end) || got != want:
			t.Fatalf("from %v to %v: cost %d to %v, want %d", start, goal, got, end, want)
		default:
			ways++
		}
	}
	if ways < 100 || walls < 50 {
		t.Errorf("%d ways and %d walls prove little", ways, walls)
	}
}

func TestSearchEffortIsBounded(t *testing.T) {
	b := newBoard(maxSize)
	for y := range maxSize - 1 {
		b.set(spot{maxSize - 2, y}, rocky)
	}
	b.set(spot{maxSize - 2, maxSize - 1}, rocky)
	var f finder
	f.search(&b, spot{0, 0}, around(spot{maxSize - 1, 0}, 0))
	if f.effort != searchMost {
		t.Errorf("effort %d, want the limit %d", f.effort, searchMost)
	}
	if end := f.trail[len(f.trail)-1]; end.x < maxSize/2 {
		t.Errorf("the trail ends at %v, far from the goal", end)
	}
}

func TestSearchSurvivesTurnOverflow(t *testing.T) {
	b := newBoard(minSize)
	var f finder
	f.search(&b, spot{1, 1}, around(spot{9, 9}, 0))
	f.turn = 1<<32 - 2
	for range 3 {
		f.search(&b, spot{1, 1}, around(spot{9, 9}, 0))
		if len(f.trail) != 8 {
			t.Fatalf("turn %d: a trail of %d tiles, want 8", f.turn, len(f.trail))
		}
	}
}

func TestCornersAreStraightWalks(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	var f finder
	full := 0
	for range 300 {
		b := scatterBoard(r, 40, 30)
		start := spot{r.IntN(40), r.IntN(40)}
		b.set(start, open)
		f.search(&b, start, around(spot{r.IntN(40), r.IntN(40)}, 1))
		var tiles [maxRoute]uint16
		n := b.corners(&tiles, start, f.trail)
		at := start
		for _, tile := range tiles[:n] {
			if !b.clear(at, b.spot(int(tile))) {
				t.Fatalf("the walk from %v to %v is not clear", at, b.spot(int(tile)))
			}
			at = b.spot(int(tile))
		}
		if n == maxRoute {
			full++
		} else if len(f.trail) > 0 && at != f.trail[len(f.trail)-1] {
			t.Fatalf("the corners end at %v, the trail at %v", at, f.trail[len(f.trail)-1])
		}
	}
	if full == 0 {
		t.Error("no route was longer than fits")
	}
}
