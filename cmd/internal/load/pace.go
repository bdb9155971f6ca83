package load

import (
	"context"
	"time"
)

// paceSlot is how often pace looks whether ticks are due.
const paceSlot = time.Millisecond

// pace calls tick for each of n sessions at a rate a second, for as long as
// duration, and spreads the sessions evenly, as unsynchronised game servers
// are. late counts the ticks that were over more than a tick's time after
// they were due.
func pace(ctx context.Context, rate float64, duration time.Duration, n int, tick func(i int) error) (late uint64, err error) {
	period := float64(time.Second) / rate
	slot := period / float64(n)
	total := int(duration.Seconds()*rate) * n
	start := time.Now()
	for next := 0; next < total; {
		for elapsed := time.Since(start); next < total && float64(next)*slot <= float64(elapsed); next++ {
			if err := tick(next % n); err != nil {
				return late, err
			}
			if elapsed = time.Since(start); float64(elapsed)-float64(next)*slot > period {
				late++
			}
		}
		select {
		case <-ctx.Done():
			return late, ctx.Err()
		case <-time.After(paceSlot):
		}
	}
	return late, nil
}
