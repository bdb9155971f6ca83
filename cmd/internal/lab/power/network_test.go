package power

import (
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"
)

// network carries datagrams between the sockets of hosts. They take their
// time, overtake each other, and some never arrive.
type network struct {
	mu      sync.Mutex
	rng     *rand.Rand
	sockets map[string]*socket
	port    int
}

const (
	lost     = 0.01
	minDelay = 500 * time.Microsecond
	jitter   = 4 * time.Millisecond
)

func newNetwork(rng *rand.Rand) *network {
	return &network{rng: rng, sockets: map[string]*socket{}, port: 10_000}
}

// host is where sockets are. While it is dark nothing leaves or reaches it.
type host struct {
	n    *network
	dark bool
}

func (n *network) host() *host { return &host{n: n} }

func (h *host) setDark(dark bool) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	h.dark = dark
}

// open makes a socket; port 0 takes the next one. A socket that had the port
// gets nothing more.
func (h *host) open(port int) *socket {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	if port == 0 {
		h.n.port++
		port = h.n.port
	}
	s := &socket{h: h, addr: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, in: make(chan datagram, 1024),
		closed: make(chan struct{}), changed: make(chan struct{})}
	h.n.sockets[s.addr.String()] = s
	return s
}

// socket is one end, as QUIC sees it.
type socket struct {
	h      *host
	addr   *net.UDPAddr
	in     chan datagram
	closed chan struct{}

	mu       sync.Mutex
	shut     bool
	deadline time.Time
	changed  chan struct{} // closed when the deadline changes
}

type datagram struct {
	b    []byte
	from net.Addr
}

func (s *socket) WriteTo(b []byte, to net.Addr) (int, error) {
	select {
	case <-s.closed:
		return 0, net.ErrClosed
	default:
	}
	n := s.h.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.h.dark || n.rng.Float64() < lost {
		return len(b), nil
	}
	d := datagram{append([]byte(nil), b...), s.addr}
	time.AfterFunc(minDelay+time.Duration(n.rng.Int64N(int64(jitter))), func() { n.deliver(d, to.String()) })
	return len(b), nil
}

// deliver drops what nobody waits for.
func (n *network) deliver(d datagram, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.sockets[to]
	if s == nil || s.h.dark {
		return
	}
	select {
	case s.in <- d:
	default:
	}
}

func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		s.mu.Lock()
		deadline, changed := s.deadline, s.changed
		s.mu.Unlock()
		var due <-chan time.Time
		if !deadline.IsZero() {
			timer := time.NewTimer(time.Until(deadline))
			defer timer.Stop()
			due = timer.C
		}
		select {
		case d := <-s.in:
			return copy(b, d.b), d.from, nil
		case <-s.closed:
			return 0, nil, net.ErrClosed
		case <-due:
			return 0, nil, os.ErrDeadlineExceeded
		case <-changed:
		}
	}
}

func (s *socket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

func (s *socket) SetWriteDeadline(time.Time) error { return nil }

func (s *socket) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

func (s *socket) LocalAddr() net.Addr { return s.addr }

func (s *socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return net.ErrClosed
	}
	s.shut = true
	close(s.closed)
	s.h.n.mu.Lock()
	defer s.h.n.mu.Unlock()
	if s.h.n.sockets[s.addr.String()] == s {
		delete(s.h.n.sockets, s.addr.String())
	}
	return nil
}
