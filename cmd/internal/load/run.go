package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

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
	// Players and StepBytes are those of every session's script.
	Players, StepBytes int
	// Seal ends every session with a seal; without it they stay unfinished.
	Seal bool
	// Patience bounds the wait for the openings, for the last
	// acknowledgements and for the seals, each; 0 waits until the context
	// ends.
	Patience time.Duration
	// SampleEvery is how often acknowledgements are looked at: latencies
	// are too long by at most this. 0 means 4 ms.
	SampleEvery time.Duration
}

// Result is what came of it.
type Result struct {
	Connections int
	// Promises are what the daemon has promised of each session.
	Promises []Promise
	// Recorded counts ticks, Acknowledged those of them that were
	// acknowledged as on disk, LeftOut those that a client had no room for.
	Recorded, Acknowledged, LeftOut uint64
	// Opening is how long it took until every session was open and its
	// first tick durable.
	Opening time.Duration
	// Elapsed is from the second tick of the first session until the last
	// tick of all was durable.
	Elapsed time.Duration
	// Sealing is how long it took to seal every session.
	Sealing time.Duration
	// Latency is from EndTick to durable, of Sampled sessions, the openings
	// left out.
	Latency *Histogram
	Sampled int
	// Late counts the ticks that the generator itself made more than a
	// tick's time late: where it is not small, the machine is too slow to
	// drive that load.
	Late uint64
}

// PerSecond is how many ticks a second were recorded, without the openings.
func (r *Result) PerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Recorded-min(r.Recorded, uint64(len(r.Promises)))) / r.Elapsed.Seconds()
}

// ErrNotDurable is returned where ticks were not acknowledged within
// Config.Patience. The Result says how many.
var ErrNotDurable = errors.New("not every tick became durable")

const (
	// defaultSampleEvery adds 2 ms to a latency on average. Looking every
	// millisecond cost a sixth of what driving 10,000 sessions does.
	defaultSampleEvery = 4 * time.Millisecond
	// maxSampled is of how many sessions the latency is looked at, spread
	// evenly: looking at more would cost the machine more than their load.
	maxSampled = 500
	// sealsAtOnce bounds the seals that are waited for together.
	sealsAtOnce = 256
)

type generator struct {
	cfg      Config
	clients  []*transport.Client
	sessions []*Session
	late     atomic.Uint64
}

// Run drives the daemon and waits until everything is durable. Where it fails
// once the sessions are open, the Result says how far it came.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if cfg.SampleEvery == 0 {
		cfg.SampleEvery = defaultSampleEvery
	}
	g := &generator{cfg: cfg}
	r, err := g.run(ctx)
	g.close(err == nil)
	return r, err
}

func (g *generator) run(ctx context.Context) (*Result, error) {
	start := time.Now()
	if err := g.open(ctx); err != nil {
		return nil, err
	}
	r := &Result{Connections: len(g.clients), Opening: time.Since(start)}
	sampled := g.sampled()
	s := sample(sampled, g.cfg.SampleEvery)
	start = time.Now()
	err := g.drive(ctx)
	if err == nil {
		err = g.awaitAll(ctx)
	}
	r.Elapsed = time.Since(start)
	r.Latency, r.Sampled, r.Late = s.end(), len(sampled), g.late.Load()
	if err == nil && g.cfg.Seal {
		start = time.Now()
		err = g.seal(ctx)
		r.Sealing = time.Since(start)
	}
	g.settle(r)
	return r, err
}

// settle notes what was promised in the end.
func (g *generator) settle(r *Result) {
	for _, s := range g.sessions {
		p := s.Promise()
		r.Promises = append(r.Promises, p)
		r.Recorded += p.Recorded()
		r.Acknowledged += p.Acknowledged()
		r.LeftOut += s.LeftOut()
	}
}

// SessionID names the n-th session of a run.
func SessionID(prefix string, n int) string { return fmt.Sprintf("%s-%06d", prefix, n) }

// open connects and opens every session, and waits until the first ticks are
// durable.
func (g *generator) open(ctx context.Context) error {
	for n := range g.cfg.Connections {
		c, err := g.cfg.Dial(ctx, n)
		if err != nil {
			return err
		}
		g.clients = append(g.clients, c)
	}
	for i := range g.cfg.Sessions {
		s, err := Open(g.clients[i%len(g.clients)], Script{Session: SessionID(g.cfg.Prefix, i), Number: i, Rate: g.cfg.Rate, Players: g.cfg.Players, StepBytes: g.cfg.StepBytes})
		if err != nil {
			return err
		}
		g.sessions = append(g.sessions, s)
		if err := s.Tick(); err != nil {
			return err
		}
	}
	return g.awaitAll(ctx)
}

// patient bounds a wait.
func (g *generator) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if g.cfg.Patience == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, g.cfg.Patience, fmt.Errorf("%w within %v", ErrNotDurable, g.cfg.Patience))
}

// awaitAll waits until all that was recorded is durable. Where a client has
// just left ticks out, their gap is durable later.
func (g *generator) awaitAll(ctx context.Context) error {
	ctx, cancel := g.patient(ctx)
	defer cancel()
	for _, s := range g.sessions {
		if err := s.await(ctx); err != nil {
			return s.failed(ctx, err)
		}
	}
	return nil
}

// failed says which session failed, and why where the reason is ctx.
func (s *Session) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("session %s: %w", s.script.Session, err)
}

// await waits until the last tick that was not left out is durable.
func (s *Session) await(ctx context.Context) error {
	p := s.Promise()
	last, ok := p.lastRecorded()
	if !ok {
		return nil
	}
	return s.Recording.Wait(ctx, last)
}

// sampled are the sessions whose latency is looked at.
func (g *generator) sampled() []*Session {
	step := (len(g.sessions) + maxSampled - 1) / maxSampled
	var picked []*Session
	for i := 0; i < len(g.sessions); i += step {
		picked = append(picked, g.sessions[i])
	}
	return picked
}

// drive records ticks for the duration, each connection by itself. The first
// error ends all.
func (g *generator) drive(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var wg sync.WaitGroup
	for n := range g.clients {
		wg.Go(func() {
			if err := g.driveConnection(ctx, n); err != nil {
				end(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// driveConnection records the ticks of one connection's sessions.
func (g *generator) driveConnection(ctx context.Context, n int) error {
	var mine []*Session
	for i := n; i < len(g.sessions); i += len(g.clients) {
		mine = append(mine, g.sessions[i])
	}
	if len(mine) == 0 {
		return nil
	}
	if g.cfg.Rate == 0 {
		return g.flatOut(ctx, mine)
	}
	late, err := pace(ctx, g.cfg.Rate, g.cfg.Duration, len(mine), func(i int) error { return mine[i].Tick() })
	g.late.Add(late)
	return err
}

// flatOutTurn is how many ticks a session records before another's turn.
const flatOutTurn = 256

// flatOut records as fast as ticks become durable.
func (g *generator) flatOut(ctx context.Context, mine []*Session) error {
	end := time.Now().Add(g.cfg.Duration)
	for time.Now().Before(end) {
		for _, s := range mine {
			if err := s.Recording.Room(ctx); err != nil {
				return err
			}
			for range flatOutTurn {
				if err := s.Tick(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// seal seals all sessions, many at once.
func (g *generator) seal(ctx context.Context) error {
	ctx, cancel := g.patient(ctx)
	defer cancel()
	slots := make(chan struct{}, sealsAtOnce)
	errs := make([]error, len(g.sessions))
	var wg sync.WaitGroup
	for i, s := range g.sessions {
		slots <- struct{}{}
		wg.Go(func() {
			if err := s.Recording.Seal(ctx); err != nil {
				errs[i] = fmt.Errorf("sealing: %w", s.failed(ctx, err))
			}
			<-slots
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// closeTime bounds the leave from the daemon.
const closeTime = 10 * time.Second

// close takes leave of the daemon, after a failure without a wait: what is
// not durable by now is in the result.
func (g *generator) close(leave bool) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if !leave {
		cancel()
	}
	var wg sync.WaitGroup
	for _, c := range g.clients {
		wg.Go(func() { _ = c.Close(ctx) })
	}
	wg.Wait()
}
