package format

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// corpusNames are the names of the real matches in order.
func corpusNames(files map[string]*File) []string { return slices.Sorted(maps.Keys(files)) }

// processorRate reports row bytes a second of processor time, where the system
// tells: on a busy machine it says more than the time that passed.
func processorRate(b *testing.B, rows int64, from time.Duration) {
	if spent := processorTime() - from; spent > 0 {
		b.ReportMetric(float64(rows)*float64(b.N)/1e6/spent.Seconds(), "MB/cpu-s")
	}
}

// BenchmarkCorpusArchive measures row bytes a second on each real match, at the
// default level.
func BenchmarkCorpusArchive(b *testing.B) {
	files := corpusFiles(b)
	for _, name := range corpusNames(files) {
		f := files[name]
		b.Run(strings.TrimSuffix(name, ".jsonl.zst"), func(b *testing.B) {
			var rows int64
			from := processorTime()
			for b.Loop() {
				report, err := sharedArchiver.Archive(f, io.Discard, ArchiveOptions{})
				if err != nil {
					b.Fatal(err)
				}
				rows = report.RowBytes
			}
			b.SetBytes(rows)
			processorRate(b, rows, from)
		})
	}
}

// BenchmarkCorpusRead measures row bytes a second on each real match's archive
// of the default level.
func BenchmarkCorpusRead(b *testing.B) {
	files := corpusFiles(b)
	for _, name := range corpusNames(files) {
		a := openBytes(b, archiveOf(b, files[name], ArchiveOptions{}))
		rows, err := PlainRows(a)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(strings.TrimSuffix(name, ".jsonl.zst"), func(b *testing.B) {
			b.SetBytes(int64(len(rows)))
			from := processorTime()
			r := a.Reader()
			for b.Loop() {
				var t TickRecord
				r.Seek(0)
				for {
					if err := r.Next(&t); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
			}
			processorRate(b, int64(len(rows)), from)
		})
	}
}

// BenchmarkCorpusSeek reads one tick somewhere in each real match's archive of
// the default level.
func BenchmarkCorpusSeek(b *testing.B) {
	files := corpusFiles(b)
	for _, name := range corpusNames(files) {
		a := openBytes(b, archiveOf(b, files[name], ArchiveOptions{}))
		first, ticks := a.Summary().Meta.FirstTick, a.Summary().NextTick-a.Summary().Meta.FirstTick
		b.Run(strings.TrimSuffix(name, ".jsonl.zst"), func(b *testing.B) {
			r := a.Reader()
			from, n := processorTime(), 0
			for ; b.Loop(); n++ {
				var t TickRecord
				r.Seek(first + Tick(n*7919)%ticks)
				if err := r.Next(&t); err != nil {
					b.Fatal(err)
				}
			}
			if spent := processorTime() - from; spent > 0 {
				b.ReportMetric(float64(spent.Microseconds())/1e3/float64(n), "cpu-ms/op")
			}
		})
	}
}
