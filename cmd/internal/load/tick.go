package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"reprise/format"
)

const (
	loadCode = 1
	// minTickBytes is a tick without filler: entry, session, tick and the
	// head of the filler.
	minTickBytes = 3 + 5 + 5 + 5
)

// record records one tick: its content follows from session and tick, so
// that a reader can tell whether it is the right one.
func (g *generator) record(s *session) error {
	var filler [256]byte
	n := min(g.cfg.TickBytes-minTickBytes, len(filler))
	fill(filler[:n], s.index, s.next)
	err := s.recording.Step(loadCode, format.Int(int64(s.index)+1<<20), format.Int(int64(s.next)+1<<20), format.Bytes(filler[:n]))
	if err != nil {
		return err
	}
	return s.recording.EndTick()
}

// fill makes bytes that do not compress.
func fill(b []byte, session int, tick format.Tick) {
	r := rand.NewPCG(uint64(session), uint64(tick))
	for i := 0; i < len(b); i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], r.Uint64())
		copy(b[i:], word[:])
	}
}

// ErrWrongTick is returned for a tick that holds something else than what
// was recorded.
var ErrWrongTick = errors.New("a tick holds something else than was recorded")

// CountTicks reads the replay of the n-th session and counts its ticks, each
// with the content that was recorded, from the first one on without a hole.
func CountTicks(path string, n int) (uint64, error) {
	f, err := format.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r := f.Reader()
	var t format.TickRecord
	var steps format.StepReader
	count := uint64(0)
	for {
		err := r.Next(&t)
		if err == io.EOF {
			return count, nil
		}
		if err != nil {
			return count, err
		}
		if err := checkTick(&t, &steps, n, format.Tick(count)); err != nil {
			return count, err
		}
		count++
	}
}

func checkTick(t *format.TickRecord, steps *format.StepReader, session int, due format.Tick) error {
	var step format.Step
	steps.Reset(t)
	if t.Tick != due || t.Steps != 1 || !steps.Next(&step) || len(step.Params) != 3 {
		return fmt.Errorf("%w: tick %d where %d is due, %d steps", ErrWrongTick, t.Tick, due, t.Steps)
	}
	filler := step.Params[2].ByteSlice()
	want := make([]byte, len(filler))
	fill(want, session, due)
	s, _ := step.Params[0].Int64()
	at, _ := step.Params[1].Int64()
	if s != int64(session)+1<<20 || at != int64(due)+1<<20 || string(want) != string(filler) {
		return fmt.Errorf("%w: tick %d of session %d", ErrWrongTick, due, session)
	}
	return nil
}
