package transport

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// carrier is what carries frames between two ends: an ordered stream of
// bytes each way. quic.go has the one for QUIC.
type carrier interface {
	io.Reader
	io.Writer
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	// End closes both directions at once and loses what is not yet
	// delivered. Where the carrier can tell the peer, the peer's Read and
	// Write fail with a Refusal of this code, or with io.EOF for CodeNone.
	// End may be called by any goroutine, and again.
	End(code Code, text string)
	RemoteAddr() net.Addr
}

const (
	// readBuffer holds the frames of usual size; a larger one is copied
	// together.
	readBuffer = 32 << 10
	// keepBuffer is the largest memory for a large frame that is kept for
	// the next one.
	keepBuffer = 256 << 10
)

// frameReader reads frames. Its memory grows with the bytes that came, not
// with the length that a frame announces.
type frameReader struct {
	c carrier
	r *bufio.Reader
	// silence is how long a read may take; 0 for any time.
	silence time.Duration
	born    time.Time
	heard   atomic.Int64 // when the last bytes came, since born
	used    int          // bytes of r that the last frame took
	large   []byte
}

func newFrameReader(c carrier) *frameReader {
	f := &frameReader{c: c, born: time.Now()}
	f.r = bufio.NewReaderSize(timedReader{f}, readBuffer)
	return f
}

// timedReader sets the deadline of every read of the carrier.
type timedReader struct{ f *frameReader }

func (t timedReader) Read(b []byte) (int, error) {
	deadline := time.Time{}
	if t.f.silence > 0 {
		deadline = time.Now().Add(t.f.silence)
	}
	if err := t.f.c.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	n, err := t.f.c.Read(b)
	if n > 0 {
		t.f.heard.Store(int64(time.Since(t.f.born)))
	}
	return n, err
}

// quiet is for how long nothing came, for people. What carries the frames may
// have given up before the reader's own time was over.
func (f *frameReader) quiet() time.Duration {
	return (time.Since(f.born) - time.Duration(f.heard.Load())).Round(100 * time.Millisecond)
}

// next returns the next frame. The body is valid until the next call. The
// error is io.EOF where the stream ends between two frames.
func (f *frameReader) next() (typ byte, body []byte, err error) {
	f.r.Discard(f.used)
	f.used = 0
	typ, length, head, err := f.head()
	if err != nil {
		return 0, nil, err
	}
	if head+length <= f.r.Size() {
		b, err := f.r.Peek(head + length)
		if err != nil {
			return 0, nil, unexpected(err)
		}
		f.used = head + length
		return typ, b[head:], nil
	}
	f.r.Discard(head)
	body, err = f.readLarge(length)
	return typ, body, err
}

// head waits for the first bytes of a frame.
func (f *frameReader) head() (typ byte, length, size int, err error) {
	for n := 2; ; n++ {
		b, err := f.r.Peek(n)
		if err != nil {
			if len(b) > 0 {
				err = unexpected(err)
			}
			return 0, 0, 0, err
		}
		typ, length, size, err := frameHead(b)
		if err != errShort {
			return typ, length, size, err
		}
	}
}

// readLarge reads a body that is larger than the buffer.
func (f *frameReader) readLarge(length int) ([]byte, error) {
	if cap(f.large) > keepBuffer && length <= keepBuffer {
		f.large = nil
	}
	b := f.large[:0]
	for len(b) < length {
		step := min(length-len(b), max(len(b), readBuffer))
		if cap(b)-len(b) < step {
			b = append(make([]byte, 0, min(length, 2*(len(b)+step))), b...)
		}
		n, err := io.ReadFull(f.r, b[len(b):len(b)+step])
		b = b[:len(b)+n]
		if err != nil {
			f.large = nil
			return nil, unexpected(err)
		}
	}
	f.large = b
	return b, nil
}

// unexpected names the end of the stream inside a frame.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// silent tells whether err says that a deadline has passed.
func silent(err error) bool {
	var t net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

// writeWithin writes b, if it is not empty, or fails once within has passed.
func writeWithin(c carrier, b []byte, within time.Duration) error {
	if len(b) == 0 {
		return nil
	}
	if err := c.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	_, err := c.Write(b)
	return err
}
