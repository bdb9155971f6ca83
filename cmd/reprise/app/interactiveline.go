package app

import "reprise/format"

// The cells of the time line, and of the signs below it.
const (
	cellDone  = '='
	cellAhead = '-'
	cellGap   = '.'
	cellPlay  = '>'
	cellPause = '|'

	signMark     = 'm'
	signKeyframe = 'K'
	signBad      = 'x'
	signDesync   = '!'
)

// timeLine draws the whole replay on two lines: where the player stands and
// what is missing; and below, marks, keyframes and the first desync. What
// shares a cell with something weightier is hidden by it.
func (v *viewer) timeLine() []line {
	cells := v.width - 2
	scale := timeScale{v.summary.Meta.FirstTick, v.summary.NextTick, cells}
	bar, signs := make([]byte, cells), make([]byte, cells)
	here := scale.cell(v.at.next)
	for i := range bar {
		bar[i], signs[i] = cellAhead, ' '
		if i < here {
			bar[i] = cellDone
		}
	}
	for _, g := range v.summary.Gaps {
		for i := scale.cell(g.First); i <= scale.cell(g.Last); i++ {
			bar[i] = cellGap
		}
	}
	bar[here] = cellPause
	if v.playing {
		bar[here] = cellPlay
	}
	v.signs(scale, signs)
	return []line{{text: "[" + string(bar) + "]"}, {text: " " + string(signs)}}
}

// signs puts the signs into their cells, the weightiest last.
func (v *viewer) signs(scale timeScale, cells []byte) {
	for _, k := range v.summary.Keyframes {
		cells[scale.cell(k.NextTick)] = signKeyframe
	}
	for _, m := range v.marks {
		cells[scale.cell(m.Tick)] = signMark
	}
	for _, bad := range v.at.bad {
		cells[scale.cell(bad.NextTick)] = signBad
	}
	if d := v.at.desync; d != nil {
		cells[scale.cell(d.Tick)] = signDesync
	}
}

// timeScale spreads the ticks from first to end over cells.
type timeScale struct {
	first, end format.Tick
	cells      int
}

// cell is the cell of a tick, the last one for what is behind the end.
func (s timeScale) cell(tick format.Tick) int {
	switch {
	case tick <= s.first:
		return 0
	case tick >= s.end:
		return s.cells - 1
	}
	return int(float64(tick-s.first) / float64(s.end-s.first) * float64(s.cells-1))
}
