package format

import "encoding/binary"

// A sparse digest chunk says what a digest chunk says, without the leaves of
// segments in which nothing stands: their index alone gives these.

// Flags of a segment are stored in files. They must not change.
const (
	sparseInputs = 1
	sparseHashes = 2
	sparseTimes  = 4

	sparseFlags = 7
)

// emptySegment gives the leaves of a segment whose ticks are all recorded, and
// have no steps, hashes and times.
func emptySegment(index uint64) Segment {
	inputs := newSegment(leafInputs, index)
	inputs.Write(binary.BigEndian.AppendUint64(nil, SegmentTicks))
	return Segment{Index: index, Inputs: sum(inputs), Hashes: sum(newSegment(leafHashes, index)), Times: sum(newSegment(leafTimes, index))}
}

// eachLeaf gives the leaves of s and t, in order, each with its flag.
func (s *Segment) eachLeaf(t *Segment, each func(flag byte, a, b *Digest)) {
	each(sparseInputs, &s.Inputs, &t.Inputs)
	each(sparseHashes, &s.Hashes, &t.Hashes)
	each(sparseTimes, &s.Times, &t.Times)
}

// appendSparse appends the body of a sparse digest chunk: root, then a count
// and, for each segment, its index as in a digest chunk, flags u8, and the
// leaves of inputs, hashes and times that the flags have.
func appendSparse(dst []byte, root Digest, segments []Segment) []byte {
	dst = append(dst, root[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(segments)))
	last := uint64(0)
	for i := range segments {
		s, empty := &segments[i], emptySegment(segments[i].Index)
		dst = binary.AppendUvarint(dst, s.Index-last)
		last = s.Index
		at := len(dst)
		dst = append(dst, 0)
		s.eachLeaf(&empty, func(flag byte, have, none *Digest) {
			if *have != *none {
				dst[at] |= flag
				dst = append(dst, have[:]...)
			}
		})
	}
	return dst
}

// parseSparse reads the body of a sparse digest chunk.
func parseSparse(body []byte) (sealedDigest, error) {
	c := cursor{b: body}
	d := sealedDigest{root: *c.digest("the digest")}
	n := c.count("the number of segments", maxSegments, 2)
	last := uint64(0)
	for range n {
		last += c.uvarint("a segment's index")
		s := emptySegment(last)
		flags := c.byte("a segment's flags")
		if flags > sparseFlags {
			c.fail("flags %#02x of a segment", flags)
		}
		empty := s
		s.eachLeaf(&empty, func(flag byte, leaf, none *Digest) {
			if flags&flag == 0 {
				return
			}
			if *leaf = *c.digest("a leaf"); c.err == nil && *leaf == *none {
				c.fail("a leaf of segment %d is written out, though nothing stands there", last)
			}
		})
		if c.err != nil {
			break
		}
		d.segments = append(d.segments, s)
	}
	return d, c.done()
}

// sealedBy reads the digest that a file was sealed with, from the chunk of
// either kind.
func sealedBy(c Chunk) (sealedDigest, error) {
	if c.Type == ChunkSparse {
		return parseSparse(c.Body)
	}
	return parseDigest(c.Body)
}
