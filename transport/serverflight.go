package transport

import "sync/atomic"

// flight is what was received and is not yet durable, in order. It belongs to
// the connection's reader but for the window.
type flight struct {
	window atomic.Int64
	bytes  int // 0 where nothing is in flight
	// first is the oldest chunk; mostly there is no other. Those behind it
	// are more[taken:].
	first flown
	more  []flown
	taken int
}

type flown struct {
	seq  uint64
	size int
}

// keepFlown is how many places for chunks are kept where they are not needed.
const keepFlown = 64

// add counts a chunk in; false where it exceeds the window. One chunk is
// always allowed.
func (f *flight) add(seq uint64, size int) bool {
	if f.bytes == 0 {
		f.bytes, f.first = size, flown{seq, size}
		return true
	}
	if f.bytes+size > int(f.window.Load()) {
		return false
	}
	f.bytes += size
	f.makeRoom()
	f.more = append(f.more, flown{seq, size})
	return true
}

// makeRoom uses the places of what was counted out again.
func (f *flight) makeRoom() {
	switch {
	case f.taken == len(f.more):
		f.more, f.taken = f.more[:0], 0
		if cap(f.more) > keepFlown {
			f.more = nil
		}
	case len(f.more) == cap(f.more) && f.taken >= len(f.more)/2:
		f.more, f.taken = f.more[:copy(f.more, f.more[f.taken:])], 0
	}
}

// settle counts the chunks up to seq out.
func (f *flight) settle(seq uint64) {
	for f.bytes > 0 && f.first.seq <= seq {
		if f.bytes -= f.first.size; f.bytes > 0 {
			f.first = f.more[f.taken]
			f.taken++
		}
	}
}
