package tower

import (
	"errors"
	"fmt"
	"slices"

	"reprise/format"
	"reprise/player"
)

var (
	// ErrHashParts is returned for a replay whose state hashes are not made
	// as this build makes them: play it with the build that recorded it.
	ErrHashParts = errors.New("tower: other state hashes than this build makes")
	// ErrOtherTower is returned for a saved state of another seed or height
	// than the replay's: it belongs to another game.
	ErrOtherTower = errors.New("tower: saved state of another tower")
	// ErrNotReset is returned where a game is used before its Reset.
	ErrNotReset = errors.New("tower: the game was not reset")
)

// Game replays games of the tower: its commands are registered in a replay
// system whose sandbox drives them. It is a player.TurnGame, a player.Saver
// and a player.Dumper.
type Game struct {
	system *player.ReplaySystem
	state  state
}

// New makes a game whose warnings are dropped.
func New() *Game { return NewWith(player.SystemOptions{}) }

// NewWith makes a game whose replay system has the given options.
func NewWith(o player.SystemOptions) *Game {
	g := &Game{system: player.NewSystem(o)}
	for _, c := range CodeBook().Codes {
		g.system.Register(c.Code, g.command(c))
	}
	return g
}

// Factory offers the game to a player by name.
func Factory() player.TurnFactory {
	return player.TurnFactory{Name: Name, Build: Build, New: func() player.TurnGame { return New() }}
}

// System gives the replay system with the game's commands.
func (g *Game) System() *player.ReplaySystem { return g.system }

// Reset begins the game that start describes.
func (g *Game) Reset(start player.Start) error {
	if start.Meta == nil {
		return fmt.Errorf("%w: no metadata", ErrMap)
	}
	floors, err := parseMap(start.Meta.Map)
	if err != nil {
		return err
	}
	if err := checkHashes(start.Meta); err != nil {
		return err
	}
	if start.State == nil {
		g.state = newState(start.Meta.Seed, floors)
		return nil
	}
	s, err := load(start.State)
	if err != nil {
		return err
	}
	if s.seed != start.Meta.Seed || len(s.floors) != floors {
		return fmt.Errorf("%w: seed %d with %d floors, the replay has seed %d and %s", ErrOtherTower, s.seed, len(s.floors), start.Meta.Seed, start.Meta.Map)
	}
	g.state = s
	return nil
}

// checkHashes compares the hashes that a session declares with those of
// this build. A session without hashes is played as well; its parts may be
// undeclared.
func checkHashes(m *format.Metadata) error {
	switch {
	case m.HashBytes == 0:
		return nil
	case m.HashBytes != hashBytes:
		return fmt.Errorf("%w: %d bytes, here %d", ErrHashParts, m.HashBytes, hashBytes)
	case len(m.HashParts) != 0 && !slices.Equal(m.HashParts, HashParts()):
		return fmt.Errorf("%w: parts %v, here %v", ErrHashParts, m.HashParts, HashParts())
	}
	return nil
}

// Hash appends the hash of the state.
func (g *Game) Hash(dst []byte) []byte { return g.state.hash(dst) }

// Save appends the whole state, with moves that wait to be walked.
func (g *Game) Save(dst []byte) []byte { return g.state.save(dst) }

// Load restores a saved state. An error leaves the game as it was.
func (g *Game) Load(saved []byte) error {
	s, err := load(saved)
	if err != nil {
		return err
	}
	g.state = s
	return nil
}

// Dump names every field of the state.
func (g *Game) Dump() []player.Field { return g.state.dump() }

// Outcome says how the game stands: climbing, crowned, fallen or
// surrendered.
func (g *Game) Outcome() string { return outcomeNames[g.state.outcome] }
