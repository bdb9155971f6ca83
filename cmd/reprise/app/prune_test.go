package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What prune removes by hand is gone for the daemon that starts again, and its
// id stays taken.
func TestPruneRemovesArchives(t *testing.T) {
	data := t.TempDir()
	d, err := launchDaemon(data, "--archive-delay", "0s", "--archive-cpu-share", "1")
	if err != nil {
		t.Fatal(err)
	}
	path := sample{}.write(t)
	for _, session := range []string{"old", "new"} {
		if r := d.record("--speed", "max", "--session", session, path); r.code != exitOK {
			t.Fatal(r.stderr)
		}
	}
	d.archives(t, 2)
	if r := reprise("prune", "--retain-count", "1", data); r.code != exitNotTried || !strings.Contains(r.stderr, "hint: it removes by its own") {
		t.Errorf("while a daemon runs: %+v", r)
	}
	d.kill()
	r := reprise("prune", "--retain-count", "1", data)
	if r.code != exitOK || strings.Count(r.stderr, `msg="replay removed" session=old`) != 1 || !strings.Contains(r.stderr, "1 of 2 replays were removed") {
		t.Fatalf("%+v", r)
	}
	catalog, err := os.ReadFile(filepath.Join(data, "catalog"))
	if err != nil || !strings.Contains(string(catalog), `"id":"old","file":"archive/`) || !strings.Contains(string(catalog), `"why":"2 replays, the most is 1"`) {
		t.Errorf("catalog: %s, %v", catalog, err)
	}
	again, err := launchDaemon(data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.kill)
	if left := again.archives(t, 1); len(left) != 1 || !strings.Contains(left[0], "room-new-") {
		t.Errorf("left: %v", left)
	}
	if r := again.record("--speed", "max", "--session", "old", path); r.code != exitNotTried || !strings.Contains(r.stderr, "session exists") {
		t.Errorf("the id of what was removed: %+v", r)
	}
}
