package daemon

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/cmd/internal/access"
	"reprise/format"
	"reprise/recorder"
	"reprise/transport"
)

// granting makes a guard with a token for these session ids.
func granting(t *testing.T, sessions string) (*guard, []byte) {
	t.Helper()
	token, line, err := access.New("tester", sessions, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := access.Parse(strings.NewReader(line + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return &guard{tokens: tokens}, []byte(token)
}

func ids(list []transport.Listed) (out []string) {
	for _, s := range list {
		out = append(out, s.Session)
	}
	return out
}

// Every state of the recorder has its number on the wire, under the same name.
func TestListedStates(t *testing.T) {
	n := 0
	for s := recorder.State(1); !strings.HasPrefix(s.String(), "state "); s++ {
		n++
		if wireStates[s].String() != s.String() {
			t.Errorf("%v is %v on the wire", s, wireStates[s])
		}
	}
	if n != len(wireStates) {
		t.Errorf("%d states, %d numbers", n, len(wireStates))
	}
}

// A listing says how a session stands, page by page, and shows what the token
// allows.
func TestLister(t *testing.T) {
	s, _ := openStore(t)
	for n := range 7 {
		req := request(fmt.Sprintf("match-%d", n), 1)
		meta := format.Metadata{Session: req.Session, Game: strings.Repeat("g", 100), Width: format.Width16, StartedAt: 5e6}
		if n == 3 { // metadata that a first look does not hold
			meta.Labels = []format.Label{{Key: "k", Value: strings.Repeat("x", format.MaxText)}, {Key: "l", Value: strings.Repeat("y", format.MaxText)}}
		}
		req.Opening = format.AppendChunk(nil, format.ChunkMeta, 0, format.AppendMeta(nil, &meta))
		session, _, sink := mustOpen(t, s, req)
		if err := session.Append(ticks(1, 0, 10)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "chunk 1", func() bool { seq, _, _ := sink.read(); return seq == 1 })
		if n == 6 {
			session.Detach()
		}
	}
	open := lister{s.recorder, func() *guard { return &guard{} }}
	page, more, err := open.List(transport.ListRequest{Most: 5})
	if want := []string{"match-0", "match-1", "match-2", "match-3", "match-4"}; err != nil || !more || !slices.Equal(ids(page), want) {
		t.Errorf("the first page is %v, %v, %v", ids(page), more, err)
	}
	for _, l := range page {
		if l.State != transport.SessionLive || len(l.Game) != 100 || !l.Started.Equal(time.UnixMicro(5e6)) || l.Ticks != 1 || l.Steps != 1 || l.DurableTick != 1 ||
			l.NextTick != 1 || l.Bytes == 0 || !l.Ends.IsZero() || !strings.HasPrefix(l.File, "live/room-match-") {
			t.Errorf("%+v", l)
		}
	}
	page, more, err = open.List(transport.ListRequest{Most: 5, After: "match-4"})
	if err != nil || more || !slices.Equal(ids(page), []string{"match-5", "match-6"}) {
		t.Errorf("the second page is %v, %v, %v", ids(page), more, err)
	}
	if l := page[1]; l.State != transport.SessionDetached || l.Ends.Before(time.Now()) {
		t.Errorf("%+v", l)
	}
	if page, more, err := open.List(transport.ListRequest{Most: 5, Prefix: "match-2"}); err != nil || more || len(page) != 1 {
		t.Errorf("by prefix: %v, %v, %v", ids(page), more, err)
	}
}

// Without a token that is known nothing is shown, not even that there is
// nothing.
func TestListerGuard(t *testing.T) {
	s, _ := openStore(t)
	for _, id := range []string{"a-1", "b-1"} {
		mustOpen(t, s, request(id, 1))
	}
	g, token := granting(t, "b-*")
	l := lister{s.recorder, func() *guard { return g }}
	page, more, err := l.List(transport.ListRequest{Most: 1, Token: token})
	if err != nil || more || !slices.Equal(ids(page), []string{"b-1"}) {
		t.Errorf("%v, %v, %v", ids(page), more, err)
	}
	for _, wrong := range [][]byte{nil, []byte("rt_unknown")} {
		var r *transport.Refusal
		if _, _, err := l.List(transport.ListRequest{Most: 1, Token: wrong}); !errors.As(err, &r) || r.Code != transport.CodeUnauthorised {
			t.Errorf("token %q: %v", wrong, err)
		}
	}
}
