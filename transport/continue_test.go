package transport

import (
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

// Continue returns once the daemon has on disk what comes before: one that
// loses it meanwhile is asked again.
func TestContinueOutlivesADaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := keyed("match-1")
		c := w.connect()
		r, err := c.Open(s)
		if err != nil {
			t.Fatal(err)
		}
		e := expected{first: 10}
		e.play(t, r, 20)
		if err := r.Wait(within(t, time.Minute), 29); err != nil {
			t.Fatal(err)
		}
		w.rec.delay = 2 * time.Second
		e.play(t, r, 10)
		time.Sleep(500 * time.Millisecond) // received, and not durable
		w.cut()
		c.stop()
		c = w.connect()
		defer w.close(c)
		time.AfterFunc(500*time.Millisecond, func() {
			w.kill()
			w.startDaemon(Config{})
		})
		time.Sleep(10 * time.Millisecond) // a later start
		if r, err = c.Continue(within(t, time.Minute), s, 45); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			e.ticks[20+i].missing = true
		}
		for range 5 {
			e.ticks = append(e.ticks, expectedTick{missing: true})
		}
		e.play(t, r, 10)
		w.sealAndCompare(r, &e)
	})
}

// The spool of a recording that Continue has placed goes on there, also
// where it holds no tick yet.
func TestResumeContinuedWithoutTicks(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := keyed("match-1")
		c := w.connect()
		r, err := c.Open(s)
		if err != nil {
			t.Fatal(err)
		}
		e := expected{first: 10}
		e.play(t, r, 20)
		w.close(c)
		time.Sleep(time.Second)

		w.cfg.Spool = dir
		c = w.connect()
		if r, err = c.Continue(within(t, time.Minute), s, 30); err != nil {
			t.Fatal(err)
		}
		if err := r.Mark(format.Mark{Tick: 30, Kind: "round"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.close(c)
		c = w.connect()
		defer w.close(c)
		if r, err = c.Resume("match-1"); err != nil {
			t.Fatal(err)
		}
		if got := r.NextTick(); got != 30 {
			t.Fatalf("the spool goes on at tick %d, want 30", got)
		}
		e.play(t, r, 10)
		w.sealAndCompare(r, &e)
	})
}
