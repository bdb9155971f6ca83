package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipe is an in-memory connection of two carriers, for tests in virtual
// time: each direction holds a bounded number of bytes.
type pipe struct {
	mu     sync.Mutex
	cond   *sync.Cond
	a, b   pipeEnd
	frozen bool  // nothing arrives any more, as on a dead path
	broken error // both ends fail at once, as after a reset
	rate   int   // bytes a second that an end writes; 0 for any
}

type pipeEnd struct {
	p      *pipe
	peer   *pipeEnd
	in     []byte // written by the peer, not yet read
	read   time.Time
	write  time.Time
	ended  bool
	reason error // what the peer's end said
}

const pipeSize = 64 << 10

func newPipe() *pipe {
	p := &pipe{}
	p.cond = sync.NewCond(&p.mu)
	p.a = pipeEnd{p: p, peer: &p.b}
	p.b = pipeEnd{p: p, peer: &p.a}
	return p
}

// freeze lets nothing arrive any more.
func (p *pipe) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
}

// reset fails both ends; what was in flight is lost.
func (p *pipe) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = errors.New("connection reset")
	p.cond.Broadcast()
}

func (e *pipeEnd) failure() error {
	switch {
	case e.p.broken != nil:
		return e.p.broken
	case e.ended:
		return net.ErrClosed
	case e.reason != nil:
		return e.reason
	}
	return nil
}

func expired(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

func (e *pipeEnd) Read(b []byte) (int, error) {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	for {
		if err := e.failure(); err != nil {
			return 0, err
		}
		if len(e.in) > 0 && !e.p.frozen {
			n := copy(b, e.in)
			e.in = e.in[n:]
			e.p.cond.Broadcast()
			return n, nil
		}
		if expired(e.read) {
			return 0, os.ErrDeadlineExceeded
		}
		e.p.cond.Wait()
	}
}

func (e *pipeEnd) Write(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		step := b[n:]
		if e.p.rate > 0 {
			step = step[:min(len(step), slowStep)]
			time.Sleep(time.Duration(len(step)) * time.Second / time.Duration(e.p.rate))
		}
		done, err := e.writeNow(step)
		if n += done; err != nil {
			return n, err
		}
	}
	return n, nil
}

// slowStep is how much of a slow pipe's bytes come at once.
const slowStep = 1 << 10

func (e *pipeEnd) writeNow(b []byte) (int, error) {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	n := 0
	for n < len(b) {
		if err := e.failure(); err != nil {
			return n, err
		}
		if room := pipeSize - len(e.peer.in); room > 0 {
			step := min(room, len(b)-n)
			e.peer.in = append(e.peer.in, b[n:n+step]...)
			n += step
			e.p.cond.Broadcast()
			continue
		}
		if expired(e.write) {
			return n, os.ErrDeadlineExceeded
		}
		e.p.cond.Wait()
	}
	return n, nil
}

func (e *pipeEnd) deadline(field *time.Time, t time.Time) error {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	*field = t
	e.p.cond.Broadcast()
	if !t.IsZero() {
		time.AfterFunc(time.Until(t), func() {
			e.p.mu.Lock()
			defer e.p.mu.Unlock()
			e.p.cond.Broadcast()
		})
	}
	return nil
}

func (e *pipeEnd) SetReadDeadline(t time.Time) error  { return e.deadline(&e.read, t) }
func (e *pipeEnd) SetWriteDeadline(t time.Time) error { return e.deadline(&e.write, t) }

// End drops what is in flight, as QUIC does.
func (e *pipeEnd) End(code Code, text string) {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	if e.ended {
		return
	}
	e.ended = true
	if e.p.frozen || e.peer.reason != nil {
		return
	}
	e.peer.in = nil
	e.peer.reason = io.EOF
	if code != CodeNone {
		e.peer.reason = &Refusal{Code: code, Text: text}
	}
	e.p.cond.Broadcast()
}

func (e *pipeEnd) RemoteAddr() net.Addr {
	return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4433}
}
