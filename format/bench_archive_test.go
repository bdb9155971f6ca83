package format

import (
	"bytes"
	"io"
	"testing"
)

// benchFile has about 1.5 MB of rows.
func benchFile(b *testing.B) *File {
	b.Helper()
	f, _ := wideSession(40_000).file(b, 2000)
	return f
}

// BenchmarkArchive measures row bytes a second, with one archiver used again.
func BenchmarkArchive(b *testing.B) {
	f := benchFile(b)
	for _, level := range allLevels {
		b.Run(level.String(), func(b *testing.B) {
			for b.Loop() {
				report, err := sharedArchiver.Archive(f, io.Discard, ArchiveOptions{Level: level})
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(report.RowBytes)
			}
		})
	}
}

// BenchmarkArchiveRead measures row bytes a second.
func BenchmarkArchiveRead(b *testing.B) {
	f := benchFile(b)
	for _, level := range allLevels {
		a := openBytes(b, archiveOf(b, f, ArchiveOptions{Level: level}))
		rows, err := PlainRows(f)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(level.String(), func(b *testing.B) {
			b.SetBytes(int64(len(rows)))
			for b.Loop() {
				var t TickRecord
				for r := a.Reader(); r.Next(&t) == nil; {
				}
			}
		})
	}
}

// BenchmarkArchiveSeek reads one tick in the middle.
func BenchmarkArchiveSeek(b *testing.B) {
	f := benchFile(b)
	for _, level := range allLevels {
		a := openBytes(b, archiveOf(b, f, ArchiveOptions{Level: level}))
		r := a.Reader()
		b.Run(level.String(), func(b *testing.B) {
			for b.Loop() {
				var t TickRecord
				r.Seek(23_456)
				if err := r.Next(&t); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkArchiveInfo opens an archive.
func BenchmarkArchiveInfo(b *testing.B) {
	data := archiveOf(b, benchFile(b), ArchiveOptions{})
	for b.Loop() {
		if _, err := NewFile(bytes.NewReader(data), int64(len(data))); err != nil {
			b.Fatal(err)
		}
	}
}
