package skirmish

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

func TestUnknownMaps(t *testing.T) {
	for _, name := range []string{"", "plains", "plains-", "plains-63", "plains-201", "plains-0100", "plains-+100", "plains-1e2",
		"plains-100 ", "Plains-100", "sea-100", "-100", "plains-99999999999999999999", "plains-100-100"} {
		_, err := NewMatch(1, 2, name)
		if !errors.Is(err, ErrUnknownMap) {
			t.Errorf("map %q: %v, want ErrUnknownMap", name, err)
		}
	}
}

func TestLayouts(t *testing.T) {
	for _, style := range styles {
		for _, size := range []int{minSize, 100, 147, maxSize} {
			for _, players := range []int{minPlayers, 3, maxPlayers} {
				name := fmt.Sprintf("%s-%d", style.name, size)
				t.Run(fmt.Sprintf("%s/%d", name, players), func(t *testing.T) {
					checkLayout(t, uint64(size+players), name, players)
				})
			}
		}
	}
}

func checkLayout(t *testing.T, seed uint64, name string, players int) {
	l, err := draw(seed, name, players)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := draw(seed, name, players)
	if !reflect.DeepEqual(l, again) {
		t.Fatal("two drawings of one map differ")
	}
	other, _ := draw(seed+1, name, players)
	if l.sum == other.sum {
		t.Error("another seed gives the same ground")
	}
	checkConnected(t, &l.board)
	for i, s := range l.starts {
		if !l.board.allFree(s, 4) {
			t.Errorf("start %v is not clear", s)
		}
		for _, o := range l.starts[:i] {
			if abs(s.x-o.x)+abs(s.y-o.y) < 15 {
				t.Errorf("starts %v and %v are too close", s, o)
			}
		}
		near := map[resource]int{}
		for i := range l.deposits {
			if around(s, 8).holds(l.deposits[i].spot()) {
				near[l.deposits[i].what]++
			}
		}
		if near[gold] < 3 || near[wood] < 8 {
			t.Errorf("start %v has %v near it", s, near)
		}
	}
	for i := range l.deposits {
		l.board.set(l.deposits[i].spot(), mined)
	}
	checkConnected(t, &l.board)
}

// scatterBoard is a small board with random rocks.
func scatterBoard(r *rand.Rand, size, percent int) board {
	b := newBoard(size)
	for i := range b.tiles {
		if r.IntN(100) < percent {
			b.tiles[i] = rocky
		}
	}
	return b
}

func TestFreeNearIsNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		b := scatterBoard(r, 12, 90)
		from := spot{r.IntN(12), r.IntN(12)}
		best := 1 << 20
		for i, g := range b.tiles {
			if s := b.spot(i); g == open {
				best = min(best, max(abs(s.x-from.x), abs(s.y-from.y)))
			}
		}
		got, ok := b.freeNear(from)
		if ok != (best < 1<<20) {
			t.Fatalf("found is %v with the nearest free tile %d away", ok, best)
		}
		if ok && (!b.free(got.x, got.y) || max(abs(got.x-from.x), abs(got.y-from.y)) != best) {
			t.Fatalf("from %v: %v, want a free tile %d away", from, got, best)
		}
	}
}

// TestClearAgainstGeometry compares with an exact test of every tile: a line
// between middles touches a tile if the tile's four corners are not all
// strictly on one side of it.
func TestClearAgainstGeometry(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	outcomes := map[bool]int{}
	for range 3000 {
		b := scatterBoard(r, 12, 8)
		from, to := spot{r.IntN(12), r.IntN(12)}, spot{r.IntN(12), r.IntN(12)}
		want := true
		for i, g := range b.tiles {
			s := b.spot(i)
			if g != open && s != from && touches(from, to, s) {
				want = false
			}
		}
		if got := b.clear(from, to); got != want {
			t.Fatalf("from %v to %v: %v, want %v", from, to, got, want)
		}
		outcomes[want]++
	}
	if outcomes[true] < 500 || outcomes[false] < 500 {
		t.Errorf("outcomes %v prove little", outcomes)
	}
}

func touches(from, to, s spot) bool {
	if s.x < min(from.x, to.x) || s.x > max(from.x, to.x) || s.y < min(from.y, to.y) || s.y > max(from.y, to.y) {
		return false
	}
	left, right, on := 0, 0, 0
	for _, c := range [...]spot{{-1, -1}, {1, -1}, {-1, 1}, {1, 1}} { // in half tiles from the middle
		side := (to.x-from.x)*(2*(s.y-from.y)+c.y) - (to.y-from.y)*(2*(s.x-from.x)+c.x)
		switch {
		case side > 0:
			left++
		case side < 0:
			right++
		default:
			on++
		}
	}
	return left > 0 && right > 0 || on > 0
}
