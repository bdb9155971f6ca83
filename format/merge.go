package format

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

var (
	// ErrOtherMatch is returned for parts that are not of one match; the text
	// says by what.
	ErrOtherMatch = errors.New("not parts of one match")
	// ErrConflict is returned for parts that hold different things for one
	// tick. See ConflictError for the tick.
	ErrConflict = errors.New("the parts differ")
)

// ConflictError is the first tick for which two parts differ. It matches
// ErrConflict.
type ConflictError struct {
	Tick Tick
	// What differs: "steps", "state hash", "time" or "keyframe".
	What string
	// A and B are the places of the two parts among those that were given.
	A, B int
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: part %d and part %d have another %s at tick %d", ErrConflict, e.A+1, e.B+1, e.What, e.Tick)
}

// Is matches ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// MergeReport says what Merge made.
type MergeReport struct {
	// Parts is the number of different parts, Duplicates that of parts with
	// the content of another one.
	Parts, Duplicates int
	// Overlap counts the ticks that more than one part has.
	Overlap              uint64
	First, Last          Tick
	Ticks, Steps, Hashes uint64
	// Gaps are all gaps; Holes those that no part declared.
	Gaps, Holes []Gap
}

// holeReason is the reason of a gap between parts.
const holeReason = "in none of the merged parts"

// Merge joins parts of one match: clips, copies that overlap, a recording and
// the one that went on with it. What several parts have has to agree; the
// error is else a ConflictError. Ticks that no part has become a gap. The
// order of the files is of no account. The label LabelMergedFrom names each
// part. out must be empty; after an error it is of no use.
func Merge(files []*File, out ReplayFile) (*MergeReport, error) {
	if len(files) == 0 {
		return nil, fmt.Errorf("%w: there are none", ErrOtherMatch)
	}
	m := newMerger(files)
	if err := m.sameMatch(); err != nil {
		return nil, err
	}
	if err := m.gather(); err != nil {
		return nil, err
	}
	var err error
	if m.w, err = m.begin(out); err != nil {
		return nil, err
	}
	if err := m.run(); err != nil {
		return nil, err
	}
	if err := m.w.finish(m.ending()); err != nil {
		return nil, err
	}
	s := m.w.t.Summary()
	r := &m.report
	r.First, r.Ticks, r.Steps, r.Hashes, r.Gaps = s.Meta.FirstTick, s.Ticks, s.Steps, s.Hashes, s.Gaps
	r.Last, _ = s.LastTick()
	return r, nil
}

// mergePart is one of the files that are merged.
type mergePart struct {
	*File
	place  int // among those that were given
	reader *Reader
	tick   TickRecord
	ended  bool
	// shift brings the part's times to the start of the whole.
	shift int64
}

type merger struct {
	parts  []*mergePart
	match  string // the session that all belong to, if it is known
	first  Tick
	next   Tick // behind the last tick of any part
	report MergeReport

	w         *contentWriter
	due       Tick
	declared  []Gap
	keyframes []partKeyframe
	players   []PlayerEvent
	marks     []Mark
	reports   []Report
}

type partKeyframe struct {
	part  *mergePart
	index int
	next  Tick
}

// newMerger puts the parts into an order that depends on what they hold alone,
// and leaves out those that hold the same.
func newMerger(files []*File) *merger {
	m := &merger{first: files[0].sum.Meta.FirstTick}
	for i, f := range files {
		m.parts = append(m.parts, &mergePart{File: f, place: i, reader: f.Reader()})
		m.first = min(m.first, f.sum.Meta.FirstTick)
		m.next = max(m.next, f.sum.NextTick)
	}
	slices.SortStableFunc(m.parts, comparePart)
	roots := map[Digest]bool{}
	m.parts = slices.DeleteFunc(m.parts, func(p *mergePart) bool {
		d := p.sum.Digest
		if d == nil {
			return false
		}
		twice := roots[*d]
		roots[*d] = true
		return twice
	})
	m.report.Parts, m.report.Duplicates = len(m.parts), len(files)-len(m.parts)
	m.due = m.first
	return m
}

func comparePart(a, b *mergePart) int {
	return cmp.Or(cmp.Compare(a.sum.Meta.FirstTick, b.sum.Meta.FirstTick), cmp.Compare(b.sum.NextTick, a.sum.NextTick),
		bytes.Compare(orderKey(a.sum), orderKey(b.sum)))
}

// orderKey tells apart what differs: a sealed replay stands before one that
// is not.
func orderKey(s *Summary) []byte {
	var key []byte
	switch {
	case s.End == nil:
		key = append(key, 0xff)
	default:
		key = append(key, byte(s.End.State))
	}
	if s.Digest != nil {
		return append(key, s.Digest[:]...)
	}
	return append(appendTotals(key, s.Totals), AppendMeta(nil, s.Meta)...)
}

// matchOf gives the session that a replay is, or is a part of; empty where it
// does not say.
func matchOf(m *Metadata) string {
	for _, l := range m.Labels {
		if l.Key == LabelPartOf {
			return l.Value
		}
	}
	if m.Session != "" {
		return m.Session
	}
	for _, l := range m.Labels {
		if l.Key == LabelClipOf || l.Key == LabelMergedFrom {
			if rest, ok := strings.CutPrefix(l.Value, "session "); ok {
				session, _, _ := strings.Cut(rest, ",")
				return session
			}
		}
	}
	return ""
}

// sameMatch refuses parts of different matches, and names what tells them
// apart.
func (m *merger) sameMatch() error {
	a := m.parts[0]
	for _, p := range m.parts {
		switch id := matchOf(p.sum.Meta); {
		case id == "":
		case m.match == "":
			m.match = id
		case id != m.match:
			return fmt.Errorf("%w: session %s and session %s", ErrOtherMatch, min(m.match, id), max(m.match, id))
		}
	}
	for _, b := range m.parts[1:] {
		x, y := a.sum.Meta, b.sum.Meta
		for _, field := range [...]struct {
			name string
			same bool
		}{
			{"game", x.Game == y.Game}, {"build", x.Build == y.Build}, {"data", x.Data == y.Data}, {"seed", x.Seed == y.Seed}, {"map", x.Map == y.Map},
			{"tick rate", x.TickRate == y.TickRate}, {"width of hashes", x.HashBytes == y.HashBytes},
			{"hash parts", slices.Equal(x.HashParts, y.HashParts)}, {"code book", agreeingBooks(a.book, b.book)},
		} {
			if !field.same {
				return fmt.Errorf("%w: the %s of part %d and part %d differ", ErrOtherMatch, field.name, min(a.place, b.place)+1, max(a.place, b.place)+1)
			}
		}
	}
	return nil
}

// agreeingBooks also takes a replay without a book for one with any.
func agreeingBooks(a, b *CodeBook) bool {
	return a == nil || b == nil || bytes.Equal(AppendBook(nil, a), AppendBook(nil, b))
}

// gather collects what stands beside the ticks.
func (m *merger) gather() error {
	start := int64(0)
	for _, p := range m.parts {
		if at := p.sum.Meta.StartedAt; at != 0 && (start == 0 || at < start) {
			start = at
		}
	}
	var players [][]PlayerEvent
	var marks [][]Mark
	var reports [][]Report
	for _, p := range m.parts {
		s := p.sum
		if s.Meta.StartedAt != 0 {
			p.shift = s.Meta.StartedAt - start
		}
		m.declared = append(m.declared, s.Gaps...)
		for _, i := range p.keyframesByTick() {
			m.keyframes = append(m.keyframes, partKeyframe{p, i, s.Keyframes[i].NextTick})
		}
		list, err := p.allReports()
		if err != nil {
			return err
		}
		players, marks, reports = append(players, s.Players), append(marks, s.Marks), append(reports, list)
	}
	m.players = unite(players, func(e PlayerEvent) Tick { return e.Tick }, appendPlayerEvent)
	m.marks = unite(marks, func(x Mark) Tick { return x.Tick }, AppendMark)
	m.reports = unite(reports, func(r Report) Tick { return r.At }, appendReport)
	slices.SortStableFunc(m.keyframes, func(a, b partKeyframe) int { return cmp.Compare(a.next, b.next) })
	slices.SortStableFunc(m.declared, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(b.Last, a.Last), cmp.Compare(a.Reason, b.Reason))
	})
	return nil
}

func (f *File) allReports() ([]Report, error) {
	var list []Report
	err := f.Reports(func(r Report) error {
		r.Hash = bytes.Clone(r.Hash)
		list = append(list, r)
		return nil
	})
	return list, err
}

// unite joins lists by tick. What stands in several lists is taken once, as
// often as the list has it that has it most.
func unite[T any](lists [][]T, at func(T) Tick, bytesOf func([]byte, T) []byte) []T {
	var all []T
	have := map[string]int{}
	for _, list := range lists {
		here := map[string]int{}
		for _, x := range list {
			key := string(bytesOf(nil, x))
			if here[key]++; here[key] > have[key] {
				have[key]++
				all = append(all, x)
			}
		}
	}
	if len(lists) > 1 {
		slices.SortStableFunc(all, func(a, b T) int { return cmp.Compare(at(a), at(b)) })
	}
	return all
}

// begin writes the opening.
func (m *merger) begin(out ReplayFile) (*contentWriter, error) {
	meta, book := m.meta(), m.parts[0].book
	var salt []byte
	for _, p := range m.parts {
		if book == nil {
			book = p.book
		}
		if salt != nil {
			continue
		}
		var err error
		if salt, err = p.salt(); err != nil {
			return nil, err
		}
	}
	if len(meta.Labels) > MaxLabels {
		return nil, fmt.Errorf("%w: the parts have %d labels together, the most is %d: merge fewer at once", ErrLimit, len(meta.Labels), MaxLabels)
	}
	return newContentWriter(out, meta, book, salt)
}

// meta joins the metadata.
func (m *merger) meta() *Metadata {
	meta := *m.parts[0].sum.Meta
	meta.FirstTick, meta.Session, meta.Labels, meta.Env = m.first, "", nil, nil
	for _, p := range m.parts {
		x := p.sum.Meta
		if x.Session == m.match {
			meta.Session = m.match
		}
		if x.StartedAt != 0 && (meta.StartedAt == 0 || x.StartedAt < meta.StartedAt) {
			meta.StartedAt = x.StartedAt
		}
		meta.Width = max(meta.Width, x.Width)
		meta.Labels = addMissing(meta.Labels, x.Labels)
		meta.Env = addMissing(meta.Env, x.Env)
	}
	if meta.Session != "" {
		meta.Labels = slices.DeleteFunc(meta.Labels, func(l Label) bool { return l == Label{LabelPartOf, meta.Session} })
	}
	if len(m.parts) > 1 {
		for _, p := range m.parts {
			s := p.sum
			name := fmt.Sprintf("%s, before tick %d", identity(s), s.NextTick)
			meta.Labels = append(meta.Labels, Label{LabelMergedFrom, name})
		}
	}
	return &meta
}

func addMissing(list, more []Label) []Label {
	for _, l := range more {
		if !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	return list
}

// ending is that of a part that reaches the last tick.
func (m *merger) ending() (EndState, string) {
	state, reason := EndUnfinished, "merged of parts without an end"
	for _, p := range m.parts {
		if p.sum.NextTick < m.next || p.sum.End == nil {
			continue
		}
		if end := p.sum.End; state != EndSealed {
			state, reason = end.State, end.Reason
		}
	}
	return state, reason
}

// run writes the ticks, each with what stands in front of it.
func (m *merger) run() error {
	for _, p := range m.parts {
		if err := p.advance(); err != nil {
			return err
		}
	}
	for {
		t, err := m.nextTick()
		if err != nil {
			return err
		}
		if t == nil {
			break
		}
		if err := m.before(t.Tick, t.Tick); err != nil {
			return err
		}
		if err := m.w.Add(t); err != nil {
			return fmt.Errorf("tick %d: %w", t.Tick, err)
		}
		m.due = t.Tick + 1
		if err := m.pass(t.Tick); err != nil {
			return err
		}
	}
	return m.before(m.next, MaxTick+1)
}

// advance moves to the part's next tick.
func (p *mergePart) advance() error {
	err := p.reader.Next(&p.tick)
	p.ended = err == io.EOF
	p.tick.Time += p.shift
	if p.ended {
		return nil
	}
	return err
}

// nextTick gives the smallest tick that any part is at, as all of them have it;
// nil at the end.
func (m *merger) nextTick() (*TickRecord, error) {
	var from *mergePart
	for _, p := range m.parts {
		if !p.ended && (from == nil || p.tick.Tick < from.tick.Tick) {
			from = p
		}
	}
	if from == nil {
		return nil, nil
	}
	t := from.tick
	shared := false
	for _, p := range m.parts {
		if p == from || p.ended || p.tick.Tick != t.Tick {
			continue
		}
		shared = true
		if what := unify(&t, &p.tick); what != "" {
			return nil, &ConflictError{Tick: t.Tick, What: what, A: min(from.place, p.place), B: max(from.place, p.place)}
		}
	}
	if shared {
		m.report.Overlap++
	}
	return &t, nil
}

// pass moves all parts behind a tick.
func (m *merger) pass(tick Tick) error {
	for _, p := range m.parts {
		if p.ended || p.tick.Tick != tick {
			continue
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
	return nil
}

// unify adds to a tick what only another copy of it has, and says what of the
// two differs.
func unify(t, other *TickRecord) string {
	switch {
	case !sameSteps(t, other):
		return "list of steps"
	case t.Hash != nil && other.Hash != nil && !bytes.Equal(t.Hash, other.Hash):
		return "state hash"
	case t.HasTime && other.HasTime && t.Time != other.Time:
		return "time"
	}
	if !bytes.Equal(t.Params, other.Params) && bytes.Compare(other.Params, t.Params) < 0 {
		t.Params = other.Params
	}
	if t.Hash == nil {
		t.Hash = other.Hash
	}
	if !t.HasTime {
		t.Time, t.HasTime = other.Time, other.HasTime
	}
	return ""
}

// sameSteps compares the inputs of two ticks by their typed values.
func sameSteps(a, b *TickRecord) bool {
	if a.Steps != b.Steps {
		return false
	}
	if a.Width == b.Width && bytes.Equal(a.Commands, b.Commands) && bytes.Equal(a.Params, b.Params) {
		return true
	}
	var ra, rb StepReader
	ra.Reset(a)
	rb.Reset(b)
	var x, y Step
	for ra.Next(&x) {
		if !rb.Next(&y) || x.Code != y.Code || !slices.EqualFunc(x.Params, y.Params, Value.Equal) {
			return false
		}
	}
	return true
}

// before writes what stands in front of a tick: the ticks that are missing,
// then the notes up to it.
func (m *merger) before(tick, notes Tick) error {
	if err := m.fill(tick); err != nil {
		return err
	}
	if err := m.keyframesBefore(notes); err != nil {
		return err
	}
	for ; len(m.players) > 0 && m.players[0].Tick <= notes; m.players = m.players[1:] {
		if err := m.w.addPlayers(m.players[:1]); err != nil {
			return fmt.Errorf("the parts do not agree on the players: %w", err)
		}
	}
	for ; len(m.marks) > 0 && m.marks[0].Tick <= notes; m.marks = m.marks[1:] {
		if err := m.w.Mark(m.marks[0]); err != nil {
			return err
		}
	}
	for ; len(m.reports) > 0 && m.reports[0].At <= notes; m.reports = m.reports[1:] {
		if err := m.w.addReport(m.reports[0]); err != nil {
			return err
		}
	}
	return nil
}

// fill declares the ticks from the due one up to before tick as missing, each
// stretch with the reason of the part that declared it.
func (m *merger) fill(tick Tick) error {
	for m.due < tick {
		for len(m.declared) > 0 && m.declared[0].Last < m.due {
			m.declared = m.declared[1:]
		}
		g := Gap{First: m.due, Last: tick - 1, Reason: holeReason, ByRecorder: true}
		declared := false
		for _, d := range m.declared {
			if d.First > m.due {
				g.Last = min(g.Last, d.First-1)
				break
			}
			if d.Last >= m.due {
				g.Last, g.Reason, g.ByRecorder, declared = min(g.Last, d.Last), d.Reason, d.ByRecorder, true
				break
			}
		}
		if err := m.w.Gap(g); err != nil {
			return err
		}
		if !declared {
			m.report.Holes = append(m.report.Holes, g)
		}
		m.due = g.Last + 1
	}
	return nil
}

// keyframesBefore writes the keyframes up to a tick, each once.
func (m *merger) keyframesBefore(tick Tick) error {
	for len(m.keyframes) > 0 && m.keyframes[0].next <= tick {
		first := m.keyframes[0]
		k, err := first.part.Keyframe(first.index)
		if err != nil {
			return err
		}
		for m.keyframes = m.keyframes[1:]; len(m.keyframes) > 0 && m.keyframes[0].next == first.next; m.keyframes = m.keyframes[1:] {
			other := m.keyframes[0]
			if err := sameKeyframe(k, first.part, other); err != nil {
				return err
			}
		}
		if err := m.w.Keyframe(*k); err != nil {
			return err
		}
	}
	return nil
}

func sameKeyframe(k *Keyframe, of *mergePart, other partKeyframe) error {
	o, err := other.part.Keyframe(other.index)
	if err == nil && !bytes.Equal(o.State, k.State) {
		err = &ConflictError{Tick: k.NextTick, What: "keyframe", A: min(of.place, other.part.place), B: max(of.place, other.part.place)}
	}
	return err
}
