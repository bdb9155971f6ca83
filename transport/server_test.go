package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

// raw is a client that sends any bytes.
type raw struct {
	t *testing.T
	c *pipeEnd
	r *frameReader
}

// connectRaw opens a connection and, with greet, exchanges hello.
func (w *world) connectRaw(greet bool) *raw {
	w.t.Helper()
	c, err := w.dial(w.t.Context(), "raw")
	if err != nil {
		w.t.Fatal(err)
	}
	x := &raw{t: w.t, c: c.(*pipeEnd), r: newFrameReader(c)}
	if greet {
		x.send((&hello{low: 1, high: Version}).append(nil))
		if typ, _ := x.next(); typ != typeHelloOK {
			w.t.Fatalf("%s instead of hello-ok", frameName(typ))
		}
	}
	return x
}

func (x *raw) send(frames ...[]byte) {
	x.t.Helper()
	if _, err := x.c.Write(bytes.Join(frames, nil)); err != nil {
		x.t.Fatal(err)
	}
}

// next is the next frame but signs of life.
func (x *raw) next() (byte, []byte) {
	x.t.Helper()
	for {
		typ, body, err := x.r.next()
		if err != nil {
			x.t.Fatal(err)
		}
		if typ != typeAlive {
			return typ, body
		}
	}
}

// lastAck takes the acks in front of a frame, and gives the last of them.
func (x *raw) lastAck(before byte) ack {
	x.t.Helper()
	var last ack
	for {
		typ, body := x.next()
		if typ == before {
			return last
		}
		acks, err := parseAcks(nil, body)
		if typ != typeAck || err != nil {
			x.t.Fatalf("%s, %v", frameName(typ), err)
		}
		last = acks[0]
	}
}

// ended reads to the end and gives its code.
func (x *raw) ended() Code {
	x.t.Helper()
	for {
		_, _, err := x.r.next()
		var r *Refusal
		switch {
		case errors.As(err, &r):
			return r.Code
		case errors.Is(err, io.EOF):
			return CodeNone
		case err != nil:
			x.t.Fatal(err)
		}
	}
}

// rawOpen is an open frame of a small session.
func rawOpen(alias uint64, id string) []byte {
	meta := format.Metadata{Session: id, Width: format.Width16}
	o := open{alias: alias, session: id, epoch: 1, opening: format.AppendChunk(nil, format.ChunkMeta, 0, format.AppendMeta(nil, &meta))}
	return o.append(nil)
}

// rawTicks is a chunk frame with one empty tick; change, if set, spoils the
// chunk.
func rawTicks(alias, seq uint64, first format.Tick, change func([]byte) []byte) []byte {
	b := format.NewBatchBuilder(format.Width16, 0, first)
	b.EndTick()
	chunk := format.AppendChunk(nil, format.ChunkTicks, seq, b.AppendBody(nil))
	if change != nil {
		chunk = change(chunk)
	}
	return append(appendChunkHead(nil, alias, len(chunk)), chunk...)
}

// A malformed frame of any kind ends its connection and no other; the daemon
// lets go of what was open on it.
func TestMalformedFrames(t *testing.T) {
	opened := rawOpen(1, "raw")
	for _, c := range []struct {
		name  string
		greet bool
		send  []byte
	}{
		{"no hello", false, opened},
		{"a hello of later versions", false, (&hello{low: Version + 1, high: 9}).append(nil)},
		{"a text protocol", false, []byte("GET / HTTP/1.1\r\n" + strings.Repeat("X: y\r\n", 20) + "\r\n")},
		{"an unknown type", true, []byte{0x1f, 0}},
		{"a daemon's frame", true, opened0.append(nil, Version)},
		{"a second hello", true, (&hello{low: 1, high: 1}).append(nil)},
		{"a length over the limit", true, []byte{typeChunk, 0xff, 0xff, 0xff, 0xff, 0x0f}},
		{"a length of 2^64-1", true, append([]byte{typeChunk}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01)},
		{"a length over 64 bits", true, append([]byte{typeChunk}, bytes.Repeat([]byte{0xff}, 12)...)},
		{"an alias that was never opened", true, rawTicks(5, 1, 0, nil)},
		{"an alias twice", true, join(opened, rawOpen(1, "raw2"))},
		{"a descending alias", true, join(rawOpen(3, "raw"), rawOpen(2, "raw2"))},
		{"a chunk before opened", true, join(opened, rawTicks(1, 1, 0, nil))},
		{"a seal of nothing", true, (&seal{alias: 1}).append(nil)},
		{"a leave of nothing", true, appendLeave(nil, 1)},
		{"a frame after close", true, join(appendFrame(nil, typeClose), opened)},
		{"a body after close", true, []byte{typeClose, 1, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				client := w.connect()
				r, _ := client.Open(spec("good"))
				e := expected{first: 10}
				e.play(t, r, 10)
				opening := w.rec.holdOpen("raw")
				x := w.connectRaw(c.greet)
				x.send(c.send)
				want := CodeProtocol
				if strings.Contains(c.name, "later versions") {
					want = CodeVersion
				}
				if code := x.ended(); code != want {
					t.Errorf("ended with %v", code)
				}
				close(opening)
				e.play(t, r, 10)
				w.sealAndCompare(r, &e)
				w.close(client)
				time.Sleep(time.Second)
				if n := client.Stats().Connects; n != 1 || !w.rec.allDetached() {
					t.Errorf("%d connections; all detached: %v", n, w.rec.allDetached())
				}
			})
		})
	}
}

var opened0 = opened{alias: 1}

func join(frames ...[]byte) []byte { return bytes.Join(frames, nil) }

// A chunk that cannot be kept ends its session alone, with the right code.
func TestBadChunks(t *testing.T) {
	flip := func(b []byte) []byte { b[len(b)-1] ^= 1; return b }
	for _, c := range []struct {
		name  string
		frame []byte
		code  Code
	}{
		{"damaged", rawTicks(1, 1, 0, flip), CodeDamaged},
		{"torn", rawTicks(1, 1, 0, func(b []byte) []byte { return b[:len(b)-1] }), CodeDamaged},
		{"two in one", rawTicks(1, 1, 0, func(b []byte) []byte { return append(b, b...) }), CodeDamaged},
		{"empty", rawTicks(1, 1, 0, func([]byte) []byte { return nil }), CodeDamaged},
		{"without a sequence number", rawTicks(1, 0, 0, nil), CodeOrder},
		{"a jump of sequence numbers", rawTicks(1, 2, 0, nil), CodeOrder},
		{"a jump of ticks", rawTicks(1, 1, 5, nil), CodeOrder},
		{"metadata", rawTicks(1, 1, 0, func([]byte) []byte { return format.AppendChunk(nil, format.ChunkMeta, 1, nil) }), CodeOrder},
		{"an end", rawTicks(1, 1, 0, func([]byte) []byte { return format.AppendChunk(nil, format.ChunkEnd, 1, nil) }), CodeOrder},
		{"a critical chunk of a newer version", rawTicks(1, 1, 0, func([]byte) []byte { return format.AppendChunk(nil, 0x70, 1, nil) }), CodeVersion},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				x := w.connectRaw(true)
				x.send(rawOpen(1, "bad"), rawOpen(2, "good"))
				for range 2 {
					if typ, _ := x.next(); typ != typeOpened {
						t.Fatalf("%s instead of opened", frameName(typ))
					}
				}
				x.send(c.frame, rawTicks(1, 2, 1, nil), rawTicks(2, 1, 0, nil))
				typ, body := x.next()
				r, err := parseRefused(body)
				if typ != typeRefused || err != nil || r.alias != 1 || r.refusal.Code != c.code {
					t.Errorf("%s %+v, expected %v", frameName(typ), r, c.code)
				}
				if typ, body = x.next(); typ != typeAck {
					t.Errorf("%s instead of an ack for the other session", frameName(typ))
				} else if acks, err := parseAcks(nil, body); err != nil || acks[0].alias != 2 {
					t.Errorf("%+v, %v", acks, err)
				}
				x.send(appendFrame(nil, 0x99, []byte("optional")), appendFrame(nil, typeClose))
				for typ = 0; typ != typeClosed; {
					typ, _ = x.next()
				}
				x.c.End(CodeNone, "")
				time.Sleep(time.Second)
				if !w.rec.allDetached() {
					t.Error("not every session was detached")
				}
			})
		})
	}
}

// More than the window allows is refused; one chunk always goes.
func TestWindowEnforced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.window = 50
		w.rec.delay = time.Hour
		x := w.connectRaw(true)
		x.send(rawOpen(1, "raw"))
		x.next()
		x.send(rawTicks(1, 1, 0, nil), rawTicks(1, 2, 1, nil), rawTicks(1, 3, 2, nil), rawTicks(1, 4, 3, nil))
		for {
			typ, body := x.next()
			if typ == typeAck {
				continue
			}
			r, err := parseRefused(body)
			if typ != typeRefused || err != nil || r.refusal.Code != CodeWindow {
				t.Errorf("%s %+v", frameName(typ), r)
			}
			break
		}
		w.rec.mu.Lock()
		if n := w.rec.sessions["raw"].received; n != 2 {
			t.Errorf("%d chunks were received: 2 fit the window", n)
		}
		w.rec.mu.Unlock()
	})
}

// A client that never says hello, or falls silent, is given up.
func TestSilentClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		begun := time.Now()
		if code := w.connectRaw(false).ended(); code != CodeSilent || time.Since(begun) > 6*time.Second {
			t.Errorf("without hello: %v after %v", code, time.Since(begun))
		}
		begun = time.Now()
		if code := w.connectRaw(true).ended(); code != CodeSilent || time.Since(begun) > 11*time.Second {
			t.Errorf("after hello: %v after %v", code, time.Since(begun))
		}
		if n := w.server.Stats().Silent; n != 2 {
			t.Errorf("%d were counted", n)
		}
	})
}

// A client that does not read is cut off after the write timeout, and holds
// neither memory nor the Recorder meanwhile.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.onOpen = func(OpenRequest) error { return refuse(CodeLimit, "%s", strings.Repeat("x", MaxRefusalText)) }
		x := w.connectRaw(true)
		begun := time.Now()
		var err error
		sent := 0
		for alias := uint64(1); err == nil; alias++ {
			x.c.SetWriteDeadline(time.Now().Add(time.Minute))
			_, err = x.c.Write(rawOpen(alias, "raw"))
			sent++
		}
		var r *Refusal
		if !errors.As(err, &r) || r.Code != CodeSlow || time.Since(begun) > 11*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		if sent > 5000 {
			t.Errorf("%d opens were taken from a client that reads no answer", sent)
		}
		if n := w.server.Stats().Slow; n != 1 {
			t.Errorf("%d were counted", n)
		}
	})
}

// Opening that takes long delays no other session.
func TestSlowOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		release := make(chan struct{})
		slow := &slowRecorder{fakeRecorder: w.rec, release: release}
		w.mu.Lock()
		w.server = newServer(Config{Recorder: slow})
		w.mu.Unlock()
		c := w.connect()
		stuck, _ := c.Open(spec("slow"))
		r, _ := c.Open(spec("quick"))
		e, e2 := expected{first: 10}, expected{first: 10}
		e2.play(t, stuck, 100)
		e.play(t, r, 100)
		w.sealAndCompare(r, &e)
		close(release)
		w.sealAndCompare(stuck, &e2)
		w.close(c)
	})
}

type slowRecorder struct {
	*fakeRecorder
	release chan struct{}
}

func (s *slowRecorder) Open(r OpenRequest, sink Sink) (Session, OpenReply, error) {
	if r.Session == "slow" {
		<-s.release
	}
	return s.fakeRecorder.Open(r, sink)
}

// An Append that blocks holds the connection's reader, and nothing breaks
// when it goes on: no timeout takes a living daemon for a dead one.
func TestBlockedAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var gate sync.Mutex
		w.rec.onAppend = nil
		blocked := &blockingRecorder{fakeRecorder: w.rec, gate: &gate}
		w.mu.Lock()
		w.server = newServer(Config{Recorder: blocked})
		w.mu.Unlock()
		c, r, e := w.record()
		e.play(t, r, 10)
		time.Sleep(time.Second)
		gate.Lock()
		go func() {
			time.Sleep(20 * time.Second)
			gate.Unlock()
		}()
		for range 200 {
			e.play(t, r, 20)
			time.Sleep(100 * time.Millisecond)
		}
		w.sealAndCompare(r, &e)
		if n := c.Stats().Connects; n != 1 {
			t.Errorf("%d connections", n)
		}
		w.close(c)
	})
}

type blockingRecorder struct {
	*fakeRecorder
	gate *sync.Mutex
}

type blockingSession struct {
	Session
	gate *sync.Mutex
}

func (b *blockingRecorder) Open(r OpenRequest, sink Sink) (Session, OpenReply, error) {
	s, reply, err := b.fakeRecorder.Open(r, sink)
	return blockingSession{s, b.gate}, reply, err
}

func (b blockingSession) Append(chunk []byte) error {
	for !b.gate.TryLock() {
		time.Sleep(10 * time.Millisecond)
	}
	b.gate.Unlock()
	return b.Session.Append(chunk)
}

func TestAuthorise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.startDaemon(Config{Authorise: func(token []byte, _ net.Addr) error {
			if string(token) != "secret" {
				return errors.New("unknown token")
			}
			return nil
		}})
		var seen []byte
		w.rec.onOpen = func(r OpenRequest) error { seen = r.Token; return nil }
		c := newClient(&addresses{list: []string{"a:1"}}, w.cfg)
		c.dial = w.dial
		var r *Refusal
		if err := c.start(t.Context()); !errors.As(err, &r) || r.Code != CodeUnauthorised {
			t.Errorf("without a token: %v", err)
		}
		w.cfg.Token = []byte("secret")
		c = w.connect()
		rec, _ := c.Open(spec("match-1"))
		if err := rec.Seal(within(t, time.Minute)); err != nil || string(seen) != "secret" {
			t.Errorf("%v, the Recorder saw token %q", err, seen)
		}
		w.close(c)
	})
}

// The daemon limits the sessions of a connection; a place that becomes free
// is used.
func TestSessionLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.startDaemon(Config{MaxSessions: 1})
		c, r, _ := w.record()
		time.Sleep(time.Second)
		r2, _ := c.Open(spec("match-2"))
		e, e2 := expected{first: 10}, expected{first: 10}
		e.play(t, r, 10)
		e2.play(t, r2, 10)
		time.Sleep(time.Second)
		var refusal *Refusal
		if !errors.As(r2.Err(), &refusal) || refusal.Code != CodeUnavailable {
			t.Errorf("the second session: %v", r2.Err())
		}
		w.sealAndCompare(r, &e)
		w.sealAndCompare(r2, &e2)
		w.close(c)
	})
}

// A goodbye waits until everything is durable, and no longer than it may.
func TestCloseWaitsForDurable(t *testing.T) {
	for _, c := range []struct{ delay, took time.Duration }{{3 * time.Second, 3 * time.Second}, {time.Hour, 10 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.rec.delay = c.delay
			x := w.connectRaw(true)
			x.send(rawOpen(1, "raw"))
			x.next()
			begun := time.Now()
			x.send(rawTicks(1, 1, 0, nil), appendFrame(nil, typeClose))
			last := x.lastAck(typeClosed)
			if d := time.Since(begun); d < c.took || d > c.took+50*time.Millisecond {
				t.Errorf("closed after %v", d)
			}
			if durable := c.delay < time.Hour; (last.durable == 1) != durable {
				t.Errorf("the last ack is %+v", last)
			}
			if code := x.ended(); code != CodeNone {
				t.Errorf("ended with %v", code)
			}
		})
	}
}

// A Recorder's own errors never reach the client in words.
func TestInternalErrorStaysInside(t *testing.T) {
	r := refusalFor(errors.New("open /var/lib/secret: permission denied"))
	if r.Code != CodeUnavailable || strings.Contains(r.Text, "secret") {
		t.Errorf("%v", r)
	}
	if r := refusalFor(&format.OrderError{What: "tick", Want: 3, Got: 5}); r.Code != CodeOrder {
		t.Errorf("%v", r)
	}
}

// Whatever bytes come, only their own connection ends, everything is let go,
// and nothing panics.
func TestNoise(t *testing.T) {
	for seed := range uint64(150) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			rnd := rand.New(rand.NewPCG(seed, 9))
			x := w.connectRaw(true)
			valid := [][]byte{rawOpen(1, "raw"), rawTicks(1, 1, 0, nil), rawTicks(1, 2, 1, nil), (&seal{alias: 1}).append(nil),
				appendLeave(nil, 1), rawOpen(2, "raw2"), rawTicks(2, 1, 0, nil), appendFrame(nil, typeAlive), appendFrame(nil, typeClose)}
			for range 20 {
				b := bytes.Clone(valid[rnd.IntN(len(valid))])
				if rnd.IntN(3) == 0 {
					b[rnd.IntN(len(b))] = byte(rnd.Uint32())
				}
				if rnd.IntN(6) == 0 {
					b = b[:rnd.IntN(len(b))]
				}
				if _, err := x.c.Write(b); err != nil {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Minute)
			x.c.End(CodeNone, "")
			time.Sleep(time.Second)
			synctest.Wait()
			w.server.mu.Lock()
			conns := len(w.server.conns)
			w.server.mu.Unlock()
			if !w.rec.allDetached() || conns != 0 || w.server.Stats().Sessions != 0 {
				t.Errorf("seed %d: something is left: %+v", seed, w.server.Stats())
			}
		})
	}
}

// A goodbye behind an open that takes long waits for its answer.
func TestCloseWhileOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		release := make(chan struct{})
		w.mu.Lock()
		w.server = newServer(Config{Recorder: &slowRecorder{fakeRecorder: w.rec, release: release}})
		w.mu.Unlock()
		x := w.connectRaw(true)
		x.send(rawOpen(1, "slow"), appendFrame(nil, typeClose))
		time.AfterFunc(time.Second, func() { close(release) })
		for _, want := range []byte{typeOpened, typeClosed} {
			if typ, _ := x.next(); typ != want {
				t.Errorf("%s instead of %s", frameName(typ), frameName(want))
			}
		}
	})
}

// A goodbye behind a seal waits for its answer.
func TestCloseWhileSealing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.delay = 2 * time.Second
		x := w.connectRaw(true)
		x.send(rawOpen(1, "raw"))
		x.next()
		x.send((&seal{alias: 1}).append(nil), appendFrame(nil, typeClose))
		typ, _ := x.next()
		if typ == typeAck {
			typ, _ = x.next()
		}
		if typ != typeSealed {
			t.Errorf("%s instead of sealed", frameName(typ))
		}
	})
}

// The last ack comes in front of the sealed frame.
func TestAckBeforeSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		x := w.connectRaw(true)
		x.send(rawOpen(1, "raw"))
		x.next()
		x.send(rawTicks(1, 1, 0, nil), (&seal{alias: 1, totals: format.Totals{NextTick: 1, Ticks: 1}}).append(nil))
		last := x.lastAck(typeSealed)
		if last.durable != 1 || last.durableTick != 1 {
			t.Errorf("the last ack is %+v", last)
		}
	})
}

// A recording that was closed while the daemon was opening its session does
// not leave it attached.
func TestCloseRecordingWhileOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		release := make(chan struct{})
		w.mu.Lock()
		w.server = newServer(Config{Recorder: &slowRecorder{fakeRecorder: w.rec, release: release}})
		w.mu.Unlock()
		c := w.connect()
		r, _ := c.Open(spec("slow"))
		r.EndTick()
		if err := r.Close(within(t, time.Second)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close gives %v", err)
		}
		close(release)
		time.Sleep(time.Second)
		if n := w.server.Stats().Sessions; n != 0 || !w.rec.allDetached() {
			t.Errorf("%d sessions are attached", n)
		}
		w.close(c)
	})
}
