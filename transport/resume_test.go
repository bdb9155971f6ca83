package transport

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

// A recording that is closed before its first tick has begun its session for
// good: its producer can go on with it, whatever becomes of the daemon.
func TestCloseBeforeTheFirstTick(t *testing.T) {
	for _, whole := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.rec.delay = 500 * time.Millisecond
			c := w.connect()
			s := keyed("match-1")
			r, err := c.Open(s)
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			if whole {
				err = c.Close(within(t, time.Minute))
			} else {
				err = r.Close(within(t, time.Minute))
			}
			if d := time.Since(begun); err != nil || d < w.rec.delay || d > 2*w.rec.delay {
				t.Errorf("closed after %v, %v: the opening takes %v", d, err, w.rec.delay)
			}
			w.kill()
			c.Close(within(t, time.Second))
			w.startDaemon(Config{})
			time.Sleep(time.Second)
			c = w.connect()
			if r, err = c.Continue(within(t, time.Minute), s, 10); err != nil {
				t.Fatal(err)
			}
			e := expected{first: 10}
			e.play(t, r, 20)
			w.sealAndCompare(r, &e)
			w.close(c)
		})
	}
}

// Where no daemon answers, Close waits as long as it may, and says so.
func TestCloseWithoutDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.cfg.Background = true
		w.kill()
		c, r, _ := w.record()
		begun := time.Now()
		if err := r.Close(within(t, 5*time.Second)); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		w.close(c)
	})
}

// copySpool copies a folder of spool files.
func copySpool(t *testing.T, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// conflictAt waits until a recording is refused for a conflict at a tick.
func conflictAt(t *testing.T, r *Recording, tick format.Tick) {
	t.Helper()
	time.Sleep(time.Second)
	var refusal *Refusal
	if err := r.Err(); !errors.As(err, &refusal) || refusal.Code != CodeConflict || !refusal.HasTick || refusal.Tick != tick {
		t.Errorf("Err is %v, expected a conflict at tick %d", err, tick)
	}
}

// An older copy of a spool is refused by tick, however much was recorded into
// it before the daemon answers, and every time again. What the daemon has
// stays as it is, and the key alone goes on with it.
func TestOlderCopyOfSpool(t *testing.T) {
	for _, away := range []bool{false, true} {
		dir, older, fresh := t.TempDir(), t.TempDir(), t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			w := spoolWorld(t, dir)
			c := w.connect()
			s := keyed("match-1")
			r, _ := c.Open(s)
			e := expected{first: 10}
			e.play(t, r, 100)
			if err := r.Wait(within(t, time.Minute), e.next()-1); err != nil {
				t.Fatal(err)
			}
			w.abort(c)
			copySpool(t, dir, older)
			end := e.next()

			c = w.connect()
			if r, _ = c.Resume("match-1"); r == nil {
				t.Fatal("not resumed")
			}
			for range 5 {
				e.play(t, r, 20)
				time.Sleep(200 * time.Millisecond)
			}
			if r.Durable() != e.next() {
				t.Fatalf("durable up to tick %d of %d", r.Durable(), e.next())
			}
			w.abort(c)

			w.cfg.Spool = older
			for range 3 {
				if away {
					w.kill()
				}
				c = w.connect()
				if r, _ = c.Resume("match-1"); r == nil {
					t.Fatal("not resumed")
				}
				for range 10 { // as many chunks as the daemon has beyond, and more
					r.Step(9)
					r.EndTick()
					r.Flush()
				}
				if away {
					time.Sleep(time.Minute)
					w.startDaemon(Config{})
					time.Sleep(5 * time.Second)
				}
				conflictAt(t, r, end)
				w.abort(c)
			}

			w.cfg.Spool = fresh
			c = w.connect()
			r, err := c.Continue(within(t, time.Minute), s, e.next())
			if err != nil {
				t.Fatal(err)
			}
			e.play(t, r, 20)
			w.sealAndCompare(r, &e)
			w.close(c)
		})
	}
}

// A spool whose last chunk is not what the daemon has is refused by tick
// before anything is added.
func TestOtherLastChunk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := spoolWorld(t, dir)
		c, r, e := w.record()
		for range 3 {
			e.play(t, r, 5)
			time.Sleep(200 * time.Millisecond)
		}
		w.abort(c)
		path := filepath.Join(dir, "match-1.rply")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, last := chunkEnds(t, b)
		chunk, _, err := format.ParseChunk(b[last:])
		if err != nil {
			t.Fatal(err)
		}
		other := format.NewBatchBuilder(format.Width16, 4, 20)
		for range 5 {
			other.Step(8)
			other.EndTick()
		}
		if err := os.WriteFile(path, format.AppendChunk(b[:last], chunk.Type, chunk.Seq, other.AppendBody(nil)), 0o600); err != nil {
			t.Fatal(err)
		}
		c, r = w.resume()
		r.EndTick()
		r.Flush()
		conflictAt(t, r, e.next())
		f, err := w.rec.stored("match-1")
		if err != nil {
			t.Fatal(err)
		}
		e.compare(t, f)
		w.abort(c)
	})
}

// A daemon that is asked to open a session with a key that it knows, and has
// chunks that this recording never made, is left alone.
func TestOpenInsteadOfContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := keyed("match-1")
		c := w.connect()
		r, _ := c.Open(s)
		e := expected{first: 10}
		e.play(t, r, 20)
		w.close(c)
		time.Sleep(time.Second)
		c = w.connect()
		r, _ = c.Open(s)
		r.EndTick()
		r.Flush()
		r.EndTick()
		r.Flush()
		conflictAt(t, r, 10)
		f, err := w.rec.stored("match-1")
		if err != nil {
			t.Fatal(err)
		}
		e.compare(t, f)
		w.close(c)
	})
}

// A connection that breaks while the daemon seals: the client learns that the
// session is ending, and does not ask again.
func TestEndingAcrossConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.delay = 3 * time.Second
		c, r, e := w.record()
		e.play(t, r, 50)
		if err := r.Seal(within(t, 2*time.Second)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Seal gives %v", err)
		}
		w.cut()
		w.sealAndCompare(r, &e)
		if w.rec.seals != 1 || c.Stats().Connects != 2 {
			t.Errorf("%d seals, %d connections", w.rec.seals, c.Stats().Connects)
		}
		w.close(c)
	})
}

// A process that comes back while the daemon seals what the one before asked
// for: it learns so, and records nothing that would be lost.
func TestResumeEnding(t *testing.T) {
	for _, plays := range []bool{false, true} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			w := spoolWorld(t, dir)
			w.rec.delay = 10 * time.Second
			c, r, e := w.record()
			e.play(t, r, 50)
			if err := r.Seal(within(t, 2*time.Second)); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("Seal gives %v", err)
			}
			w.abort(c)
			c, r = w.resume()
			if plays {
				r.Step(1)
			}
			time.Sleep(time.Second)
			var refusal *Refusal
			switch err := r.Step(1); {
			case plays && (!errors.As(err, &refusal) || refusal.Code != CodeEnded || refusal.Tick != e.next()):
				t.Errorf("Step gives %v, expected that the session ended before tick %d", err, e.next())
			case !plays && !errors.Is(err, ErrSealed):
				t.Errorf("Step gives %v", err)
			}
			if !plays {
				w.sealAndCompare(r, &e)
			}
			w.close(c)
		})
	}
}

// oldClient passes frames on, but its hello asks for version 1 alone.
type oldClient struct {
	carrier
	greeted bool
}

func (o *oldClient) Write(b []byte) (int, error) {
	if !o.greeted {
		o.greeted = true
		b = append([]byte(nil), b...)
		b[3] = 1 // type, length, lowest, highest
	}
	return o.carrier.Write(b)
}

// Both ends still speak version 1.
func TestVersion1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := newClient(&addresses{list: []string{"a:1"}}, w.cfg)
		c.dial = func(ctx context.Context, addr string) (carrier, error) {
			p, err := w.dial(ctx, addr)
			return &oldClient{carrier: p}, err
		}
		if err := c.start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if v := c.link.ok.version; v != 1 {
			t.Fatalf("the daemon chose version %d", v)
		}
		empty, _ := c.Open(spec("empty"))
		if err := empty.Close(within(t, time.Minute)); err != nil {
			t.Error(err)
		}
		r, _ := c.Open(spec("match-1"))
		e := expected{first: 10}
		e.play(t, r, 100)
		w.sealAndCompare(r, &e)
		w.close(c)

		x := w.connectRaw(false)
		x.send((&hello{low: 1, high: 1}).append(nil), (&list{number: 1, most: 1}).append(nil))
		if code := x.ended(); code != CodeProtocol {
			t.Errorf("a list frame in version 1 ends with %v", code)
		}
	})
}

// What is said of a silent peer is how long nothing came, not how long it
// might have been.
func TestSilenceIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		x := w.connectRaw(false)
		var r *Refusal
		if _, _, err := x.r.next(); err == nil {
			_, _, err = x.r.next()
			if !errors.As(err, &r) || r.Code != CodeSilent || !strings.Contains(r.Text, "for 5s") {
				t.Errorf("without hello: %v", err)
			}
		}
		x = w.connectRaw(true)
		time.Sleep(4 * time.Second)
		x.send(appendFrame(nil, typeAlive))
		begun := time.Now()
		for {
			if _, _, err := x.r.next(); err != nil {
				if !errors.As(err, &r) || r.Code != CodeSilent || !strings.Contains(r.Text, "for 10s") || time.Since(begun) != 10*time.Second {
					t.Errorf("after hello: %v after %v", err, time.Since(begun))
				}
				return
			}
		}
	})
}

// The first ack of a session may come right behind opened, while the client
// that resumed it still tells its spool: it counts, for there is no other.
func TestAckBehindOpened(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := spoolWorld(t, dir)
		w.rec.delay = time.Hour
		c := w.connect()
		if _, err := c.Open(spec("match-1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.abort(c)
		w.kill()
		w.rec.mu.Lock()
		w.rec.delay = time.Microsecond // so that both are in one write
		w.rec.mu.Unlock()
		w.startDaemon(Config{})
		c, r := w.resume()
		if err := r.Close(within(t, time.Minute)); err != nil {
			t.Errorf("a session whose opening is on disk cannot be closed: %v", err)
		}
		w.close(c)
	})
}
