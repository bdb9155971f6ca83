package lab

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"reprise/cmd/internal/load"
	"reprise/format"
	"reprise/transport"
)

// dial connects a game server, in the background.
func dial(t testing.TB, addr, pin string, change ...func(*transport.ClientConfig)) *transport.Client {
	t.Helper()
	c, err := transport.Dial(context.Background(), []string{addr}, clientConfig(t, pin, change...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { abandon(c) })
	return c
}

func clientConfig(t testing.TB, pin string, change ...func(*transport.ClientConfig)) transport.ClientConfig {
	t.Helper()
	tls, err := transport.Trust{Pin: pin}.Config()
	if err != nil {
		t.Fatal(err)
	}
	cfg := transport.ClientConfig{TLS: tls, Background: true}
	for _, f := range change {
		f(&cfg)
	}
	return cfg
}

// hasty is a client that soon tries again, for daemons that soon come back.
func hasty(cfg *transport.ClientConfig) {
	cfg.ChunkLinger, cfg.BackoffMin, cfg.BackoffMax, cfg.DeadAfter = 20*time.Millisecond, 10*time.Millisecond, 100*time.Millisecond, time.Second
}

// abandon ends a client without a wait for anything.
func abandon(c *transport.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c.Close(ctx)
}

// crowd is many sessions that tick until they are stopped.
type crowd struct {
	t        testing.TB
	sessions []*load.Session
	stop     chan struct{}
	running  sync.WaitGroup
}

func newCrowd(t testing.TB) *crowd { return &crowd{t: t, stop: make(chan struct{})} }

// add opens n sessions on a client and has them tick.
func (c *crowd) add(client *transport.Client, prefix string, n int, s load.Script) {
	c.t.Helper()
	mine := make([]*load.Session, n)
	for i := range mine {
		s.Session, s.Number = load.SessionID(prefix, i), len(c.sessions)
		session, err := load.Open(client, s)
		if err != nil {
			c.t.Fatal(err)
		}
		mine[i] = session
		c.sessions = append(c.sessions, session)
	}
	c.running.Go(func() { c.run(mine, s.Rate) })
	// Here, so that it is done before the client is abandoned.
	c.t.Cleanup(c.halt)
}

// run ticks the sessions at a rate. A session that ends stops the crowd: it
// must not, whatever happens.
func (c *crowd) run(mine []*load.Session, rate float64) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.stop:
			return
		}
		for _, s := range mine {
			if err := s.Tick(); err != nil {
				c.t.Errorf("a session was harmed: %v", err)
				return
			}
		}
	}
}

// halt stops the ticks.
func (c *crowd) halt() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	c.running.Wait()
}

// progress waits until every session has a tick on disk that is recorded from
// now on.
func (c *crowd) progress() {
	c.t.Helper()
	c.eachDurable("progress of every session", func(s *load.Session) format.Tick { return s.Recording.NextTick() })
}

// eachDurable waits until more than what of gives now is durable, for each
// session.
func (c *crowd) eachDurable(what string, of func(*load.Session) format.Tick) {
	c.t.Helper()
	due := make([]format.Tick, len(c.sessions))
	for i, s := range c.sessions {
		due[i] = of(s)
	}
	for i, s := range c.sessions {
		eventually(c.t, fmt.Sprintf("%s: session %s, tick %d", what, s.Recording.ID(), due[i]), func() bool { return s.Recording.Durable() > due[i] })
	}
}

// seal stops the ticks and seals every session.
func (c *crowd) seal() {
	c.t.Helper()
	c.halt()
	ctx := within(c.t, patience)
	errs := make([]error, len(c.sessions))
	var wg sync.WaitGroup
	for i, s := range c.sessions {
		wg.Go(func() { errs[i] = s.Recording.Seal(ctx) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			c.t.Fatalf("sealing session %s: %v", c.sessions[i].Recording.ID(), err)
		}
	}
}

func (c *crowd) promises() []load.Promise {
	promises := make([]load.Promise, len(c.sessions))
	for i, s := range c.sessions {
		promises[i] = s.Promise()
	}
	return promises
}

// leftOut counts the ticks that clients left out.
func (c *crowd) leftOut() uint64 {
	n := uint64(0)
	for _, s := range c.sessions {
		n += s.LeftOut()
	}
	return n
}

// verdict reads the daemon's files and compares them with what was promised.
// Sealed replays are checked to the last byte, also that nothing but what
// the clients left out is missing in them.
func verdict(t testing.TB, data string, promises []load.Promise) load.Tally {
	t.Helper()
	tally, err := load.CountFiles(data, promises)
	if err != nil {
		t.Errorf("the files: %v", err)
	}
	if tally.Acknowledged == 0 {
		t.Error("no tick was acknowledged: nothing was tried")
	}
	checkReplays(t, data, promises)
	t.Logf("%d acknowledged ticks missing: %d were acknowledged, of %d sessions; their files hold %d ticks, and declare %d as left out",
		tally.Missing, tally.Acknowledged, len(promises), tally.InFiles, tally.Gaps)
	if tally.Missing > 0 {
		t.Errorf("%d acknowledged ticks are missing", tally.Missing)
	}
	return tally
}
