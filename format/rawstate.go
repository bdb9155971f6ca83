package format

import (
	"fmt"
	"io"
)

// ImportState writes a replay of a raw saveState, its parameter bytes as they
// are: a recording without a clock in which every step is a tick of its
// own, for nothing else is known of it. out must be empty. A state that is
// not whole is refused as by LoadState.
func ImportState(out ReplayFile, s State) error {
	s, err := s.Trim()
	if err != nil {
		return err
	}
	w, err := NewWriter(out, &Metadata{Width: s.CommandWidth}, nil)
	if err != nil {
		return err
	}
	size := s.CommandWidth.entry()
	rest := s.ParamArray
	for i := range s.Length {
		command := s.CommandArray[i*size : (i+1)*size]
		n, err := ParamsLength(rest, int(command[0]))
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if err := w.Add(&TickRecord{Tick: Tick(i), Width: s.CommandWidth, Steps: 1, Commands: command, Params: rest[:n]}); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return w.Finish(EndSealed, "")
}

// ExportState gives all steps of a replay as one raw saveState: exactly the
// parameter bytes that the replay holds. Ticks, hashes, keyframes and all
// that a saveState has no place for are left behind; a replay that does not
// fit the width of 8 bits keeps 16.
func ExportState(f *File) (State, error) {
	s := State{CommandWidth: f.Summary().Meta.Width}
	r := f.Reader()
	var t TickRecord
	for {
		err := r.Next(&t)
		if err == io.EOF {
			return s, nil
		}
		if err != nil {
			return State{}, err
		}
		s.Length += t.Steps
		s.CommandArray = append(s.CommandArray, t.Commands...)
		s.ParamArray = append(s.ParamArray, t.Params...)
	}
}
