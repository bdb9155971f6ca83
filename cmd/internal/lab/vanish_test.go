package lab

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/cmd/internal/load"
	"reprise/format"
	"reprise/transport"
	"reprise/transport/roughnet"
)

// Of many short sessions three of ten vanish without a goodbye, some of them
// before their first tick, while handshakes are left half open. Afterwards the
// daemon holds no more than before, and those that vanished have ended as
// unfinished.
func TestClientsVanish(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	cmd := command(t, asDaemon, "--data", data, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--resume-timeout", "1s",
		"--checkpoint-interval", "1s", "--log-level", "error")
	// The collector runs often, so that the heap shows what is held; sessions
	// that have ended are held until the next checkpoint.
	cmd.Env = append(cmd.Env, "GOGC=20")
	d, ok := await(t, cmd)
	if !ok {
		t.Fatalf("the daemon did not start:\n%s", d.Log.String())
	}
	w := &wave{t: t, d: d}
	w.run("warm", 500, 0)
	before := w.ended()
	w.run("cold", pick(2000, 10_000), 3)
	after := w.ended()
	t.Logf("before: %v; after: %v", before, after)
	if after.goroutines > before.goroutines+5 || after.descriptors > before.descriptors+5 {
		t.Errorf("%v are left, before there were %v", after, before)
	}
	// The ids stay taken for good, which costs a few bytes each; buffers are
	// as large as the last load needed them.
	if most := before.heap*1.1 + 128*float64(w.sessions) + 2<<20; after.heap > most {
		t.Errorf("the heap has %.0f bytes, want at most %.0f", after.heap, most)
	}
	d.terminate()
	verdict(t, data, w.promises)
	saidWhy(t, data, w.vanished)
}

// saidWhy looks at the replays of sessions that have ended as unfinished.
func saidWhy(t *testing.T, data string, want int) {
	t.Helper()
	paths := replays(t, filepath.Join(data, "unfinished"))
	if len(paths) != want {
		t.Errorf("%d unfinished replays, want %d", len(paths), want)
	}
	for _, path := range paths {
		f, err := format.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if s := f.Summary(); s.End == nil || s.End.State != format.EndUnfinished || !strings.HasPrefix(s.End.Reason, "producer gone for 1s") {
			t.Errorf("%s ended with %+v", path, s.End)
		}
		f.Close()
	}
}

// wave drives short sessions in one go.
type wave struct {
	t        *testing.T
	d        *server
	sessions int
	vanished int
	promises []load.Promise
}

// held is what a daemon holds.
type held struct{ goroutines, descriptors, heap float64 }

func (h held) String() string {
	return fmt.Sprintf("%.0f goroutines, %.0f descriptors, %.1f MiB of heap", h.goroutines, h.descriptors, h.heap/(1<<20))
}

// run has n sessions recorded by ten game servers, some of which vanish.
func (w *wave) run(prefix string, n, vanish int) {
	w.t.Helper()
	rnd := random(w.t)
	halfOpen := roughnet.NewProxy(w.t, w.d.addr, rnd.Uint64(), roughnet.Weather{DarkBack: true})
	var mu sync.Mutex
	var playing sync.WaitGroup
	for server := range 10 {
		line := roughnet.NewProxy(w.t, w.d.addr, rnd.Uint64(), roughnet.Weather{})
		client := dial(w.t, line.Addr().String(), w.d.pin, hasty, func(cfg *transport.ClientConfig) { cfg.DeadAfter = patience })
		knocking := dial(w.t, halfOpen.Addr().String(), w.d.pin, hasty)
		playing.Go(func() {
			defer abandon(knocking)
			promises, err := shortSessions(w.t, client, fmt.Sprintf("%s-%d", prefix, server), w.sessions+server*n/10, n/10, server < vanish)
			if err != nil {
				w.t.Errorf("a session was harmed: %v", err)
			}
			if server < vanish {
				line.Set(func(x *roughnet.Weather) { x.Dark = true })
			}
			abandon(client)
			mu.Lock()
			defer mu.Unlock()
			w.promises = append(w.promises, promises...)
		})
	}
	playing.Wait()
	w.sessions += n / 10 * 10
	w.vanished += n / 10 * vanish
}

// shortSessions records n sessions, 100 at a time, and seals them unless the
// client is to vanish. Then every other one is not given a tick.
func shortSessions(t *testing.T, c *transport.Client, prefix string, number, n int, vanish bool) ([]load.Promise, error) {
	var promises []load.Promise
	for first := 0; first < n; first += 100 {
		var batch []*load.Session
		for i := first; i < min(first+100, n); i++ {
			s, err := load.Open(c, load.Script{Session: load.SessionID(prefix, i), Number: number + i, Rate: 60, StepBytes: 60})
			if err != nil {
				return promises, err
			}
			batch = append(batch, s)
		}
		err := shortBatch(t, batch, vanish)
		for _, s := range batch {
			promises = append(promises, s.Promise())
		}
		if err != nil {
			return promises, err
		}
	}
	return promises, nil
}

func shortBatch(t *testing.T, batch []*load.Session, vanish bool) error {
	ctx := within(t, patience)
	for i, s := range batch {
		for range 10 {
			if vanish && i%2 == 0 {
				break
			}
			if err := s.Tick(); err != nil {
				return err
			}
		}
	}
	errs := make([]error, len(batch))
	var wg sync.WaitGroup
	for i, s := range batch {
		switch {
		case !vanish:
			wg.Go(func() { errs[i] = s.Recording.Seal(ctx) })
		case i%2 == 1:
			wg.Go(func() { errs[i] = s.Recording.Wait(ctx, 0) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ended waits until every session has ended, and then for what the daemon
// holds to settle.
func (w *wave) ended() held {
	w.t.Helper()
	eventually(w.t, "the end of all sessions", func() bool {
		m, err := load.ReadMetrics(w.d.http)
		if err != nil {
			w.t.Fatal(err)
		}
		return m[`reprise_sessions_ended_total{state="unfinished"}`] == float64(w.vanished) &&
			m[`reprise_sessions_ended_total{state="sealed"}`] == float64(w.sessions-w.vanished) && m["reprise_connections"] == 0 && m["reprise_handshakes"] == 0
	})
	least := held{1e9, 1e9, 1e18}
	for range 200 {
		m, err := load.ReadMetrics(w.d.http)
		if err != nil {
			w.t.Fatal(err)
		}
		least = held{min(least.goroutines, m["go_goroutines"]), min(least.descriptors, m["process_open_fds"]), min(least.heap, m["go_memstats_heap_alloc_bytes"])}
		time.Sleep(10 * time.Millisecond)
	}
	return least
}
