package process

import (
	"reprise/format"
	"reprise/player"
)

// refused says why a reset, load, save or dump was not done.
type refused struct {
	// fault is set where the simulation itself failed, and not set where
	// what it was asked cannot be done.
	fault bool
	text  string
}

func (r *refused) append(dst []byte) []byte {
	start := len(dst)
	dst = appendFlag(beginFrame(dst, typeRefused), r.fault)
	return endFrame(appendText(dst, r.text), start)
}

func (r *refused) parse(body []byte) error {
	c := cursor{body: body}
	r.fault = c.flag("the fault flag")
	r.text = c.text("the reason")
	return c.done()
}

// saved is the answer to a save. The state is valid as long as the body.
type saved struct {
	state []byte
}

func (s *saved) append(dst []byte) []byte {
	start := len(dst)
	dst = beginFrame(dst, typeSaved)
	return endFrame(appendText(dst, s.state), start)
}

func (s *saved) parse(body []byte) error {
	c := cursor{body: body}
	s.state = c.bytes("the state")
	return c.done()
}

// load restores the state before tick next.
type load struct {
	next  format.Tick
	state []byte
}

func (l *load) append(dst []byte) []byte {
	start := len(dst)
	dst = beginFrame(dst, typeLoad)
	dst = order.AppendUint64(dst, uint64(l.next))
	return endFrame(appendText(dst, l.state), start)
}

func (l *load) parse(body []byte) error {
	c := cursor{body: body}
	l.next = format.Tick(c.u64("the next tick"))
	l.state = c.bytes("the state")
	return c.done()
}

// fields is the answer to a dump.
type fields struct {
	list []player.Field
}

const leastField = 4 + 4

func (f *fields) append(dst []byte) []byte {
	start := len(dst)
	dst = beginFrame(dst, typeFields)
	dst = appendCount(dst, len(f.list))
	for _, field := range f.list {
		dst = appendText(dst, field.Name)
		dst = appendText(dst, field.Value)
	}
	return endFrame(dst, start)
}

func (f *fields) parse(body []byte) error {
	c := cursor{body: body}
	f.list = list(&c, "fields", leastField, (*cursor).dumped)
	return c.done()
}

func (c *cursor) dumped() player.Field {
	return player.Field{Name: c.text("a field's name"), Value: c.text("a field's value")}
}
