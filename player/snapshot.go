package player

import (
	"errors"

	"reprise/format"
)

// ErrNoSnapshot is returned by a Snapshotter that cannot keep the state of
// this game; the error says why. Seek by replaying from the start, then.
var ErrNoSnapshot = errors.New("no snapshot of this simulation can be taken")

// Snapshotter is a Simulation whose whole state can be kept in memory and
// brought back, as often as needed and without help from the game. Both
// methods are called between ticks only, when every tick given is answered.
type Snapshotter interface {
	// Snapshot keeps the present state. Snapshots share what has not changed
	// between them, so taking one after the other is cheap.
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
	// those that the same Simulation took before it.
	Held() int
	// AppendState appends the state as bytes that Reset takes as
	// Start.State, in this process or another.
	AppendState(dst []byte) []byte
}
