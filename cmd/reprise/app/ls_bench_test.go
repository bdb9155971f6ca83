package app

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"reprise/format"
)

// BenchmarkListOfArchives lists 10,000 archives in folders of days, warm.
func BenchmarkListOfArchives(b *testing.B) {
	const archives = 10_000
	source, err := sample{ticks: 600}.bytes()
	if err != nil {
		b.Fatal(err)
	}
	f, err := format.NewFile(bytes.NewReader(source), int64(len(source)))
	if err != nil {
		b.Fatal(err)
	}
	var archive bytes.Buffer
	if _, err := format.Archive(f, &archive, format.ArchiveOptions{}); err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	for i := range archives {
		day := filepath.Join(dir, fmt.Sprintf("2026/11/%02d", i%30+1))
		if err := os.MkdirAll(day, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(day, fmt.Sprintf("room-m-%d.rply", i)), archive.Bytes(), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		var out bytes.Buffer
		if code := run([]string{"ls", dir}, bytes.NewReader(nil), &out, io.Discard); code != exitOK || bytes.Count(out.Bytes(), []byte("\narchived")) != archives {
			b.Fatal(code, out.Len())
		}
	}
}
