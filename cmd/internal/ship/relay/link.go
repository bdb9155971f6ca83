package relay

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"reprise/transport"
)

const (
	// maxOut is how many bytes wait to be written before Send waits.
	maxOut = 1 << 20
	// writeLinger gathers the frames of one write.
	writeLinger = 2 * time.Millisecond
)

// link is one connection. One goroutine writes, one reads.
type link struct {
	cfg    *Config
	stream *quic.Stream
	frames *frames
	hello  helloOK
	born   time.Time
	// release ends the connection and its socket.
	release func(transport.Code, string)

	ended chan struct{}
	bell  chan struct{} // wakes the writer

	mu       sync.Mutex
	drained  *sync.Cond // out was taken, or the link has ended
	out      []byte
	sessions map[uint64]*Session
	alias    uint64
	leaving  bool // close stands in out, or was written: nothing follows it
	draining bool // the daemon asked for that
	err      error
}

// dial connects to one address and says hello.
func dial(ctx context.Context, cfg *Config, addr string) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	l := &link{cfg: cfg, born: time.Now(), ended: make(chan struct{}), bell: make(chan struct{}, 1), sessions: map[uint64]*Session{}}
	l.drained = sync.NewCond(&l.mu)
	if err := l.connect(ctx, addr); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { l.release(transport.CodeNone, "") })
	defer stop()
	if err := l.greet(); err != nil {
		l.release(transport.CodeNone, "")
		return nil, err
	}
	return l, nil
}

// connect opens a connection on a socket of its own, and its one stream.
func (l *link) connect(ctx context.Context, addr string) error {
	remote, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return err
	}
	network := "udp6"
	if remote.IP.To4() != nil {
		network = "udp4"
	}
	socket, err := net.ListenUDP(network, nil)
	if err != nil {
		return err
	}
	carrier := &quic.Transport{Conn: socket}
	conn, err := carrier.Dial(ctx, remote, l.cfg.tlsFor(addr), &quic.Config{HandshakeIdleTimeout: l.cfg.DialTimeout,
		MaxIdleTimeout: l.cfg.DeadAfter, MaxIncomingStreams: -1, MaxIncomingUniStreams: -1})
	if err == nil {
		l.stream, err = conn.OpenStreamSync(ctx)
	}
	if err != nil {
		carrier.Close()
		socket.Close()
		return plainError(err)
	}
	l.frames = newFrames(l.stream, l.cfg.DeadAfter)
	var once sync.Once
	l.release = func(code transport.Code, text string) {
		once.Do(func() {
			conn.CloseWithError(quic.ApplicationErrorCode(code), text)
			carrier.Close()
			socket.Close()
		})
	}
	return nil
}

// greet exchanges the first frames.
func (l *link) greet() error {
	if err := l.put(appendHello(nil, l.cfg.DeadAfter/3, l.cfg.Token, l.cfg.Agent)); err != nil {
		return err
	}
	typ, body, err := l.frames.next()
	if err != nil {
		return err
	}
	if typ == typeRefused {
		_, refusal, err := parseRefused(body)
		if err != nil {
			return err
		}
		return refusal
	}
	if typ != typeHelloOK {
		return fmt.Errorf("%w: frame %#02x answers hello", ErrFrame, typ)
	}
	l.hello, err = parseHelloOK(body)
	return err
}

// put writes b, within the time that a write may take.
func (l *link) put(b []byte) error {
	if err := l.stream.SetWriteDeadline(time.Now().Add(l.cfg.WriteTimeout)); err != nil {
		return err
	}
	_, err := l.stream.Write(b)
	return plainError(err)
}

// serve runs the link to its end and returns why it ended.
func (l *link) serve() error {
	var writer sync.WaitGroup
	writer.Go(func() {
		if err := l.write(); err != nil {
			l.end(err)
		}
	})
	l.end(l.read())
	writer.Wait()
	return l.err
}

// end ends the link and all its sessions; the first reason counts.
func (l *link) end(why error) {
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	l.err = fmt.Errorf("%w: %w", ErrLink, why)
	woken := make([]*Session, 0, len(l.sessions))
	for _, s := range l.sessions {
		woken = append(woken, s)
		s.fail(l.err)
	}
	l.drained.Broadcast()
	close(l.ended)
	l.mu.Unlock()
	l.release(transport.CodeNone, "")
	for _, s := range woken {
		s.wake()
	}
}

// say replaces what waits to be written; mu is held.
func (l *link) say(out []byte) {
	l.out = out
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

// leave sends close, and nothing after it.
func (l *link) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.leaving {
		l.leaving = true
		l.say(appendFrame(l.out, typeClose, nil))
	}
}

// usable tells whether sessions may be opened on the link.
func (l *link) usable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil && !l.leaving
}

// write writes what sessions say, gathered for the linger, and a sign of life
// where they say nothing. It ends behind close.
func (l *link) write() error {
	var b []byte
	for {
		if !l.awaitWork() {
			return nil
		}
		var last bool
		if b, last = l.take(b); len(b) == 0 {
			b = appendFrame(b, typeAlive, nil)
		}
		if err := l.put(b); err != nil || last {
			return err
		}
	}
}

// awaitWork waits until something is to be written, or nothing was for as
// long as the daemon allows; false where the link has ended.
func (l *link) awaitWork() bool {
	quiet := time.NewTimer(l.hello.heartbeat)
	defer quiet.Stop()
	if l.hello.heartbeat == 0 {
		quiet.Stop()
	}
	select {
	case <-l.bell:
	case <-quiet.C:
		return true
	case <-l.ended:
		return false
	}
	select {
	case <-time.After(writeLinger):
		return true
	case <-l.ended:
		return false
	}
}

// take exchanges the buffers; last is set with the close frame.
func (l *link) take(empty []byte) (b []byte, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, l.out = l.out, empty[:0]
	l.drained.Broadcast()
	return b, l.leaving
}

// read takes the daemon's frames until the link ends.
func (l *link) read() error {
	for {
		typ, body, err := l.frames.next()
		if err != nil {
			return err
		}
		if typ == typeClosed {
			return l.closed()
		}
		if err := l.hear(typ, body); err != nil {
			return err
		}
	}
}

// closed is the end of a link that the client has left.
func (l *link) closed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.leaving:
		return fmt.Errorf("%w: closed without close", ErrFrame)
	case l.draining:
		return &transport.Refusal{Code: transport.CodeDraining}
	}
	return errLeft
}

// hear takes one frame.
func (l *link) hear(typ byte, body []byte) error {
	switch typ {
	case typeAck:
		return parseAcks(body, l.acked)
	case typeOpened:
		o, err := parseOpened(body)
		return l.forSession(o.alias, err, func(s *Session) { s.begin(&o) })
	case typeWindow:
		alias, bytes, err := parseWindow(body)
		return l.forSession(alias, err, func(s *Session) { s.window = int64(min(bytes, 1<<62)) })
	case typeSealed:
		alias, sealed, err := parseSealed(body)
		return l.forSession(alias, err, func(s *Session) { s.sealed(&sealed) })
	case typeRefused:
		alias, refusal, err := parseRefused(body)
		if err == nil && alias == 0 {
			return refusal
		}
		return l.forSession(alias, err, func(s *Session) { s.fail(refusal) })
	case typeDrain:
		l.mu.Lock()
		l.draining = true
		l.mu.Unlock()
		l.leave()
		return nil
	case typeAlive:
		return nil
	}
	if typ >= typeOptional {
		return nil
	}
	return fmt.Errorf("%w: frame %#02x", ErrFrame, typ)
}

func (l *link) acked(a ack) {
	// An ack that was sent before the daemon knew that a session had ended
	// is of no interest.
	_ = l.forSession(a.alias, nil, func(s *Session) { s.settle(a.durable, a.durableTick) })
}

// forSession changes a session and wakes its owner. What comes for one that
// is over is dropped.
func (l *link) forSession(alias uint64, err error, change func(*Session)) error {
	if err != nil {
		return err
	}
	l.mu.Lock()
	s := l.sessions[alias]
	if s != nil {
		change(s)
	}
	known := alias <= l.alias
	l.mu.Unlock()
	if s != nil {
		s.wake()
	}
	if !known {
		return fmt.Errorf("%w: session %d was never opened", ErrFrame, alias)
	}
	return nil
}

// open begins a session on the link.
func (l *link) open(r *Request) (*Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil:
		return nil, l.err
	case l.leaving:
		return nil, fmt.Errorf("%w: it is being left", ErrLink)
	}
	l.alias++
	s := &Session{link: l, alias: l.alias, wake: r.Wake, answered: make(chan struct{})}
	l.sessions[s.alias] = s
	l.say(appendOpen(l.out, s.alias, r))
	return s, nil
}

// begin takes the daemon's opened; link.mu is held.
func (s *Session) begin(o *opened) {
	s.standing = Standing{Received: o.received, Durable: o.durable, DurableTick: o.durableTick, Totals: o.totals}
	s.window = int64(min(o.window, 1<<62))
	s.settle(o.durable, o.durableTick)
	s.answer()
}

// sealed takes the daemon's sealed; link.mu is held.
func (s *Session) sealed(sealed *Sealed) {
	select {
	case <-s.answered:
	default:
		s.standing.Sealed = sealed
	}
	s.now.Sealed = sealed
	s.end()
	s.answer()
}
