package format

import (
	"encoding/binary"
	"slices"
)

// Summary is what a replay says about itself without its ticks.
type Summary struct {
	Meta *Metadata
	Totals
	// End is how the session ended; nil while it is live, or where its
	// end was never written.
	End *End
	// FirstTime and LastTime are the first and last recorded times,
	// microseconds since the session's start; only with Timed.
	FirstTime, LastTime int64
	Timed               bool
	Players             []PlayerEvent
	Marks               []Mark
	Gaps                []Gap
	// Keyframes holds the whole keyframes, in the order in which they and
	// all ticks before them were there.
	Keyframes []KeyframeInfo
	// Reports counts the peers' reports.
	Reports uint64
	// Archive is set where the file is an archive, or lacks hashes that one
	// has left out.
	Archive *ArchiveInfo
	// Digest is the content digest; nil before the end.
	Digest *Digest
	// Redaction says what was erased; nil where nothing was.
	Redaction *Redaction
}

// Complete tells whether the session was sealed and misses no tick.
func (s *Summary) Complete() bool {
	return s.End != nil && s.End.State == EndSealed && len(s.Gaps) == 0
}

// Archived tells whether the file is in the archive layout.
func (s *Summary) Archived() bool { return s.Archive != nil && s.Archive.Level != ArchiveNone }

// LastTick is the last recorded tick; false in a session without ticks.
func (s *Summary) LastTick() (Tick, bool) {
	if s.Ticks == 0 {
		return 0, false
	}
	last := s.NextTick - 1
	for i := len(s.Gaps) - 1; i >= 0 && s.Gaps[i].Last == last; i-- {
		last = s.Gaps[i].First - 1
	}
	return last, true
}

// Roster folds the joins and leaves into one entry for every player, in
// the order of the first joins.
func (s *Summary) Roster() []Player {
	var players []Player
	at := map[uint64]int{}
	for _, e := range s.Players {
		i, ok := at[e.ID]
		if !ok {
			i = len(players)
			at[e.ID] = i
			players = append(players, Player{ID: e.ID})
		}
		p := &players[i]
		if e.Leave {
			if n := len(p.Stays); n > 0 {
				p.Stays[n-1].Left, p.Stays[n-1].Open = e.Tick, false
			}
			continue
		}
		p.Name, p.Team, p.Observer = e.Name, e.Team, e.Observer
		p.Stays = append(p.Stays, Stay{Joined: e.Tick, Open: true})
	}
	return players
}

// Summary gives the tracker's present state as a summary.
func (t *Tracker) Summary() *Summary {
	s := &Summary{Meta: t.meta, Totals: t.totals, End: t.end, FirstTime: t.firstTime, LastTime: t.lastTime, Timed: t.timed,
		Players: slices.Clone(t.players), Marks: slices.Clone(t.marks), Gaps: slices.Clone(t.gaps),
		Keyframes: slices.Clone(t.keyframes), Reports: t.reports, Redaction: t.redaction.facts()}
	if t.archive != nil {
		s.Archive = &t.archive.ArchiveInfo
	}
	return s
}

// Field numbers of the summary chunk are stored in files. They must not
// change. A reader skips fields that it does not know.
const (
	summaryMeta      = 1
	summaryEnd       = 2
	summaryTimes     = 3
	summaryPlayers   = 4
	summaryMarks     = 5
	summaryGaps      = 6
	summaryKeyframes = 7
	summaryReports   = 8
	summaryDigest    = 9
	summaryArchive   = 10
	summaryRedaction = 11
)

// appendSummary appends the body of a summary chunk: fields of number,
// length and content, by ascending number; empty ones are left out.
func appendSummary(dst []byte, s *Summary) []byte {
	field := func(id uint64, content []byte) {
		if len(content) == 0 {
			return
		}
		dst = binary.AppendUvarint(dst, id)
		dst = binary.AppendUvarint(dst, uint64(len(content)))
		dst = append(dst, content...)
	}
	field(summaryMeta, AppendMeta(nil, s.Meta))
	field(summaryEnd, AppendEnd(nil, *s.End))
	if s.Timed {
		field(summaryTimes, binary.AppendUvarint(binary.AppendUvarint(nil, uint64(s.FirstTime)), uint64(s.LastTime)))
	}
	field(summaryPlayers, appendList(s.Players, appendPlayerEvent))
	field(summaryMarks, appendList(s.Marks, AppendMark))
	field(summaryGaps, appendList(s.Gaps, AppendGap))
	field(summaryKeyframes, appendList(s.Keyframes, appendKeyframeInfo))
	if s.Reports > 0 {
		field(summaryReports, binary.AppendUvarint(nil, s.Reports))
	}
	field(summaryDigest, s.Digest[:])
	if s.Archive != nil {
		field(summaryArchive, appendArchiveInfo(nil, *s.Archive))
	}
	if s.Redaction != nil {
		field(summaryRedaction, s.Redaction.appendFacts(nil))
	}
	return dst
}

// appendList appends a count and the items; nothing for no items.
func appendList[T any](items []T, item func([]byte, T) []byte) []byte {
	if len(items) == 0 {
		return nil
	}
	b := binary.AppendUvarint(nil, uint64(len(items)))
	for _, x := range items {
		b = item(b, x)
	}
	return b
}

func appendKeyframeInfo(dst []byte, k KeyframeInfo) []byte {
	for _, v := range [4]uint64{k.ID, uint64(k.NextTick), k.Size, uint64(k.Offset)} {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

func (c *cursor) keyframeInfo() KeyframeInfo {
	return KeyframeInfo{ID: c.uvarint("a keyframe's id"), NextTick: c.tick("a keyframe's next tick"),
		Size: c.limited("a keyframe's size", MaxKeyframe), Offset: int64(c.limited("a keyframe's offset", 1<<62))}
}

// parseSummary reads the body of a summary chunk.
func parseSummary(body []byte) (*Summary, error) {
	s := &Summary{}
	c := cursor{b: body}
	last := uint64(0)
	for c.err == nil && c.rest() > 0 {
		id := c.uvarint("a field number")
		if c.err == nil && id <= last {
			c.fail("field %d after field %d", id, last)
		}
		last = id
		content := c.bytes(c.count("the length of a field", MaxBody, 1), "a field")
		if c.err == nil {
			c.failIn(id, content, s.setField(id, content))
		}
	}
	if c.err == nil && (s.Meta == nil || s.End == nil || s.Digest == nil) {
		c.fail("the metadata, the end or the digest is missing")
	}
	if c.err == nil {
		s.checkCounts(&c)
	}
	return s, c.done()
}

// checkCounts checks that the counts can be those of one session, so that
// nobody computes with a length below zero.
func (s *Summary) checkCounts(c *cursor) {
	next, missing := s.Meta.FirstTick, Tick(0)
	for _, g := range s.Gaps {
		if g.First < next {
			c.fail("gap from tick %d, not before tick %d", g.First, next)
			return
		}
		missing += g.Last - g.First + 1
		next = g.Last + 1
	}
	switch {
	case s.NextTick < next || uint64(s.NextTick-s.Meta.FirstTick-missing) != s.Ticks:
		c.fail("%d ticks from %d to before %d without %d in gaps", s.Ticks, s.Meta.FirstTick, s.NextTick, missing)
	case s.Hashes > s.Ticks:
		c.fail("%d hashes of %d ticks", s.Hashes, s.Ticks)
	case s.FirstTime > s.LastTime:
		c.fail("times from %d to %d", s.FirstTime, s.LastTime)
	}
}

func (s *Summary) setField(id uint64, content []byte) error {
	f := cursor{b: content}
	if id >= summaryPlayers && id <= summaryGaps && len(content) > MaxNoteBytes+binary.MaxVarintLen64 {
		return corrupt(0, "a list of %d bytes, the most is %d", len(content), MaxNoteBytes)
	}
	switch id {
	case summaryMeta:
		m, err := ParseMeta(content)
		s.Meta = m
		return err
	case summaryEnd:
		e, err := ParseEnd(content)
		s.End, s.Totals = &e, e.Totals
		return err
	case summaryTimes:
		s.FirstTime = int64(f.limited("the first time", 1<<62))
		s.LastTime = int64(f.limited("the last time", 1<<62))
		s.Timed = true
	case summaryPlayers:
		s.Players = f.playerEvents()
	case summaryMarks:
		s.Marks = parseList(&f, MaxNoteBytes, f.mark)
	case summaryGaps:
		s.Gaps = parseList(&f, MaxNoteBytes, f.gap)
	case summaryKeyframes:
		s.Keyframes = parseList(&f, MaxKeyframes, f.keyframeInfo)
	case summaryReports:
		s.Reports = f.uvarint("the number of reports")
	case summaryArchive:
		i := f.archiveInfo()
		s.Archive = &i
	case summaryRedaction:
		s.Redaction = f.redactionFacts()
	case summaryDigest:
		s.Digest = new(Digest)
		copy(s.Digest[:], f.bytes(len(s.Digest), "the digest"))
	default:
		return nil
	}
	return f.done()
}

// parseList reads a count and so many items of at least four bytes.
func parseList[T any](f *cursor, most uint64, item func() T) []T {
	n := f.count("the number of items", most, 4)
	items := make([]T, 0, n)
	for range n {
		items = append(items, item())
	}
	return items
}
