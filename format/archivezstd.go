package format

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// zstdReader decodes single zstd frames of a known size.
type zstdReader struct{ d *zstd.Decoder }

// into decodes a frame that must give exactly dst's bytes. Nothing is allocated
// by what the frame says.
func (r *zstdReader) into(dst, frame []byte) error {
	if r.d == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
			zstd.WithDecoderMaxMemory(maxArchiveParts), zstd.WithDecoderMaxWindow(maxArchiveParts), zstd.WithDecoderLowmem(true))
		if err != nil {
			return err
		}
		r.d = d
	}
	got, err := r.d.DecodeAll(frame, dst[:0:len(dst)])
	if err != nil {
		return err
	}
	if len(got) != len(dst) {
		return fmt.Errorf("a frame of %d bytes, %d are due", len(got), len(dst))
	}
	return nil
}

// zstdWriter makes zstd frames.
type zstdWriter struct {
	level zstd.EncoderLevel
	e     *zstd.Encoder
}

// frame appends b as one frame.
func (w *zstdWriter) frame(dst, b []byte) []byte {
	if w.e == nil {
		// The options are constants that the encoder takes.
		w.e, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true),
			zstd.WithEncoderLevel(w.level), zstd.WithWindowSize(4<<20))
	}
	return w.e.EncodeAll(b, dst)
}
