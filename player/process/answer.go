package process

import (
	"reprise/format"
	"reprise/player"
)

// done is the answer to a tick that was simulated.
type done struct {
	tick    format.Tick
	ignored uint32
	// hash is valid as long as the body.
	hash []byte
}

func (d *done) append(dst []byte) []byte {
	start := len(dst)
	dst = beginFrame(dst, typeDone)
	dst = order.AppendUint64(dst, uint64(d.tick))
	dst = order.AppendUint32(dst, d.ignored)
	return endFrame(appendText(dst, d.hash), start)
}

func (d *done) parse(body []byte) error {
	c := cursor{body: body}
	d.tick = format.Tick(c.u64("the tick"))
	d.ignored = c.u32("the ignored steps")
	d.hash = c.bytes("the hash")
	if len(d.hash) > format.MaxHashBytes {
		c.fail("a hash of %d bytes, the most is %d", len(d.hash), format.MaxHashBytes)
	}
	return c.done()
}

// failed is the answer to a tick one of whose steps could not be carried out.
type failed struct {
	tick format.Tick
	// at and step are where the step stands; at is another tick than the
	// answered one only in a game that looks ahead.
	at    format.Tick
	step  uint32
	code  uint16
	phase uint8
	// ignored counts the ignored steps before it.
	ignored uint32
	text    string
}

// The phases are part of the protocol. They must not change.
var phases = []player.Phase{0: player.PhaseExecute, 1: player.PhasePassive, 2: player.PhaseFinalize}

func (f *failed) append(dst []byte) []byte {
	start := len(dst)
	dst = beginFrame(dst, typeFailed)
	dst = order.AppendUint64(dst, uint64(f.tick))
	dst = order.AppendUint64(dst, uint64(f.at))
	dst = order.AppendUint32(dst, f.step)
	dst = order.AppendUint16(dst, f.code)
	dst = append(dst, f.phase)
	dst = order.AppendUint32(dst, f.ignored)
	return endFrame(appendText(dst, f.text), start)
}

func (f *failed) parse(body []byte) error {
	c := cursor{body: body}
	f.tick = format.Tick(c.u64("the tick"))
	f.at = format.Tick(c.u64("the step's tick"))
	f.step = c.u32("the step")
	f.code = c.u16("the code")
	if f.phase = c.u8("the phase"); int(f.phase) >= len(phases) {
		c.fail("phase %d", f.phase)
	}
	f.ignored = c.u32("the ignored steps")
	f.text = c.text("the reason")
	return c.done()
}

// failure is the failed step as the player knows it.
func (f *failed) failure() *player.StepFailure {
	return &player.StepFailure{Tick: f.at, HasTick: true, Step: int(f.step), Code: f.code, Phase: phases[f.phase], Err: reasonError(f.text)}
}

// newFailed writes a failed step down.
func newFailed(o player.Outcome) failed {
	f := failed{tick: o.Tick, at: o.Failure.Tick, step: uint32(o.Failure.Step), code: o.Failure.Code, ignored: uint32(o.Ignored)}
	if !o.Failure.HasTick {
		f.at = o.Tick
	}
	for i, p := range phases {
		if p == o.Failure.Phase {
			f.phase = uint8(i)
		}
	}
	if o.Failure.Err != nil {
		f.text = o.Failure.Err.Error()
	}
	return f
}

// broken says that the simulation cannot go on from a tick.
type broken struct {
	tick format.Tick
	text string
}

func (b *broken) append(dst []byte) []byte {
	start := len(dst)
	dst = beginFrame(dst, typeBroken)
	dst = order.AppendUint64(dst, uint64(b.tick))
	return endFrame(appendText(dst, b.text), start)
}

func (b *broken) parse(body []byte) error {
	c := cursor{body: body}
	b.tick = format.Tick(c.u64("the tick"))
	b.text = c.text("the reason")
	return c.done()
}

// failure is what the player knows of it.
func (b *broken) failure() *player.SimulationError {
	return &player.SimulationError{Tick: b.tick, HasTick: true, What: "could not go on", Err: reasonError(b.text)}
}

// flush asks for the answers that are due.
type flush struct {
	mode flushMode
}

// flushMode says which answers are due.
type flushMode uint8

// The modes are part of the protocol. They must not change.
const (
	// flushSettled: of every tick that later steps cannot change any more.
	flushSettled flushMode = 0
	// flushAll: of every tick.
	flushAll flushMode = 1
	// flushFinal: of every tick; no step will follow.
	flushFinal flushMode = 2
)

func (f *flush) append(dst []byte) []byte {
	start := len(dst)
	dst = beginFrame(dst, typeFlush)
	return endFrame(append(dst, byte(f.mode)), start)
}

func (f *flush) parse(body []byte) error {
	c := cursor{body: body}
	if f.mode = flushMode(c.u8("the mode")); f.mode > flushFinal {
		c.fail("mode %d", f.mode)
	}
	return c.done()
}
