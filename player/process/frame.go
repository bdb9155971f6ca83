package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// A message is framed so:
//
//	┌────────────┬─────────┬───────────────┐
//	│ length u32 │ type u8 │ body          │
//	└────────────┴─────────┴───────────────┘
//
// The length counts the type and the body.
const (
	lengthBytes = 4
	frameHead   = lengthBytes + 1
)

// beginFrame appends the head of a message; endFrame sets its length.
func beginFrame(dst []byte, t messageType) []byte {
	return append(dst, 0, 0, 0, 0, byte(t))
}

// endFrame completes the message that begins at dst[start].
func endFrame(dst []byte, start int) []byte {
	order.PutUint32(dst[start:], uint32(len(dst)-start-lengthBytes))
	return dst
}

// appendEmpty appends a message without a body.
func appendEmpty(dst []byte, t messageType) []byte {
	return endFrame(beginFrame(dst, t), len(dst))
}

// readBuffer is the size of the largest message that is read in place.
const readBuffer = 64 << 10

// frameReader reads messages.
type frameReader struct {
	r *bufio.Reader
	// passed is the size of the message that was given last.
	passed int
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, readBuffer)}
}

// waits reports whether the next message has to come from the connection.
func (f *frameReader) waits() bool { return f.r.Buffered() <= f.passed }

// next gives the next message. The body is valid until the next call. The
// error is io.EOF where the other side closed the connection between two
// messages.
func (f *frameReader) next() (messageType, []byte, error) {
	// What was given by Peek is still there to be passed.
	_, _ = f.r.Discard(f.passed)
	f.passed = 0
	head, err := f.r.Peek(frameHead)
	if err != nil {
		return 0, nil, cutShort(err, len(head))
	}
	length, t := order.Uint32(head), messageType(head[lengthBytes])
	info, known := messages[t]
	switch {
	case !known:
		return t, nil, badMessage(t, errUnknown)
	case length == 0:
		return t, nil, fmt.Errorf("%w: a message of length 0: the length counts the type", errBad)
	case uint64(length) > uint64(info.most):
		return t, nil, badMessage(t, fmt.Errorf("%w: length %d, the most is %d", errBad, length, info.most))
	}
	return f.body(t, int(length)-1)
}

func (f *frameReader) body(t messageType, n int) (messageType, []byte, error) {
	if frameHead+n > readBuffer {
		return f.largeBody(t, n)
	}
	frame, err := f.r.Peek(frameHead + n)
	if err != nil {
		return t, nil, cutShort(err, len(frame))
	}
	f.passed = len(frame)
	return t, frame[frameHead:], nil
}

// largeBody reads into memory that grows with what has come, so that a length
// that lies costs nothing.
func (f *frameReader) largeBody(t messageType, n int) (messageType, []byte, error) {
	_, _ = f.r.Discard(frameHead)
	var body bytes.Buffer
	if _, err := io.CopyN(&body, f.r, int64(n)); err != nil {
		return t, nil, cutShort(err, frameHead)
	}
	return t, body.Bytes(), nil
}

// cutShort tells an end between two messages from one inside of a message.
func cutShort(err error, got int) error {
	if errors.Is(err, io.EOF) && got > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}
