package tower

import (
	"errors"
	"fmt"

	"reprise/format"
	"reprise/player"
)

// errParams: a step's parameters are not the one integer that its code
// takes.
var errParams = errors.New("tower: want one integer parameter")

// errCode: the code is no active command of this game.
var errCode = errors.New("tower: no such command")

// act carries out one active step. Moves only join the queue; every other
// step takes its turn at once.
func (s *state) act(code uint16, params []format.Value, a asker) (player.Result, error) {
	if s.over() {
		return player.Ignored, errOver
	}
	if d, ok := isMove(code); ok {
		s.plan(d)
		return player.Success, nil
	}
	s.walk()
	if s.over() {
		return player.Ignored, errOver
	}
	s.turn()
	switch code {
	case CodeUse:
		number, err := integer(params)
		if err != nil {
			return player.Failed, err
		}
		return s.use(number, a)
	case CodeOpen:
		return s.open(a)
	case CodeRest:
		return s.rest()
	case CodeSurrender:
		return s.surrender()
	}
	return player.Failed, fmt.Errorf("%w: code %d", errCode, code)
}

// integer gives the only parameter.
func integer(params []format.Value) (int64, error) {
	if len(params) != 1 {
		return 0, fmt.Errorf("%w, not %d", errParams, len(params))
	}
	n, ok := params[0].Int64()
	if !ok {
		return 0, fmt.Errorf("%w, not %s", errParams, params[0])
	}
	return n, nil
}
