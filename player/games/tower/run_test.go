package tower

import (
	"testing"

	"reprise/format"
)

// Hashes come for the last turn of every run of moves and for every other
// turn, each once, in order, and not before the turn is settled.
func TestRunSettles(t *testing.T) {
	r, err := NewRun(11, "tower-5")
	if err != nil {
		t.Fatal(err)
	}
	var codes []uint16
	known := map[format.Tick]int{}
	last := format.Tick(0)
	for {
		turn, settled, ok := r.Next()
		if ok {
			codes = append(codes, turn.Code)
		}
		for _, s := range settled {
			if len(known) > 0 && s.Tick <= last || len(s.Hash) != hashBytes {
				t.Fatalf("tick %d with %d bytes came after tick %d", s.Tick, len(s.Hash), last)
			}
			last = s.Tick
			known[s.Tick] = len(codes)
		}
		if !ok {
			break
		}
	}
	for i, code := range codes {
		_, moved := isMove(code)
		end := i+1 == len(codes) || codes[i+1] != code
		came, ok := known[format.Tick(i)]
		if want := !moved || end; ok != want {
			t.Errorf("tick %d: hash %v, want %v", i, ok, want)
		}
		if ok && moved && i+1 < len(codes) && came != i+2 {
			t.Errorf("tick %d: its hash came with turn %d", i, came-1)
		}
	}
	if _, settled, ok := r.Next(); ok || settled != nil {
		t.Error("the game went on after its end")
	}
}

func TestRunNeedsATower(t *testing.T) {
	if _, err := NewRun(1, "skirmish-64"); err == nil {
		t.Error("a game began on a map that is no tower")
	}
}

// The climber must be worth watching: games end in every way, long ones are
// long, and nothing lasts for ever.
func TestClimberPlaysPlausibly(t *testing.T) {
	outcomes, moves, merged, bumps := map[string]int{}, 0, 0, int64(0)
	for seed := range uint64(60) {
		r, err := NewRun(seed, "tower-10")
		if err != nil {
			t.Fatal(err)
		}
		before := uint16(0)
		for {
			turn, _, ok := r.Next()
			if !ok {
				break
			}
			if _, moved := isMove(turn.Code); moved {
				moves++
				if turn.Code == before {
					merged++
				}
			}
			before = turn.Code
		}
		outcomes[r.Outcome()]++
		bumps += r.state.hero.bumps
		if r.next > 10*patience+1 {
			t.Errorf("seed %d took %d turns", seed, r.next)
		}
	}
	if outcomes["crowned"] < 20 || outcomes["fallen"] < 5 || outcomes["climbing"] > 0 {
		t.Errorf("the games ended %v", outcomes)
	}
	if moves < 60*400 || merged < moves/3 || bumps < 60 {
		t.Errorf("%d moves, %d of them repeated, %d bumps", moves, merged, bumps)
	}
}
