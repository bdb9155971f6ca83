package format

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// MaxUnwrapped bounds what a compressed, RPLY1 or JSON lines file may grow
// to in memory while it is opened.
const MaxUnwrapped = 1 << 30

const (
	zstdMagic  = "\x28\xb5\x2f\xfd"
	gzipMagic  = "\x1f\x8b"
	rply1Magic = "RPLY1\x00"
	// zstdWindow bounds the memory that a compressed file can demand before
	// a byte of it is read.
	zstdWindow = 128 << 20
)

// unwrap finds out what f.src holds by its first bytes and leaves RPLY2
// bytes in f.src.
func (f *File) unwrap() error {
	var err error
	if f.src, f.size, f.Wrapping, err = Unwrap(f.src, f.size); err != nil {
		return err
	}
	head := make([]byte, min(f.size, HeaderSize))
	if err := readFull(f.src, head, 0); err != nil {
		return err
	}
	convert := f.converter(head)
	if convert == nil {
		return CheckHeader(head)
	}
	if f.size > MaxUnwrapped {
		return fmt.Errorf("%w: %d bytes of %s, the most is %d", ErrLimit, f.size, f.Source, MaxUnwrapped)
	}
	var out Buffer
	if err := convert(io.NewSectionReader(f.src, 0, f.size), &out); err != nil {
		var torn *TornError
		if !errors.As(err, &torn) || len(out.b) == 0 {
			return err
		}
		f.Torn = torn
	}
	f.src, f.size = &out, int64(len(out.b))
	return nil
}

// converter picks how a foreign format is read; nil for RPLY2.
func (f *File) converter(head []byte) func(*io.SectionReader, *Buffer) error {
	switch {
	case len(head) > 0 && (strings.HasPrefix(rply1Magic, string(head[:min(len(head), len(rply1Magic))]))):
		f.Source = "rply1"
		return readRPLY1
	case len(head) > 0 && head[0] == '{':
		f.Source = "jsonl"
		return readJSONL
	}
	return nil
}

// notReplay says where the first bytes differ from the magic that they are
// closest to.
func notReplay(head []byte) error {
	if len(head) == 0 {
		return fmt.Errorf("%w: no magic at offset 0, the file is empty", ErrNotReplay)
	}
	same, magic, name := 0, "", ""
	for _, known := range [...]struct{ magic, name string }{{Magic, "RPLY2"}, {rply1Magic, "RPLY1"}} {
		n := 0
		for n < min(len(head), len(known.magic)) && head[n] == known.magic[n] {
			n++
		}
		if n > same {
			same, magic, name = n, known.magic, known.name
		}
	}
	switch {
	case same == 0 || same == len(head):
		return fmt.Errorf("%w: no known magic at offset 0", ErrNotReplay)
	case same == len(magic):
		return fmt.Errorf("%w of this format: it begins as %s", ErrNotReplay, name)
	}
	return fmt.Errorf("%w: byte %02x at offset %d, where the magic of %s has %02x", ErrNotReplay, head[same], same, name, magic[same])
}

func wrapping(head []byte) string {
	switch {
	case strings.HasPrefix(string(head), zstdMagic):
		return "zst"
	case strings.HasPrefix(string(head), gzipMagic):
		return "gz"
	}
	return ""
}

// decompress unwraps at most so many bytes.
func decompress(name string, file *io.SectionReader, most int64) ([]byte, error) {
	src := &notingReader{src: file}
	b, err := inflate(name, src, most)
	switch {
	case src.err != nil:
		return nil, src.err
	case err != nil:
		return nil, wrapError(name, err)
	case int64(len(b)) > most:
		return nil, fmt.Errorf("%w: the %s wrapping holds more than %d bytes: unpack it first", ErrLimit, name, most)
	}
	return b, nil
}

// notingReader notes an error of its source: one that could not be read is
// not damaged.
type notingReader struct {
	src io.Reader
	err error
}

func (r *notingReader) Read(b []byte) (int, error) {
	n, err := r.src.Read(b)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// inflate reads at most one byte more than most.
func inflate(name string, src io.Reader, most int64) ([]byte, error) {
	var r io.Reader
	if name == "gz" {
		z, err := gzip.NewReader(src)
		if err != nil {
			return nil, err
		}
		r = z
	} else {
		z, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	}
	return io.ReadAll(io.LimitReader(r, most+1))
}

// Unwrap gives the bytes inside a .zst or .gz wrapping and its name; bytes
// without one as they are.
func Unwrap(src io.ReaderAt, size int64) (io.ReaderAt, int64, string, error) {
	head := make([]byte, min(size, HeaderSize))
	if err := readFull(src, head, 0); err != nil {
		return nil, 0, "", err
	}
	name := wrapping(head)
	if name == "" {
		return src, size, "", nil
	}
	b, err := decompress(name, io.NewSectionReader(src, 0, size), MaxUnwrapped)
	return bytes.NewReader(b), int64(len(b)), name, err
}

// wrapError tells a cut wrapping from a damaged one. The place inside a
// compressed stream means nothing to its reader, so the wrapping is named.
func wrapError(name string, err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%w: the %s wrapping ends early", ErrTorn, name)
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fmt.Errorf("%w: the %s wrapping needs more than %d bytes at once: unpack it first", ErrLimit, name, zstdWindow)
	}
	return &CorruptError{What: fmt.Sprintf("%s wrapping: %v", name, err)}
}

// Buffer is a replay in memory that grows at its end.
type Buffer struct{ b []byte }

// Write appends p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.b = append(b.b, p...)
	return len(p), nil
}

// ReadAt reads what was written.
func (b *Buffer) ReadAt(p []byte, at int64) (int, error) {
	if at >= int64(len(b.b)) {
		return 0, io.EOF
	}
	n := copy(p, b.b[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Bytes gives all that was written.
func (b *Buffer) Bytes() []byte { return b.b }
