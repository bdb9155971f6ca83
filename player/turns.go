package player

// TurnGame is one running simulation of a turn-based game, whose commands are
// registered in a replay system. One tick is one active step with the passive
// steps that follow it. Calls never overlap. Everything it computes must
// follow from Start and the steps alone.
//
// While a replay is played the system's sandbox is current, so a command that
// needs a passive step calls System().Sandbox().GetPassive().
type TurnGame interface {
	// System gives the game's replay system with every command registered.
	// It is the same one for the game's whole life.
	System() *ReplaySystem
	// Reset puts the game into the state that start describes; it may be
	// called any number of times. An error means that this replay cannot be
	// played by this game; it is final.
	Reset(start Start) error
	// Hash appends the hash of the present state, as wide as Meta.HashBytes
	// says. The hash of a tick is taken when the tick is settled: after its
	// steps and, where the next active step has another code, the finalize,
	// and before that next step is executed. A recorder hashes at the same
	// moment.
	Hash(dst []byte) []byte
}

// TurnFactory makes turn-based games of one name; see Factory.
type TurnFactory struct {
	// Name is compared with the replay's Meta.Game.
	Name string
	// Build is compared with the replay's Meta.Build; empty plays every
	// build.
	Build string
	// New makes a game; Reset is called before anything else.
	New func() TurnGame
}
