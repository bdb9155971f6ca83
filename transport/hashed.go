package transport

import "reprise/format"

// hashed remembers which of the last format.MaxHashLag ticks have a hash,
// so that a second one is refused where it is made.
type hashed struct{ bits []uint64 }

// newHashed is for a session whose hashes have width bytes.
func newHashed(width int) hashed {
	if width == 0 {
		return hashed{}
	}
	return hashed{bits: make([]uint64, format.MaxHashLag/64)}
}

// open forgets what stood in the place of a new tick.
func (h *hashed) open(t format.Tick) {
	if h.bits != nil {
		h.bits[t%format.MaxHashLag/64] &^= 1 << (t % 64)
	}
}

func (h *hashed) has(t format.Tick) bool { return h.bits[t%format.MaxHashLag/64]>>(t%64)&1 == 1 }

func (h *hashed) set(t format.Tick) { h.bits[t%format.MaxHashLag/64] |= 1 << (t % 64) }
