package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// noter is a client that notes when ticks were due, and may take its time.
type noter struct {
	mu    sync.Mutex
	due   map[int][]time.Duration
	start time.Time
	slow  time.Duration
	fails error
}

func newNoter() *noter { return &noter{due: map[int][]time.Duration{}, start: time.Now()} }

func (n *noter) tick(ctx context.Context, session int, due time.Time) error {
	if n.slow > 0 {
		if err := sleep(ctx, n.slow); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.due[session] = append(n.due[session], due.Sub(n.start))
	return n.fails
}

func (n *noter) open(context.Context) error            { return nil }
func (n *noter) beat(context.Context, int) error       { return nil }
func (n *noter) room(ctx context.Context, _ int) error { return ctx.Err() }
func (n *noter) acknowledged() uint64                  { return 0 }
func (n *noter) drain(context.Context) error           { return nil }
func (n *noter) waits() *meter                         { return nil }
func (n *noter) close()                                {}
func (n *noter) run(d time.Duration, w workload) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return drive(ctx, n, w)
}

// TestPaced runs a load in virtual time: every session gets its ticks at its
// rate, evenly, and the sessions of a connection one after the other.
func TestPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNoter()
		if err := n.run(3*time.Second-time.Millisecond, workload{100, 20}); err != nil {
			t.Fatal(err)
		}
		if len(n.due) != 100 {
			t.Fatalf("%d sessions have ticks, want 100", len(n.due))
		}
		for session, due := range n.due {
			if len(due) != 60 {
				t.Errorf("session %d has %d ticks, want 60", session, len(due))
			}
			for i := 1; i < len(due); i++ {
				if gap := due[i] - due[i-1]; (gap - 50*time.Millisecond).Abs() > time.Microsecond {
					t.Fatalf("session %d: tick %d is due %v after the one before, want 50ms", session, i, gap)
				}
			}
		}
		if gap := n.due[connections][0] - n.due[0][0]; gap < time.Millisecond {
			t.Errorf("two sessions of a connection tick %v apart, want them spread", gap)
		}
	})
}

// TestPacedLate makes the client too slow: ticks keep the times at which they
// were due.
func TestPacedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNoter()
		n.slow = 100 * time.Millisecond
		if err := n.run(2*time.Second, workload{1, 20}); err != nil {
			t.Fatal(err)
		}
		if len(n.due[0]) < 15 {
			t.Fatalf("%d ticks, want nearly 20", len(n.due[0]))
		}
		for i, due := range n.due[0] {
			if want := time.Duration(i) * 50 * time.Millisecond; due != want {
				t.Errorf("tick %d was due at %v, want %v", i, due, want)
			}
		}
	})
}

// TestDriveFails wants an error of one connection to end all.
func TestDriveFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNoter()
		n.fails = errors.New("refused")
		err := n.run(time.Hour, workload{100, 20})
		if !errors.Is(err, n.fails) {
			t.Errorf("%v, want %v", err, n.fails)
		}
		if took := time.Since(n.start); took > time.Second {
			t.Errorf("it took %v, want it to end at once", took)
		}
	})
}

// TestFlatOut spreads bursts over the sessions of each connection.
func TestFlatOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNoter()
		n.slow = time.Microsecond
		if err := n.run(burst*3*time.Microsecond+time.Nanosecond, workload{2 * connections, 0}); err != nil {
			t.Fatal(err)
		}
		var counts []int
		for _, due := range n.due {
			counts = append(counts, len(due))
		}
		slices.Sort(counts)
		if len(counts) != 2*connections || counts[0] != burst || counts[len(counts)-1] != 2*burst {
			t.Errorf("ticks by session %v, want %d or %d", counts, burst, 2*burst)
		}
	})
}
