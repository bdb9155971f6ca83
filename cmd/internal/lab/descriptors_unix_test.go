//go:build unix

package lab

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/cmd/internal/load"
	"reprise/transport"
)

// A daemon that may have few file descriptors records many times as many
// sessions, and seals them all.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	limit, sessions := pick(256, 1024), pick(2000, 10_000)
	cmd := command(t, asDaemon, "--data", data, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--log-level", "error")
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", descriptors, limit))
	d, ok := await(t, cmd)
	if !ok {
		t.Fatalf("the daemon did not start:\n%s", d.Log.String())
	}
	if got := d.metric("process_max_fds"); got != float64(limit) {
		t.Fatalf("the daemon may have %v descriptors, want %d", got, limit)
	}
	most := watchDescriptors(d)
	result, err := load.Run(within(t, patience+pick(0, 5*time.Minute)), load.Config{Prefix: "many", Sessions: sessions, Connections: 40, Rate: 1, Duration: pick(2*time.Second, time.Minute),
		StepBytes: 60, Seal: true, Dial: func(ctx context.Context, _ int) (*transport.Client, error) {
			return transport.Dial(ctx, []string{d.addr}, clientConfig(t, d.pin))
		}})
	open := most()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d sessions over %d connections with at most %.0f of %d descriptors", sessions, result.Connections, open, limit)
	if open > float64(limit)/4 {
		t.Errorf("%v descriptors were open, want few, however many the sessions are", open)
	}
	if got := d.metric(`reprise_sessions_ended_total{state="sealed"}`); got != float64(sessions) {
		t.Errorf("%v sessions were sealed, want %d", got, sessions)
	}
	d.terminate()
	if strings.Contains(d.Log.String(), syscall.EMFILE.Error()) {
		t.Errorf("the daemon ran out of descriptors:\n%s", d.LastLog())
	}
	verdict(t, data, result.Promises)
}

// watchDescriptors follows the open descriptors of a daemon. What it returns
// gives the most.
func watchDescriptors(d *server) func() float64 {
	stop, done := make(chan struct{}), make(chan float64)
	go func() {
		most := 0.0
		for {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-stop:
				done <- most
				return
			}
			if m, err := load.ReadMetrics(d.http); err == nil {
				most = max(most, m["process_open_fds"])
			}
		}
	}()
	return func() float64 {
		close(stop)
		return <-done
	}
}
