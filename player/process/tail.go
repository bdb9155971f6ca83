package process

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

const (
	// tailLines is how many of a child's last lines an error shows.
	tailLines = 20
	// tailBytes bounds what is kept of them.
	tailBytes = 16 << 10
)

// tail is where a child's output goes: it is passed on, and its end is kept.
type tail struct {
	out io.Writer

	mu   sync.Mutex
	kept []byte
}

// Write never fails: a child must not be stopped by what becomes of its
// output.
func (t *tail) Write(p []byte) (int, error) {
	if t.out != nil {
		_, _ = t.out.Write(p)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	end := p[max(0, len(p)-tailBytes):]
	if surplus := len(t.kept) + len(end) - 2*tailBytes; surplus > 0 {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-tailBytes:]...)
	}
	t.kept = append(t.kept, end...)
	return len(p), nil
}

// lines gives the last lines, the last one even where it is not complete.
func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	end := bytes.TrimRight(t.kept[max(0, len(t.kept)-tailBytes):], "\r\n")
	if len(end) == 0 {
		return nil
	}
	lines := strings.Split(string(end), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	for i, line := range lines {
		lines[i] = printable(strings.TrimRight(line, "\r"))
	}
	return lines
}
