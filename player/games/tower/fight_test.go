package tower

import "testing"

// exchange fights blow by blow, as the rules are told to a player.
func exchange(h hero, m monster) (fight, int64) {
	start := h.health
	strike := func() {
		times := 1
		if m.trait == twin {
			times = 2
		}
		for range times {
			if m.trait == piercing {
				h.health -= m.attack
			} else if m.attack > h.defence {
				h.health -= m.attack - h.defence
			}
		}
	}
	if m.trait == leech {
		h.health -= h.health / 10
	}
	if m.trait == swift {
		strike()
	}
	rounds := int64(0)
	for {
		rounds++
		m.health -= h.attack - m.armour
		if m.health <= 0 {
			return fight{possible: true, rounds: rounds, damage: start - h.health}, h.health
		}
		strike()
	}
}

func TestForecastEqualsExchange(t *testing.T) {
	r := random(7)
	possible := 0
	for range 20000 {
		k := kind(r.below(len(bestiary)))
		m := k.on(r.below(maxFloors))
		h := hero{health: int64(1 + r.below(5000)), attack: int64(r.below(400)), defence: int64(r.below(400))}
		got := h.forecast(m)
		if h.attack <= m.armour {
			if got.possible {
				t.Fatalf("%+v cannot scratch %+v", h, m)
			}
			continue
		}
		possible++
		if want, _ := exchange(h, m); got != want {
			t.Fatalf("hero %+v, %s %+v: forecast %+v, exchange %+v", h, bestiary[k].name, m, got, want)
		}
	}
	if possible < 5000 {
		t.Fatalf("only %d fights were possible", possible)
	}
}

func TestForecastCannotOverflow(t *testing.T) {
	for k := range bestiary {
		m := kind(k).on(maxFloors - 1)
		for _, h := range []hero{
			{health: ceiling, attack: m.armour + 1},
			{health: ceiling, attack: ceiling, defence: ceiling},
		} {
			if f := h.forecast(m); !f.possible || f.damage < 0 || f.damage > ceiling {
				t.Errorf("%s: %+v", bestiary[k].name, f)
			}
		}
	}
}
