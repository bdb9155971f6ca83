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
	// Signatures are those of the file. All of them hold over the content;
	// whether their keys are to be trusted is for the caller to know.
	Signatures []Signature
	// Notices are warnings that do not make the file wrong.
	Notices []string
}

// ErrChanged is returned where all checksums of a file hold, but its content
// is not what was sealed or signed: somebody has changed it. See ChangedError.
var ErrChanged = errors.New("changed")

// ChangedError names the first part of the content that is not what was
// sealed. It matches ErrChanged, and ErrCorrupt.
type ChangedError struct {
	// Offset is the place of what was sealed: a digest or a signature.
	Offset int64
	// What names the part.
	What string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("changed: %s (the chunk at offset %d says so)", e.What, e.Offset)
}

// Is matches ErrChanged.
func (e *ChangedError) Is(target error) bool { return target == ErrChanged }

// Unwrap makes it damage, too.
func (e *ChangedError) Unwrap() error { return &CorruptError{Offset: e.Offset, What: e.What} }

// Check reads every chunk of the replay: checksums, order, counts, digest,
// signatures, summary and seek table. Errors match ErrTorn or ErrCorrupt; one
// that matches ErrChanged too is no accident. It needs no game and changes
// nothing.
func (f *File) Check() (*CheckReport, error) {
	k, err := f.checked()
	report := &CheckReport{Chunks: k.chunks, Root: k.t.digest, Signatures: k.signatures, Notices: k.t.TakeNotices()}
	for _, k := range k.t.openKeyframes() {
		report.Notices = append(report.Notices, fmt.Sprintf("keyframe before tick %d is not whole: %d of %s", k.info.NextTick, k.got, plural(k.info.Size, "byte")))
	}
	return report, err
}

// checked follows every chunk of the file, its footer too.
func (f *File) checked() (*footerCheck, error) {
	k := &footerCheck{src: f.src, size: f.size, t: NewTracker()}
	k.t.listLeaves()
	_, err := follow(k.t, f.src, f.size, k.chunk)
	if err == nil && f.Torn != nil {
		err = f.Torn
	}
	return k, err
}

// follow checks the whole file, and gives the tracker that followed it.
func (f *File) follow() (*Tracker, int64, error) {
	k, err := f.checked()
	return k.t, k.at, err
}

// footerCheck compares the footer with the one that the content gives.
// Chunks of unknown types may stand between those of the footer.
type footerCheck struct {
	src        io.ReaderAt
	size       int64
	t          *Tracker
	chunks     int
	at         int64 // of the last chunk
	redaction  redactionCheck
	want       footer
	statement  Statement
	last       ChunkType
	leaves     bool  // a leaves chunk is there
	summary    int64 // the place of the summary
	signatures []Signature
}

// footerOrder gives what may stand behind each chunk of a footer.
var footerOrder = map[ChunkType][]ChunkType{
	ChunkEnd: {ChunkDigest, ChunkSparse}, ChunkDigest: {ChunkSummary, ChunkLeaves}, ChunkSparse: {ChunkSummary, ChunkLeaves}, ChunkLeaves: {ChunkSummary}, ChunkSummary: {ChunkSeek},
	ChunkSeek: {ChunkTrailer, ChunkSignature}, ChunkSignature: {ChunkTrailer, ChunkSignature},
}

func (k *footerCheck) chunk(c Chunk, at int64) error {
	k.chunks++
	k.at = at
	if c.Type == ChunkEnd {
		return k.atEnd(at)
	}
	if k.last == 0 {
		return k.redaction.chunk(k.t, c, at)
	}
	if !c.Type.Known() {
		return nil
	}
	if due := footerOrder[k.last]; !slices.Contains(due, c.Type) || c.Seq != 0 {
		return &CorruptError{Offset: at, What: fmt.Sprintf("%v chunk with sequence number %d in the footer, where the %v is due with 0", c.Type, c.Seq, due[0])}
	}
	k.last = c.Type
	switch c.Type {
	case ChunkSparse:
		if k.t.archive == nil {
			return &CorruptError{Offset: at, What: "sparse digest in a file without an archive notice"}
		}
		return k.digest(c, at)
	case ChunkDigest:
		return k.digest(c, at)
	case ChunkSignature:
		return k.signature(c.Body, at)
	case ChunkSummary:
		k.summary = at
		return shift(k.sameSummary(c.Body), at+chunkMinSize)
	case ChunkLeaves:
		k.leaves = true
		return shift(same(c, k.want.leaves), at+chunkMinSize)
	case ChunkSeek:
		return shift(same(c, k.want.seek), at+chunkMinSize)
	}
	return shift(same(c, appendTrailer(nil, k.summary)), at+chunkMinSize)
}

// atEnd computes what has to follow the end.
func (k *footerCheck) atEnd(at int64) error {
	if err := k.redaction.atEnd(k.t, at); err != nil {
		return err
	}
	var err error
	if k.want, err = k.t.footer(k.src, at); err != nil {
		return err
	}
	k.last = ChunkEnd
	k.statement = NewStatement(k.t.end.State, *k.t.digest, k.t.meta)
	return nil
}

// digest names the first segment whose content is not what was sealed, or
// what else is not.
func (k *footerCheck) digest(c Chunk, at int64) error {
	sealed, err := sealedBy(c)
	if err != nil {
		return shift(err, at+chunkMinSize)
	}
	if sealed.root == *k.t.digest {
		return shift(same(c, k.t.sealing(c.Type)), at+chunkMinSize)
	}
	return &ChangedError{Offset: at, What: k.changed(sealed, at+chunkMinSize+int64(len(c.Body)))}
}

// changed says what is not as sealed. A leaves chunk, if there is one, stands
// behind the digest, from offset next on.
func (k *footerCheck) changed(sealed sealedDigest, next int64) string {
	var listed *LeafList
	if c, ok := nextKnown(k.src, k.size, next); ok && c.Type == ChunkLeaves {
		listed, _ = parseLeaves(c.Body)
	}
	if listed != nil && listed.computed(sealed.segments) != sealed.root {
		return "the content is not what was sealed, and the leaves that would name the place were changed, too"
	}
	if why := k.t.content.differs(sealed, *k.t.digest); why != "" && (listed == nil || why != otherChanged) {
		return why
	}
	return cmp.Or(k.t.content.leafList(*k.t.digest).differs(listed), otherChanged)
}

// signature checks a signature over what the content says.
func (k *footerCheck) signature(body []byte, at int64) error {
	g, err := parseSignature(body)
	if err != nil {
		return shift(err, at+chunkMinSize)
	}
	list, err := addSignature(k.signatures, g, k.statement)
	switch {
	case errors.Is(err, ErrSignature):
		return &ChangedError{Offset: at, What: fmt.Sprintf("what key %s has signed is another content, end state or metadata", g.Key.ID())}
	case err != nil:
		return &CorruptError{Offset: at, What: err.Error()}
	case len(list) == len(k.signatures):
		return &CorruptError{Offset: at, What: fmt.Sprintf("a second signature by key %s", g.Key.ID())}
	}
	k.signatures = list
	return nil
}

// otherChanged is said where the leaves do not tell more.
const otherChanged = "metadata, code book, players, keyframes, marks, reports, gaps or counts are not what was sealed"

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
	return otherChanged
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
