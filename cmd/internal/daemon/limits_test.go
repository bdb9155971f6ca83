package daemon

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"reprise/cmd/internal/proctest"
	"reprise/format"
	"reprise/recorder"
	"reprise/transport"
)

// A disk that hangs is as good as one that refuses: clients are told within a
// second, readiness says why, nothing that is asked over HTTP waits for it, and
// all goes on by itself once it answers.
func TestHangingDisk(t *testing.T) {
	t.Parallel()
	d, disk := onBrittleDisk(t)
	var told complaints
	c := dial(t, d.server.Addr().String(), d.pair.Fingerprint().String(), func(cfg *transport.ClientConfig) { cfg.OnError, cfg.DeadAfter = told.take, patience })
	w := playAll(t, c, seed(t), 3)
	progress(t, w.players)
	addr := d.httpAddr.String()
	disk.hold("data/")
	eventually(t, "every client is told", func() bool { return told.with(transport.CodeStorage) >= len(w.players) })
	eventually(t, "readiness says why", func() bool {
		code, body := get(t, addr, "/readyz")
		return code == 503 && strings.Contains(body, "degraded: disk: ") && strings.Contains(body, "does not answer: ")
	})
	for path, want := range map[string]string{"/healthz": "ok", "/metrics": `reprise_trouble{part="disk"} 1`, "/sessions": w.players[0].id, "/sessions/" + w.players[0].id: "live", "/sessions/never": "never used"} {
		if _, body := get(t, addr, path); !strings.Contains(body, want) {
			t.Errorf("%s says %.200q, want %q in it", path, body, want)
		}
	}
	disk.heal()
	progress(t, w.players)
	eventually(t, "readiness", func() bool { code, _ := get(t, addr, "/readyz"); return code == 200 })
	w.sealAll(t, d.cfg.Data)
	if c.Stats().Connects != 1 {
		t.Errorf("%d connections, want the first one to stay", c.Stats().Connects)
	}
}

// reloadWith reloads a daemon whose configuration has changed.
func reloadWith(t testing.TB, d *Daemon, change func(*Config)) {
	t.Helper()
	d.source = Source{Load: func() (Config, error) {
		next := d.cfg
		change(&next)
		return next, next.Validate()
	}}
	d.reload()
}

// A reload changes the limits for what comes; what runs stays.
func TestReloadLimits(t *testing.T) {
	t.Parallel()
	d, _ := onBrittleDisk(t, func(c *Config) { c.MaxSessions, c.MaxConnections = 2, 1 })
	addr, pin := d.server.Addr().String(), d.pair.Fingerprint().String()
	c := dial(t, addr, pin, func(cfg *transport.ClientConfig) { cfg.DeadAfter = patience })
	w := playAll(t, c, seed(t), 2)
	progress(t, w.players)

	quiet := func(cfg *transport.ClientConfig) { cfg.OnError = func(string, error) {} }
	open := func(id string) *transport.Recording {
		t.Helper()
		rec, err := dial(t, addr, pin, quiet).Open(transport.Spec{Meta: format.Metadata{Session: id}})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(rec.Step(1, format.Int(1)), rec.EndTick()); err != nil {
			t.Fatal(err)
		}
		return rec
	}
	third := open("third")
	eventually(t, "a second connection is turned away", func() bool { return figures(t, d.httpAddr.String())["reprise_connections_cut_total/refused"] > 0 })
	reloadWith(t, d, func(c *Config) { c.MaxConnections = 10 })
	eventually(t, "a third session is refused", func() bool { return d.recorder.Stats().Refused[recorder.CodeBusy] > 0 })
	reloadWith(t, d, func(c *Config) { c.MaxSessions = 3 })
	eventually(t, "the third session", func() bool { return third.Durable() == 1 })

	// Where anything is wrong all stays as it was, and that is said.
	reloadWith(t, d, func(c *Config) { c.MaxSessions, c.SessionMaxBytes, c.Segments = 100, 1, 1 })
	if code, body := get(t, d.httpAddr.String(), "/readyz"); code != 200 || !strings.Contains(body, "segments is 1") {
		t.Errorf("/readyz: %d %q", code, body)
	}
	progress(t, w.players)

	reloadWith(t, d, func(c *Config) { c.MaxSessions, c.MaxConnections, c.SessionWindow, c.MinFree = 1, 1, 32<<10, 1<<50 })
	eventually(t, "no room for new sessions", func() bool { return len(d.notReady()) > 0 })
	progress(t, w.players)
	reloadWith(t, d, func(c *Config) { c.MinFree = 0 })
	eventually(t, "readiness", func() bool { return len(d.notReady()) == 0 })
	w.sealAll(t, d.cfg.Data)
	if c.Stats().Connects != 1 {
		t.Errorf("%d connections, want the first one to stay", c.Stats().Connects)
	}
}

// A session that brings too much is refused by itself, and counted; its
// connection and the others on it go on.
func TestSessionBounds(t *testing.T) {
	t.Parallel()
	d, _ := onBrittleDisk(t, func(c *Config) { c.SessionBytesPerSec = 1 << 20 })
	var told complaints
	c := dial(t, d.server.Addr().String(), d.pair.Fingerprint().String(), func(cfg *transport.ClientConfig) {
		cfg.OnError, cfg.SessionMemory, cfg.DeadAfter = told.take, 64<<20, patience
	})
	w := playAll(t, c, seed(t), 1)
	fast, err := c.Open(transport.Spec{Meta: format.Metadata{Session: "fast"}})
	if err != nil {
		t.Fatal(err)
	}
	flood := func(n, size int) {
		t.Helper()
		for range n {
			err := errors.Join(fast.Step(1, format.Bytes(make([]byte, size))), fast.EndTick())
			var r *transport.Refusal
			if errors.As(err, &r) && r.Code == transport.CodeLimit {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(15 * time.Millisecond) // chunks of their own
		}
	}
	flood(40, 256<<10)
	metric := func(reason string) float64 { return figures(t, d.httpAddr.String())["reprise_refused_total/"+reason] }
	eventually(t, "the fast session is refused", func() bool { return told.with(transport.CodeUnavailable) > 0 && metric("rate") > 0 })
	progress(t, w.players)
	reloadWith(t, d, func(c *Config) { c.SessionBytesPerSec = 0 })
	eventually(t, "all of the fast session", func() bool { return fast.Durable() == 40 })

	reloadWith(t, d, func(c *Config) { c.SessionMaxBytes = 16 << 20 })
	flood(100, 256<<10)
	eventually(t, "the large session is refused", func() bool { return told.with(transport.CodeLimit) > 0 && metric("quota") > 0 })
	reloadWith(t, d, func(c *Config) { c.SessionMaxBytes = 0 })
	progress(t, w.players)
	w.sealAll(t, d.cfg.Data)
	if n := c.Stats().Connects; n != 1 {
		t.Errorf("%d connections, want the first one to stay", n)
	}
}

// A daemon that was killed on a full disk starts on it, degraded, and goes on
// when there is room.
func TestStartDegraded(t *testing.T) {
	t.Parallel()
	data := brittleFolder(t)
	d, disk := onBrittleDisk(t, func(c *Config) { c.Data, c.FileInterval.Duration = data, time.Hour })
	c := dial(t, d.server.Addr().String(), d.pair.Fingerprint().String(), func(cfg *transport.ClientConfig) { cfg.OnError = nil })
	rec, err := c.Open(transport.Spec{Meta: format.Metadata{Session: "m"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if err := errors.Join(rec.Step(1, format.Int(7)), rec.EndTick()); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "50 durable ticks", func() bool { return rec.Durable() == 50 })
	disk.fail("data/live")
	if err := c.Close(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	if err := d.Stop(within(t, 100*time.Millisecond)); err == nil {
		t.Error("a daemon that cannot write its files stops without a word")
	}
	cfg := d.cfg
	cfg.Listen = "127.0.0.1:0"
	again := New(cfg, &proctest.Text{})
	again.disk = disk
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	if code, body := get(t, again.httpAddr.String(), "/readyz"); code != 503 || !strings.Contains(body, "degraded: session files: ") {
		t.Errorf("/readyz: %d %q, want 503 with the reason", code, body)
	}
	if _, body := get(t, again.httpAddr.String(), "/sessions"); !strings.Contains(body, `"session":"m"`) {
		t.Errorf("/sessions: %s", body)
	}
	disk.heal()
	eventually(t, "readiness", func() bool { code, _ := get(t, again.httpAddr.String(), "/readyz"); return code == 200 })
	eventually(t, "the ticks in the file", func() bool {
		s, _ := again.recorder.Lookup("m")
		return s.Ticks == 50 && s.PendingBytes == 0
	})
	if err := again.Stop(within(t, patience)); err != nil {
		t.Error(fmt.Errorf("stop: %w", err))
	}
}
