package app

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// archives waits until the daemon has archived so many sessions.
func (d *testDaemon) archives(t *testing.T, n int) (list []string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); len(list) < n; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("archives: %v", list)
		}
		list = nil
		filepath.WalkDir(filepath.Join(d.data, "archive"), func(path string, e fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".rply") {
				list = append(list, path)
			}
			return nil
		})
	}
	return list
}

// A pin that was set on a session's file holds for its archive, and shows
// there.
func TestPinOutlivesTheMove(t *testing.T) {
	d, err := launchDaemon(t.TempDir(), "--archive-delay", "3s", "--archive-cpu-share", "1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	path := sample{}.write(t)
	for _, session := range []string{"Kept-1", "other"} {
		if r := d.record("--speed", "max", "--session", session, path); r.code != exitOK {
			t.Fatal(r.stderr)
		}
	}
	if r := reprise("pin", "--reason", "final", d.sealed(t, "Kept-1")); r.code != exitOK || !strings.Contains(r.stdout, "session Kept-1 is pinned") {
		t.Fatalf("%+v", r)
	}
	archives := d.archives(t, 2)
	r := reprise("ls", "--pinned", "--state", "archived", d.data)
	if r.code != exitOK || strings.Count(r.stdout, "\n") != 2 || !strings.Contains(r.stdout, "room-Kept-1-") {
		t.Errorf("%+v", r)
	}
	if r := reprise("unpin", archives[0]); r.code != exitOK || !strings.Contains(r.stdout, "session Kept-1 is no longer pinned") {
		t.Errorf("%+v", r)
	}
	if r := reprise("ls", "--state", "sealed", d.data); r.code != exitOK || strings.Count(r.stdout, "archived") != 2 {
		t.Errorf("%+v", r)
	}
}
