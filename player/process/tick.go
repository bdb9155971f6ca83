package process

import (
	"encoding/binary"
	"fmt"

	"reprise/format"
)

const leastStep = 2 + 4

// tickWriter writes ticks as messages.
type tickWriter struct {
	steps format.StepReader
}

// append writes a tick. An error means that its bytes do not hold the steps
// that it claims; dst is then as it was.
func (w *tickWriter) append(dst []byte, t *format.TickRecord, wantHash bool) ([]byte, error) {
	start := len(dst)
	dst = beginFrame(dst, typeTick)
	dst = order.AppendUint64(dst, uint64(t.Tick))
	dst = appendFlag(dst, wantHash)
	dst = appendCount(dst, t.Steps)
	if len(t.Commands) != t.Steps*(1+int(t.Width)/8) {
		return dst[:start], unreadable(t, 0)
	}
	var step format.Step
	w.steps.Reset(t)
	for i := range t.Steps {
		if !w.steps.Next(&step) {
			return dst[:start], unreadable(t, i)
		}
		dst = order.AppendUint16(dst, step.Code)
		dst = appendCount(dst, len(step.Params))
		for _, v := range step.Params {
			dst = appendValue(dst, v)
		}
	}
	if length := len(dst) - start - lengthBytes; length > mostLength {
		return dst[:start], fmt.Errorf("tick %d: a message of %d bytes, the most is %d: %w", t.Tick, length, mostLength, format.ErrLimit)
	}
	return endFrame(dst, start), nil
}

func unreadable(t *format.TickRecord, step int) error {
	return fmt.Errorf("tick %d: step %d cannot be read: %w", t.Tick, step, format.ErrCorrupt)
}

// tickMessage is a tick as the child reads it. Its memory is used again.
type tickMessage struct {
	record   format.TickRecord
	wantHash bool
	ints     []int64
}

func (m *tickMessage) parse(body []byte) error {
	c := cursor{body: body}
	m.record = format.TickRecord{
		Tick: format.Tick(c.u64("the tick")), Width: format.Width16,
		Commands: m.record.Commands[:0], Params: m.record.Params[:0],
	}
	m.wantHash = c.flag("the hash flag")
	m.record.Steps = c.count("steps", leastStep)
	for range m.record.Steps {
		m.step(&c)
	}
	return c.done()
}

func (m *tickMessage) step(c *cursor) {
	code := c.u16("a code")
	n := c.count("parameters", leastValue)
	if n > format.MaxParams {
		c.fail("%d parameters, the most is %d", n, format.MaxParams)
	}
	if c.err != nil {
		return
	}
	m.record.Commands = binary.BigEndian.AppendUint16(append(m.record.Commands, byte(n)), code)
	for range n {
		m.record.Params = c.value(m.record.Params, &m.ints)
	}
}
