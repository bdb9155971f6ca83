package transport

import (
	"errors"
	"os"
	"time"
)

// enqueue adds a frame to what is written next.
func (c *serverConn) enqueue(frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enqueueLocked(frame)
}

func (c *serverConn) enqueueLocked(frame []byte) {
	c.out = append(c.out, frame...)
	c.wakeLocked()
}

func (c *serverConn) wakeLocked() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// awaitRoom holds the reader while too much waits to be written.
func (c *serverConn) awaitRoom() error {
	for {
		c.mu.Lock()
		full := len(c.out) > maxPending
		c.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-c.room:
		case <-c.ended:
			return errors.New("the connection has ended")
		}
	}
}

// write writes what the sessions have to say, gathered for AckDelay, and a
// sign of life where there is nothing.
func (c *serverConn) write() {
	var buf []byte
	for {
		idle, ok := c.awaitWork()
		if !ok {
			return
		}
		buf = c.gather(buf[:0])
		last := c.settled()
		switch {
		case last:
			buf = appendFrame(c.gather(buf), typeClosed)
		case idle && len(buf) == 0:
			buf = appendFrame(buf, typeAlive)
		}
		if err := writeWithin(c.c, buf, c.server.cfg.WriteTimeout); err != nil {
			c.end(c.writeRefusal(err))
			return
		}
		if last {
			c.part()
			return
		}
	}
}

// awaitWork waits until there is something to write, or nothing was for the
// idle time; not ok where the connection has ended.
func (c *serverConn) awaitWork() (idle, ok bool) {
	quiet, stop := after(c.idleTime())
	defer stop()
	select {
	case <-c.wake:
	case <-quiet:
		return true, true
	case <-c.ended:
		return false, false
	}
	delay, stop := after(c.server.cfg.AckDelay)
	defer stop()
	select {
	case <-delay:
		return false, true
	case <-c.ended:
		return false, false
	}
}

// after is a timer that never fires for 0.
func after(d time.Duration) (<-chan time.Time, func() bool) {
	if d <= 0 {
		return nil, func() bool { return false }
	}
	t := time.NewTimer(d)
	return t.C, t.Stop
}

// idleTime is when to write next though nothing happens.
func (c *serverConn) idleTime() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := c.heartbeat
	if left := time.Until(c.closeBy); !c.closeBy.IsZero() && (idle == 0 || left < idle) {
		idle = max(left, time.Millisecond)
	}
	return idle
}

// gather takes the frames and acks that wait.
func (c *serverConn) gather(buf []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	buf = append(buf, c.out...)
	c.out = c.out[:0]
	if cap(c.out) > keepBuffer {
		c.out = nil
	}
	buf = c.appendAcksLocked(buf)
	select {
	case c.room <- struct{}{}:
	default:
	}
	return buf
}

func (c *serverConn) appendAcksLocked(buf []byte) []byte {
	var acks []ack
	for _, s := range c.dirty {
		if !s.dirty {
			continue
		}
		s.dirty = false
		acks = append(acks, s.ack())
		if len(acks) == MaxAcks {
			buf, acks = appendAcks(buf, acks), acks[:0]
		}
	}
	c.server.stats.acks.Add(uint64(len(c.dirty)))
	c.dirty = c.dirty[:0]
	if len(acks) > 0 {
		buf = appendAcks(buf, acks)
	}
	return buf
}

func (c *serverConn) closing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closeBy.IsZero()
}

// settled tells whether a closing client may go: all that it sent is durable
// or refused, or its time is over.
func (c *serverConn) settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closeBy.IsZero() {
		return false
	}
	if !time.Now().Before(c.closeBy) {
		return true
	}
	if c.listing {
		return false
	}
	for _, s := range c.sessions {
		if s.session == nil || s.sealing || s.durable < s.appended {
			return false
		}
	}
	return true
}

// part waits for the client to end the connection after the last frame: it
// knows best what it has received.
func (c *serverConn) part() {
	wait, stop := after(partingTime)
	defer stop()
	select {
	case <-c.ended:
	case <-wait:
		c.end(&Refusal{})
	}
}

func (c *serverConn) writeRefusal(err error) *Refusal {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.server.stats.slow.Add(1)
		return refuse(CodeSlow, "the client did not read for %v", c.server.cfg.WriteTimeout)
	}
	return c.refusal(err)
}
