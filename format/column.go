package format

// The columns of a chunk. A step's code and number of parameters are one
// symbol. A parameter belongs to a column of its code by its place, and a column
// keeps the values of each kind apart, as numbers.

const (
	// maxColumns is how many columns a code has.
	maxColumns = 16
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
// column.
type layout uint8

const layouts = 8

// column is the column of parameter i of count. The first parameter has the
// first column to itself, the last column is that of all later ones.
func (l layout) column(i, count int) int {
	if l&4 != 0 && i > 0 {
		i = count - i
	}
	return min(i, maxColumns>>(l&3)-1)
}

// A stream of numbers begins with a byte: its form, its transform and the bytes
// of its largest number.

func numbersHead(form, delta, width int) byte { return byte(form | delta<<2 | width<<4) }

// deltas of numbers are of 64 bits and wrap.
func deltaOf(v, ref uint64) uint64 { return zigzag(int64(v - ref)) }
func sumOf(d, ref uint64) uint64   { return uint64(unzigzag(d)) + ref }
