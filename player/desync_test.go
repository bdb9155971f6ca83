package player

import (
	"math/rand/v2"
	"testing"

	"reprise/format"
)

func TestExpectationsAreAQueue(t *testing.T) {
	var q expectations
	rng := rand.New(rand.NewPCG(11, 12))
	in, out := format.Tick(0), format.Tick(0)
	for range 10_000 {
		if rng.IntN(100) < 52 {
			q.push().tick = in
			in++
			continue
		}
		x := q.pop()
		if (x == nil) != (in == out) {
			t.Fatalf("pop gives %v with %d waiting", x, in-out)
		}
		if x == nil {
			continue
		}
		if x.tick != out {
			t.Fatalf("pop gives tick %d, want %d", x.tick, out)
		}
		out++
	}
	if in-out < 32 {
		t.Fatalf("only %d wait at the end: the queue never grew", in-out)
	}
}
