package player

import "reprise/format"

// Snapshotter is a Simulation whose whole state can be kept in memory and
// brought back, as often as needed and without help from the game. It is
// cheaper than Keeper: snapshots share what did not change between them. Both
// methods are called when every tick given is answered.
type Snapshotter interface {
	// Snapshot keeps the present state. The error is ErrUnable where that
	// cannot be done for this game, and says why.
	Snapshot() (Snapshot, error)
	// Restore brings back a state that a Simulation of the same game and
	// build kept of the replay that was reset last. After an error, reset.
	Restore(s Snapshot) error
}

// Snapshot is a state kept in memory. It never changes.
type Snapshot interface {
	// NextTick is the tick that comes next.
	NextTick() format.Tick
	// Held is how many bytes the snapshot holds that it does not share with
	// those that the same Simulation took or restored before it.
	Held() int
}
