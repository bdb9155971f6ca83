package player

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"reprise/format"
)

// mixer is a lockstep game of two numbers. Every step and every tick changes
// both for good, so one changed input changes all hashes after it.
type mixer struct {
	world, random uint32
	// Faults, by the code of a step or the number of a tick.
	answer      map[uint16]Result
	panicStep   uint16
	endTick     func(tick format.Tick) error
	hash        func(dst []byte) []byte
	resets      []Start
	steps       int
	refuseState bool
}

var errNoSave = errors.New("keyframe is not mine")

func (m *mixer) Reset(start Start) error {
	m.resets = append(m.resets, start)
	m.world, m.random = 1, uint32(start.Meta.Seed)
	if start.State == nil {
		return nil
	}
	if len(start.State) != 8 || m.refuseState {
		return errNoSave
	}
	m.world = binary.BigEndian.Uint32(start.State)
	m.random = binary.BigEndian.Uint32(start.State[4:])
	return nil
}

func (m *mixer) Step(tick format.Tick, step format.Step) (Result, error) {
	m.steps++
	if m.panicStep != 0 && step.Code == m.panicStep {
		panic("unit has no owner")
	}
	if r := m.answer[step.Code]; r != Success {
		return r, errors.New("not enough gold")
	}
	for _, p := range step.Params {
		v, _ := p.Int64()
		m.world = m.world*31 + uint32(v) + uint32(len(p.Str()))
	}
	m.world = m.world*31 + uint32(step.Code)
	return Success, nil
}

func (m *mixer) EndTick(tick format.Tick) error {
	m.random = m.random*1664525 + 1013904223
	m.world ^= m.random >> 16
	if m.endTick != nil {
		return m.endTick(tick)
	}
	return nil
}

func (m *mixer) Hash(dst []byte) []byte {
	if m.hash != nil {
		return m.hash(dst)
	}
	return m.Save(dst)
}

func (m *mixer) Save(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, m.world)
	return binary.BigEndian.AppendUint32(dst, m.random)
}

func (m *mixer) Load(state []byte) error {
	if len(state) != 8 {
		return errNoSave
	}
	m.world, m.random = binary.BigEndian.Uint32(state), binary.BigEndian.Uint32(state[4:])
	return nil
}

// tickOf makes a tick record of steps.
func tickOf(tick format.Tick, steps ...format.Step) *format.TickRecord {
	a := format.NewArray(format.Options{Width: format.Width16})
	for _, s := range steps {
		a.Add(s.Code, s.Params...)
	}
	return &format.TickRecord{
		Tick: tick, Width: format.Width16, Steps: len(steps),
		Commands: bytes.Clone(a.CommandArea()), Params: bytes.Clone(a.ParamArea()),
	}
}

func stepOf(code uint16, params ...format.Value) format.Step {
	return format.Step{Code: code, Params: params}
}

// tape is a replay in memory, and a Source of it.
type tape struct {
	meta  *format.Metadata
	items []Item
	at    int
	// before is called with the number of the item that Next gives.
	before func(i int)
	// end is given behind the last item instead of io.EOF.
	end error
}

func (s *tape) Next() (Item, error) {
	if s.before != nil {
		s.before(s.at)
	}
	if s.at == len(s.items) {
		if s.end != nil {
			return Item{}, s.end
		}
		return Item{}, io.EOF
	}
	s.at++
	return s.items[s.at-1], nil
}

// copy gives the same replay from its beginning, its ticks free to be changed.
func (s *tape) copy() *tape {
	c := &tape{meta: s.meta, before: s.before, end: s.end}
	for _, item := range s.items {
		if item.Tick != nil {
			t := *item.Tick
			t.Hash = bytes.Clone(t.Hash)
			item.Tick = &t
		}
		c.items = append(c.items, item)
	}
	return c
}

// tick finds a tick.
func (s *tape) tick(n format.Tick) *format.TickRecord {
	for _, item := range s.items {
		if item.Tick != nil && item.Tick.Tick == n {
			return item.Tick
		}
	}
	return nil
}

func mixerMeta() *format.Metadata {
	return &format.Metadata{
		Game: "mixer", Seed: 7, TickRate: format.Rate{Num: 30, Den: 1},
		HashBytes: 8, HashParts: []format.HashPart{{Name: "world", Bytes: 4}, {Name: "random", Bytes: 4}},
	}
}

// tapeOf records a match of the mixer: ticks from 0 on with 0 to 2 steps, each
// with its time, a hash after every hashEvery-th (of those whose number it
// divides; 0: none).
func tapeOf(t testing.TB, ticks, hashEvery int) *tape {
	t.Helper()
	s := &tape{meta: mixerMeta()}
	var game mixer
	game.Reset(Start{Meta: s.meta})
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range ticks {
		var steps []format.Step
		for range rng.IntN(3) {
			steps = append(steps, stepOf(uint16(1+rng.IntN(5)), format.Int(rng.Int64N(1000)), format.String("north")))
		}
		record := tickOf(format.Tick(n), steps...)
		for _, step := range steps {
			game.Step(record.Tick, step)
		}
		game.EndTick(record.Tick)
		if hashEvery > 0 && n%hashEvery == 0 {
			record.Hash = game.Hash(nil)
		}
		record.Time, record.HasTime = int64(n)*40_000, true
		s.items = append(s.items, Item{Tick: record})
	}
	return s
}

// stateBefore plays the mixer up to a tick and saves it.
func (s *tape) stateBefore(t testing.TB, tick format.Tick) []byte {
	t.Helper()
	var game mixer
	local := NewLocal(&game)
	if err := local.Reset(Start{Meta: s.meta}); err != nil {
		t.Fatal(err)
	}
	for n := range tick {
		if err := local.Advance(s.tick(n), false, func(Outcome) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return game.Save(nil)
}

// cut gives the replay without the ticks of a gap, which it declares where
// declared is set, and with a keyframe behind it where framed is set.
func (s *tape) cut(t testing.TB, first, last format.Tick, declared, framed bool) *tape {
	t.Helper()
	c := &tape{meta: s.meta}
	for _, item := range s.items {
		if n := item.Tick.Tick; n < first || n > last {
			c.items = append(c.items, item)
			continue
		}
		if item.Tick.Tick != last {
			continue
		}
		if declared {
			c.items = append(c.items, Item{Gap: &format.Gap{First: first, Last: last, Reason: "spool full"}})
		}
		if framed {
			c.items = append(c.items, Item{Keyframe: &format.Keyframe{NextTick: last + 1, State: s.stateBefore(t, last+1)}})
		}
	}
	return c
}

// slow is a simulation that answers lag ticks late, like a host in another
// process.
type slow struct {
	*Local
	lag     int
	waiting []Outcome
}

func (s *slow) Reset(start Start) error {
	s.waiting = nil
	return s.Local.Reset(start)
}

func (s *slow) Advance(tick *format.TickRecord, wantHash bool, emit func(Outcome) error) error {
	err := s.Local.Advance(tick, wantHash, func(o Outcome) error {
		o.Hash = bytes.Clone(o.Hash)
		s.waiting = append(s.waiting, o)
		return nil
	})
	var failure *StepFailure
	if err != nil && !errors.As(err, &failure) {
		return err
	}
	return s.answer(s.lag, emit)
}

func (s *slow) Flush(final bool, emit func(Outcome) error) error { return s.answer(0, emit) }

func (s *slow) answer(keep int, emit func(Outcome) error) error {
	for len(s.waiting) > keep {
		o := s.waiting[0]
		s.waiting = s.waiting[1:]
		if err := emit(o); err != nil {
			return err
		}
	}
	return nil
}
