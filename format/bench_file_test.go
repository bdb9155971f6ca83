package format

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

// benchSession writes ticks of one step of three numbers, about 40 bytes with
// its hash, and no footer.
func benchSession(b *testing.B, ticks int) []byte {
	b.Helper()
	var out Buffer
	w := benchWriter(b, &out)
	for i := range ticks {
		benchTick(b, w, i)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

func benchWriter(b *testing.B, out ReplayFile) *Writer {
	b.Helper()
	w, err := NewWriter(out, &Metadata{Session: "bench", Width: Width16, HashBytes: 8, TickRate: Rate{60, 1}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	return w
}

func benchTick(b *testing.B, w *Writer, i int) {
	err := w.Step(uint16(i%40), Int(int64(i%8)), Int(int64(i*7919)), Int(int64(i*104729)), Int(1000))
	if err == nil {
		err = w.EndTickAt(int64(i) * 16667)
	}
	if err == nil {
		err = w.Hash(Tick(i), []byte{byte(i), byte(i >> 8), 2, 3, 4, 5, 6, 7})
	}
	if err != nil {
		b.Fatal(err)
	}
}

// benchChunks gives the chunks of a session.
func benchChunks(b *testing.B, file []byte) (chunks []Chunk) {
	b.Helper()
	for at := HeaderSize; at < len(file); {
		c, n, err := ParseChunk(file[at:])
		if err != nil {
			b.Fatal(err)
		}
		chunks = append(chunks, c)
		at += n
	}
	return chunks
}

func BenchmarkParseBatch(b *testing.B) {
	chunks := benchChunks(b, benchSession(b, 100_000))
	body := chunks[len(chunks)/2].Body
	batch, err := ParseBatch(body, 8)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseBatch(body, 8); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(batch.Ticks), "ns/tick")
}

func BenchmarkBatchBuilder(b *testing.B) {
	builder := NewBatchBuilder(Width16, 8, 0)
	hash := make([]byte, 8)
	var body []byte
	b.ReportAllocs()
	for b.Loop() {
		_ = builder.Step(7, Int(3), Int(70000), Int(-12))
		t := builder.EndTickAt(int64(builder.NextTick()) * 16667)
		builder.Hash(t, hash)
		if builder.Ticks() == 1000 {
			body = builder.AppendBody(body[:0])
			builder.Cut()
		}
	}
}

func BenchmarkTrackerAdd(b *testing.B) {
	const ticks = 50_000
	file := benchSession(b, ticks)
	chunks := benchChunks(b, file)
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		t := NewTracker()
		for _, c := range chunks {
			if err := t.Add(c, HeaderSize); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*ticks/b.Elapsed().Seconds(), "ticks/s")
}

// BenchmarkTrackerAddEmpty adds chunks that say in 20 bytes that nothing
// happened for as many ticks as a chunk may hold.
func BenchmarkTrackerAddEmpty(b *testing.B) {
	for _, hashBytes := range []int{0, 8} {
		b.Run(fmt.Sprintf("hash-bytes=%d", hashBytes), func(b *testing.B) {
			t := NewTracker()
			if err := t.Add(Chunk{Type: ChunkMeta, Body: AppendMeta(nil, &Metadata{Width: Width8, HashBytes: hashBytes})}, 0); err != nil {
				b.Fatal(err)
			}
			builder := NewBatchBuilder(Width8, hashBytes, 0)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				for builder.Ticks() < MaxChunkTicks {
					builder.EndTick()
				}
				c := Chunk{Type: ChunkTicks, Body: builder.AppendBody(nil)}
				builder.Cut()
				b.StartTimer()
				if err := t.Add(c, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTrackerManySessions gives each of many sessions a small chunk in
// turn, as a recorder does: by the time a session's next chunk comes, the
// others have taken its place in the processor's cache.
func BenchmarkTrackerManySessions(b *testing.B) {
	for _, kind := range []struct {
		name      string
		hashBytes int
		timed     bool
	}{{"plain", 0, false}, {"hashed", 8, true}} {
		for _, n := range []int{10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/S=%d", kind.name, n), func(b *testing.B) {
				next := smallChunks(b, kind.hashBytes, kind.timed)
				sessions := manyTrackers(b, n, kind.hashBytes)
				var framed []byte
				at, offset := len(sessions), int64(HeaderSize)
				b.ReportAllocs()
				for b.Loop() {
					if at == len(sessions) {
						offset += int64(len(framed))
						framed, at = next(), 0
					}
					benchTake(b, sessions[at], framed, offset)
					at++
				}
				b.ReportMetric(float64(len(framed)), "bytes/chunk")
			})
		}
	}
}

// manyTrackers opens sessions, and gives them in another order than that in
// which they lie in memory.
func manyTrackers(b *testing.B, n, hashBytes int) []*Tracker {
	b.Helper()
	sessions := make([]*Tracker, n)
	for i := range sessions {
		sessions[i] = NewTracker()
		c := Chunk{Type: ChunkMeta, Body: AppendMeta(nil, &Metadata{Session: fmt.Sprint(i), Width: Width16, HashBytes: hashBytes})}
		if err := sessions[i].Add(c, HeaderSize); err != nil {
			b.Fatal(err)
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { sessions[i], sessions[j] = sessions[j], sessions[i] })
	return sessions
}

// smallChunks gives framed chunks of two or three ticks in turn. Each tick has
// one step of 40 bytes.
func smallChunks(b *testing.B, hashBytes int, timed bool) (next func() []byte) {
	builder := NewBatchBuilder(Width16, hashBytes, 0)
	hash := make([]byte, hashBytes)
	seq := uint64(0)
	return func() []byte {
		seq++
		for range 2 + seq%2 {
			t := uint64(builder.NextTick())
			if err := builder.Step(uint16(t%40), Int(int64(t%8)), Int(70_000), Int(40_000_000_000), Int(30_000), Float(0.5), Int(12), Int(12), Bool(true)); err != nil {
				b.Fatal(err)
			}
			end := builder.EndTick
			if timed {
				end = func() Tick { return builder.EndTickAt(int64(t) * 50_000) }
			}
			builder.Hash(end(), hash)
		}
		framed := AppendChunk(nil, ChunkTicks, seq, builder.AppendBody(nil))
		builder.Cut()
		return framed
	}
}

// benchTake takes a chunk, and asks the tracker what a recorder asks.
func benchTake(b *testing.B, t *Tracker, framed []byte, offset int64) {
	if _, _, err := ParseChunk(framed); err != nil { // by the transport
		b.Fatal(err)
	}
	c, _, err := ParseChunk(framed)
	if err != nil || c.Seq <= t.Seq() || t.Totals().NextTick > MaxTick {
		b.Fatal(err)
	}
	p, err := t.Check(c)
	if err != nil || t.Totals().NextTick != p.Batch.First {
		b.Fatal(err)
	}
	t.Apply(p, offset)
	if len(t.TakeNotices()) > 0 || t.Seq() != c.Seq || t.Totals().NextTick != p.Batch.Next() {
		b.Fatal("the tracker did not take the chunk")
	}
}

func BenchmarkReader(b *testing.B) {
	const ticks = 50_000
	file := benchSession(b, ticks)
	f, err := NewFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		b.Fatal(err)
	}
	r := f.Reader()
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		r.Seek(0)
		if n := readAll(b, r); n != ticks {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/ticks, "ns/tick")
}

// readAll reads every tick and step, and counts the ticks.
func readAll(tb testing.TB, r *Reader) (ticks int) {
	var rec TickRecord
	var steps StepReader
	var step Step
	for {
		err := r.Next(&rec)
		if err == io.EOF {
			return ticks
		}
		if err != nil {
			tb.Fatal(err)
		}
		for steps.Reset(&rec); steps.Next(&step); {
		}
		ticks++
	}
}

// BenchmarkOpenFinished opens a file of 200,000 ticks by its footer.
func BenchmarkOpenFinished(b *testing.B) {
	var out Buffer
	w := benchWriter(b, &out)
	for i := range 200_000 {
		benchTick(b, w, i)
	}
	if err := w.Finish(EndSealed, ""); err != nil {
		b.Fatal(err)
	}
	src := &countingReader{src: &out}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewFile(src, int64(len(out.Bytes()))); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(src.reads)/float64(b.N), "reads")
	b.ReportMetric(float64(src.bytes)/float64(b.N), "bytes-read")
}

// countingReader counts the calls of ReadAt that ask for something.
type countingReader struct {
	src   io.ReaderAt
	reads int
	bytes int64
}

func (c *countingReader) ReadAt(b []byte, at int64) (int, error) {
	if len(b) > 0 {
		c.reads++
	}
	c.bytes += int64(len(b))
	return c.src.ReadAt(b, at)
}

// BenchmarkOpenUnfinished opens a file without a footer, which has to be
// followed from its first chunk.
func BenchmarkOpenUnfinished(b *testing.B) {
	file := benchSession(b, 50_000)
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		if _, err := NewFile(bytes.NewReader(file), int64(len(file))); err != nil {
			b.Fatal(err)
		}
	}
}

// falseBeginnings is a damaged file that is full of frames whose checksums
// do not hold, each as long as the rest of the file allows.
func falseBeginnings(size int) []byte {
	file := AppendHeader(nil)
	file = AppendChunk(file, ChunkMeta, 0, AppendMeta(nil, &Metadata{Width: Width8}))
	for len(file) < size {
		length := min(MaxBody, max(0, size-len(file)-chunkMinSize))
		file = append(file, chunkMarker, byte(ChunkTicks), byte(length>>24), byte(length>>16), byte(length>>8), byte(length), 1, 2, 3, 4, 0)
	}
	return file
}

func BenchmarkRepairHunt(b *testing.B) {
	for _, size := range []int{256 << 10, 1 << 20, 4 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			file := falseBeginnings(size)
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				var out Buffer
				if _, err := Repair(bytes.NewReader(file), int64(len(file)), &out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
