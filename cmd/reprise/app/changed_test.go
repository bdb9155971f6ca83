package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/format"
)

// TestCheckOfAChangedFile changes one argument, and puts the chunk's checksum
// right.
func TestCheckOfAChangedFile(t *testing.T) {
	c := newChunked(t)
	b := bytes.Clone(c.bytes)
	chunk, n, err := format.ParseChunk(b[c.ends[0]:])
	if err != nil {
		t.Fatal(err)
	}
	body := bytes.Replace(chunk.Body, []byte("order"), []byte("Order"), 1)
	copy(b[c.ends[0]:], format.AppendChunk(nil, chunk.Type, chunk.Seq, body)[:n])
	path := filepath.Join(t.TempDir(), "changed.rply")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	r := reprise("check", path)
	if r.code != exitFalse || !strings.HasPrefix(r.stdout, "changed ") || !strings.Contains(r.stdout, "the inputs of segment 0 (ticks 0 to 1023) are not what was sealed") {
		t.Errorf("exit code %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if !strings.Contains(r.stderr, "this was no accident") {
		t.Errorf("no hint: %s", r.stderr)
	}
	for _, command := range [][]string{{"redact", path, "-o", path + ".red"}, {"sign", "--key", newKey(t), path}} {
		if r := reprise(command...); r.code != exitFalse {
			t.Errorf("%s: exit code %d: %s%s", command[0], r.code, r.stdout, r.stderr)
		}
	}
}

func newKey(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if r := reprise("keygen", "-o", path); r.code != exitOK {
		t.Fatalf("keygen: %s", r.stderr)
	}
	return path
}
