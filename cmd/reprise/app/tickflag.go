package app

import (
	"fmt"
	"strconv"

	"reprise/format"
)

// tickFlag is a flag that holds a tick, or nothing.
type tickFlag struct {
	set   bool
	value format.Tick
}

func (t *tickFlag) String() string {
	if !t.set {
		return ""
	}
	return strconv.FormatUint(uint64(t.value), 10)
}

func (t *tickFlag) Set(s string) error {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil || format.Tick(v) > format.MaxTick {
		return fmt.Errorf("not a tick: use a number from 0 to %d", format.MaxTick)
	}
	t.set, t.value = true, format.Tick(v)
	return nil
}

func (t *tickFlag) Type() string { return "tick" }

// tick gives the tick; nil where the flag was not set.
func (t *tickFlag) tick() *format.Tick {
	if !t.set {
		return nil
	}
	return &t.value
}

// within checks that from and to lie in the replay: a range without a tick
// is an error, not an empty answer.
func (from *tickFlag) within(to *tickFlag, f *format.File) error {
	s := f.Summary()
	for _, t := range [...]*tickFlag{from, to} {
		switch {
		case !t.set || t.value >= s.Meta.FirstTick && t.value < s.NextTick:
		case s.NextTick == s.Meta.FirstTick:
			return usagef("tick %d is not in the replay, which has no ticks", t.value)
		default:
			return usagef("tick %d is not in the replay, which has the ticks %d to %d", t.value, s.Meta.FirstTick, s.NextTick-1)
		}
	}
	if from.set && to.set && from.value > to.value {
		return usagef("--from %d is after --to %d", from.value, to.value)
	}
	return nil
}
