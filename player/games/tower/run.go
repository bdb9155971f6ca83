package tower

import (
	"reprise/format"
	"reprise/player"
)

// Run is a game that is being played, by a climber whose every decision
// follows from the seed. It gives what a recorder needs: turns, and the
// hashes of settled ticks.
type Run struct {
	state   state
	climber climber
	next    format.Tick
	// pending is the code of a move whose run may go on; 0 for none.
	pending uint16
}

// Settled is the hash of a tick after which a replay is in the same state
// as the game was.
type Settled struct {
	Tick format.Tick
	Hash []byte
}

// NewRun begins a game; its first turn is tick 0.
func NewRun(seed uint64, mapName string) (*Run, error) {
	floors, err := parseMap(mapName)
	if err != nil {
		return nil, err
	}
	return &Run{state: newState(seed, floors), climber: newClimber(seed)}, nil
}

// Next plays one turn and gives it with the hashes that have become known,
// in tick order. A replay walks the consecutive moves of one direction as a
// whole, when a turn of another kind follows. So only the last of them is
// settled, and its hash comes with the turn that ends the run. When the
// game is over there is no turn; the hash of the last one may still come.
func (r *Run) Next() (turn Turn, settled []Settled, ok bool) {
	if r.state.over() {
		return Turn{}, r.settle(0), false
	}
	turn = r.climber.decide(&r.state)
	settled = r.settle(turn.Code)
	r.play(turn)
	r.next++
	r.pending = turn.Code
	if _, moved := isMove(turn.Code); !moved {
		settled = append(settled, r.settle(0)...)
	}
	return turn, settled, true
}

// settle gives the hash of the turn before, unless it was a move that code
// repeats.
func (r *Run) settle(code uint16) []Settled {
	if r.pending == 0 || r.pending == code {
		return nil
	}
	r.pending = 0
	return []Settled{{Tick: r.next - 1, Hash: r.state.hash(nil)}}
}

// play carries out a turn at once.
func (r *Run) play(turn Turn) {
	_, _ = r.state.act(turn.Code, turn.Params, &script{answers: turn.Passives})
	r.state.walk()
}

// Save appends the state before the next turn, as a keyframe holds it.
func (r *Run) Save(dst []byte) []byte { return r.state.save(dst) }

// Outcome says how the game stands: climbing, crowned, fallen or
// surrendered.
func (r *Run) Outcome() string { return outcomeNames[r.state.outcome] }

// script answers questions from a turn's prepared answers.
type script struct{ answers []Answer }

func (s *script) ask(code uint16, judge judge) (player.Result, error) {
	if len(s.answers) == 0 {
		return player.Failed, errAnswer
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	return judgePassive(format.Step{Code: next.Code, Params: next.Params}, code, judge)
}
