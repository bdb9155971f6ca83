package player

import (
	"bytes"
	"fmt"

	"reprise/format"
)

// expectation is what the engine knows of a tick that it gave to the
// simulation and that is not answered yet.
type expectation struct {
	tick  format.Tick
	steps int
	// asked is set where the hash was asked for; want[:wide] is the
	// recorded one, wide is 0 where none was recorded.
	asked bool
	wide  int
	want  [format.MaxHashBytes]byte
}

// expectations is a queue: answers come in tick order, but may come late.
type expectations struct {
	ring        []expectation
	head, count int
}

// push gives the next free place of the queue to fill.
func (q *expectations) push() *expectation {
	if q.count == len(q.ring) {
		q.grow()
	}
	e := &q.ring[(q.head+q.count)&(len(q.ring)-1)]
	q.count++
	return e
}

// grow doubles the ring, whose size is a power of two.
func (q *expectations) grow() {
	ring := make([]expectation, max(16, 2*len(q.ring)))
	for i := range q.count {
		ring[i] = q.ring[(q.head+i)&(len(q.ring)-1)]
	}
	q.ring, q.head = ring, 0
}

// pop gives the oldest expectation, valid until the next push; nil where there
// is none.
func (q *expectations) pop() *expectation {
	if q.count == 0 {
		return nil
	}
	e := &q.ring[q.head]
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.count--
	return e
}

func (q *expectations) drop() { q.head, q.count = 0, 0 }

// comparer compares hashes and remembers the last good one.
type comparer struct {
	parts    []format.HashPart
	width    int // declared; 0 where none is
	lastGood format.Tick
	hasGood  bool
	compared int
}

// check compares the answer to e with what was recorded: a DesyncError where
// it differs, a SimulationError where it is no answer.
func (c *comparer) check(e *expectation, got []byte) (*DesyncError, error) {
	if err := c.checkWidth(e, got); err != nil {
		return nil, err
	}
	if e.wide == 0 {
		return nil, nil
	}
	c.compared++
	want := e.want[:e.wide]
	if bytes.Equal(want, got) {
		c.lastGood, c.hasGood = e.tick, true
		return nil, nil
	}
	return &DesyncError{
		Tick: e.tick, LastGood: c.lastGood, HasLastGood: c.hasGood,
		Want: bytes.Clone(want), Got: bytes.Clone(got), Part: c.differing(want, got),
	}, nil
}

func (c *comparer) checkWidth(e *expectation, got []byte) error {
	width := e.wide
	if width == 0 {
		width = c.width
	}
	switch {
	case !e.asked || len(got) == width && width > 0:
		return nil
	case e.wide == 0 && c.width == 0:
		return nil // a trace of a replay that declares no width: of any, or none
	}
	what := fmt.Sprintf("answered with a hash of %d bytes where %d are declared", len(got), width)
	return &SimulationError{Tick: e.tick, HasTick: true, What: what}
}

// differing names the first part that differs.
func (c *comparer) differing(want, got []byte) string {
	at := 0
	for _, p := range c.parts {
		end := at + p.Bytes
		if end > len(want) {
			return ""
		}
		if !bytes.Equal(want[at:end], got[at:end]) {
			return p.Name
		}
		at = end
	}
	return ""
}
