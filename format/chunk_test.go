package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestChunkRoundTrip(t *testing.T) {
	for _, want := range []Chunk{
		{Type: ChunkTicks, Seq: 1, Body: []byte{}},
		{Type: ChunkMark, Seq: 0, Body: []byte("a body")},
		{Type: 0xf3, Seq: 1<<64 - 1, Body: bytes.Repeat([]byte{0xc5}, 300)},
	} {
		framed := AppendChunk([]byte("before"), want.Type, want.Seq, want.Body)[len("before"):]
		got, n, err := ParseChunk(append(bytes.Clone(framed), 1, 2, 3))
		if err != nil || n != len(framed) {
			t.Fatalf("%v: length %d of %d, error %v", want.Type, n, len(framed), err)
		}
		if got.Type != want.Type || got.Seq != want.Seq || !bytes.Equal(got.Body, want.Body) {
			t.Errorf("wrote %+v, read %+v", want, got)
		}
		for cut := 1; cut < len(framed); cut++ {
			if _, _, err := ParseChunk(framed[:cut]); !errors.Is(err, ErrTorn) {
				t.Fatalf("%v cut at %d of %d: %v, want torn", want.Type, cut, len(framed), err)
			}
		}
	}
}

// frame puts a chunk together without AppendChunk, its checksum computed bit
// by bit; seq are the bytes of the sequence number.
func frame(marker, typ byte, length uint32, seq, body []byte) []byte {
	head := binary.BigEndian.AppendUint32([]byte{marker, typ}, length)
	sum := binary.BigEndian.AppendUint32(nil, chunkSumOf(head, seq, body))
	return slices.Concat(head, sum, seq, body)
}

func TestChunkIsFramedAsItIsSpecified(t *testing.T) {
	for _, seq := range []uint64{0, 1, 127, 128, 1 << 63, 1<<64 - 1} {
		body := []byte("a mark, as it were")
		if got, want := AppendChunk(nil, ChunkMark, seq, body), frame(0xc5, 0x83, uint32(len(body)), leb(seq), body); !bytes.Equal(got, want) {
			t.Errorf("sequence %d: framed as %x, want %x", seq, got, want)
		}
	}
	if got := chunkSumOf([]byte("123456789")); got != 0xe3069283 {
		t.Errorf("the checksum of the tests is %08x", got)
	}
}

func TestChunksThatAreRefused(t *testing.T) {
	body := []byte("body")
	for name, c := range map[string]struct {
		b      []byte
		offset int64
		says   string
	}{
		"another marker":            {frame(0xc4, 0x83, 4, leb(1), body), 0, "byte c4 where a chunk begins with c5"},
		"a length over the limit":   {frame(0xc5, 0x83, MaxBody+1, leb(1), body), 2, "length 16777217 of the mark chunk"},
		"the largest length":        {frame(0xc5, 0x83, 1<<32-1, leb(1), body), 2, "length 4294967295"},
		"a length less than it is":  {frame(0xc5, 0x83, 3, leb(1), body), 6, "checksum of the mark chunk"},
		"a long sequence number":    {frame(0xc5, 0x83, 4, []byte{0x81, 0}, body), 10, "shortest uvarint"},
		"a zero in two bytes":       {frame(0xc5, 0x83, 4, []byte{0x80, 0}, body), 10, "shortest uvarint"},
		"a sequence number too big": {frame(0xc5, 0x83, 4, append(bytes.Repeat([]byte{0xff}, 9), 2), body), 10, "64 bits"},
		"a sequence without an end": {frame(0xc5, 0x83, 4, bytes.Repeat([]byte{0x80}, 11), body), 10, "64 bits"},
	} {
		_, _, err := ParseChunk(c.b)
		var bad *CorruptError
		if !errors.As(err, &bad) || bad.Offset != c.offset || !strings.Contains(bad.What, c.says) {
			t.Errorf("%s: %v, want damage at offset %d with %q", name, err, c.offset, c.says)
		}
	}
	good := frame(0xc5, 0x83, 4, leb(1), body)
	for bit := range 8 * len(good) {
		hurt := bytes.Clone(good)
		hurt[bit/8] ^= 1 << (bit % 8)
		if _, _, err := ParseChunk(hurt); err == nil {
			t.Errorf("bit %d of byte %d: not noticed", bit%8, bit/8)
		}
	}
}

func TestTypesThatAreNotKnown(t *testing.T) {
	for typ := range 256 {
		_, known := chunkNames[ChunkType(typ)]
		_, n, err := ParseChunk(frame(0xc5, byte(typ), 0, leb(1), nil))
		switch {
		case known || typ >= 0x80:
			if err != nil || n != 11 {
				t.Errorf("type %#02x: %d bytes, %v", typ, n, err)
			}
		case !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), fmt.Sprintf("%#02x", typ)):
			t.Errorf("type %#02x: %v, want newer", typ, err)
		}
	}
}

func TestFileHeaders(t *testing.T) {
	head := func(magic string, major, minor byte) []byte {
		b := append([]byte(magic), major, minor)
		return binary.BigEndian.AppendUint32(b, chunkSumOf(b))
	}
	if got, want := AppendHeader(nil), head("\x89RPLY2\r\n\x1a\n", 1, 0); !bytes.Equal(got, want) {
		t.Errorf("the file header is % x, want % x", got, want)
	}
	hurt := AppendHeader(nil)
	hurt[14] ^= 1
	for name, c := range map[string]struct {
		b    []byte
		want error
		says string
	}{
		"as it is":               {AppendHeader(nil), nil, ""},
		"a higher minor version": {head(Magic, 1, 200), nil, ""},
		"with more behind it":    {append(AppendHeader(nil), 1, 2, 3), nil, ""},
		"a higher major version": {head(Magic, 2, 7), ErrNewer, "format version 2.7, this program reads up to 1.x"},
		"major version 0":        {head(Magic, 0, 9), ErrCorrupt, "offset 10: format version 0.9"},
		"another checksum":       {hurt, ErrCorrupt, "offset 12: checksum of the file header"},
		"another magic":          {head("\x89RPLY3\r\n\x1a\n", 1, 0), ErrNotReplay, "byte 33 at offset 5"},
		"nothing":                {nil, ErrNotReplay, "empty"},
	} {
		err := CheckHeader(c.b)
		if (err == nil) != (c.want == nil) || err != nil && (!errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.want, c.says)
		}
	}
	for cut := 1; cut < HeaderSize; cut++ {
		if err := CheckHeader(AppendHeader(nil)[:cut]); !errors.Is(err, ErrTorn) {
			t.Errorf("cut at %d: %v, want torn", cut, err)
		}
	}
}

// TestNoByteOfRPLY1sMagicTurnsIntoThisOne damages one byte of the older
// magic: the answer never is that it is a damaged file of this format.
func TestNoByteOfRPLY1sMagicTurnsIntoThisOne(t *testing.T) {
	for at := range len(rply1Magic) {
		for x := range 256 {
			b := append([]byte(rply1Magic), make([]byte, 40)...)
			b[at] = byte(x)
			if err := CheckHeader(b); !errors.Is(err, ErrNotReplay) {
				t.Fatalf("byte %d as %02x: %v", at, x, err)
			}
		}
	}
}

func TestEachFormatsRepairRefusesTheOther(t *testing.T) {
	_, two := smallSession().file(t, 1)
	one := append([]byte(rply1Magic), make([]byte, 33)...)
	for name, repair := range map[string]func(out ReplayFile) error{
		"it begins as RPLY1": func(out ReplayFile) error { _, err := Repair(bytes.NewReader(one), int64(len(one)), out); return err },
		"it begins as RPLY2": func(out ReplayFile) error {
			_, err := RepairRPLY1(bytes.NewReader(two), int64(len(two)), out)
			return err
		},
	} {
		if err := repair(&Buffer{}); !errors.Is(err, ErrNotReplay) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}
