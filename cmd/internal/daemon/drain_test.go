package daemon

import (
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/format"
	"reprise/recorder"
	"reprise/transport"
)

// SIGTERM under load drains and ends with 0; the same clients go on with the
// next daemon by themselves, soon.
func TestDrainUnderLoad(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p := start(t, data, "127.0.0.1:0")
	c := dial(t, p.addr, p.pin)
	w := playAll(t, c, seed(t), 6)
	for range 2 {
		progress(t, w.players)
		p.Terminate()
		if code := p.ExitCode(10 * time.Second); code != 0 {
			t.Fatalf("exit code %d, want 0", code)
		}
		if strings.Contains(p.Log.String(), "cut off") {
			t.Error("clients were cut off though they answer")
		}
		// What was acknowledged is in the session files themselves.
		for _, m := range w.players {
			m.prefix(t, opened(t, fileOf(t, data, m.id)), m.rec.Durable(), false)
		}
		p = start(t, data, p.addr)
		back := time.Now()
		progress(t, w.players)
		if took := time.Since(back); took > 5*time.Second {
			t.Errorf("the clients came back after %v, want a few seconds", took)
		}
	}
	w.sealAll(t, data)
}

// SIGTERM ends within drain_timeout though a client is dead, and what it had
// sent is in the files.
func TestDrainWithDeadClient(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := start(t, data, "127.0.0.1:0", "--drain-timeout", "2s")
	r := newRelay(t, p.addr)
	c := dial(t, r.addr(), p.pin, func(cfg *transport.ClientConfig) { cfg.DeadAfter = time.Minute })
	m := match{id: "dead", seed: 7}.play(t, c)
	for range 20 {
		m.tick()
	}
	eventually(t, "20 durable ticks", func() bool { return m.rec.Durable() >= 20 })
	r.dark.Store(true)
	begin := time.Now()
	p.Terminate()
	if code := p.ExitCode(patience); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if took := time.Since(begin); took < time.Second || took > 2500*time.Millisecond {
		t.Errorf("the end took %v, want the clients' part of 2s at least, and 2s at most", took)
	}
	if !strings.Contains(p.Log.String(), "cut off") {
		t.Error("the log does not say that a client was cut off")
	}
	m.prefix(t, opened(t, fileOf(t, data, "dead")), 20, false)
}

// A second signal ends a daemon that drains at once.
func TestSecondSignal(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	r := newRelay(t, p.addr)
	c := dial(t, r.addr(), p.pin, func(cfg *transport.ClientConfig) { cfg.DeadAfter = time.Minute })
	m := match{id: "dead", seed: 7}.play(t, c)
	m.tick()
	eventually(t, "a durable tick", func() bool { return m.rec.Durable() > 0 })
	r.dark.Store(true)
	p.Terminate()
	eventually(t, "readyz says that it drains", func() bool {
		code, body := get(t, p.http, "/readyz")
		return code == http.StatusServiceUnavailable && strings.HasPrefix(body, "draining")
	})
	p.Terminate()
	p.ExitCode(2 * time.Second)
	if s := p.Cmd.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGTERM {
		t.Errorf("the process ended with %v, want the signal", p.Cmd.ProcessState)
	}
}

func get(t testing.TB, addr, path string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// One daemon at a time uses a data folder.
func TestSecondDaemon(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := start(t, data, "127.0.0.1:0")
	m := match{id: "one", seed: 3}.play(t, dial(t, p.addr, p.pin))
	second := launch(t, nil, "--data", data, "--listen", "127.0.0.1:0", "--http", "")
	if code := second.ExitCode(patience); code != exitNotTried {
		t.Errorf("the second daemon ends with %d, want %d", code, exitNotTried)
	}
	for _, want := range [...]string{recorder.ErrRunning.Error(), data} {
		if got := second.Log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) {
			t.Errorf("the second daemon says %q, want one line with %q", got, want)
		}
	}
	m.tick()
	m.sealIn(data)
}

// A producer that does not come back: the session ends as unfinished, with
// the reason, and a file that is good. The same producer may still go on.
func TestProducerGone(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p := start(t, data, "127.0.0.1:0", "--resume-timeout", "300ms")
	r := newRelay(t, p.addr)
	c := dial(t, r.addr(), p.pin)
	m := match{id: "gone", seed: 9}.play(t, c)
	empty := match{id: "gone-before-tick-0", seed: 10}.play(t, c)
	for range 50 {
		m.tick()
	}
	eventually(t, "50 durable ticks", func() bool { return m.rec.Durable() >= 50 })
	eventually(t, "both sessions", func() bool { _, body := get(t, p.http, "/sessions"); return strings.Count(body, `"live"`) == 2 })
	r.dark.Store(true)
	eventually(t, "no session is live", func() bool { _, body := get(t, p.http, "/sessions"); return body == "[]\n" })
	for id, why := range map[string]string{"gone": "producer gone for 300ms after tick ", "gone-before-tick-0": "producer gone for 300ms before the first tick"} {
		path := fileOf(t, data, id)
		end := opened(t, path).Summary().End
		if filepath.Base(filepath.Dir(path)) != "unfinished" || end == nil || end.State != format.EndUnfinished || !strings.HasPrefix(end.Reason, why) {
			t.Errorf("%s: end %+v, want it unfinished because %q", path, end, why)
		}
	}
	m.prefix(t, opened(t, fileOf(t, data, "gone")), 50, false)

	for range 50 {
		m.tick()
	}
	r.dark.Store(false)
	m.sealIn(data)
	empty.sealIn(data)
}

// With reopen_window 0 an unfinished session stays so.
func TestProducerTooLate(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := start(t, data, "127.0.0.1:0", "--resume-timeout", "100ms", "--reopen-window", "0s")
	c := dial(t, p.addr, p.pin)
	m := match{id: "late", seed: 11}.play(t, c)
	m.tick()
	if err := m.rec.Close(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end", func() bool { _, body := get(t, p.http, "/sessions"); return body == "[]\n" })
	_, err := c.Continue(within(t, patience), m.spec(), m.rec.NextTick())
	var refusal *transport.Refusal
	if !errors.As(err, &refusal) || refusal.Code != transport.CodeEnded {
		t.Errorf("going on gives %v, want %v", err, transport.CodeEnded)
	}
}

// A log whose reader has gone does not end the daemon.
func TestLogReaderGone(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	p.CloseLog()
	// A reload and an end write to the log.
	p.Cmd.Process.Signal(syscall.SIGHUP)
	m := match{id: "silent", seed: 12}.play(t, dial(t, p.addr, p.pin))
	m.tick()
	m.seal()
	p.Terminate()
	if code := p.ExitCode(patience); code != 0 {
		t.Errorf("exit code %d (%v), want 0", code, p.Cmd.ProcessState)
	}
}
