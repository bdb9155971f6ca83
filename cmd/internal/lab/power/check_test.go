package power

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"reprise/format"
)

// check holds a replay to the match: every tick before what was promised is
// there, each once and as it was recorded, and nothing that never was.
func (m *match) check(b []byte, told promises) error {
	f, err := format.NewFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	if _, err := f.Check(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := f.Summary()
	switch {
	case sum.Meta.Session != m.id:
		return fmt.Errorf("it is the replay of %q", sum.Meta.Session)
	case sum.NextTick < told.durable:
		return fmt.Errorf("it ends before tick %d, all before tick %d were acknowledged", sum.NextTick, told.durable)
	case sum.NextTick > max(m.next, m.asked):
		return fmt.Errorf("it ends before tick %d, only those before %d were recorded", sum.NextTick, m.next)
	case told.sealed && (sum.End == nil || sum.End.State != format.EndSealed || sum.NextTick != m.next):
		return fmt.Errorf("it ends before tick %d with %+v, acknowledged was that it is sealed before tick %d", sum.NextTick, sum.End, m.next)
	case told.name != "" && *sum.Digest != told.digest:
		return fmt.Errorf("its digest is %v, told was %v", *sum.Digest, told.digest)
	}
	if err := m.checkTicks(f, told); err != nil {
		return err
	}
	if told.sealed && !m.lossy {
		return m.checkNotes(f)
	}
	return nil
}

func (m *match) checkTicks(f *format.File, told promises) error {
	r := f.Reader()
	var rec format.TickRecord
	at := format.Tick(0)
	for {
		err := r.Next(&rec)
		if err == io.EOF {
			return m.checkGap(at, f.Summary().NextTick)
		}
		if err != nil {
			return err
		}
		if rec.Tick < at {
			return fmt.Errorf("tick %d stands behind tick %d", rec.Tick, at-1)
		}
		if err := m.checkGap(at, rec.Tick); err != nil {
			return err
		}
		if rec.Tick >= m.next {
			return fmt.Errorf("tick %d was never recorded", rec.Tick)
		}
		if err := m.ticks[rec.Tick].check(&rec, told.sealed); err != nil {
			return err
		}
		at = rec.Tick + 1
	}
}

// checkGap: the ticks from first to before next may be missing.
func (m *match) checkGap(first, next format.Tick) error {
	for t := first; t < next; t++ {
		if !m.holes[t] && !m.ticks[t].left {
			return fmt.Errorf("tick %d is missing, %d were recorded", t, m.next)
		}
	}
	return nil
}

func (t *tick) check(rec *format.TickRecord, sealed bool) error {
	if t.left {
		return fmt.Errorf("tick %d is there, though it was left out", rec.Tick)
	}
	if got := stepsOf(rec); got != t.steps {
		return fmt.Errorf("tick %d holds %s, recorded was %s", rec.Tick, got, t.steps)
	}
	if got := string(rec.Hash); got != t.hash && (got != "" || sealed && !t.maybe) {
		return fmt.Errorf("tick %d has hash %q, recorded was %q", rec.Tick, got, t.hash)
	}
	return nil
}

func stepsOf(rec *format.TickRecord) string {
	var r format.StepReader
	r.Reset(rec)
	var s format.Step
	var texts []string
	for r.Next(&s) {
		if len(s.Params) != 2 {
			return fmt.Sprintf("a step with %d parameters", len(s.Params))
		}
		n, _ := s.Params[0].Int64()
		mine := step{s.Code, n, s.Params[1].Str()}
		texts = append(texts, mine.String())
	}
	return strings.Join(texts, " ")
}

// checkNotes: marks, players and keyframes of a match whose processes never
// died are all there.
func (m *match) checkNotes(f *format.File) error {
	sum := f.Summary()
	var marks, players []string
	for _, k := range sum.Marks {
		marks = append(marks, k.Text)
	}
	for _, p := range sum.Players {
		players = append(players, fmt.Sprint(p.Tick, p.ID, !p.Leave))
	}
	if !slices.Equal(marks, m.marks) || !slices.Equal(players, m.players) {
		return fmt.Errorf("it holds marks %v and players %v, recorded were %v and %v", marks, players, m.marks, m.players)
	}
	if len(sum.Keyframes) != len(m.keyframe) {
		return fmt.Errorf("it holds %d keyframes, recorded were %d", len(sum.Keyframes), len(m.keyframe))
	}
	for i := range sum.Keyframes {
		k, err := f.Keyframe(i)
		if err != nil {
			return err
		}
		if string(k.State) != m.keyframe[k.NextTick] {
			return fmt.Errorf("the keyframe before tick %d has %d bytes, recorded were %d", k.NextTick, len(k.State), len(m.keyframe[k.NextTick]))
		}
	}
	return nil
}
