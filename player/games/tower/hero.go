package tower

// ceiling bounds every number of the hero, so that no sum of a fight can
// overflow, whatever a damaged or forged state holds.
const ceiling = 1_000_000_000

// hero is the climber. Every field is an integer with a name and a limit;
// stats lists them for all that treats them alike.
type hero struct {
	level, cell, facing     int64
	health, attack, defence int64
	gold                    int64
	keys                    [colours]int64
	bag                     [items]int64
	highest                 int64 // the highest floor visited
	purchases               int64 // at shops; each makes the next dearer
	turns, bumps, kills     int64
}

// stat is one field of the hero. Values run from 0 to limit.
type stat struct {
	name  string
	value *int64
	limit int64
}

const statCount = 7 + colours + items + 5

// stats lists the fields in the order of saved states and hashes, which
// must not change.
func (h *hero) stats() [statCount]stat {
	return [statCount]stat{
		{"level", &h.level, maxFloors - 1},
		{"cell", &h.cell, cells - 1},
		{"facing", &h.facing, directions - 1},
		{"health", &h.health, ceiling},
		{"attack", &h.attack, ceiling},
		{"defence", &h.defence, ceiling},
		{"gold", &h.gold, ceiling},
		{"keys.yellow", &h.keys[yellow], ceiling},
		{"keys.blue", &h.keys[blue], ceiling},
		{"keys.red", &h.keys[red], ceiling},
		{"bag.pickaxe", &h.bag[pickaxe], ceiling},
		{"bag.bomb", &h.bag[bomb], ceiling},
		{"bag.scroll", &h.bag[scroll], ceiling},
		{"bag.wings", &h.bag[wings], ceiling},
		{"bag.elixir", &h.bag[elixir], ceiling},
		{"bag.ration", &h.bag[ration], ceiling},
		{"highest", &h.highest, maxFloors - 1},
		{"purchases", &h.purchases, ceiling},
		{"turns", &h.turns, ceiling},
		{"bumps", &h.bumps, ceiling},
		{"kills", &h.kills, ceiling},
	}
}

// gain adds n, not below zero, up to the ceiling.
func gain(value *int64, n int64) {
	*value = min(*value+min(n, ceiling), ceiling)
}

func newHero(entry cell) hero {
	return hero{cell: int64(entry), health: 1000, attack: 12, defence: 10, keys: [colours]int64{yellow: 1}, bag: [items]int64{ration: 1}}
}
