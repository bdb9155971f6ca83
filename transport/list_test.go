package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

// shelf is a Lister of sessions with these ids.
type shelf struct {
	ids  []string
	asks int
	err  error
	held chan struct{} // if set, closed when listings may be answered
}

func (s *shelf) List(req ListRequest) (page []Listed, more bool, err error) {
	if s.held != nil {
		<-s.held
	}
	s.asks++
	if s.err != nil {
		return nil, false, s.err
	}
	for _, id := range s.ids {
		if id <= req.After || !strings.HasPrefix(id, req.Prefix) {
			continue
		}
		if len(page) == req.Most {
			return page, true, nil
		}
		page = append(page, Listed{Session: id, State: SessionLive, Game: "test", Totals: format.Totals{NextTick: 5, Ticks: 5}, Started: time.UnixMicro(7).UTC()})
	}
	return page, false, nil
}

func manyIDs(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("match-%05d", i))
	}
	return ids
}

// list asks the world's daemon.
func (w *world) list(prefix string) ([]Listed, error) {
	cfg := w.cfg.withDefaults()
	return cfg.dialing(versionList).list(within(w.t, time.Minute), &addresses{list: []string{"a:1"}}, w.dial, prefix)
}

func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := &shelf{ids: manyIDs(2*MaxListed + 345)}
		w.startDaemon(Config{Lister: s})
		all, err := w.list("")
		if err != nil || len(all) != len(s.ids) || s.asks != 3 {
			t.Fatalf("%d of %d sessions in %d pages, %v", len(all), len(s.ids), s.asks, err)
		}
		for i, l := range all {
			if l.Session != s.ids[i] || l.State != SessionLive || l.Ticks != 5 || l.Game != "test" || !l.Started.Equal(time.UnixMicro(7)) || !l.Ends.IsZero() {
				t.Fatalf("session %d is %+v", i, l)
			}
		}
		if some, err := w.list("match-0001"); err != nil || len(some) != 10 {
			t.Errorf("%d sessions begin with match-0001, %v", len(some), err)
		}
		if none, err := w.list("other"); err != nil || len(none) != 0 {
			t.Errorf("%d sessions, %v", len(none), err)
		}
		time.Sleep(time.Second)
		if n := w.server.Stats().Malformed; n != 0 {
			t.Errorf("%d connections ended badly", n)
		}
	})
}

// A listing that is refused says why; the Lister's own errors stay inside.
func TestListRefused(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		code Code
	}{
		"no lister":      {Config{}, CodeUnauthorised},
		"unauthorised":   {Config{Lister: &shelf{err: refuse(CodeUnauthorised, "not you")}}, CodeUnauthorised},
		"internal error": {Config{Lister: &shelf{err: errors.New("open /secret: no")}}, CodeUnavailable},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.startDaemon(c.cfg)
			_, err := w.list("")
			var r *Refusal
			if !errors.As(err, &r) || r.Code != c.code || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(time.Second)
		})
	}
}

// A listing on a connection that records does not hold up its sessions; a
// second one before the first is answered ends the connection.
func TestListBesideSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := &shelf{ids: manyIDs(3), held: make(chan struct{})}
		w.startDaemon(Config{Lister: s})
		x := w.connectRaw(true)
		x.send((&list{number: 9, most: 2}).append(nil), rawOpen(1, "raw"))
		if typ, _ := x.next(); typ != typeOpened {
			t.Fatalf("%s instead of opened", frameName(typ))
		}
		x.send(rawTicks(1, 1, 0, nil))
		for acked := false; !acked; {
			typ, body := x.next()
			acks, err := parseAcks(nil, body)
			if typ != typeAck || err != nil {
				t.Fatalf("%s, %v", frameName(typ), err)
			}
			acked = acks[0].durable == 1
		}
		close(s.held)
		typ, body := x.next()
		l, err := parseListing(body)
		if typ != typeListing || err != nil || l.number != 9 || !l.more || len(l.sessions) != 2 {
			t.Errorf("%s %+v, %v", frameName(typ), l, err)
		}
		s.held = make(chan struct{})
		x.send((&list{number: 10, most: 2}).append(nil), (&list{number: 11, most: 2}).append(nil))
		if code := x.ended(); code != CodeProtocol {
			t.Errorf("ended with %v", code)
		}
		close(s.held)
	})
}

// Goodbye waits for a listing that was asked for.
func TestCloseWhileListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := &shelf{ids: manyIDs(3), held: make(chan struct{})}
		w.startDaemon(Config{Lister: s})
		x := w.connectRaw(true)
		x.send((&list{number: 1, most: 2}).append(nil), appendFrame(nil, typeClose))
		time.AfterFunc(2*time.Second, func() { close(s.held) })
		for _, want := range []byte{typeListing, typeClosed} {
			if typ, _ := x.next(); typ != want {
				t.Errorf("%s instead of %s", frameName(typ), frameName(want))
			}
		}
	})
}

// A daemon that answers nonsense, for ever or not at all, is an error.
func TestListFromBadDaemon(t *testing.T) {
	one := []Listed{{Session: "a", State: SessionLive}}
	for name, c := range map[string]struct {
		frames []byte
		want   error
	}{
		"the same again":   {(&listing{number: 1, more: true, sessions: []Listed{one[0], one[0]}}).append(nil), ErrFrame},
		"another number":   {(&listing{number: 7, sessions: one}).append(nil), ErrFrame},
		"more of nothing":  {(&listing{number: 1, more: true}).append(nil), ErrFrame},
		"another frame":    {appendFrame(nil, typeClosed), ErrFrame},
		"a bad id":         {(&listing{number: 1, sessions: []Listed{{Session: "../x"}}}).append(nil), ErrFrame},
		"drain":            {(&drain{}).append(nil), &Refusal{Code: CodeDraining}},
		"a refusal":        {(&refused{refusal: Refusal{Code: CodeUnauthorised}}).append(nil), &Refusal{Code: CodeUnauthorised}},
		"signs of life":    {slices.Concat(appendFrame(nil, typeAlive), appendFrame(nil, 0x99), (&listing{number: 1}).append(nil)), nil},
		"nothing, for 3 s": {nil, errSilence},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				cfg := w.cfg.withDefaults()
				p := newPipe()
				go nonsense(&p.b, name, c.frames)
				_, err := cfg.dialing(versionList).list(within(t, time.Minute), &addresses{list: []string{"a:1"}},
					func(context.Context, string) (carrier, error) { return &p.a, nil }, "")
				var got, want *Refusal
				switch {
				case c.want == errSilence:
					if !silent(err) || !strings.Contains(err.Error(), "silent for 3s") {
						t.Errorf("%v", err)
					}
				case errors.As(c.want, &want):
					if !errors.As(err, &got) || got.Code != want.Code {
						t.Errorf("%v, expected %v", err, want)
					}
				case !errors.Is(err, c.want):
					t.Errorf("%v, expected %v", err, c.want)
				}
				p.reset()
			})
		})
	}
}

var errSilence = errors.New("silence")

// A daemon of version 1 cannot list, and says so at once.
func TestListNeedsVersion2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := newPipe()
		go func() {
			r := newFrameReader(&p.b)
			if _, body, err := r.next(); err == nil {
				if h, err := parseHello(body); err != nil || h.low <= 1 {
					t.Errorf("hello %+v, %v", h, err)
				}
			}
			p.b.Write((&refused{refusal: Refusal{Code: CodeVersion, Text: "the daemon speaks version 1"}}).append(nil))
		}()
		cfg := w.cfg.withDefaults()
		_, err := cfg.dialing(versionList).list(within(t, time.Minute), &addresses{list: []string{"a:1"}},
			func(context.Context, string) (carrier, error) { return &p.a, nil }, "")
		var r *Refusal
		if !errors.As(err, &r) || r.Code != CodeVersion {
			t.Errorf("%v", err)
		}
	})
}

func TestListQUIC(t *testing.T) {
	t.Parallel()
	k := keypair(t)
	s := listen(t, k, "127.0.0.1:0", Config{Recorder: newFakeRecorder(), Lister: &shelf{ids: manyIDs(1500)}})
	all, err := List(within(t, time.Minute), []string{"127.0.0.1:1", s.Addr().String()}, ClientConfig{TLS: trust(t, k), DialTimeout: 3 * time.Second}, "match-")
	if err != nil || len(all) != 1500 {
		t.Errorf("%d sessions, %v", len(all), err)
	}
	if _, err := List(t.Context(), nil, ClientConfig{TLS: trust(t, k)}, ""); err == nil {
		t.Error("without an address")
	}
	eventually(t, "no connections", func() bool { return s.Stats().Connections == 0 })
}
