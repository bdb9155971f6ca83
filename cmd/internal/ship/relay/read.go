package relay

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/quic-go/quic-go"

	"reprise/transport"
)

// frames reads the daemon's frames.
type frames struct {
	r    *bufio.Reader
	body []byte
}

func newFrames(stream *quic.Stream, silence time.Duration) *frames {
	return &frames{r: bufio.NewReaderSize(patientReader{stream, silence}, 32<<10)}
}

// patientReader bounds how long the daemon may be silent.
type patientReader struct {
	stream  *quic.Stream
	silence time.Duration
}

func (p patientReader) Read(b []byte) (int, error) {
	if err := p.stream.SetReadDeadline(time.Now().Add(p.silence)); err != nil {
		return 0, err
	}
	n, err := p.stream.Read(b)
	return n, plainError(err)
}

// next returns the next frame; its body is valid until the next call.
func (f *frames) next() (typ byte, body []byte, err error) {
	if typ, err = f.r.ReadByte(); err != nil {
		return 0, nil, err
	}
	size, err := binary.ReadUvarint(f.r)
	if err != nil {
		return 0, nil, err
	}
	if size > transport.MaxFrame {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes, the most is %d", ErrFrame, size, transport.MaxFrame)
	}
	if uint64(cap(f.body)) < size {
		f.body = make([]byte, size)
	}
	f.body = f.body[:size]
	_, err = io.ReadFull(f.r, f.body)
	return typ, f.body, err
}

// plainError says what an error of QUIC means here: the daemon's close is a
// refusal, or io.EOF where its work was done.
func plainError(err error) error {
	var closed *quic.ApplicationError
	if !errors.As(err, &closed) || !closed.Remote {
		return err
	}
	if transport.Code(closed.ErrorCode) == transport.CodeNone {
		return io.EOF
	}
	return &transport.Refusal{Code: transport.Code(closed.ErrorCode), Text: closed.ErrorMessage}
}
