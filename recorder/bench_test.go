package recorder

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"reprise/format"
)

// benchSessions opens so many sessions on the real disk, with one inbox for
// each.
func benchSessions(b *testing.B, r *Recorder, n int) ([]*Session, []*inbox) {
	b.Helper()
	sessions, inboxes := make([]*Session, n), make([]*inbox, n)
	for i := range sessions {
		id := fmt.Sprintf("bench-%05d", i)
		inboxes[i] = &inbox{}
		s, _, err := r.OpenSession(OpenRequest{ID: id, Producer: key(1), Epoch: 1, Opening: openingOf(id, 0), Notify: inboxes[i].notify})
		if err != nil {
			b.Fatal(err)
		}
		sessions[i] = s
	}
	return sessions, inboxes
}

func benchOpen(b *testing.B, cfg Config) *Recorder {
	b.Helper()
	cfg.Dir = b.TempDir()
	r, err := Open(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { r.Close(context.Background()) })
	return r
}

// BenchmarkFlush makes about 1 KiB of each of S sessions durable in one
// flush, which waits long enough for all of them. ms/flush is the time from
// the end of that wait to when everything is durable.
func BenchmarkFlush(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("S=%d", n), func(b *testing.B) {
			r := benchOpen(b, Config{FlushInterval: 400 * time.Millisecond, FileInterval: time.Hour, MaxPendingBytes: 1 << 30, TailBytes: 1 << 30, CheckpointInterval: time.Hour, CheckpointBytes: 1 << 40, MaxSegments: 64})
			sessions, _ := benchSessions(b, r, n)
			<-r.queue.barrier()
			before := r.Stats()
			seq := uint64(0)
			chunk := make([][]byte, n)
			bytes := 0
			for b.Loop() {
				b.StopTimer()
				seq++
				for i := range chunk {
					chunk[i] = benchChunk(seq, format.Tick(seq-1)*24, 24)
				}
				bytes = len(chunk[0])
				b.StartTimer()
				for i, s := range sessions {
					if err := s.Append(chunk[i]); err != nil {
						b.Fatal(err)
					}
				}
				<-r.queue.barrier()
			}
			after := r.Stats()
			flushes := float64(after.Flushes - before.Flushes)
			b.ReportMetric(float64((after.FlushTime-before.FlushTime).Microseconds())/1000/flushes, "ms/flush")
			b.ReportMetric(float64(after.FlushedSessions-before.FlushedSessions)/flushes, "sessions/flush")
			b.ReportMetric(float64(bytes), "bytes/chunk")
		})
	}
}

// benchChunk frames n ticks of about 40 bytes each: two steps of four
// parameters, without hashes.
func benchChunk(seq uint64, first format.Tick, n int) []byte {
	b := format.NewBatchBuilder(format.Width16, 8, first)
	for range n {
		for range 2 {
			b.Step(300, format.Int(7), format.Int(40_000), format.Int(90_000), format.Int(12))
		}
		b.EndTick()
	}
	return format.AppendChunk(nil, format.ChunkTicks, seq, b.AppendBody(nil))
}

// BenchmarkAppend sends chunks of about 16 KiB to one session, and waits for
// the acknowledgements as the window demands.
func BenchmarkAppend(b *testing.B) {
	const ticks = 400
	r := benchOpen(b, Config{})
	free := make(chan struct{}, 1)
	var mu sync.Mutex
	durable := uint64(0)
	s, reply, err := r.OpenSession(OpenRequest{ID: "bench", Producer: key(1), Epoch: 1, Opening: openingOf("bench", 0), Notify: func(a Ack) {
		mu.Lock()
		durable = a.Durable
		mu.Unlock()
		select {
		case free <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	size := len(benchChunk(1, 0, ticks))
	window := uint64(reply.Window) / uint64(size)
	seq := uint64(0)
	b.SetBytes(int64(size))
	for b.Loop() {
		seq++
		b.StopTimer()
		chunk := benchChunk(seq, format.Tick(seq-1)*ticks, ticks)
		b.StartTimer()
		for {
			mu.Lock()
			wait := seq-durable > window
			mu.Unlock()
			if !wait {
				break
			}
			<-free
		}
		if err := s.Append(chunk); err != nil {
			b.Fatal(err)
		}
	}
	<-r.queue.barrier()
	b.ReportMetric(float64(seq*ticks)/b.Elapsed().Seconds(), "ticks/s")
}

// BenchmarkAppendInTurn sends three ticks of each of 10,000 sessions after the
// other, so that no session is in the processor's cache, as a daemon has it.
// Allocations are those of all goroutines.
func BenchmarkAppendInTurn(b *testing.B) {
	const n, ticks = 10_000, 3
	r := benchOpen(b, Config{MaxPendingBytes: 1 << 30, MaxSegments: 64})
	sessions, _ := benchSessions(b, r, n)
	<-r.queue.barrier()
	var chunk []byte
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%n == 0 {
			b.StopTimer()
			<-r.queue.barrier()
			seq := uint64(i/n) + 1
			chunk = benchChunk(seq, format.Tick(seq-1)*ticks, ticks)
			b.StartTimer()
		}
		if err := sessions[i%n].Append(chunk); err != nil {
			b.Fatal(err)
		}
	}
	<-r.queue.barrier()
}

// heap is the memory in use after a collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkMemory measures a session's memory: idle after its file was
// written, and with 1 KiB not yet in it.
func BenchmarkMemory(b *testing.B) {
	const n = 10_000
	for b.Loop() {
		r := benchOpen(b, Config{FileInterval: time.Hour})
		before := heap()
		sessions, inboxes := benchSessions(b, r, n)
		for i, s := range sessions {
			if err := s.Append(benchChunk(1, 0, 24)); err != nil {
				b.Fatal(i, err)
			}
		}
		<-r.queue.barrier()
		b.ReportMetric(float64(heap()-before)/n, "live-bytes/session")
		if err := r.makeCheckpoint(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(heap()-before)/n, "idle-bytes/session")
		runtime.KeepAlive(inboxes)
		r.Close(context.Background())
	}
}

// BenchmarkRecovery opens a folder with 10,000 live sessions whose last 2 KiB
// are only in the journal.
func BenchmarkRecovery(b *testing.B) {
	const n = 10_000
	dir := b.TempDir()
	cfg := Config{Dir: dir, FileInterval: time.Hour, CheckpointInterval: time.Hour, TailBytes: 1 << 30}
	r, err := Open(cfg)
	if err != nil {
		b.Fatal(err)
	}
	sessions, _ := benchSessions(b, r, n)
	for seq := range uint64(3) {
		for _, s := range sessions {
			if err := s.Append(benchChunk(seq+1, format.Tick(seq)*24, 24)); err != nil {
				b.Fatal(err)
			}
		}
		<-r.queue.barrier()
		if seq == 0 {
			if err := r.makeCheckpoint(); err != nil {
				b.Fatal(err)
			}
		}
	}
	// As after a kill: nothing is written any more.
	close(r.stop)
	r.running.Wait()
	if err := r.release(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	start := time.Now()
	for b.Loop() {
		if r, err = Open(cfg); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(time.Since(start).Seconds(), "s/ready")
	for {
		asleep := 0
		for _, s := range r.List() {
			if s.Asleep {
				asleep++
			}
		}
		if asleep == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.ReportMetric(time.Since(start).Seconds(), "s/all-awake")
	b.ReportMetric(float64(r.Stats().Recovered), "records")
	r.Close(context.Background())
}
