package transport

import (
	"sort"
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

// maxLinger is as good as for ever, and times can be reckoned with it.
const maxLinger = 1 << 16 * time.Hour

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
// them have gone, or there are too many of them: so who is visited has something
// to cut.
type openChunks struct {
	mu    sync.Mutex
	queue fifo[openChunk]
	next  uint64 // the place of the next one
	cut   int    // how many of queue were cut
}

type openChunk struct {
	r     *Recording // nil: cut
	due   time.Duration
	place uint64 // ascends
}

// keepCut is how many that were cut may stay in any case.
const keepCut = 64

// add gives the place of a chunk, and whether it is the only one.
func (o *openChunks) add(r *Recording, due time.Duration) (place uint64, only bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	place, only = o.next, o.queue.len() == 0
	o.next++
	o.queue.push(openChunk{r, due, place})
	return place, only
}

// drop takes that the chunk in a place was cut.
func (o *openChunks) drop(place uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	x := o.find(place)
	if x == nil || x.r == nil {
		return
	}
	x.r = nil
	if o.cut++; o.cut > keepCut && 2*o.cut > o.queue.len() {
		o.queue.drop(func(x openChunk) bool { return x.r == nil })
		o.cut = 0
	}
}

// find gives the chunk in a place; nil where it has gone. Mostly none before it
// was dropped: then it stands as far from the first one as their places are
// apart.
func (o *openChunks) find(place uint64) *openChunk {
	n := o.queue.len()
	if n == 0 || place < o.queue.at(0).place {
		return nil
	}
	i := int(place - o.queue.at(0).place)
	if i >= n || o.queue.at(i).place != place {
		i = sort.Search(n, func(i int) bool { return o.queue.at(i).place >= place })
	}
	if i == n || o.queue.at(i).place != place {
		return nil
	}
	return o.queue.at(i)
}

// pop takes out the first chunk that is due; nil where there is none. Then
// next is when the first of the others is, 0 where there are no others.
func (o *openChunks) pop(now time.Duration) (r *Recording, place uint64, next time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.queue.len() > 0 {
		if first := o.queue.at(0); first.r != nil && first.due > now {
			return nil, 0, first.due
		}
		if first, _ := o.queue.pop(); first.r != nil {
			return first.r, first.place, 0
		}
		o.cut--
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
