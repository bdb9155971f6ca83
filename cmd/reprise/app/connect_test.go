package app

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"

	"reprise/transport"
)

// What ten thousand sessions complain of is told once for each kind.
func TestFirstWarnings(t *testing.T) {
	var stderr bytes.Buffer
	f := firstWarnings(&stderr)
	for i := range 10_000 {
		session := fmt.Sprintf("s%05d", i)
		f.hear(session, &transport.Refusal{Code: transport.CodeStorage, Text: fmt.Sprintf("no answer for %d", i)})
		f.hear(session, &transport.Refusal{Code: transport.CodeConflict}) // ends the session
		if i < 2 {
			f.hear(session, &transport.GapError{First: 5, Last: 6, Reason: "full"})
		}
	}
	f.hear("", fmt.Errorf("connecting: %w", errors.New("no route")))
	f.rest()
	want := `reprise: session s00000: refused: storage is full or failing: no answer for 0 (look at the daemon's disk: its free space, its errors, its load)
reprise: session s00000: ticks 5 to 6 are missing: full
reprise: connecting: no route
reprise: refused: storage is full or failing, and 9999 more like the first
reprise: ticks are missing: full, and 1 more like the first
`
	if got := stderr.String(); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}

// The summary names what was printed, and ways to lose a connection stay
// apart, although all of them wrap net.ErrClosed.
func TestFirstWarningsOfLostConnections(t *testing.T) {
	var stderr bytes.Buffer
	f := firstWarnings(&stderr)
	for range 3 {
		f.hear("", fmt.Errorf("connection lost, reconnecting: %w", &quic.StatelessResetError{}))
	}
	for range 2 {
		f.hear("", fmt.Errorf("connection lost, reconnecting: %w", &quic.IdleTimeoutError{}))
	}
	f.rest()
	want := `reprise: connection lost, reconnecting: received a stateless reset
reprise: connection lost, reconnecting: timeout: no recent network activity
reprise: received a stateless reset, and 2 more like the first
reprise: timeout: no recent network activity, and 1 more like the first
`
	if got := stderr.String(); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}

// A session that a full daemon refuses at every try says so once a minute;
// each gap is told.
func TestChangedWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		f := changedWarnings(&stderr, &progress{})
		refused := func(text string, args ...any) {
			f.hear("a", &transport.Refusal{Code: transport.CodeUnavailable, Text: fmt.Sprintf(text, args...)})
		}
		for i := range 140 {
			refused("all sessions hold %d bytes", 100+i)
			if i < 2 {
				f.hear("a", &transport.GapError{First: 5, Last: 6, Reason: "full"})
			}
			time.Sleep(time.Second)
		}
		refused("20 sessions are open")
		time.Sleep(time.Hour)
		f.hear("", errors.New("no route"))
		time.Sleep(time.Hour)
		f.hear("", errors.New("no route"))
		want := `reprise: session a: refused: unavailable: all sessions hold 100 bytes (try again later)
reprise: session a: ticks 5 to 6 are missing: full
reprise: session a: ticks 5 to 6 are missing: full
reprise: session a: refused: unavailable: all sessions hold 160 bytes (try again later), after 59 more like it
reprise: session a: refused: unavailable: all sessions hold 220 bytes (try again later), after 59 more like it
reprise: session a: refused: unavailable: 20 sessions are open (try again later)
reprise: no route
reprise: no route
`
		if got := stderr.String(); got != want {
			t.Errorf("printed\n%s\nwant\n%s", got, want)
		}
	})
}
