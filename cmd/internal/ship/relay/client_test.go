package relay

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"reprise/cmd/internal/daemon"
	"reprise/format"
	"reprise/transport"
)

const patience = 20 * time.Second

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// host starts a daemon and gives the configuration that reaches it.
func host(t *testing.T) (*daemon.Daemon, Config) {
	t.Helper()
	cfg := daemon.Default()
	cfg.Data, cfg.Listen, cfg.HTTP, cfg.SegmentBytes = filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", "", 512<<10
	d := daemon.New(cfg, io.Discard)
	must(t, d.Start())
	t.Cleanup(func() { d.Stop(within(t)) })
	pin, err := os.ReadFile(filepath.Join(cfg.Data, "tls", "fingerprint"))
	must(t, err)
	tls, err := transport.Trust{Pin: strings.TrimSpace(string(pin))}.Config()
	must(t, err)
	addr := regexp.MustCompile(`ready on (\S+),`).FindStringSubmatch(d.Ready())[1]
	return d, Config{Addrs: []string{addr}, TLS: tls, DeadAfter: time.Second, DialTimeout: time.Second, BackoffMax: 50 * time.Millisecond}
}

func connect(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := Dial(within(t), cfg)
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		c.Close(ctx)
	})
	return c
}

// woken is a session's Wake.
type woken chan struct{}

func (w woken) wake() {
	select {
	case w <- struct{}{}:
	default:
	}
}

func request(id string, epoch uint64, w woken) Request {
	opening := format.AppendChunk(nil, format.ChunkMeta, 0, format.AppendMeta(nil, &format.Metadata{Session: id, Width: format.Width16}))
	return Request{Session: id, Key: [transport.KeySize]byte{1}, Epoch: epoch, Opening: opening, Wake: w.wake}
}

func ticks(seq uint64, first format.Tick) []byte {
	b := format.NewBatchBuilder(format.Width16, 0, first)
	b.EndTick()
	return format.AppendChunk(nil, format.ChunkTicks, seq, b.AppendBody(nil))
}

// until waits for progress of a session.
func until(t *testing.T, s *Session, w woken, is func(Progress) bool) Progress {
	t.Helper()
	ctx := within(t)
	for {
		if p := s.Progress(); is(p) {
			return p
		}
		select {
		case <-w:
		case <-ctx.Done():
			t.Fatalf("no progress: %+v", s.Progress())
		}
	}
}

func TestASessionFromOpenToSeal(t *testing.T) {
	_, cfg := host(t)
	c := connect(t, cfg)
	w := make(woken, 1)
	s, err := c.Open(within(t), request("whole", 1, w))
	must(t, err)
	if got := s.Standing(); got != (Standing{}) {
		t.Errorf("a new session stands at %+v", got)
	}
	must(t, s.Send(1, ticks(1, 0)))
	must(t, s.Send(2, ticks(2, 1)))
	if p := until(t, s, w, func(p Progress) bool { return p.Durable == 2 }); p.DurableTick != 2 {
		t.Errorf("chunk 2 is durable, and tick %d is not", p.DurableTick)
	}
	s.Leave()
	s, err = c.Open(within(t), request("whole", 2, w))
	must(t, err)
	if got := s.Standing(); got != (Standing{Received: 2, Durable: 2, DurableTick: 2, Totals: format.Totals{NextTick: 2, Ticks: 2}}) {
		t.Errorf("opened again it stands at %+v", got)
	}
	s.Seal(format.Totals{NextTick: 2, Ticks: 2})
	sealed := until(t, s, w, func(p Progress) bool { return p.Sealed != nil }).Sealed
	s, err = c.Open(within(t), request("whole", 3, w))
	must(t, err)
	if got := s.Standing().Sealed; got == nil || *got != *sealed || sealed.Name == "" {
		t.Errorf("sealed as %+v, then as %+v", sealed, got)
	}
}

func TestRefusals(t *testing.T) {
	_, cfg := host(t)
	c, w := connect(t, cfg), make(woken, 1)
	code := func(err error) transport.Code {
		var r *transport.Refusal
		if !errors.As(err, &r) {
			t.Fatalf("%v is no refusal", err)
		}
		return r.Code
	}
	first, err := c.Open(within(t), request("taken", 5, w))
	must(t, err)
	other := request("taken", 9, w)
	other.Key[0]++
	if _, err := c.Open(within(t), other); code(err) != transport.CodeExists {
		t.Errorf("another key: %v", err)
	}
	if _, err := connect(t, cfg).Open(within(t), request("taken", 4, w)); code(err) != transport.CodeFenced {
		t.Errorf("an older epoch: %v", err)
	}
	second, err := connect(t, cfg).Open(within(t), request("taken", 6, w))
	must(t, err)
	p := until(t, first, w, func(p Progress) bool { return p.Err != nil })
	if code(p.Err) != transport.CodeFenced || code(first.Send(1, ticks(1, 0))) != transport.CodeFenced {
		t.Errorf("a newer epoch: %v", p.Err)
	}
	second.Seal(format.Totals{NextTick: 1, Ticks: 1})
	if p := until(t, second, w, func(p Progress) bool { return p.Err != nil }); code(p.Err) != transport.CodeTotals {
		t.Errorf("a seal with other counts: %v", p.Err)
	}
}

// Close waits until all is durable, and a daemon that ends lets go of a
// session with all that it had.
func TestTheEndOfAConnection(t *testing.T) {
	d, cfg := host(t)
	w := make(woken, 1)
	c := connect(t, cfg)
	s, err := c.Open(within(t), request("end", 1, w))
	must(t, err)
	must(t, s.Send(1, ticks(1, 0)))
	c.Close(within(t))
	if p := s.Progress(); p.Durable != 1 || !errors.Is(p.Err, ErrLink) {
		t.Errorf("after Close: %+v", p)
	}
	if _, err := c.Open(within(t), request("end", 2, w)); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed client opens: %v", err)
	}
	trouble := make(chan error, 16)
	cfg.OnTrouble = func(err error) { trouble <- err }
	s, err = connect(t, cfg).Open(within(t), request("end", 3, w))
	must(t, err)
	must(t, s.Send(2, ticks(2, 1)))
	must(t, d.Stop(within(t)))
	if p := until(t, s, w, func(p Progress) bool { return p.Err != nil }); p.Durable != 2 || !errors.Is(p.Err, ErrLink) {
		t.Errorf("after the daemon's end: %+v", p)
	}
	select {
	case err := <-trouble:
		if !errors.Is(err, ErrLink) {
			t.Errorf("told of %v", err)
		}
	case <-within(t).Done():
		t.Error("nothing was told of the lost connection")
	}
}

func TestDialErrors(t *testing.T) {
	_, cfg := host(t)
	none := cfg
	none.Addrs = nil
	odd := cfg
	odd.Addrs = []string{"no port"}
	wrong := cfg
	var err error
	wrong.TLS, err = transport.Trust{Pin: strings.Repeat("00", 32)}.Config()
	must(t, err)
	for what, cfg := range map[string]Config{"no address": none, "no port": odd, "another certificate": wrong} {
		if c, err := Dial(within(t), cfg); err == nil {
			t.Errorf("%s: connected", what)
			c.Close(within(t))
		}
	}
	// The second address is tried where the first does not answer.
	second := cfg
	second.Addrs = append([]string{"127.0.0.1:1"}, cfg.Addrs...)
	c := connect(t, second)
	w := make(woken, 1)
	if _, err := c.Open(within(t), request("second", 1, w)); err != nil {
		t.Error(err)
	}
}
