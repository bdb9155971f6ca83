package transport

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"reprise/format"
)

const (
	coldConns    = 8
	coldSessions = 1250 // of each connection
)

// fed is a carrier that gives what it was fed, and loses what is written.
type fed struct{ in []byte }

func (f *fed) Read(b []byte) (int, error) {
	if len(f.in) == 0 {
		return 0, io.EOF
	}
	n := copy(b, f.in)
	f.in = f.in[n:]
	return n, nil
}

func (f *fed) Write(b []byte) (int, error)      { return len(b), nil }
func (f *fed) SetReadDeadline(time.Time) error  { return nil }
func (f *fed) SetWriteDeadline(time.Time) error { return nil }
func (f *fed) End(Code, string)                 {}
func (f *fed) RemoteAddr() net.Addr             { return &net.UDPAddr{} }

// sinks is a Recorder that keeps nothing but the sinks, in the order of the
// opens.
type sinks struct{ of []Sink }

func (r *sinks) Open(_ OpenRequest, sink Sink) (Session, OpenReply, error) {
	r.of = append(r.of, sink)
	return quiet{}, OpenReply{Window: 1 << 20}, nil
}

type quiet struct{}

func (quiet) Append([]byte) error      { return nil }
func (quiet) Seal(format.Totals) error { return nil }
func (quiet) Detach()                  {}

// cold is a server with as many connections and sessions as a busy machine
// has, and nothing of them in the processor's caches.
type cold struct {
	tb     testing.TB
	server *Server
	rec    *sinks
	conns  []*serverConn
	fed    []*fed
	order  []int // in which the sessions of a connection are visited
	seq    uint64
	buf    []byte
	other  []byte // fills the caches
}

func newCold(tb testing.TB, conns, sessions int) *cold {
	w := &cold{tb: tb, rec: &sinks{}, order: rand.New(rand.NewPCG(1, 2)).Perm(sessions), other: make([]byte, 64<<20)}
	w.server = newServer(Config{Recorder: w.rec})
	for i := range conns {
		f := &fed{}
		c := newServerConn(w.server, f)
		c.r.silence, c.version = time.Second, Version
		w.conns, w.fed = append(w.conns, c), append(w.fed, f)
		for n := range sessions {
			o := open{alias: uint64(n + 1), session: fmt.Sprintf("match-%d-%d", i, n)}
			w.run(i, o.append(nil))
			c.opens.Wait()
		}
		w.buf = c.gather(w.buf[:0])
	}
	return w
}

// run has a connection read frames.
func (w *cold) run(conn int, frames []byte) {
	w.fed[conn].in = frames
	if err := w.conns[conn].read(); err != io.EOF {
		w.tb.Fatal(err)
	}
}

// evict takes everything out of the caches.
func (w *cold) evict() {
	for i := 0; i < len(w.other); i += 64 {
		w.other[i]++
	}
}

// frames are a round of chunks of one connection, one of each session.
func (w *cold) frames(dst []byte) []byte {
	body := make([]byte, 48)
	for _, n := range w.order {
		chunk := format.AppendChunk(nil, format.ChunkTicks, w.seq, body)
		dst = append(appendChunkHead(dst, uint64(n+1), len(chunk)), chunk...)
	}
	return dst
}

// chunks has every connection take a round of chunks.
func (w *cold) chunks(timed func(func())) {
	w.seq++
	frames := w.frames(nil)
	w.evict()
	timed(func() {
		for i := range w.conns {
			w.run(i, frames)
		}
	})
}

// acks has every session acknowledge, and gathers it: sessions of all
// connections become durable in turns of fifty.
func (w *cold) acks(timed func(func())) {
	w.evict()
	timed(func() {
		for from := 0; from < coldSessions; from += 50 {
			for c := range coldConns {
				for _, n := range w.order[from : from+50] {
					w.rec.of[c*coldSessions+n].Ack(w.seq, w.seq, format.Tick(10*w.seq))
				}
			}
		}
		for _, c := range w.conns {
			w.buf = c.gather(w.buf[:0])
			if len(w.buf) < coldSessions {
				w.tb.Fatal("no acks were gathered")
			}
		}
	})
}

func benchmarkCold(b *testing.B, chunks, acks bool) {
	w := newCold(b, coldConns, coldSessions)
	untimed := func(do func()) { do() }
	measure := func(on bool) func(func()) {
		if !on {
			return untimed
		}
		return func(do func()) {
			b.StartTimer()
			do()
			b.StopTimer()
		}
	}
	for range 3 {
		w.chunks(untimed)
		w.acks(untimed)
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.StopTimer()
	rounds := 0
	for n := 0; n < b.N; n += coldConns * coldSessions {
		w.chunks(measure(chunks))
		w.acks(measure(acks))
		rounds++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rounds*coldConns*coldSessions), "ns/visit")
}

// BenchmarkColdChunks measures what the server does for a chunk, and
// BenchmarkColdAcks for an acknowledgement, where ten thousand sessions are
// visited in turn and none is in the processor's caches. Give a -benchtime
// of a multiple of 10000x.
func BenchmarkColdChunks(b *testing.B) { benchmarkCold(b, true, false) }
func BenchmarkColdAcks(b *testing.B)   { benchmarkCold(b, false, true) }
