package lab

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"reprise/cmd/internal/load"
	"reprise/format"
	"reprise/transport"
	"reprise/transport/roughnet"
)

// rough is a bad line: 300 ms round trip, 5 % loss, packets that overtake
// each other and come twice. QUIC's congestion control gets about 20 KB a
// second through it.
var rough = roughnet.Weather{Delay: 140 * time.Millisecond, Jitter: 20 * time.Millisecond, Lost: 0.05, Twice: 0.02}

// Game servers record over a bad line with black-outs and a port that
// changes. Every tick arrives once, and the replays are those of a calm line.
func TestRoughNetwork(t *testing.T) {
	t.Parallel()
	rnd := random(t)
	data := filepath.Join(t.TempDir(), "data")
	d := start(t, data, "127.0.0.1:0")
	c := newCrowd(t)
	var lines []*roughnet.Proxy
	for i := range 4 {
		line := roughnet.NewProxy(t, d.addr, rnd.Uint64(), rough)
		lines = append(lines, line)
		client := dial(t, line.Addr().String(), d.pin, func(cfg *transport.ClientConfig) { cfg.DeadAfter = pick(2*time.Second, 3*time.Second) })
		c.add(client, fmt.Sprintf("line-%d", i), 2, load.Script{Rate: 60, Players: 3, StepBytes: 24, StartedAt: 1})
	}
	// After the longer ones the clients have to connect again.
	blackOuts := pick([]time.Duration{1500 * time.Millisecond, 2500 * time.Millisecond}, []time.Duration{2 * time.Second, 30 * time.Second, 30 * time.Second})
	calm := pick(time.Second, 10*time.Second)
	for _, blackOut := range blackOuts {
		c.progress()
		time.Sleep(calm)
		each(lines, func(p *roughnet.Proxy) { p.Set(func(w *roughnet.Weather) { w.Dark = true }) })
		time.Sleep(blackOut)
		each(lines, func(p *roughnet.Proxy) { p.Set(func(w *roughnet.Weather) { w.Dark = false }) })
		c.progress()
		for range 3 {
			each(lines, func(p *roughnet.Proxy) { p.Move(t) })
			time.Sleep(calm / 4)
		}
	}
	c.seal()
	d.terminate()
	verdict(t, data, c.promises())
	asOnCalmLine(t, c)
}

func each(lines []*roughnet.Proxy, do func(*roughnet.Proxy)) {
	for _, p := range lines {
		do(p)
	}
}

// asOnCalmLine records the sessions of a crowd again with another daemon, on
// a good line, and compares the digests of the contents.
func asOnCalmLine(t *testing.T, c *crowd) {
	t.Helper()
	d := start(t, filepath.Join(t.TempDir(), "calm"), "127.0.0.1:0")
	client := dial(t, d.addr, d.pin)
	var wg sync.WaitGroup
	for _, s := range c.sessions {
		p := s.Promise()
		got, _, _ := s.Recording.Sealed()
		wg.Go(func() {
			want, err := recordAgain(t, client, &p)
			if err != nil || got != want {
				t.Errorf("session %s has digest %v, on a calm line %v (%v)", p.Session, got, want, err)
			}
		})
	}
	wg.Wait()
}

// recordAgain records what was promised, and gives the digest.
func recordAgain(t *testing.T, c *transport.Client, p *load.Promise) (format.Digest, error) {
	ctx := within(t, patience)
	s, err := load.Open(c, p.Script)
	if err != nil {
		return format.Digest{}, err
	}
	for range p.Next {
		if err := s.Recording.Room(ctx); err != nil {
			return format.Digest{}, err
		}
		if err := s.Tick(); err != nil {
			return format.Digest{}, err
		}
	}
	err = s.Recording.Seal(ctx)
	digest, _, _ := s.Recording.Sealed()
	return digest, err
}

// The last ticks of a session are under way on a bad line when the daemon is
// told to end. It ends with 0, and what it has not confirmed by then the
// client sends to the next one.
func TestEndWhileTheLastTicksTravel(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	d := start(t, data, freePort(t))
	line := roughnet.NewProxy(t, d.addr, random(t).Uint64(), rough)
	client := dial(t, line.Addr().String(), d.pin, hasty, func(cfg *transport.ClientConfig) { cfg.DeadAfter = 3 * time.Second })
	c := newCrowd(t)
	c.add(client, "last", 1, load.Script{Rate: 60, Players: 4, StepBytes: load.MaxStepBytes})
	c.progress()
	c.halt()
	s := c.sessions[0]
	for unsent := 0; unsent < 100<<10; unsent += 4 * load.MaxStepBytes {
		if err := s.Tick(); err != nil {
			t.Fatal(err)
		}
	}
	sealed := make(chan error, 1)
	go func() { sealed <- s.Recording.Seal(within(t, patience)) }()
	d.terminate()
	d = start(t, data, d.addr)
	if err := <-sealed; err != nil {
		t.Fatal(err)
	}
	d.terminate()
	verdict(t, data, c.promises())
}
