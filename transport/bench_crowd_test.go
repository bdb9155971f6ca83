//go:build unix

package transport

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"reprise/format"
)

// echo is a carrier with a daemon at its end that keeps nothing: every tenth
// of a linger it confirms the chunks that came.
type echo struct {
	mu     sync.Mutex
	told   *sync.Cond
	out    []byte
	acks   []ack
	ended  bool
	chunks atomic.Int64
	bytes  atomic.Int64
}

func newEcho() *echo {
	e := &echo{}
	e.told = sync.NewCond(&e.mu)
	return e
}

func (e *echo) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bytes.Add(int64(len(b)))
	for rest := b; len(rest) > 0; {
		typ, length, head, err := frameHead(rest)
		if err != nil {
			return 0, err
		}
		e.take(typ, rest[head:head+length])
		rest = rest[head+length:]
	}
	return len(b), nil
}

// take answers a frame; the lock is held.
func (e *echo) take(typ byte, body []byte) {
	switch typ {
	case typeHello:
		ok := helloOK{version: Version, heartbeat: time.Minute, frame: MaxFrame, sessions: 1 << 20}
		e.say(ok.append(nil))
	case typeOpen:
		o, _ := parseOpen(body)
		answer := opened{alias: o.alias, window: 1 << 20, safe: true}
		e.say(answer.append(nil, Version))
	case typeChunk:
		alias, chunk, _ := parseChunk(body)
		seq, _ := binary.Uvarint(chunk[10:])
		e.acks = append(e.acks, ack{alias: alias, received: seq, durable: seq})
		e.chunks.Add(1)
	}
}

func (e *echo) say(b []byte) {
	e.out = append(e.out, b...)
	e.told.Signal()
}

// confirm says what has come since the last time.
func (e *echo) confirm() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for acks := e.acks; len(acks) > 0; {
		n := min(len(acks), MaxAcks)
		e.say(appendAcks(nil, acks[:n]))
		acks = acks[n:]
	}
	e.acks = e.acks[:0]
}

func (e *echo) Read(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.out) == 0 {
		if e.ended {
			return 0, io.EOF
		}
		e.told.Wait()
	}
	n := copy(b, e.out)
	e.out = append(e.out[:0], e.out[n:]...)
	return n, nil
}

func (e *echo) SetReadDeadline(time.Time) error  { return nil }
func (e *echo) SetWriteDeadline(time.Time) error { return nil }
func (e *echo) RemoteAddr() net.Addr             { return &net.UDPAddr{} }

func (e *echo) End(Code, string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	e.told.Broadcast()
}

// crowd is many recordings of a few clients, each client with an echo.
type crowd struct {
	clients []*Client
	echoes  []*echo
	all     []*Recording
}

func newCrowd(b *testing.B, clients, recordings, hashBytes int) *crowd {
	w := &crowd{}
	for i := range clients {
		e := newEcho()
		c := newClient(&addresses{list: []string{"a:1"}}, ClientConfig{DeadAfter: time.Hour})
		c.dial = func(context.Context, string) (carrier, error) { return e, nil }
		if err := c.start(context.Background()); err != nil {
			b.Fatal(err)
		}
		for n := i; n < recordings; n += clients {
			s := benchSpec(fmt.Sprint("s", n))
			s.Meta.HashBytes = hashBytes
			r, err := c.Open(s)
			if err != nil {
				b.Fatal(err)
			}
			w.all = append(w.all, r)
		}
		w.clients, w.echoes = append(w.clients, c), append(w.echoes, e)
	}
	return w
}

func (w *crowd) confirm() {
	for _, e := range w.echoes {
		e.confirm()
	}
}

func (w *crowd) sent() (chunks, bytes int64) {
	for _, e := range w.echoes {
		chunks += e.chunks.Load()
		bytes += e.bytes.Load()
	}
	return chunks, bytes
}

func (w *crowd) close() {
	for _, c := range w.clients {
		c.stop()
		c.workers.Wait()
	}
}

// processorTime is what the process has used of processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// play runs every recording at a rate, spread over the milliseconds of a
// tick, and gives the time inside Step, EndTick and Hash.
func (w *crowd) play(rate int, most time.Duration, hash []byte) (ticks int, inside time.Duration) {
	interval := time.Second / time.Duration(rate)
	phases := int(interval / time.Millisecond)
	begun := time.Now()
	for slot := 0; ; slot++ {
		at := begun.Add(time.Duration(slot/phases)*interval + time.Duration(slot%phases)*time.Millisecond)
		if at.Sub(begun) > most {
			return ticks, inside
		}
		time.Sleep(time.Until(at))
		start := time.Now()
		for i := slot % phases; i < len(w.all); i += phases {
			r := w.all[i]
			r.Step(1, format.Int(int64(slot)), format.Int(17), format.Int(-40000))
			r.EndTick()
			if hash != nil {
				r.Hash(r.NextTick()-1, hash)
			}
			ticks++
		}
		inside += time.Since(start)
		if slot%10 == 9 {
			w.confirm()
		}
	}
}

// BenchmarkCrowd runs ten thousand recordings of eight clients, so that each
// finds nothing of it in the processor's caches, against a daemon that only
// confirms. ns/tick is the whole process with its pacing and that daemon,
// ns/inside what the game waits for.
func BenchmarkCrowd(b *testing.B) {
	for _, c := range []struct{ rate, hashBytes int }{{20, 0}, {30, 0}, {20, 8}} {
		b.Run(fmt.Sprintf("%dHz-hash%d", c.rate, c.hashBytes), func(b *testing.B) {
			var hash []byte
			if c.hashBytes > 0 {
				hash = make([]byte, c.hashBytes)
			}
			w := newCrowd(b, 8, 10_000, c.hashBytes)
			defer w.close()
			for range b.N {
				w.crowdRun(b, c.rate, hash)
			}
		})
	}
}

func (w *crowd) crowdRun(b *testing.B, rate int, hash []byte) {
	w.play(rate, time.Second, nil)
	chunks, bytes := w.sent()
	used := processorTime()
	ticks, inside := w.play(rate, 4*time.Second, hash)
	used = processorTime() - used
	toldChunks, toldBytes := w.sent()
	chunks, bytes = toldChunks-chunks, toldBytes-bytes
	b.ReportMetric(float64(used.Nanoseconds())/float64(ticks), "ns/tick")
	b.ReportMetric(float64(inside.Nanoseconds())/float64(ticks), "ns/inside")
	b.ReportMetric(float64(ticks)/float64(chunks), "ticks/chunk")
	b.ReportMetric(float64(chunks)/4, "chunks/s")
	b.ReportMetric(float64(bytes)/float64(ticks), "B/tick")
}
