package tower

import (
	"fmt"

	"reprise/format"
	"reprise/player"
)

// command makes what steps of the given code do in a replay.
func (g *Game) command(c format.CodeInfo) player.Command {
	types := make([]player.ParamType, len(c.Params))
	for i, p := range c.Params {
		types[i] = player.ParamType(p.Type)
	}
	if c.Passive {
		return player.NewPassive(types...)
	}
	active := activeCommand{Base: player.NewActive(types...), game: g}
	if _, ok := isMove(c.Code); ok {
		return moveCommand{active}
	}
	return active
}

// activeCommand takes a turn, asking the replay's passive steps for answers.
type activeCommand struct {
	player.Base
	game *Game
}

// Execute carries out one step.
func (c activeCommand) Execute(step format.Step) (player.Result, error) {
	if len(c.game.state.floors) == 0 {
		return player.Failed, ErrNotReset
	}
	return c.game.state.act(step.Code, step.Params, recorded{c.game.system})
}

// moveCommand is one direction. A step only joins the queue; the end of the
// run sets the hero in motion, once for all of it.
type moveCommand struct{ activeCommand }

// Finalize walks the run.
func (c moveCommand) Finalize() (player.Result, error) {
	c.game.state.walk()
	return player.Success, nil
}

// recorded answers questions from the passive steps of a replay.
type recorded struct{ system *player.ReplaySystem }

func (r recorded) ask(code uint16, judge judge) (player.Result, error) {
	sandbox := r.system.Sandbox()
	if sandbox == nil {
		return player.Failed, errAnswer
	}
	passive, err := sandbox.GetPassive()
	if err != nil {
		return player.Failed, fmt.Errorf("%w: %w", errAnswer, err)
	}
	result, err := judgePassive(passive.Step, code, judge)
	passive.Next(result)
	return result, err
}

// judgePassive applies a passive step where it is of the wanted kind.
func judgePassive(step format.Step, code uint16, judge judge) (player.Result, error) {
	if step.Code != code {
		return player.Failed, fmt.Errorf("%w: want code %d, the next step has %d", errAnswer, code, step.Code)
	}
	choice, err := integer(step.Params)
	if err != nil {
		return player.Failed, err
	}
	return judge(choice)
}
