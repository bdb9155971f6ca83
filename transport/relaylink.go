package transport

import (
	"fmt"
	"sync"
	"time"

	"reprise/format"
)

// maxRelayOut is how many bytes wait to be written before Send waits.
const maxRelayOut = 1 << 20

// relayLink is one connection of a relay. One goroutine writes, one reads.
type relayLink struct {
	*peer
	cfg   *RelayConfig
	since time.Time
	ended chan struct{}
	bell  chan struct{} // wakes the writer

	mu       sync.Mutex
	drained  *sync.Cond // out was taken, or the link has ended
	out      []byte
	sessions map[uint64]*RelaySession
	alias    uint64
	leaving  bool // close stands in out, or was written: nothing follows it
	draining bool // the daemon asked for that
	err      error
}

func newRelayLink(cfg *RelayConfig, p *peer) *relayLink {
	l := &relayLink{peer: p, cfg: cfg, since: time.Now(), ended: make(chan struct{}), bell: make(chan struct{}, 1), sessions: map[uint64]*RelaySession{}}
	l.drained = sync.NewCond(&l.mu)
	return l
}

// serve runs the link to its end and returns why it ended.
func (l *relayLink) serve() error {
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
func (l *relayLink) end(why error) {
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	l.err = fmt.Errorf("%w: %w", ErrLink, why)
	woken := make([]*RelaySession, 0, len(l.sessions))
	for _, s := range l.sessions {
		woken = append(woken, s)
		s.fail(l.err)
	}
	l.drained.Broadcast()
	close(l.ended)
	l.mu.Unlock()
	l.c.End(endCode(why), "")
	for _, s := range woken {
		s.wake()
	}
}

// say replaces what waits to be written; mu is held.
func (l *relayLink) say(out []byte) {
	l.out = out
	ring(l.bell)
}

// leave sends close, and nothing after it.
func (l *relayLink) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.leaving {
		l.leaving = true
		l.say(appendFrame(l.out, typeClose))
	}
}

// usable tells whether sessions may be opened on the link.
func (l *relayLink) usable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil && !l.leaving
}

// write writes what sessions say, gathered for the linger, and a sign of life
// where they say nothing. It ends behind close.
func (l *relayLink) write() error {
	var b []byte
	for l.awaitWork() {
		var last bool
		if b, last = l.take(b); len(b) == 0 {
			b = appendFrame(b, typeAlive)
		}
		if err := writeWithin(l.c, b, l.cfg.WriteTimeout); err != nil || last {
			return err
		}
	}
	return nil
}

// awaitWork waits until something is to be written, or nothing was for as
// long as the daemon allows; false where the link has ended.
func (l *relayLink) awaitWork() bool {
	quiet, stop := after(l.ok.heartbeat)
	defer stop()
	select {
	case <-l.bell:
	case <-quiet:
		return true
	case <-l.ended:
		return false
	}
	linger, stop := after(l.cfg.WriteLinger)
	defer stop()
	select {
	case <-linger:
		return true
	case <-l.ended:
		return false
	}
}

// take exchanges the buffers; last is set with the close frame.
func (l *relayLink) take(empty []byte) (b []byte, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, l.out = l.out, empty[:0]
	l.drained.Broadcast()
	return b, l.leaving
}

// read takes the daemon's frames until the link ends.
func (l *relayLink) read() error {
	var acks []ack
	for {
		typ, body, err := l.r.next()
		switch {
		case err != nil:
			return l.readError(err)
		case typ == typeClosed:
			return l.closed(body)
		case typ == typeAck:
			if acks, err = parseAcks(acks[:0], body); err == nil {
				err = l.acked(acks)
			}
		default:
			err = l.hear(typ, body)
		}
		if err != nil {
			return err
		}
	}
}

// closed is the end of a link that the relay has left.
func (l *relayLink) closed(body []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := checkClosed(body, l.leaving, l.draining); err != nil {
		return err
	}
	return errLeft
}

// hear takes one frame.
func (l *relayLink) hear(typ byte, body []byte) error {
	switch typ {
	case typeOpened:
		o, err := parseOpened(body, l.ok.version)
		return l.forSession(typ, o.alias, err, func(s *RelaySession) { s.begin(&o) })
	case typeWindow:
		w, err := parseWindow(body)
		return l.forSession(typ, w.alias, err, func(s *RelaySession) { s.window = int64(min(w.bytes, 1<<62)) })
	case typeSealed:
		x, err := parseSealed(body)
		return l.forSession(typ, x.alias, err, func(s *RelaySession) { s.sealed(&Sealed{x.digest, x.name}) })
	case typeRefused:
		x, err := parseRefused(body)
		if err == nil && x.alias == 0 {
			return &x.refusal
		}
		return l.forSession(typ, x.alias, err, func(s *RelaySession) { s.fail(&x.refusal) })
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

// drain leaves a daemon that is about to end.
func (l *relayLink) drain() {
	l.mu.Lock()
	l.draining = true
	l.mu.Unlock()
	l.leave()
}

func (l *relayLink) acked(acks []ack) error {
	for i := range acks {
		a := &acks[i]
		if err := l.forSession(typeAck, a.alias, nil, func(s *RelaySession) { s.settle(a.durable, a.durableTick) }); err != nil {
			return err
		}
	}
	return nil
}

// forSession changes a session and wakes its owner. What comes for one that
// is over is dropped: the daemon may have sent it before it knew.
func (l *relayLink) forSession(typ byte, alias uint64, err error, change func(*RelaySession)) error {
	if err != nil {
		return err
	}
	l.mu.Lock()
	s := l.sessions[alias]
	if s != nil {
		change(s)
	}
	known := alias > 0 && alias <= l.alias
	l.mu.Unlock()
	if s != nil {
		s.wake()
	}
	if !known {
		return &FrameError{Frame: frameName(typ), What: fmt.Sprintf("alias %d was never opened", alias)}
	}
	return nil
}

// open begins a session on the link.
func (l *relayLink) open(r *RelayRequest) (*RelaySession, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil:
		return nil, l.err
	case l.leaving:
		return nil, fmt.Errorf("%w: it is being left", ErrLink)
	}
	l.alias++
	s := &RelaySession{link: l, alias: l.alias, wake: r.Wake, answered: make(chan struct{})}
	l.sessions[s.alias] = s
	o := open{alias: s.alias, session: r.Session, key: r.Key, epoch: r.Epoch, opening: r.Opening}
	l.say(o.append(l.out))
	return s, nil
}

// begin takes the daemon's opened; link.mu is held.
func (s *RelaySession) begin(o *opened) {
	s.standing = Standing{Received: o.received, Durable: o.durable, DurableTick: o.durableTick, Totals: o.totals, Ending: o.ending}
	s.window = int64(min(o.window, 1<<62))
	s.settle(o.durable, o.durableTick)
	s.answer()
}

// sealed takes the daemon's sealed; link.mu is held.
func (s *RelaySession) sealed(sealed *Sealed) {
	select {
	case <-s.answered:
	default:
		s.standing.Sealed = sealed
	}
	s.now.Sealed = sealed
	s.end()
	s.answer()
}

// appendChunkFrame appends the frame of a chunk that is framed as in a file.
func appendChunkFrame(dst []byte, alias uint64, chunk []byte) []byte {
	return append(appendChunkHead(dst, alias, len(chunk)), chunk...)
}

// settle counts out what is durable; link.mu is held.
func (s *RelaySession) settle(durable uint64, tick format.Tick) {
	s.now.Durable, s.now.DurableTick = max(s.now.Durable, durable), max(s.now.DurableTick, tick)
	n := 0
	for n < len(s.flights) && s.flights[n].seq <= s.now.Durable {
		s.flying -= int64(s.flights[n].size)
		n++
	}
	s.flights = s.flights[n:]
}
