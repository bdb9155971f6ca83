package format

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// Kind is the type of a Value.
type Kind uint8

const (
	// KindInvalid is the kind of the zero Value, which cannot be stored.
	KindInvalid Kind = 0
	KindBool    Kind = 1
	// KindInt is an integer whose magnitude fits 64 bits.
	KindInt   Kind = 2
	KindFloat Kind = 3
	// KindBig is an arbitrary-precision integer. It stays one whatever its
	// size: BigInt(5) and Int(5) are different values.
	KindBig    Kind = 4
	KindString Kind = 5
	KindBytes  Kind = 6
	// KindInts is a list of int64.
	KindInts Kind = 7
)

var kindNames = [...]string{"invalid", "bool", "int", "float", "bigint", "string", "bytes", "ints"}

// String gives the kind's name as the code book writes it.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// Value is one parameter of a step. It is small, is passed by value, and
// holds integers, floats and booleans without allocating. Strings, bytes,
// big integers and lists are references: those made by a constructor share
// the memory that it was given, and those decoded from a parameter area
// point into it. They are valid as long as that memory is not changed; Clone
// gives a Value that stands alone.
//
// Values are compared with Equal, not with ==.
type Value struct {
	// ptr refers to the bytes of a string, bytes or big integer, or to the
	// elements of a list.
	ptr unsafe.Pointer
	// num is the boolean, the two's complement integer, the magnitude of a
	// wide integer, the bits of a float, or the length of what ptr refers to.
	num  uint64
	kind Kind
	// form says more about num and ptr, by kind. Of an integer: wide and
	// negative. Of a big integer: negative. Of a list: the width of its
	// big-endian elements, or 0 where ptr refers to a Go []int64.
	form uint8
}

// A Value of more than four fields would not be kept in registers.
const (
	// wide marks an integer beyond int64, whose num is its magnitude.
	wide = 1
	// negative is the sign of a wide or big integer.
	negative = 2
)

// zeroMagnitude is what a big zero refers to where the area has no byte for it.
var zeroMagnitude = [1]byte{}

// Bool returns a boolean Value.
func Bool(b bool) Value {
	v := Value{kind: KindBool}
	if b {
		v.num = 1
	}
	return v
}

// Int returns an exact integer Value.
func Int(i int64) Value { return Value{kind: KindInt, num: uint64(i)} }

// Uint returns an exact integer Value.
func Uint(u uint64) Value { return Value{kind: KindInt, num: u, form: uint8(u >> 63)} }

// Number returns the Value of a dynamically typed number: an integer where x
// is integral and its magnitude fits 64 bits (-0 becomes 0), else a float.
func Number(x float64) Value {
	if x != math.Trunc(x) || math.Abs(x) >= 1<<64 {
		return Float(x)
	}
	return integer(uint64(math.Abs(x)), x < 0)
}

// Float returns a float Value, also where x is integral. Every bit is kept
// but a NaN's payload: there is one NaN.
func Float(x float64) Value {
	if math.IsNaN(x) {
		return Value{kind: KindFloat, num: nanBits}
	}
	return Value{kind: KindFloat, num: math.Float64bits(x)}
}

// nanBits are the bits of the one NaN that is written.
const nanBits = 0x7ff8000000000000

// BigInt returns a big integer Value with its own copy of i. A nil i gives
// the zero Value.
func BigInt(i *big.Int) Value {
	if i == nil {
		return Value{}
	}
	magnitude := i.Bytes()
	slices.Reverse(magnitude)
	return bigValue(magnitude, i.Sign() < 0)
}

// String returns a string Value. Its bytes are kept as they are, also where
// they are not valid UTF-8.
func String(s string) Value {
	return Value{kind: KindString, ptr: unsafe.Pointer(unsafe.StringData(s)), num: uint64(len(s))}
}

// Bytes returns a bytes Value that shares b's memory.
func Bytes(b []byte) Value {
	return Value{kind: KindBytes, ptr: unsafe.Pointer(unsafe.SliceData(b)), num: uint64(len(b))}
}

// Ints returns an integer list that shares list's memory.
func Ints(list []int64) Value {
	return Value{kind: KindInts, ptr: unsafe.Pointer(unsafe.SliceData(list)), num: uint64(len(list))}
}

// ValueOf returns the Value of a Go value: booleans, every integer and float
// type, strings, *big.Int, []byte, []int64 and Value itself. A float64 or
// float32 becomes a Float. Anything else gives the zero Value.
func ValueOf(v any) Value {
	switch v := v.(type) {
	case Value:
		return v
	case bool:
		return Bool(v)
	case string:
		return String(v)
	case *big.Int:
		return BigInt(v)
	case []byte:
		return Bytes(v)
	case []int64:
		return Ints(v)
	}
	return numberOf(v)
}

func numberOf(v any) Value {
	switch v := v.(type) {
	case int:
		return Int(int64(v))
	case int8:
		return Int(int64(v))
	case int16:
		return Int(int64(v))
	case int32:
		return Int(int64(v))
	case int64:
		return Int(v)
	case uint:
		return Uint(uint64(v))
	case uint8:
		return Uint(uint64(v))
	case uint16:
		return Uint(uint64(v))
	case uint32:
		return Uint(uint64(v))
	case uint64:
		return Uint(v)
	case float32:
		return Float(float64(v))
	case float64:
		return Float(v)
	}
	return Value{}
}

// integer makes an integer Value of a magnitude and a sign.
func integer(magnitude uint64, neg bool) Value {
	switch {
	case !neg:
		return Uint(magnitude)
	case magnitude <= 1<<63:
		return Int(-int64(magnitude))
	}
	return Value{kind: KindInt, num: magnitude, form: wide | negative}
}

// bigValue makes a big integer Value that refers to a little-endian
// magnitude, without the zeros at its end.
func bigValue(magnitude []byte, neg bool) Value {
	n := len(magnitude)
	for n > 1 && magnitude[n-1] == 0 {
		n--
	}
	if n == 0 {
		magnitude, n = zeroMagnitude[:], 1
	}
	v := Value{kind: KindBig, ptr: unsafe.Pointer(unsafe.SliceData(magnitude)), num: uint64(n)}
	if zero := n == 1 && magnitude[0] == 0; neg && !zero {
		v.form = negative
	}
	return v
}

// Kind returns the kind of v.
func (v Value) Kind() Kind { return v.kind }

// Bool returns the boolean; false for any other kind.
func (v Value) Bool() bool { return v.kind == KindBool && v.num != 0 }

// Int64 returns the integer, and whether v is one that fits an int64.
func (v Value) Int64() (int64, bool) {
	if v.kind != KindInt || v.form != 0 {
		return 0, false
	}
	return int64(v.num), true
}

// Uint64 returns the integer, and whether v is one that fits a uint64.
func (v Value) Uint64() (uint64, bool) {
	if v.kind != KindInt || v.form&negative != 0 || v.form == 0 && int64(v.num) < 0 {
		return 0, false
	}
	return v.num, true
}

// Float64 returns the float, or the integer as the nearest float64, and
// whether v is either.
func (v Value) Float64() (float64, bool) {
	switch {
	case v.kind == KindFloat:
		return math.Float64frombits(v.num), true
	case v.kind != KindInt:
		return 0, false
	case v.form == 0:
		return float64(int64(v.num)), true
	case v.form&negative != 0:
		return -float64(v.num), true
	}
	return float64(v.num), true
}

// BigInt returns a new big integer with the value of a big integer or an
// integer; nil for any other kind.
func (v Value) BigInt() *big.Int {
	switch v.kind {
	case KindInt:
		magnitude, neg := v.magnitude()
		return signed(new(big.Int).SetUint64(magnitude), neg)
	case KindBig:
		magnitude := bytes.Clone(v.data())
		slices.Reverse(magnitude)
		return signed(new(big.Int).SetBytes(magnitude), v.form == negative)
	}
	return nil
}

func signed(i *big.Int, neg bool) *big.Int {
	if neg {
		i.Neg(i)
	}
	return i
}

// Str returns the string; empty for any other kind. It shares v's memory.
func (v Value) Str() string {
	if v.kind != KindString {
		return ""
	}
	return unsafe.String((*byte)(v.ptr), int(v.num))
}

// ByteSlice returns the bytes; nil for any other kind. It shares v's memory
// and must not be changed.
func (v Value) ByteSlice() []byte {
	if v.kind != KindBytes {
		return nil
	}
	return v.data()
}

// Len returns the number of elements of an integer list, the number of bytes
// of a string or bytes, and 0 for any other kind.
func (v Value) Len() int {
	switch v.kind {
	case KindString, KindBytes, KindInts:
		return int(v.num)
	}
	return 0
}

// At returns element i of an integer list; 0 for any other kind and where i
// is out of range.
func (v Value) At(i int) int64 {
	if v.kind != KindInts || i < 0 || i >= int(v.num) {
		return 0
	}
	if v.form == 0 {
		return v.list()[i]
	}
	at := unsafe.Add(v.ptr, i*int(v.form))
	switch v.form {
	case 1:
		return int64(*(*int8)(at))
	case 2:
		return int64(int16(binary.BigEndian.Uint16((*[2]byte)(at)[:])))
	case 4:
		return int64(int32(binary.BigEndian.Uint32((*[4]byte)(at)[:])))
	}
	return int64(binary.BigEndian.Uint64((*[8]byte)(at)[:]))
}

// Int64s returns a copy of an integer list; nil for any other kind.
func (v Value) Int64s() []int64 {
	if v.kind != KindInts {
		return nil
	}
	list := make([]int64, v.num)
	for i := range list {
		list[i] = v.At(i)
	}
	return list
}

// Equal reports whether v and o are of one kind and have the same value. A
// float equals itself bit for bit, so 0.0 and -0.0 differ; NaN equals NaN.
func (v Value) Equal(o Value) bool {
	if v.kind != o.kind {
		return false
	}
	switch v.kind {
	case KindInt:
		return v.num == o.num && v.form == o.form
	case KindBig:
		return v.form == o.form && bytes.Equal(v.data(), o.data())
	case KindString, KindBytes:
		return bytes.Equal(v.data(), o.data())
	case KindInts:
		return equalLists(v, o)
	}
	return v.num == o.num
}

func equalLists(v, o Value) bool {
	if v.num != o.num {
		return false
	}
	for i := range int(v.num) {
		if v.At(i) != o.At(i) {
			return false
		}
	}
	return true
}

// Clone returns a Value equal to v that refers to memory of its own.
func (v Value) Clone() Value {
	switch v.kind {
	case KindBig:
		return bigValue(bytes.Clone(v.data()), v.form == negative)
	case KindString:
		return String(strings.Clone(v.Str()))
	case KindBytes:
		return Bytes(bytes.Clone(v.data()))
	case KindInts:
		return Ints(v.Int64s())
	}
	return v
}

// String prints the value for people: strings quoted, bytes in base64, a big
// integer with the suffix n, floats always with a point or an exponent.
func (v Value) String() string {
	switch v.kind {
	case KindBool:
		return strconv.FormatBool(v.Bool())
	case KindInt:
		return v.BigInt().String()
	case KindFloat:
		return floatText(math.Float64frombits(v.num))
	case KindBig:
		return v.BigInt().String() + "n"
	case KindString:
		return strconv.Quote(v.Str())
	case KindBytes:
		return "base64:" + base64.StdEncoding.EncodeToString(v.data())
	case KindInts:
		return v.listText()
	}
	return "invalid"
}

func floatText(x float64) string {
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if strings.ContainsAny(s, ".eIN") {
		return s
	}
	return s + ".0"
}

func (v Value) listText() string {
	b := []byte{'['}
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, v.At(i), 10)
	}
	return string(append(b, ']'))
}

// data gives the bytes that a string, bytes or big integer refers to.
func (v Value) data() []byte { return unsafe.Slice((*byte)(v.ptr), int(v.num)) }

// list gives the elements of a list made by Ints.
func (v Value) list() []int64 { return unsafe.Slice((*int64)(v.ptr), int(v.num)) }

// magnitude splits an integer into its magnitude and its sign.
func (v Value) magnitude() (uint64, bool) {
	if v.form != 0 {
		return v.num, v.form&negative != 0
	}
	if int64(v.num) < 0 {
		return -v.num, true
	}
	return v.num, false
}

// elementWidth is the narrowest width that holds every element of a list.
func (v Value) elementWidth() int {
	var used uint64
	for i := range v.Len() {
		used |= significant(v.At(i))
	}
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

// significant clears the sign of i: the length of what remains, plus one, is
// the number of bits that i needs.
func significant(i int64) uint64 { return uint64(i ^ i>>63) }
