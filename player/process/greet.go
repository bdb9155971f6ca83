package process

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// guest is a connection that has said a good hello.
type guest struct {
	conn  net.Conn
	hello hello
}

// greeter awaits the child at a door. Whoever comes is heard in a goroutine
// of its own, so that a stranger at an open port cannot keep the child out.
type greeter struct {
	door  *door
	found chan *guest
	bad   chan error
	rooms sync.WaitGroup

	mu     sync.Mutex
	closed bool
	heard  map[net.Conn]bool
}

func newGreeter(d *door) *greeter {
	g := &greeter{door: d, found: make(chan *guest, 1), bad: make(chan error, 1), heard: make(map[net.Conn]bool)}
	g.rooms.Add(1)
	go g.accept()
	return g
}

func (g *greeter) accept() {
	defer g.rooms.Done()
	for {
		conn, err := g.door.Accept()
		if err != nil {
			return
		}
		if !g.admit(conn) {
			_ = conn.Close()
			return
		}
		go g.hear(conn)
	}
}

// admit notes a connection to be heard.
func (g *greeter) admit(conn net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.heard[conn] = true
	g.rooms.Add(1)
	return true
}

// hear reads the hello of one connection.
func (g *greeter) hear(conn net.Conn) {
	defer g.rooms.Done()
	visitor, err := g.readHello(conn)
	if err == nil && g.welcome(visitor) {
		return
	}
	_ = conn.Close()
	if err != nil {
		select {
		case g.bad <- err:
		default:
		}
	}
}

func (g *greeter) readHello(conn net.Conn) (*guest, error) {
	visitor := &guest{conn: conn}
	frames := newFrameReader(conn)
	t, body, err := frames.next()
	switch {
	case err != nil:
		return nil, err
	case t != typeHello:
		return nil, badMessage(t, errOutOfPlace)
	}
	if err := visitor.hello.parse(body); err != nil {
		return nil, badMessage(typeHello, err)
	}
	if subtle.ConstantTimeCompare([]byte(visitor.hello.token), []byte(g.door.token)) != 1 {
		return nil, fmt.Errorf("%w: the hello does not have the token of %s", errBad, TokenVariable)
	}
	if !frames.waits() {
		return nil, fmt.Errorf("%w: it speaks on before it is welcome", errBad)
	}
	return visitor, nil
}

// welcome hands over the first good guest.
func (g *greeter) welcome(visitor *guest) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	select {
	case g.found <- visitor:
		delete(g.heard, visitor.conn)
		return true
	default:
		return false
	}
}

// close sends everybody else away and waits until they are gone.
func (g *greeter) close() {
	g.door.shut()
	g.mu.Lock()
	g.closed = true
	for conn := range g.heard {
		_ = conn.Close()
	}
	g.mu.Unlock()
	g.rooms.Wait()
	select {
	case visitor := <-g.found:
		_ = visitor.conn.Close()
	default:
	}
}

// Reasons why no guest came.
var (
	errNoHello  = errors.New("no hello")
	errBadHello = errors.New("bad hello")
)

// await waits for the child's hello. The error is the context's, errEnded,
// errNoHello, or wraps errBadHello.
func (g *greeter) await(ctx context.Context, c *child, most time.Duration) (*guest, error) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	reason := errNoHello
	for {
		select {
		case visitor := <-g.found:
			if err := visitor.hello.check(Version); err != nil {
				_ = visitor.conn.Close()
				return nil, fmt.Errorf("%w: %w", errBadHello, err)
			}
			return visitor, nil
		case err := <-g.bad:
			reason = fmt.Errorf("%w: %w", errBadHello, err)
			if g.door.private {
				return nil, reason
			}
		case <-c.ended:
			return nil, errEnded
		case <-timer.C:
			return nil, reason
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
