package player

import (
	"errors"
	"fmt"

	"reprise/format"
)

// ErrUnable is returned where a state is to be saved, loaded, hashed or dumped
// by a simulation that cannot do it.
var ErrUnable = errors.New("the simulation cannot do this")

// Keeper is a Simulation whose state between two ticks can be kept as bytes.
// Every tick given must be answered.
type Keeper interface {
	// Save appends the whole state. The error is ErrUnable where the game
	// cannot save.
	Save(dst []byte) ([]byte, error)
	// Load restores a state that Save gave in the same replay; next is the
	// tick that will be given. After an error other than ErrUnable, reset.
	Load(state []byte, next format.Tick) error
}

// Hasher is a Simulation that gives the hash of the present state. Every tick
// given must be answered.
type Hasher interface {
	// StateHash appends the hash. The error is ErrUnable where the game
	// cannot give it.
	StateHash(dst []byte) ([]byte, error)
}

// Inspector is a Simulation that names the fields of its present state. Every
// tick given must be answered.
type Inspector interface {
	// Dump gives every field. The error is ErrUnable where the game cannot
	// dump.
	Dump() ([]Field, error)
}

var (
	_ Keeper    = (*Local)(nil)
	_ Hasher    = (*Local)(nil)
	_ Inspector = (*Local)(nil)
)

// Save appends the game's whole state.
func (l *Local) Save(dst []byte) (state []byte, err error) {
	saver, ok := l.game.(Saver)
	switch {
	case l.broken != nil:
		return dst, l.broken
	case !ok:
		return dst, fmt.Errorf("%w: the game cannot save", ErrUnable)
	}
	state = dst
	defer rescuePlain(&err)
	return saver.Save(dst), nil
}

// Load restores a state that Save gave.
func (l *Local) Load(state []byte, next format.Tick) (err error) {
	saver, ok := l.game.(Saver)
	if !ok {
		return fmt.Errorf("%w: the game cannot load", ErrUnable)
	}
	defer func() { l.broken = err }()
	defer rescue(&err, next)
	if err := saver.Load(state); err != nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	return nil
}

// StateHash appends the hash of the present state.
func (l *Local) StateHash(dst []byte) (hash []byte, err error) {
	if l.broken != nil {
		return dst, l.broken
	}
	hash = dst
	defer rescuePlain(&err)
	return l.game.Hash(dst), nil
}

// Dump names the fields of the game's state.
func (l *Local) Dump() (fields []Field, err error) {
	dumper, ok := l.game.(Dumper)
	switch {
	case l.broken != nil:
		return nil, l.broken
	case !ok:
		return nil, fmt.Errorf("%w: the game cannot dump", ErrUnable)
	}
	defer rescuePlain(&err)
	return dumper.Dump(), nil
}

// rescuePlain is rescue between two ticks.
func rescuePlain(err *error) {
	if p := recover(); p != nil {
		fault := panicked(0, p)
		fault.HasTick = false
		*err = fault
	}
}
