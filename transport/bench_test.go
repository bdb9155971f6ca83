package transport

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reprise/format"
)

// discard is a Recorder that confirms everything at once and keeps nothing.
type discard struct{ chunks, bytes atomic.Int64 }

type discarded struct {
	d    *discard
	sink Sink
	next format.Tick
}

func (d *discard) Open(req OpenRequest, sink Sink) (Session, OpenReply, error) {
	return &discarded{d: d, sink: sink}, OpenReply{Window: 4 << 20}, nil
}

func (s *discarded) Append(framed []byte) error {
	c, _, err := format.ParseChunk(framed)
	if err != nil {
		return err
	}
	if c.Type == format.ChunkTicks {
		b, err := format.ParseBatch(c.Body, 0)
		if err != nil {
			return err
		}
		s.next = b.Next()
	}
	s.d.chunks.Add(1)
	s.d.bytes.Add(int64(len(framed)))
	s.sink.Ack(c.Seq, c.Seq, s.next)
	return nil
}

func (s *discarded) Seal(format.Totals) error {
	s.sink.Sealed(format.Digest{}, "discarded")
	return nil
}

func (s *discarded) Detach() {}

func benchSpec(id string) Spec {
	return Spec{Meta: format.Metadata{Session: id, Game: "bench", TickRate: format.Rate{Num: 60, Den: 1}}}
}

// BenchmarkStep measures what recording costs the game: a tick of two steps
// of three integers, while the client sends, and spools where the name says
// so.
func BenchmarkStep(b *testing.B) {
	b.Run("memory", func(b *testing.B) { benchmarkStep(b, "") })
	b.Run("spool", func(b *testing.B) { benchmarkStep(b, b.TempDir()) })
}

func benchmarkStep(b *testing.B, spool string) {
	k := keypair(b)
	s := listen(b, k, "127.0.0.1:0", Config{Recorder: &discard{}})
	c := dialServer(b, s.Addr().String(), ClientConfig{TLS: trust(b, k), Spool: spool, SpoolLimit: 1 << 40})
	defer c.Close(context.Background())
	r, err := c.Open(benchSpec("bench"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := range b.N {
		if i%1000 == 0 {
			b.StopTimer()
			if err := r.Room(context.Background()); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		r.Step(uint16(i%8), format.Int(int64(i)), format.Int(17), format.Int(-40000))
		r.Step(3, format.Int(1), format.Int(2), format.Int(3))
		if err := r.EndTick(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(3*b.N), "ns/call")
}

// BenchmarkFlatOut measures how many ticks of two steps go from one
// connection to a daemon that discards them, over loopback.
func BenchmarkFlatOut(b *testing.B) {
	d, k := &discard{}, keypair(b)
	s := listen(b, k, "127.0.0.1:0", Config{Recorder: d})
	c := dialServer(b, s.Addr().String(), ClientConfig{TLS: trust(b, k), ChunkBytes: 64 << 10})
	defer c.Close(context.Background())
	r, err := c.Open(benchSpec("bench"))
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for i := range b.N {
		if i%256 == 0 {
			if err := r.Room(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		r.Step(uint16(i%8), format.Int(int64(i)), format.Int(17), format.Int(-40000))
		r.Step(3, format.Int(1), format.Int(2), format.Int(3))
		if err := r.EndTick(); err != nil {
			b.Fatal(err)
		}
	}
	if err := r.Seal(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ticks/s")
	b.ReportMetric(float64(d.bytes.Load())/b.Elapsed().Seconds()/1e6, "MB/s")
}

// BenchmarkPaced runs sessions at 20 Hz for three seconds and reports how
// long a tick took to be confirmed, beyond the chunk linger.
func BenchmarkPaced(b *testing.B) {
	for _, sessions := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(sessions), func(b *testing.B) {
			for range b.N {
				paced(b, sessions)
			}
		})
	}
}

func paced(b *testing.B, sessions int) {
	k := keypair(b)
	s := listen(b, k, "127.0.0.1:0", Config{Recorder: &discard{}})
	c := dialServer(b, s.Addr().String(), ClientConfig{TLS: trust(b, k), ChunkLinger: 10 * time.Millisecond})
	defer c.Close(context.Background())
	var rs []*Recording
	for i := range sessions {
		r, err := c.Open(benchSpec(fmt.Sprintf("s%d", i)))
		if err != nil {
			b.Fatal(err)
		}
		rs = append(rs, r)
	}
	eventually(b, "all sessions open", func() bool { return s.Stats().Opened == uint64(sessions) })
	var mu sync.Mutex
	var delays []time.Duration
	var watchers sync.WaitGroup
	const phases = 50 // the sessions' ticks are spread over the 50 ms of a tick
	start := time.Now()
	for slot := range 60 * phases {
		tick := format.Tick(slot / phases)
		for i := slot % phases; i < sessions; i += phases {
			r := rs[i]
			r.Step(1, format.Int(int64(tick)))
			r.EndTick()
			if i%97 == 0 {
				begun := time.Now()
				watchers.Go(func() {
					if r.Wait(context.Background(), tick) == nil {
						mu.Lock()
						defer mu.Unlock()
						delays = append(delays, time.Since(begun))
					}
				})
			}
		}
		time.Sleep(time.Until(start.Add(time.Duration(slot+1) * time.Millisecond)))
	}
	watchers.Wait()
	slices.Sort(delays)
	b.ReportMetric(float64(s.Buffers().Receive)/1024, "KiB-buffer")
	b.ReportMetric(float64(delays[len(delays)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(delays[len(delays)*99/100].Microseconds())/1000, "ms-p99")
}
