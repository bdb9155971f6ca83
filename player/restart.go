package player

import (
	"errors"
	"fmt"

	"reprise/format"
)

// prepare brings the simulation to the state before tick.
func (e *Engine) prepare(tick format.Tick) error {
	switch {
	case tick < e.next:
		return fmt.Errorf("%w: tick %d, where %d was due", ErrOutOfOrder, tick, e.next)
	case tick > e.next && e.begun:
		if err := e.gap(format.Gap{First: e.next, Last: tick - 1}, false); err != nil {
			return err
		}
	}
	if e.ready {
		return nil
	}
	return e.start(tick)
}

// start starts the simulation before tick: from a keyframe, or from the game's
// initial state where no tick is missing before it.
func (e *Engine) start(tick format.Tick) error {
	state, err := e.stateBefore(tick)
	if err != nil {
		return err
	}
	if state == nil && tick > e.next {
		e.noteGap(format.Gap{First: e.next, Last: tick - 1}, false)
	}
	gap := e.report.openGap()
	if state == nil && gap != nil {
		return gap
	}
	start := e.o.Start
	start.State, start.NextTick = state, tick
	if err := e.sim.Reset(start); err != nil {
		if gap != nil {
			return errors.Join(gap, err)
		}
		return err
	}
	e.started(tick, state != nil)
	return nil
}

func (e *Engine) started(tick format.Tick, fromKeyframe bool) {
	if !e.begun {
		e.report.Keyframe = fromKeyframe
	}
	for _, g := range e.report.Gaps {
		g.Restarted = true
	}
	e.schedule.restart()
	e.begun, e.ready, e.next = true, true, tick
}

// gap stops the simulation before ticks that are missing. What it was given
// is answered first, but for a last tick that the missing ones would settle.
func (e *Engine) gap(g format.Gap, declared bool) error {
	if g.First < e.next || g.Last < g.First {
		return fmt.Errorf("%w: gap of ticks %d to %d, where %d was due", ErrOutOfOrder, g.First, g.Last, e.next)
	}
	if e.ready && !LooksAhead(e.sim) {
		if err := e.flush(false); err != nil {
			return err
		}
	}
	e.queue.drop()
	e.ready = false
	if g.First > e.next && e.begun {
		e.noteGap(format.Gap{First: e.next, Last: g.First - 1}, false)
	}
	e.noteGap(g, declared)
	e.next = g.Last + 1
	return nil
}

func (e *Engine) noteGap(g format.Gap, declared bool) {
	e.report.Gaps = append(e.report.Gaps, &GapError{Gap: g, Declared: declared})
}

// keepFrame keeps the last keyframe that came by and may be needed: while the
// simulation waits for one, or from behind ticks that may be missing.
func (e *Engine) keepFrame(k *format.Keyframe) {
	if e.ready && k.NextTick <= e.next {
		return
	}
	e.keyframe = format.Keyframe{NextTick: k.NextTick, State: append([]byte{}, k.State...)}
	e.hasFrame = true
}

// stateBefore gives the state before tick: the one that the run was told to
// start from, or a keyframe's; nil where there is neither.
func (e *Engine) stateBefore(tick format.Tick) ([]byte, error) {
	switch {
	case !e.begun && e.o.Start.State != nil && e.o.Start.NextTick == tick:
		return e.o.Start.State, nil
	case e.hasFrame && e.keyframe.NextTick == tick:
		return e.keyframe.State, nil
	}
	finder, ok := e.source.(KeyframeFinder)
	if !ok {
		return nil, nil
	}
	state, err := finder.FindKeyframe(tick)
	if err != nil {
		return nil, fmt.Errorf("keyframe before tick %d: %w", tick, err)
	}
	return state, nil
}
