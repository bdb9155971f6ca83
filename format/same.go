package format

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// DifferenceError is the first difference between two replays.
type DifferenceError struct {
	// Tick is where they differ; only with AtTick.
	Tick   Tick
	AtTick bool
	// What names what differs.
	What string
}

func (e *DifferenceError) Error() string {
	if e.AtTick {
		return fmt.Sprintf("tick %d: %s", e.Tick, e.What)
	}
	return e.What
}

// SameContent compares an archive with its source, step by step: every tick's
// command area, parameter area, state hash and time to the byte, keyframes,
// reports, and what the summaries say. Hashes that the archive says were left
// out may be missing, and only so many. A difference is a DifferenceError, or
// the error of what could not be read.
func SameContent(source, archive *File) error {
	c := comparison{a: source, b: archive}
	for _, step := range []func() error{c.summaries, c.ticks, c.keyframes, c.reports} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

type comparison struct{ a, b *File }

// left is how many hashes an archive says it lacks.
func left(s *Summary) uint64 {
	if s.Archive == nil {
		return 0
	}
	return s.Archive.HashesLeft
}

func (c *comparison) summaries() error {
	a, b := c.a.sum, c.b.sum
	wantHashes := a.Hashes + left(a) - left(b)
	same := []struct {
		what string
		ok   bool
	}{
		{"metadata", bytes.Equal(AppendMeta(nil, a.Meta), AppendMeta(nil, b.Meta))},
		{"code book", sameBook(c.a.book, c.b.book)},
		{"number of ticks", a.NextTick == b.NextTick && a.Ticks == b.Ticks},
		{"number of steps", a.Steps == b.Steps},
		{"number of hashes", wantHashes == b.Hashes},
		{"end", a.End == nil || b.End != nil && a.End.State == b.End.State && a.End.Reason == b.End.Reason},
		{"times", a.Timed == b.Timed && a.FirstTime == b.FirstTime && a.LastTime == b.LastTime},
		{"players", slices.Equal(a.Players, b.Players)},
		{"marks", slices.Equal(a.Marks, b.Marks)},
		{"gaps", slices.Equal(a.Gaps, b.Gaps)},
		{"number of keyframes", len(a.Keyframes) == len(b.Keyframes)},
		{"number of reports", a.Reports == b.Reports},
		{"content digest", a.Digest == nil || b.Digest != nil && *a.Digest == *b.Digest},
	}
	for _, s := range same {
		if !s.ok {
			return &DifferenceError{What: s.what + " differ"}
		}
	}
	return nil
}

func sameBook(a, b *CodeBook) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(AppendBook(nil, a), AppendBook(nil, b))
}

func (c *comparison) ticks() error {
	a, b := c.a.Reader(), c.b.Reader()
	lacking := left(c.b.sum) - left(c.a.sum)
	for {
		var x, y TickRecord
		errA, errB := a.Next(&x), b.Next(&y)
		if errA == io.EOF && errB == io.EOF {
			return nil
		}
		if errA != nil && errA != io.EOF {
			return errA
		}
		if errB != nil && errB != io.EOF {
			return errB
		}
		what := ""
		switch {
		case errA != errB || x.Tick != y.Tick:
			what = fmt.Sprintf("the other has tick %d", y.Tick)
		case x.Width != y.Width || x.Steps != y.Steps || !bytes.Equal(x.Commands, y.Commands):
			what = "the command areas differ"
		case !bytes.Equal(x.Params, y.Params):
			what = "the parameter areas differ"
		case x.Time != y.Time || x.HasTime != y.HasTime:
			what = "the times differ"
		case x.Hash != nil && y.Hash == nil && lacking > 0:
			lacking--
		case !bytes.Equal(x.Hash, y.Hash):
			what = "the state hashes differ"
		}
		if what != "" {
			return &DifferenceError{Tick: x.Tick, AtTick: true, What: what}
		}
	}
}

func (c *comparison) keyframes() error {
	at := map[Tick]int{}
	for i, k := range c.b.sum.Keyframes {
		at[k.NextTick] = i
	}
	for i, k := range c.a.sum.Keyframes {
		a, err := c.a.Keyframe(i)
		if err != nil {
			return err
		}
		j, ok := at[k.NextTick]
		if !ok {
			return &DifferenceError{Tick: k.NextTick, AtTick: true, What: "one has no keyframe before it"}
		}
		b, err := c.b.Keyframe(j)
		if err != nil {
			return err
		}
		if !bytes.Equal(a.State, b.State) {
			return &DifferenceError{Tick: k.NextTick, AtTick: true, What: "the keyframes before it differ"}
		}
	}
	return nil
}

func (c *comparison) reports() error {
	var all []Report
	err := c.a.Reports(func(r Report) error {
		r.Hash = bytes.Clone(r.Hash)
		all = append(all, r)
		return nil
	})
	if err != nil {
		return err
	}
	i := 0
	return c.b.Reports(func(r Report) error {
		if i >= len(all) || all[i].At != r.At || all[i].Of != r.Of || all[i].Peer != r.Peer || !bytes.Equal(all[i].Hash, r.Hash) {
			return &DifferenceError{Tick: r.At, AtTick: true, What: "the reports differ"}
		}
		i++
		return nil
	})
}
