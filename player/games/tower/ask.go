package tower

import (
	"errors"

	"reprise/player"
)

// Reasons why a step is refused or comes to nothing. A step that no play of
// the game could have recorded fails; one that a player may well try, but
// that changes nothing, is ignored.
var (
	// errOver: the game has ended before the step.
	errOver = errors.New("tower: the game is over")
	// errAnswer: a question was asked and the replay has no answer of the
	// wanted kind; steps are missing or out of order.
	errAnswer = errors.New("tower: the question has no answer")
	// errChoice: the answer is none of those that were offered.
	errChoice = errors.New("tower: no such choice")
	// errPrice: the hero cannot pay for the choice.
	errPrice = errors.New("tower: the hero cannot pay for it")
)

// asker gets the player's answers to what the game asks: from the person or
// program that plays, or from the passive steps of a replay.
type asker interface {
	// ask takes the next answer, which must be of the given code, and gives
	// it to judge, which applies it and says what it came to. Without such
	// an answer the result is Failed.
	ask(code uint16, judge judge) (player.Result, error)
}

// judge applies one answer.
type judge func(choice int64) (player.Result, error)
