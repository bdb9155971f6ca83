package tower

import "reprise/format"

// Turn is one tick of a game: an active step and the passive steps that
// answer what it asks.
type Turn struct {
	Code     uint16
	Params   []format.Value
	Passives []Answer
}

// Answer is one passive step.
type Answer struct {
	Code   uint16
	Params []format.Value
}

// Steps gives the turn's steps to add in the order in which they are
// recorded.
func (t Turn) Steps(add func(code uint16, params ...format.Value)) {
	add(t.Code, t.Params...)
	for _, a := range t.Passives {
		add(a.Code, a.Params...)
	}
}

func move(d direction) Turn { return Turn{Code: moveCode(d)} }

func useOf(i item, answers ...Answer) Turn {
	return Turn{Code: CodeUse, Params: []format.Value{format.Int(int64(i))}, Passives: answers}
}

func answer(code uint16, choice int64) Answer {
	return Answer{Code: code, Params: []format.Value{format.Int(choice)}}
}
