package format

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoStart is returned for a clip that no simulation could play: it would
// begin behind the replay's first tick without a keyframe.
var ErrNoStart = errors.New("the clip has no state to start from")

// ErrRange is returned for a range of ticks that the replay does not have.
var ErrRange = errors.New("not in the replay")

// ClipOptions say what Clip cuts out.
type ClipOptions struct {
	// From and To are the first and the last tick that are wanted.
	From, To Tick
	// State is the state before tick From, made by simulation. The clip then
	// begins with From; nil means that it begins with the last keyframe that
	// stands at From or before it.
	State []byte
	// WithoutKeyframe cuts at From also where no keyframe leads there: such
	// a clip can be read, but not simulated.
	WithoutKeyframe bool
}

// ClipReport says what a clip holds.
type ClipReport struct {
	// First and Last are its ticks. First is before the wanted one where the
	// last keyframe is.
	First, Last Tick
	// Keyframe tells whether the clip begins with a keyframe.
	Keyframe             bool
	Ticks, Steps, Hashes uint64
	Gaps                 []Gap
	// Source is what the clip says of the replay that it was cut from. Nothing
	// in the clip proves it.
	Source string
	// Signers are the keys whose signatures over the source hold; Source names
	// them. Doubt says why those of a signed source are not named: it did not
	// pass its check.
	Signers []PublicKey
	Doubt   error
}

// Clip cuts a range of ticks out of a replay: a file that can be played and
// verified alone. It keeps the numbers of the ticks, their hashes and times,
// the keyframes, marks and reports of its ticks, and every join and leave up
// to its end. It begins with a keyframe, unless that is the replay's own
// first tick. Its label LabelClipOf names the replay, the range, and who had
// signed the replay, which is checked for that; it has no session id, for it is
// not the session. The leaves of whole segments are those of the replay. out must be empty; after an error it is of no use.
func Clip(f *File, out ReplayFile, o ClipOptions) (*ClipReport, error) {
	s := f.sum
	first, err := f.clipStart(&o)
	if err != nil {
		return nil, err
	}
	signers, doubt := f.signers()
	source := fmt.Sprintf("%s, ticks %d to %d", identity(s), o.From, o.To) + signedBy(signers)
	meta := *s.Meta
	meta.Session, meta.FirstTick = "", first
	meta.Labels = append(meta.Labels[:len(meta.Labels):len(meta.Labels)], Label{LabelClipOf, source})
	salt, err := f.salt()
	if err != nil {
		return nil, err
	}
	w, err := newContentWriter(out, &meta, f.book, salt)
	if err != nil {
		return nil, err
	}
	c := &clipper{contentWriter: w, f: f, first: first, next: o.To + 1}
	if o.State != nil && f.keyframeAt(o.From) < 0 {
		if err := w.Keyframe(Keyframe{NextTick: first, State: o.State}); err != nil {
			return nil, err
		}
	}
	if err := newTranscript(f, first, c.next, c).run(); err != nil {
		return nil, err
	}
	if err := w.finish(endingOf(f, "clip")); err != nil {
		return nil, err
	}
	report := clipReport(w.t.Summary())
	report.Source, report.Signers, report.Doubt = source, signers, doubt
	return report, nil
}

// signers gives the keys of a replay's signatures, once the replay passed its
// check.
func (f *File) signers() (list []PublicKey, err error) {
	if len(f.signatures) == 0 {
		return nil, nil
	}
	k, err := f.checked()
	if err != nil {
		return nil, err
	}
	for _, g := range k.signatures {
		list = append(list, g.Key)
	}
	return list, nil
}

// signedBy is how the label of a clip names those who signed its source.
func signedBy(keys []PublicKey) string {
	if len(keys) == 0 {
		return ""
	}
	var ids []string
	for _, k := range keys {
		ids = append(ids, "key "+k.ID())
	}
	return ", signed by " + strings.Join(ids, ", ")
}

func clipReport(s *Summary) *ClipReport {
	r := &ClipReport{First: s.Meta.FirstTick, Last: s.NextTick - 1, Ticks: s.Ticks, Steps: s.Steps, Hashes: s.Hashes, Gaps: s.Gaps}
	for _, k := range s.Keyframes {
		r.Keyframe = r.Keyframe || k.NextTick == r.First
	}
	return r
}

// clipStart decides with which tick a clip begins, and refuses a range that
// would give none that can be played.
func (f *File) clipStart(o *ClipOptions) (Tick, error) {
	s := f.sum
	switch {
	case s.NextTick == s.Meta.FirstTick:
		return 0, fmt.Errorf("%w: it has no ticks", ErrRange)
	case o.From > o.To:
		return 0, fmt.Errorf("%w: tick %d is after tick %d", ErrRange, o.From, o.To)
	case o.From < s.Meta.FirstTick || o.To >= s.NextTick:
		return 0, fmt.Errorf("%w: ticks %d to %d: it has the ticks %d to %d", ErrRange, o.From, o.To, s.Meta.FirstTick, s.NextTick-1)
	}
	if gap := gapsWithin(s.Gaps, o.From, o.From+1); len(gap) > 0 {
		return 0, fmt.Errorf("%w: tick %d is missing: begin behind the gap, or before it", ErrRange, o.From)
	}
	if o.State != nil {
		return o.From, nil
	}
	start, err := f.startBefore(o.From)
	if err != nil && o.WithoutKeyframe {
		return o.From, nil
	}
	return start, err
}

// startBefore gives the last tick up to from that a simulation can start with
// and go on from.
func (f *File) startBefore(from Tick) (Tick, error) {
	s := f.sum
	start := s.Meta.FirstTick
	if i := f.lastKeyframe(from); i >= 0 {
		start = s.Keyframes[i].NextTick
	} else if start < from {
		return 0, fmt.Errorf("%w: no keyframe stands at tick %d or before it", ErrNoStart, from)
	}
	if gaps := gapsWithin(s.Gaps, start, from); len(gaps) > 0 {
		return 0, fmt.Errorf("%w: ticks %d to %d are missing between the last keyframe, before tick %d, and tick %d", ErrNoStart,
			gaps[0].First, gaps[len(gaps)-1].Last, start, from)
	}
	return start, nil
}

// lastKeyframe finds the last keyframe at tick t or before it; -1 for none.
func (f *File) lastKeyframe(t Tick) int {
	last := -1
	for i, k := range f.sum.Keyframes {
		if k.NextTick <= t && (last < 0 || k.NextTick > f.sum.Keyframes[last].NextTick) {
			last = i
		}
	}
	return last
}

// keyframeAt finds the keyframe before tick t; -1 for none.
func (f *File) keyframeAt(t Tick) int {
	if i := f.lastKeyframe(t); i >= 0 && f.sum.Keyframes[i].NextTick == t {
		return i
	}
	return -1
}

// clipper writes what lies inside of a range.
type clipper struct {
	*contentWriter
	f           *File
	first, next Tick
}

func (c *clipper) within(t Tick) bool { return t >= c.first && t < c.next }

func (c *clipper) tick(t *TickRecord) error { return c.Add(t) }
func (c *clipper) gap(g Gap) error          { return c.Gap(g) }

func (c *clipper) keyframe(i int) error {
	if at := c.f.sum.Keyframes[i].NextTick; at < c.first || at > c.next {
		return nil
	}
	k, err := c.f.Keyframe(i)
	if err != nil {
		return err
	}
	return c.Keyframe(*k)
}

// player keeps those of earlier ticks, too: they say who is there.
func (c *clipper) player(e PlayerEvent) error {
	if e.Tick >= c.next {
		return nil
	}
	return c.addPlayers([]PlayerEvent{e})
}

func (c *clipper) mark(m Mark) error {
	if !c.within(m.Tick) {
		return nil
	}
	return c.Mark(m)
}

// report goes by the tick that was hashed.
func (c *clipper) report(r Report) error {
	if !c.within(r.Of) {
		return nil
	}
	return c.addReport(r)
}
