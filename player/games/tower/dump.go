package tower

import (
	"fmt"
	"strconv"

	"reprise/player"
)

// dump names every field of the state.
func (s *state) dump() []player.Field {
	fields := []player.Field{
		{Name: "seed", Value: strconv.FormatUint(s.seed, 10)},
		{Name: "outcome", Value: outcomeNames[s.outcome]},
	}
	for _, f := range s.hero.stats() {
		fields = append(fields, player.Field{Name: "hero." + f.name, Value: strconv.FormatInt(*f.value, 10)})
	}
	for i, d := range s.queue {
		fields = append(fields, player.Field{Name: fmt.Sprintf("queue[%d]", i), Value: directionNames[d]})
	}
	for level := range s.floors {
		fields = s.floors[level].dump(fields, level)
	}
	return append(fields, player.Field{Name: "random", Value: fmt.Sprintf("%016x", uint64(s.random))})
}

func (f *floor) dump(fields []player.Field, level int) []player.Field {
	add := func(name, value string) {
		fields = append(fields, player.Field{Name: fmt.Sprintf("floors[%d].%s", level, name), Value: value})
	}
	add("entry", f.entry.String())
	add("exit", f.exit.String())
	for c, t := range &f.grid {
		add("cells["+cell(c).String()+"]", t.String())
	}
	return fields
}

// String gives c as "x,y".
func (c cell) String() string { return fmt.Sprintf("%d,%d", c.x(), c.y()) }
