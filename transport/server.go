package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
)

// Config configures a Server. Zero values take the default that is named.
type Config struct {
	// Recorder keeps the sessions. It must be set.
	Recorder Recorder
	// Lister answers who asks what sessions there are; nil lists none.
	Lister Lister
	// Authorise checks the token of a new connection; nil lets everyone
	// in. The refusal of an error that is none is CodeUnauthorised.
	Authorise func(token []byte, remote net.Addr) error
	// Agent introduces the program, for example "reprised 1.0"; "reprised".
	Agent string

	// ResetKey, if set, is the same after a restart of the daemon (32 random
	// bytes): with it, clients learn from their next packet that their
	// connection is gone, instead of after their DeadAfter.
	ResetKey *[32]byte

	// MaxConnections bounds the connections; 10,000.
	MaxConnections int
	// MaxHandshakes bounds the connections that are not yet established;
	// 512. From an eighth of it on, a client must first prove its address.
	MaxHandshakes int
	// MaxSessions bounds the sessions of one connection; 16,384.
	MaxSessions int
	// Window is the byte window of a session where the Recorder gives none;
	// 4 MiB.
	Window int
	// ReceiveMemory bounds what all connections together may hold of data
	// that was received and not yet read, beyond the first 512 KiB of each;
	// 256 MiB.
	ReceiveMemory int

	// HelloTimeout bounds a handshake, and then the time until the hello
	// frame has come; 5 s.
	HelloTimeout time.Duration
	// Silence is how long a connection may be silent before it is given up;
	// 10 s. A client is asked for a heartbeat every third of it.
	Silence time.Duration
	// WriteTimeout bounds every write; 10 s. A client that does not read is
	// then cut off with CodeSlow.
	WriteTimeout time.Duration
	// AckDelay gathers acks; 2 ms.
	AckDelay time.Duration
	// CloseTimeout bounds how long a closing client is kept until all that
	// it sent is durable; 10 s.
	CloseTimeout time.Duration

	// Log takes one line for each connection that ends with an error, and
	// for what a Recorder returns; nil for none.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	set(&c.Agent, "reprised")
	set(&c.MaxConnections, 10_000)
	set(&c.MaxHandshakes, 512)
	set(&c.MaxSessions, 16_384)
	set(&c.Window, 4<<20)
	set(&c.ReceiveMemory, 256<<20)
	set(&c.HelloTimeout, 5*time.Second)
	set(&c.Silence, 10*time.Second)
	set(&c.WriteTimeout, 10*time.Second)
	set(&c.AckDelay, 2*time.Millisecond)
	set(&c.CloseTimeout, 10*time.Second)
	c.Silence = min(c.Silence, 3*MaxHeartbeat)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// set gives a field its default.
func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Server accepts the connections of game servers.
type Server struct {
	cfg       Config
	conn      net.PacketConn
	transport *quic.Transport
	listener  *quic.Listener
	buffers   Buffers

	stats    serverStats
	memory   receiveMemory
	stop     context.CancelFunc // ends accepting
	accepted sync.WaitGroup     // the accept loop

	mu       sync.Mutex
	conns    map[*serverConn]struct{}
	draining *drain
	idle     chan struct{} // closed when draining and the last connection has ended
	// chunks and bytes are what connections that have ended had received.
	chunks, bytes uint64
}

// serverStats counts since the start.
type serverStats struct {
	handshakes, connections                 atomic.Int64
	refusedConnections                      atomic.Uint64
	opened, sealed, refused                 atomic.Uint64
	sessions                                atomic.Int64
	malformed, acks, slow, silentlyDeparted atomic.Uint64
}

// ServerStats are a server's figures.
type ServerStats struct {
	// Handshakes and Connections are those that exist now, Sessions the
	// sessions on them.
	Handshakes, Connections, Sessions int
	// RefusedConnections counts connections turned away before their
	// handshake.
	RefusedConnections uint64
	// Opened, Sealed and Refused count sessions, Chunks and Bytes what was
	// received, Acks the acknowledgements that were sent.
	Opened, Sealed, Refused, Chunks, Bytes, Acks uint64
	// Malformed, Slow and Silent count the connections that ended for it.
	Malformed, Slow, Silent uint64
}

// Listen starts a server on a UDP address such as "127.0.0.1:4433". The TLS
// configuration needs a certificate; see Keypair.
func Listen(addr string, tlsConfig *tls.Config, cfg Config) (*Server, error) {
	udp, err := net.ListenPacket("udp", addr)
	if err != nil {
		return nil, err
	}
	s, err := ListenOn(udp, tlsConfig, cfg)
	if err != nil {
		udp.Close()
		return nil, err
	}
	return s, nil
}

// ListenOn starts a server on a socket, which the server closes in the end.
// After an error it is the caller's.
func ListenOn(conn net.PacketConn, tlsConfig *tls.Config, cfg Config) (*Server, error) {
	if cfg.Recorder == nil {
		return nil, errors.New("a server needs a Recorder")
	}
	s := newServer(cfg)
	s.conn = conn
	if err := s.listen(tlsConfig); err != nil {
		return nil, err
	}
	return s, nil
}

func newServer(cfg Config) *Server {
	cfg = cfg.withDefaults()
	s := &Server{cfg: cfg, conns: map[*serverConn]struct{}{}, idle: make(chan struct{}), stop: func() {}}
	s.memory.limit = int64(cfg.ReceiveMemory)
	return s
}

func (s *Server) listen(tlsConfig *tls.Config) error {
	if udp, ok := s.conn.(*net.UDPConn); ok {
		growBuffers(udp)
		s.buffers = socketBuffers(udp)
	}
	s.transport = &quic.Transport{Conn: s.conn, VerifySourceAddress: s.mustProveAddress, ConnContext: s.admit,
		StatelessResetKey: (*quic.StatelessResetKey)(s.cfg.ResetKey)}
	tlsConfig = tlsConfig.Clone()
	tlsConfig.NextProtos = []string{ALPN}
	tlsConfig.MinVersion = tls.VersionTLS13
	ln, err := s.transport.Listen(tlsConfig, serverQUIC(&s.cfg, s.memory.grow))
	if err != nil {
		return err
	}
	s.listener = ln
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.accepted.Go(func() { s.accept(ctx) })
	return nil
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.conn.LocalAddr() }

// Buffers are the sizes of the socket's buffers as the system gave them.
func (s *Server) Buffers() Buffers { return s.buffers }

// Stats gives the present figures.
func (s *Server) Stats() ServerStats {
	t := &s.stats
	chunks, bytes := s.received()
	return ServerStats{Handshakes: int(t.handshakes.Load()), Connections: int(t.connections.Load()), Sessions: int(t.sessions.Load()),
		RefusedConnections: t.refusedConnections.Load(), Opened: t.opened.Load(), Sealed: t.sealed.Load(), Refused: t.refused.Load(),
		Chunks: chunks, Bytes: bytes, Acks: t.acks.Load(), Malformed: t.malformed.Load(), Slow: t.slow.Load(),
		Silent: t.silentlyDeparted.Load()}
}

// received adds up what every connection counts for itself: one counter for
// all would go from processor to processor with every chunk.
func (s *Server) received() (chunks, bytes uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	chunks, bytes = s.chunks, s.bytes
	for c := range s.conns {
		chunks += c.chunks.Load()
		bytes += c.bytes.Load()
	}
	return chunks, bytes
}

// mustProveAddress asks for a proof of address once many handshakes are
// under way: from then on a flood needs addresses that it can receive on.
func (s *Server) mustProveAddress(net.Addr) bool {
	return s.stats.handshakes.Load() >= int64(s.cfg.MaxHandshakes/8)
}

// handshakeKey finds a connection's admission in its context.
type handshakeKey struct{}

// admit decides on a connection before its handshake costs anything.
func (s *Server) admit(ctx context.Context, _ *quic.ClientInfo) (context.Context, error) {
	if s.stats.handshakes.Add(1) > int64(s.cfg.MaxHandshakes) || s.stats.connections.Load() >= int64(s.cfg.MaxConnections) {
		s.stats.handshakes.Add(-1)
		s.stats.refusedConnections.Add(1)
		return ctx, errors.New("too many connections")
	}
	ended := sync.OnceFunc(func() { s.stats.handshakes.Add(-1) })
	context.AfterFunc(ctx, ended)
	return context.WithValue(ctx, handshakeKey{}, ended), nil
}

func (s *Server) accept(ctx context.Context) {
	for {
		conn, err := s.listener.Accept(ctx)
		if err != nil {
			return
		}
		s.stats.connections.Add(1)
		if ended, ok := conn.Context().Value(handshakeKey{}).(func()); ok {
			ended()
		}
		go func() {
			defer s.stats.connections.Add(-1)
			defer s.memory.release(conn)
			s.serveQUIC(conn)
		}()
	}
}

// serveQUIC waits for the connection's stream and serves it.
func (s *Server) serveQUIC(conn *quic.Conn) {
	ctx, cancel := context.WithTimeout(conn.Context(), s.cfg.HelloTimeout)
	defer cancel()
	stream, err := conn.AcceptStream(ctx)
	if err != nil {
		conn.CloseWithError(quic.ApplicationErrorCode(CodeSilent), "no stream was opened")
		return
	}
	s.serve(&quicCarrier{Stream: stream, conn: conn})
}

// serve runs one connection to its end.
func (s *Server) serve(c carrier) {
	conn := newServerConn(s, c)
	if err := s.add(conn); err != nil {
		c.End(err.Code, err.Text)
		return
	}
	defer s.remove(conn)
	conn.run()
}

func (s *Server) add(c *serverConn) *Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining != nil {
		return refuse(CodeDraining, "%s", s.draining.text)
	}
	s.conns[c] = struct{}{}
	return nil
}

func (s *Server) remove(c *serverConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.chunks += c.chunks.Load()
	s.bytes += c.bytes.Load()
	if s.draining != nil && len(s.conns) == 0 {
		close(s.idle)
	}
}

// Shutdown tells every client to go, takes and confirms what they have sent,
// and ends each connection once all of it is durable. What is not done when
// ctx ends is cut off; the error is then ctx's. New connections are refused
// from the start.
func (s *Server) Shutdown(ctx context.Context) error {
	for _, c := range s.startDraining(ctx) {
		c.drain(s.draining)
	}
	s.stop()
	s.accepted.Wait()
	var err error
	select {
	case <-s.idle:
	case <-ctx.Done():
		err = ctx.Err()
		s.cutOff()
	}
	return errors.Join(err, s.closeSocket())
}

// Close ends every connection at once.
func (s *Server) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := s.Shutdown(ctx)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// startDraining marks the server and returns its connections; the second
// call finds none to tell.
func (s *Server) startDraining(ctx context.Context) []*serverConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining != nil {
		return nil
	}
	s.draining = &drain{within: MaxHeartbeat, text: "the daemon is shutting down"}
	if deadline, ok := ctx.Deadline(); ok {
		s.draining.within = min(max(time.Until(deadline), 0), MaxHeartbeat)
	}
	if len(s.conns) == 0 {
		close(s.idle)
	}
	return slices.Collect(maps.Keys(s.conns))
}

// cutOff ends every connection and waits a moment, so that the Recorder
// learns of it.
func (s *Server) cutOff() {
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		c.end(refuse(CodeDraining, "the daemon has shut down"))
	}
	select {
	case <-s.idle:
	case <-time.After(cutOffWait):
	}
}

// cutOffWait bounds the wait for a Recorder that is still busy with a call.
const cutOffWait = time.Second

func (s *Server) closeSocket() error {
	if s.listener == nil {
		return nil
	}
	s.listener.Close()
	err := s.transport.Close()
	if cerr := s.conn.Close(); !errors.Is(cerr, net.ErrClosed) {
		err = errors.Join(err, cerr)
	}
	return err
}

// receiveMemory bounds how far QUIC may grow the windows of all connections
// together.
type receiveMemory struct {
	limit int64

	mu    sync.Mutex
	used  int64
	grown map[*quic.Conn]int64
}

// grow decides on a wish of QUIC to grow a connection's window.
func (m *receiveMemory) grow(c *quic.Conn, delta uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delta > math.MaxInt64/2 || m.used+int64(delta) > m.limit {
		return false
	}
	if m.grown == nil {
		m.grown = map[*quic.Conn]int64{}
	}
	m.used += int64(delta)
	m.grown[c] += int64(delta)
	return true
}

// release gives back what a connection that has ended had grown.
func (m *receiveMemory) release(c *quic.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= m.grown[c]
	delete(m.grown, c)
}
