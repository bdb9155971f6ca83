package transport

import (
	"sync"
	"time"
)

// A chunk is open from the first tick, or note, in it until it is cut. It is
// cut by the tick behind which no other is expected within the linger, and an
// eighth more, of the chunk's beginning: so a game of a steady rate has the
// same number of ticks in every chunk, and the last of them does not wait. In
// a session with hashes the hash of that tick cuts it: as a chunk of its own
// it would take more room. Where the tick that was expected, or that hash,
// does not come, the keeper cuts the chunk before the eighth is over.

// longest is the most that a chunk is kept open.
func longest(linger time.Duration) time.Duration { return linger + linger/8 }

// grain is the least time between two looks of the keeper for chunks that are
// due.
func grain(linger time.Duration) time.Duration { return linger / 32 }

// clock is the time since the client began; it is never 0.
func (c *Client) clock() time.Duration { return time.Since(c.began) + 1 }

// pace is what a recording knows of the time between the ends of its ticks.
type pace struct {
	last     time.Duration // when the last tick ended, by the client's clock; 0 before the first
	interval time.Duration // until the next one, as far as is known; 0: unknown
}

// tick takes the end of a tick. The interval follows a shorter one at once and
// a longer one slowly, and never by much: one that is too short costs a wait
// for the keeper, one that is too long a chunk. So what comes in bursts is not
// taken for slow, and a pause is soon forgotten.
func (p *pace) tick(now, linger time.Duration) {
	last := p.last
	p.last = now
	if last == 0 {
		return
	}
	gap := max(now-last, 1)
	if p.interval == 0 || gap < p.interval {
		p.interval = gap
		return
	}
	p.interval += min(gap-p.interval, linger) / 4
}

// arm begins a chunk where none is open.
func (r *Recording) arm(now time.Duration) {
	if r.armed || r.over {
		return
	}
	linger := r.client.cfg.ChunkLinger
	wait := linger
	if r.pace.interval > 0 {
		wait = longest(linger) - grain(linger)
	}
	r.armed, r.since = true, now
	r.place = r.client.linger(r, now+wait)
}

// disarm takes that nothing waits to be cut.
func (r *Recording) disarm() {
	if r.armed {
		r.armed = false
		r.client.open.drop(r.place)
	}
}

// leave cuts the open chunk where no further tick is expected in it.
func (r *Recording) leave() {
	if r.armed && r.pace.interval > 0 && r.pace.last+r.pace.interval > r.since+longest(r.client.cfg.ChunkLinger) {
		r.cut()
	}
}

// lapsed cuts a chunk that is due, unless it has been cut since.
func (r *Recording) lapsed(place uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.armed && r.place == place {
		r.cut()
	}
}

// openChunks are the open chunks of a client, in the order in which they
// began. Those that were cut stay, without their recording, until all before
// them have gone: so nothing is searched, and who is visited has something to
// cut.
type openChunks struct {
	mu    sync.Mutex
	queue fifo[openChunk]
	gone  uint64 // how many there were before those in queue
}

type openChunk struct {
	r   *Recording // nil: cut
	due time.Duration
}

// add gives the place of a chunk, and whether it is the only one.
func (o *openChunks) add(r *Recording, due time.Duration) (place uint64, only bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.queue.len()
	o.queue.push(openChunk{r, due})
	return o.gone + uint64(n), n == 0
}

// drop takes that the chunk in a place was cut.
func (o *openChunks) drop(place uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if place >= o.gone {
		o.queue.at(int(place - o.gone)).r = nil
	}
}

// pop takes out the first chunk that is due; nil where there is none. Then
// next is when the first of the others is, 0 where there are no others.
func (o *openChunks) pop(now time.Duration) (r *Recording, place uint64, next time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.queue.len() > 0 {
		first := o.queue.at(0)
		if first.r != nil && first.due > now {
			return nil, 0, first.due
		}
		r, place = first.r, o.gone
		o.queue.pop()
		o.gone++
		if r != nil {
			return r, place, 0
		}
	}
	return nil, 0, 0
}

// linger lets the keeper cut the open chunk of r once it is due.
func (c *Client) linger(r *Recording, due time.Duration) (place uint64) {
	place, only := c.open.add(r, due)
	if only {
		ring(c.keeping)
	}
	return place
}

// cutDue cuts the chunks that are due, and gives the time until it is to be
// called again; 0 for when another chunk begins.
func (c *Client) cutDue() time.Duration {
	now := c.clock()
	for {
		r, place, next := c.open.pop(now)
		if r == nil {
			if next == 0 {
				return 0
			}
			return max(next-now, grain(c.cfg.ChunkLinger), 1)
		}
		r.lapsed(place)
	}
}
