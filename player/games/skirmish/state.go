package skirmish

// state is everything that decides how a match goes on. What is not in here
// (see Game) is derived from it and may be dropped at any tick's end.
type state struct {
	// seed, mapName and the sides' players are what the match was made
	// from; they never change.
	seed    uint64
	mapName string
	sides   []side

	// tick is the next tick to be simulated.
	tick uint64
	// lastID is the newest id given; ids are never reused.
	lastID uint32
	// cursor is the unit whose request for a route was served last.
	cursor uint32
	random random
	over   bool
	// winner is the winner's seat plus 1; 0 while there is none.
	winner uint8

	// All four are in the order of creation, the first three so by id.
	deposits  []deposit
	buildings []building
	units     []unit
	arrows    []arrow
}

// standing is what has become of a player.
type standing uint8

// These numbers are saved; they must not change.
const (
	playing     standing = 0
	defeated    standing = 1
	surrendered standing = 2
)

func (s standing) String() string {
	switch s {
	case playing:
		return "playing"
	case defeated:
		return "defeated"
	case surrendered:
		return "surrendered"
	}
	return "standing?"
}

// side is one player. Its index is its seat, by which all else names it.
type side struct {
	player     uint64
	standing   standing
	gold, wood int64
}

// deposit is a tile with something to gather.
type deposit struct {
	id   uint32
	x, y uint8
	what resource
	left int32
}

// building stands on three by three tiles around x, y.
type building struct {
	id    uint32
	owner uint8
	kind  kind
	x, y  uint8
	hp    int32
	// built counts up to the kind's ticks; until then it is a site.
	built uint16
	// queue holds what is being trained, trained the ticks spent on the
	// first; slots from queued on are zero.
	queue   [maxQueue]kind
	queued  uint8
	trained uint16
	// rally is where new units go; rallies tells whether there is one.
	rally   point
	rallies bool
}

// order is what a unit was told, or chose, to do.
type order uint8

// These numbers are saved; they must not change.
const (
	idle         order = 0
	moving       order = 1
	attacking    order = 2
	marching     order = 3 // attack-move
	gathering    order = 4
	delivering   order = 5
	constructing order = 6
)

func (o order) String() string {
	switch o {
	case idle:
		return "idle"
	case moving:
		return "move"
	case attacking:
		return "attack"
	case marching:
		return "attack-move"
	case gathering:
		return "gather"
	case delivering:
		return "deliver"
	case constructing:
		return "build"
	}
	return "order?"
}

// unit is one mobile piece.
type unit struct {
	id       uint32
	owner    uint8
	kind     kind
	at       point
	hp       int32
	recharge uint8
	order    order
	// goal is where move and attack-move lead.
	goal point
	// target is what the order is about: a foe, a deposit, a building.
	target uint32
	// foe is the enemy that the unit took on by itself; 0 for none.
	foe uint32
	// cargo and load are what it carries; work is the ticks spent on the
	// next load. An empty-handed worker's cargo is what it gathered last,
	// source the deposit it was from.
	cargo  resource
	load   uint8
	work   uint8
	source uint32
	route  route
}

// route is a unit's way to its destination.
type route struct {
	// tiles are the corners of the way, length of them, next the one that
	// it walks to now; slots from length on are zero.
	tiles        [maxRoute]uint16
	length, next uint8
	// asked: it waits for a search. rest is how long it may not ask.
	asked bool
	rest  uint8
	// nearest is the smallest distance to the next corner so far, stall
	// how many ticks ago that was, tries how many routes led nowhere.
	nearest fixed
	stall   uint8
	tries   uint8
}

// arrow is in the air; it follows its target and vanishes with it.
type arrow struct {
	at     point
	target uint32
	damage int32
}
