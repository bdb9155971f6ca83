package player

import (
	"reprise/format"
)

// Result is what a game answers to one step, and a command to its execution.
type Result uint8

const (
	// Success: the step did what it says; playback goes on.
	Success Result = 0
	// Failed: the step cannot be carried out; playback stops at it.
	Failed Result = 1
	// Ignored: the step has no effect, which is noted; playback goes on.
	Ignored Result = 2
)

// Start is all that a game may use to build its first state: nothing else
// may leak in, or two machines will differ.
type Start struct {
	// Meta is never nil; Book may be nil where the replay has none.
	Meta *format.Metadata
	Book *format.CodeBook
	// Players holds everyone known at the start (joined before the first
	// tick). Later joins and leaves never reach the game: a game that
	// needs them records them as steps.
	Players []format.Player
	// State is a keyframe's bytes, the whole state before NextTick; nil
	// means the game's own initial state, made from Meta.
	State []byte
	// NextTick is the first tick that will be given.
	NextTick format.Tick
}

// Game is one running simulation of a lockstep game. Calls never overlap.
// Everything it computes must follow from Start and the steps alone.
type Game interface {
	// Reset puts the game into the state that start describes; it may be
	// called any number of times. An error means that this replay cannot
	// be played by this game (wrong map, damaged keyframe); it is final.
	Reset(start Start) error
	// Step applies one input of tick. The parameters are valid only
	// during the call. The error says why for Failed and Ignored, and may
	// be nil.
	Step(tick format.Tick, step format.Step) (Result, error)
	// EndTick simulates tick after its last step.
	EndTick(tick format.Tick) error
	// Hash appends the hash of the present state, as wide as
	// Meta.HashBytes says, parts in the order of Meta.HashParts.
	Hash(dst []byte) []byte
}

// Saver is a game whose whole state can be written and restored, which
// makes seeking, rewinding and parallel verification cheap.
type Saver interface {
	// Save appends the whole state to dst.
	Save(dst []byte) []byte
	// Load restores a state that Save made. Damaged bytes are an error
	// and leave the game unusable until the next Load or Reset.
	Load(state []byte) error
}

// Dumper is a game that can name the fields of its state, so that two
// states can be compared by a person.
type Dumper interface {
	// Dump gives every field of the state in a fixed order.
	Dump() []Field
}

// Field is one named value of a game's state, for example
// {"units[12].hp", "45"}.
type Field struct {
	Name, Value string
}

// Factory makes games of one name. It is how a program that links a game
// offers it to the player.
type Factory struct {
	// Name is compared with the replay's Meta.Game.
	Name string
	// Build is compared with the replay's Meta.Build; empty plays every
	// build.
	Build string
	// Data is the hash of the game's data files, compared with the replay's
	// Meta.Data where both are set; empty plays every data.
	Data string
	// New makes a game; Reset is called before anything else.
	New func() Game
}
