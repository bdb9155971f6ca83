package tower

import (
	"strings"
	"testing"

	"reprise/format"
	"reprise/player"
)

// legend draws tiles for tests.
var legend = map[rune]tile{
	'.': tileGround, '@': tileGround, '#': tileWall, '<': tileUp, '>': tileDown, '*': tileCrown,
	'$': tileShop, 't': tileTrader, 'A': tileAltar, 'c': tileChest,
	'1': tileDoor + tile(yellow), '2': tileDoor + tile(blue), '3': tileDoor + tile(red),
	'y': tileKey + tile(yellow), 'b': tileKey + tile(blue),
	'r': tileRedGem, 'd': tileBlueGem, 'p': tilePotion, 'F': tileBigFlask, 'S': tileSword, 'H': tileShield,
	'P': tileTool + tile(pickaxe),
	's': tileMonster, 'G': tileMonster + tile(guardian),
}

// scene makes a tower of two floors whose lower one shows the drawing in
// its upper left corner; the hero, '@', faces right.
func scene(t *testing.T, drawing string) *state {
	t.Helper()
	s := newState(1, 2)
	f := s.floor()
	for c := range cell(cells) {
		f.grid[c] = tileWall
	}
	for y, row := range strings.Fields(drawing) {
		for x, r := range row {
			here, ok := legend[r]
			if !ok {
				t.Fatalf("the legend has no %q", r)
			}
			f.grid[at(x+1, y+1)] = here
			if r == '@' {
				s.hero.cell, f.entry = int64(at(x+1, y+1)), at(x+1, y+1)
			}
			if r == '<' {
				f.exit = at(x+1, y+1)
			}
		}
	}
	s.hero.facing = int64(right)
	s.hero.keys, s.hero.bag = [colours]int64{}, [items]int64{}
	return &s
}

// moves walks a path given as letters: u, d, l, r.
func (s *state) moves(path string) {
	for _, r := range path {
		s.plan(direction(strings.IndexRune("udlr", r)))
	}
	s.walk()
}

// choices answers every question from a list of choices.
func choices(code uint16, list ...int64) *script {
	var s script
	for _, c := range list {
		s.answers = append(s.answers, answer(code, c))
	}
	return &s
}

// mustAct carries out a step that has to come to want.
func mustAct(t *testing.T, s *state, want player.Result, turn Turn) error {
	t.Helper()
	result, err := s.act(turn.Code, turn.Params, &script{answers: turn.Passives})
	if result != want {
		t.Fatalf("code %d: result %d (%v), want %d", turn.Code, result, err, want)
	}
	if (err == nil) != (want == player.Success) {
		t.Fatalf("code %d: result %d with error %v", turn.Code, result, err)
	}
	return err
}

func ints(n ...int64) []format.Value {
	var list []format.Value
	for _, i := range n {
		list = append(list, format.Int(i))
	}
	return list
}
