package format

// The columns of a chunk. A step's code and number of parameters are one
// symbol. A parameter belongs to a column of its code by its place, and a column
// keeps the values of each kind apart, as numbers.

const (
	// maxColumns is how many columns a code has without a counted list, and
	// countedColumns with one, which has the last of them to itself.
	maxColumns     = 16
	countedColumns = 24
	listColumn     = countedColumns - 1
	// smallStream is where a stream gets a frame of its own. Shorter ones share
	// one.
	smallStream = 768
	// maxShapes and maxColumnCodes bound the pairs of code and number of
	// parameters, and the codes, of a chunk of columns.
	maxShapes      = 1 << 16
	maxColumnCodes = 1 << 10
)

// Streams of a column stand in this order. It must not change.
const (
	streamInts     = 0
	streamF32      = 1
	streamF64      = 2
	streamTexts    = 3 // 0: a new text; n: the n-th of the chunk
	streamLengths  = 4 // of lists
	streamElements = 5 // of lists

	streams = 6
)

// Transforms of numbers are stored in files. They must not change.
const (
	deltaNone   = 0 // the number
	deltaLast   = 1 // the distance to the stream's number before
	deltaPlayer = 2 // the distance to the same player's number before
	deltaLeft   = 3 // the distance to the integer on its left in the step, or in the list

	deltas = 4
)

// Forms of numbers are stored in files. They must not change.
const (
	formVarint = 0 // uvarints
	formPlanes = 1 // the lowest bytes of all numbers, then the next ones, ...
	formFixed  = 2 // the bytes of each number together, the lowest first

	forms = 3
)

// layout says how a code's parameters are spread over columns: over at most
// 16, 8, 4 or 2 by its lowest two bits; with bit 2 counted from the last
// parameter on, which keeps what stands behind a list of changing length in its
// column. The layouts from layoutCounted on are for steps in which a parameter
// says how many of those behind it are a list: parameter 1 in the first of
// them, parameter 2 in the next, and so on.
type layout uint8

// Layouts are stored in files. They must not change.
const (
	layoutCounted = 8

	layouts = 16
)

// stepColumns gives the columns of one step's parameters.
type stepColumns struct {
	layout layout
	count  int // parameters of the step
	length int // of the counted list
	end    int // place behind it
}

// column is the column of parameter i. The last column of a layout is that of
// all later parameters; a counted list has one more.
func (s *stepColumns) column(i int) int {
	switch {
	case s.layout >= layoutCounted && i < s.end && i >= s.end-s.length:
		return listColumn
	case s.layout >= layoutCounted && i >= s.end:
		return min(i-s.length, listColumn-1)
	case s.layout >= layoutCounted:
		return i
	case s.layout&4 != 0 && i > 0:
		i = s.count - i
	}
	return min(i, maxColumns>>(s.layout&3)-1)
}

// counts tells whether parameter i counts a list.
func (s *stepColumns) counts(i int) bool {
	return s.layout >= layoutCounted && i == int(s.layout-layoutCounted)+1
}

// behind is how many parameters stand behind parameter i: a list's length is
// kept as the distance to it.
func (s *stepColumns) behind(i int) uint64 { return uint64(s.count - i - 1) }

// setList takes the length of the list behind parameter i. One that does not
// fit is none.
func (s *stepColumns) setList(i int, n uint64) {
	if n <= s.behind(i) {
		s.length, s.end = int(n), i+1+int(n)
	}
}

// A stream of numbers begins with a byte: its form, its transform and the bytes
// of its largest number.

func numbersHead(form, delta, width int) byte { return byte(form | delta<<2 | width<<4) }

// deltas of numbers are of 64 bits and wrap.
func deltaOf(v, ref uint64) uint64 { return zigzag(int64(v - ref)) }
func sumOf(d, ref uint64) uint64   { return uint64(unzigzag(d)) + ref }
