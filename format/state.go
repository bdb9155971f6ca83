package format

import (
	"errors"
	"fmt"
	"slices"
)

// ErrState is returned for a State that no array could have saved: it is
// damaged, or its width or length belong to another recording.
var ErrState = errors.New("not a state of a replay array")

// ErrDisabled is returned by AppendState while the array is disabled; nothing
// was added. Revert switches recording on.
var ErrDisabled = errors.New("the array is disabled: call Revert to record again")

// State is a recording as it is saved. The index is not part of it.
type State struct {
	// Length is the number of steps.
	Length int
	// CommandWidth is the width of the command codes.
	CommandWidth Width
	// CommandArray and ParamArray are the two areas. They may be longer
	// than Length steps need; what is behind is ignored.
	CommandArray, ParamArray []byte
}

// SaveState returns the recording. The areas are the array's own, not copies:
// the next write may change them. Copy what is to be kept.
func (a *ReplayArray) SaveState() State {
	return State{
		Length:       len(a.index),
		CommandWidth: a.width,
		CommandArray: a.CommandArea(),
		ParamArray:   a.ParamArea(),
	}
}

// LoadState replaces the recording by s. All of s is checked first: where it
// is refused nothing changes. The array takes over the areas of s without a
// copy; they belong to the array from then on. Every stream expires.
func (a *ReplayArray) LoadState(s State) error {
	if err := s.checkSteps(); err != nil {
		return err
	}
	if s.Length > a.maxSteps {
		return fmt.Errorf("%w: %d steps, the array holds %d", WarnFull, s.Length, a.maxSteps)
	}
	index, used, err := s.appendIndex(make([]uint32, 0, s.Length), 0)
	if err != nil {
		return err
	}
	if used > a.maxParamBytes {
		return fmt.Errorf("%w: %d parameter bytes, the array holds %d", WarnFull, used, a.maxParamBytes)
	}
	a.width, a.stride = s.CommandWidth, s.CommandWidth.entry()
	commands := s.Length * a.stride
	// The capacity ends with what is used: bytes behind it may be others'.
	a.commands = s.CommandArray[:commands:commands]
	a.params = s.ParamArray[:used:used]
	a.index = index
	a.writes++
	return nil
}

// AppendState appends all steps of s, in bulk. All of s is checked first:
// where it is refused nothing changes. The areas are copied. At the array's
// maximum the error is a Warning of WarnFull, which Warn gets too; a State of
// another command width is refused.
func (a *ReplayArray) AppendState(s State) error {
	if a.disabled {
		return ErrDisabled
	}
	if err := s.checkSteps(); err != nil {
		return err
	}
	if s.CommandWidth != a.width {
		return fmt.Errorf("%w: its command width is %d, the array's is %d: set the width first", ErrState, s.CommandWidth, a.width)
	}
	steps := len(a.index)
	if s.Length > a.maxSteps-steps {
		return a.full("command area")
	}
	a.growSteps(steps + s.Length)
	index, used, err := s.appendIndex(a.index, len(a.params))
	if err != nil {
		return err
	}
	if used > a.maxParamBytes-len(a.params) {
		return a.full("parameter area")
	}
	a.growParams(len(a.params) + used)
	a.params = append(a.params, s.ParamArray[:used]...)
	a.commands = append(a.commands, s.CommandArray[:s.Length*a.stride]...)
	a.index = index
	a.writes++
	return nil
}

// full reports that the array is at its maximum, and returns the report.
func (a *ReplayArray) full(area string) error {
	w := Warning{Code: WarnFull, Step: len(a.index), Detail: area}
	a.report(w)
	return w
}

// RebuildIndex makes the index anew from the two areas. It is needed only
// after a change made through CommandArea or ParamArea. Where the areas do
// not hold exactly the steps it changes nothing and returns an error.
func (a *ReplayArray) RebuildIndex() error {
	index, used, err := a.SaveState().appendIndex(make([]uint32, 0, cap(a.index)), 0)
	if err != nil {
		return err
	}
	if used != len(a.params) {
		return fmt.Errorf("%w: its steps take %s of the parameter area, not all %d", ErrState, plural(used, "byte"), len(a.params))
	}
	a.index = index
	return nil
}

// Trim checks all of s and returns it without the bytes behind its steps. It
// shares the memory of s.
func (s State) Trim() (State, error) {
	if err := s.checkSteps(); err != nil {
		return State{}, err
	}
	_, used, err := s.appendIndex(make([]uint32, 0, s.Length), 0)
	if err != nil {
		return State{}, err
	}
	commands := s.Length * s.CommandWidth.entry()
	s.CommandArray = s.CommandArray[:commands:commands]
	s.ParamArray = s.ParamArray[:used:used]
	return s, nil
}

// checkSteps checks width, length and command area.
func (s State) checkSteps() error {
	if s.CommandWidth != Width8 && s.CommandWidth != Width16 {
		return fmt.Errorf("%w: its command width is %d, not 8 or 16", ErrState, s.CommandWidth)
	}
	if s.Length < 0 {
		return fmt.Errorf("%w: its length is %d", ErrState, s.Length)
	}
	if room := len(s.CommandArray) / s.CommandWidth.entry(); s.Length > room {
		return fmt.Errorf("%w: its command area ends after step %d of %d", ErrState, room, s.Length)
	}
	return nil
}

// appendIndex checks the parameters of every step and appends to index where
// they start, counted from base. It returns the length of all of them. The
// steps have been checked.
func (s State) appendIndex(index []uint32, base int) ([]uint32, int, error) {
	stride, at := s.CommandWidth.entry(), 0
	index = slices.Grow(index, s.Length)
	for i := range s.Length {
		index = append(index, uint32(base+at))
		end, err := skipParams(s.ParamArray, at, int(s.CommandArray[i*stride]))
		if err != nil {
			return nil, 0, fmt.Errorf("%w: step %d: %w", ErrState, i, err)
		}
		at = end
	}
	return index, at, nil
}
