package format

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"io"
	"slices"
	"strings"
)

// contentSink takes a replay's content in the order of a transcript. What it
// is given is valid during the call.
type contentSink interface {
	tick(*TickRecord) error
	gap(Gap) error
	keyframe(int) error
	player(PlayerEvent) error
	mark(Mark) error
	report(Report) error
}

// transcript gives a range of a replay in one order: in front of each tick
// the gaps before it, then the keyframes, players, marks and reports that
// belong to it or to an earlier tick. Lists keep their own order.
type transcript struct {
	f *File
	// first to before next is the range of ticks.
	first, next Tick
	sink        contentSink

	gaps      []Gap
	keyframes []int
	players   []PlayerEvent
	marks     []Mark
	notes     noteFeed
}

// newTranscript prepares the range of ticks from first to before next.
func newTranscript(f *File, first, next Tick, sink contentSink) *transcript {
	return &transcript{f: f, first: first, next: next, sink: sink, gaps: gapsWithin(f.sum.Gaps, first, next), keyframes: f.keyframesByTick(),
		players: f.sum.Players, marks: f.sum.Marks, notes: noteFeed{f: f}}
}

// gapsWithin gives the gaps, or parts of them, from first to before next.
func gapsWithin(gaps []Gap, first, next Tick) []Gap {
	var within []Gap
	for _, g := range gaps {
		if g.Last < first || g.First >= next {
			continue
		}
		g.First, g.Last = max(g.First, first), min(g.Last, next-1)
		within = append(within, g)
	}
	return within
}

// keyframesByTick gives the places of the summary's keyframes in the order of
// their ticks: the order in which they came is not part of the content.
func (f *File) keyframesByTick() []int {
	order := make([]int, len(f.sum.Keyframes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Compare(f.sum.Keyframes[a].NextTick, f.sum.Keyframes[b].NextTick)
	})
	return order
}

// run gives the whole range, and at its end the notes that are left.
func (t *transcript) run() error {
	r := t.f.Reader()
	r.Seek(t.first)
	var rec TickRecord
	for {
		err := r.Next(&rec)
		if err == io.EOF || err == nil && rec.Tick >= t.next {
			break
		}
		if err == nil {
			err = t.before(rec.Tick)
		}
		if err == nil {
			err = t.sink.tick(&rec)
		}
		if err != nil {
			return err
		}
	}
	return t.before(MaxTick + 1)
}

// before gives all that stands in front of a tick.
func (t *transcript) before(tick Tick) error {
	for ; len(t.gaps) > 0 && t.gaps[0].First < tick; t.gaps = t.gaps[1:] {
		if err := t.sink.gap(t.gaps[0]); err != nil {
			return err
		}
	}
	for ; len(t.keyframes) > 0 && t.f.sum.Keyframes[t.keyframes[0]].NextTick <= tick; t.keyframes = t.keyframes[1:] {
		if err := t.sink.keyframe(t.keyframes[0]); err != nil {
			return err
		}
	}
	for ; len(t.players) > 0 && t.players[0].Tick <= tick; t.players = t.players[1:] {
		if err := t.sink.player(t.players[0]); err != nil {
			return err
		}
	}
	for ; len(t.marks) > 0 && t.marks[0].Tick <= tick; t.marks = t.marks[1:] {
		if err := t.sink.mark(t.marks[0]); err != nil {
			return err
		}
	}
	return t.reports(tick)
}

func (t *transcript) reports(tick Tick) error {
	for {
		r, err := t.notes.report()
		if err != nil || r == nil || r.At > tick {
			return err
		}
		if err := t.sink.report(*r); err != nil {
			return err
		}
		t.notes.reports = t.notes.reports[1:]
	}
}

// contentWriter writes what a transcript gives: players behind their salt, and
// reports many to a chunk.
type contentWriter struct {
	*Writer
	salt    []byte
	salted  bool
	pending []Report
}

// newContentWriter begins a file. salt may be nil: where players come all the
// same, one is made from the metadata, as it is for JSON lines.
func newContentWriter(out ReplayFile, meta *Metadata, book *CodeBook, salt []byte) (*contentWriter, error) {
	w, err := NewWriter(out, meta, book)
	if err != nil {
		return nil, err
	}
	c := &contentWriter{Writer: w, salt: salt}
	if salt != nil {
		return c, c.addPlayers(nil)
	}
	sum := sha256.Sum256(AppendMeta(nil, meta))
	c.salt = sum[:SaltBytes]
	return c, nil
}

func (c *contentWriter) addPlayers(events []PlayerEvent) error {
	salt := c.salt
	if c.salted {
		salt = nil
	}
	c.salted = true
	return c.Players(salt, events)
}

func (c *contentWriter) addReport(r Report) error {
	r.Hash = bytes.Clone(r.Hash)
	if c.pending = append(c.pending, r); len(c.pending) < jsonlReports {
		return nil
	}
	return c.flushReports()
}

func (c *contentWriter) flushReports() error {
	if len(c.pending) == 0 {
		return nil
	}
	err := c.Reports(c.pending)
	c.pending = c.pending[:0]
	return err
}

// finish ends the file.
func (c *contentWriter) finish(state EndState, reason string) error {
	if err := c.flushReports(); err != nil {
		return err
	}
	return c.Finish(state, reason)
}

// endingOf gives how a file that was made of f ends: sealed where f was, for all
// that it was made of is confirmed.
func endingOf(f *File, what string) (EndState, string) {
	switch end := f.sum.End; {
	case end == nil:
		return EndUnfinished, what + " of a replay without an end"
	case end.State == EndUnfinished:
		return EndUnfinished, end.Reason
	default:
		return end.State, end.Reason
	}
}

// Labels that a file made of others carries. They are stored in files and must
// not change.
const (
	// LabelClipOf names the replay that a clip was cut from.
	LabelClipOf = "clip-of"
	// LabelEditedFrom names the replay that was edited.
	LabelEditedFrom = "edited-from"
	// LabelMergedFrom names one of the parts that were merged.
	LabelMergedFrom = "merged-from"
	// LabelPartOf names the session that a later recording of the same match
	// belongs to. Whoever records it sets it; Merge joins the two.
	LabelPartOf = "part-of"
)

// identity names a replay in the labels of what was made of it: by its session
// and its content digest, as far as it has them. Of a copy that lacks something
// it says so: what is made of it has a digest of its own, and no notice.
func identity(s *Summary) string {
	var parts []string
	if s.Meta.Session != "" {
		parts = append(parts, "session "+s.Meta.Session)
	}
	if s.Digest != nil {
		parts = append(parts, "root "+s.Digest.String())
	} else {
		parts = append(parts, "not finished")
	}
	if s.Redaction != nil {
		parts = append(parts, "redacted")
	}
	if s.Archive != nil && s.Archive.HashesLeft > 0 {
		parts = append(parts, "thinned")
	}
	return strings.Join(parts, ", ")
}

// Visitor takes a replay's content; see Walk. What it is given is valid during
// the call.
type Visitor interface {
	Tick(*TickRecord) error
	Gap(Gap) error
	Keyframe(*Keyframe) error
	Player(PlayerEvent) error
	Mark(Mark) error
	Report(Report) error
}

// Walk gives a replay's content in order: in front of each tick the gap before
// it, then the keyframes, joins and leaves, marks and reports that belong to it
// or to an earlier tick; behind the last tick what is left. Lists keep their own
// order. An error of v ends the walk and is returned.
func (f *File) Walk(v Visitor) error {
	return newTranscript(f, f.sum.Meta.FirstTick, f.sum.NextTick, &walker{f, v}).run()
}

// walker hands a transcript to a Visitor.
type walker struct {
	f *File
	v Visitor
}

func (w *walker) tick(t *TickRecord) error   { return w.v.Tick(t) }
func (w *walker) gap(g Gap) error            { return w.v.Gap(g) }
func (w *walker) player(e PlayerEvent) error { return w.v.Player(e) }
func (w *walker) mark(m Mark) error          { return w.v.Mark(m) }
func (w *walker) report(r Report) error      { return w.v.Report(r) }

func (w *walker) keyframe(i int) error {
	k, err := w.f.Keyframe(i)
	if err != nil {
		return err
	}
	return w.v.Keyframe(k)
}
