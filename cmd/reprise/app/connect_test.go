package app

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"reprise/transport"
)

// What ten thousand sessions complain of is told once for each kind.
func TestFirstWarnings(t *testing.T) {
	var stderr bytes.Buffer
	f := firstWarnings{stderr: &stderr}
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
