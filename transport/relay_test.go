package transport

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

// relay makes a relay to the daemon of the world; the test must close it.
func (w *world) relay(cfg RelayConfig) *Relay {
	w.t.Helper()
	r := newRelay(&addresses{list: []string{"a:1", "b:2"}}, cfg)
	r.dial = w.dial
	if err := r.start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// leave closes a relay at once.
func leave(r *Relay) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r.Close(ctx)
}

// shipped is a session of a relay in tests.
type shipped struct {
	*RelaySession
	t     *testing.T
	woken chan struct{}
}

func relayRequest(id string, epoch uint64, wake func()) RelayRequest {
	opening := format.AppendChunk(nil, format.ChunkMeta, 0, format.AppendMeta(nil, &format.Metadata{Session: id, Width: format.Width16}))
	return RelayRequest{Session: id, Key: [KeySize]byte{1}, Epoch: epoch, Opening: opening, Wake: wake}
}

func ship(t *testing.T, r *Relay, req RelayRequest) (*shipped, error) {
	t.Helper()
	s := &shipped{t: t, woken: make(chan struct{}, 1)}
	req.Wake = func() { ring(s.woken) }
	var err error
	s.RelaySession, err = r.Open(within(t, time.Minute), req)
	return s, err
}

func shipFrom(t *testing.T, r *Relay, id string, epoch uint64) *shipped {
	t.Helper()
	s, err := ship(t, r, relayRequest(id, epoch, nil))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tick sends a chunk with one empty tick.
func (s *shipped) tick(seq uint64, first format.Tick) error {
	b := format.NewBatchBuilder(format.Width16, 0, first)
	b.EndTick()
	return s.Send(seq, format.AppendChunk(nil, format.ChunkTicks, seq, b.AppendBody(nil)))
}

// until waits for progress.
func (s *shipped) until(is func(Progress) bool) Progress {
	s.t.Helper()
	for ctx := within(s.t, time.Minute); ; {
		if p := s.Progress(); is(p) {
			return p
		}
		select {
		case <-s.woken:
		case <-ctx.Done():
			s.t.Fatalf("no progress: %+v", s.Progress())
		}
	}
}

func TestRelayFromOpenToSeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.relay(RelayConfig{})
		s := shipFrom(t, r, "whole", 1)
		if got := s.Standing(); got != (Standing{}) {
			t.Errorf("a new session stands at %+v", got)
		}
		for seq := range uint64(2) {
			if err := s.tick(seq+1, format.Tick(seq)); err != nil {
				t.Fatal(err)
			}
		}
		if p := s.until(func(p Progress) bool { return p.Durable == 2 }); p.DurableTick != 2 {
			t.Errorf("chunk 2 is durable, and tick %d is not", p.DurableTick)
		}
		s.Leave()
		s = shipFrom(t, r, "whole", 2)
		if got := s.Standing(); got != (Standing{Received: 2, Durable: 2, DurableTick: 2, Totals: format.Totals{NextTick: 2, Ticks: 2}}) {
			t.Errorf("opened again it stands at %+v", got)
		}
		s.Seal(format.Totals{NextTick: 2, Ticks: 2})
		sealed := s.until(func(p Progress) bool { return p.Sealed != nil }).Sealed
		s = shipFrom(t, r, "whole", 3)
		if got := s.Standing().Sealed; got == nil || *got != *sealed || sealed.Name == "" {
			t.Errorf("sealed as %+v, then as %+v", sealed, got)
		}
		leave(r)
	})
}

func TestRelayRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.relay(RelayConfig{})
		code := func(err error) Code {
			var r *Refusal
			if !errors.As(err, &r) {
				t.Fatalf("%v is no refusal", err)
			}
			return r.Code
		}
		first := shipFrom(t, r, "taken", 5)
		other := relayRequest("taken", 9, nil)
		other.Key[0]++
		if _, err := ship(t, r, other); code(err) != CodeExists {
			t.Errorf("another key: %v", err)
		}
		if _, err := ship(t, r, relayRequest("taken", 4, nil)); code(err) != CodeFenced {
			t.Errorf("an older epoch: %v", err)
		}
		second := shipFrom(t, r, "taken", 6)
		p := first.until(func(p Progress) bool { return p.Err != nil })
		if code(p.Err) != CodeFenced || code(first.tick(1, 0)) != CodeFenced {
			t.Errorf("a newer epoch: %v", p.Err)
		}
		second.Seal(format.Totals{NextTick: 1, Ticks: 1})
		if p := second.until(func(p Progress) bool { return p.Err != nil }); code(p.Err) != CodeTotals {
			t.Errorf("a seal with other counts: %v", p.Err)
		}
		if n := w.dials; n != 1 {
			t.Errorf("%d connections: a refusal must not end one", n)
		}
		leave(r)
	})
}

// Close waits until all is durable; a daemon that ends lets go of a session
// with all that it had, and the relay finds the next one.
func TestRelayEndOfConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.delay = 2 * time.Second
		r := w.relay(RelayConfig{})
		s := shipFrom(t, r, "end", 1)
		if err := s.tick(1, 0); err != nil {
			t.Fatal(err)
		}
		r.Close(within(t, time.Minute))
		if p := s.Progress(); p.Durable != 1 || !errors.Is(p.Err, ErrLink) {
			t.Errorf("after Close: %+v", p)
		}
		if _, err := r.Open(t.Context(), relayRequest("end", 2, func() {})); !errors.Is(err, ErrClosed) {
			t.Errorf("a closed relay opens: %v", err)
		}
		trouble := make(chan error, 16)
		r = w.relay(RelayConfig{OnTrouble: func(err error) { trouble <- err }})
		s = shipFrom(t, r, "end", 3)
		if err := s.tick(2, 1); err != nil {
			t.Fatal(err)
		}
		old := w.server
		time.Sleep(10 * time.Millisecond)
		w.startDaemon(Config{})
		if err := old.Shutdown(within(t, time.Minute)); err != nil {
			t.Error(err)
		}
		if p := s.until(func(p Progress) bool { return p.Err != nil }); p.Durable != 2 || !errors.Is(p.Err, ErrLink) {
			t.Errorf("after the daemon's end: %+v", p)
		}
		if err := <-trouble; !errors.Is(err, ErrLink) {
			t.Errorf("told of %v", err)
		}
		if got := shipFrom(t, r, "end", 4).Standing().Durable; got != 2 {
			t.Errorf("the next daemon has chunk %d", got)
		}
		if last := w.dialed[len(w.dialed)-1]; last != "b:2" {
			t.Errorf("dialed %v: after a drain the next address comes first", w.dialed)
		}
		leave(r)
	})
}

// The window bounds what a relay may send; one chunk always fits.
func TestRelayWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.window, w.rec.delay = 100, time.Second
		r := w.relay(RelayConfig{})
		s := shipFrom(t, r, "small", 1)
		if !s.Fits(0, 1<<20) || s.Fits(60, 60) || !s.Fits(60, 40) {
			t.Error("with nothing under way: one chunk fits, and as much as the window")
		}
		sent := uint64(0)
		for s.Fits(0, 30) {
			if err := s.tick(sent+1, format.Tick(sent)); err != nil {
				t.Fatal(err)
			}
			sent++
		}
		if sent < 2 || sent > 5 {
			t.Errorf("%d chunks of some 25 bytes went into a window of 100", sent)
		}
		s.until(func(p Progress) bool { return p.Durable == sent })
		if !s.Fits(0, 1<<20) {
			t.Error("what is durable still counts")
		}
		leave(r)
	})
}

// A daemon that sends nonsense ends a relay's link, not the relay.
func TestRelayMalformedDaemon(t *testing.T) {
	for name, frames := range map[string][]byte{
		"a client's frame":             appendLeave(nil, 1),
		"closed without close":         appendFrame(nil, typeClosed),
		"an alias that was not opened": (&window{alias: 9}).append(nil),
		"an ack of none":               appendAcks(nil, []ack{{alias: 9}}),
		"a length over the limit":      {typeAck, 0xff, 0xff, 0xff, 0xff, 0x0f},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var told []error
				r := newRelay(&addresses{list: []string{"a:1"}}, RelayConfig{Background: true, OnTrouble: func(err error) { told = append(told, err) }})
				dials := 0
				r.dial = func(ctx context.Context, addr string) (carrier, error) {
					if dials++; dials > 1 {
						return w.dial(ctx, addr)
					}
					p := newPipe()
					go nonsense(&p.b, name, frames)
					return &p.a, nil
				}
				if err := r.start(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := ship(t, r, relayRequest("x", 1, nil)); !errors.Is(err, ErrLink) || !errors.Is(err, ErrFrame) {
					t.Errorf("Open gives %v", err)
				}
				shipFrom(t, r, "x", 2)
				leave(r)
				if len(told) != 1 || !errors.Is(told[0], ErrFrame) {
					t.Errorf("told of %v", told)
				}
			})
		})
	}
}

func TestRelayDial(t *testing.T) {
	t.Parallel()
	rec, k := newFakeRecorder(), keypair(t)
	s := listen(t, k, "127.0.0.1:0", Config{Recorder: rec})
	wrong, err := Trust{Pin: strings.Repeat("00", 32)}.Config()
	if err != nil {
		t.Fatal(err)
	}
	good := RelayConfig{TLS: trust(t, k), DialTimeout: 3 * time.Second}
	for what, c := range map[string]struct {
		addrs []string
		cfg   RelayConfig
	}{
		"no address":          {nil, good},
		"no port":             {[]string{"no port"}, good},
		"no TLS":              {[]string{s.Addr().String()}, RelayConfig{}},
		"another certificate": {[]string{s.Addr().String()}, RelayConfig{TLS: wrong}},
	} {
		if r, err := DialRelay(t.Context(), c.addrs, c.cfg); err == nil {
			t.Errorf("%s: connected", what)
			leave(r)
		}
	}
	// The second address is tried where the first does not answer.
	r, err := DialRelay(t.Context(), []string{"127.0.0.1:1", s.Addr().String()}, good)
	if err != nil {
		t.Fatal(err)
	}
	shipFrom(t, r, "second", 1)
	r.Close(within(t, 5*time.Second))
}
