package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestSweep: what killed processes left goes, and nothing else.
func TestSweep(t *testing.T) {
	if !hasUnixSockets {
		t.Skip("here no socket has a folder")
	}
	gone := exec.Command(os.Args[0], "-test.run=^$")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dead, own := folderPattern(gone.Process.Pid), folderPattern(os.Getpid())
	now := time.Now()
	temp := t.TempDir()
	stays := map[string]bool{}
	add := func(name string, age time.Duration, file string, left bool) {
		t.Helper()
		folder := filepath.Join(temp, name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if file != "" {
			if err := os.WriteFile(filepath.Join(folder, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(folder, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
		stays[name] = left
	}
	add(dead+"1", time.Hour, socketName, false)
	add(dead+"2", time.Hour, "", false)
	add(dead+"3", time.Minute, socketName, true)
	add(dead+"4", time.Hour, "of another", true)
	add(own+"1", time.Hour, socketName, true)
	add(own+"2", 25*time.Hour, socketName, false)
	add(folderPrefix+"some name", time.Hour, "", true)
	add("another-"+dead, 25*time.Hour, "", true)
	if err := os.WriteFile(filepath.Join(temp, dead+"5"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stays[dead+"5"] = true
	sweep(temp, now)
	for name, want := range stays {
		if _, err := os.Lstat(filepath.Join(temp, name)); (err == nil) != want {
			t.Errorf("%s: %v; stays: %v", name, err, want)
		}
	}
}
