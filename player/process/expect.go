package process

import (
	"fmt"

	"reprise/format"
	"reprise/player"
)

// expectation is a tick that was given to the child and is not answered.
type expectation struct {
	tick  format.Tick
	steps int
	// asked is set where the hash was asked for.
	asked bool
}

// mostUnanswered bounds the ticks that a game which looks ahead may hold
// back: it answers a tick when it has seen a later step, and there may be none
// for long.
const mostUnanswered = 1 << 20

// expectations is a queue of ticks in order.
type expectations struct {
	list []expectation
	// first is the index of the oldest; taken counts all that were taken.
	first int
	taken uint64
}

func (q *expectations) len() int { return len(q.list) - q.first }

// end is the number of ticks that were ever added.
func (q *expectations) end() uint64 { return q.taken + uint64(q.len()) }

func (q *expectations) add(more []expectation) {
	if q.first > len(q.list)/2 {
		q.list = append(q.list[:0], q.list[q.first:]...)
		q.first = 0
	}
	q.list = append(q.list, more...)
}

// oldest gives the tick to be answered next; nil where there is none.
func (q *expectations) oldest() *expectation {
	if q.len() == 0 {
		return nil
	}
	return &q.list[q.first]
}

func (q *expectations) take() {
	q.first++
	q.taken++
}

func (q *expectations) clear() {
	q.taken += uint64(q.len())
	q.list, q.first = q.list[:0], 0
}

// answer is what the child said to one tick.
type answer struct {
	tick    format.Tick
	ignored uint32
	hash    [format.MaxHashBytes]byte
	// wide is the hash's width; 0 where there is none.
	wide    int
	failure *player.StepFailure
	// broken is set where the simulation cannot go on; nothing else is then.
	broken error
}

// outcome is the answer as the player knows it; it refers to a.
func (a *answer) outcome() player.Outcome {
	o := player.Outcome{Tick: a.tick, Ignored: int(a.ignored), Failure: a.failure}
	if a.wide > 0 {
		o.Hash = a.hash[:a.wide]
	}
	return o
}

// checkDone compares an answer with the tick that is due. Width is the
// declared width of hashes, 0 where none is.
func (x *expectation) checkDone(d *done, width int) error {
	wide := len(d.hash)
	switch {
	case x == nil:
		return fmt.Errorf("%w: tick %d was answered, and none was due", errBad, d.tick)
	case d.tick != x.tick:
		return fmt.Errorf("%w: tick %d was answered where tick %d was due", errBad, d.tick, x.tick)
	case int64(d.ignored) > int64(x.steps):
		return fmt.Errorf("%w: %d ignored steps in a tick of %d", errBad, d.ignored, x.steps)
	case !x.asked && wide > 0:
		return fmt.Errorf("%w: a hash of %d bytes that was not asked for", errBad, wide)
	case x.asked && wide == 0 && width > 0:
		return fmt.Errorf("%w: no hash, which was asked for", errBad)
	case x.asked && width > 0 && wide != width:
		return fmt.Errorf("%w: a hash of %d bytes where %d are declared", errBad, wide, width)
	}
	return nil
}

// checkFailed compares a failed step with the tick that is due.
func (x *expectation) checkFailed(f *failed, looksAhead bool) error {
	switch {
	case x == nil || f.tick != x.tick:
		return fmt.Errorf("%w: a step of tick %d failed, which was not due", errBad, f.tick)
	case f.at != f.tick && !looksAhead:
		return fmt.Errorf("%w: a step of tick %d failed in tick %d", errBad, f.at, f.tick)
	case f.at == f.tick && int64(f.step) >= int64(x.steps):
		return fmt.Errorf("%w: step %d failed in a tick of %d", errBad, f.step, x.steps)
	}
	return nil
}
