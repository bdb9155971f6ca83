package app

import (
	"testing"
	"time"
)

// With --from, what stands before is run at full speed, and only the rest
// takes its time: also where a child answers many ticks at once.
func TestPlayTakesItsTimeFromThere(t *testing.T) {
	match := sample{}.write(t) // 10 s at 20 ticks a second
	for _, sim := range []string{"skirmish", "exec:skirmish-sim"} {
		began := time.Now()
		r := reprise("play", "--sim", sim, "--from", "190", match)
		// Nine ticks follow the first one, each due 50 ms later.
		if took := time.Since(began); r.code != exitOK || took < 400*time.Millisecond || took > 5*time.Second {
			t.Errorf("%s: %v, exit code %d %s", sim, took, r.code, r.stderr)
		}
	}
}
