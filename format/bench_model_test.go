package format

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// BenchmarkCorpusMax archives each real match at ArchiveMax, and reads it back.
// It reports row bytes a second of processor time both ways.
func BenchmarkCorpusMax(b *testing.B) {
	files := corpusFiles(b)
	for _, name := range corpusNames(files) {
		f := files[name]
		b.Run(strings.TrimSuffix(name, ".jsonl.zst"), func(b *testing.B) {
			var in, out time.Duration
			var rows int64
			for b.Loop() {
				from := processorTime()
				var archive bytes.Buffer
				report, err := sharedArchiver.Archive(f, &archive, ArchiveOptions{Level: ArchiveMax})
				if err != nil {
					b.Fatal(err)
				}
				rows += report.RowBytes
				in += processorTime() - from
				r := openBytes(b, archive.Bytes()).Reader()
				from = processorTime()
				readAll(b, r)
				out += processorTime() - from
			}
			if in > 0 && out > 0 {
				b.ReportMetric(float64(rows)/1e6/in.Seconds(), "in-MB/cpu-s")
				b.ReportMetric(float64(rows)/1e6/out.Seconds(), "out-MB/cpu-s")
			}
		})
	}
}
