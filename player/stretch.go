package player

import (
	"math"

	"reprise/format"
)

// stretch is a run of ticks that are all there, or all missing: from first up
// to, but without, behind. Gaps that touch make one stretch.
type stretch struct {
	first, behind format.Tick
	missing       bool
}

// stretchAt gives the stretch that a tick lies in. The last one has no end.
func stretchAt(s *format.Summary, tick format.Tick) stretch {
	at := s.Meta.FirstTick
	missing := stretch{first: at, behind: at, missing: true}
	for _, g := range s.Gaps {
		if g.First > missing.behind {
			if tick < missing.behind {
				return missing
			}
			if tick < g.First {
				return stretch{first: missing.behind, behind: g.First}
			}
			missing.first = g.First
		}
		missing.behind = g.Last + 1
	}
	if tick < missing.behind {
		return missing
	}
	return stretch{first: missing.behind, behind: math.MaxUint64}
}
