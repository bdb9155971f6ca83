package lab

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"reprise/cmd/internal/load"
	"reprise/transport"
)

// Sessions that run flat out do not make the daemon grow: what it holds is
// bounded by its configuration, not by what has gone through it.
func TestMemoryOfFlatOutSessions(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	const pending, connections, window = 32, 8, 8 // MiB, but for the connections
	d := start(t, data, "127.0.0.1:0", "--max-pending", fmt.Sprintf("%dMiB", pending), "--log-level", "error")
	run, cancel := context.WithCancel(within(t, patience+pick(0, 5*time.Minute)))
	defer cancel()
	cfg := load.Config{Prefix: "flat", Sessions: 200, Connections: connections, Duration: pick(5*time.Second, 3*time.Minute), Players: 4, StepBytes: load.MaxStepBytes, Seal: true,
		Dial: func(ctx context.Context, _ int) (*transport.Client, error) {
			return transport.Dial(ctx, []string{d.addr}, clientConfig(t, d.pin, func(cfg *transport.ClientConfig) { cfg.SessionMemory, cfg.Memory = 1<<20, 64<<20 }))
		}}
	watch := watchMemory(t, d)
	result, err := load.Run(run, cfg)
	young, old := watch()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.0f ticks a second; the daemon had up to %.0f MiB in the first half, up to %.0f MiB in the second", result.PerSecond(), young, old)
	// What waits for the disk, what waits in the windows of the connections,
	// as much again until the collector runs, and the program.
	if bound := 2*(pending+connections*window) + 64.0; !raceDetector && max(young, old) > bound {
		t.Errorf("more than %.0f MiB", bound)
	}
	if result.LeftOut > 0 {
		t.Errorf("%d ticks were left out, though each waited for room", result.LeftOut)
	}
	if old > young+64 {
		t.Error("the memory grows with what was recorded")
	}
	d.terminate()
	verdict(t, data, result.Promises)
}

// watchMemory follows the resident memory of a daemon, in MiB. What it
// returns gives the most of the first and of the second half of the time.
func watchMemory(t *testing.T, d *server) func() (young, old float64) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan []float64)
	go func() {
		var seen []float64
		for {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-stop:
				done <- seen
				return
			}
			if u, err := load.ReadUsage(d.http); err == nil {
				seen = append(seen, u.MemoryBytes/(1<<20))
			}
		}
	}()
	return func() (young, old float64) {
		close(stop)
		seen := <-done
		for i, v := range seen {
			if i < len(seen)/2 {
				young = max(young, v)
			} else {
				old = max(old, v)
			}
		}
		return young, old
	}
}
