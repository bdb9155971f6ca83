package app

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// lockedBuffer is written by the command and read by its test.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// waitText waits until the command has printed a text.
func (b *lockedBuffer) waitText(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(b.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q was never printed, only %q", text, b.String())
		}
	}
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
	var out, messages lockedBuffer
	cmd := newRoot()
	cmd.SetArgs([]string{"verify", "--watch", folder})
	cmd.SetOut(&out)
	cmd.SetErr(&messages)
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	out.waitText(t, "before.rply: 200 ticks run")

	live := bytesOf(sample{live: true, ticks: 5000})
	put("growing.rply", live[:len(live)/2])
	put("stays-live.rply", live)
	put("notes.txt", good)
	put("bad.rply", bytesOf(sample{flip: 7}))
	out.waitText(t, "bad.rply: 8 ticks run, 8 hashes compared: desync at tick 7")
	put("growing.rply", bytesOf(sample{ticks: 5000}))
	out.waitText(t, "growing.rply: 5000 ticks run")
	if err := os.Mkdir(filepath.Join(folder, "later"), 0o777); err != nil {
		t.Fatal(err)
	}
	put("later/moved.tmp", good)
	if err := os.Rename(filepath.Join(folder, "later/moved.tmp"), filepath.Join(folder, "later/moved.rply")); err != nil {
		t.Fatal(err)
	}
	out.waitText(t, "moved.rply: 200 ticks run")
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
