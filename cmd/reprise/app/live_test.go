package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/format"
	"reprise/transport"
)

// openLive opens a session as a game server does.
func openLive(t *testing.T, d *testDaemon) (*transport.Client, *transport.Recording) {
	t.Helper()
	tls, err := transport.Trust{Pin: d.pin}.Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := transport.Dial(t.Context(), []string{d.addr}, transport.ClientConfig{TLS: tls, ChunkLinger: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	match, err := client.Open(transport.Spec{Meta: format.Metadata{Session: "live", Game: "live", TickRate: format.Rate{Num: 60, Den: 1}, HashBytes: 8}})
	if err != nil {
		t.Fatal(err)
	}
	return client, match
}

// A file that is being written is read at any moment as a whole prefix, and
// says that it is live.
func TestLiveFileIsAlwaysReadable(t *testing.T) {
	d := startDaemon(t)
	client, match := openLive(t, d)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() { stopped <- playLive(match, stop) }()
	path := awaitOne(t, filepath.Join(d.data, "live", "room-live-*.rply"))
	last := uint64(0)
	for range 100 {
		var i struct {
			State    string
			Complete bool
			Ticks    uint64
		}
		r := reprise("info", "--json", path)
		if err := json.Unmarshal([]byte(r.stdout), &i); err != nil || r.code != exitOK {
			t.Fatalf("%d %s %s %v", r.code, r.stdout, r.stderr, err)
		}
		if i.State != "live" || i.Complete || i.Ticks < last {
			t.Fatalf("%s after %d ticks", r.stdout, last)
		}
		last = i.Ticks
		for _, args := range [][]string{{"check", path}, {"cat", path}, {"ls", filepath.Dir(path)}} {
			if r := reprise(args...); r.code != exitOK {
				t.Fatalf("%v: %d %s %s", args, r.code, r.stdout, r.stderr)
			}
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if last == 0 {
		t.Error("no tick was ever seen")
	}
	if r := d.record("--session", "LIVE", path); r.code != exitNotTried || !strings.Contains(r.stderr, "session exists") {
		t.Errorf("a live session was recorded over: %d %s", r.code, r.stderr)
	}
	// What the daemon leaves behind is unfinished, no longer live.
	if err := client.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.kill()
	if r := reprise("ls", "--state", "unfinished", d.data); strings.Count(r.stdout, "unfinished") != 1 {
		t.Errorf("%s %s", r.stdout, r.stderr)
	}
}

// The half chunk at the end of a file that a daemon is writing is no damage;
// where nobody writes it, it is torn.
func TestTornTailOfALiveFile(t *testing.T) {
	d := startDaemon(t)
	whole, err := sample{live: true}.bytes()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(d.data, "live", "room-x-20260101T000000Z.rply")
	if err := os.WriteFile(path, whole[:len(whole)-5], 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, says string }{
		{"info", "state        live; ends inside a record, not whole from offset "}, {"check", "live, 0 ticks, 0 steps; its last record is being written"},
		{"ls", "live+torn"}, {"cat", ""}, {"verify --allow-unverified", "ok "}, {"play", "0 ticks run"},
	} {
		args := append(strings.Fields(c.args), path)
		if r := reprise(args...); r.code != exitOK || !strings.Contains(r.stdout, c.says) {
			t.Errorf("%v: %d %s %s", args, r.code, r.stdout, r.stderr)
		}
	}
	if r := reprise("convert", path, filepath.Join(t.TempDir(), "out.jsonl")); r.code != exitDamaged {
		t.Errorf("a half record was converted: %d", r.code)
	}
	d.kill()
	for _, command := range []string{"info", "check", "cat", "verify"} {
		if r := reprise(command, path); r.code != exitDamaged {
			t.Errorf("%s: %d %s", command, r.code, r.stdout)
		}
	}
}

// playLive records ticks until it is told to stop.
func playLive(match *transport.Recording, stop <-chan struct{}) error {
	clock := time.NewTicker(time.Millisecond)
	defer clock.Stop()
	for tick := format.Tick(0); ; tick++ {
		select {
		case <-stop:
			return nil
		case <-clock.C:
		}
		err := match.Step(1, format.Int(int64(tick)))
		if err == nil {
			err = match.EndTick()
		}
		if err == nil {
			err = match.Hash(tick, []byte{1, 2, 3, 4, 5, 6, 7, byte(tick)})
		}
		if err != nil {
			return err
		}
	}
}

// awaitOne waits for the one file that a pattern matches and that is a replay.
func awaitOne(t *testing.T, pattern string) string {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 1 {
			if st, err := os.Stat(found[0]); err == nil && st.Size() > format.HeaderSize {
				return found[0]
			}
		}
	}
	t.Fatalf("%s matches no file", pattern)
	return ""
}
