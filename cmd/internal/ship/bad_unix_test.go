//go:build unix

package ship

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"reprise/format"
)

// What cannot be read like a file is named, and nothing waits for it.
func TestPipesAndLinks(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	good := finished("good", 1, 50).bytes(t)
	must(t, os.Symlink("nowhere", filepath.Join(dir, "link.rply")))
	must(t, os.Symlink("loop.rply", filepath.Join(dir, "loop.rply")))
	must(t, os.Symlink(put(t, t.TempDir(), "good", good), filepath.Join(dir, "good.rply")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe.rply"), 0o644))
	r := begin(t, h.config(dir))
	unsealed(t, r, Summary{Sealed: 1, Failed: 3})
	for file, want := range map[string]error{"pipe.rply": format.ErrNotReplay, "link.rply": os.ErrNotExist, "loop.rply": syscall.ELOOP} {
		if err := failure(t, r, file); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", file, err, want)
		}
	}
	same(t, good, sealedOne(t, h.cfg.Data, "good"))
}
