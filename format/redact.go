package format

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
)

// RedactOptions say what Redact erases besides the players, what the code
// book and the metadata call personal, and a kept header of JSON lines.
type RedactOptions struct {
	// Labels are the keys of further labels and facts of the environment.
	Labels []string
	// MarkTexts empties the texts of all marks.
	MarkTexts bool
}

// RedactReport says what Redact erased, and what it cannot know.
type RedactReport struct {
	// Names counts the players, by their ids, whose names were erased.
	Names int
	// Params counts the parameters that were emptied, Segments the segments
	// that they stand in.
	Params, Segments uint64
	// Labels are the keys of erased labels and facts.
	Labels []string
	// Header is set where a kept header of JSON lines was erased.
	Header bool
	// Marks counts the marks whose text was emptied.
	Marks int
	// Unknown counts the chunks of unknown types that were left out, since
	// they may hold anything.
	Unknown int
	// Left names what is still there and may be personal: nothing in the file
	// says whether it is.
	Left []string
}

// Redacted tells whether anything was erased.
func (r *RedactReport) Redacted() bool {
	return r.Names > 0 || r.Params > 0 || len(r.Labels) > 0 || r.Header || r.Marks > 0 || r.Unknown > 0
}

// Redact writes a copy of f, which must have an end, without what is
// personal. The copy has the content digest and the signatures of f, and says
// what was erased. All of f is checked first.
func Redact(f *File, o RedactOptions, out ReplayFile) (*RedactReport, error) {
	if f.Torn != nil {
		return nil, f.Torn
	}
	if f.sum.End == nil {
		return nil, ErrNoEnd
	}
	k, err := f.checked()
	if err != nil {
		return nil, err
	}
	r := &redactor{copier: newCopier(out), f: f, o: o, leaves: k.t.content.leafList(*k.t.digest), had: k.t.redaction, report: &RedactReport{}}
	if err := r.plan(); err != nil {
		return nil, err
	}
	if err := r.copy(); err != nil {
		return nil, err
	}
	return r.report, r.finish(f, out, r.leaves.Root, k.leaves)
}

// redactor makes one redacted copy.
type redactor struct {
	copier
	f      *File
	o      RedactOptions
	leaves *LeafList
	had    *Redaction // by an earlier redaction
	report *RedactReport

	meta      *Metadata
	redaction *Redaction
	archive   archiveReader
	open      bool // the redaction chunk is written
}

// plan decides what is erased, before the first byte is written: the redaction
// chunk stands in front.
func (r *redactor) plan() error {
	r.redaction = r.had.clone()
	r.planMeta()
	s := r.f.sum
	if len(s.Players) > 0 {
		r.report.Names = len(s.Roster())
	}
	if !r.redaction.Players && r.f.hasPlayers() {
		r.redaction.Players, r.redaction.players = true, &r.leaves.lists[leafPlayers][0]
	}
	r.planMarks()
	return r.planInputs()
}

// planMeta takes the metadata without what is erased of them.
func (r *redactor) planMeta() {
	m := *r.f.sum.Meta
	m.Labels, m.Env = r.without(m.Labels), r.without(m.Env)
	if m.Origin.Format == originJSONL {
		m.Origin, r.report.Header = Origin{}, true
	}
	if len(r.report.Labels) > 0 || r.report.Header {
		r.redaction.Metadata = true
		r.redaction.meta = cmp.Or(r.redaction.meta, &r.leaves.lists[leafMeta][0])
	}
	r.meta = &m
	for _, l := range m.Labels {
		r.left("label %q", l.Key)
	}
	for _, l := range m.Env {
		r.left("environment %q", l.Key)
	}
}

func (r *redactor) without(labels []Label) (list []Label) {
	for _, l := range labels {
		if slices.Contains(r.o.Labels, l.Key) || slices.Contains(r.f.sum.Meta.Personal, l.Key) {
			r.report.Labels = append(r.report.Labels, l.Key)
			continue
		}
		list = append(list, l)
	}
	return list
}

func (r *redactor) left(what string, args ...any) {
	r.report.Left = append(r.report.Left, fmt.Sprintf(what, args...))
}

func (r *redactor) planMarks() {
	texts := 0
	for i, m := range r.f.sum.Marks {
		if m.Text == "" {
			continue
		}
		if texts++; !r.o.MarkTexts {
			continue
		}
		own := leaf(leafMark, AppendMark(nil, m))
		r.redaction.marks = keep(r.redaction.marks, uint64(i), own)
		r.report.Marks++
	}
	r.redaction.Marks = uint64(len(r.redaction.marks))
	if texts > r.report.Marks {
		r.left("the texts of %s", plural(texts, "mark"))
	}
}

// keep adds a leaf, unless there is one of its number: that is the older one.
func keep(list []keptLeaf, index uint64, leaf Digest) []keptLeaf {
	i, ok := findKept(list, index)
	if ok {
		return list
	}
	return slices.Insert(list, i, keptLeaf{index, leaf})
}

// planInputs finds the segments with personal parameters that are not empty,
// and the texts of which nobody says whether they are personal.
func (r *redactor) planInputs() error {
	touched := map[uint64]bool{}
	undeclared := map[textPlace]uint64{}
	personal := personalParams(r.f.book)
	ticks := r.f.Reader()
	var t TickRecord
	for {
		err := ticks.Next(&t)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		eachParam(&t, func(code uint16, i int, raw []byte) {
			if personal.has(code, i) {
				if !isEmptyParam(raw) {
					touched[uint64(t.Tick)/SegmentTicks] = true
					r.report.Params++
				}
			} else if isText(raw) {
				undeclared[textPlace{code, i}]++
			}
		})
	}
	r.keepInputs(touched)
	r.leftTexts(undeclared)
	return nil
}

func (r *redactor) keepInputs(touched map[uint64]bool) {
	for _, s := range r.leaves.Segments {
		if touched[s.Index] {
			r.redaction.inputs = keep(r.redaction.inputs, s.Index, s.Inputs)
			r.report.Segments++
		}
	}
	r.redaction.Params += r.report.Params
	r.redaction.Segments = uint64(len(r.redaction.inputs))
}

// textPlace is a parameter of a code that holds text.
type textPlace struct {
	code  uint16
	index int
}

// mostPlaces is how many places of texts a report names.
const mostPlaces = 16

func (r *redactor) leftTexts(undeclared map[textPlace]uint64) {
	places := slices.SortedFunc(maps.Keys(undeclared), func(a, b textPlace) int {
		return cmp.Or(cmp.Compare(a.code, b.code), cmp.Compare(a.index, b.index))
	})
	for n, p := range places {
		if n == mostPlaces {
			r.left("texts in %s more", plural(len(places)-n, "place"))
			break
		}
		name := ""
		if info := r.f.book.Lookup(p.code); info != nil {
			name = fmt.Sprintf(" %q", info.Name)
		}
		r.left("%s in parameter %d of code %d%s, which the code book does not call personal", plural(undeclared[p], "text"), p.index, p.code, name)
	}
	if n := len(r.f.sum.Keyframes); n > 0 {
		r.left("the game's own state in %s", plural(n, "keyframe"))
	}
	if r.f.sum.Meta.Session != "" {
		r.left("the session's id")
	}
	for _, g := range r.f.sum.Gaps {
		if g.Reason != "" {
			r.left("the reasons of gaps")
			break
		}
	}
}

// copy writes the content, chunk by chunk.
func (r *redactor) copy() error {
	if err := r.write(AppendHeader(nil)); err != nil {
		return err
	}
	s := scanner{src: r.f.src, size: r.f.data, at: HeaderSize}
	for {
		c, _, err := s.next()
		if err == io.EOF || err == nil && c.Type == ChunkEnd {
			return r.ensureRedaction()
		}
		if err != nil {
			return err
		}
		if err := r.chunk(c); err != nil {
			return err
		}
	}
}

func (r *redactor) chunk(c Chunk) error {
	switch {
	case c.Type == ChunkMeta:
		return r.put(ChunkMeta, 0, AppendMeta(nil, r.meta))
	case c.Type == ChunkBook:
		return r.put(c.Type, c.Seq, c.Body)
	case !c.Type.Known():
		r.report.Unknown++
		return nil
	case c.Type == ChunkRedaction, c.Type == ChunkPlayers:
		return nil
	}
	if err := r.ensureRedaction(); err != nil {
		return err
	}
	switch {
	case c.Type.holdsTicks():
		return r.ticks(c)
	case c.Type == ChunkMark:
		return r.mark(c)
	}
	return r.put(c.Type, c.Seq, c.Body)
}

// ensureRedaction writes the redaction chunk behind the opening.
func (r *redactor) ensureRedaction() error {
	body := appendRedaction(nil, r.redaction)
	if r.open || len(body) == 0 {
		return nil
	}
	r.open = true
	return r.put(ChunkRedaction, 0, body)
}

func (r *redactor) mark(c Chunk) error {
	m, err := ParseMark(c.Body)
	if err != nil {
		return err
	}
	if r.o.MarkTexts {
		m.Text = ""
	}
	return r.put(c.Type, c.Seq, AppendMark(nil, m))
}

// ticks copies a chunk of ticks as it is, or with its personal parameters
// emptied, then in the plain layout.
func (r *redactor) ticks(c Chunk) error {
	b, err := r.archive.batch(c, r.meta.HashBytes)
	if err != nil {
		return err
	}
	body, changed, err := emptyPersonal(&b, r.meta.HashBytes, personalParams(r.f.book))
	if err != nil {
		return err
	}
	if !changed {
		return r.put(c.Type, c.Seq, c.Body)
	}
	return r.put(ChunkTicks, c.Seq, body)
}

// hasPlayers tells whether the file has a salt, so also a players chunk.
func (f *File) hasPlayers() bool {
	s := scanner{src: f.src, size: f.data, at: HeaderSize}
	for {
		c, _, err := s.next()
		if err != nil {
			return false
		}
		if c.Type == ChunkPlayers {
			return true
		}
	}
}

// personalSet holds which parameters of which codes are personal.
type personalSet map[uint16][]ParamInfo

func personalParams(book *CodeBook) personalSet {
	set := personalSet{}
	if book == nil {
		return set
	}
	for _, code := range book.Codes {
		if slices.ContainsFunc(code.Params, func(p ParamInfo) bool { return p.Personal }) {
			set[code.Code] = code.Params
		}
	}
	return set
}

func (s personalSet) has(code uint16, index int) bool {
	params := s[code]
	return index < len(params) && params[index].Personal
}

// eachParam walks the stored parameters of a tick, in order.
func eachParam(t *TickRecord, each func(code uint16, index int, raw []byte)) {
	at := 0
	for c := 0; c < len(t.Commands); c += t.Width.entry() {
		count, code := readCommand(t.Commands[c:], t.Width)
		for i := range count {
			n, err := ParamLength(t.Params[at:])
			if err != nil {
				return // was checked with the chunk
			}
			each(code, i, t.Params[at:at+n])
			at += n
		}
	}
}

// emptyPersonal gives the body of a batch whose personal parameters are
// empty; false where they are already.
func emptyPersonal(b *Batch, hashBytes int, personal personalSet) ([]byte, bool, error) {
	if len(personal) == 0 {
		return nil, false, nil
	}
	bb := NewBatchBuilder(b.Width, hashBytes, b.First)
	changed := false
	ticks := b.Reader()
	var t TickRecord
	for ticks.Next(&t) {
		var params []byte
		eachParam(&t, func(code uint16, i int, raw []byte) {
			if personal.has(code, i) && !isEmptyParam(raw) {
				raw, changed = emptyParam(raw), true
			}
			params = append(params, raw...)
		})
		t.Params = params
		if err := bb.Add(&t); err != nil {
			return nil, false, err
		}
	}
	if !changed {
		return nil, false, nil
	}
	return bb.AppendBody(nil), true, nil
}

// emptyValues are what personal parameters become, by kind: their position and
// their type stay.
var emptyValues = map[Kind]Value{KindBool: Bool(false), KindInt: Int(0), KindFloat: Float(0), KindBig: BigInt(new(big.Int)),
	KindString: String(""), KindBytes: Bytes(nil), KindInts: Ints(nil)}

// emptyParam gives the stored form of the empty value of raw's type.
func emptyParam(raw []byte) []byte {
	v, _, err := ParseParam(raw)
	if err != nil {
		return raw
	}
	b, err := AppendParam(nil, emptyValues[v.Kind()])
	if err != nil {
		return raw
	}
	return b
}

func isEmptyParam(raw []byte) bool { return bytes.Equal(raw, emptyParam(raw)) }

// isText tells whether a parameter may hold words.
func isText(raw []byte) bool {
	v, _, err := ParseParam(raw)
	return err == nil && (v.Kind() == KindString || v.Kind() == KindBytes) && v.Len() > 0
}

// redactionCheck holds that a redaction can be one: whoever changes inputs
// could otherwise say of any segment that it was redacted.
type redactionCheck struct {
	personal personalSet
	seen     map[uint64]bool // segments with a personal parameter
}

// chunk looks at the ticks of a replay whose inputs were redacted.
func (k *redactionCheck) chunk(t *Tracker, c Chunk, at int64) error {
	if t.redaction == nil || len(t.redaction.inputs) == 0 || !c.Type.holdsTicks() {
		return nil
	}
	if k.seen == nil {
		k.personal, k.seen = personalParams(t.book), map[uint64]bool{}
	}
	b, err := t.archives.batch(c, t.meta.HashBytes)
	if err != nil {
		return err
	}
	ticks := b.Reader()
	var rec TickRecord
	for err == nil && ticks.Next(&rec) {
		segment := uint64(rec.Tick) / SegmentTicks
		if _, ok := findKept(t.redaction.inputs, segment); !ok {
			continue
		}
		eachParam(&rec, func(code uint16, i int, raw []byte) {
			if !k.personal.has(code, i) {
				return
			}
			k.seen[segment] = true
			if !isEmptyParam(raw) {
				err = &ChangedError{Offset: at, What: fmt.Sprintf("a personal parameter in tick %d, whose segment is said to be redacted", rec.Tick)}
			}
		})
	}
	return err
}

// atEnd holds that each redacted segment has something to redact. One that
// lacks ticks may have lost it, and so may one without its code book, whose
// leaf is always that of what is there.
func (k *redactionCheck) atEnd(t *Tracker, at int64) error {
	if t.redaction == nil || t.book == nil {
		return nil
	}
	for _, s := range t.redaction.inputs {
		first := Tick(s.index * SegmentTicks)
		if !k.seen[s.index] && t.content.has(s.index) && !t.lacks(first, first+SegmentTicks-1) {
			return &ChangedError{Offset: at, What: fmt.Sprintf("the inputs of segment %d are said to be redacted, but it has no personal parameter", s.index)}
		}
	}
	return nil
}

// lacks tells whether a tick of a range is in a gap.
func (t *Tracker) lacks(first, last Tick) bool {
	i, _ := slices.BinarySearchFunc(t.gaps, first, func(g Gap, first Tick) int { return cmp.Compare(g.Last, first) })
	return i < len(t.gaps) && t.gaps[i].First <= last
}

// has tells whether a segment has ticks. The newest may still be open.
func (c *content) has(index uint64) bool {
	_, closed := slices.BinarySearchFunc(c.segments, index, func(s Segment, index uint64) int { return cmp.Compare(s.Index, index) })
	return closed || c.open.ticks > 0 && c.open.index == index
}
