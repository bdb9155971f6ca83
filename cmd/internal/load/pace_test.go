package load

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Every session ticks at the rate, none at the same moment as another.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, rate = 4, 50
		start := time.Now()
		var at [n][]time.Duration
		late, err := pace(t.Context(), rate, 2*time.Second, n, func(i int) error {
			at[i] = append(at[i], time.Since(start))
			return nil
		})
		if err != nil || late != 0 {
			t.Errorf("%d late ticks (%v), want none", late, err)
		}
		for i, ticks := range at {
			if len(ticks) != 2*rate {
				t.Fatalf("session %d: %d ticks, want %d", i, len(ticks), 2*rate)
			}
			for k, got := range ticks {
				due := time.Duration(k*n+i) * time.Second / rate / n
				if got < due || got > due+paceSlot {
					t.Errorf("session %d, tick %d at %v, want %v", i, k, got, due)
				}
			}
		}
	})
}

// A tick that holds the generator up for ten ticks' time makes the nine after
// it late, and itself.
func TestPaceLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 20 * time.Millisecond
		calls := 0
		late, err := pace(t.Context(), 50, time.Second, 1, func(int) error {
			if calls++; calls == 10 {
				time.Sleep(10*period + period/2)
			}
			return nil
		})
		if err != nil || late != 10 || calls != 50 {
			t.Errorf("%d of %d ticks were late (%v), want 10 of 50", late, calls, err)
		}
	})
}

func TestPaceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := pace(ctx, 50, time.Hour, 1, func(int) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", err)
		}
		broken := errors.New("broken")
		if _, err := pace(t.Context(), 50, time.Hour, 1, func(int) error { return broken }); err != broken {
			t.Errorf("error %v, want the tick's", err)
		}
	})
}
