package format

import "encoding/binary"

// An archived keyframe chunk holds a part of a keyframe as a zstd frame:
//
//	┌────┬───────────┬───────┬────────┬──────┬───────┐
//	│ id │ next tick │ total │ offset │ size │ frame │
//	└────┴───────────┴───────┴────────┴──────┴───────┘
//
// Id to offset are those of a keyframe chunk, size is what the frame gives.
// Nothing waits behind it on a wire, so a part may be larger.

// maxArchivedPart is how many bytes of a state one such chunk holds. The number
// is part of the format, and must not change.
const maxArchivedPart = 1 << 20

// appendArchivedPart appends the body of an archived keyframe chunk, whose
// frame gives p.Data.
func appendArchivedPart(dst []byte, p KeyframePart, frame []byte) []byte {
	data := len(p.Data)
	p.Data = nil
	dst = AppendKeyframePart(dst, p)
	dst = binary.AppendUvarint(dst, uint64(data))
	return append(dst, frame...)
}

// part reads a keyframe's part from a chunk of either layout. Its data is valid
// until the next call.
func (r *archiveReader) part(c Chunk) (KeyframePart, error) {
	if c.Type == ChunkKeyframe {
		return ParseKeyframePart(c.Body)
	}
	b := cursor{b: c.Body}
	p := b.partHead()
	size := int(b.limited("the part's size", maxArchivedPart))
	frame := b.bytes(b.rest(), "the part's frame")
	if b.err == nil && (size == 0 || p.Total > MaxKeyframe || p.Offset > p.Total || uint64(size) > p.Total-p.Offset) {
		b.fail("archived keyframe part of %d bytes at %d of %d: the most is %d at once and %d in all", size, p.Offset, p.Total, maxArchivedPart, MaxKeyframe)
	}
	if err := b.done(); err != nil {
		return p, err
	}
	if cap(r.state) < size {
		r.state = make([]byte, size)
	}
	p.Data = r.state[:size]
	if err := r.zstd.into(p.Data, frame); err != nil {
		return p, corrupt(0, "a keyframe's part: %v", err)
	}
	return p, nil
}

// holdsKeyframe tells whether chunks of the type hold parts of keyframes.
func (t ChunkType) holdsKeyframe() bool { return t == ChunkKeyframe || t == ChunkArchivedKeyframe }

// lastPart remembers the keyframe that is whole with a chunk, and tells whether
// there is one that counts.
func (w *archiveWriter) lastPart(c Chunk, at int64) (bool, error) {
	p, err := w.parts.part(c)
	if err != nil {
		return false, err
	}
	if i, first := w.firsts[at]; first {
		w.coming[p.ID] = i
	}
	i, counts := w.coming[p.ID]
	if !counts || p.Offset+uint64(len(p.Data)) < p.Total {
		return false, nil
	}
	delete(w.coming, p.ID)
	w.whole[at] = i
	return true, nil
}

// keyframe writes a keyframe of the source, whose last part stands in c.
func (w *archiveWriter) keyframe(c Chunk, index int) error {
	k, err := w.src.Keyframe(index)
	if err != nil {
		return err
	}
	id := w.src.sum.Keyframes[index].ID
	for off := 0; off == 0 || off < len(k.State); off += maxArchivedPart {
		p := KeyframePart{ID: id, NextTick: k.NextTick, Total: uint64(len(k.State)), Offset: uint64(off), Data: k.State[off:min(off+maxArchivedPart, len(k.State))]}
		if err := w.statePart(c.Seq, p); err != nil {
			return err
		}
	}
	return nil
}

// statePart writes a part in the smaller layout.
func (w *archiveWriter) statePart(seq uint64, p KeyframePart) error {
	frame := w.a.keyframes(w.o.Level).frame(w.state[:0], p.Data)
	w.state = frame
	if len(frame)+maxVarint < len(p.Data) {
		return w.copy(Chunk{Type: ChunkArchivedKeyframe, Seq: seq, Body: appendArchivedPart(nil, p, frame)})
	}
	return eachSmallPart(p, func(p KeyframePart) error {
		return w.copy(Chunk{Type: ChunkKeyframe, Seq: seq, Body: AppendKeyframePart(nil, p)})
	})
}

// maxVarint is more than the size field of an archived keyframe chunk takes.
const maxVarint = 4

// eachSmallPart cuts a part into those that a keyframe chunk holds.
func eachSmallPart(p KeyframePart, each func(KeyframePart) error) error {
	data, start := p.Data, p.Offset
	for off := 0; off == 0 || off < len(data); off += MaxKeyframePart {
		p.Offset, p.Data = start+uint64(off), data[off:min(off+MaxKeyframePart, len(data))]
		if err := each(p); err != nil {
			return err
		}
	}
	return nil
}

// keyframes is the encoder of keyframes at a level.
func (a *Archiver) keyframes(level ArchiveLevel) *zstdWriter {
	switch level {
	case ArchiveFast:
		return &a.quick
	case ArchiveMax:
		return &a.best
	}
	return &a.good
}
