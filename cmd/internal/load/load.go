// Package load drives a daemon as many game servers would: sessions at a tick
// rate, or as fast as they become durable. It measures how long a tick takes
// from its end to the acknowledgement that it is on disk, and afterwards
// counts what is missing in the daemon's files.
package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"reprise/format"
	"reprise/transport"
)

// Config says what to drive, and how hard.
type Config struct {
	// Dial connects the n-th game server.
	Dial func(ctx context.Context, n int) (*transport.Client, error)
	// Prefix begins every session's id; it must never have been used.
	Prefix string
	// Sessions are spread over Connections.
	Sessions, Connections int
	// Rate is ticks a second of each session; 0 is flat out.
	Rate float64
	// Duration is how long ticks are recorded.
	Duration time.Duration
	// TickBytes is the size of a tick's row bytes; at least minTickBytes.
	TickBytes int
	// Seal ends every session with a seal; without it they stay unfinished.
	Seal bool
	// SampleEvery is how often acknowledgements are looked at: latencies
	// are too long by at most this. 0 means 2 ms.
	SampleEvery time.Duration
}

// Result is what came of it.
type Result struct {
	Sessions, Connections int
	// Recorded counts ticks, Durable those that were acknowledged as on
	// disk before the end, Missed those that a client had to leave out.
	Recorded, Durable, Missed uint64
	// Elapsed is from the first tick until the last was durable.
	Elapsed time.Duration
	// Opening is how long it took until every session was open and durable.
	Opening time.Duration
	// Sealing is how long it took to seal every session.
	Sealing time.Duration
	// Latency is from EndTick to durable.
	Latency Histogram
	// Late counts the ticks that the generator itself made more than a
	// tick's time late: where it is not small, the machine is too slow to
	// drive that load.
	Late uint64
}

// ErrNotDurable is returned where ticks were not acknowledged in time.
var ErrNotDurable = errors.New("not every tick became durable")

type session struct {
	recording *transport.Recording
	index     int
	next      format.Tick
	seen      format.Tick // durable so far, of the sampler
	ends      []int64     // when the ticks ended, by tick modulo its length
}

// ringTicks is how many ticks of a session may wait for their
// acknowledgement before the sampler loses sight of the oldest.
const ringTicks = 1 << 10

type generator struct {
	cfg      Config
	base     time.Time
	clients  []*transport.Client
	sessions []*session
	recorded atomic.Uint64
	late     atomic.Uint64
	latency  Histogram
	lost     uint64
}

// Run drives the daemon and waits until everything is durable.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if cfg.SampleEvery == 0 {
		cfg.SampleEvery = 2 * time.Millisecond
	}
	cfg.TickBytes = max(cfg.TickBytes, minTickBytes)
	g := &generator{cfg: cfg, base: time.Now()}
	defer g.close()
	if err := g.open(ctx); err != nil {
		return nil, err
	}
	r := &Result{Sessions: cfg.Sessions, Connections: cfg.Connections, Opening: time.Since(g.base)}
	start := time.Now()
	err := g.drive(ctx)
	r.Elapsed = time.Since(start)
	for _, s := range g.sessions {
		r.Durable += uint64(s.recording.Durable())
		r.Missed += s.recording.Stats().MissedTicks
	}
	r.Recorded, r.Latency, r.Late = g.recorded.Load(), g.latency, g.late.Load()
	if err == nil && r.Durable < r.Recorded {
		err = fmt.Errorf("%w: %d of %d", ErrNotDurable, r.Durable, r.Recorded)
	}
	if err == nil && cfg.Seal {
		start = time.Now()
		err = g.seal(ctx)
		r.Sealing = time.Since(start)
	}
	return r, err
}

// SessionID names the n-th session of a run.
func SessionID(prefix string, n int) string { return fmt.Sprintf("%s-%06d", prefix, n) }

// open connects and opens every session, and waits until the openings are
// durable.
func (g *generator) open(ctx context.Context) error {
	for n := range g.cfg.Connections {
		c, err := g.cfg.Dial(ctx, n)
		if err != nil {
			return err
		}
		g.clients = append(g.clients, c)
	}
	book := &format.CodeBook{Codes: []format.CodeInfo{{Code: loadCode, Name: "load", Params: []format.ParamInfo{
		{Name: "session", Type: "int"}, {Name: "tick", Type: "int"}, {Name: "filler", Type: "bytes"}}}}}
	rate := format.Rate{Num: uint32(g.cfg.Rate * 1000), Den: 1000}
	if g.cfg.Rate == 0 {
		rate = format.Rate{}
	}
	for i := range g.cfg.Sessions {
		meta := format.Metadata{Session: SessionID(g.cfg.Prefix, i), Game: "load", TickRate: rate, Width: format.Width16}
		r, err := g.clients[i%len(g.clients)].Open(transport.Spec{Meta: meta, Book: book})
		if err != nil {
			return err
		}
		g.sessions = append(g.sessions, &session{recording: r, index: i, ends: make([]int64, ringTicks)})
	}
	for _, s := range g.sessions {
		if err := g.tick(s); err != nil {
			return err
		}
	}
	for _, s := range g.sessions {
		if err := s.recording.Wait(ctx, s.next-1); err != nil {
			return fmt.Errorf("opening %s: %w", s.recording.ID(), err)
		}
		s.seen = s.next
	}
	return nil
}

// drive records ticks for the duration, and then waits for the last
// acknowledgement.
func (g *generator) drive(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stopSampling := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() { g.sample(stopSampling) })
	errs := make(chan error, len(g.clients))
	var wg sync.WaitGroup
	for n := range g.clients {
		wg.Go(func() { errs <- g.driveConnection(ctx, n) })
	}
	wg.Wait()
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
	}
	for _, s := range g.sessions {
		if err == nil {
			err = s.recording.Wait(ctx, s.next-1)
		}
	}
	close(stopSampling)
	sampling.Wait()
	return err
}

// driveConnection records the ticks of one connection's sessions.
func (g *generator) driveConnection(ctx context.Context, n int) error {
	var mine []*session
	for i := n; i < len(g.sessions); i += len(g.clients) {
		mine = append(mine, g.sessions[i])
	}
	if len(mine) == 0 {
		return nil
	}
	if g.cfg.Rate == 0 {
		return g.flatOut(ctx, mine)
	}
	return g.paced(ctx, mine)
}

// paced spreads the sessions' ticks evenly over time, in slots of a
// millisecond, as unsynchronised game servers would.
func (g *generator) paced(ctx context.Context, mine []*session) error {
	period := float64(time.Second) / g.cfg.Rate
	start := time.Now()
	total := int(g.cfg.Duration.Seconds() * g.cfg.Rate)
	next := 0
	for next < total*len(mine) {
		elapsed := float64(time.Since(start))
		due := min(int(elapsed/period*float64(len(mine)))+1, total*len(mine))
		for ; next < due; next++ {
			at := float64(next) * period / float64(len(mine))
			if elapsed-at > period {
				g.late.Add(1)
			}
			if err := g.tick(mine[next%len(mine)]); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// flatOut records as fast as ticks become durable.
func (g *generator) flatOut(ctx context.Context, mine []*session) error {
	end := time.Now().Add(g.cfg.Duration)
	for time.Now().Before(end) {
		for _, s := range mine {
			if err := s.recording.Room(ctx); err != nil {
				return err
			}
			for range 256 {
				if err := g.tick(s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (g *generator) tick(s *session) error {
	if err := g.record(s); err != nil {
		return fmt.Errorf("%s, tick %d: %w", s.recording.ID(), s.next, err)
	}
	atomic.StoreInt64(&s.ends[s.next%ringTicks], int64(time.Since(g.base)))
	s.next++
	g.recorded.Add(1)
	return nil
}

// sample looks at what became durable until it is told to stop, and then
// once more.
func (g *generator) sample(stop <-chan struct{}) {
	tick := time.NewTicker(g.cfg.SampleEvery)
	defer tick.Stop()
	for {
		stopped := false
		select {
		case <-tick.C:
		case <-stop:
			stopped = true
		}
		now := int64(time.Since(g.base))
		for _, s := range g.sessions {
			durable := s.recording.Durable()
			if durable > s.seen+ringTicks {
				s.seen = durable - ringTicks
			}
			for ; s.seen < durable; s.seen++ {
				g.latency.Add(time.Duration(now - atomic.LoadInt64(&s.ends[s.seen%ringTicks])))
			}
		}
		if stopped {
			return
		}
	}
}

// seal seals all sessions, many at once.
func (g *generator) seal(ctx context.Context) error {
	slots := make(chan struct{}, 256)
	errs := make(chan error, len(g.sessions))
	for _, s := range g.sessions {
		slots <- struct{}{}
		go func() {
			errs <- s.recording.Seal(ctx)
			<-slots
		}()
	}
	var err error
	for range g.sessions {
		if e := <-errs; e != nil && err == nil {
			err = e
		}
	}
	return err
}

func (g *generator) close() {
	for _, c := range g.clients {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_ = c.Close(ctx)
		cancel()
	}
}
