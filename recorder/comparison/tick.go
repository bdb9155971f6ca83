package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"reprise/format"
)

// A tick is one step of three parameters: the session, the tick, and bytes
// that do not compress.
const (
	// rowBytes is what a tick takes of the command and parameter areas.
	rowBytes    = 40
	fillerBytes = 22

	tickCode = 1
	// above keeps the integers at one size.
	above = 1 << 20
)

// filler is the memory behind a tick's parameters, in whole words.
type filler [(fillerBytes + 7) / 8 * 8]byte

// tickParams are the parameters of a tick.
func tickParams(session int, tick format.Tick, f *filler) [3]format.Value {
	r := rand.NewPCG(uint64(session), uint64(tick))
	for i := 0; i < len(f); i += 8 {
		binary.LittleEndian.PutUint64(f[i:], r.Uint64())
	}
	return [3]format.Value{format.Int(int64(session) + above), format.Int(int64(tick) + above), format.Bytes(f[:fillerBytes])}
}

// metadata opens the n-th session.
func metadata(n int, rate float64) format.Metadata {
	m := format.Metadata{Session: fmt.Sprintf("load-%06d", n), Game: "load", Width: format.Width16}
	if rate > 0 {
		m.TickRate = format.Rate{Num: uint32(rate), Den: 1}
	}
	return m
}

// book names the one command.
func book() *format.CodeBook {
	return &format.CodeBook{Codes: []format.CodeInfo{{Code: tickCode, Name: "load", Params: []format.ParamInfo{
		{Name: "session", Type: "int"}, {Name: "tick", Type: "int"}, {Name: "filler", Type: "bytes"}}}}}
}

// appendRow appends the row bytes of a tick: the entry of its step, then the
// parameters.
func appendRow(dst []byte, session int, tick format.Tick) ([]byte, error) {
	var f filler
	params := tickParams(session, tick, &f)
	dst = append(dst, byte(len(params)), 0, tickCode)
	var err error
	for _, p := range params {
		if dst, err = format.AppendParam(dst, p); err != nil {
			return nil, err
		}
	}
	return dst, nil
}
