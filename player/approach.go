package player

import (
	"context"

	"reprise/format"
)

// Approach is a part of a Seek: it plays at most that many ticks towards the
// state before tick next, and reports whether the playback stands there. It is
// repeated until it does; a program can listen to its user in between, and
// give up the move wherever it stands. A game that looks ahead cannot rest
// on the way, so its move is made as a whole. The errors are those of Seek.
func (p *Playback) Approach(ctx context.Context, next format.Tick, ticks int) (bool, error) {
	first, err := p.island(next)
	if err != nil {
		return false, err
	}
	for {
		from := p.nearest(first, next)
		if from.kind == fromNothing {
			return false, p.unreachable(first, next)
		}
		to := next
		if rest := next - from.next; !LooksAhead(p.sim) && rest > format.Tick(ticks) {
			to = from.next + format.Tick(ticks)
		}
		if err := p.travel(ctx, from, to); err != errBadFrame {
			return err == nil && to == next, err
		}
	}
}
