package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// client brings ticks to a system. Session n belongs to connection n modulo
// connections; the calls for one connection come from one goroutine.
type client interface {
	// open opens all sessions, ready to record.
	open(ctx context.Context) error
	// tick records the next tick of a session; due is when it had to be
	// made. It may wait while too much is not acknowledged, until ctx ends.
	tick(ctx context.Context, session int, due time.Time) error
	// beat comes about every millisecond between ticks.
	beat(ctx context.Context, connection int) error
	// room waits until a session that runs flat out may go on.
	room(ctx context.Context, session int) error
	// acknowledged counts ticks since open.
	acknowledged() uint64
	// drain waits until everything recorded is acknowledged.
	drain(ctx context.Context) error
	// waits is the meter of times from when a tick was due to its
	// acknowledgement.
	waits() *meter
	close()
}

// connections are as many game-server processes, which share the sessions.
const connections = 8

// burst is how many ticks a session that runs flat out makes at once.
const burst = 256

// drive makes ticks until ctx ends.
func drive(ctx context.Context, c client, w workload) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, connections)
	start := time.Now()
	for n := range connections {
		wg.Go(func() {
			defer cancel()
			errs[n] = driveConnection(ctx, c, w, n, start)
		})
	}
	wg.Wait()
	var failed []error
	for _, err := range errs {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func driveConnection(ctx context.Context, c client, w workload, n int, start time.Time) error {
	var mine []int
	for session := n; session < w.sessions; session += connections {
		mine = append(mine, session)
	}
	switch {
	case len(mine) == 0:
		<-ctx.Done()
		return ctx.Err()
	case w.rate == 0:
		return flatOut(ctx, c, mine)
	}
	return paced(ctx, c, n, mine, w.rate, start)
}

// paced spreads the ticks of the sessions evenly over time, as game servers
// do that know nothing of each other. A tick that is made late counts from
// when it was due: a system that holds up the load does not look faster.
func paced(ctx context.Context, c client, connection int, mine []int, rate float64, start time.Time) error {
	gap := float64(time.Second) / rate / float64(len(mine))
	for next := 0; ; {
		for due := int(float64(time.Since(start))/gap) + 1; next < due; next++ {
			at := start.Add(time.Duration(float64(next) * gap))
			if err := c.tick(ctx, mine[next%len(mine)], at); err != nil {
				return err
			}
		}
		if err := c.beat(ctx, connection); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

func flatOut(ctx context.Context, c client, mine []int) error {
	for {
		for _, session := range mine {
			if err := c.room(ctx, session); err != nil {
				return err
			}
			if err := ticks(ctx, c, session, burst); err != nil {
				return err
			}
		}
	}
}

// ticks makes ticks of one session at once.
func ticks(ctx context.Context, c client, session, n int) error {
	for range n {
		if err := c.tick(ctx, session, time.Now()); err != nil {
			return err
		}
	}
	return ctx.Err()
}
