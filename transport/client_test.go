package transport

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

func TestRecordAndSeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.connect()
		r, err := c.Open(spec("match-1"))
		if err != nil {
			t.Fatal(err)
		}
		e := expected{first: 10}
		e.play(t, r, 1000)
		for tick := e.first; tick < e.next(); tick += 3 {
			e.hash(t, r, tick)
		}
		f := w.sealAndCompare(r, &e)
		if !f.Summary().Complete() {
			t.Error("the sealed file is not complete")
		}
		if err := r.Step(1); !errors.Is(err, ErrSealed) {
			t.Errorf("Step after Seal: %v", err)
		}
		if err := r.Seal(context.Background()); err != nil {
			t.Errorf("second Seal: %v", err)
		}
		if r.Durable() != e.next() || r.Err() != nil {
			t.Errorf("durable %d, error %v", r.Durable(), r.Err())
		}
		w.close(c)
		if m := c.Stats().Memory; m != 0 {
			t.Errorf("%d bytes are still held", m)
		}
	})
}

// A tick is sent after the linger, whether or not another one follows, and is
// durable soon after.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, r, _ := w.record()
		synctest.Wait()
		time.Sleep(time.Second)
		start := time.Now()
		r.Step(7)
		r.EndTick()
		if err := r.Wait(within(t, time.Minute), 10); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d < 100*time.Millisecond || d > 115*time.Millisecond {
			t.Errorf("durable after %v: the linger is 100 ms, the daemon takes 5 ms, two writes 2 ms each", d)
		}
		w.close(c)
	})
}

// A daemon that is dead, but whose path only swallows packets, is noticed
// within the stated time, and nothing is lost or doubled.
func TestDeadDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, r, e := w.record()
		e.play(t, r, 100)
		time.Sleep(time.Second)
		w.newest().freeze()
		frozen := time.Now()
		e.play(t, r, 100)
		if err := r.Wait(within(t, time.Minute), e.next()-1); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(frozen); d > 3500*time.Millisecond {
			t.Errorf("durable again after %v: a dead daemon must be noticed within 3 s", d)
		}
		if n := c.Stats().Connects; n != 2 {
			t.Errorf("%d connections, expected 2", n)
		}
		w.sealAndCompare(r, &e)
		w.close(c)
	})
}

// A quiet session keeps its connection: both sides give signs of life.
func TestQuietConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, r, _ := w.record()
		time.Sleep(time.Hour)
		if n := c.Stats().Connects; n != 1 || c.Err() != nil {
			t.Errorf("%d connections, error %v", n, c.Err())
		}
		e := expected{first: 10}
		e.play(t, r, 1)
		w.sealAndCompare(r, &e)
		w.close(c)
	})
}

// A killed daemon loses what was not durable; the client sends it again.
func TestDaemonRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.delay = 500 * time.Millisecond
		c, r, e := w.record()
		for range 10 {
			e.play(t, r, 30)
			time.Sleep(time.Second / 3)
		}
		e.play(t, r, 30)
		time.Sleep(150 * time.Millisecond) // sent, and not durable
		durable := r.Durable()
		w.kill()
		e.play(t, r, 100)
		time.Sleep(2 * time.Second)
		if c.Err() == nil {
			t.Error("the client does not say that the daemon is gone")
		}
		if errs := w.reported(); len(errs) == 0 || !strings.HasPrefix(errs[0].Error(), "connection lost, reconnecting: ") || errors.Unwrap(errs[0]) == nil {
			t.Errorf("reported %v, want first that the connection is lost", errs)
		}
		w.startDaemon(Config{})
		if err := r.Wait(within(t, time.Minute), e.next()-1); err != nil {
			t.Fatal(err)
		}
		if durable >= e.next()-100 {
			t.Errorf("tick %d was durable at the crash: the test proves nothing", durable)
		}
		w.sealAndCompare(r, &e)
		w.close(c)
	})
}

// Recording begins before the daemon is there.
func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.kill()
		w.cfg.Background = true
		c := w.connect()
		r, err := c.Open(spec("match-1"))
		if err != nil {
			t.Fatal(err)
		}
		e := expected{first: 10}
		e.play(t, r, 500)
		time.Sleep(time.Minute)
		if c.Err() == nil {
			t.Error("no error though nothing answers")
		}
		w.startDaemon(Config{})
		w.sealAndCompare(r, &e)
		w.close(c)
		if n := w.dials; n < 10 || n > 60 {
			t.Errorf("%d dials in a minute", n)
		}
	})
}

// Without Background, Dial tries each address once.
func TestDialFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.kill()
		c := newClient(&addresses{list: []string{"a:1", "b:2"}}, w.cfg)
		c.dial = w.dial
		err := c.start(context.Background())
		if err == nil || w.dials != 2 {
			t.Errorf("%v after %d dials", err, w.dials)
		}
	})
}

func TestRefusedSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.onOpen = func(r OpenRequest) error {
			if r.Session == "taken" {
				return refuse(CodeExists, "")
			}
			return nil
		}
		w.rec.onAppend = func(session string, c format.Chunk) error {
			if session == "bad" && c.Seq == 3 {
				return format.ErrCorrupt
			}
			return nil
		}
		c := w.connect()
		var rs []*Recording
		for _, id := range []string{"good", "taken", "bad"} {
			r, err := c.Open(spec(id))
			if err != nil {
				t.Fatal(err)
			}
			rs = append(rs, r)
		}
		e := expected{first: 10}
		for range 50 {
			e.play(t, rs[0], 5)
			for _, r := range rs[1:] {
				r.Step(1)
				r.EndTick()
			}
			time.Sleep(50 * time.Millisecond)
		}
		for i, code := range []Code{CodeExists, CodeDamaged} {
			var refusal *Refusal
			if err := rs[i+1].Err(); !errors.As(err, &refusal) || refusal.Code != code {
				t.Errorf("%s: %v, expected code %v", rs[i+1].ID(), err, code)
			}
			if err := rs[i+1].EndTick(); !errors.As(err, &refusal) {
				t.Errorf("%s: EndTick gives %v", rs[i+1].ID(), err)
			}
			if err := rs[i+1].Seal(t.Context()); !errors.As(err, &refusal) {
				t.Errorf("%s: Seal gives %v", rs[i+1].ID(), err)
			}
		}
		w.sealAndCompare(rs[0], &e)
		if n := c.Stats().Connects; n != 1 {
			t.Errorf("%d connections: a refusal must not end one", n)
		}
		if len(w.reported()) != 2 {
			t.Errorf("reported: %v", w.reported())
		}
		w.close(c)
		if !w.rec.allDetached() {
			t.Error("not every session was detached")
		}
	})
}

// A refusal that is temporary is tried again, and nothing is lost.
func TestTemporaryRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		full := true
		w.rec.onAppend = func(string, format.Chunk) error {
			if full {
				return refuse(CodeStorage, "disk full")
			}
			return nil
		}
		c := w.connect()
		var others []*Recording
		for i := range 20 {
			r, _ := c.Open(spec(fmt.Sprintf("other-%d", i)))
			r.EndTick()
			others = append(others, r)
		}
		r, _ := c.Open(spec("match-1"))
		e := expected{first: 10}
		e.play(t, r, 100)
		time.Sleep(20 * time.Second)
		var refusal *Refusal
		if !errors.As(r.Err(), &refusal) || refusal.Code != CodeStorage || !refusal.Temporary() {
			t.Errorf("Err is %v", r.Err())
		}
		w.rec.mu.Lock()
		full = false
		w.rec.mu.Unlock()
		e.play(t, r, 100)
		if err := r.Wait(within(t, 10*time.Second), e.next()-1); err != nil {
			t.Fatal(err)
		}
		if r.Err() != nil {
			t.Errorf("Err is %v after all went well", r.Err())
		}
		for _, r := range others {
			if err := r.Wait(within(t, 10*time.Second), 10); err != nil {
				t.Errorf("%s: %v", r.ID(), err)
			}
		}
		w.sealAndCompare(r, &e)
		w.close(c)
	})
}

// The client never sends more than the window, and the daemon refuses one
// that does.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.window = 40 << 10
		w.rec.delay = 50 * time.Millisecond
		c := w.connect()
		small, _ := c.Open(spec("small"))
		e := expected{first: 10}
		e.play(t, small, 20_000)
		w.sealAndCompare(small, &e)
		w.close(c)
		if n := w.server.Stats().Refused; n != 0 {
			t.Errorf("%d sessions refused", n)
		}
	})
}

// What outgrows its bound becomes one declared gap, which is counted and
// reported; the rest is whole.
func TestMemoryBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.cfg.SessionMemory = 64 << 10
		c, r, e := w.record()
		e.play(t, r, 100)
		r.Wait(within(t, time.Minute), e.next()-1)
		w.kill()
		e.play(t, r, 10_000)
		if m := r.Stats().Memory; m > 64<<10+20<<10 {
			t.Errorf("%d bytes are held", m)
		}
		w.startDaemon(Config{})
		time.Sleep(10 * time.Second)
		e.play(t, r, 100)
		f := w.sealAndCompare(r, &e)
		missing := uint64(0)
		for _, x := range e.ticks {
			if x.missing {
				missing++
			}
		}
		s := r.Stats()
		if missing == 0 || s.MissedTicks != missing || s.Gaps != 1 || len(f.Summary().Gaps) != 1 {
			t.Errorf("%d ticks were left out; stats %+v; the file has %v", missing, s, f.Summary().Gaps)
		}
		if f.Summary().Complete() {
			t.Error("a file with a gap passes for complete")
		}
		var gap *GapError
		var full bool
		for _, err := range w.reported() {
			errors.As(err, &gap)
			full = full || errors.Is(err, ErrFull)
		}
		if g := f.Summary().Gaps[0]; !full || gap == nil || gap.First != g.First || gap.Last != g.Last || uint64(g.Last-g.First)+1 != missing {
			t.Errorf("reported %v, the file has %+v, %d are missing", w.reported(), g, missing)
		}
		if err := r.Wait(t.Context(), gap.First); !errors.Is(err, ErrMissing) {
			t.Errorf("Wait for a missing tick: %v", err)
		}
		w.close(c)
	})
}

// A producer without a clock of its own waits for room and loses nothing.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.cfg.SessionMemory = 64 << 10
		c, r, e := w.record()
		for range 2000 {
			if err := r.Room(within(t, time.Minute)); err != nil {
				t.Fatal(err)
			}
			e.play(t, r, 10)
		}
		w.sealAndCompare(r, &e)
		if s := r.Stats(); s.MissedTicks != 0 {
			t.Errorf("%+v", s)
		}
		w.close(c)
	})
}

// Closing the client delivers everything first, and Recordings end.
func TestClientClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, r, e := w.record()
		e.play(t, r, 3000)
		w.close(c)
		synctest.Wait()
		f, err := w.rec.stored("match-1")
		if err != nil {
			t.Fatal(err)
		}
		e.compare(t, f)
		if err := r.EndTick(); !errors.Is(err, ErrClosed) {
			t.Errorf("EndTick gives %v", err)
		}
		if _, err := c.Open(spec("match-2")); !errors.Is(err, ErrClosed) {
			t.Errorf("Open gives %v", err)
		}
		if n := w.server.Stats().Sessions; n != 0 {
			t.Errorf("%d sessions are left at the daemon", n)
		}
	})
}

// What could not be delivered is said.
func TestClientCloseUndelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, r, _ := w.record()
		w.kill()
		r.Step(1)
		r.EndTick()
		var undelivered *UndeliveredError
		if err := c.Close(within(t, time.Second)); !errors.As(err, &undelivered) || undelivered.Sessions != 1 || undelivered.Bytes == 0 || undelivered.Spooled {
			t.Errorf("Close gives %v", err)
		}
	})
}

// A recording that is closed without Seal leaves the session unfinished and
// its place on the connection free.
func TestRecordingClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, r, e := w.record()
		e.play(t, r, 50)
		if err := r.Close(within(t, time.Minute)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := w.server.Stats().Sessions; n != 0 || w.rec.detached != 1 {
			t.Errorf("%d sessions are left, %d were detached", n, w.rec.detached)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Errorf("second Close: %v", err)
		}
		w.close(c)
	})
}

// A daemon that shuts down tells its clients, takes and confirms what they
// have sent; they go on elsewhere without loss.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.delay = 5 * time.Second // longer than the client's patience with silence
		c, r, e := w.record()
		e.play(t, r, 1000)
		time.Sleep(110 * time.Millisecond)
		old := w.server
		begun := time.Now()
		if err := old.Shutdown(within(t, 10*time.Second)); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begun); d > 6*time.Second || d < 4*time.Second {
			t.Errorf("shutting down took %v", d)
		}
		w.rec.mu.Lock()
		s := w.rec.sessions["match-1"]
		if s.durable < s.received || s.received == 0 {
			t.Errorf("%d chunks received, %d durable", s.received, s.durable)
		}
		w.rec.mu.Unlock()
		w.startDaemon(Config{})
		e.play(t, r, 1000)
		w.sealAndCompare(r, &e)
		w.close(c)
		if last := w.dialed[len(w.dialed)-1]; last != "b:2" {
			t.Errorf("dialed %v: after a drain the next address comes first", w.dialed)
		}
	})
}

// A client that does not leave is cut off when the time is over.
func TestShutdownLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, r, _ := w.record()
		r.Step(1)
		r.EndTick()
		time.Sleep(time.Second)
		w.newest().freeze()
		begun := time.Now()
		err := w.server.Shutdown(within(t, 2*time.Second))
		if d := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || d < 2*time.Second || d > 3100*time.Millisecond {
			t.Errorf("%v after %v", err, d)
		}
		if !w.rec.allDetached() {
			t.Error("not every session was detached")
		}
		c.Close(within(t, time.Millisecond))
	})
}

// The newer start of a producer takes over; the older one is told.
func TestFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		old := w.connect()
		r, _ := old.Open(spec("match-1"))
		e := expected{first: 10}
		e.play(t, r, 20)
		if err := r.Wait(within(t, time.Minute), e.next()-1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		s := spec("match-1")
		s.Key = r.Key()
		fresh := w.connect()
		r2, err := fresh.Continue(within(t, time.Minute), s, e.next())
		if err != nil {
			t.Fatal(err)
		}
		r.Step(1)
		r.EndTick()
		time.Sleep(time.Second)
		var refusal *Refusal
		if !errors.As(r.Err(), &refusal) || refusal.Code != CodeFenced {
			t.Errorf("the older start has %v", r.Err())
		}
		e.play(t, r2, 20)
		w.sealAndCompare(r2, &e)
		w.close(fresh)
		w.close(old)
	})
}

// A producer that lost its spool goes on: ticks that never came become a
// gap, ticks that come again are compared.
func TestContinue(t *testing.T) {
	for _, c := range []struct {
		name string
		at   format.Tick
		gaps int
		code Code
	}{
		{"gap", 400, 1, 0}, {"next", 310, 0, 0}, {"overlap", 250, 0, 0}, {"conflict", 251, 0, CodeConflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testContinue(t, c.at, c.gaps, c.code) })
		})
	}
}

func testContinue(t *testing.T, at format.Tick, gaps int, code Code) {
	w := newWorld(t)
	c := w.connect()
	s := keyed("match-1")
	r, _ := c.Open(s)
	e := expected{first: 10}
	e.play(t, r, 260)
	e.hash(t, r, 260)
	e.play(t, r, 40)
	if err := r.Wait(within(t, time.Minute), e.next()-1); err != nil {
		t.Fatal(err)
	}
	c.stop() // the process is gone
	w.cut()
	time.Sleep(time.Second)

	c = w.connect()
	r, err := c.Continue(within(t, time.Minute), s, at)
	if err != nil {
		t.Fatal(err)
	}
	if code != 0 {
		r.Step(99) // not what was recorded in tick 251
	}
	for e.next() < at {
		e.ticks = append(e.ticks, expectedTick{missing: true})
	}
	e.ticks = e.ticks[:at-e.first]
	if code == 0 {
		e.play(t, r, 20)
		if at == 250 { // tick 260 comes again: its hash is not counted twice
			e.hash(t, r, 260)
		}
		e.play(t, r, 180)
		f := w.sealAndCompare(r, &e)
		if n := len(f.Summary().Gaps); n != gaps {
			t.Errorf("%d gaps, expected %d", n, gaps)
		}
	} else {
		r.EndTick()
		time.Sleep(time.Second)
		var refusal *Refusal
		if !errors.As(r.Err(), &refusal) || refusal.Code != code || refusal.Tick != at {
			t.Errorf("Err is %v, expected a conflict at tick %d", r.Err(), at)
		}
	}
	w.close(c)
}

// A daemon that is killed between the seal and its answer is told again.
func TestSealAcrossRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.delay = time.Second
		c, r, e := w.record()
		e.play(t, r, 100)
		time.AfterFunc(500*time.Millisecond, func() {
			w.mu.Lock()
			w.down = errors.New("connection refused")
			w.mu.Unlock()
			w.cut()
		})
		time.AfterFunc(600*time.Millisecond, func() {
			w.rec.crash()
			w.startDaemon(Config{})
		})
		w.sealAndCompare(r, &e)
		w.close(c)
	})
}

// An end that the game did not count right is not sealed.
func TestSealWithWrongTotals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, r, e := w.record()
		e.play(t, r, 20)
		r.mu.Lock()
		r.counted.Steps++
		r.mu.Unlock()
		var refusal *Refusal
		if err := r.Seal(within(t, time.Minute)); !errors.As(err, &refusal) || refusal.Code != CodeTotals {
			t.Errorf("Seal gives %v", err)
		}
		w.close(c)
	})
}
