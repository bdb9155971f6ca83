package format

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
)

// Tracker follows a session's chunks in order. It decides whether a chunk
// can follow the ones before it, and gathers what the end of the file needs:
// counts, seek table and content digest. Its memory is bounded but for
// about 130 bytes for every 1,024 ticks or 64 KiB.
type Tracker struct {
	// What a ticks chunk touches comes first, down to the hash of inputs in
	// content. Behind the allocator's eight bytes it fills two lines of the
	// processor's cache: of many sessions none is there when its chunk comes.
	lastSeq   uint64
	totals    Totals
	lastTime  int64
	width     Width // the metadata's; 0 before it
	hashBytes uint8 // the metadata's
	timed     bool
	opened    bool // something but metadata, code book and players was there
	started   bool // something was there that a redaction may speak of
	ended     bool
	late      bool
	noticing  bool // notices wait to be taken
	// The next entry of seek is due at this tick, or at this offset.
	seekTick   Tick
	seekOffset int64
	parts      map[uint64]*openKeyframe // nil while no keyframe is open
	content    content

	hashed hashWindow

	meta      *Metadata
	book      *CodeBook
	salted    bool
	opening   int // bytes of metadata and code book
	end       *End
	firstTime int64

	present   map[uint64]bool
	players   []PlayerEvent
	marks     []Mark
	gaps      []Gap
	reports   uint64
	noteBytes [3]int

	keyframes []KeyframeInfo
	keyed     map[Tick]bool // the ticks of keyframes
	notices   []string
	noticed   int

	redaction *Redaction
	digest    *Digest // once the content is closed

	// archives decodes archived ticks; nil where they are refused, since
	// decoding is work that no producer may order.
	archives *archiveReader
	archive  *archiveNotice
	seek     []seekEntry
}

// openKeyframe is a keyframe whose parts are still coming.
type openKeyframe struct {
	info KeyframeInfo
	got  uint64
	sum  hash.Hash
}

// KeyframeInfo says where a whole keyframe stands in a file.
type KeyframeInfo struct {
	// ID is the id of its parts, NextTick the tick it stands before.
	ID       uint64
	NextTick Tick
	Size     uint64
	// Offset is the place of its first part's chunk.
	Offset int64
}

// seekEntry opens a stretch of chunks: the ticks from tick on begin at
// offset. late is the smallest tick whose hash came late within the
// stretch; noLate if there is none.
type seekEntry struct {
	tick   Tick
	step   uint64
	offset int64
	late   Tick
}

const (
	noLate = MaxTick + 1

	// A seek entry stands at the first ticks chunk after so many ticks or
	// bytes.
	seekTicks = 1024
	seekBytes = 64 << 10

	// maxNotices is how many notices a session gives: a producer could
	// otherwise fill memory and logs with them.
	maxNotices = 64
)

// listLeaves has the tracker keep the leaves that a leaves chunk lists. It is
// called before the first chunk.
func (t *Tracker) listLeaves() { t.content.lists = &leafLists{} }

// NewTracker starts before a session's metadata.
func NewTracker() *Tracker {
	return &Tracker{content: content{players: newLeaf(leafPlayers)}}
}

// Parsed is a chunk whose body was read and found able to follow.
type Parsed struct {
	Chunk Chunk
	// Batch is set for a ticks chunk, Gap for a gap chunk.
	Batch Batch
	Gap   Gap

	*parsedOther // nil for ticks
}

// parsedOther is what the other chunks say. Ticks are most of all chunks, and
// should not carry the room for it.
type parsedOther struct {
	meta    *Metadata
	book    *CodeBook
	hashes  []TickHash
	part    KeyframePart
	mark    Mark
	reports []Report
	salt    []byte
	events  []PlayerEvent
	end     End

	redaction *Redaction
	archive   *archiveNotice
}

// Meta is the session's metadata; nil before its chunk.
func (t *Tracker) Meta() *Metadata { return t.meta }

// Book is the session's code book; nil where it has none.
func (t *Tracker) Book() *CodeBook { return t.book }

// Seq is the sequence number of the last chunk of the producer's stream.
func (t *Tracker) Seq() uint64 { return t.lastSeq }

// Totals are the counts so far; NextTick is the tick that is due.
func (t *Tracker) Totals() Totals { return t.totals }

// End is how the session ended; nil while it goes on.
func (t *Tracker) End() *End { return t.end }

// LastTime is the last tick's time, microseconds since the session's start;
// false while there is none.
func (t *Tracker) LastTime() (int64, bool) { return t.lastTime, t.timed }

// TakeNotices returns what deserves a warning since the last call, such as
// a keyframe that was dropped.
func (t *Tracker) TakeNotices() []string {
	if !t.noticing {
		return nil
	}
	n := t.notices
	t.notices, t.noticing = nil, false
	return n
}

func (t *Tracker) notice(what string, args ...any) {
	t.noticed++
	switch {
	case t.noticed < maxNotices:
		t.notices = append(t.notices, fmt.Sprintf(what, args...))
	case t.noticed == maxNotices:
		t.notices = append(t.notices, "more notices of this session are left out")
	}
	t.noticing = t.notices != nil
}

// Check reads a chunk and decides whether it can follow. It changes
// nothing. Errors: a CorruptError relative to the body, OrderError,
// ErrTotals, ErrLimit.
func (t *Tracker) Check(c Chunk) (p Parsed, err error) {
	p.Chunk = c
	if err = t.checkPlace(c); err != nil {
		return p, err
	}
	if c.Type == ChunkTicks {
		err = t.checkTicks(&p)
	} else {
		p.parsedOther = &parsedOther{}
		err = t.checkOther(&p)
	}
	return p, err
}

// checkOther reads every chunk but ticks.
func (t *Tracker) checkOther(p *Parsed) error {
	switch p.Chunk.Type {
	case ChunkMeta, ChunkBook:
		return t.checkOpening(p)
	case ChunkArchived:
		return t.checkArchived(p)
	case ChunkArchive:
		return t.checkArchive(p)
	case ChunkHashes:
		return t.checkHashes(p)
	case ChunkKeyframe, ChunkArchivedKeyframe:
		return t.checkPart(p)
	case ChunkEnd:
		return t.checkEnd(p)
	case ChunkGap:
		return t.checkGap(p)
	case ChunkMark:
		return t.checkMark(p)
	case ChunkPlayers:
		return t.checkPlayers(p)
	case ChunkRedaction:
		return t.checkRedaction(p)
	case ChunkReports:
		var err error
		p.reports, err = ParseReports(p.Chunk.Body)
		return err
	}
	return nil
}

// checkOpening reads the metadata or the code book.
func (t *Tracker) checkOpening(p *Parsed) error {
	body := p.Chunk.Body
	if n := t.opening + len(body); n > MaxOpening {
		return fmt.Errorf("%w: metadata and code book of %d bytes, the most is %d", ErrLimit, n, MaxOpening)
	}
	var err error
	if p.Chunk.Type == ChunkMeta {
		p.meta, err = ParseMeta(body)
	} else {
		p.book, err = ParseBook(body)
	}
	return err
}

// checkPlace holds the order of chunks: metadata first, footer last, and
// sequence numbers without a jump.
func (t *Tracker) checkPlace(c Chunk) error {
	switch {
	case t.width == 0 && c.Type != ChunkMeta:
		return fmt.Errorf("%w: %v chunk before the metadata", ErrOrder, c.Type)
	case t.width != 0 && c.Type == ChunkMeta:
		return fmt.Errorf("%w: a second metadata chunk", ErrOrder)
	case c.Type == ChunkBook && (t.book != nil || t.opened):
		return fmt.Errorf("%w: code book after the opening", ErrOrder)
	case t.ended && c.Type < ChunkDigest:
		return fmt.Errorf("%w: %v chunk after the end", ErrOrder, c.Type)
	case !t.ended && c.Type.ofFooter():
		return fmt.Errorf("%w: %v chunk before the end", ErrOrder, c.Type)
	case c.Seq != 0 && c.Seq != t.lastSeq+1:
		return &OrderError{What: "chunk", Want: t.lastSeq + 1, Got: c.Seq}
	}
	return nil
}

func (t *Tracker) checkTicks(p *Parsed) error {
	if err := p.Batch.parse(p.Chunk.Body, int(t.hashBytes)); err != nil {
		return err
	}
	return t.checkBatch(&p.Batch)
}

func (t *Tracker) checkArchived(p *Parsed) error {
	var err error
	if err := t.refuseArchived(p.Chunk.Type); err != nil {
		return err
	}
	if p.Batch, err = t.archives.batch(p.Chunk, int(t.hashBytes)); err != nil {
		return err
	}
	return t.checkBatch(&p.Batch)
}

// refuseArchived refuses the layouts of an archive in what is being recorded. A
// file may have lost its archive notice.
func (t *Tracker) refuseArchived(c ChunkType) error {
	if (c == ChunkArchived || c == ChunkArchivedKeyframe) && t.archives == nil {
		return fmt.Errorf("%w: %v chunk outside of an archive", ErrOrder, c)
	}
	return nil
}

// checkBatch decides whether parsed ticks can follow.
func (t *Tracker) checkBatch(b *Batch) error {
	switch {
	case b.First != t.totals.NextTick:
		return &OrderError{What: "tick", Want: uint64(t.totals.NextTick), Got: uint64(b.First)}
	case b.Width != t.width:
		return fmt.Errorf("%w: codes of %d bits in a session of %d", ErrOrder, b.Width, t.width)
	case b.Next() > MaxTick:
		return fmt.Errorf("%w: tick %d", ErrLimit, b.Next())
	case b.HasTimes && t.timed && b.firstTime < t.lastTime:
		return &OrderError{What: "time in microseconds", Want: uint64(t.lastTime), Got: uint64(b.firstTime)}
	}
	return nil
}

// checkArchive reads an archive notice, which stands before the ticks.
func (t *Tracker) checkArchive(p *Parsed) error {
	if t.archives == nil || t.archive != nil || len(t.seek) > 0 {
		return fmt.Errorf("%w: an archive notice stands once, before the ticks of a file", ErrOrder)
	}
	var err error
	p.archive, err = parseArchiveNotice(p.Chunk.Body)
	return err
}

func (t *Tracker) checkHashes(p *Parsed) error {
	var err error
	if p.hashes, err = ParseHashes(p.Chunk.Body, t.meta.HashBytes); err != nil {
		return err
	}
	for _, h := range p.hashes {
		switch {
		case h.Tick >= t.totals.NextTick || h.Tick < t.meta.FirstTick || t.inGap(h.Tick):
			return fmt.Errorf("%w: hash of tick %d, which is not recorded", ErrOrder, h.Tick)
		case t.totals.NextTick-h.Tick > MaxHashLag:
			return fmt.Errorf("%w: hash of tick %d comes %s late, the most is %d", ErrLimit, h.Tick, plural(uint64(t.totals.NextTick-h.Tick), "tick"), MaxHashLag)
		case t.hashed.has(h.Tick):
			return fmt.Errorf("%w: tick %d has a hash already", ErrOrder, h.Tick)
		}
	}
	return nil
}

func (t *Tracker) inGap(tick Tick) bool {
	_, ok := slices.BinarySearchFunc(t.gaps, tick, func(g Gap, tick Tick) int {
		switch {
		case g.Last < tick:
			return -1
		case g.First > tick:
			return 1
		}
		return 0
	})
	return ok
}

func (t *Tracker) checkPart(p *Parsed) error {
	var err error
	if err := t.refuseArchived(p.Chunk.Type); err != nil {
		return err
	}
	if p.part, err = t.archives.part(p.Chunk); err != nil {
		return err
	}
	k := t.parts[p.part.ID]
	switch {
	case k == nil && p.part.Offset != 0:
		return fmt.Errorf("%w: keyframe %d begins at byte %d of its state", ErrOrder, p.part.ID, p.part.Offset)
	case k == nil && p.part.NextTick < t.meta.FirstTick:
		return fmt.Errorf("%w: keyframe before tick %d, the first is %d", ErrOrder, p.part.NextTick, t.meta.FirstTick)
	case k != nil && (k.got != p.part.Offset || k.info.NextTick != p.part.NextTick || k.info.Size != p.part.Total):
		return fmt.Errorf("%w: keyframe %d: part at byte %d of %d before tick %d, due is %d of %d before tick %d", ErrOrder,
			p.part.ID, p.part.Offset, p.part.Total, p.part.NextTick, k.got, k.info.Size, k.info.NextTick)
	}
	return nil
}

func (t *Tracker) checkEnd(p *Parsed) error {
	var err error
	if p.end, err = ParseEnd(p.Chunk.Body); err != nil {
		return err
	}
	return t.CheckTotals(p.end.Totals)
}

// CheckTotals compares declared final counts with what was recorded. The
// error matches ErrTotals and names the first count that differs.
func (t *Tracker) CheckTotals(want Totals) error {
	have := t.totals
	for _, c := range [...]struct {
		name       string
		want, have uint64
	}{
		{"next tick", uint64(want.NextTick), uint64(have.NextTick)}, {"ticks", want.Ticks, have.Ticks},
		{"steps", want.Steps, have.Steps}, {"hashes", want.Hashes, have.Hashes},
	} {
		if c.want != c.have {
			return fmt.Errorf("%w: %s: declared %d, recorded %d", ErrTotals, c.name, c.want, c.have)
		}
	}
	return nil
}

func (t *Tracker) checkGap(p *Parsed) error {
	err := t.checkNotes(noteGaps, len(p.Chunk.Body))
	if err != nil {
		return err
	}
	if p.Gap, err = ParseGap(p.Chunk.Body); err != nil {
		return err
	}
	if p.Gap.First != t.totals.NextTick {
		return &OrderError{What: "gap's first tick", Want: uint64(t.totals.NextTick), Got: uint64(p.Gap.First)}
	}
	if p.Gap.Last == MaxTick {
		return fmt.Errorf("%w: gap up to tick %d", ErrLimit, p.Gap.Last)
	}
	return nil
}

func (t *Tracker) checkMark(p *Parsed) error {
	err := t.checkNotes(noteMarks, len(p.Chunk.Body))
	if err == nil {
		p.mark, err = ParseMark(p.Chunk.Body)
	}
	return err
}

// Lists whose size in the summary is bounded. The bound is checked before a
// chunk of theirs is read.
const (
	noteMarks = iota
	noteGaps
	notePlayers
)

func (t *Tracker) checkNotes(list, more int) error {
	if t.noteBytes[list]+more > MaxNoteBytes {
		return fmt.Errorf("%w: %s of more than %d bytes", ErrLimit, [...]string{"marks", "gaps", "players"}[list], MaxNoteBytes)
	}
	return nil
}

func (t *Tracker) checkPlayers(p *Parsed) error {
	err := t.checkNotes(notePlayers, len(p.Chunk.Body))
	if err != nil {
		return err
	}
	if p.salt, p.events, err = ParsePlayers(p.Chunk.Body); err != nil {
		return err
	}
	if t.redaction != nil && t.redaction.Players {
		return errErased
	}
	if len(p.salt) > 0 && t.salted || len(p.salt) == 0 && !t.salted {
		return fmt.Errorf("%w: the salt stands in the first players chunk, and only there", ErrOrder)
	}
	here := map[uint64]bool{}
	for i, e := range p.events {
		was, ok := here[e.ID]
		if !ok {
			was = t.present[e.ID]
		}
		if was != e.Leave {
			return fmt.Errorf("%w: player %d, event %d: %s", ErrOrder, e.ID, i, map[bool]string{true: "leaves without having joined", false: "joins twice"}[e.Leave])
		}
		here[e.ID] = !e.Leave
	}
	return nil
}

// Apply takes a chunk that Check has passed, and that stands at offset in
// the file.
func (t *Tracker) Apply(p Parsed, offset int64) {
	c := p.Chunk
	if c.Seq != 0 {
		t.lastSeq = c.Seq
	}
	t.opened = t.opened || c.Type.opens()
	t.started = t.started || c.Type.opens() && c.Type != ChunkArchive
	switch c.Type {
	case ChunkMeta:
		t.meta, t.width, t.hashBytes = p.meta, p.meta.Width, uint8(p.meta.HashBytes)
		t.opening = len(c.Body)
		t.totals.NextTick = p.meta.FirstTick
		t.content.meta = leaf(leafMeta, c.Body)
	case ChunkBook:
		t.book = p.book
		t.content.addLeaf(leafBook, c.Body)
	case ChunkArchive:
		t.archive = p.archive
	case ChunkTicks, ChunkArchived:
		t.applyTicks(&p.Batch, offset)
	case ChunkHashes:
		t.applyHashes(p.hashes)
	case ChunkKeyframe, ChunkArchivedKeyframe:
		t.applyPart(p.part, offset)
	case ChunkGap:
		t.totals.NextTick = p.Gap.Last + 1
		t.gaps = append(t.gaps, p.Gap)
		t.noteBytes[noteGaps] += len(c.Body)
		t.content.addLeaf(leafGap, c.Body)
		t.settleKeyframes()
	case ChunkMark:
		t.marks = append(t.marks, p.mark)
		t.noteBytes[noteMarks] += len(c.Body)
		t.content.addMark(c.Body)
	case ChunkReports:
		t.reports += uint64(len(p.reports))
		for _, r := range p.reports {
			t.content.addLeaf(leafReport, appendReport(nil, r))
		}
	case ChunkPlayers:
		t.applyPlayers(&p)
	case ChunkRedaction:
		t.redaction, t.content.redaction = p.redaction, p.redaction
	case ChunkEnd:
		t.end, t.ended = &p.end, true
	}
}

func (t *Tracker) applyTicks(b *Batch, offset int64) {
	if b.First >= t.seekTick || offset >= t.seekOffset {
		t.seek = append(t.seek, seekEntry{tick: b.First, step: t.totals.Steps, offset: offset, late: noLate})
		t.seekTick, t.seekOffset = b.First+seekTicks, offset+seekBytes
	}
	t.totals.NextTick = b.Next()
	t.totals.Ticks += uint64(b.Ticks)
	t.totals.Steps += uint64(b.Steps)
	t.totals.Hashes += uint64(b.Hashes)
	if b.HasTimes {
		if !t.timed {
			t.firstTime = b.firstTime
		}
		t.lastTime, t.timed = b.LastTime, true
	}
	t.hashed.addBatch(b)
	t.content.addBatch(b)
	t.settleKeyframes()
}

func (t *Tracker) applyHashes(hashes []TickHash) {
	t.late = true
	t.totals.Hashes += uint64(len(hashes))
	if last := len(t.seek) - 1; last >= 0 && len(hashes) > 0 {
		t.seek[last].late = min(t.seek[last].late, hashes[0].Tick)
	}
	for _, h := range hashes {
		t.hashed.set(h.Tick)
	}
}

func (t *Tracker) applyPart(p KeyframePart, offset int64) {
	k := t.parts[p.ID]
	if k == nil {
		t.dropOldest()
		k = &openKeyframe{info: KeyframeInfo{ID: p.ID, NextTick: p.NextTick, Size: p.Total, Offset: offset}, sum: sha256.New()}
		if t.parts == nil {
			t.parts = map[uint64]*openKeyframe{}
		}
		t.parts[p.ID] = k
	}
	k.got += uint64(len(p.Data))
	k.sum.Write(p.Data)
	t.settleKeyframes()
}

// dropOldest makes room for another open keyframe: one whose parts stopped
// coming must not keep out the later ones.
func (t *Tracker) dropOldest() {
	if len(t.parts) < MaxOpenKeyframes {
		return
	}
	oldest := t.openKeyframes()[0]
	delete(t.parts, oldest.info.ID)
	t.notice("keyframe before tick %d is dropped: %d of %s came", oldest.info.NextTick, oldest.got, plural(oldest.info.Size, "byte"))
}

// settleKeyframes counts the keyframes that are whole and whose earlier
// ticks are all there. Of two for one tick the first counts.
func (t *Tracker) settleKeyframes() {
	for t.parts != nil {
		k := t.nextWhole()
		if k == nil {
			return
		}
		delete(t.parts, k.info.ID)
		if len(t.parts) == 0 {
			t.parts = nil
		}
		t.settle(k)
	}
}

// settle counts a keyframe that is whole.
func (t *Tracker) settle(k *openKeyframe) {
	if t.keyed[k.info.NextTick] {
		t.notice("a second keyframe before tick %d is ignored", k.info.NextTick)
		return
	}
	if len(t.keyframes) == MaxKeyframes {
		t.notice("keyframe before tick %d is ignored: the session has %d", k.info.NextTick, MaxKeyframes)
		return
	}
	if t.keyed == nil {
		t.keyed = map[Tick]bool{}
	}
	t.keyed[k.info.NextTick] = true
	t.keyframes = append(t.keyframes, k.info)
	body := binary.BigEndian.AppendUint64(nil, uint64(k.info.NextTick))
	t.content.addKeyframe(k.info.NextTick, leaf(leafKeyframe, k.sum.Sum(body)))
}

// nextWhole picks the whole keyframe with the smallest id, so that the
// order is the same on every run.
func (t *Tracker) nextWhole() *openKeyframe {
	var next *openKeyframe
	for _, k := range t.parts {
		if k.got == k.info.Size && k.info.NextTick <= t.totals.NextTick && (next == nil || k.info.ID < next.info.ID) {
			next = k
		}
	}
	return next
}

func (t *Tracker) applyPlayers(p *Parsed) {
	if len(p.salt) > 0 {
		t.salted = true
		t.content.players.Write(p.salt)
	}
	if t.present == nil && len(p.events) > 0 {
		t.present = map[uint64]bool{}
	}
	for _, e := range p.events {
		t.present[e.ID] = !e.Leave
		t.content.players.Write(appendPlayerEvent(nil, e))
	}
	t.players = append(t.players, p.events...)
	t.noteBytes[notePlayers] += len(p.Chunk.Body)
}

// Add checks and applies the chunk at offset.
func (t *Tracker) Add(c Chunk, offset int64) error {
	p, err := t.Check(c)
	if err != nil {
		return err
	}
	t.Apply(p, offset)
	return nil
}

// hashWindow remembers which of the last MaxHashLag ticks have a hash.
type hashWindow struct {
	bits *[MaxHashLag / 64]uint64 // nil before the first batch of a session with hashes
}

func (w *hashWindow) addBatch(b *Batch) {
	if b.hashBytes == 0 {
		return
	}
	if w.bits == nil {
		w.bits = new([MaxHashLag / 64]uint64)
	}
	for i := max(0, b.Ticks-MaxHashLag); i < b.Ticks; i++ {
		t := b.First + Tick(i)
		word, bit := &w.bits[t%MaxHashLag/64], uint64(1)<<(t%64)
		*word &^= bit
		if present(b.hashMode, b.hashBits, i) {
			*word |= bit
		}
	}
}

func (w *hashWindow) has(t Tick) bool {
	return w.bits != nil && w.bits[t%MaxHashLag/64]>>(t%64)&1 == 1
}

func (w *hashWindow) set(t Tick) { w.bits[t%MaxHashLag/64] |= 1 << (t % 64) }

// errNoMeta is returned for a file that ends before its metadata.
var errNoMeta = errors.New("the file ends before its metadata")
