package format

import (
	"bytes"
	"errors"
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
