package skirmish

import (
	"errors"
	"fmt"
)

// Reasons why a well-formed command has no effect. In lockstep all of them
// are normal: a command is given before the tick that it is carried out in,
// and a cheat may send anything. Every machine ignores the same ones.
var (
	// ErrOver: the match has been decided.
	ErrOver = errors.New("the match is over")
	// ErrUnknownPlayer: nobody with that number plays.
	ErrUnknownPlayer = errors.New("there is no such player")
	// ErrOut: the player was defeated or has surrendered.
	ErrOut = errors.New("the player is out of the match")
	// ErrUnknownUnit: no such id was ever given.
	ErrUnknownUnit = errors.New("there is no such unit")
	// ErrDead: what had the id is no more.
	ErrDead = errors.New("the unit is no more")
	// ErrNotOwner: it belongs to another player.
	ErrNotOwner = errors.New("the unit belongs to another player")
	// ErrCannot: units of that kind do not do this.
	ErrCannot = errors.New("the unit cannot do this")
	// ErrOffMap: the place is outside the map.
	ErrOffMap = errors.New("the place is outside the map")
	// ErrBadTarget: the target is not a foe, or not something to make.
	ErrBadTarget = errors.New("the target does not fit")
	// ErrNoSite: a building does not fit there.
	ErrNoSite = errors.New("the ground is not free")
	// ErrCost: the player has too little gold or wood.
	ErrCost = errors.New("the player cannot afford it")
	// ErrFull: the queue, the population or the number of buildings is at
	// its limit.
	ErrFull = errors.New("there is no room for more")
	// ErrUnfinished: the building is still a site.
	ErrUnfinished = errors.New("the building is not finished")
)

// Refusal says which command had no effect, and why: Reason is one of this
// package's errors.
type Refusal struct {
	Command Command
	Reason  error
}

func (r *Refusal) Error() string {
	c := r.Command
	return fmt.Sprintf("skirmish: player %d, %s, unit %d, target %d: %v", c.Player, opName(c.Op), c.Unit, c.Target, r.Reason)
}

// Unwrap gives the reason.
func (r *Refusal) Unwrap() error { return r.Reason }
