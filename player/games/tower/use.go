package tower

import (
	"errors"
	"fmt"

	"reprise/player"
)

var (
	// errItem: the parameter of "use" is no item of this game.
	errItem = errors.New("tower: no such item")
	// errLacking: the bag has none of the item.
	errLacking = errors.New("tower: the bag has none of it")
	// errTarget: the item can do nothing to what the hero faces.
	errTarget = errors.New("tower: it cannot be used on what is ahead")
)

// use uses one item of the bag. It is gone afterwards, except where it had
// no effect.
func (s *state) use(number int64, a asker) (player.Result, error) {
	if number < 0 || number >= items {
		return player.Failed, fmt.Errorf("%w: %d", errItem, number)
	}
	i := item(number)
	if s.hero.bag[i] == 0 {
		return player.Ignored, fmt.Errorf("%w: %s", errLacking, itemNames[i])
	}
	result, err := s.apply(i, a)
	if result == player.Success {
		s.hero.bag[i]--
	}
	return result, err
}

func (s *state) apply(i item, a asker) (player.Result, error) {
	switch i {
	case pickaxe:
		return s.dig()
	case bomb:
		return s.blast()
	case wings:
		return s.fly(a)
	case scroll:
		s.hero.cell = int64(s.floor().entry)
	case elixir:
		gain(&s.hero.health, 10*(s.hero.attack+s.hero.defence))
	case ration:
		s.eat()
	}
	return player.Success, nil
}

func (s *state) dig() (player.Result, error) {
	c := s.ahead()
	if here := &s.floor().grid[c]; *here == tileWall && !c.rim() {
		*here = tileGround
		return player.Success, nil
	}
	return player.Ignored, errTarget
}

func (s *state) blast() (player.Result, error) {
	here := &s.floor().grid[s.ahead()]
	if k, ok := here.monster(); ok && k != guardian {
		*here = tileGround
		return player.Success, nil
	}
	return player.Ignored, errTarget
}

// fly asks for the floor to go to, the lowest being 0.
func (s *state) fly(a asker) (player.Result, error) {
	return a.ask(CodeDestination, func(level int64) (player.Result, error) {
		if level < 0 || level > s.hero.highest {
			return player.Failed, errChoice
		}
		s.arrive(level, false)
		return player.Success, nil
	})
}

// eat restores some health by a ration outside a rest: half of what a rest
// gives, without its danger.
func (s *state) eat() {
	gain(&s.hero.health, 8*growth(int(s.hero.level)))
}

// rest sleeps at the price of a ration. It restores health, more or less;
// now and then a thief comes by.
func (s *state) rest() (player.Result, error) {
	if s.hero.bag[ration] == 0 {
		return player.Ignored, fmt.Errorf("%w: %s", errLacking, itemNames[ration])
	}
	s.hero.bag[ration]--
	gain(&s.hero.health, 14*growth(int(s.hero.level))+int64(s.random.below(50)))
	if s.random.percent(25) {
		s.hero.gold -= s.hero.gold / 8
	}
	return player.Success, nil
}

// surrender ends the game by the player's will.
func (s *state) surrender() (player.Result, error) {
	s.outcome = surrendered
	return player.Success, nil
}
