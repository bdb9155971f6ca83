package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A finished file ends in five chunks, or with leaves and signatures more:
//
//	┌─────┬────────┬──────────┬─────────┬────────────┬──────────────┬─────────┐
//	│ end │ digest │ [leaves] │ summary │ seek table │ [signature…] │ trailer │
//	└─────┴────────┴──────────┴─────────┴────────────┴──────────────┴─────────┘
//	                          ▲                                     │
//	                          └──────────── offset u64 ─────────────┘
//
// The trailer has a fixed size, so two reads give the summary and the seek
// table: the trailer, then everything from its offset on.

const (
	// trailerMagic ends every finished file. It must not change.
	trailerMagic = "RPLY2END"
	// trailerSize is the framed size of the trailer: its sequence number is
	// 0, one byte.
	trailerSize = chunkMinSize + 8 + len(trailerMagic)
	// maxSegments is how many segments a digest chunk holds; that of a longer
	// session has the root alone.
	maxSegments = MaxBody / 106
)

// Footer ends the session and returns the chunks that finish its file, to
// be written at size. src gives the file's bytes so far: it is read only
// where hashes came late, since their leaves are computed in tick order.
// The tracker takes no more chunks.
func (t *Tracker) Footer(src io.ReaderAt, size int64, state EndState, reason string) ([]byte, error) {
	return t.FooterWith(src, size, state, reason, FooterOptions{})
}

// FooterOptions say what a footer has besides what every footer has.
type FooterOptions struct {
	// Leaves adds the leaves chunk.
	Leaves bool
	// Signatures are those of a copy's source. It is an error that matches
	// ErrSignature if one of them does not hold over the content.
	Signatures []Signature
	// Sign, if given, signs the session.
	Sign func(Statement) (Signature, error)
}

// FooterWith is Footer with more in it.
func (t *Tracker) FooterWith(src io.ReaderAt, size int64, state EndState, reason string, o FooterOptions) ([]byte, error) {
	if t.meta == nil {
		return nil, errNoMeta
	}
	if len(reason) > MaxText {
		return nil, fmt.Errorf("%w: a reason of %d bytes, the most is %d", ErrLimit, len(reason), MaxText)
	}
	end := AppendEnd(nil, End{State: state, Totals: t.totals, Reason: reason})
	if err := t.Add(Chunk{Type: ChunkEnd, Body: end}, size); err != nil {
		return nil, err
	}
	f, err := t.footer(src, size)
	if err != nil {
		return nil, err
	}
	signatures, err := o.sign(NewStatement(state, *t.digest, t.meta))
	if err != nil {
		return nil, err
	}
	dst := AppendChunk(nil, ChunkEnd, 0, end)
	dst = AppendChunk(dst, f.digestType, 0, f.digest)
	if o.Leaves {
		if t.content.lists == nil {
			return nil, errNotListed
		}
		dst = AppendChunk(dst, ChunkLeaves, 0, f.leaves)
	}
	at := size + int64(len(dst))
	dst = AppendChunk(dst, ChunkSummary, 0, f.summary)
	dst = AppendChunk(dst, ChunkSeek, 0, f.seek)
	for _, g := range signatures {
		dst = AppendChunk(dst, ChunkSignature, 0, appendSignature(nil, g))
	}
	return AppendChunk(dst, ChunkTrailer, 0, appendTrailer(nil, at)), nil
}

// sign gives the signatures over s.
func (o *FooterOptions) sign(s Statement) (list []Signature, err error) {
	for _, g := range o.Signatures {
		if list, err = addSignature(list, g, s); err != nil {
			return nil, err
		}
	}
	if o.Sign == nil {
		return list, nil
	}
	own, err := o.Sign(s)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return addSignature(list, own, s)
}

// errNotListed is returned for leaves that nobody has asked a tracker to keep.
var errNotListed = errors.New("the leaves were not listed from the start")

// footer holds the bodies of the chunks behind the end that follow from the
// content.
type footer struct {
	// digestType is ChunkDigest or ChunkSparse.
	digestType                    ChunkType
	digest, leaves, summary, seek []byte
}

// footer makes the bodies of the footer. The content's chunks stand before
// size in src, and the end chunk has been applied.
func (t *Tracker) footer(src io.ReaderAt, size int64) (footer, error) {
	root, err := t.contentDigest(src, size)
	if err != nil {
		return footer{}, err
	}
	s := t.Summary()
	s.Digest = &root
	f := footer{digestType: ChunkDigest, digest: t.sealing(ChunkDigest), summary: appendSummary(nil, s), seek: appendSeek(nil, t.seek)}
	if t.archive != nil {
		if sparse := t.sealing(ChunkSparse); len(sparse) < len(f.digest) {
			f.digestType, f.digest = ChunkSparse, sparse
		}
	}
	if t.content.lists != nil {
		f.leaves = t.content.leafList(root).AppendBody(nil)
	}
	if len(f.summary) > MaxBody {
		return f, fmt.Errorf("%w: summary of %d bytes", ErrLimit, len(f.summary))
	}
	if len(f.seek) > MaxBody {
		return f, fmt.Errorf("%w: seek table of %d bytes", ErrLimit, len(f.seek))
	}
	return f, nil
}

// sealing gives the body of a digest chunk of a kind, once the content is
// closed.
func (t *Tracker) sealing(kind ChunkType) []byte {
	segments := t.content.segments
	if len(segments) > maxSegments {
		segments = nil
	}
	if kind == ChunkSparse {
		return appendSparse(nil, *t.digest, segments)
	}
	return appendDigest(nil, *t.digest, segments)
}

// appendTrailer appends the body of a trailer chunk: the offset of the
// summary, then the magic.
func appendTrailer(dst []byte, summary int64) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(summary)), trailerMagic...)
}

// contentDigest closes the content and computes its digest, once.
func (t *Tracker) contentDigest(src io.ReaderAt, size int64) (Digest, error) {
	if t.digest != nil {
		return *t.digest, nil
	}
	t.content.closeSegment()
	if t.late {
		if err := t.rehash(src, size); err != nil {
			return Digest{}, fmt.Errorf("reading back late hashes: %w", err)
		}
	}
	t.archive.keepLeaves(t.content.segments)
	totals := t.archive.whole(t.totals)
	root := t.content.root(binary.BigEndian.AppendUint64(appendTotals(nil, totals), uint64(t.meta.FirstTick)))
	t.digest = &root
	return root, nil
}

// rehash computes the leaves of hashes again, in tick order.
func (t *Tracker) rehash(src io.ReaderAt, size int64) error {
	r := newReader(src, size, t.Summary(), t.seek)
	var rec TickRecord
	var parts segmentBytes
	i := 0
	h := newSegment(leafHashes, 0)
	finish := func() {
		h.Write(parts.hashes)
		parts.hashes = parts.hashes[:0]
		t.content.segments[i].Hashes = sum(h)
	}
	for first := true; ; first = false {
		err := r.Next(&rec)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if index := uint64(rec.Tick) / SegmentTicks; first || index != t.content.segments[i].Index {
			if !first {
				finish()
				i++
			}
			h = newSegment(leafHashes, index)
		}
		if rec.Hash != nil {
			parts.hashes = append(binary.AppendUvarint(parts.hashes, uint64(rec.Tick)%SegmentTicks), rec.Hash...)
		}
	}
	finish()
	return nil
}

// appendDigest appends the body of a digest chunk: root, then a count and,
// for each segment, its index (later ones as the distance to the one
// before) and the leaves of inputs, hashes and times.
func appendDigest(dst []byte, root Digest, segments []Segment) []byte {
	dst = append(dst, root[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(segments)))
	last := uint64(0)
	for _, s := range segments {
		dst = binary.AppendUvarint(dst, s.Index-last)
		dst = append(dst, s.Inputs[:]...)
		dst = append(dst, s.Hashes[:]...)
		dst = append(dst, s.Times[:]...)
		last = s.Index
	}
	return dst
}

// sealedDigest is the body of a digest chunk.
type sealedDigest struct {
	root     Digest
	segments []Segment
}

// parseDigest reads the body of a digest chunk.
func parseDigest(body []byte) (sealedDigest, error) {
	var d sealedDigest
	c := cursor{b: body}
	copy(d.root[:], c.bytes(len(d.root), "the digest"))
	n := c.count("the number of segments", MaxBody, 97)
	last := uint64(0)
	for range n {
		last += c.uvarint("a segment's index")
		s := Segment{Index: last}
		copy(s.Inputs[:], c.bytes(32, "a leaf of inputs"))
		copy(s.Hashes[:], c.bytes(32, "a leaf of hashes"))
		copy(s.Times[:], c.bytes(32, "a leaf of times"))
		d.segments = append(d.segments, s)
	}
	return d, c.done()
}

// appendSeek appends the body of a seek chunk: a count, then tick, step and
// offset of each entry as distances to the one before, and how far back the
// oldest late hash of the stretch reaches: its tick + 1, or 0 for none.
func appendSeek(dst []byte, entries []seekEntry) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(entries)))
	var last seekEntry
	for _, e := range entries {
		dst = binary.AppendUvarint(dst, uint64(e.tick-last.tick))
		dst = binary.AppendUvarint(dst, e.step-last.step)
		dst = binary.AppendUvarint(dst, uint64(e.offset-last.offset))
		late := uint64(0)
		if e.late != noLate {
			late = uint64(e.late) + 1
		}
		dst = binary.AppendUvarint(dst, late)
		last = e
	}
	return dst
}

// parseSeek reads the body of a seek chunk of the session of sum, whose
// chunks stand before end.
func parseSeek(body []byte, sum *Summary, end int64) ([]seekEntry, error) {
	c := cursor{b: body}
	n := c.count("the number of seek entries", uint64(end)/chunkMinSize, 4)
	entries := make([]seekEntry, 0, n)
	last := seekEntry{tick: sum.Meta.FirstTick, offset: HeaderSize}
	at := seekEntry{}
	for i := range n {
		at.tick += c.tick("a seek entry's tick")
		at.step += c.limited("a seek entry's step", sum.Steps)
		at.offset += int64(c.limited("a seek entry's offset", uint64(end)))
		at.late = noLate
		if late := c.tick("a seek entry's oldest late hash"); late > 0 {
			at.late = late - 1
		}
		switch {
		case c.err != nil:
		case at.tick < last.tick || at.tick >= sum.NextTick || at.offset < last.offset || at.offset >= end || at.step < last.step,
			i > 0 && (at.tick == last.tick || at.offset == last.offset):
			c.fail("seek entry %d: tick %d at offset %d, behind tick %d at offset %d", i, at.tick, at.offset, last.tick, last.offset)
		}
		entries = append(entries, at)
		last = at
	}
	return entries, c.done()
}

// parseTrailer reads the trailer from a file's last bytes and returns the
// offset of the summary; false where there is no trailer.
func parseTrailer(b []byte) (int64, bool) {
	if len(b) < trailerSize {
		return 0, false
	}
	c, n, err := ParseChunk(b[len(b)-trailerSize:])
	if err != nil || n != trailerSize || c.Type != ChunkTrailer || string(c.Body[8:]) != trailerMagic {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(c.Body)), true
}
