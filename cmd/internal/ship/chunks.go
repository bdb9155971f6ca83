package ship

import (
	"errors"
	"io"

	"reprise/format"
)

// chunks reads single chunks from the bytes of a file that may be growing.
type chunks struct {
	src  io.ReaderAt
	size int64
	buf  []byte
	at   int64 // of buf[0]
}

const (
	// window is how much is read at once, mostWindow what the largest chunk
	// needs.
	window     = 64 << 10
	mostWindow = format.MaxBody + 64
)

// read returns the chunk at offset at, and its framed bytes; both are valid
// until the next call. io.EOF is the end; an error that matches
// format.ErrTorn says that the chunk is not whole yet. Damage has its place
// in the file.
func (c *chunks) read(at int64) (format.Chunk, []byte, error) {
	for want := int64(window); ; want = min(4*want, mostWindow) {
		if at >= c.size {
			return format.Chunk{}, nil, io.EOF
		}
		b, err := c.bytes(at, want)
		if err != nil {
			return format.Chunk{}, nil, err
		}
		chunk, n, err := format.ParseChunk(b)
		switch {
		case err == nil:
			return chunk, b[:n], nil
		case errors.Is(err, format.ErrTorn) && int64(len(b)) < c.size-at:
			continue
		case errors.Is(err, format.ErrCorrupt):
			return chunk, nil, c.damage(at, err)
		}
		return chunk, nil, err
	}
}

// bytes returns at least want bytes from offset at on, or all that are left.
func (c *chunks) bytes(at, want int64) ([]byte, error) {
	if end := c.at + int64(len(c.buf)); at >= c.at && at < end && (want == window || end-at >= want) {
		return c.buf[at-c.at:], nil
	}
	want = min(want, c.size-at)
	if int64(cap(c.buf)) < want {
		c.buf = make([]byte, want)
	}
	c.buf, c.at = c.buf[:want], at
	if err := readFull(c.src, c.buf, at); err != nil {
		c.buf = c.buf[:0]
		return nil, err
	}
	return c.buf, nil
}

// damage gives an error its place. A tail of zeros is none: some systems show
// the length of a write before its bytes.
func (c *chunks) damage(at int64, err error) error {
	var d *format.CorruptError
	if !errors.As(err, &d) {
		return err
	}
	zero, zerr := zeros(c.src, at, c.size)
	switch {
	case zerr != nil:
		return zerr
	case zero:
		return &format.TornError{Offset: at, Size: c.size}
	}
	return &format.CorruptError{Offset: at + d.Offset, What: d.What}
}

// zeros tells whether all bytes from offset at up to end are zero.
func zeros(src io.ReaderAt, at, end int64) (bool, error) {
	b := make([]byte, window)
	for ; at < end; at += int64(len(b)) {
		b = b[:min(int64(len(b)), end-at)]
		if err := readFull(src, b, at); err != nil {
			return false, err
		}
		for _, x := range b {
			if x != 0 {
				return false, nil
			}
		}
	}
	return true, nil
}

// readFull fills b from offset at.
func readFull(src io.ReaderAt, b []byte, at int64) error {
	n, err := src.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
