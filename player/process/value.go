package process

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"slices"

	"reprise/format"
)

// A parameter is its kind and its value, decoded: a reader needs to know
// nothing of how files store it.
//
// The kinds are part of the protocol. They must not change.
const (
	kindBool  = 1 // a flag
	kindInt   = 2 // i64
	kindFloat = 3 // f64
	kindBig   = 4 // a flag (negative), the magnitude's bytes, lowest first
	kindText  = 5 // a text, any bytes
	kindBytes = 6 // bytes
	kindInts  = 7 // a list of i64
	kindHigh  = 8 // u64: an integer above all of i64
	kindLow   = 9 // u64: the magnitude of an integer below all of i64
)

// leastValue is the size of the smallest parameter: a kind and a flag.
const leastValue = 2

func appendValue(dst []byte, v format.Value) []byte {
	switch v.Kind() {
	case format.KindBool:
		return appendFlag(append(dst, kindBool), v.Bool())
	case format.KindInt:
		return appendInteger(dst, v)
	case format.KindFloat:
		f, _ := v.Float64()
		return order.AppendUint64(append(dst, kindFloat), math.Float64bits(f))
	case format.KindBig:
		return appendBig(append(dst, kindBig), v.BigInt())
	case format.KindString:
		return appendText(append(dst, kindText), v.Str())
	case format.KindBytes:
		return appendText(append(dst, kindBytes), v.ByteSlice())
	}
	dst = appendCount(append(dst, kindInts), v.Len())
	for i := range v.Len() {
		dst = order.AppendUint64(dst, uint64(v.At(i)))
	}
	return dst
}

func appendInteger(dst []byte, v format.Value) []byte {
	if i, fits := v.Int64(); fits {
		return order.AppendUint64(append(dst, kindInt), uint64(i))
	}
	if u, fits := v.Uint64(); fits {
		return order.AppendUint64(append(dst, kindHigh), u)
	}
	magnitude := v.BigInt()
	return order.AppendUint64(append(dst, kindLow), magnitude.Abs(magnitude).Uint64())
}

func appendBig(dst []byte, i *big.Int) []byte {
	magnitude := i.Bytes()
	slices.Reverse(magnitude)
	return appendText(appendFlag(dst, i.Sign() < 0), magnitude)
}

// value takes a parameter and appends it to a parameter area. Where a value
// can be written in two ways only the one that appendValue chooses is taken.
// The list is memory to be used again.
func (c *cursor) value(area []byte, ints *[]int64) []byte {
	switch kind := c.u8("a parameter's kind"); kind {
	case kindBool:
		return c.store(area, format.Bool(c.flag("a boolean")))
	case kindInt:
		return c.store(area, format.Int(int64(c.u64("an integer"))))
	case kindFloat:
		return c.store(area, c.float())
	case kindBig:
		return c.store(area, c.big())
	case kindText:
		return c.store(area, format.String(c.text("a text")))
	case kindBytes:
		return c.store(area, format.Bytes(c.bytes("bytes")))
	case kindInts:
		return c.store(area, c.ints(ints))
	case kindHigh:
		return c.store(area, format.Uint(c.beyond("an integer above i64", math.MaxInt64)))
	case kindLow:
		return c.storeLow(area, c.beyond("an integer below i64", 1<<63))
	default:
		c.fail("a parameter of kind %d", kind)
		return area
	}
}

// store appends v, which must be one that a replay can hold.
func (c *cursor) store(area []byte, v format.Value) []byte {
	if c.err != nil {
		return area
	}
	area, err := format.AppendParam(area, v)
	if err != nil {
		c.fail("a parameter: %v", err)
	}
	return area
}

// storeLow appends an integer below int64, which no constructor of format
// makes: type 5 and the magnitude in the area's order, low half first.
func (c *cursor) storeLow(area []byte, magnitude uint64) []byte {
	if c.err != nil {
		return area
	}
	return binary.BigEndian.AppendUint64(append(area, 5), bits.RotateLeft64(magnitude, 32))
}

func (c *cursor) float() format.Value {
	bits := c.u64("a float")
	v := format.Float(math.Float64frombits(bits))
	if f, _ := v.Float64(); math.Float64bits(f) != bits {
		c.fail("a NaN with the bits %#x, not %#x", bits, math.Float64bits(f))
	}
	return v
}

func (c *cursor) big() format.Value {
	negative := c.flag("a big integer's sign")
	magnitude := slices.Clone(c.bytes("a big integer's magnitude"))
	if n := len(magnitude); n == 0 && negative || n > 0 && magnitude[n-1] == 0 {
		c.fail("a big integer with zeros at its top, or a negative zero")
		return format.Value{}
	}
	slices.Reverse(magnitude)
	i := new(big.Int).SetBytes(magnitude)
	if negative {
		i.Neg(i)
	}
	return format.BigInt(i)
}

func (c *cursor) ints(ints *[]int64) format.Value {
	n := c.count("list elements", 8)
	*ints = (*ints)[:0]
	for range n {
		*ints = append(*ints, int64(c.u64("a list element")))
	}
	return format.Ints(*ints)
}

// beyond takes a number that is above most.
func (c *cursor) beyond(field string, most uint64) uint64 {
	v := c.u64(field)
	if c.err == nil && v <= most {
		c.fail("%s is %d, which another kind holds", field, v)
	}
	return v
}
