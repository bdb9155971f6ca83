package player

import "reprise/format"

// Source gives the content of a replay, or of a part of it, in tick order.
type Source interface {
	// Next gives the next item, and io.EOF behind the last one. Any other
	// error ends the run as it is. The item's memory is valid until the
	// next call. A late hash is part of its tick already; a keyframe stands
	// before the tick that it precedes, a gap in place of its ticks.
	Next() (Item, error)
}

// Item is one thing that a replay holds; exactly one of its fields is set.
type Item struct {
	Tick     *format.TickRecord
	Gap      *format.Gap
	Keyframe *format.Keyframe
}

// KeyframeFinder is a Source that can look for a keyframe anywhere in the
// replay: in a recording it may stand far behind the tick that it precedes.
type KeyframeFinder interface {
	// FindKeyframe gives the state before tick next; nil where there is
	// none. The bytes are valid until the next call of Next.
	FindKeyframe(next format.Tick) (state []byte, err error)
}
