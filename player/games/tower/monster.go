package tower

// kind is a species of monster; the numbers are part of the tiles and must
// not change.
type kind uint8

// trait is what sets a species apart in a fight.
type trait uint8

const (
	plain trait = 0
	// swift monsters strike before the hero does.
	swift trait = 1
	// twin monsters strike twice a round.
	twin trait = 2
	// piercing monsters take no notice of the hero's defence.
	piercing trait = 3
	// leech monsters first take a tenth of the hero's health.
	leech trait = 4
)

// species gives a kind at the lowest floor; higher floors make it stronger.
type species struct {
	name                        string
	health, attack, armour, pay int64
	trait                       trait
	// from is the lowest floor that the kind lives on.
	from int
}

var bestiary = [...]species{
	0:  {"green slime", 36, 15, 1, 3, plain, 0},
	1:  {"bat", 28, 19, 2, 4, swift, 0},
	2:  {"red slime", 52, 16, 3, 5, plain, 0},
	3:  {"skeleton", 60, 19, 5, 6, plain, 1},
	4:  {"apprentice", 40, 9, 3, 7, piercing, 1},
	5:  {"orc", 80, 21, 4, 8, plain, 2},
	6:  {"twin blade", 58, 17, 6, 9, twin, 3},
	7:  {"stone golem", 34, 23, 9, 9, plain, 3},
	8:  {"vampire", 70, 20, 5, 12, leech, 4},
	9:  {"knight", 88, 24, 7, 13, plain, 5},
	10: {"archmage", 64, 12, 5, 14, piercing, 6},
	11: {"guardian", 200, 25, 7, 100, twin, 0},
}

// guardian bars the way to the crown; no bomb removes it.
const guardian kind = 11

// growth is the worth of things on a floor, and menace the strength of its
// monsters, both in tenths of the lowest floor's. Monsters get ahead, so the
// hero needs more and more of what there is.
func growth(level int) int64 { return 10 + 2*int64(level) }
func menace(level int) int64 { return 10 + 5*int64(level) }

// monster is one opponent as it stands on a floor.
type monster struct {
	health, attack, armour, pay int64
	trait                       trait
}

func (k kind) on(level int) monster {
	s, g := &bestiary[k], menace(level)
	return monster{
		health: s.health * g / 10,
		attack: s.attack * g / 10,
		armour: s.armour * g / 10,
		pay:    s.pay * growth(level) / 10,
		trait:  s.trait,
	}
}
