package transport

import (
	"fmt"
	"slices"
	"time"
)

// What follows are a client's queues of recordings that want something, and
// the goroutines that serve them. A recording calls them with its own lock
// held; they never take it while they hold the client's.

// fifo is a queue in a slice.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) push(x T) { f.items = append(f.items, x) }

func (f *fifo[T]) len() int { return len(f.items) - f.head }

// at is the i-th oldest, which there must be. It is valid until the next call
// that changes the queue.
func (f *fifo[T]) at(i int) *T { return &f.items[f.head+i] }

func (f *fifo[T]) pop() (x T, ok bool) {
	var none T
	if f.len() == 0 {
		return none, false
	}
	x, f.items[f.head] = f.items[f.head], none
	f.head++
	if f.head > 64 && f.head > len(f.items)/2 {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	return x, true
}

// drop takes out those of which gone is true.
func (f *fifo[T]) drop(gone func(T) bool) {
	f.items, f.head = slices.DeleteFunc(f.items[f.head:], gone), 0
}

// ring wakes the one that listens, now or next time.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// ready lets the sender look at r.
func (c *Client) ready(r *Recording) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readyLocked(r)
}

func (c *Client) readyLocked(r *Recording) {
	if c.link == nil || r.queued {
		return
	}
	r.queued = true
	c.sendable.push(r)
	ring(c.bell)
}

// retry opens r again after a pause that grows with the refusals in a row.
func (c *Client) retry(r *Recording, tries int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := time.Now().Add(c.backoff(tries + 3))
	c.retries = append(c.retries, dueAt{r, due})
	if len(c.retries) == 1 || due.Before(c.retryAt) {
		c.retryAt = due
		ring(c.keeping)
	}
}

func (c *Client) backoff(tries int) time.Duration {
	return backoff(c.cfg.BackoffMin, c.cfg.BackoffMax, tries)
}

// tell passes something that went wrong to OnError.
func (c *Client) tell(session string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.complaints.len() >= maxComplaints {
		c.unheard++
		return
	}
	c.complaints.push(complaint{session, err})
	ring(c.keeping)
}

// forget drops a recording that has ended.
func (c *Client) forget(r *Recording) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recordings[r.id] == r {
		delete(c.recordings, r.id)
	}
}

// full tells whether the bound of all recordings together is passed, crowded
// whether it is near.
func (c *Client) full() bool    { return c.memory.Load() > int64(c.cfg.Memory) }
func (c *Client) crowded() bool { return c.memory.Load() > int64(c.cfg.Memory)/4*3 }

// keep cuts chunks that are due, opens refused sessions again and calls
// OnError.
func (c *Client) keep() {
	for {
		next := c.cutDue()
		c.openDue(time.Now())
		c.hearComplaints()
		wait, stop := after(c.untilRetry(next))
		select {
		case <-wait:
		case <-c.keeping:
		case <-c.ctx.Done():
			stop()
			c.hearComplaints()
			return
		}
		stop()
	}
}

// openDue opens the refused sessions again whose pause is over.
func (c *Client) openDue(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.retries) == 0 || c.retryAt.After(now) {
		return
	}
	rest := c.retries[:0]
	for _, l := range c.retries {
		if !l.due.After(now) {
			c.opens.push(l.r)
			ring(c.bell)
			continue
		}
		if len(rest) == 0 || l.due.Before(c.retryAt) {
			c.retryAt = l.due
		}
		rest = append(rest, l)
	}
	clear(c.retries[len(rest):])
	c.retries = rest
}

// untilRetry is the time until a refused session is opened again, or next
// where that is sooner; 0 for never.
func (c *Client) untilRetry(next time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.retries) == 0 {
		return next
	}
	retry := max(time.Until(c.retryAt), time.Microsecond)
	if next > 0 {
		return min(next, retry)
	}
	return retry
}

func (c *Client) hearComplaints() {
	for {
		c.mu.Lock()
		x, ok := c.complaints.pop()
		if !ok && c.unheard > 0 {
			x, ok = complaint{err: fmt.Errorf("%d more errors were dropped", c.unheard)}, true
			c.unheard = 0
		}
		c.mu.Unlock()
		if !ok {
			return
		}
		c.cfg.OnError(x.session, x.err)
	}
}

// spoolSoon lets the spooler write what r has for it.
func (c *Client) spoolSoon(r *Recording) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spools.push(r)
	ring(c.writing)
}

// retire lets the spooler close a spool.
func (c *Client) retire(s *spool, remove bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired.push(retired{s, remove})
	ring(c.writing)
}

// spoolLoop writes spools until the client ends and nothing is left.
func (c *Client) spoolLoop() {
	for {
		c.writeSpools()
		select {
		case <-c.writing:
		case <-c.ctx.Done():
			c.writeSpools()
			return
		}
	}
}

func (c *Client) writeSpools() {
	for {
		c.mu.Lock()
		r, ok := c.spools.pop()
		c.mu.Unlock()
		if !ok {
			break
		}
		r.writeSpool()
	}
	for {
		c.mu.Lock()
		s, ok := c.retired.pop()
		c.mu.Unlock()
		if !ok {
			return
		}
		if err := s.spool.retire(s.remove); err != nil {
			c.tell(s.spool.id, fmt.Errorf("closing the spool: %w", err))
		}
	}
}

// spoolCache is how much of a spooled session stays in memory to be sent.
const spoolCache = 256 << 10

// writeSpool writes what was cut since the last time, without the lock.
func (r *Recording) writeSpool() {
	r.mu.Lock()
	chunks, s, proving := r.toSpool, r.spool, r.proving
	r.toSpool, r.writing, r.proving = nil, len(chunks) > 0, nil
	over := r.over
	r.mu.Unlock()
	if proving != nil && !over {
		r.prove(proving)
	}
	if len(chunks) == 0 {
		return
	}
	var b []byte
	for _, c := range chunks {
		b = append(b, c.data...)
	}
	at, err := s.append(b)
	if err == nil {
		err = s.dropKeyframes(chunks)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing = false
	if r.over {
		return
	}
	if err != nil {
		r.breakSpool(err)
		return
	}
	for _, c := range chunks {
		c.at, c.spooled = at, true
		at += int64(c.size)
		if r.memory > spoolCache {
			r.drop(c)
		}
	}
	r.settleTail()
	r.client.ready(r)
}

// prove has the spool know that the daemon goes on where it does, before
// anything that follows is sent.
func (r *Recording) prove(a *answer) {
	err := r.spool.prove()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	if err != nil {
		r.client.tell(r.id, fmt.Errorf("a later start will not be able to resume the spool: %w", err))
	}
	r.proved(a)
}

// settleTail lets the tail use again what the spool file has now, and cuts
// what it had no room for.
func (r *Recording) settleTail() {
	if r.tail == nil {
		return
	}
	r.tail.settle(r.q.next() - uint64(len(r.toSpool)))
	if r.tail.missed {
		r.cut()
	}
}

// breakSpool goes on without writing the spool, in memory.
func (r *Recording) breakSpool(err error) {
	r.client.tell(r.id, fmt.Errorf("the spool cannot be written, recording goes on in memory: %w", err))
	r.spool.broken = true
	r.toSpool = nil
	if r.tail != nil {
		// From here on the daemon may have chunks that the spool does not.
		r.tail.void()
		r.tail = nil
	}
	if r.trouble != nil && !temporary(r.trouble) {
		r.end(r.trouble, false)
		return
	}
	r.client.ready(r)
}
