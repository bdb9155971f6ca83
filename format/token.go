package format

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// The methods that take rows apart see a parameter as a kind and a number.

// Kinds of parameters are stored in files. They must not change.
const (
	kindFalse = 0
	kindTrue  = 1
	kindInt   = 2 // an integer below 2^63 in its canonical form
	kindF32   = 3 // a float64 that a binary32 holds
	kindF64   = 4 // any other float64
	kindText  = 5 // a short string
	kindList  = 6 // an integer list in its canonical form
	kindOther = 7 // the parameter's own bytes

	kinds = 8
)

// token is a parameter taken apart.
type token struct {
	kind byte
	// num is the integer; the bits of a float; the number of elements.
	num uint64
	// data are a string's bytes, a list's elements as stored, or the whole
	// parameter of kind other.
	data []byte
}

// takeToken takes the parameter at b[0:] apart, which has been checked, and
// gives its length.
func takeToken(b []byte) (token, int) {
	switch t := b[0]; {
	case t == typeBool:
		if b[1] <= 1 {
			return token{kind: b[1]}, 2
		}
		return token{kind: kindOther, data: b[:2]}, 2
	case t == typeInt8:
		return token{kind: kindInt, num: uint64(int64(int8(b[1])))}, 2
	case t <= typeNegInt64:
		return takeInt(b)
	case t == typeFloat64:
		v := binary.BigEndian.Uint64(b[1:])
		if f, ok := narrowFloat(v); ok {
			return token{kind: kindF32, num: uint64(f)}, 9
		}
		return token{kind: kindF64, num: v}, 9
	case t >= typeShortString:
		n := 1 + int(t) - typeShortString
		return token{kind: kindText, data: b[1:n]}, n
	case t == typeInts:
		return takeList(b)
	}
	n, _ := variableLength(b)
	return token{kind: kindOther, data: b[:n]}, n
}

func takeInt(b []byte) (token, int) {
	var v int64
	n := int(paramSizes[b[0]])
	switch b[0] {
	case typeInt16:
		v = int64(int16(binary.BigEndian.Uint16(b[1:])))
	case typeInt32:
		v = int64(int32(binary.BigEndian.Uint32(b[1:])))
	default:
		magnitude := swapHalves(binary.BigEndian.Uint64(b[1:]))
		if v = int64(magnitude); v < 0 {
			return token{kind: kindOther, data: b[:n]}, n
		}
		if b[0] == typeNegInt64 {
			v = -v
		}
	}
	if tokenIntType(v) != b[0] {
		return token{kind: kindOther, data: b[:n]}, n
	}
	return token{kind: kindInt, num: uint64(v)}, n
}

// tokenIntType is the canonical type of an integer.
func tokenIntType(v int64) byte {
	t := intTypes[bits.Len64(significant(v))]
	if t == typeInt64 && v < 0 {
		return typeNegInt64
	}
	return t
}

// takeList takes a list apart, if its elements have the narrowest width.
func takeList(b []byte) (token, int) {
	size, _ := listLength(b)
	width, n := int(b[1]), uint64(binary.BigEndian.Uint32(b[2:]))
	var used uint64
	for at := 6; at < size; at += width {
		used |= significant(element(b[at:], width))
	}
	if elementWidth(used) != width {
		return token{kind: kindOther, data: b[:size]}, size
	}
	return token{kind: kindList, num: n, data: b[6:size]}, size
}

// element reads a list's element of width bytes.
func element(b []byte, width int) int64 {
	switch width {
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(binary.BigEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b)))
	}
	return int64(binary.BigEndian.Uint64(b))
}

// elementWidth is the narrowest width of elements whose significant bits are
// those of used.
func elementWidth(used uint64) int {
	switch n := bits.Len64(used); {
	case n < 8:
		return 1
	case n < 16:
		return 2
	case n < 32:
		return 4
	}
	return 8
}

// narrowFloat gives the binary32 that has a float64's value, if it is zero or
// a normal number. It works on the bits alone: every machine gives the same.
func narrowFloat(v uint64) (uint32, bool) {
	sign, exponent, fraction := uint32(v>>63)<<31, int(v>>52&0x7ff), v&(1<<52-1)
	if v<<1 == 0 {
		return sign, true
	}
	if e := exponent - 1023 + 127; e > 0 && e < 255 && fraction<<35 == 0 {
		return sign | uint32(e)<<23 | uint32(fraction>>29), true
	}
	return 0, false
}

// widenFloat is the way back.
func widenFloat(f uint32) (uint64, bool) {
	sign, exponent, fraction := uint64(f>>31)<<63, uint64(f>>23&0xff), uint64(f&(1<<23-1))
	if f<<1 == 0 {
		return sign, true
	}
	if exponent == 0 || exponent == 255 {
		return 0, false
	}
	return sign | (exponent-127+1023)<<52 | fraction<<29, true
}

// errRows is returned where decoded rows are not as many bytes as declared.
var errRows = errors.New("the rows are not as long as declared")

// rowWriter puts decoded rows into the areas of a chunk. A step's parameters
// never write behind the area's end but for its slack.
type rowWriter struct {
	b     []byte // the parameter area and at least rowSlack bytes
	at    int
	limit int
}

// rowSlack is the most that a fixed parameter takes.
const rowSlack = 9

func (w *rowWriter) int(v int64) {
	b := w.b[w.at:]
	switch t := tokenIntType(v); t {
	case typeInt8:
		b[0], b[1] = t, byte(v)
		w.at += 2
	case typeInt16:
		b[0] = t
		binary.BigEndian.PutUint16(b[1:], uint16(v))
		w.at += 3
	case typeInt32:
		b[0] = t
		binary.BigEndian.PutUint32(b[1:], uint32(v))
		w.at += 5
	default:
		b[0] = t
		binary.BigEndian.PutUint64(b[1:], swapHalves(magnitudeOf(v)))
		w.at += 9
	}
}

func magnitudeOf(v int64) uint64 {
	if v < 0 {
		return uint64(-v)
	}
	return uint64(v)
}

func (w *rowWriter) bool(kind byte) {
	w.b[w.at], w.b[w.at+1] = typeBool, kind
	w.at += 2
}

func (w *rowWriter) f64(v uint64) {
	w.b[w.at] = typeFloat64
	binary.BigEndian.PutUint64(w.b[w.at+1:], v)
	w.at += 9
}

// room tells whether n more bytes, and no parameter behind the limit, fit.
func (w *rowWriter) room(n int) bool { return n <= w.limit-w.at }

func (w *rowWriter) text(s []byte) bool {
	if !w.room(1 + len(s)) {
		return false
	}
	w.b[w.at] = typeShortString + byte(len(s))
	w.at += 1 + copy(w.b[w.at+1:], s)
	return true
}

// other puts a whole parameter.
func (w *rowWriter) other(s []byte) bool {
	if !w.room(len(s)) {
		return false
	}
	w.at += copy(w.b[w.at:], s)
	return true
}

// list puts a list of elements.
func (w *rowWriter) list(elements []int64) bool {
	var used uint64
	for _, e := range elements {
		used |= significant(e)
	}
	width := elementWidth(used)
	if !w.room(6 + width*len(elements)) {
		return false
	}
	b := w.b[w.at:]
	b[0], b[1] = typeInts, byte(width)
	binary.BigEndian.PutUint32(b[2:], uint32(len(elements)))
	at := 6
	for _, e := range elements {
		for shift := 8 * (width - 1); shift >= 0; shift -= 8 {
			b[at] = byte(e >> shift)
			at++
		}
	}
	w.at += at
	return true
}
