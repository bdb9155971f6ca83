package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/quic-go/quic-go"
)

// run keeps the client connected until it ends.
func (c *Client) run(first *link) {
	if first != nil {
		c.use(first)
	}
	for tries := 0; ; {
		l := c.reconnect(tries)
		if l == nil {
			return
		}
		c.use(l)
		if tries++; !l.short() {
			tries = 0
		}
	}
}

// use runs a link to its end.
func (c *Client) use(l *link) {
	c.attach(l)
	stop := context.AfterFunc(c.ctx, func() { l.end(CodeNone, ErrClosed) })
	defer stop()
	c.detach(l, l.serve())
}

// short tells whether the link has ended before it proved good.
func (l *link) short() bool { return time.Since(l.since) < l.client.cfg.DeadAfter }

// reconnect tries the addresses until one answers; nil where the client ends.
func (c *Client) reconnect(tries int) *link {
	for ; ; tries++ {
		pause, stop := after(c.backoff(tries))
		select {
		case <-pause:
		case <-c.ctx.Done():
			stop()
			return nil
		}
		l, err := c.tryAll(c.ctx)
		if err == nil {
			return l
		}
		if c.ctx.Err() != nil {
			return nil
		}
		c.lost(err)
	}
}

// tryAll tries every address once, the one that worked last first.
func (c *Client) tryAll(ctx context.Context) (l *link, err error) {
	err = c.addrs.each(ctx, func(addr string) (err error) {
		l, err = c.try(ctx, addr)
		return err
	})
	return l, err
}

func (c *Client) try(ctx context.Context, addr string) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	defer cancel()
	carrier, err := c.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return c.greet(ctx, carrier)
}

// attach makes a link the client's, and opens every recording on it.
func (c *Client) attach(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link, c.linkErr = l, nil
	c.links++
	c.opens, c.retries = fifo[*Recording]{}, nil
	for _, r := range c.recordings {
		c.opens.push(r)
	}
	ring(c.bell)
}

// detach takes a link that has ended off the client and its recordings. From
// a daemon that is shutting down the client turns to the next address.
func (c *Client) detach(l *link, err error) {
	c.mu.Lock()
	c.link = nil
	for c.sendable.len() > 0 {
		r, _ := c.sendable.pop()
		r.queued = false
	}
	if temporary(err) {
		c.addrs.turn()
	}
	recordings := make([]*Recording, 0, len(c.recordings))
	for _, r := range c.recordings {
		recordings = append(recordings, r)
	}
	closing := c.closing
	c.mu.Unlock()
	for _, r := range recordings {
		r.unlink(l)
	}
	if err == nil || closing {
		c.lost(ErrClosed)
		return
	}
	c.lost(fmt.Errorf("connection lost, reconnecting: %w", err))
}

// lost enters why there is no link, and tells it once.
func (c *Client) lost(err error) {
	c.mu.Lock()
	again := c.linkErr != nil && c.linkErr.Error() == err.Error()
	c.linkErr = err
	c.mu.Unlock()
	if !again && err != ErrClosed {
		c.tell("", err)
	}
}

func (c *Client) sent(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sentBytes += uint64(n)
}

func (c *Client) popSendable() *Recording {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.sendable.pop()
	if ok {
		r.queued = false
	}
	return r
}

func (c *Client) popOpen() *Recording {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, _ := c.opens.pop()
	return r
}

// dialQUIC opens a QUIC connection and its one stream. Each connection has a
// socket of its own: a new one gets past what is wrong with the old one's
// path.
func (d *dialing) dialQUIC(ctx context.Context, addr string) (carrier, error) {
	remote, host, err := resolve(ctx, addr)
	if err != nil {
		return nil, err
	}
	socket, err := d.socket(remote)
	if err != nil {
		return nil, err
	}
	transport := &quic.Transport{Conn: socket}
	release := func() {
		transport.Close()
		socket.Close()
	}
	conn, err := transport.Dial(ctx, remote, clientTLS(d.tls, host), clientQUIC(d.timeout, d.silence))
	if err != nil {
		release()
		return nil, dialError(ctx, err)
	}
	stream, err := conn.OpenStreamSync(ctx)
	if err != nil {
		conn.CloseWithError(0, "")
		release()
		return nil, dialError(ctx, err)
	}
	return &quicCarrier{Stream: stream, conn: conn, release: release}, nil
}

// udpSocket makes a socket that reaches a daemon.
func udpSocket(remote *net.UDPAddr) (net.PacketConn, error) {
	udp, err := net.ListenUDP(networkOf(remote.IP), nil)
	if err != nil {
		return nil, err
	}
	growBuffers(udp)
	return udp, nil
}

// dialError says what a failed handshake means where QUIC does not.
func dialError(ctx context.Context, err error) error {
	var timeout *quic.HandshakeTimeoutError
	var idle *quic.IdleTimeoutError
	if ctx.Err() != nil || errors.As(err, &timeout) || errors.As(err, &idle) {
		return fmt.Errorf("no answer: is the daemon running, and UDP let through? (%w)", err)
	}
	return quicError(err)
}

func networkOf(ip net.IP) string {
	if ip.To4() != nil {
		return "udp4"
	}
	return "udp6"
}

// resolve finds the address behind "host:port".
func resolve(ctx context.Context, addr string) (*net.UDPAddr, string, error) {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, "", err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "udp", service)
	if err != nil {
		return nil, "", err
	}
	if host == "" {
		host = "localhost"
	}
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return nil, "", err
	}
	if len(ips) == 0 {
		return nil, "", fmt.Errorf("%s has no address", strconv.Quote(host))
	}
	return &net.UDPAddr{IP: ips[0].IP, Zone: ips[0].Zone, Port: port}, host, nil
}

// clientTLS completes the configuration for one host.
func clientTLS(cfg *tls.Config, host string) *tls.Config {
	cfg = cfg.Clone()
	cfg.NextProtos = []string{ALPN}
	cfg.MinVersion = tls.VersionTLS13
	if cfg.ServerName == "" {
		cfg.ServerName = host
	}
	return cfg
}
