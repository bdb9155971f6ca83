package format

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
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
	footer := &footerCheck{src: f.src, t: t}
	_, err := follow(t, f.src, f.size, func(c Chunk, at int64) error {
		report.Chunks++
		return footer.chunk(c, at)
	})
	report.Root, report.Notices = t.digest, t.TakeNotices()
	for _, k := range t.openKeyframes() {
		report.Notices = append(report.Notices, fmt.Sprintf("keyframe before tick %d is not whole: %d of %d bytes", k.info.NextTick, k.got, k.info.Size))
	}
	if err == nil && f.Torn != nil {
		err = f.Torn
	}
	return report, err
}

// footerCheck compares the footer with the one that the content gives.
// Chunks of unknown types may stand between those of the footer.
type footerCheck struct {
	src     io.ReaderAt
	t       *Tracker
	want    footer
	last    ChunkType
	summary int64 // the place of the summary
}

func (k *footerCheck) chunk(c Chunk, at int64) error {
	var err error
	if c.Type == ChunkEnd {
		k.last = ChunkEnd
		k.want, err = k.t.footer(k.src, at)
		return err
	}
	if k.last == 0 || !c.Type.Known() {
		return nil
	}
	due := ChunkDigest
	if k.last != ChunkEnd {
		due = k.last + 1
	}
	if c.Type != due || c.Seq != 0 {
		return &CorruptError{Offset: at, What: fmt.Sprintf("%v chunk with sequence number %d in the footer, where the %v is due with 0", c.Type, c.Seq, due)}
	}
	k.last = due
	body := at + chunkMinSize
	switch c.Type {
	case ChunkDigest:
		err = k.digest(c.Body)
	case ChunkSummary:
		k.summary = at
		err = k.sameSummary(c.Body)
	case ChunkSeek:
		err = same(c, k.want.seek)
	case ChunkTrailer:
		err = same(c, appendTrailer(nil, k.summary))
	}
	return shift(err, body)
}

// digest names the first segment whose content is not what was sealed.
func (k *footerCheck) digest(body []byte) error {
	sealed, err := parseDigest(body)
	if err != nil {
		return err
	}
	if why := k.t.content.differs(sealed, *k.t.digest); why != "" {
		return corrupt(0, "%s", why)
	}
	return same(Chunk{Type: ChunkDigest, Body: body}, k.want.digest)
}

// differs compares the closed content with a digest that was stored, and
// says what is not as sealed; empty where all is.
func (c *content) differs(sealed sealedDigest, root Digest) string {
	if sealed.root == root {
		return ""
	}
	for i, s := range sealed.segments {
		if i >= len(c.segments) || c.segments[i].Index != s.Index {
			return fmt.Sprintf("segment %d (from tick %d) was sealed, but is not there", s.Index, s.Index*SegmentTicks)
		}
		have := c.segments[i]
		for _, l := range [...]struct {
			name string
			a, b Digest
		}{{"inputs", s.Inputs, have.Inputs}, {"hashes", s.Hashes, have.Hashes}, {"times", s.Times, have.Times}} {
			if l.a != l.b {
				return fmt.Sprintf("the %s of segment %d (ticks %d to %d) are not what was sealed", l.name, s.Index, s.Index*SegmentTicks, (s.Index+1)*SegmentTicks-1)
			}
		}
	}
	if n := len(sealed.segments); n > 0 && n < len(c.segments) {
		return fmt.Sprintf("segment %d (from tick %d) is there, but was not sealed", c.segments[n].Index, c.segments[n].Index*SegmentTicks)
	}
	return "metadata, code book, players, keyframes, marks, reports, gaps or counts are not what was sealed"
}

// sameSummary leaves out fields of a newer minor version.
func (k *footerCheck) sameSummary(body []byte) error {
	s, err := parseSummary(body)
	if err != nil {
		return err
	}
	return same(Chunk{Type: ChunkSummary, Body: appendSummary(nil, s)}, k.want.summary)
}

// same compares a footer chunk with the body that the content gives.
func same(c Chunk, want []byte) error {
	if !bytes.Equal(c.Body, want) {
		return corrupt(0, "the %v does not agree with the content", c.Type)
	}
	return nil
}

// openKeyframes are the keyframes whose parts, or whose earlier ticks, are
// missing, in file order.
func (t *Tracker) openKeyframes() []*openKeyframe {
	return slices.SortedFunc(maps.Values(t.parts), func(a, b *openKeyframe) int {
		return cmp.Compare(a.info.Offset, b.info.Offset)
	})
}

// IsDamage tells whether err says that bytes are not what was written, as
// against a file that could not be read.
func IsDamage(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTorn) || errors.Is(err, ErrNotReplay) || errors.Is(err, ErrNewer)
}
