package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"unsafe"
)

// The type bytes of parameters. They are part of the format: they must not
// change, and a new meaning takes a new number.
const (
	typeBool     = 0
	typeInt8     = 1
	typeInt16    = 2
	typeInt32    = 3
	typeInt64    = 4 // non-negative
	typeNegInt64 = 5
	typeFloat64  = 6
	typeBig      = 7 // non-negative
	typeNegBig   = 8
	typeString   = 9
	typeBytes    = 10
	typeInts     = 11
	// 12 to 31 are reserved.
	typeShortString = 32 // plus the length: up to 255
)

const (
	// maxShortString is the longest string whose length fits the type byte.
	maxShortString = 255 - typeShortString
	// maxBigBytes is the longest magnitude of a big integer: its length is
	// one byte.
	maxBigBytes = 255
	// maxFixedParam is the most bytes that a boolean, integer or float takes.
	maxFixedParam = 9
)

var (
	// ErrParamTruncated is returned when the bytes end inside a parameter:
	// the area was cut, or is not a parameter area.
	ErrParamTruncated = errors.New("the area ends before the parameter does")
	// ErrParamReserved is returned for the type bytes 12 to 31: the area is
	// damaged, or was written by a newer version that gave them a meaning.
	ErrParamReserved = errors.New("types 12 to 31 are reserved: a newer version may read it")
	// ErrParamElement is returned for an integer list whose element width is
	// not 1, 2, 4 or 8: the area is damaged.
	ErrParamElement = errors.New("the list's element width is not 1, 2, 4 or 8")
)

// ParamError says which parameter of an area is bad. It wraps one of
// ErrParamTruncated, ErrParamReserved and ErrParamElement.
type ParamError struct {
	// Offset is where the parameter begins, counted from the start of the
	// bytes that were given.
	Offset int
	// Type is the type byte; -1 where the area ends before it.
	Type int
	Err  error
}

func (e *ParamError) Error() string {
	if e.Type < 0 {
		return fmt.Sprintf("parameter at byte %d: %v", e.Offset, e.Err)
	}
	return fmt.Sprintf("parameter at byte %d, type %d: %v", e.Offset, e.Type, e.Err)
}

func (e *ParamError) Unwrap() error { return e.Err }

// paramSizes gives the whole length of a parameter by its type byte; 0 for
// types of variable length and for reserved ones.
var paramSizes = makeParamSizes()

func makeParamSizes() (sizes [256]uint8) {
	sizes[typeBool] = 2
	sizes[typeInt8] = 2
	sizes[typeInt16] = 3
	sizes[typeInt32] = 5
	sizes[typeInt64] = 9
	sizes[typeNegInt64] = 9
	sizes[typeFloat64] = 9
	for t := typeShortString; t <= 255; t++ {
		sizes[t] = uint8(1 + t - typeShortString)
	}
	return sizes
}

// intTypes gives the type of an integer by the number of its significant
// bits, and intShifts moves it to the top of eight bytes.
var intTypes, intShifts = makeIntTypes()

func makeIntTypes() (types [65]uint8, shifts [4]uint8) {
	for n := range types {
		switch {
		case n < 8:
			types[n] = typeInt8
		case n < 16:
			types[n] = typeInt16
		case n < 32:
			types[n] = typeInt32
		default:
			types[n] = typeInt64
		}
	}
	return types, [4]uint8{typeInt8: 56, typeInt16: 48, typeInt32: 32}
}

// TypeByte returns the type byte that v is stored with. The zero Value has
// none: it gives 31, which is never written.
func (v Value) TypeByte() byte {
	switch v.kind {
	case KindBool:
		return typeBool
	case KindInt:
		return v.intType()
	case KindFloat:
		return typeFloat64
	case KindBig:
		return typeBig + sign(v.form == negative)
	case KindString:
		if v.num <= maxShortString {
			return typeShortString + byte(v.num)
		}
		return typeString
	case KindBytes:
		return typeBytes
	case KindInts:
		return typeInts
	}
	return typeShortString - 1
}

func (v Value) intType() byte {
	if v.form != 0 {
		return typeInt64 + sign(v.form&negative != 0)
	}
	t := intTypes[bits.Len64(significant(int64(v.num)))]
	if t == typeInt64 {
		return typeInt64 + sign(int64(v.num) < 0)
	}
	return t
}

func sign(neg bool) byte {
	if neg {
		return 1
	}
	return 0
}

// size is the length of the canonical encoding of a storable value.
func (v Value) size() int {
	switch v.kind {
	case KindBig:
		return 2 + int(v.num)
	case KindString:
		if v.num > maxShortString {
			return 5 + int(v.num)
		}
	case KindBytes:
		return 5 + int(v.num)
	case KindInts:
		return 6 + v.elementWidth()*int(v.num)
	}
	return int(paramSizes[v.TypeByte()])
}

// AppendParam appends the canonical encoding of v to dst. Where v cannot be
// stored it returns dst unchanged and a Warning: WarnUnsupported for the zero
// Value, WarnBigInt for a magnitude of 2^2040 or more, WarnFull for a length
// that does not fit 32 bits.
func AppendParam(dst []byte, v Value) ([]byte, error) {
	if code := storable(v); code != 0 {
		return dst, Warning{Code: code, Step: NoStep}
	}
	return appendParam(dst, v), nil
}

// storable returns 0, or the code of the warning that says why v cannot be
// stored.
func storable(v Value) WarningCode {
	switch v.kind {
	case KindInvalid:
		return WarnUnsupported
	case KindBig:
		if v.num > maxBigBytes {
			return WarnBigInt
		}
	case KindString, KindBytes, KindInts:
		if v.num > math.MaxUint32 {
			return WarnFull
		}
	}
	return 0
}

// appendParam appends a storable value.
func appendParam(dst []byte, v Value) []byte {
	dst = append(dst, v.TypeByte())
	switch v.kind {
	case KindBool:
		return append(dst, byte(v.num))
	case KindInt:
		return appendInt(dst, v)
	case KindFloat:
		return binary.BigEndian.AppendUint64(dst, v.num)
	case KindBig:
		dst = append(dst, byte(v.num))
	case KindInts:
		return appendInts(dst, v)
	case KindBytes:
		dst = binary.BigEndian.AppendUint32(dst, uint32(v.num))
	case KindString:
		if v.num > maxShortString {
			dst = binary.BigEndian.AppendUint32(dst, uint32(v.num))
		}
	}
	return append(dst, v.data()...)
}

// appendInt appends an integer behind its type byte.
func appendInt(dst []byte, v Value) []byte {
	switch dst[len(dst)-1] {
	case typeInt8:
		return append(dst, byte(v.num))
	case typeInt16:
		return binary.BigEndian.AppendUint16(dst, uint16(v.num))
	case typeInt32:
		return binary.BigEndian.AppendUint32(dst, uint32(v.num))
	}
	magnitude, _ := v.magnitude()
	return binary.BigEndian.AppendUint64(dst, swapHalves(magnitude))
}

// swapHalves turns a magnitude into the stored order, low half first, and
// back.
func swapHalves(magnitude uint64) uint64 { return bits.RotateLeft64(magnitude, 32) }

// appendInts appends an integer list behind its type byte.
func appendInts(dst []byte, v Value) []byte {
	width := v.elementWidth()
	dst = append(dst, byte(width))
	dst = binary.BigEndian.AppendUint32(dst, uint32(v.num))
	for i := range v.Len() {
		element := v.At(i)
		for shift := 8 * (width - 1); shift >= 0; shift -= 8 {
			dst = append(dst, byte(element>>shift))
		}
	}
	return dst
}

// ParamLength returns the length of the parameter at the start of b after
// checking all of it, so that ParseParam reads it without an error.
func ParamLength(b []byte) (int, error) {
	return ParamsLength(b, 1)
}

// ParamsLength returns the length of count parameters at the start of b after
// checking all of them.
func ParamsLength(b []byte, count int) (int, error) {
	return skipParams(b, 0, count)
}

// skipParams checks count parameters at b[at:] and returns where they end.
func skipParams(b []byte, at, count int) (int, error) {
	for ; count > 0; count-- {
		if at >= len(b) {
			return 0, &ParamError{Offset: at, Type: -1, Err: ErrParamTruncated}
		}
		size := int(paramSizes[b[at]])
		if size == 0 || size > len(b)-at {
			var err error
			if size, err = variableLength(b[at:]); err != nil {
				return 0, &ParamError{Offset: at, Type: int(b[at]), Err: err}
			}
		}
		at += size
	}
	return at, nil
}

// variableLength returns the length of the parameter at the start of b, which
// is not empty, where its type byte alone does not give it.
func variableLength(b []byte) (int, error) {
	head, size := 0, uint64(0)
	switch t := b[0]; {
	case t == typeBig || t == typeNegBig:
		if len(b) < 2 {
			return 0, ErrParamTruncated
		}
		head, size = 2, uint64(b[1])
	case t == typeString || t == typeBytes:
		if len(b) < 5 {
			return 0, ErrParamTruncated
		}
		head, size = 5, uint64(binary.BigEndian.Uint32(b[1:]))
	case t == typeInts:
		return listLength(b)
	case t > typeInts && t < typeShortString:
		return 0, ErrParamReserved
	default:
		return 0, ErrParamTruncated
	}
	if size > uint64(len(b)-head) {
		return 0, ErrParamTruncated
	}
	return head + int(size), nil
}

func listLength(b []byte) (int, error) {
	const head = 6
	if len(b) < head {
		return 0, ErrParamTruncated
	}
	switch b[1] {
	case 1, 2, 4, 8:
	default:
		return 0, ErrParamElement
	}
	size := uint64(b[1]) * uint64(binary.BigEndian.Uint32(b[2:]))
	if size > uint64(len(b)-head) {
		return 0, ErrParamTruncated
	}
	return head + int(size), nil
}

// ParseParam reads the parameter at the start of b and returns it with its
// length. The Value refers to b. Other encodings than the canonical one are
// read as well: an integer wider than it need be, a magnitude with zeros at
// its end, a negative zero, a short string with a long length, a boolean
// payload above 1 (false), a NaN with a payload.
func ParseParam(b []byte) (Value, int, error) {
	n, err := ParamLength(b)
	if err != nil {
		return Value{}, 0, err
	}
	return parseParam(b[:n]), n, nil
}

// parseParam reads the one parameter that is all of b and has been checked.
func parseParam(b []byte) Value {
	switch t := b[0]; t {
	case typeBool:
		return Bool(b[1] == 1)
	case typeInt8:
		return Int(int64(int8(b[1])))
	case typeInt16:
		return Int(int64(int16(binary.BigEndian.Uint16(b[1:]))))
	case typeInt32:
		return Int(int64(int32(binary.BigEndian.Uint32(b[1:]))))
	case typeInt64, typeNegInt64:
		return integer(swapHalves(binary.BigEndian.Uint64(b[1:])), t == typeNegInt64)
	case typeFloat64:
		return Float(math.Float64frombits(binary.BigEndian.Uint64(b[1:])))
	case typeBig, typeNegBig:
		return bigValue(b[2:], t == typeNegBig)
	case typeInts:
		return listValue(b)
	case typeBytes:
		return Bytes(b[5:])
	case typeString:
		return stringValue(b[5:])
	}
	return stringValue(b[1:])
}

func stringValue(b []byte) Value {
	v := Bytes(b)
	v.kind = KindString
	return v
}

func listValue(b []byte) Value {
	return Value{
		kind: KindInts,
		ptr:  unsafe.Pointer(unsafe.SliceData(b[6:])),
		num:  uint64(binary.BigEndian.Uint32(b[2:])),
		form: b[1],
	}
}
