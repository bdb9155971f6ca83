package tower

import (
	"errors"

	"reprise/player"
)

// errNothing: there is nothing to open in front of the hero.
var errNothing = errors.New("tower: nothing to open here")

// open opens the place that the hero faces.
func (s *state) open(a asker) (player.Result, error) {
	here := &s.floor().grid[s.ahead()]
	switch *here {
	case tileShop:
		return s.trade(a, (*state).wares)
	case tileTrader:
		return s.trade(a, (*state).supplies)
	case tileAltar:
		return s.worship(a, here)
	case tileChest:
		s.unpack()
		*here = tileSpent
		return player.Success, nil
	}
	return player.Ignored, errNothing
}

// offer is one line of a merchant's list; grant hands it over.
type offer struct {
	price int64
	grant func(h *hero)
}

// wares of a shop make the hero stronger; each purchase makes the next one
// dearer.
func (s *state) wares() []offer {
	g := growth(int(s.hero.level))
	price := 20 + 8*s.hero.purchases
	buy := func(value func(*hero) *int64, n int64) offer {
		return offer{price, func(h *hero) {
			gain(value(h), n)
			gain(&h.purchases, 1)
		}}
	}
	return []offer{
		buy(func(h *hero) *int64 { return &h.health }, 20*g),
		buy(func(h *hero) *int64 { return &h.attack }, g/5),
		buy(func(h *hero) *int64 { return &h.defence }, g/5),
	}
}

// supplies of a trader are keys and food.
func (s *state) supplies() []offer {
	g := growth(int(s.hero.level))
	return []offer{
		{g, func(h *hero) { gain(&h.keys[yellow], 1) }},
		{3 * g, func(h *hero) { gain(&h.keys[blue], 1) }},
		{6 * g, func(h *hero) { gain(&h.keys[red], 1) }},
		{2 * g, func(h *hero) { gain(&h.bag[ration], 1) }},
	}
}

// trade sells until the hero leaves, which is the choice after the last
// offer.
func (s *state) trade(a asker, list func(*state) []offer) (player.Result, error) {
	for left := false; !left; {
		offers := list(s)
		result, err := a.ask(CodeChoose, func(choice int64) (player.Result, error) {
			left = choice == int64(len(offers))
			return s.buy(offers, choice)
		})
		if result == player.Failed {
			return result, err
		}
	}
	return player.Success, nil
}

func (s *state) buy(offers []offer, choice int64) (player.Result, error) {
	switch {
	case choice == int64(len(offers)):
		return player.Success, nil
	case choice < 0 || choice > int64(len(offers)):
		return player.Failed, errChoice
	case s.hero.gold < offers[choice].price:
		return player.Ignored, errPrice
	}
	s.hero.gold -= offers[choice].price
	offers[choice].grant(&s.hero)
	return player.Success, nil
}

// What may be done at an altar: answers of "choose".
const (
	altarAttack  = 0
	altarDefence = 1
	altarPray    = 2
	altarLeave   = 3
)

// worship asks once. Every answer but leaving uses the altar up.
func (s *state) worship(a asker, altar *tile) (player.Result, error) {
	return a.ask(CodeChoose, func(choice int64) (player.Result, error) {
		switch choice {
		case altarAttack:
			s.sacrifice(&s.hero.attack)
		case altarDefence:
			s.sacrifice(&s.hero.defence)
		case altarPray:
			s.pray()
		case altarLeave:
			return player.Success, nil
		default:
			return player.Failed, errChoice
		}
		*altar = tileSpent
		return player.Success, nil
	})
}

// sacrifice trades a fifth of the hero's health for strength.
func (s *state) sacrifice(value *int64) {
	s.hero.health -= s.hero.health / 5
	gain(value, 3*growth(int(s.hero.level))/10)
}

// pray leaves it to luck.
func (s *state) pray() {
	g := growth(int(s.hero.level))
	switch s.random.below(4) {
	case 0:
		gain(&s.hero.health, 30*g)
	case 1:
		gain(&s.hero.gold, 4*g)
	case 2:
		gain(&s.hero.attack, g/10)
		gain(&s.hero.defence, g/10)
	case 3:
		s.hero.health -= s.hero.health / 4
	}
}

// unpack takes what luck has put into a chest.
func (s *state) unpack() {
	switch draw := s.random.below(10); {
	case draw < 4:
		gain(&s.hero.gold, 2*growth(int(s.hero.level))+int64(s.random.below(10)))
	case draw < 6:
		gain(&s.hero.keys[yellow+colour(s.random.below(2))], 1)
	default:
		gain(&s.hero.bag[s.random.below(items)], 1)
	}
}
