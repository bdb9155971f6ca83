//go:build unix

package daemon

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"reprise/format"
	"reprise/transport"
)

// Thousands of short sessions, a third of whose clients vanish without a
// word, under a small limit of descriptors: afterwards the daemon holds no more
// than before.
func TestNothingPilesUp(t *testing.T) {
	if !long() {
		t.Skip("takes a minute: set REPRISE_LONG=1")
	}
	const clients, each = 30, 300
	data := filepath.Join(t.TempDir(), "data")
	cmd := command(t, "--data", data, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--resume-timeout", "1s", "--log-level", "error")
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	limited := exec.Command(shell, append([]string{"-c", `ulimit -n 256 && exec "$0" "$@"`}, cmd.Args...)...)
	limited.Env = cmd.Env
	p := launched(t, limited)
	p.awaitReady()
	before := figures(t, p.http)
	var work sync.WaitGroup
	for i := range clients {
		work.Go(func() { shortSessions(t, p, i, each, i%3 == 0) })
	}
	work.Wait()
	eventually(t, "the end of every session", func() bool {
		m := figures(t, p.http)
		return m["reprise_sessions/live"]+m["reprise_sessions/detached"]+m["reprise_sessions/ending"]+m["reprise_connections"] == 0
	})
	var after map[string]float64
	eventually(t, "descriptors and goroutines as before", func() bool {
		after = figures(t, p.http)
		return after["process_open_fds"] <= before["process_open_fds"]+5 && after["go_goroutines"] <= before["go_goroutines"]+5
	})
	ended := after["reprise_sessions_ended_total/sealed"] + after["reprise_sessions_ended_total/unfinished"]
	if ended != clients*each || after["reprise_sessions_ended_total/unfinished"] != clients/3*each {
		t.Errorf("%v sessions have ended, %v of them unfinished; want %d and %d", ended, after["reprise_sessions_ended_total/unfinished"], clients*each, clients/3*each)
	}
	t.Logf("descriptors %v, then %v; goroutines %v, then %v", before["process_open_fds"], after["process_open_fds"], before["go_goroutines"], after["go_goroutines"])
}

// shortSessions records sessions of one tick, and then vanishes or says
// goodbye.
func shortSessions(t testing.TB, p *process, client, n int, vanish bool) {
	r := newRelay(t, p.addr)
	c := dial(t, r.addr(), p.pin, func(cfg *transport.ClientConfig) {
		cfg.OnError, cfg.DeadAfter = nil, time.Minute
	})
	var list []*transport.Recording
	for i := range n {
		rec, err := c.Open(transport.Spec{Meta: format.Metadata{Session: fmt.Sprintf("short-%d-%d", client, i)}})
		if err == nil {
			err = errors.Join(rec.Step(1, format.Int(int64(i))), rec.EndTick())
		}
		if err != nil {
			t.Error(err)
			return
		}
		list = append(list, rec)
	}
	for _, rec := range list {
		if err := rec.Wait(within(t, patience), 0); err != nil {
			t.Error(err)
			return
		}
		if vanish {
			continue
		}
		if err := rec.Seal(within(t, patience)); err != nil {
			t.Error(err)
		}
	}
	if vanish {
		r.dark.Store(true)
		return
	}
	if err := c.Close(within(t, patience)); err != nil {
		t.Error(err)
	}
}
