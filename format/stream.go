package format

// ReadStream reads the steps of an array in order. It keeps two cursors and
// copies nothing. A write to the array expires it: it still reads, with a
// warning, but what it reads may have been moved or overwritten.
type ReadStream struct {
	array *ReplayArray
	// writes is the array's count of writes when the stream was made.
	writes uint64

	commands, params []byte
	width            Width
	stride           int
	// index counts the steps read (and skipped); at is the parameter cursor.
	index, length, at int
	values            []Value
}

// Stream returns a stream whose first Read gives step start. A start outside
// of 0 to Len means the nearer of the two.
func (a *ReplayArray) Stream(start int) *ReadStream {
	start = max(0, min(start, len(a.index)))
	return &ReadStream{
		array:    a,
		writes:   a.writes,
		commands: a.commands,
		params:   a.params,
		width:    a.width,
		stride:   a.stride,
		index:    start,
		length:   len(a.index),
		at:       a.paramStart(start),
	}
}

// Read gives the next step, whose Index is the number of steps up to and with
// it; false after the last one. Params is reused by the next Read. On an
// expired stream it warns (WarnExpiredRead) and reads on; where the bytes
// under it are no step any more it returns false.
func (s *ReadStream) Read() (Step, bool) {
	var step Step
	ok := s.ReadInto(&step)
	return step, ok
}

// ReadInto is Read into a Step of the caller's, which spares a copy. Where it
// returns false the Step is unchanged.
func (s *ReadStream) ReadInto(step *Step) bool {
	if s.array == nil {
		return false
	}
	if s.writes != s.array.writes {
		s.array.report(Warning{Code: WarnExpiredRead, Step: s.index})
	}
	if s.index >= s.length {
		return false
	}
	count, code := readCommand(s.commands[s.index*s.stride:], s.width)
	if count > len(s.values) {
		s.values = make([]Value, max(count, 8))
	}
	values := s.values[:count]
	n, at := readNumbers(values, s.params, s.at)
	if n < count {
		var ok bool
		if at, ok = s.array.readParams(values, n, s.params, at, s.index); !ok {
			return false
		}
	}
	s.at = at
	s.index++
	step.Code, step.Index, step.Params = code, s.index, values
	return true
}

// Index returns the number of steps read, counted from the array's first.
func (s *ReadStream) Index() int { return s.index }

// Len returns the number of steps of the array when the stream was made.
func (s *ReadStream) Len() int { return s.length }

// Expired reports whether the array was written to since the stream was made.
// A destroyed stream keeps what it was.
func (s *ReadStream) Expired() bool {
	return s.array != nil && s.writes != s.array.writes
}

// Destroy gives the stream up: it reads nothing more and holds on to nothing.
func (s *ReadStream) Destroy() {
	s.array, s.commands, s.params, s.values = nil, nil, nil, nil
}
