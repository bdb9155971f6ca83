package lab

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/internal/load"
	"reprise/format"
)

// replays finds all replays below a data folder.
func replays(t testing.TB, data string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".rply") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// checkReplays checks the structure of every replay below a data folder:
// checksums, order, digests. There is none that no promise names, and those
// that were sealed miss nothing but what their clients left out.
func checkReplays(t testing.TB, data string, promises []load.Promise) {
	t.Helper()
	known := map[string]*load.Promise{}
	for i := range promises {
		known[promises[i].Session] = &promises[i]
	}
	for _, path := range replays(t, data) {
		f, err := format.Open(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if _, err := f.Check(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		s := f.Summary()
		switch p := known[s.Meta.Session]; {
		case p == nil:
			t.Errorf("%s: nobody recorded session %q", path, s.Meta.Session)
		case p.Sealed && s.Ticks != p.Recorded():
			t.Errorf("%s: sealed with %d ticks, %d were recorded", path, s.Ticks, p.Recorded())
		}
		f.Close()
	}
}
