package marbles

import (
	"encoding/binary"
	"errors"
	"fmt"

	"reprise/format"
	"reprise/player"
)

// Name and Build are what recordings of this game carry.
const (
	Name  = "marbles"
	Build = "marbles-1"
)

// The commands.
const (
	OpPush = 1 // player, marble, dx, dy
	OpStop = 2 // player, marble
)

const (
	marbles  = 16
	board    = 1 << 16
	cellBits = 12
	mostPush = 64
)

// marble is one of them: its place and its speed.
type marble struct{ x, y, vx, vy int64 }

// Game is one match. Its zero value is ready for Reset.
type Game struct {
	random  uint64
	marbles [marbles]marble
}

var (
	_ player.Game   = (*Game)(nil)
	_ player.Dumper = (*Game)(nil)
)

// Factory offers the game to a player.
func Factory() player.Factory {
	return player.Factory{Name: Name, Build: Build, New: func() player.Game { return new(Game) }}
}

// Metadata describes a match for a recording.
func Metadata(seed uint64) *format.Metadata {
	return &format.Metadata{Game: Name, Build: Build, Seed: seed, TickRate: format.Rate{Num: 30, Den: 1},
		HashBytes: 8, Width: format.Width16}
}

func (g *Game) draw() uint64 {
	g.random = g.random*6364136223846793005 + 1442695040888963407
	return g.random >> 33
}

// Reset starts a match; this game has no keyframes of its own.
func (g *Game) Reset(start player.Start) error {
	if start.State != nil {
		return errors.New("marbles starts from the beginning alone")
	}
	*g = Game{random: start.Meta.Seed}
	for i := range g.marbles {
		g.marbles[i].x = int64(g.draw() % board)
		g.marbles[i].y = int64(g.draw() % board)
	}
	return nil
}

// Step carries out a command.
func (g *Game) Step(_ format.Tick, step format.Step) (player.Result, error) {
	var p [4]int64
	want := map[uint16]int{OpPush: 4, OpStop: 2}[step.Code]
	if want == 0 || len(step.Params) != want {
		return player.Failed, fmt.Errorf("no command %d with %d parameters", step.Code, len(step.Params))
	}
	for i, v := range step.Params {
		var fits bool
		if p[i], fits = v.Int64(); v.Kind() != format.KindInt || !fits {
			return player.Failed, errors.New("a parameter is no integer")
		}
	}
	if p[1] < 0 || p[1] >= marbles || max(p[2], p[3]) > mostPush || min(p[2], p[3]) < -mostPush {
		return player.Ignored, nil
	}
	m := &g.marbles[p[1]]
	if step.Code == OpStop {
		m.vx, m.vy = 0, 0
		return player.Success, nil
	}
	m.vx += p[2]
	m.vy += p[3]
	return player.Success, nil
}

// EndTick lets the marbles roll.
func (g *Game) EndTick(tick format.Tick) error {
	for i := range g.marbles {
		m := &g.marbles[i]
		m.x, m.y = (m.x+m.vx)&(board-1), (m.y+m.vy)&(board-1)
		if tick%16 == 0 {
			m.vx -= m.vx >> 3
			m.vy -= m.vy >> 3
		}
	}
	for i := range g.marbles {
		for j := i + 1; j < marbles; j++ {
			g.meet(&g.marbles[i], &g.marbles[j])
		}
	}
	value := g.draw()
	g.marbles[value%marbles].vx += int64(value>>8%15) - 7
	return nil
}

func (g *Game) meet(a, b *marble) {
	if a.x>>cellBits == b.x>>cellBits && a.y>>cellBits == b.y>>cellBits {
		a.vx, a.vy, b.vx, b.vy = b.vx, b.vy, a.vx, a.vy
	}
}

// Hash appends the hash of the state.
func (g *Game) Hash(dst []byte) []byte {
	sum := fnv(14695981039346656037, g.random)
	for i := range g.marbles {
		m := &g.marbles[i]
		for _, v := range [...]int64{m.x, m.y, m.vx, m.vy} {
			sum = fnv(sum, uint64(v))
		}
	}
	return binary.BigEndian.AppendUint64(dst, sum)
}

// fnv adds eight bytes to an FNV-1a hash, the highest first.
func fnv(sum, v uint64) uint64 {
	for shift := 56; shift >= 0; shift -= 8 {
		sum = (sum ^ v>>shift&0xff) * 1099511628211
	}
	return sum
}

// Dump names the fields of the state.
func (g *Game) Dump() []player.Field {
	fields := []player.Field{{Name: "random", Value: fmt.Sprint(g.random)}}
	for i, m := range g.marbles {
		for _, f := range [...]struct {
			name  string
			value int64
		}{{"x", m.x}, {"y", m.y}, {"vx", m.vx}, {"vy", m.vy}} {
			fields = append(fields, player.Field{Name: fmt.Sprintf("marbles[%d].%s", i, f.name), Value: fmt.Sprint(f.value)})
		}
	}
	return fields
}
