package recorder

import (
	"fmt"
	"math"
	"slices"

	"reprise/format"
)

// tailLimit bounds nothing: heldLimit does so before, and may change.
const tailLimit = math.MaxInt32

// Tail returns the session's last steps: those that are not in its file yet.
// They are put into one array when somebody asks, from the chunks that wait:
// with each chunk that was a fifteenth of the daemon's work.
func (h *Session) Tail() (format.State, error) {
	s := h.s
	s.entry.Lock()
	defer s.entry.Unlock()
	chunks := s.waiting()
	if len(chunks) == 0 {
		return format.State{}, nil
	}
	tail, err := joinSteps(chunks, s.hashBytes())
	if err != nil {
		return format.State{}, fmt.Errorf("tail of session %s: %w", s.id, err)
	}
	return tail, nil
}

// waiting is a copy of the chunks that are not in the file.
func (s *recording) waiting() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written == 0 {
		return slices.Clone(s.pending[min(len(s.pending), format.HeaderSize):])
	}
	return slices.Clone(s.pending)
}

// joinSteps puts the steps of all ticks chunks into one array.
func joinSteps(chunks []byte, hashBytes int) (format.State, error) {
	var tail *format.ReplayArray
	for len(chunks) > 0 {
		c, n, err := format.ParseChunk(chunks)
		if err != nil {
			return format.State{}, err
		}
		if chunks = chunks[n:]; c.Type != format.ChunkTicks {
			continue
		}
		b, err := format.ParseBatch(c.Body, hashBytes)
		if err != nil {
			return format.State{}, err
		}
		if tail == nil {
			tail = format.NewArray(format.Options{Width: b.State().CommandWidth, MaxSteps: tailLimit, MaxParamBytes: tailLimit})
		}
		if err := tail.AppendState(b.State()); err != nil {
			return format.State{}, err
		}
	}
	if tail == nil {
		return format.State{}, nil
	}
	return tail.SaveState(), nil
}
