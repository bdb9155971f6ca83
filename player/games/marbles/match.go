package marbles

import (
	"math/rand/v2"

	"reprise/format"
)

// Push is one command of a sample match.
type Push struct {
	Op                     uint16
	Player, Marble, DX, DY int64
}

// Params are its parameters.
func (p Push) Params() []format.Value {
	params := []format.Value{format.Int(p.Player), format.Int(p.Marble)}
	if p.Op == OpPush {
		params = append(params, format.Int(p.DX), format.Int(p.DY))
	}
	return params
}

// SampleMatch makes the commands of a match, tick by tick. Some of them are
// ignored by the rules.
func SampleMatch(seed uint64, ticks int) [][]Push {
	r := rand.New(rand.NewPCG(seed, 0x6d617262))
	match := make([][]Push, ticks)
	for i := range match {
		for range max(0, r.IntN(5)-2) {
			p := Push{Op: OpPush, Player: 1 + r.Int64N(2), Marble: r.Int64N(marbles + 1), DX: r.Int64N(131) - 65, DY: r.Int64N(129) - 64}
			if r.IntN(8) == 0 {
				p.Op = OpStop
			}
			match[i] = append(match[i], p)
		}
	}
	return match
}
