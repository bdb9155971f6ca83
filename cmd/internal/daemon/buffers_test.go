package daemon

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Where the system's UDP buffers are small, one line at the start says so,
// with their sizes and the remedy; where they are not, none does.
func TestUDPBuffersLine(t *testing.T) {
	cfg := Default()
	cfg.Data, cfg.Listen, cfg.HTTP = filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", ""
	var log bytes.Buffer
	d := New(cfg, &log)
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	b := d.server.Buffers()
	if err := d.Stop(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "UDP buffers are small") {
			lines = append(lines, line)
		}
	}
	if b.Enough() {
		if len(lines) != 0 {
			t.Errorf("buffers %+v are enough, and the log has %q", b, lines)
		}
		return
	}
	for _, word := range []string{"level=WARN", fmt.Sprintf("receive=%d", b.Receive), fmt.Sprintf("send=%d", b.Send), "wanted=", "rmem_max", "wmem_max"} {
		if len(lines) != 1 || !strings.Contains(lines[0], word) {
			t.Fatalf("buffers %+v, and the log has %q, want one line with %q", b, lines, word)
		}
	}
}
