package format

import (
	"bytes"
	"errors"
	"fmt"
)

// CheckReport is what Check proved.
type CheckReport struct {
	// Chunks is the number of chunks read.
	Chunks int
	// Root is the content digest as computed from the content; nil where
	// the session has no end.
	Root *Digest
	// Notices are warnings that do not make the file wrong.
	Notices []string
}

// Check reads every chunk of the replay: checksums, order, counts, digest,
// summary and seek table. Errors match ErrTorn or ErrCorrupt. It needs no
// game and changes nothing.
func (f *File) Check() (*CheckReport, error) {
	report := &CheckReport{}
	t := NewTracker()
	footer := &footerCheck{f: f, t: t}
	_, err := follow(t, f.src, f.size, func(c Chunk, at int64) error {
		report.Chunks++
		return footer.chunk(c, at)
	})
	report.Root, report.Notices = footer.root, t.TakeNotices()
	for _, k := range t.openKeyframes() {
		report.Notices = append(report.Notices, fmt.Sprintf("keyframe before tick %d is not whole: %d of %d bytes", k.info.NextTick, k.got, k.info.Size))
	}
	if err == nil && f.Torn != nil {
		err = f.Torn
	}
	if err == nil && t.end != nil && !footer.whole {
		err = &CorruptError{Offset: f.size, What: "the footer is not whole: digest, summary, seek table or trailer is missing"}
	}
	return report, err
}

// footerCheck compares the footer with the one that the content gives.
type footerCheck struct {
	f     *File
	t     *Tracker
	want  []byte // the footer behind the end chunk
	start int64  // its place
	root  *Digest
	whole bool
}

func (k *footerCheck) chunk(c Chunk, at int64) error {
	switch c.Type {
	case ChunkEnd:
		// The end chunk has been framed as AppendChunk does, so its size
		// follows from its body.
		k.start = at + int64(len(AppendChunk(nil, ChunkEnd, c.Seq, c.Body)))
		want, err := k.t.appendFooter(nil, k.f.src, k.start)
		if err != nil {
			return err
		}
		k.want = want
		digest, _, err := ParseChunk(want)
		if err != nil {
			return err
		}
		root, _, err := parseDigest(digest.Body)
		k.root = &root
		return err
	case ChunkDigest:
		return k.digest(c, at)
	case ChunkSummary, ChunkSeek, ChunkTrailer:
		k.whole = c.Type == ChunkTrailer
		return k.same(c, at)
	}
	return nil
}

// digest names the first segment whose content is not what was sealed.
func (k *footerCheck) digest(c Chunk, at int64) error {
	root, segments, err := parseDigest(c.Body)
	if err != nil {
		return shift(err, at)
	}
	if root == *k.root {
		return k.same(c, at)
	}
	have := k.t.content.segments
	for i, s := range segments {
		if i >= len(have) || have[i].Index != s.Index {
			return &CorruptError{Offset: at, What: fmt.Sprintf("segment %d (from tick %d) was sealed, but is not there", s.Index, s.Index*SegmentTicks)}
		}
		for _, l := range [...]struct {
			name string
			a, b Digest
		}{{"inputs", s.Inputs, have[i].Inputs}, {"hashes", s.Hashes, have[i].Hashes}, {"times", s.Times, have[i].Times}} {
			if l.a != l.b {
				return &CorruptError{Offset: at, What: fmt.Sprintf("the %s of segment %d (ticks %d to %d) are not what was sealed", l.name, s.Index, s.Index*SegmentTicks, (s.Index+1)*SegmentTicks-1)}
			}
		}
	}
	return &CorruptError{Offset: at, What: "metadata, code book, players, keyframes, marks, reports or gaps are not what was sealed"}
}

// same compares a footer chunk with the computed one at the same place.
func (k *footerCheck) same(c Chunk, at int64) error {
	framed := AppendChunk(nil, c.Type, c.Seq, c.Body)
	off := at - k.start
	if off < 0 || off+int64(len(framed)) > int64(len(k.want)) || !bytes.Equal(framed, k.want[off:off+int64(len(framed))]) {
		return &CorruptError{Offset: at, What: fmt.Sprintf("the %v does not agree with the content", c.Type)}
	}
	return nil
}

// openKeyframes are the keyframes whose parts, or whose earlier ticks, are
// missing, by id.
func (t *Tracker) openKeyframes() []*openKeyframe {
	var open []*openKeyframe
	for id := uint64(0); len(open) < len(t.parts); id++ {
		if k := t.parts[id]; k != nil {
			open = append(open, k)
		}
	}
	return open
}

// IsDamage tells whether err says that bytes are not what was written, as
// against a file that could not be read.
func IsDamage(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTorn) || errors.Is(err, ErrNotReplay) || errors.Is(err, ErrNewer)
}
