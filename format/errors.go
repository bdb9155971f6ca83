package format

import (
	"errors"
	"fmt"
)

// The four answers that a file can give instead of its content. A caller
// branches on them with errors.Is; the error's text says where.
var (
	// ErrNotReplay is returned for bytes that do not begin like any replay
	// format known here.
	ErrNotReplay = errors.New("not a replay")
	// ErrNewer is returned for a replay that needs a newer program: its
	// major version, or a critical chunk, is not known here.
	ErrNewer = errors.New("newer than this program")
	// ErrTorn is returned where a replay ends inside a record: the writer
	// or a copy was cut. All before the cut is good; see Repair.
	ErrTorn = errors.New("torn")
	// ErrCorrupt is returned where stored bytes cannot be what was
	// written. See CorruptError for the place.
	ErrCorrupt = errors.New("damaged")
)

// ErrLossy is returned by a conversion that would lose something that the
// target format cannot hold; the text says what.
var ErrLossy = errors.New("conversion would lose data")

// CorruptError says where a replay is damaged. It matches ErrCorrupt.
type CorruptError struct {
	// Offset is the place in the file (for text formats: in bytes, too).
	Offset int64
	// What names the field and the reason.
	What string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("damaged at offset %d: %s", e.Offset, e.What)
}

// Is matches ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// TornError says where a replay was cut. It matches ErrTorn.
type TornError struct {
	// Offset is the end of the last whole record, Size the file's size.
	Offset, Size int64
	// NextTick is the tick after the last whole one.
	NextTick Tick
	// Ticks is the number of whole ticks before the cut.
	Ticks uint64
}

func (e *TornError) Error() string {
	last := "no whole tick"
	if e.Ticks > 0 {
		last = fmt.Sprintf("last whole tick %d", e.NextTick-1)
	}
	if e.Offset == e.Size {
		return fmt.Sprintf("torn at offset %d (the rest is missing), %s", e.Offset, last)
	}
	return fmt.Sprintf("torn at offset %d (%s of an unfinished record), %s", e.Offset, plural(e.Size-e.Offset, "byte"), last)
}

// Is matches ErrTorn.
func (e *TornError) Is(target error) bool { return target == ErrTorn }

// Refusals of a chunk that cannot follow the chunks before it. The session
// is unchanged by a refused chunk.
var (
	// ErrOrder is returned for a tick, sequence number or time that does
	// not follow the last one.
	ErrOrder = errors.New("out of order")
	// ErrTotals is returned where declared final counts differ from what
	// was recorded.
	ErrTotals = errors.New("final counts differ from what was recorded")
	// ErrLimit is returned where something exceeds a named limit.
	ErrLimit = errors.New("over the limit")
)

// OrderError is a chunk that cannot follow: tick Got where Want was due.
// It matches ErrOrder.
type OrderError struct {
	What      string
	Want, Got uint64
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("%s %d out of order: %d was due", e.What, e.Got, e.Want)
}

// Is matches ErrOrder.
func (e *OrderError) Is(target error) bool { return target == ErrOrder }

// corrupt makes a CorruptError relative to the body that is being parsed;
// readers add the body's place in the file with shift.
func corrupt(offset int, what string, args ...any) error {
	return &CorruptError{Offset: int64(offset), What: fmt.Sprintf(what, args...)}
}

// shift moves the place of a CorruptError by base.
func shift(err error, base int64) error {
	var c *CorruptError
	if errors.As(err, &c) {
		return &CorruptError{Offset: c.Offset + base, What: c.What}
	}
	return err
}
