package load

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"reprise/format"
	"reprise/transport"
)

// Script says what a session records.
type Script struct {
	// Session is the id.
	Session string
	// Number tells the contents of sessions apart.
	Number int
	// Rate is ticks a second; 0 is a session without a clock.
	Rate float64
	// Players is the number of steps of a tick, one of each player in their
	// order; 0 means 1.
	Players int
	// StepBytes is about the size of a step; see MinStepBytes and
	// MaxStepBytes, which bound it.
	StepBytes int
	// StartedAt is that of the metadata; 0 takes the present time.
	StartedAt int64
}

const (
	// MinStepBytes is a step without filler: entry, session, tick and the
	// head of the filler.
	MinStepBytes = 3 + 5 + 5 + 5
	// MaxStepBytes is one with the longest filler.
	MaxStepBytes = MinStepBytes + maxFiller

	maxFiller = 256
	// firstCode is the code of the first player's steps, the others follow.
	firstCode = 1
	// numberBase gives all sessions and ticks numbers of the same size.
	numberBase = 1 << 20
)

func (s *Script) players() int { return max(s.Players, 1) }

func (s *Script) filler() int { return min(max(s.StepBytes-MinStepBytes, 0), maxFiller) }

// Spec is what a client opens the session with.
func (s *Script) Spec() transport.Spec {
	book := &format.CodeBook{}
	for p := range s.players() {
		book.Codes = append(book.Codes, format.CodeInfo{Code: firstCode + uint16(p), Name: fmt.Sprintf("player-%d", p),
			Params: []format.ParamInfo{{Name: "session", Type: "int"}, {Name: "tick", Type: "int"}, {Name: "filler", Type: "bytes"}}})
	}
	meta := format.Metadata{Session: s.Session, Game: "load", TickRate: exactRate(s.Rate), Width: format.Width16, StartedAt: s.StartedAt}
	return transport.Spec{Meta: meta, Book: book}
}

// exactRate is the rate to the thousandth of a tick.
func exactRate(rate float64) format.Rate {
	if rate <= 0 {
		return format.Rate{}
	}
	return format.Rate{Num: uint32(math.Round(rate * 1000)), Den: 1000}
}

// writer makes a script's steps, without an allocation for each.
type writer struct {
	script *Script
	filler [maxFiller]byte
	params [3]format.Value
	random rand.PCG
}

// step is the step of a player in a tick. It is valid until the next call.
func (w *writer) step(tick format.Tick, player int) (code uint16, params []format.Value) {
	filler := w.filler[:w.script.filler()]
	w.random.Seed(uint64(w.script.Number), uint64(tick)<<8|uint64(player))
	for rest := filler; len(rest) > 0; {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], w.random.Uint64())
		rest = rest[copy(rest, word[:]):]
	}
	w.params = [...]format.Value{format.Int(numberBase + int64(w.script.Number)), format.Int(numberBase + int64(tick)), format.Bytes(filler)}
	return firstCode + uint16(player), w.params[:]
}

// holds tells whether a tick is the script's.
func (w *writer) holds(t *format.TickRecord, steps *format.StepReader) bool {
	if t.Steps != w.script.players() {
		return false
	}
	steps.Reset(t)
	for player := range t.Steps {
		var got format.Step
		code, params := w.step(t.Tick, player)
		if !steps.Next(&got) || got.Code != code || len(got.Params) != len(params) {
			return false
		}
		for i := range params {
			if !got.Params[i].Equal(params[i]) {
				return false
			}
		}
	}
	return true
}
