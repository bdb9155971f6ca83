package transport

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// writeSize is how much one write gathers at most; turnSize how much of
	// it one session takes while others wait.
	writeSize = 256 << 10
	turnSize  = 64 << 10
	// goodbyeTime bounds the wait for the daemon's closed frame after a drain.
	goodbyeTime = 15 * time.Second
)

// link is one connection of a client. One goroutine sends, one receives.
type link struct {
	*peer
	client *Client
	since  time.Time
	ended  chan struct{}
	once   sync.Once
	err    error // why it ended; set before ended is closed

	mu       sync.Mutex
	sessions []*Recording // by alias - 1
	out      []byte       // frames to send next
	leaving  bool         // close is to be sent, and nothing after it
	drained  bool
}

// greet says hello and waits for the answer.
func (c *Client) greet(ctx context.Context, carrier carrier) (*link, error) {
	p, err := c.dialing().greet(ctx, carrier)
	if err != nil {
		return nil, err
	}
	return &link{peer: p, client: c, ended: make(chan struct{}), since: time.Now()}, nil
}

// end ends the link; the first reason counts.
func (l *link) end(code Code, err error) {
	l.once.Do(func() {
		l.err = err
		close(l.ended)
		text := ""
		if code != CodeNone && err != nil {
			text = err.Error()
		}
		l.c.End(code, text)
	})
}

// serve runs the link to its end and returns why it ended.
func (l *link) serve() error {
	var receiver sync.WaitGroup
	receiver.Go(func() {
		err := l.receive()
		l.end(endCode(err), err)
	})
	if err := l.send(); err != nil {
		l.end(endCode(err), err)
	}
	receiver.Wait()
	return l.err
}

// say sends a frame behind what has been taken.
func (l *link) say(frame []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = append(l.out, frame...)
	ring(l.client.bell)
}

// put sends a chunk behind what has been taken.
func (l *link) put(alias uint64, chunk []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.append(alias, chunk)
}

func (l *link) append(alias uint64, chunk []byte) {
	if len(l.out) == 0 {
		ring(l.client.bell)
	}
	l.out = append(appendChunkHead(l.out, alias, len(chunk)), chunk...)
}

// offer is put for a recording whose turn it is not: false where that would
// keep others waiting, or nothing more may go. Most of a write stays for those
// whose turn it is, and for sessions that are opened.
func (l *link) offer(alias uint64, chunk []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaving || len(l.out) >= turnSize {
		return false
	}
	l.append(alias, chunk)
	return true
}

// filled tells whether there is enough for one write, or the last one.
func (l *link) filled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.full()
}

func (l *link) full() bool { return l.leaving || len(l.out) >= writeSize }

// leave sends close, and nothing after it.
func (l *link) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving = true
	ring(l.client.bell)
}

// send writes what the recordings have, gathered for the linger, and a sign
// of life where there is nothing.
func (l *link) send() error {
	var buf []byte
	wrote := time.Now()
	for {
		var last bool
		buf, last = l.gather(buf)
		if len(buf) == 0 {
			idle, ok := l.awaitWork(wrote)
			if !ok {
				return nil
			}
			if !idle {
				continue
			}
			buf = appendFrame(buf, typeAlive)
		}
		if err := writeWithin(l.c, buf, l.client.cfg.WriteTimeout); err != nil {
			return err
		}
		wrote = time.Now()
		l.client.sent(len(buf))
		if last {
			return l.awaitClosed()
		}
	}
}

// awaitWork waits until there may be something to send, or nothing was written
// for the daemon's heartbeat; not ok where the link has ended. The bell also
// rings for what may not go yet: the heartbeat counts from the last write.
func (l *link) awaitWork(wrote time.Time) (idle, ok bool) {
	left := l.ok.heartbeat
	if left > 0 {
		if left -= time.Since(wrote); left <= 0 {
			return true, true
		}
	}
	quiet, stop := after(left)
	defer stop()
	select {
	case <-l.client.bell:
	case <-quiet:
		return true, true
	case <-l.ended:
		return false, false
	}
	linger, stop := after(l.client.cfg.WriteLinger)
	defer stop()
	select {
	case <-linger:
		return false, true
	case <-l.ended:
		return false, false
	}
}

// awaitClosed waits for the daemon's last frame.
func (l *link) awaitClosed() error {
	wait, stop := after(goodbyeTime)
	defer stop()
	select {
	case <-l.ended:
		return nil
	case <-wait:
		return refuse(CodeSilent, "the daemon did not confirm the end within %v", goodbyeTime)
	}
}

// gather takes what may go now, and leaves the memory of spare in its place;
// last is set with the close frame.
func (l *link) gather(spare []byte) (out []byte, last bool) {
	l.gatherOpens()
	for !l.filled() {
		r := l.client.popSendable()
		if r == nil {
			break
		}
		part, more := r.take(l)
		if more {
			l.client.ready(r)
		}
		if part {
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out, l.out = l.out, spare[:0]
	if l.leaving {
		return appendFrame(out, typeClose), true
	}
	return out, false
}

func (l *link) gatherOpens() {
	for !l.filled() {
		r := l.client.popOpen()
		if r == nil {
			break
		}
		l.mu.Lock()
		alias := uint64(len(l.sessions)) + 1
		l.sessions = append(l.sessions, r)
		l.mu.Unlock()
		// A recording that has ended meanwhile leaves a hole in the aliases.
		if frame, ok := r.beginOpen(l, alias, nil); ok {
			l.say(frame)
		}
	}
}

// receive takes the daemon's frames until the link ends. It returns nil
// after the daemon's last frame.
func (l *link) receive() error {
	var acks []ack
	for {
		typ, body, err := l.r.next()
		if err != nil {
			return l.readError(err)
		}
		if typ == typeAck {
			if acks, err = parseAcks(acks[:0], body); err == nil {
				err = l.acked(acks)
			}
		} else if typ == typeClosed {
			return l.closed(body)
		} else {
			err = l.receiveOther(typ, body)
		}
		if err != nil {
			return err
		}
	}
}

func (l *link) closed(body []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return checkClosed(body, l.leaving, l.drained)
}

func (l *link) acked(acks []ack) error {
	sessions := l.opened()
	for i := range acks {
		r, err := sessionOf(sessions, typeAck, acks[i].alias)
		if err != nil {
			return err
		}
		if err := r.acked(l, &acks[i]); err != nil {
			return err
		}
	}
	return nil
}

func (l *link) receiveOther(typ byte, body []byte) error {
	switch typ {
	case typeOpened:
		o, err := parseOpened(body, l.ok.version)
		return l.forSession(typ, o.alias, err, func(r *Recording) error { return r.opened(l, &o) })
	case typeWindow:
		w, err := parseWindow(body)
		return l.forSession(typ, w.alias, err, func(r *Recording) error { r.windowed(l, w.bytes); return nil })
	case typeSealed:
		s, err := parseSealed(body)
		return l.forSession(typ, s.alias, err, func(r *Recording) error { r.sealedAs(l, &s); return nil })
	case typeRefused:
		return l.receiveRefused(body)
	case typeStalled:
		s, err := parseStalled(body)
		return l.forSession(typ, s.alias, err, func(r *Recording) error { r.stalledBy(l, &s.refusal); return nil })
	case typeDrain:
		_, err := parseDrain(body)
		if err == nil {
			l.drain()
		}
		return err
	case typeAlive:
		return parseEmpty(typ, body)
	}
	if typ >= frameOptional {
		return nil
	}
	return &FrameError{Frame: frameName(typ), What: "a daemon must not send it here"}
}

func (l *link) receiveRefused(body []byte) error {
	f, err := parseRefused(body)
	if err == nil && f.alias == 0 {
		return &f.refusal
	}
	return l.forSession(typeRefused, f.alias, err, func(r *Recording) error { r.refused(l, &f.refusal); return nil })
}

// drain leaves a daemon that is about to end.
func (l *link) drain() {
	l.mu.Lock()
	l.drained = true
	l.mu.Unlock()
	l.leave()
}

func (l *link) forSession(typ byte, alias uint64, err error, do func(*Recording) error) error {
	if err != nil {
		return err
	}
	r, err := sessionOf(l.opened(), typ, alias)
	if err != nil {
		return err
	}
	return do(r)
}

// opened are the sessions by alias - 1; what is in it does not change.
func (l *link) opened() []*Recording {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sessions
}

func sessionOf(sessions []*Recording, typ byte, alias uint64) (*Recording, error) {
	if alias == 0 || alias > uint64(len(sessions)) {
		return nil, &FrameError{Frame: frameName(typ), What: fmt.Sprintf("alias %d was never opened", alias)}
	}
	return sessions[alias-1], nil
}
