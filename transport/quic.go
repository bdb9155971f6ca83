package transport

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// quicCarrier carries frames on the one bidirectional stream of a QUIC
// connection.
type quicCarrier struct {
	*quic.Stream
	conn *quic.Conn
	// release frees what belongs to the connection on this end.
	release func()
	once    sync.Once
}

func (q *quicCarrier) Read(b []byte) (int, error) {
	n, err := q.Stream.Read(b)
	return n, quicError(err)
}

func (q *quicCarrier) Write(b []byte) (int, error) {
	n, err := q.Stream.Write(b)
	return n, quicError(err)
}

// End sends QUIC's CONNECTION_CLOSE with the code.
func (q *quicCarrier) End(code Code, text string) {
	q.once.Do(func() {
		q.conn.CloseWithError(quic.ApplicationErrorCode(code), cutText(text, MaxRefusalText))
		if q.release != nil {
			q.release()
		}
	})
}

func (q *quicCarrier) RemoteAddr() net.Addr { return q.conn.RemoteAddr() }

// quicError turns the peer's close into a Refusal, or io.EOF.
func quicError(err error) error {
	var closed *quic.ApplicationError
	if !errors.As(err, &closed) || !closed.Remote {
		return err
	}
	if Code(closed.ErrorCode) == CodeNone {
		return io.EOF
	}
	return &Refusal{Code: Code(closed.ErrorCode), Text: cutText(closed.ErrorMessage, MaxRefusalText)}
}

// Flow control of QUIC. A connection begins small and grows where its
// reader keeps up.
const (
	initialWindow = 512 << 10
	maxWindow     = 8 << 20
)

// serverQUIC is the daemon's QUIC configuration.
func serverQUIC(cfg *Config, grow func(*quic.Conn, uint64) bool) *quic.Config {
	return &quic.Config{
		HandshakeIdleTimeout: cfg.HelloTimeout, MaxIdleTimeout: cfg.Silence,
		InitialStreamReceiveWindow: initialWindow, MaxStreamReceiveWindow: maxWindow,
		InitialConnectionReceiveWindow: initialWindow, MaxConnectionReceiveWindow: maxWindow,
		AllowConnectionWindowIncrease: grow,
		MaxIncomingStreams:            1, MaxIncomingUniStreams: -1,
	}
}

// clientQUIC is the client's QUIC configuration.
func clientQUIC(handshake, silence time.Duration) *quic.Config {
	return &quic.Config{HandshakeIdleTimeout: handshake, MaxIdleTimeout: silence,
		MaxIncomingStreams: -1, MaxIncomingUniStreams: -1}
}
