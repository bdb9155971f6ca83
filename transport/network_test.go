package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"

	"reprise/format"
)

// dialTimes notes when a client tried an address, in a world without daemon.
func dialTimes(t *testing.T, w *world, cfg ClientConfig, d time.Duration) (times []time.Duration) {
	begun := time.Now()
	var mu sync.Mutex
	cfg.Background = true
	c := newClient(&addresses{list: []string{"a:1"}}, cfg)
	c.dial = func(context.Context, string) (carrier, error) {
		mu.Lock()
		defer mu.Unlock()
		times = append(times, time.Since(begun))
		return nil, errors.New("connection refused")
	}
	if err := c.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(d)
	w.close(c)
	return times
}

// The pauses between tries double up to a bound, and each is random between
// half of that and all of it: clients of a daemon that is away do not all
// come back at once.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cfg := ClientConfig{BackoffMin: 100 * time.Millisecond, BackoffMax: 4 * time.Second}
		first := dialTimes(t, w, cfg, 10*time.Minute)
		last, most := time.Duration(0), cfg.BackoffMin
		for i, at := range first {
			if pause := at - last; pause < most/2 || pause > most {
				t.Errorf("try %d after a pause of %v: from %v to %v", i, pause, most/2, most)
			}
			last, most = at, min(2*most, cfg.BackoffMax)
		}
		if n := len(first); n < 150 || n > 310 {
			t.Errorf("%d tries in ten minutes", n)
		}
		different := 0
		for i, at := range dialTimes(t, w, cfg, 10*time.Minute) {
			if i < len(first) && at != first[i] {
				different++
			}
		}
		if different < 100 {
			t.Errorf("only %d tries of a second client came at another time", different)
		}
	})
}

// A connection that proved good starts the pauses anew; one that ends at once
// does not.
func TestBackoffAfterGoodConnection(t *testing.T) {
	for _, good := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			c := w.connect()
			for n := range 12 {
				if good {
					time.Sleep(4 * time.Second)
				}
				w.cut()
				synctest.Wait()
				begun, before := time.Now(), c.Stats().Connects
				for c.Stats().Connects == before {
					time.Sleep(time.Millisecond)
				}
				switch d := time.Since(begun); {
				case good && d > 2*c.cfg.BackoffMin:
					t.Fatalf("connected again after %v, though the connection was good", d)
				case !good && n == 11 && d < c.cfg.BackoffMax/2:
					t.Errorf("connected again after %v, though twelve connections ended at once", d)
				}
			}
			w.close(c)
		})
	}
}

// With several addresses the next one is tried at once where one does not
// answer, and the one that works stays the first.
func TestSeveralAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var mu sync.Mutex
		down, tried := map[string]bool{"a:1": true}, []string{}
		c := newClient(&addresses{list: []string{"a:1", "b:2", "c:3"}}, w.cfg)
		c.dial = func(ctx context.Context, addr string) (carrier, error) {
			mu.Lock()
			tried = append(tried, addr)
			refused := down[addr]
			mu.Unlock()
			if refused {
				return nil, errors.New("connection refused")
			}
			return w.dial(ctx, addr)
		}
		took := func(want ...string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(tried, want) {
				t.Errorf("tried %v, expected %v", tried, want)
			}
			tried = nil
		}
		begun := time.Now()
		if err := c.start(t.Context()); err != nil || time.Since(begun) > time.Millisecond {
			t.Fatalf("%v after %v", err, time.Since(begun))
		}
		took("a:1", "b:2")
		r, _ := c.Open(spec("match-1"))
		e := expected{first: 10}
		e.play(t, r, 50)
		time.Sleep(5 * time.Second)
		w.cut()
		time.Sleep(time.Second)
		took("b:2")
		mu.Lock()
		down["b:2"] = true
		mu.Unlock()
		time.Sleep(5 * time.Second)
		w.cut()
		e.play(t, r, 50)
		time.Sleep(time.Second)
		took("b:2", "c:3")
		w.sealAndCompare(r, &e)
		w.close(c)
	})
}

// A keyframe of 64 MiB over a link that needs five seconds for it: at 60 Hz
// no tick is late. Parts that follow each other at most fill one write.
func TestKeyframeOnSlowLink(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: it moves 64 MiB")
	}
	t.Parallel()
	for _, c := range []struct{ size, rate int }{{64 << 20, 13 << 20}, {4 << 20, 1 << 20}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.rate = c.rate
			w.rec.delay, w.rec.window = 10*time.Millisecond, 4<<20
			cl := w.connect()
			r, _ := cl.Open(spec("match-1"))
			e := expected{first: 10}
			e.play(t, r, 6)
			if err := r.Keyframe(16, make([]byte, c.size)); err != nil {
				t.Fatal(err)
			}
			// The linger, a part in front, what the link holds, the daemon's
			// delay twice, and the writes.
			bound := 100*time.Millisecond + time.Duration(format.MaxKeyframePart+pipeSize)*time.Second/time.Duration(c.rate) + 40*time.Millisecond
			begun := map[format.Tick]time.Time{}
			late, done := 0, r.Durable()
			for range 60 * 6 {
				e.play(t, r, 1)
				begun[e.next()-1] = time.Now()
				time.Sleep(time.Second / 60)
				for d := r.Durable(); done < d; done++ {
					if at, ok := begun[done]; ok && time.Since(at) > bound+time.Second/60 {
						late++
					}
				}
			}
			if late > 0 || done < e.next()-20 {
				t.Errorf("%d of %d ticks were later than %v; durable up to %d of %d", late, len(begun), bound, done, e.next())
			}
			f := w.sealAndCompare(r, &e)
			if len(f.Summary().Keyframes) != 1 {
				t.Errorf("%d keyframes", len(f.Summary().Keyframes))
			}
			w.close(cl)
		})
	}
}

// The socket of a connection dies with its address: the client goes on from
// another one, and nothing is lost.
func TestSocketLost(t *testing.T) {
	t.Parallel()
	rec, k := newFakeRecorder(), keypair(t)
	s := listen(t, k, "127.0.0.1:0", Config{Recorder: rec})
	var mu sync.Mutex
	var sockets []net.PacketConn
	c := dialServer(t, s.Addr().String(), ClientConfig{TLS: trust(t, k), DeadAfter: 600 * time.Millisecond, Socket: func(daemon *net.UDPAddr) (net.PacketConn, error) {
		p, err := udpSocket(daemon)
		mu.Lock()
		defer mu.Unlock()
		sockets = append(sockets, p)
		return p, err
	}})
	r, err := c.Open(spec("match-1"))
	if err != nil {
		t.Fatal(err)
	}
	x := &rig{t: t, rec: rec, s: s, c: c, r: r, e: expected{first: 10}}
	for n := range 2 {
		x.play(50 * time.Millisecond)
		x.durable()
		mu.Lock()
		sockets[n].Close()
		mu.Unlock()
		x.play(50 * time.Millisecond)
		x.durable()
		eventually(t, "a new connection", func() bool { return c.Stats().Connects >= n+2 })
	}
	// The daemon still has the old connections: QUIC lets none go within 5 s.
	x.seal()
}

// firstPackets makes the first packets of so many handshakes, each with its
// own connection id.
func firstPackets(t testing.TB, cfg *tls.Config, n int) (packets [][]byte) {
	t.Helper()
	cfg = cfg.Clone()
	cfg.CurvePreferences = []tls.CurveID{tls.X25519}
	for range n {
		sink := &sinkConn{packets: make(chan []byte, 1), closed: make(chan struct{})}
		q := &quic.Transport{Conn: sink}
		ctx, cancel := context.WithCancel(context.Background())
		var dial sync.WaitGroup
		dial.Go(func() {
			if _, err := q.Dial(ctx, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}, cfg, clientQUIC(time.Minute, time.Minute)); err == nil {
				t.Error("connected to nobody")
			}
		})
		packets = append(packets, <-sink.packets)
		cancel()
		dial.Wait()
		sink.Close()
		q.Close()
	}
	return packets
}

// sinkConn is a socket that takes what is sent.
type sinkConn struct {
	packets chan []byte
	once    sync.Once
	closed  chan struct{}
}

func (s *sinkConn) ReadFrom([]byte) (int, net.Addr, error) {
	<-s.closed
	return 0, nil, net.ErrClosed
}

func (s *sinkConn) WriteTo(b []byte, _ net.Addr) (int, error) {
	select {
	case s.packets <- slices.Clone(b):
	default:
	}
	return len(b), nil
}

func (s *sinkConn) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func (s *sinkConn) LocalAddr() net.Addr              { return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8} }
func (s *sinkConn) SetDeadline(time.Time) error      { return nil }
func (s *sinkConn) SetReadDeadline(time.Time) error  { return nil }
func (s *sinkConn) SetWriteDeadline(time.Time) error { return nil }

// isRetry tells whether a packet is a Retry of QUIC version 1.
func isRetry(b []byte) bool { return len(b) > 0 && b[0]&0xf0 == 0xf0 }

// knock sends a first packet from a port of its own, and tells whether the
// answer is a demand to prove the address.
func knock(t testing.TB, daemon net.Addr, packet []byte) bool {
	t.Helper()
	c, err := net.DialUDP("udp4", nil, daemon.(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := make([]byte, 2048)
	for range 20 { // a packet may be lost on a busy machine
		if _, err := c.Write(packet); err != nil {
			t.Fatal(err)
		}
		c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		if n, err := c.Read(b); err == nil {
			return isRetry(b[:n])
		}
	}
	t.Fatal("no answer")
	return false
}

// Two thousand handshakes that come to nothing, each from another port: from
// an eighth of the cap on, each is told to prove its address, which costs the
// daemon no memory. Who proves it gets in meanwhile, and sessions go on.
func TestAddressValidation(t *testing.T) {
	t.Parallel()
	const most, flood = 16, 2000
	rec, k := newFakeRecorder(), keypair(t)
	s := listen(t, k, "127.0.0.1:0", Config{Recorder: rec, MaxHandshakes: most, HelloTimeout: 10 * time.Minute})
	c := dialServer(t, s.Addr().String(), ClientConfig{TLS: trust(t, k)})
	r, err := c.Open(spec("match-1"))
	if err != nil {
		t.Fatal(err)
	}
	x := &rig{t: t, rec: rec, s: s, c: c, r: r, e: expected{first: 10}}
	proofs := 0
	for n, packet := range firstPackets(t, trust(t, k), flood) {
		if knock(t, s.Addr(), packet) {
			proofs++
		}
		if h := s.Stats().Handshakes; h > most/8 {
			t.Fatalf("%d half-open handshakes after %d packets: they are to prove their address from %d on", h, n, most/8)
		}
		if n%20 == 0 {
			x.e.play(t, r, 1)
		}
		if n == flood/2 {
			late := dialServer(t, s.Addr().String(), ClientConfig{TLS: trust(t, k)})
			if err := late.Close(within(t, 5*time.Second)); err != nil {
				t.Error(err)
			}
		}
	}
	if proofs != flood-most/8 {
		t.Errorf("%d of %d were told to prove their address, expected all but %d", proofs, flood, most/8)
	}
	x.durable()
	if n := c.Stats().Connects; n != 1 {
		t.Errorf("%d connections", n)
	}
	if err := c.Close(within(t, 5*time.Second)); err != nil {
		t.Error(err)
	}
}

// BenchmarkAddressProof measures how many first packets a second a daemon
// answers with a demand to prove the address, each from another port.
func BenchmarkAddressProof(b *testing.B) {
	k := keypair(b)
	s := listen(b, k, "127.0.0.1:0", Config{Recorder: &discard{}, MaxHandshakes: 1})
	packets := firstPackets(b, trust(b, k), 256)
	b.ResetTimer()
	for n := range b.N {
		if !knock(b, s.Addr(), packets[n%len(packets)]) {
			b.Fatal("no proof was asked for")
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "handshakes/s")
}

// BenchmarkHandshake measures whole handshakes, each with a proof of the
// address, on both ends.
func BenchmarkHandshake(b *testing.B) {
	k := keypair(b)
	s := listen(b, k, "127.0.0.1:0", Config{Recorder: &discard{}, MaxHandshakes: 7})
	for range b.N {
		c := dialServer(b, s.Addr().String(), ClientConfig{TLS: trust(b, k)})
		c.Close(context.Background())
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "handshakes/s")
}

// The same match, over networks and daemons that fail in different ways, has
// the same content: the order of steps is the game's, and never depends on
// how or when they arrive.
func TestSameDigest(t *testing.T) {
	t.Parallel()
	digests := map[format.Digest]int{}
	for seed := range uint64(10) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Background = true
			w.cfg.ChunkBytes = 256 << (seed % 5)
			w.rec.delay = time.Duration(seed) * 40 * time.Millisecond
			if seed%2 == 0 {
				w.cfg.Spool = dir
			}
			c := w.connect()
			s := spec("match-1")
			s.Meta.StartedAt = 1
			r, _ := c.Open(s)
			e := expected{first: 10}
			for n := range uint64(20) {
				e.play(t, r, 30)
				time.Sleep(time.Duration(seed*37%200) * time.Millisecond)
				switch (n*7 + seed) % 11 {
				case 1:
					w.cut()
				case 2:
					w.kill()
					w.startDaemon(Config{})
				case 3:
					if p := w.newest(); p != nil {
						p.freeze()
					}
				}
			}
			w.sealAndCompare(r, &e)
			digest, _, _ := r.Sealed()
			digests[digest]++
			w.close(c)
		})
	}
	if len(digests) != 1 {
		t.Errorf("ten runs gave %d digests", len(digests))
	}
}
