package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"reprise/format"
	"reprise/transport"
)

// reprisedClient records over QUIC, as game servers do.
type reprisedClient struct {
	w        workload
	meter    meter
	base     time.Time
	clients  []*transport.Client
	sessions []*reprisedSession
	sampling sync.WaitGroup
	stop     chan struct{}
}

type reprisedSession struct {
	recording *transport.Recording
	next      format.Tick
	// due is when the last ticks had to be made, by tick modulo its length;
	// nil for sessions that are not sampled.
	due  []atomic.Int64
	seen format.Tick
}

const (
	// sampled is how many sessions are looked at for waits, of all evenly:
	// more would cost the load generator too much.
	sampled = 500
	// samplePause is how often: waits are too long by at most this.
	samplePause = time.Millisecond
	// dueTicks is how many ticks may wait before the oldest are not sampled.
	dueTicks = 1 << 10
	// flatOutMemory bounds what a session that runs flat out holds at the
	// client: twice what the daemon lets it send ahead.
	flatOutMemory = 2 << 20
)

// dialReprised connects as many game servers.
func dialReprised(ctx context.Context, s *server, w workload, linger time.Duration) (client, error) {
	tls, err := transport.Trust{Pin: s.fingerprint}.Config()
	if err != nil {
		return nil, err
	}
	cfg := transport.ClientConfig{TLS: tls, ChunkLinger: linger, ChunkBytes: gatherBytes}
	if w.rate == 0 {
		cfg.SessionMemory = flatOutMemory
	}
	c := &reprisedClient{w: w, base: time.Now(), stop: make(chan struct{})}
	for range connections {
		client, err := transport.Dial(ctx, []string{s.addr}, cfg)
		if err != nil {
			c.close()
			return nil, err
		}
		c.clients = append(c.clients, client)
	}
	return c, nil
}

func (c *reprisedClient) open(ctx context.Context) error {
	every := max(1, c.w.sessions/sampled)
	for i := range c.w.sessions {
		r, err := c.clients[i%connections].Open(transport.Spec{Meta: metadata(i, c.w.rate), Book: book()})
		if err != nil {
			return err
		}
		s := &reprisedSession{recording: r}
		if i%every == 0 && c.w.rate > 0 {
			s.due = make([]atomic.Int64, dueTicks)
		}
		c.sessions = append(c.sessions, s)
	}
	// A session is open once its first tick is durable.
	for i := range c.sessions {
		if err := c.tick(ctx, i, time.Now()); err != nil {
			return err
		}
	}
	if err := c.drain(ctx); err != nil {
		return fmt.Errorf("opening %d sessions: %w", len(c.sessions), err)
	}
	c.sampling.Go(c.sample)
	return nil
}

func (c *reprisedClient) tick(_ context.Context, session int, due time.Time) error {
	s := c.sessions[session]
	var f filler
	params := tickParams(session, s.next, &f)
	err := s.recording.Step(tickCode, params[:]...)
	if s.due != nil {
		s.due[s.next%dueTicks].Store(int64(due.Sub(c.base)))
	}
	if err == nil {
		err = s.recording.EndTick()
	}
	if err != nil {
		return fmt.Errorf("session %d, tick %d: %w", session, s.next, err)
	}
	s.next++
	return nil
}

func (c *reprisedClient) beat(context.Context, int) error { return nil }

func (c *reprisedClient) room(ctx context.Context, session int) error {
	return c.sessions[session].recording.Room(ctx)
}

func (c *reprisedClient) acknowledged() uint64 {
	n := uint64(0)
	for _, s := range c.sessions {
		n += uint64(s.recording.Durable())
	}
	return n
}

func (c *reprisedClient) drain(ctx context.Context) error {
	for _, s := range c.sessions {
		if err := s.recording.Wait(ctx, s.next-1); err != nil {
			return err
		}
	}
	return nil
}

// sample looks at what became durable until the client is closed.
func (c *reprisedClient) sample() {
	tick := time.NewTicker(samplePause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.stop:
			return
		}
		now := int64(time.Since(c.base))
		for _, s := range c.sessions {
			if s.due != nil {
				c.look(s, now)
			}
		}
	}
}

func (c *reprisedClient) look(s *reprisedSession, now int64) {
	durable := s.recording.Durable()
	if durable > s.seen+dueTicks {
		s.seen = durable - dueTicks
	}
	for ; s.seen < durable; s.seen++ {
		c.meter.add(time.Duration(now - s.due[s.seen%dueTicks].Load()))
	}
}

func (c *reprisedClient) waits() *meter { return &c.meter }

func (c *reprisedClient) close() {
	close(c.stop)
	c.sampling.Wait()
	var wg sync.WaitGroup
	for _, client := range c.clients {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			// What is not durable by now is not counted.
			_ = client.Close(ctx)
		})
	}
	wg.Wait()
}
