package format

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
)

func encode(t *testing.T, v Value) []byte {
	t.Helper()
	b, err := AppendParam(nil, v)
	if err != nil {
		t.Fatalf("%v %v: %v", v.Kind(), v, err)
	}
	return b
}

// unhex reads hexadecimal with spaces.
func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParameterBytes(t *testing.T) {
	tests := []struct {
		name string
		v    Value
		want string
	}{
		{"false", Bool(false), "00 00"},
		{"true", Bool(true), "00 01"},
		{"int8 min", Int(-128), "01 80"},
		{"int8 max", Int(127), "01 7f"},
		{"int16 above int8", Int(128), "02 0080"},
		{"int16 below int8", Int(-129), "02 ff7f"},
		{"int16 min", Int(-32768), "02 8000"},
		{"int16 max", Int(32767), "02 7fff"},
		{"int32 above int16", Int(32768), "03 00008000"},
		{"int32 below int16", Int(-32769), "03 ffff7fff"},
		{"int32 min", Int(-1 << 31), "03 80000000"},
		{"int32 max", Int(1<<31 - 1), "03 7fffffff"},
		{"int64 above int32", Int(1 << 31), "04 80000000 00000000"},
		{"int64 below int32", Int(-1<<31 - 1), "05 80000001 00000000"},
		{"int64 -(2^32+1)", Int(-(1<<32 + 1)), "05 00000001 00000001"},
		{"int64 2^53-1", Int(1<<53 - 1), "04 ffffffff 001fffff"},
		{"int64 max", Int(math.MaxInt64), "04 ffffffff 7fffffff"},
		{"int64 min", Int(math.MinInt64), "05 00000000 80000000"},
		{"widest", Uint(math.MaxUint64), "04 ffffffff ffffffff"},
		{"widest negative", integer(math.MaxUint64, true), "05 ffffffff ffffffff"},
		{"float 1.5", Float(1.5), "06 3ff8000000000000"},
		{"float 1", Float(1), "06 3ff0000000000000"},
		{"float -0.0", Float(math.Copysign(0, -1)), "06 8000000000000000"},
		{"float NaN", Float(math.NaN()), "06 7ff8000000000000"},
		{"bigint 0", BigInt(new(big.Int)), "07 01 00"},
		{"bigint 100", BigInt(big.NewInt(100)), "07 01 64"},
		{"bigint of eight bytes", BigInt(big.NewInt(0x0102030405060708)), "07 08 0807060504030201"},
		{"bigint -1", BigInt(big.NewInt(-1)), "08 01 01"},
		{"bigint -128", BigInt(big.NewInt(-128)), "08 01 80"},
		{"bigint -129", BigInt(big.NewInt(-129)), "08 01 81"},
		{"bigint -256", BigInt(big.NewInt(-256)), "08 02 0001"},
		{"bigint -65537", BigInt(big.NewInt(-65537)), "08 03 010001"},
		{"empty string", String(""), "20"},
		{"short string", String("hi"), "22 6869"},
		{"string with a byte order mark", String("\ufeffa"), "24 efbbbf61"},
		{"string that is not UTF-8", String("\xff\x00"), "22 ff00"},
		{"bytes", Bytes([]byte{1, 2, 0xff}), "0a 00000003 0102ff"},
		{"no bytes", Bytes(nil), "0a 00000000"},
		{"empty list", Ints(nil), "0b 01 00000000"},
		{"list of int8", Ints([]int64{1, -1, -128, 127}), "0b 01 00000004 01ff807f"},
		{"list of int16", Ints([]int64{1, -129}), "0b 02 00000002 0001 ff7f"},
		{"list of int32", Ints([]int64{32768, -1}), "0b 04 00000002 00008000 ffffffff"},
		{"list of int64", Ints([]int64{1 << 31, -1}), "0b 08 00000002 0000000080000000 ffffffffffffffff"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := unhex(t, tt.want)
			got := encode(t, tt.v)
			if !bytes.Equal(got, want) {
				t.Fatalf("written as %x, want %x", got, want)
			}
			if tt.v.TypeByte() != want[0] || tt.v.size() != len(want) {
				t.Errorf("type %d and size %d, want %d and %d", tt.v.TypeByte(), tt.v.size(), want[0], len(want))
			}
			back, n, err := ParseParam(append(got, 0xee))
			if err != nil || n != len(want) || !back.Equal(tt.v) {
				t.Errorf("read back as %v %v, %d bytes, %v", back.Kind(), back, n, err)
			}
		})
	}
}

func TestStringChoosesItsLengthForm(t *testing.T) {
	tests := []struct{ length, head int }{{0, 1}, {223, 1}, {224, 5}, {300, 5}, {70000, 5}}
	for _, tt := range tests {
		v := String(strings.Repeat("s", tt.length))
		b := encode(t, v)
		wantType := byte(9)
		if tt.head == 1 {
			wantType = byte(32 + tt.length)
		}
		if b[0] != wantType || len(b) != tt.head+tt.length {
			t.Errorf("%d bytes: type %d, %d bytes in all", tt.length, b[0], len(b))
		}
		if back, _, err := ParseParam(b); err != nil || back.Str() != v.Str() {
			t.Errorf("%d bytes: read back %d bytes, %v", tt.length, back.Len(), err)
		}
	}
}

func TestBigIntegerLimit(t *testing.T) {
	for _, i := range []*big.Int{bigPower(1, 2040, -1), bigPower(-1, 2040, -1)} {
		b := encode(t, BigInt(i))
		if b[1] != 255 || len(b) != 257 {
			t.Errorf("a magnitude of 255 bytes has length byte %d in %d bytes", b[1], len(b))
		}
		if back, _, err := ParseParam(b); err != nil || back.BigInt().Cmp(i) != 0 {
			t.Errorf("read back as %v, %v", back, err)
		}
	}
	for _, i := range []*big.Int{bigPower(1, 2040, 0), bigPower(1, 2041, 0), bigPower(1, 2048, 0), bigPower(-1, 2040, 0)} {
		dst := []byte{1, 2}
		b, err := AppendParam(dst, BigInt(i))
		if !errors.Is(err, WarnBigInt) || len(b) != 2 {
			t.Errorf("a magnitude of %d bits: %d bytes, %v", i.BitLen(), len(b), err)
		}
	}
}

func TestUnsupportedValueIsNotWritten(t *testing.T) {
	b, err := AppendParam([]byte{7}, ValueOf(struct{}{}))
	if !errors.Is(err, WarnUnsupported) || len(b) != 1 {
		t.Errorf("wrote %x, %v", b, err)
	}
	var w Warning
	if !errors.As(err, &w) || w.Step != NoStep {
		t.Errorf("the error is %#v", err)
	}
	if (Value{}).TypeByte() != 31 {
		t.Error("the zero Value has a type that is in use")
	}
}

type otherEncoding struct {
	name, in string
	want     Value
	written  string
}

// otherEncodings is everything that reads, but is written in another way.
func otherEncodings() []otherEncoding {
	return []otherEncoding{
		{"int16 that fits int8", "02 0005", Int(5), "01 05"},
		{"int32 that fits int16", "03 ffffff7f", Int(-129), "02 ff7f"},
		{"int64 that fits int8", "04 00000005 00000000", Int(5), "01 05"},
		{"negative int64 that fits int32", "05 80000000 00000000", Int(-1 << 31), "03 80000000"},
		{"negative zero", "05 00000000 00000000", Int(0), "01 00"},
		{"boolean 7", "00 07", Bool(false), "00 00"},
		{"NaN with a payload", "06 fff8000000000001", Float(math.NaN()), "06 7ff8000000000000"},
		{"bigint without bytes", "07 00", BigInt(new(big.Int)), "07 01 00"},
		{"negative bigint without bytes", "08 00", BigInt(new(big.Int)), "07 01 00"},
		{"negative bigint zero", "08 02 0000", BigInt(new(big.Int)), "07 01 00"},
		{"bigint with zeros at its end", "07 03 050000", BigInt(big.NewInt(5)), "07 01 05"},
		{"short string in the long form", "09 00000002 6869", String("hi"), "22 6869"},
		{"list wider than it need be", "0b 04 00000001 00000005", Ints([]int64{5}), "0b 01 00000001 05"},
		{"empty list of int64", "0b 08 00000000", Ints(nil), "0b 01 00000000"},
	}
}

func TestOtherEncodingsAreRead(t *testing.T) {
	for _, tt := range otherEncodings() {
		t.Run(tt.name, func(t *testing.T) {
			in := unhex(t, tt.in)
			v, n, err := ParseParam(in)
			if err != nil || n != len(in) || !v.Equal(tt.want) {
				t.Fatalf("read as %v %v, %d bytes, %v", v.Kind(), v, n, err)
			}
			if got, want := encode(t, v), unhex(t, tt.written); !bytes.Equal(got, want) {
				t.Errorf("written as %x, want %x", got, want)
			}
			if canonical(in) {
				t.Error("counts as canonical")
			}
		})
	}
}

// canonical decides by the specification's rules alone whether the one
// parameter b is in the form that is written.
func canonical(b []byte) bool {
	switch t := b[0]; {
	case t == 0:
		return b[1] <= 1
	case t == 1:
		return true
	case t == 2:
		return b[1] != 0 && b[1] != 0xff || b[1] == 0 && b[2] >= 0x80 || b[1] == 0xff && b[2] < 0x80
	case t == 3:
		head := int(b[1])<<8 | int(b[2])
		return head != 0 && head != 0xffff || head == 0 && b[3] >= 0x80 || head == 0xffff && b[3] < 0x80
	case t == 4 || t == 5:
		high := !bytes.Equal(b[5:9], make([]byte, 4))
		low := new(big.Int).SetBytes(b[1:5])
		return high || low.Cmp(big.NewInt(1<<31+int64(t)-4)) >= 0
	case t == 6:
		exponent := int(b[1]&0x7f)<<4 | int(b[2]>>4)
		fraction := new(big.Int).SetBytes(append([]byte{b[2] & 0xf}, b[3:9]...))
		return exponent != 0x7ff || fraction.Sign() == 0 || bytes.Equal(b[1:], []byte{0x7f, 0xf8, 0, 0, 0, 0, 0, 0})
	case t == 7 && b[1] == 1:
		return true
	case t == 7 || t == 8:
		return b[1] > 0 && b[len(b)-1] != 0
	case t == 9:
		return len(b) >= 5+224
	case t == 11:
		return canonicalList(b)
	}
	return true
}

func canonicalList(b []byte) bool {
	width := int(b[1])
	if len(b) == 6 {
		return width == 1
	}
	for at := 6; at < len(b); at += width {
		element, half := b[at:at+width], width/2
		for i := range half {
			// Every byte of the upper half must repeat the lower half's sign.
			if sign := byte(int8(element[half]) >> 7); element[i] != sign {
				return true
			}
		}
	}
	return width == 1
}

func TestBadParametersAreRefused(t *testing.T) {
	tests := []struct {
		name, in string
		want     error
		text     string
	}{
		{"nothing", "", ErrParamTruncated, "parameter at byte 0"},
		{"list of width 0", "0b 00 00000000", ErrParamElement, "type 11"},
		{"list of width 3", "0b 03 00000000", ErrParamElement, "1, 2, 4 or 8"},
		{"list of width 16", "0b 10 00000001", ErrParamElement, "type 11"},
		{"string longer than memory", "09 ffffffff 61", ErrParamTruncated, "type 9"},
		{"bytes longer than memory", "0a ffffffff 61", ErrParamTruncated, "type 10"},
		{"list longer than memory", "0b 08 ffffffff 00", ErrParamTruncated, "type 11"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := ParseParam(unhex(t, tt.in))
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %v, want %v with %q", err, tt.want, tt.text)
			}
		})
	}
}

func TestReservedTypesAreRefusedByName(t *testing.T) {
	for typ := 12; typ <= 31; typ++ {
		b := append([]byte{1, 5, byte(typ)}, make([]byte, 40)...)
		_, err := ParamsLength(b, 2)
		var bad *ParamError
		if !errors.As(err, &bad) || bad.Type != typ || bad.Offset != 2 || !errors.Is(err, ErrParamReserved) {
			t.Errorf("type %d: %v", typ, err)
		}
	}
}

func TestParameterCutAtEveryByteIsRefused(t *testing.T) {
	for _, v := range samples() {
		if v.Kind() == KindInvalid {
			continue
		}
		whole := encode(t, v)
		for n := range whole {
			if _, _, err := ParseParam(whole[:n:n]); !errors.Is(err, ErrParamTruncated) {
				t.Fatalf("%v cut to %d of %d bytes: %v", v.Kind(), n, len(whole), err)
			}
		}
		if n, err := ParamLength(whole); err != nil || n != len(whole) {
			t.Errorf("%v %v: length %d of %d, %v", v.Kind(), v, n, len(whole), err)
		}
	}
}

func TestParamsLengthAddsUp(t *testing.T) {
	var area []byte
	ends := []int{0}
	for _, v := range samples()[1:] {
		area = appendParam(area, v)
		ends = append(ends, len(area))
	}
	for count, end := range ends {
		if n, err := ParamsLength(area, count); err != nil || n != end {
			t.Errorf("%d parameters: %d bytes, %v, want %d", count, n, err, end)
		}
	}
	_, err := ParamsLength(area, len(ends))
	var bad *ParamError
	if !errors.As(err, &bad) || bad.Offset != len(area) || bad.Type != -1 {
		t.Errorf("one parameter too many: %v", err)
	}
}

func TestParsingAllocatesNothing(t *testing.T) {
	var area []byte
	list := samples()[1:]
	for _, v := range list {
		area = appendParam(area, v)
	}
	allocs := testing.AllocsPerRun(50, func() {
		at := 0
		for range list {
			_, n, err := ParseParam(area[at:])
			if err != nil {
				t.Fatal(err)
			}
			at += n
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}
