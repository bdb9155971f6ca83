package format

import (
	"bytes"
	"math"
	"math/big"
	"testing"
	"unsafe"
)

// bigPower returns sign * (2^n + d).
func bigPower(sign, n, d int64) *big.Int {
	i := new(big.Int).Lsh(big.NewInt(1), uint(n))
	i.Add(i, big.NewInt(d))
	return i.Mul(i, big.NewInt(sign))
}

func TestValueIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Value{}); size > 24 {
		t.Errorf("a Value takes %d bytes, want at most 24", size)
	}
}

func TestNumberNarrowsLikeADynamicNumber(t *testing.T) {
	tests := []struct {
		x    float64
		kind Kind
		typ  byte
	}{
		{0, KindInt, 1}, {math.Copysign(0, -1), KindInt, 1}, {127, KindInt, 1}, {-128, KindInt, 1},
		{128, KindInt, 2}, {-129, KindInt, 2}, {32767, KindInt, 2}, {-32768, KindInt, 2},
		{32768, KindInt, 3}, {-32769, KindInt, 3}, {1<<31 - 1, KindInt, 3}, {-1 << 31, KindInt, 3},
		{1 << 31, KindInt, 4}, {1<<53 - 1, KindInt, 4}, {1 << 63, KindInt, 4}, {1<<64 - 2048, KindInt, 4},
		{-1<<31 - 1, KindInt, 5}, {-(1<<32 + 1), KindInt, 5}, {-1 << 63, KindInt, 5}, {-(1<<64 - 2048), KindInt, 5},
		{1 << 64, KindFloat, 6}, {-1 << 64, KindFloat, 6}, {1e300, KindFloat, 6},
		{0.5, KindFloat, 6}, {-1.5, KindFloat, 6}, {5e-324, KindFloat, 6},
		{math.Inf(1), KindFloat, 6}, {math.Inf(-1), KindFloat, 6}, {math.NaN(), KindFloat, 6},
	}
	for _, tt := range tests {
		v := Number(tt.x)
		if v.Kind() != tt.kind || v.TypeByte() != tt.typ {
			t.Errorf("Number(%v): %v, type %d, want %v, type %d", tt.x, v.Kind(), v.TypeByte(), tt.kind, tt.typ)
		}
		got, ok := v.Float64()
		if !ok || got != tt.x && !math.IsNaN(tt.x) {
			t.Errorf("Number(%v) reads back as %v, %v", tt.x, got, ok)
		}
	}
}

func TestIntegersAreExact(t *testing.T) {
	tests := []struct {
		v      Value
		want   string
		int64  bool
		uint64 bool
	}{
		{Int(0), "0", true, true},
		{Int(-1), "-1", true, false},
		{Int(math.MaxInt64), "9223372036854775807", true, true},
		{Int(math.MinInt64), "-9223372036854775808", true, false},
		{Uint(7), "7", true, true},
		{Uint(math.MaxInt64), "9223372036854775807", true, true},
		{Uint(math.MaxInt64 + 1), "9223372036854775808", false, true},
		{Uint(math.MaxUint64), "18446744073709551615", false, true},
		{integer(1<<63, true), "-9223372036854775808", true, false},
		{integer(1<<63+1, true), "-9223372036854775809", false, false},
		{integer(math.MaxUint64, true), "-18446744073709551615", false, false},
	}
	for _, tt := range tests {
		if got := tt.v.BigInt().String(); got != tt.want {
			t.Errorf("value is %s, want %s", got, tt.want)
		}
		i, ok := tt.v.Int64()
		if ok != tt.int64 || ok && big.NewInt(i).String() != tt.want {
			t.Errorf("%s as int64: %d, %v", tt.want, i, ok)
		}
		u, ok := tt.v.Uint64()
		if ok != tt.uint64 || ok && new(big.Int).SetUint64(u).String() != tt.want {
			t.Errorf("%s as uint64: %d, %v", tt.want, u, ok)
		}
		want, _ := new(big.Float).SetInt(tt.v.BigInt()).Float64()
		if f, ok := tt.v.Float64(); !ok || f != want {
			t.Errorf("%s as float64: %v, %v, want %v", tt.want, f, ok, want)
		}
	}
	if !Uint(9).Equal(Int(9)) || !integer(9, true).Equal(Int(-9)) {
		t.Error("the same integer made in two ways is not equal")
	}
}

// samples has one value of every kind and shape, all different.
func samples() []Value {
	return []Value{
		{}, Bool(false), Bool(true),
		Int(0), Int(-1), Int(300), Int(-70000), Int(math.MaxInt64), Int(math.MinInt64),
		Uint(math.MaxUint64), integer(math.MaxUint64, true), integer(1<<63+1, true),
		Float(0), Float(math.Copysign(0, -1)), Float(1), Float(-2.5), Float(math.NaN()), Float(math.Inf(1)),
		BigInt(big.NewInt(0)), BigInt(big.NewInt(1)), BigInt(big.NewInt(-1)), BigInt(bigPower(1, 2040, -1)), BigInt(bigPower(-1, 70, 3)),
		String(""), String("a"), String("\xff\xfe"), String("\ufeffa"), String(string(bytes.Repeat([]byte("x"), 300))),
		Bytes(nil), Bytes([]byte("a")), Bytes(bytes.Repeat([]byte{0}, 300)),
		Ints(nil), Ints([]int64{0}), Ints([]int64{1, -128}), Ints([]int64{128}), Ints([]int64{-40000, 1}), Ints([]int64{math.MinInt64, math.MaxInt64}),
	}
}

func TestValuesAreEqualOnlyToThemselves(t *testing.T) {
	list, again := samples(), samples()
	for i, v := range list {
		for j, o := range again {
			if v.Equal(o) != (i == j) {
				t.Errorf("%v %v equal to %v %v: %v", v.Kind(), v, o.Kind(), o, v.Equal(o))
			}
		}
	}
}

func TestFloatKeepsEveryBitButOneNaN(t *testing.T) {
	payload := math.Float64frombits(0x7ff80000deadbeef)
	if Float(payload).num != nanBits || !Float(payload).Equal(Float(math.NaN())) {
		t.Error("a NaN's payload was kept")
	}
	negZero, _ := Float(math.Copysign(0, -1)).Float64()
	if math.Float64bits(negZero) != 1<<63 {
		t.Error("the sign of -0.0 was lost")
	}
}

func TestCloneStandsAlone(t *testing.T) {
	for _, v := range samples() {
		if v.Kind() == KindInvalid {
			continue
		}
		area := appendParam(nil, v)
		decoded, _, err := ParseParam(area)
		if err != nil {
			t.Fatal(err)
		}
		clone := decoded.Clone()
		for i := range area {
			area[i] ^= 0x55
		}
		if !clone.Equal(v) {
			t.Errorf("a clone of %v %v changed with the area to %v", v.Kind(), v, clone)
		}
	}
}

func TestConstructorsShareMemoryButBigIntDoesNot(t *testing.T) {
	b, list, i := []byte{1, 2}, []int64{3, 4}, big.NewInt(5)
	vb, vl, vi := Bytes(b), Ints(list), BigInt(i)
	b[0], list[1] = 9, 9
	i.SetInt64(99)
	if vb.ByteSlice()[0] != 9 || vl.At(1) != 9 {
		t.Error("Bytes or Ints made a copy")
	}
	if vi.BigInt().Int64() != 5 {
		t.Error("BigInt made no copy")
	}
}

func TestAccessorsOfAnotherKindGiveNothing(t *testing.T) {
	for _, v := range samples() {
		_, isInt := v.Int64()
		_, isUint := v.Uint64()
		_, isFloat := v.Float64()
		integer := v.Kind() == KindInt
		if (isInt || isUint) && !integer || isFloat != (integer || v.Kind() == KindFloat) {
			t.Errorf("%v %v: read as int %v, uint %v, float %v", v.Kind(), v, isInt, isUint, isFloat)
		}
		if v.Bool() && v.Kind() != KindBool ||
			v.Str() != "" && v.Kind() != KindString ||
			v.ByteSlice() != nil && v.Kind() != KindBytes ||
			v.Int64s() != nil && v.Kind() != KindInts ||
			v.At(0) != 0 && v.Kind() != KindInts ||
			v.BigInt() != nil && !integer && v.Kind() != KindBig {
			t.Errorf("%v %v answers as another kind", v.Kind(), v)
		}
	}
	list := Ints([]int64{7})
	if list.At(-1) != 0 || list.At(1) != 0 {
		t.Error("an element out of range is not 0")
	}
}

func TestValueOfGoTypes(t *testing.T) {
	tests := []struct {
		in   any
		want Value
	}{
		{true, Bool(true)}, {int(-3), Int(-3)}, {int8(-3), Int(-3)}, {int16(-3), Int(-3)}, {int32(-3), Int(-3)}, {int64(-3), Int(-3)},
		{uint(3), Int(3)}, {uint8(3), Int(3)}, {uint16(3), Int(3)}, {uint32(3), Int(3)}, {uint64(math.MaxUint64), Uint(math.MaxUint64)},
		{float32(0.5), Float(0.5)}, {float64(2), Float(2)}, {"s", String("s")}, {big.NewInt(4), BigInt(big.NewInt(4))},
		{[]byte{1}, Bytes([]byte{1})}, {[]int64{1}, Ints([]int64{1})}, {Int(8), Int(8)},
		{nil, Value{}}, {struct{}{}, Value{}}, {(*big.Int)(nil), Value{}}, {[]string{"a"}, Value{}}, {func() {}, Value{}},
	}
	for _, tt := range tests {
		if got := ValueOf(tt.in); !got.Equal(tt.want) {
			t.Errorf("ValueOf(%T) is %v %v, want %v %v", tt.in, got.Kind(), got, tt.want.Kind(), tt.want)
		}
	}
}

func TestValueText(t *testing.T) {
	tests := []struct {
		v    Value
		want string
	}{
		{Value{}, "invalid"}, {Bool(true), "true"}, {Int(-5), "-5"}, {Uint(math.MaxUint64), "18446744073709551615"},
		{Float(1), "1.0"}, {Float(math.Copysign(0, -1)), "-0.0"}, {Float(1e21), "1e+21"}, {Float(math.NaN()), "NaN"}, {Float(math.Inf(-1)), "-Inf"},
		{BigInt(big.NewInt(-12)), "-12n"}, {String("a\"b\n"), `"a\"b\n"`}, {Bytes([]byte("hi")), "base64:aGk="}, {Ints([]int64{1, -2}), "[1 -2]"},
	}
	for _, tt := range tests {
		if got := tt.v.String(); got != tt.want {
			t.Errorf("%v prints as %s, want %s", tt.v.Kind(), got, tt.want)
		}
	}
	if got := Kind(99).String(); got != "kind 99" {
		t.Errorf("an unknown kind prints as %s", got)
	}
}

func TestNumbersDoNotAllocate(t *testing.T) {
	var sink Value
	allocs := testing.AllocsPerRun(100, func() {
		sink = Int(1 << 40)
		sink = Uint(math.MaxUint64)
		sink = Float(0.5)
		sink = Number(12)
		sink = Bool(true)
		sink = String("text")
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
	if sink.Str() != "text" {
		t.Error("the last value is not the string")
	}
}
