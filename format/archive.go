package format

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// ArchiveOptions say how an archive is made. The zero value keeps everything
// at the default level.
type ArchiveOptions struct {
	// Level is ArchiveDefault where it is 0.
	Level ArchiveLevel
	// HashEvery keeps one in so many state hashes, and the last; 0 and 1 keep
	// all. The archive says so, and its content digest stays.
	HashEvery uint64
}

// ArchiveReport says what was archived.
type ArchiveReport struct {
	// Root is the content digest: that of the source.
	Root         Digest
	Ticks, Steps uint64
	// Hashes counts the hashes kept, HashesLeft those left out.
	Hashes, HashesLeft uint64
	// RowBytes are command area, parameter area, timeline and times of all
	// ticks as plain bytes, ArchivedBytes what they take in the archive
	// without hashes, and Bytes is the size of the whole archive.
	RowBytes, ArchivedBytes, Bytes int64
	// Chunks counts the archived ticks chunks.
	Chunks int
}

// Archiver writes archives. It holds the memory of its encoders, so whoever
// writes many uses one again, on one at a time.
type Archiver struct {
	best  zstdWriter
	quick zstdWriter
	good  zstdWriter
	cols  columnWriter
	model *rowModel // made for the first archive at ArchiveMax
	rows  BatchBuilder
	body  []byte
	part  []byte
	coded []byte
	chunk []byte
	out   []byte
}

// NewArchiver makes an Archiver; its memory comes with its first archive.
func NewArchiver() *Archiver {
	a := &Archiver{best: zstdWriter{level: zstd.SpeedBestCompression}, good: zstdWriter{level: zstd.SpeedBetterCompression},
		quick: zstdWriter{level: zstd.SpeedDefault}}
	a.cols.best, a.cols.good = &a.best, &a.good
	return a
}

// Archive writes the archive of src to out; see Archiver.Archive.
func Archive(src *File, out io.Writer, o ArchiveOptions) (*ArchiveReport, error) {
	return NewArchiver().Archive(src, out, o)
}

// Archive writes src in the archive layout: the same session with the same
// content digest, as a finished file. All of src is checked first, and an error
// that matches ErrTorn or ErrCorrupt means that it has to be repaired. What has
// no end gets one that says unfinished. Nothing is read back: see SameContent.
func (a *Archiver) Archive(src *File, out io.Writer, o ArchiveOptions) (*ArchiveReport, error) {
	if o.Level == 0 {
		o.Level = ArchiveDefault
	}
	o.HashEvery = max(o.HashEvery, 1)
	if o.Level > ArchiveMax {
		return nil, fmt.Errorf("no archive of %v", o.Level)
	}
	w := &archiveWriter{a: a, src: src, out: out, o: o, t: NewTracker(), firsts: map[int64]int{}, coming: map[uint64]int{}, whole: map[int64]int{}, rows: archiveRows, most: archiveRowsMost, report: &ArchiveReport{}}
	if o.Level == ArchiveMax {
		w.rows, w.most = maxRows, maxRowsMost
	}
	w.t.listLeaves()
	w.t.archives = &archiveReader{}
	a.cols.begin()
	if err := w.prepare(); err != nil {
		return nil, err
	}
	if err := w.copyChunks(); err != nil {
		return nil, err
	}
	return w.report, w.finish()
}

// Archived chunks hold so many row bytes, then end with the next segment; most
// is where a segment is cut. A seek decodes one chunk, so they are no larger than
// what decodes in a few milliseconds, but at ArchiveMax, where size comes first.
const (
	archiveRows     = 512 << 10
	archiveRowsMost = 768 << 10
	maxRows         = 896 << 10
	maxRowsMost     = MaxRowBytes
)

// archiveWriter writes one archive.
type archiveWriter struct {
	a      *Archiver
	src    *File
	out    io.Writer
	o      ArchiveOptions
	rows   int // where a chunk may end, and most where it must
	most   int
	at     int64
	seq    uint64
	t      *Tracker
	b      *BatchBuilder
	notice archiveNotice
	noted  bool
	root   Digest
	// hashes counts the hashes that came by, total all there are.
	hashes, total uint64
	// held are the places of chunks that stand behind the ticks gathered so far.
	held []int64
	// firsts are the keyframes that count, by the places of their first parts,
	// whole those that came, by the places of their last ones; coming are those
	// in between, by their ids.
	firsts, whole map[int64]int
	coming        map[uint64]int
	parts         archiveReader
	state         []byte
	report        *ArchiveReport
	err           error
}

// prepare checks the source, and finds out what thinning leaves behind.
func (w *archiveWriter) prepare() error {
	if w.src.Torn != nil {
		return w.src.Torn
	}
	t, _, err := w.src.follow()
	if err != nil {
		return err
	}
	if w.root, err = t.contentDigest(w.src.src, w.src.data); err != nil {
		return err
	}
	w.a.rows.reset(t.meta.Width, t.meta.HashBytes, t.meta.FirstTick)
	w.b = &w.a.rows
	w.notice.ArchiveInfo = ArchiveInfo{Level: w.o.Level, HashEvery: w.o.HashEvery}
	w.total = t.totals.Hashes
	for i, k := range w.src.sum.Keyframes {
		w.firsts[k.Offset] = i
	}
	if t.archive != nil {
		w.notice.leaves, w.notice.HashesLeft = t.archive.leaves, t.archive.HashesLeft
		w.notice.HashEvery *= t.archive.HashEvery
	}
	if w.o.HashEvery > 1 {
		return w.thin(t)
	}
	return nil
}

// thin takes the hashes' leaves of every segment.
func (w *archiveWriter) thin(t *Tracker) error {
	for i := range w.total {
		if !w.keeps(i) {
			w.notice.HashesLeft++
		}
	}
	if w.notice.HashesLeft == 0 {
		return nil
	}
	if len(t.content.segments) > maxSegments {
		return fmt.Errorf("%w: hashes cannot be left out of more than %d segments", ErrLimit, maxSegments)
	}
	w.notice.leaves = nil
	for _, s := range t.content.segments {
		w.notice.leaves = append(w.notice.leaves, segmentLeaf{s.Index, s.Hashes})
	}
	return nil
}

// keeps tells whether hash i of the source is kept.
func (w *archiveWriter) keeps(i uint64) bool { return i%w.o.HashEvery == 0 || i == w.total-1 }

// copyChunks goes through the source: ticks are gathered, everything else
// keeps its order and comes behind the ticks before it.
func (w *archiveWriter) copyChunks() error {
	w.write(AppendHeader(nil))
	s := scanner{src: w.src.src, size: w.src.data, at: HeaderSize}
	ticks := w.src.Reader()
	for {
		c, at, err := s.next()
		if err == io.EOF || err == nil && c.Type == ChunkEnd {
			break
		}
		if err != nil {
			return err
		}
		if err := w.take(c, at, ticks); err != nil {
			return err
		}
	}
	return w.flush()
}

func (w *archiveWriter) take(c Chunk, at int64, ticks *Reader) error {
	if c.Type.opens() && !w.noted {
		w.noted = true
		if err := w.put(Chunk{Type: ChunkArchive, Body: appendArchiveNotice(nil, &w.notice)}); err != nil {
			return err
		}
	}
	switch c.Type {
	case ChunkTicks, ChunkArchived:
		return w.gather(c, ticks)
	case ChunkHashes, ChunkArchive:
		return nil
	case ChunkGap:
		return w.gap(c)
	case ChunkKeyframe, ChunkArchivedKeyframe:
		if last, err := w.lastPart(c, at); err != nil || !last {
			return err
		}
	}
	if w.b.Ticks() > 0 {
		w.held = append(w.held, at)
		return nil
	}
	return w.pass(c, at)
}

// pass writes a chunk that is not about ticks.
func (w *archiveWriter) pass(c Chunk, at int64) error {
	if c.Type.holdsKeyframe() {
		return w.keyframe(c, w.whole[at])
	}
	return w.copy(c)
}

// gather adds the ticks of a chunk, as the reader gives them: with the hashes
// that came late.
func (w *archiveWriter) gather(c Chunk, ticks *Reader) error {
	n, err := ticksOf(c)
	if err != nil {
		return err
	}
	var t TickRecord
	for n > 0 {
		if err := ticks.Next(&t); err != nil {
			return err
		}
		if err := w.add(&t); err != nil {
			return err
		}
		empty := ticks.skipEmpty(min(n-1, w.room()))
		w.b.addEmpty(empty)
		n -= 1 + empty
	}
	return nil
}

// room is how many ticks without anything can be added before a chunk may have
// to end.
func (w *archiveWriter) room() int {
	return max(0, min(MaxChunkTicks-w.b.Ticks(), int(SegmentTicks-1-(w.b.NextTick()-1)%SegmentTicks)))
}

// ticksOf reads how many ticks a chunk of either layout has.
func ticksOf(c Chunk) (int, error) {
	body := cursor{b: c.Body}
	body.tick("the first tick")
	n := int(body.limited("the number of ticks", MaxChunkTicks))
	return n, body.err
}

func (w *archiveWriter) add(t *TickRecord) error {
	if t.Hash != nil {
		if !w.keeps(w.hashes) {
			t.Hash = nil
		}
		w.hashes++
	}
	if n := w.b.Ticks(); n > 0 {
		rows := w.b.Rows()
		if n >= MaxChunkTicks || rows >= w.rows && t.Tick%SegmentTicks == 0 || rows+len(t.Commands)+len(t.Params) > w.most {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return w.b.Add(t)
}

// gap copies a gap behind the ticks before it.
func (w *archiveWriter) gap(c Chunk) error {
	g, err := ParseGap(c.Body)
	if err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.b.Skip(g.Last + 1)
	return w.copy(c)
}

// flush writes the gathered ticks, then the chunks that were held.
func (w *archiveWriter) flush() error {
	if w.b.Ticks() == 0 {
		return nil
	}
	if err := w.putTicks(); err != nil {
		return err
	}
	w.b.Cut()
	for _, at := range w.held {
		s := scanner{src: w.src.src, size: w.src.data, at: at}
		c, _, err := s.next()
		if err == nil {
			err = w.pass(c, at)
		}
		if err != nil {
			return err
		}
	}
	w.held = w.held[:0]
	return nil
}

// putTicks encodes the gathered ticks. The tracker takes them as they are:
// what they become is compared by whoever reads the archive back.
func (w *archiveWriter) putTicks() error {
	w.a.body = w.b.AppendBody(w.a.body[:0])
	b, err := ParseBatch(w.a.body, w.t.meta.HashBytes)
	if err != nil {
		return err
	}
	if err := w.t.checkBatch(&b); err != nil {
		return err
	}
	body, err := w.a.encode(&b, w.o.Level)
	if err != nil {
		return err
	}
	w.seq++
	c := Chunk{Type: ChunkArchived, Seq: w.seq, Body: body}
	w.t.Apply(Parsed{Chunk: c, Batch: b}, w.at)
	before := w.at
	w.frame(c)
	w.report.Chunks++
	w.report.RowBytes += int64(len(b.Commands) + len(b.Params) + len(b.timeline) + len(b.timeBits) + len(b.times))
	w.report.ArchivedBytes += w.at - before - int64(len(b.hashes))
	return nil
}

// copy writes a chunk of the source, numbered anew.
func (w *archiveWriter) copy(c Chunk) error {
	if c.Seq != 0 {
		c.Seq = w.seq + 1
	}
	if err := w.put(c); err != nil {
		return err
	}
	w.seq = max(w.seq, c.Seq)
	return nil
}

func (w *archiveWriter) put(c Chunk) error {
	if err := w.t.Add(c, w.at); err != nil {
		return err
	}
	w.frame(c)
	return nil
}

func (w *archiveWriter) frame(c Chunk) {
	w.a.out = AppendChunk(w.a.out[:0], c.Type, c.Seq, c.Body)
	w.write(w.a.out)
}

func (w *archiveWriter) write(b []byte) {
	if w.err != nil {
		return
	}
	if _, w.err = w.out.Write(b); w.err == nil {
		w.at += int64(len(b))
	}
}

// finish seals the archive as its source was sealed.
func (w *archiveWriter) finish() error {
	if w.err != nil {
		return w.err
	}
	state, reason := EndUnfinished, "archived without an end"
	if end := w.src.sum.End; end != nil {
		state, reason = end.State, end.Reason
	}
	footer, err := w.t.FooterWith(nil, w.at, state, reason, FooterOptions{Leaves: true, Signatures: w.src.Signatures()})
	if err != nil {
		return err
	}
	w.write(footer)
	r, s := w.report, w.t.Summary()
	r.Root, r.Ticks, r.Steps, r.Hashes, r.HashesLeft, r.Bytes = *w.t.digest, s.Ticks, s.Steps, s.Hashes, w.notice.HashesLeft, w.at
	if w.err == nil && r.Root != w.root {
		return errors.New("the archive's content digest is not that of its source")
	}
	return w.err
}

// encode gives the body of an archived ticks chunk, valid until the next call.
func (a *Archiver) encode(b *Batch, level ArchiveLevel) ([]byte, error) {
	a.part = append(append(append(a.part[:0], b.Commands...), b.Params...), b.timeline...)
	a.part = append(append(append(a.part, b.hashBits...), b.timeBits...), b.times...)
	h := archiveHead{First: b.First, Ticks: b.Ticks, flags: b.flags(), Steps: b.Steps, params: len(b.Params),
		runs: len(b.timeline) + len(b.hashBits), times: len(b.timeBits) + len(b.times), hashes: b.hashes}
	h.method, h.coded = a.code(b, level)
	a.chunk = appendArchive(a.chunk[:0], &h)
	return a.chunk, nil
}

// code gives the method and the coded part of a.part, which b holds.
func (a *Archiver) code(b *Batch, level ArchiveLevel) (byte, []byte) {
	method, coded, err := byte(methodRows), a.coded[:0], error(nil)
	switch level {
	case ArchiveFast:
		coded = a.quick.frame(coded, a.part)
	case ArchiveMax:
		if a.model == nil {
			a.model = new(rowModel)
		}
		method, coded = methodModel, a.model.encode(coded, b, a.cols.deltas(b))
	default:
		method = methodColumns
		if coded, err = a.cols.encode(coded, b); err != nil {
			method, coded = methodRows, a.best.frame(a.coded[:0], a.part)
		}
	}
	a.coded = coded
	if len(coded) >= len(a.part) {
		return methodStored, a.part
	}
	return method, coded
}

// flags are those of the batch's ticks chunk.
func (b *Batch) flags() byte {
	flags := b.hashMode<<batchHashShift | b.timeMode<<batchTimeShift
	if b.Width == Width16 {
		flags |= batchWide
	}
	return flags
}
