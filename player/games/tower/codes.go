package tower

import "reprise/format"

// Command codes stand in replays: they must not change, and a code that is
// no longer used stays taken.
const (
	// The moves take no parameters.
	CodeUp    uint16 = 1
	CodeDown  uint16 = 2
	CodeLeft  uint16 = 3
	CodeRight uint16 = 4
	// CodeUse uses an item of the bag: its number.
	CodeUse uint16 = 5
	// CodeOpen opens the shop, trader, altar or chest in front of the hero.
	CodeOpen uint16 = 6
	// CodeRest sleeps at the price of a ration.
	CodeRest uint16 = 7
	// CodeSurrender ends the game.
	CodeSurrender uint16 = 8
	// CodeChoose is passive: a choice at a shop, a trader or an altar.
	CodeChoose uint16 = 16
	// CodeDestination is passive: the floor that the wings carry to.
	CodeDestination uint16 = 17
)

// moveCode gives the code of a move.
func moveCode(d direction) uint16 { return CodeUp + uint16(d) }

// isMove says whether code is a move, and where to.
func isMove(code uint16) (direction, bool) {
	return direction(code - CodeUp), code >= CodeUp && code <= CodeRight
}

// Name and Build say which replays this package plays; they stand in the
// metadata of every recording.
const (
	Name  = "tower"
	Build = "tower-1"
)

// Metadata describes a session of one game: a clock it has none, a turn is a
// tick.
func Metadata(session string, seed uint64, mapName string) *format.Metadata {
	return &format.Metadata{
		Session:   session,
		Game:      Name,
		Build:     Build,
		Seed:      seed,
		Map:       mapName,
		HashBytes: hashBytes,
		HashParts: HashParts(),
		Width:     format.Width8,
	}
}

// CodeBook names the command codes and their parameters.
func CodeBook() *format.CodeBook {
	number := func(name string) []format.ParamInfo {
		return []format.ParamInfo{{Name: name, Type: "int"}}
	}
	return &format.CodeBook{Codes: []format.CodeInfo{
		{Code: CodeUp, Name: "up"},
		{Code: CodeDown, Name: "down"},
		{Code: CodeLeft, Name: "left"},
		{Code: CodeRight, Name: "right"},
		{Code: CodeUse, Name: "use", Params: number("item")},
		{Code: CodeOpen, Name: "open"},
		{Code: CodeRest, Name: "rest"},
		{Code: CodeSurrender, Name: "surrender"},
		{Code: CodeChoose, Name: "choose", Passive: true, Params: number("choice")},
		{Code: CodeDestination, Name: "destination", Passive: true, Params: number("floor")},
	}}
}
