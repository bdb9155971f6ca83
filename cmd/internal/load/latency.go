package load

import (
	"sync"
	"time"

	"reprise/format"
)

// ends remembers when the ticks of a session ended, until they are durable.
type ends struct {
	mu    sync.Mutex
	first format.Tick // the tick of times[0]
	times []time.Time
}

// add notes the end of a tick. Ticks that were left out before it have no
// end.
func (e *ends) add(tick format.Tick, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.times) == 0 {
		e.first = tick
	}
	for e.first+format.Tick(len(e.times)) < tick {
		e.times = append(e.times, time.Time{})
	}
	e.times = append(e.times, at)
}

// settle counts the ticks before durable and forgets them.
func (e *ends) settle(durable format.Tick, now time.Time, h *Histogram) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(int(max(durable, e.first)-e.first), len(e.times))
	for _, at := range e.times[:n] {
		if !at.IsZero() {
			h.Add(now.Sub(at))
		}
	}
	e.first += format.Tick(n)
	e.times = e.times[n:]
	if len(e.times) == 0 {
		e.times = nil
	}
}

// sampler looks at what became durable.
type sampler struct {
	sessions []*Session
	seen     []format.Tick // of each session, what was durable at the last look
	latency  Histogram
	stop     chan struct{}
	done     sync.WaitGroup
}

// sample begins to look at the sessions every so often. Ticks that ended
// before are not counted.
func sample(sessions []*Session, every time.Duration) *sampler {
	s := &sampler{sessions: sessions, seen: make([]format.Tick, len(sessions)), stop: make(chan struct{})}
	for _, x := range sessions {
		x.ends = &ends{}
	}
	s.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.look()
			case <-s.stop:
				s.look()
				return
			}
		}
	})
	return s
}

func (s *sampler) look() {
	for i, x := range s.sessions {
		if durable := x.Recording.Durable(); durable != s.seen[i] {
			s.seen[i] = durable
			x.ends.settle(durable, time.Now(), &s.latency)
		}
	}
}

// end looks a last time.
func (s *sampler) end() *Histogram {
	close(s.stop)
	s.done.Wait()
	return &s.latency
}
