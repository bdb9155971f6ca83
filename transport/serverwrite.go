package transport

import (
	"errors"
	"os"
	"slices"
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

// wakeLocked has what was added written.
func (c *serverConn) wakeLocked() {
	if len(c.out) > maxPending {
		c.attention.Store(true)
	}
	if c.awake {
		return
	}
	c.awake = true
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write writes what the sessions have to say, gathered for AckDelay, and a
// sign of life where there is nothing.
func (c *serverConn) write() {
	var buf []byte
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		idle, ok := c.awaitWork(timer)
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
func (c *serverConn) awaitWork(timer *time.Timer) (idle, ok bool) {
	select {
	case <-c.wake:
	case <-again(timer, c.idleTime()):
		return true, true
	case <-c.ended:
		return false, false
	}
	select {
	case <-again(timer, c.server.cfg.AckDelay):
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

// again sets a timer anew; for 0 it never fires.
func again(timer *time.Timer, d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	timer.Reset(d)
	return timer.C
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
	full := len(c.out) > maxPending
	buf = append(buf, c.out...)
	c.out = c.out[:0]
	if cap(c.out) > keepBuffer {
		c.out = nil
	}
	acks := c.acks
	c.acks = c.written[:0]
	c.round++
	c.awake = false
	c.mu.Unlock()
	if full {
		select {
		case c.room <- struct{}{}:
		default:
		}
	}
	c.written = acks
	c.server.stats.acks.Add(uint64(len(acks)))
	return appendWaiting(buf, acks)
}

// appendWaiting appends the acks that were not written before.
func appendWaiting(buf []byte, acks []ack) []byte {
	acks = slices.DeleteFunc(acks, func(a ack) bool { return a.alias == 0 })
	for some := range slices.Chunk(acks, MaxAcks) {
		buf = appendAcks(buf, some)
	}
	return buf
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
	for s := range c.sessions.all {
		if !s.is(sessionOver) && (s.is(sessionOpening) || s.sealing || s.durable.Load() < s.appended) {
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
