package format

import (
	"encoding/binary"
	"fmt"
	"io"
)

// A finished file ends in five chunks:
//
//	┌─────┬────────┬─────────┬────────────┬─────────┐
//	│ end │ digest │ summary │ seek table │ trailer │
//	└─────┴────────┴─────────┴────────────┴─────────┘
//	               ▲                      │
//	               └── offset u64 ────────┘
//
// The trailer has a fixed size, so two reads give the summary and the seek
// table: the trailer, then everything from its offset on.

const (
	// trailerMagic ends every finished file. It must not change.
	trailerMagic = "RPLY2END"
	// trailerSize is the framed size of the trailer: its sequence number is
	// 0, one byte.
	trailerSize = chunkMinSize + 8 + len(trailerMagic)
)

// Footer ends the session and returns the chunks that finish its file, to
// be written at size. src gives the file's bytes so far: it is read only
// where hashes came late, since their leaves are computed in tick order.
// The tracker takes no more chunks.
func (t *Tracker) Footer(src io.ReaderAt, size int64, state EndState, reason string) ([]byte, error) {
	if t.meta == nil {
		return nil, errNoMeta
	}
	end := AppendEnd(nil, End{State: state, Totals: t.totals, Reason: reason})
	if err := t.Add(Chunk{Type: ChunkEnd, Body: end}, size); err != nil {
		return nil, err
	}
	footer := AppendChunk(nil, ChunkEnd, 0, end)
	tail, err := t.appendFooter(footer, src, size)
	return tail, err
}

// appendFooter appends all that follows the end chunk, which must have been
// applied. size is the place of dst[0] in the file.
func (t *Tracker) appendFooter(dst []byte, src io.ReaderAt, size int64) ([]byte, error) {
	root, err := t.root(src, size)
	if err != nil {
		return nil, err
	}
	dst = AppendChunk(dst, ChunkDigest, 0, appendDigest(nil, root, t.content.segments))
	at := size + int64(len(dst))
	s := t.Summary()
	s.Digest = &root
	body := appendSummary(nil, s)
	if len(body) > MaxBody {
		return nil, fmt.Errorf("%w: summary of %d bytes", ErrLimit, len(body))
	}
	dst = AppendChunk(dst, ChunkSummary, 0, body)
	dst = AppendChunk(dst, ChunkSeek, 0, appendSeek(nil, t.seek))
	trailer := binary.BigEndian.AppendUint64(nil, uint64(at))
	return AppendChunk(dst, ChunkTrailer, 0, append(trailer, trailerMagic...)), nil
}

// root computes the content digest.
func (t *Tracker) root(src io.ReaderAt, size int64) (Digest, error) {
	t.content.closeSegment()
	if t.late {
		if err := t.rehash(src, size); err != nil {
			return Digest{}, fmt.Errorf("reading back late hashes: %w", err)
		}
	}
	e := t.end
	return t.content.root(binary.BigEndian.AppendUint64(appendTotals(nil, e.Totals), uint64(t.meta.FirstTick))), nil
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

// parseDigest reads the body of a digest chunk.
func parseDigest(body []byte) (root Digest, segments []Segment, err error) {
	c := cursor{b: body}
	copy(root[:], c.bytes(len(root), "the digest"))
	n := c.count("the number of segments", MaxBody, 97)
	last := uint64(0)
	for range n {
		last += c.uvarint("a segment's index")
		s := Segment{Index: last}
		copy(s.Inputs[:], c.bytes(32, "a leaf of inputs"))
		copy(s.Hashes[:], c.bytes(32, "a leaf of hashes"))
		copy(s.Times[:], c.bytes(32, "a leaf of times"))
		segments = append(segments, s)
	}
	return root, segments, c.done()
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

// parseSeek reads the body of a seek chunk of a file of so many bytes.
func parseSeek(body []byte, size int64) ([]seekEntry, error) {
	c := cursor{b: body}
	n := c.count("the number of seek entries", MaxBody, 4)
	entries := make([]seekEntry, 0, n)
	var last seekEntry
	for range n {
		e := seekEntry{tick: last.tick + c.tick("a seek entry's tick"), step: last.step + c.uvarint("a seek entry's step"),
			offset: last.offset + int64(c.limited("a seek entry's offset", uint64(size))), late: noLate}
		if late := c.tick("a seek entry's oldest late hash"); late > 0 {
			e.late = late - 1
		}
		if c.err == nil && (e.tick > MaxTick || e.offset > size) {
			c.fail("seek entry of tick %d at offset %d of %d", e.tick, e.offset, size)
		}
		entries = append(entries, e)
		last = e
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
