package skirmish

// kind names what a unit or a building is. A unit's kind is the number a
// train command carries; a building's is that of a build command plus 16.
type kind uint8

// These numbers are recorded and saved; they must not change.
const (
	worker  kind = 1
	soldier kind = 2
	archer  kind = 3
	cavalry kind = 4

	hall     kind = 17
	barracks kind = 18
	archery  kind = 19
	stable   kind = 20
)

// buildingBase is the kind of a building less its number in a command.
const buildingBase = 16

// resource names what a deposit holds and a worker carries.
type resource uint8

// These numbers are saved; they must not change.
const (
	nothing resource = 0
	gold    resource = 1
	wood    resource = 2
)

func (r resource) String() string {
	switch r {
	case nothing:
		return "nothing"
	case gold:
		return "gold"
	case wood:
		return "wood"
	}
	return "resource?"
}

// spec is a row of the rules' table. Times are in ticks.
type spec struct {
	name string
	hp   int32
	// damage of one strike is damage to damage+2, strikes are recharge
	// ticks apart, reach is measured to the foe's middle or wall.
	damage   int32
	reach    fixed
	recharge uint8
	speed    fixed
	// beats is the kind that takes half as much damage again.
	beats kind
	// gold, wood and ticks are what it takes to train or build one.
	gold, wood int64
	ticks      uint16
	// trains is what a building makes, room the population it adds.
	trains kind
	room   int
	// makes is true of a unit that gathers and builds.
	makes bool
}

// specs is indexed by kind; rows without a name are no kinds.
var specs = [...]spec{
	worker:   {name: "worker", hp: 40, damage: 3, reach: one, recharge: 20, speed: one / 10, gold: 50, ticks: 200, makes: true},
	soldier:  {name: "soldier", hp: 100, damage: 10, reach: one, recharge: 20, speed: one / 10, beats: cavalry, gold: 60, ticks: 240},
	archer:   {name: "archer", hp: 55, damage: 8, reach: 5 * one, recharge: 26, speed: one / 9, beats: soldier, gold: 40, wood: 30, ticks: 260},
	cavalry:  {name: "cavalry", hp: 120, damage: 12, reach: one, recharge: 22, speed: one / 6, beats: archer, gold: 90, wood: 20, ticks: 320},
	hall:     {name: "hall", hp: 1200, room: 12, trains: worker},
	barracks: {name: "barracks", hp: 600, wood: 120, ticks: 500, room: 8, trains: soldier},
	archery:  {name: "archery", hp: 500, gold: 40, wood: 100, ticks: 500, room: 8, trains: archer},
	stable:   {name: "stable", hp: 550, gold: 60, wood: 140, ticks: 600, room: 8, trains: cavalry},
}

func (k kind) String() string {
	if int(k) < len(specs) && specs[k].name != "" {
		return specs[k].name
	}
	return "kind?"
}

// building is true of what stands; the other kinds walk.
func (k kind) building() bool { return k >= hall && k <= stable }

// Limits of a match. They bound every list of the state, so that a saved
// state of any origin needs bounded memory.
const (
	minPlayers   = 2
	maxPlayers   = 8
	maxUnits     = 60 // of one player, queued ones included
	maxBuildings = 24 // of one player
	maxDeposits  = 400
	maxArrows    = 1024
	maxQueue     = 5
	maxRoute     = 12
)

// Economy.
const (
	startGold    = 200
	startWood    = 160
	startWorkers = 4
	mineGold     = 2500
	groveWood    = 350
	loadSize     = 10
	loadTicks    = 40
)

// Combat.
const (
	sight        = 7 * one
	watchEvery   = 8
	wallArmour   = 2
	arrowSpeed   = one / 2
	bodyDistance = 6 * one / 10
)
