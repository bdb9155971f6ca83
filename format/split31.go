package format

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// split31 is where the original engine splits the magnitude of a 64-bit
// integer (types 4 and 5). This format splits it at 2^32.
const split31 = 31

// ConvertSplit31 converts a State saved by the original engine, which splits
// 64-bit integers at 2^31 and not at 2^32, into one of this format; with
// toEngine set it converts the other way. Nothing else changes, and the way
// back gives the same bytes. What has no counterpart is refused: an engine's
// half with its top bit set, and towards the engine a magnitude of 2^62 or
// more. The result is trimmed; it shares the command area of s, not the
// parameter area.
func ConvertSplit31(s State, toEngine bool) (State, error) {
	s, err := s.Trim()
	if err != nil {
		return State{}, err
	}
	s.ParamArray = bytes.Clone(s.ParamArray)
	stride, rest := s.CommandWidth.entry(), s.ParamArray
	for i := range s.Length {
		for range s.CommandArray[i*stride] {
			n, err := ParamLength(rest)
			if err == nil {
				err = resplit(rest[:n], toEngine)
			}
			if err != nil {
				return State{}, fmt.Errorf("step %d: parameter at byte %d: %w", i, len(s.ParamArray)-len(rest), err)
			}
			rest = rest[n:]
		}
	}
	return s, nil
}

// resplit changes one parameter in place where it is a 64-bit integer.
func resplit(param []byte, toEngine bool) error {
	if t := param[0]; t != typeInt64 && t != typeNegInt64 {
		return nil
	}
	stored := swapHalves(binary.BigEndian.Uint64(param[1:]))
	if toEngine {
		if stored>>(2*split31) != 0 {
			return fmt.Errorf("%w: the engine's integers end below 2^62, this one's magnitude is %d", ErrLossy, stored)
		}
		high, low := stored>>split31, stored&(1<<split31-1)
		stored = high<<32 | low
	} else {
		high, low := stored>>32, stored&(1<<32-1)
		if (high|low)>>split31 != 0 {
			return fmt.Errorf("%w: the halves %08x and %08x were not split at 2^31", ErrState, low, high)
		}
		stored = high<<split31 | low
	}
	binary.BigEndian.PutUint64(param[1:], swapHalves(stored))
	return nil
}
