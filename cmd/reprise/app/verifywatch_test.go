package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/cmd/internal/proctest"
)

// waitText waits until a command has printed a text.
func waitText(t *testing.T, out *proctest.Text, text string) {
	t.Helper()
	proctest.Eventually(t, time.Minute, fmt.Sprintf("%q is printed", text), func() bool { return strings.Contains(out.String(), text) })
}

// TestVerifyWatch drops files into a watched folder: whole, growing, moved in,
// in a new folder, bad.
func TestVerifyWatch(t *testing.T) {
	folder := t.TempDir()
	put := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	bytesOf := func(s sample) []byte {
		t.Helper()
		b, err := s.bytes()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := bytesOf(sample{})
	put("before.rply", good)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var out, messages proctest.Text
	cmd := newRoot()
	cmd.SetArgs([]string{"verify", "--watch", folder})
	cmd.SetOut(&out)
	cmd.SetErr(&messages)
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	waitText(t, &out, "before.rply: 200 ticks run")

	live := bytesOf(sample{live: true, ticks: 5000})
	put("growing.rply", live[:len(live)/2])
	put("stays-live.rply", live)
	put("notes.txt", good)
	put("bad.rply", bytesOf(sample{flip: 7}))
	waitText(t, &out, "bad.rply: 8 ticks run, 8 hashes compared: desync at tick 7")
	put("growing.rply", bytesOf(sample{ticks: 5000}))
	waitText(t, &out, "growing.rply: 5000 ticks run")
	if err := os.Mkdir(filepath.Join(folder, "later"), 0o777); err != nil {
		t.Fatal(err)
	}
	put("later/moved.tmp", good)
	if err := os.Rename(filepath.Join(folder, "later/moved.tmp"), filepath.Join(folder, "later/moved.rply")); err != nil {
		t.Fatal(err)
	}
	waitText(t, &out, "moved.rply: 200 ticks run")
	cancel()
	if code := exitCode(<-done); code != exitFalse {
		t.Errorf("exit code %d", code)
	}
	if n := strings.Count(out.String(), "\n"); n != 4 {
		t.Errorf("%d files were verified:\n%s", n, out.String())
	}
	if !strings.Contains(messages.String(), "1 replay still being recorded") {
		t.Errorf("messages are %q", messages.String())
	}
}
