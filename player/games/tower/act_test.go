package tower

import (
	"errors"
	"testing"

	"reprise/format"
	"reprise/player"
)

func choose(list ...int64) []Answer { return choices(CodeChoose, list...).answers }

func open(list ...int64) Turn { return Turn{Code: CodeOpen, Passives: choose(list...)} }

func TestRefusals(t *testing.T) {
	fly := func(level int64) Turn { return useOf(wings, answer(CodeDestination, level)) }
	tests := []struct {
		name, drawing string
		turn          Turn
		want          player.Result
		err           error
	}{
		{"nothing to open", "@.", open(), player.Ignored, errNothing},
		{"shop without an answer", "@$", open(), player.Failed, errAnswer},
		{"shop that is never left", "@$", open(0), player.Failed, errAnswer},
		{"shop, choice too high", "@$", open(4), player.Failed, errChoice},
		{"shop, choice below zero", "@$", open(-1), player.Failed, errChoice},
		{"shop, wrong kind of answer", "@$", Turn{Code: CodeOpen, Passives: []Answer{answer(CodeDestination, 3)}}, player.Failed, errAnswer},
		{"shop, answer without parameter", "@$", Turn{Code: CodeOpen, Passives: []Answer{{Code: CodeChoose}}}, player.Failed, errParams},
		{"altar, choice too high", "@A", open(4), player.Failed, errChoice},
		{"altar without an answer", "@A", open(), player.Failed, errAnswer},
		{"no such item", "@.", useOf(items), player.Failed, errItem},
		{"item below zero", "@.", Turn{Code: CodeUse, Params: ints(-1)}, player.Failed, errItem},
		{"use without parameter", "@.", Turn{Code: CodeUse}, player.Failed, errParams},
		{"use with two", "@.", Turn{Code: CodeUse, Params: ints(1, 2)}, player.Failed, errParams},
		{"use with a string", "@.", Turn{Code: CodeUse, Params: []format.Value{format.String("1")}}, player.Failed, errParams},
		{"use with 2^63", "@.", Turn{Code: CodeUse, Params: []format.Value{format.Uint(1 << 63)}}, player.Failed, errParams},
		{"pickaxe on ground", "@.", useOf(pickaxe), player.Ignored, errTarget},
		{"bomb on ground", "@.", useOf(bomb), player.Ignored, errTarget},
		{"bomb on the guardian", "@G", useOf(bomb), player.Ignored, errTarget},
		{"wings without an answer", "@.", useOf(wings), player.Failed, errAnswer},
		{"wings to a floor not visited", "@.", fly(1), player.Failed, errChoice},
		{"wings below the tower", "@.", fly(-1), player.Failed, errChoice},
		{"unknown code", "@.", Turn{Code: 99}, player.Failed, errCode},
		{"passive code as active", "@.", Turn{Code: CodeChoose, Params: ints(0)}, player.Failed, errCode},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := scene(t, test.drawing)
			s.hero.gold = 100
			s.hero.bag = [items]int64{1, 1, 1, 1, 1, 1}
			bag, grid := s.hero.bag, s.floor().grid
			if err := mustAct(t, s, test.want, test.turn); !errors.Is(err, test.err) {
				t.Errorf("the reason is %v, want %v", err, test.err)
			}
			if s.hero.bag != bag || s.floor().grid != grid {
				t.Error("a step without effect changed the bag or the floor")
			}
		})
	}
}

func TestLackingItemsAreIgnored(t *testing.T) {
	s := scene(t, "@#")
	for i := range item(items) {
		if err := mustAct(t, s, player.Ignored, useOf(i)); !errors.Is(err, errLacking) {
			t.Errorf("%s: %v", itemNames[i], err)
		}
	}
	if err := mustAct(t, s, player.Ignored, Turn{Code: CodeRest}); !errors.Is(err, errLacking) {
		t.Errorf("rest: %v", err)
	}
	s.expect(t, at(1, 1), map[string]int64{"turns": items + 1})
}

func TestShop(t *testing.T) {
	s := scene(t, "@$")
	s.hero.gold = 20 + 28 + 36
	// Health, attack, defence at rising prices; the fourth is too dear.
	mustAct(t, s, player.Success, open(0, 1, 2, 1, 3))
	s.expect(t, at(1, 1), map[string]int64{"gold": 0, "health": 1200, "attack": 14, "defence": 12, "purchases": 3, "turns": 1})
}

func TestShopStopsAtLeaving(t *testing.T) {
	s := scene(t, "@$")
	s.hero.gold = 500
	left := choices(CodeChoose, 3, 1)
	if result, err := s.act(CodeOpen, nil, left); result != player.Success || err != nil {
		t.Fatal(result, err)
	}
	if len(left.answers) != 1 || s.hero.purchases != 0 {
		t.Errorf("%d answers are left, %d bought", len(left.answers), s.hero.purchases)
	}
}

func TestTrader(t *testing.T) {
	s := scene(t, "@t")
	s.hero.gold = 10 + 30 + 60 + 20 + 5
	mustAct(t, s, player.Success, open(0, 1, 2, 3, 4))
	s.expect(t, at(1, 1), map[string]int64{"gold": 5, "keys.yellow": 1, "keys.blue": 1, "keys.red": 1, "bag.ration": 1, "purchases": 0})
}

func TestAltar(t *testing.T) {
	for choice, want := range []map[string]int64{
		{"health": 800, "attack": 15, "defence": 10},
		{"health": 800, "attack": 12, "defence": 13},
	} {
		s := scene(t, "@A")
		mustAct(t, s, player.Success, open(int64(choice)))
		s.expect(t, at(1, 1), want)
		if here := s.floor().grid[at(2, 1)]; here != tileSpent {
			t.Errorf("the altar became %s", here)
		}
		mustAct(t, s, player.Ignored, open())
	}
	s := scene(t, "@A")
	mustAct(t, s, player.Success, open(altarLeave))
	if here := s.floor().grid[at(2, 1)]; here != tileAltar {
		t.Errorf("an altar that was left became %s", here)
	}
}

// Luck must draw from the state's generator, or replays would not repeat it.
func TestLuckMovesTheGenerator(t *testing.T) {
	for name, act := range map[string]func(s *state) error{
		"prayer": func(s *state) error { return mustAct(t, s, player.Success, open(altarPray)) },
		"rest":   func(s *state) error { return mustAct(t, s, player.Success, Turn{Code: CodeRest}) },
	} {
		s := scene(t, "@A")
		s.hero.bag[ration] = 1
		before := s.random
		act(s)
		if s.random == before {
			t.Errorf("%s drew nothing", name)
		}
	}
	s := scene(t, "@c")
	before := s.random
	mustAct(t, s, player.Success, open())
	if s.random == before || s.floor().grid[at(2, 1)] != tileSpent {
		t.Error("the chest drew nothing or stayed")
	}
}

func TestTools(t *testing.T) {
	tests := []struct {
		name, drawing string
		turn          Turn
		check         func(s *state) bool
	}{
		{"pickaxe", "@#.", useOf(pickaxe), func(s *state) bool { return s.floor().grid[at(2, 1)] == tileGround }},
		{"bomb", "@s.", useOf(bomb), func(s *state) bool { return s.floor().grid[at(2, 1)] == tileGround && s.hero.gold == 0 }},
		{"scroll", "..@", useOf(scroll), func(s *state) bool { return s.hero.cell == int64(at(1, 1)) }},
		{"wings", "@.<", useOf(wings, answer(CodeDestination, 1)), func(s *state) bool { return s.hero.level == 1 && s.hero.cell == int64(s.floors[1].entry) }},
		{"elixir", "@.", useOf(elixir), func(s *state) bool { return s.hero.health == 1000+10*(12+10) }},
		{"ration", "@.", useOf(ration), func(s *state) bool { return s.hero.health == 1080 }},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := scene(t, test.drawing)
			s.hero.bag[i], s.hero.highest = 2, 1
			s.floor().entry = at(1, 1)
			mustAct(t, s, player.Success, test.turn)
			if !test.check(s) {
				t.Error("it did not do what it should")
			}
			if s.hero.bag[i] != 1 {
				t.Errorf("%d are left of 2", s.hero.bag[i])
			}
		})
	}
}

func TestPickaxeSparesTheOuterWall(t *testing.T) {
	s := scene(t, "@.")
	s.hero.bag[pickaxe] = 1
	s.hero.facing = int64(up)
	if err := mustAct(t, s, player.Ignored, useOf(pickaxe)); !errors.Is(err, errTarget) {
		t.Error(err)
	}
}

func TestNothingHappensAfterTheEnd(t *testing.T) {
	s := scene(t, "@.")
	mustAct(t, s, player.Success, Turn{Code: CodeSurrender})
	before := s.save(nil)
	for _, turn := range []Turn{move(right), useOf(ration), open(), {Code: CodeRest}, {Code: CodeSurrender}, {Code: 99}} {
		if err := mustAct(t, s, player.Ignored, turn); !errors.Is(err, errOver) {
			t.Error(err)
		}
	}
	if string(s.save(nil)) != string(before) {
		t.Error("the state changed after the end")
	}
}
