package app

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"reprise/format"
)

// repeatError is a tick after which two runs of the same replay differ.
type repeatError struct {
	tick          format.Tick
	first, second []byte
}

func (e *repeatError) Error() string {
	return fmt.Sprintf("not deterministic at tick %d: the first run gave %s, the second %s", e.tick,
		hex.EncodeToString(e.first), hex.EncodeToString(e.second))
}

// repeatTrace keeps every hash of a first run, and compares those of a second
// one.
type repeatTrace struct {
	again  bool
	hashes []byte
	ends   []int // of each tick's hash
	at     int   // the tick of the second run
}

// tick takes the hash of the next tick; see player.EngineOptions.Trace.
func (r *repeatTrace) tick(tick format.Tick, hash []byte) error {
	if !r.again {
		r.hashes = append(r.hashes, hash...)
		r.ends = append(r.ends, len(r.hashes))
		return nil
	}
	if r.at >= len(r.ends) {
		return &repeatError{tick: tick, second: hash}
	}
	start := 0
	if r.at > 0 {
		start = r.ends[r.at-1]
	}
	first := r.hashes[start:r.ends[r.at]]
	r.at++
	if !bytes.Equal(first, hash) {
		return &repeatError{tick, first, bytes.Clone(hash)}
	}
	return nil
}
