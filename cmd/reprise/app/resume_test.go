package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/format"
	"reprise/player"
	"reprise/transport"
)

// fullSample has something of everything beside its ticks.
func fullSample() sample {
	s := sample{ticks: 600, gapFirst: 300, gapLast: 320, restart: true, labels: []format.Label{{Key: "cup", Value: "final"}}}
	for i := range format.Tick(60) {
		s.marks = append(s.marks, format.Mark{Tick: 10 * i, Kind: "ten", Text: "before tick"})
	}
	for id := range uint64(3) {
		s.players = append(s.players, format.PlayerEvent{ID: id + 1, Name: "player"})
	}
	return s
}

// awaitTicks waits until a session's live file has so many ticks.
func (d *testDaemon) awaitTicks(t *testing.T, session string, ticks uint64) {
	t.Helper()
	path := awaitOne(t, filepath.Join(d.data, "live", "room-"+session+"-*.rply"))
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if f, err := format.Open(path); err == nil {
			have := f.Summary().Ticks
			f.Close()
			if have >= ticks {
				return
			}
		}
	}
	t.Fatalf("session %s never had %d ticks", session, ticks)
}

// A recording that was killed at any moment goes on from its spool, and
// becomes the same replay as one that was not: nothing twice, nothing missing.
func TestRecordResumesAfterKill(t *testing.T) {
	d := startDaemon(t)
	match := fullSample().write(t)
	if r := d.record("--speed", "max", "--session", "whole", match); r.code != exitOK {
		t.Fatal(r.stderr)
	}
	spool := t.TempDir()
	args := []string{"--speed", "40", "--session", "killed", "--spool", spool, match}
	for _, ticks := range []uint64{40, 200, 290, 450} {
		d.recordUntil(t, "killed", ticks, args...)
	}
	if r := d.record(args...); r.code != exitOK {
		t.Fatal(r.stderr)
	}
	expectSameContent(t, d.sealed(t, "whole"), d.sealed(t, "killed"))
	expectOnly(t, spool)
}

// recordUntil records until the daemon has so many ticks, and kills the
// recording then.
func (d *testDaemon) recordUntil(t *testing.T, session string, ticks uint64, args ...string) {
	t.Helper()
	cmd, stderr := d.startRecord(t, args...)
	d.awaitTicks(t, session, ticks)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if cmd.Wait(); cmd.ProcessState.Exited() {
		t.Fatalf("it ended before it was killed: %s", stderr)
	}
}

// expectSameContent compares two replays line by line, without the lines that
// name the session or have its random salt.
func expectSameContent(t *testing.T, a, b string) {
	t.Helper()
	var lines [2][]string
	for i, path := range []string{a, b} {
		r := reprise("cat", "--jsonl", path)
		if r.code != exitOK {
			t.Fatal(r.stderr)
		}
		lines[i] = strings.Split(r.stdout, "\n")[1:]
	}
	if len(lines[0]) != len(lines[1]) {
		t.Fatalf("%d lines and %d", len(lines[0]), len(lines[1]))
	}
	for i, line := range lines[0] {
		if line != lines[1][i] {
			t.Fatalf("line %d: %.200s\n%.200s", i+2, line, lines[1][i])
		}
	}
}

// A recording that ended between a tick and its hash gets that hash, too.
func TestRecordResumesWithTheHash(t *testing.T) {
	d := startDaemon(t)
	path, spool := sample{ticks: 30}.write(t), t.TempDir()
	f, err := format.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	meta := *f.Summary().Meta
	meta.Session = "half"
	tls, err := transport.Trust{Pin: d.pin}.Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := transport.Dial(t.Context(), []string{d.addr}, transport.ClientConfig{TLS: tls, Spool: spool})
	if err != nil {
		t.Fatal(err)
	}
	match, err := client.Open(transport.Spec{Meta: meta, Book: f.Book()})
	if err != nil {
		t.Fatal(err)
	}
	s := &streamer{match: match, f: f, speed: player.Max, shown: &progress{}}
	if err := s.prepare(0, &sentBefore{}); err != nil {
		t.Fatal(err)
	}
	var steps format.StepReader
	var tick format.TickRecord
	r := f.Reader()
	for r.Next(&tick) == nil && tick.Tick < 10 {
		if tick.Tick == 9 {
			tick.Hash = nil
		}
		if err := s.tick(&tick, &steps); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := d.record("--speed", "max", "--session", "half", "--spool", spool, path); r.code != exitOK || !strings.Contains(r.stdout, "30 ticks, ") || !strings.Contains(r.stdout, "30 hashes") {
		t.Errorf("%d %s %s", r.code, r.stdout, r.stderr)
	}
	if r := reprise("verify", d.sealed(t, "half")); r.code != exitOK || !strings.Contains(r.stdout, "30 ticks run, 30 hashes compared") {
		t.Errorf("%d %s", r.code, r.stdout)
	}
}

// Ctrl-C ends a recording; what is there stays, and says how to go on.
func TestRecordInterrupted(t *testing.T) {
	d := startDaemon(t)
	args := []string{"--session", "cut", "--spool", t.TempDir(), fullSample().write(t)}
	cmd, stderr := d.startRecord(t, args...)
	d.awaitTicks(t, "cut", 3)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Skip("no signals here:", err)
	}
	if cmd.Wait(); cmd.ProcessState.ExitCode() != exitNotTried {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), stderr)
	}
	for _, want := range []string{": interrupted\n", "hint: session cut stays unfinished at the daemon, durable up to before tick ", "--session cut goes on from there"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("%q does not say %q", stderr, want)
		}
	}
	if r := d.record(append(args, "--speed", "max")...); r.code != exitOK {
		t.Errorf("going on: %d %s", r.code, r.stderr)
	}
}

// A spool goes on only with the file that it was begun with, and what the
// daemon has is never replaced.
func TestRecordOfSomethingElse(t *testing.T) {
	d := startDaemon(t)
	match, other := fullSample(), fullSample()
	other.seed = 1
	spool, whole := t.TempDir(), match.write(t)
	d.recordUntil(t, "once", 200, "--speed", "40", "--session", "once", "--spool", spool, whole)
	early := copyFolder(t, spool)
	r := d.record("--session", "once", "--spool", spool, other.write(t))
	if r.code != exitNotTried || !strings.Contains(r.stderr, "spool of session once: tick ") || !strings.Contains(r.stderr, "it holds another match") {
		t.Errorf("another match: %d %s", r.code, r.stderr)
	}
	d.recordUntil(t, "once", 480, "--speed", "40", "--session", "once", "--spool", spool, whole)
	// An old copy of the spool knows less than the daemon has.
	startLater(t, filepath.Join(early, "once.producer"))
	r = d.record("--speed", "max", "--session", "once", "--spool", early, whole)
	if r.code != exitNotTried || !strings.Contains(r.stderr, "refused: conflict") {
		t.Errorf("conflict: %d %s", r.code, r.stderr)
	}
	// What the daemon has is what it was.
	startLater(t, filepath.Join(spool, "once.producer"))
	startLater(t, filepath.Join(spool, "once.producer"))
	if r := d.record("--speed", "max", "--session", "once", "--spool", spool, whole); r.code != exitOK {
		t.Errorf("the true match: %d %s", r.code, r.stderr)
	}
}

// startLater makes a copy of a producer's file as if it had been started more
// often than the original.
func startLater(t *testing.T, path string) {
	t.Helper()
	var p map[string]any
	d := json.NewDecoder(strings.NewReader(content(t, path)))
	d.UseNumber()
	if err := d.Decode(&p); err != nil {
		t.Fatal(err)
	}
	start, err := p["start"].(json.Number).Int64()
	if err != nil {
		t.Fatal(err)
	}
	p["start"] = start + 1000
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func copyFolder(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}
