package transport

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

// spoolWorld is a world whose client spools.
func spoolWorld(t *testing.T, dir string) *world {
	w := newWorld(t)
	w.cfg.Spool = dir
	w.cfg.Background = true
	return w
}

// abort ends a client as the end of its process does, once it has spooled
// all that was cut.
func (w *world) abort(c *Client) {
	time.Sleep(150 * time.Millisecond)
	c.stop()
	c.workers.Wait()
	for _, r := range c.beginClose() {
		r.spool.f.Close()
	}
	w.cut()
	synctest.Wait()
}

// The spool is a live RPLY2 file at every moment, with all that was cut.
func TestSpoolIsReplay(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := spoolWorld(t, dir)
		w.kill()
		c := w.connect()
		r, err := c.Open(spec("match-1"))
		if err != nil {
			t.Fatal(err)
		}
		e := expected{first: 10}
		for range 10 {
			e.play(t, r, 100)
			e.hash(t, r, e.next()-5)
			time.Sleep(150 * time.Millisecond)
			synctest.Wait()
			f, err := format.Open(filepath.Join(dir, "match-1.rply"))
			if err != nil {
				t.Fatal(err)
			}
			e.compare(t, f)
			if f.Torn != nil || f.Summary().End != nil {
				t.Errorf("torn %v, end %v", f.Torn, f.Summary().End)
			}
			f.Close()
		}
		c.Close(within(t, time.Second))
	})
}

// A long outage costs disk, not memory, and loses nothing.
func TestSpoolBoundsMemory(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := spoolWorld(t, dir)
		w.cfg.SessionMemory = 1 << 20
		w.kill()
		c, r, e := w.record()
		for range 40 {
			e.play(t, r, 3000)
			synctest.Wait()
			if m := r.Stats().Memory; m > spoolCache+64<<10 {
				t.Fatalf("%d bytes are held", m)
			}
		}
		if n := r.Stats().NotDurable; n < 3<<19 {
			t.Fatalf("%d bytes wait: the test proves nothing", n)
		}
		w.startDaemon(Config{})
		w.sealAndCompare(r, &e)
		if s := r.Stats(); s.MissedTicks != 0 || s.Gaps != 0 {
			t.Errorf("%+v", s)
		}
		w.close(c)
	})
	entries, err := os.ReadDir(dir)
	if len(entries) != 0 || err != nil {
		t.Errorf("the spool still has %v", entries)
	}
}

// A spool that was cut anywhere resumes after its last whole chunk; one that
// is damaged is refused and left as it is.
func TestResumeFromCutSpool(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := spoolWorld(t, dir)
		w.kill()
		c, r, e := w.record()
		for range 5 {
			e.play(t, r, 4)
			e.hash(t, r, e.next()-3)
			r.Join(format.Player{ID: uint64(e.next())})
			time.Sleep(150 * time.Millisecond)
		}
		w.abort(c)
	})
	whole, err := os.ReadFile(filepath.Join(dir, "match-1.rply"))
	if err != nil {
		t.Fatal(err)
	}
	opening, last := chunkEnds(t, whole)
	for n := range whole {
		next, err := resumeBytes(t, dir, whole[:n])
		want := format.Tick(10)
		if f, ferr := openBytes(whole[:n]); ferr == nil {
			want = f.Summary().NextTick
		}
		if n < opening != (err != nil) || err == nil && next != want {
			t.Fatalf("cut at %d of %d: resumed at tick %d, %v; expected tick %d", n, len(whole), next, err, want)
		}
	}
	for i := range whole {
		bad := slices.Clone(whole)
		bad[i] ^= 0x10
		// A flipped length of the last chunk looks like a torn tail.
		if _, err := resumeBytes(t, dir, bad); err == nil && i < last {
			t.Fatalf("byte %d of %d flipped: resumed", i, len(whole))
		}
		if kept, err := os.ReadFile(filepath.Join(dir, "match-1.rply")); err != nil || i < last && !slices.Equal(kept, bad) {
			t.Fatalf("byte %d of %d flipped: the file was changed", i, len(whole))
		}
	}
}

// chunkEnds finds where the opening chunks of a file end and where its last
// chunk begins.
func chunkEnds(t *testing.T, b []byte) (opening, last int) {
	for at := format.HeaderSize; at < len(b); {
		c, n, err := format.ParseChunk(b[at:])
		if err != nil {
			t.Fatal(err)
		}
		last = at
		at += n
		if c.Seq == 0 {
			opening = at
		}
	}
	return opening, last
}

func openBytes(b []byte) (*format.File, error) {
	var buf format.Buffer
	buf.Write(b)
	return format.NewFile(&buf, int64(len(b)))
}

// resumeBytes resumes a session from a spool of these bytes, without a
// daemon.
func resumeBytes(t *testing.T, dir string, b []byte) (format.Tick, error) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "match-1.rply"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	c := newClient(&addresses{list: []string{"a:1"}}, ClientConfig{Spool: dir})
	r, err := c.Resume("match-1")
	if err != nil {
		return 0, err
	}
	defer r.spool.f.Close()
	return r.NextTick(), nil
}

func TestResume(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := spoolWorld(t, dir)
		c := w.connect()
		s := spec("match-1")
		s.Times = true
		s.Players = []format.PlayerEvent{{Tick: 10, ID: 1}}
		r, _ := c.Open(s)
		e := expected{first: 10}
		e.play(t, r, 100)
		time.Sleep(time.Second)
		if _, err := c.Resume("match-1"); err == nil {
			t.Error("a session that is being recorded was resumed")
		}
		w.abort(c)

		c = w.connect()
		if ids, err := c.Spooled(); !slices.Equal(ids, []string{"match-1"}) || err != nil {
			t.Errorf("spooled: %v, %v", ids, err)
		}
		if _, err := c.Open(s); !errors.Is(err, ErrSpooled) {
			t.Errorf("Open gives %v", err)
		}
		time.Sleep(time.Minute)
		r, err := c.Resume("match-1")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Join(format.Player{ID: 1}); !errors.Is(err, format.ErrOrder) {
			t.Errorf("a player who is there joins: %v", err)
		}
		e.play(t, r, 100)
		f := w.sealAndCompare(r, &e)
		times := times(t, f)
		if times[100] < 60e6 || !slices.IsSorted(times) {
			t.Errorf("the restarted game's first time is %d µs, a minute had passed", times[100])
		}
		w.close(c)
	})
}

// A game that ended between the daemon's seal and its own end finds the
// session sealed.
func TestResumeSealed(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := spoolWorld(t, dir)
		c, r, e := w.record()
		e.play(t, r, 100)
		if err := r.Wait(within(t, time.Minute), e.next()-1); err != nil {
			t.Fatal(err)
		}
		w.abort(c)
		w.rec.sessions["match-1"].finish()

		c, r = w.resume()
		time.Sleep(time.Second)
		w.sealAndCompare(r, &e)
		w.close(c)
		if ids, _ := spooled(dir); len(ids) != 0 {
			t.Errorf("spooled: %v", ids)
		}
	})
}

// A session that the daemon refuses for good goes on into the spool, and can
// be delivered later.
func TestRefusedIntoSpool(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := spoolWorld(t, dir)
		allowed := false
		w.rec.onOpen = func(OpenRequest) error {
			if !allowed {
				return refuse(CodeUnauthorised, "")
			}
			return nil
		}
		c, r, e := w.record()
		for range 20 {
			e.play(t, r, 20)
			time.Sleep(50 * time.Millisecond)
		}
		w.cut()
		time.Sleep(20 * time.Second)
		var refusal *Refusal
		if !errors.As(r.Err(), &refusal) || refusal.Code != CodeUnauthorised || w.rec.opens != 1 {
			t.Errorf("%v after %d opens", r.Err(), w.rec.opens)
		}
		if err := r.Seal(t.Context()); !errors.As(err, &refusal) {
			t.Errorf("Seal gives %v", err)
		}
		var undelivered *UndeliveredError
		if err := c.Close(within(t, time.Minute)); !errors.As(err, &undelivered) || !undelivered.Spooled {
			t.Errorf("Close gives %v", err)
		}
		allowed = true
		c, r = w.resume()
		w.sealAndCompare(r, &e)
		w.close(c)
	})
}

// A spool that cannot be written is reported; recording goes on in memory.
func TestBrokenSpool(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := spoolWorld(t, dir)
		w.cfg.SpoolLimit = 20 << 10
		c, r, e := w.record()
		for range 30 {
			e.play(t, r, 100)
			time.Sleep(50 * time.Millisecond)
		}
		w.sealAndCompare(r, &e)
		if errs := w.reported(); len(errs) != 1 || !errors.Is(errs[0], format.ErrLimit) {
			t.Errorf("reported %v", errs)
		}
		w.close(c)
		if m := c.Stats().Memory; m != 0 {
			t.Errorf("%d bytes are still held", m)
		}
	})
}

// A daemon that has lost what it confirmed gets it again from the spool;
// without one the loss is said.
func TestDaemonLosesData(t *testing.T) {
	for _, spooling := range []bool{true, false} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			w := spoolWorld(t, dir)
			if !spooling {
				w.cfg.Spool = ""
			}
			c, r, e := w.record()
			e.play(t, r, 1000)
			if err := r.Wait(within(t, time.Minute), e.next()-1); err != nil {
				t.Fatal(err)
			}
			w.kill()
			delete(w.rec.sessions, "match-1")
			w.startDaemon(Config{})
			e.play(t, r, 100)
			if spooling {
				w.sealAndCompare(r, &e)
			} else if err := r.Seal(within(t, time.Minute)); !errors.Is(err, ErrLost) {
				t.Errorf("Seal gives %v", err)
			}
			w.close(c)
			if !slices.ContainsFunc(w.reported(), func(err error) bool { return errors.Is(err, ErrLost) }) {
				t.Errorf("reported %v", w.reported())
			}
			if m := c.Stats().Memory; m != 0 {
				t.Errorf("%d bytes are still held", m)
			}
		})
	}
}

// A producer that continues without its old spool has a new one, whether it
// goes on behind a gap or with ticks that come again.
func TestContinueWithSpool(t *testing.T) {
	for _, c := range []struct{ ahead, starts int }{{5, 4}, {-50, 4}, {-50, 0}} {
		dir, dir2 := t.TempDir(), t.TempDir()
		synctest.Test(t, func(t *testing.T) { testContinueWithSpool(t, dir, dir2, c.ahead, c.starts) })
	}
}

func testContinueWithSpool(t *testing.T, dir, dir2 string, ahead, starts int) {
	{
		w := spoolWorld(t, dir)
		c := w.connect()
		s := spec("match-1")
		s.Key[3] = 1
		s.Meta.StartedAt = 1
		r, _ := c.Open(s)
		e := expected{first: 10}
		e.play(t, r, 100)
		e.hash(t, r, 50)
		if err := r.Wait(within(t, time.Minute), e.next()-1); err != nil {
			t.Fatal(err)
		}
		w.abort(c)

		w.cfg.Spool = dir2
		time.Sleep(2 * time.Second)
		c = w.connect()
		if _, err := c.Continue(within(t, time.Minute), s, format.Tick(int(e.next())+ahead)); err != nil {
			t.Fatal(err)
		}
		gaps := 0
		if ahead > 0 {
			gaps = 1
			e.ticks = append(e.ticks, slices.Repeat([]expectedTick{{missing: true}}, ahead)...)
		} else {
			w.rec.sessions["match-1"].overlap = e.next()
			e.ticks = e.ticks[:len(e.ticks)+ahead]
		}
		w.abort(c) // before anything was recorded
		c, r = w.resume()
		if r.NextTick() != e.next() {
			t.Errorf("resumed at tick %d, expected %d", r.NextTick(), e.next())
		}
		for range starts {
			e.play(t, r, 20)
			if e.next() > 120 {
				e.hash(t, r, e.next()-1)
			}
			w.abort(c)
			c, r = w.resume()
		}
		e.play(t, r, 100)
		f := w.sealAndCompare(r, &e)
		if len(f.Summary().Gaps) != gaps {
			t.Errorf("gaps: %v", f.Summary().Gaps)
		}
		w.close(c)
	}
}

// Nothing is sent that is not in the spool.
func TestWriteAhead(t *testing.T) {
	c := newClient(&addresses{list: []string{"a:1"}}, ClientConfig{Spool: t.TempDir()})
	r, err := c.Open(spec("match-1"))
	if err != nil {
		t.Fatal(err)
	}
	l := &link{client: c}
	r.link, r.live, r.alias, r.q.window = l, true, 1, 1<<20
	r.Step(1)
	r.EndTick()
	r.Flush()
	if _, more := r.take(l); len(l.out) != 0 || more {
		t.Errorf("%d bytes are sent before they are spooled", len(l.out))
	}
	r.writeSpool()
	if r.take(l); len(l.out) == 0 {
		t.Error("nothing is sent")
	}
	r.abandon(false)
	c.writeSpools()
}

// Closing the client keeps the spool of what is not sealed.
func TestCloseKeepsSpool(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := spoolWorld(t, dir)
		c, r, e := w.record()
		e.play(t, r, 100)
		w.close(c)
		w.kill()
		c, r = w.resume()
		e.play(t, r, 100)
		r.Keyframe(e.next(), make([]byte, 100_000))
		var undelivered *UndeliveredError
		if err := c.Close(within(t, time.Second)); !errors.As(err, &undelivered) || !undelivered.Spooled {
			t.Errorf("Close gives %v", err)
		}
		w.startDaemon(Config{})
		c, r = w.resume()
		if r.keys.half != 0 {
			t.Errorf("%d keyframes pass for half ones", r.keys.half)
		}
		f := w.sealAndCompare(r, &e)
		if len(f.Summary().Keyframes) != 1 {
			t.Errorf("%d keyframes", len(f.Summary().Keyframes))
		}
		w.close(c)
	})
}

// A client that is closed in a hurry has spooled what it was given.
func TestHastyClose(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := spoolWorld(t, dir)
		c, r, e := w.record()
		e.play(t, r, 100)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var undelivered *UndeliveredError
		if err := c.Close(ctx); !errors.As(err, &undelivered) {
			t.Errorf("Close gives %v", err)
		}
		c, r = w.resume()
		if r.NextTick() != e.next() {
			t.Errorf("resumed at tick %d, expected %d", r.NextTick(), e.next())
		}
		w.sealAndCompare(r, &e)
		w.close(c)
	})
}

// A recording that is closed with everything durable leaves no spool; with
// something undelivered it does.
func TestRecordingCloseSpool(t *testing.T) {
	for _, down := range []bool{false, true} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			w := spoolWorld(t, dir)
			if down {
				w.kill()
			}
			c, r, e := w.record()
			e.play(t, r, 100)
			err := r.Close(within(t, time.Second))
			if down != errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close gives %v", err)
			}
			w.close(c)
			ids, err := spooled(dir)
			if err != nil || down != (len(ids) == 1) {
				t.Errorf("spooled: %v, %v", ids, err)
			}
		})
	}
}

// Keyframes that an earlier process left half are known; where the format
// allows no more of them at once, the next is refused here.
func TestHalfKeyframes(t *testing.T) {
	c := newClient(&addresses{list: []string{"a:1"}}, ClientConfig{Spool: t.TempDir()})
	r, err := c.Open(spec("match-1"))
	if err != nil {
		t.Fatal(err)
	}
	for range format.MaxOpenKeyframes {
		if err := r.Keyframe(10, make([]byte, 2*format.MaxKeyframePart)); err != nil {
			t.Fatal(err)
		}
		if !r.cutPart() {
			t.Fatal("no part was cut")
		}
		r.keys.waiting = nil // as if the process had ended here
	}
	r.writeSpool()
	r.spool.f.Close()
	if err := r.spool.removeKeyframes(); err != nil { // an older program had none
		t.Fatal(err)
	}
	c = newClient(&addresses{list: []string{"a:1"}}, c.cfg)
	if r, err = c.Resume("match-1"); err != nil {
		t.Fatal(err)
	}
	if err := r.Keyframe(10, nil); !errors.Is(err, format.ErrLimit) {
		t.Errorf("one more keyframe: %v", err)
	}
	r.spool.f.Close()
}

// A process that kept only its key starts above one that has reconnected a
// moment before.
func TestStartsAscend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const connections = 1000
		before := nextStart(0)<<startShift + connections
		time.Sleep(time.Millisecond)
		if after := nextStart(0) << startShift; after <= before {
			t.Errorf("a start a millisecond later has epoch %d, the one before %d", after, before)
		}
	})
}
