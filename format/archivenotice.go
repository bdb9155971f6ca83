package format

import (
	"encoding/binary"
	"fmt"
)

// ArchiveLevel says how much time goes into a small archive.
type ArchiveLevel uint8

// Levels are stored in files. They must not change.
const (
	// ArchiveNone is that of a file whose ticks stand in the ordinary layout
	// again, and which lacks hashes that its archive has left out.
	ArchiveNone ArchiveLevel = 0
	// ArchiveFast is for the most replays a second.
	ArchiveFast ArchiveLevel = 1
	// ArchiveDefault is small, and quick to read.
	ArchiveDefault ArchiveLevel = 2
	// ArchiveMax is the smallest: a few MB of rows a second, both ways.
	ArchiveMax ArchiveLevel = 3
)

var archiveLevels = [...]string{ArchiveNone: "none", ArchiveFast: "fast", ArchiveDefault: "default", ArchiveMax: "max"}

// String gives the level's name.
func (l ArchiveLevel) String() string {
	if l <= ArchiveMax {
		return archiveLevels[l]
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// ParseArchiveLevel finds the level of a name.
func ParseArchiveLevel(name string) (ArchiveLevel, error) {
	for l := ArchiveFast; l <= ArchiveMax; l++ {
		if archiveLevels[l] == name {
			return l, nil
		}
	}
	return 0, fmt.Errorf("level %q: use fast, default or max", name)
}

// ArchiveInfo is what an archive says about itself.
type ArchiveInfo struct {
	Level ArchiveLevel
	// HashEvery is n where one in n state hashes was kept; 1 where all were.
	HashEvery uint64
	// HashesLeft counts the hashes that were left out.
	HashesLeft uint64
}

// archiveNotice is the body of an archive notice. Where hashes were left out
// it has the leaves of their segments, so that the content digest stays.
type archiveNotice struct {
	ArchiveInfo
	leaves []segmentLeaf
}

// segmentLeaf is the hashes' leaf of a segment.
type segmentLeaf struct {
	index uint64
	leaf  Digest
}

// An archive notice holds level u8, one in so many hashes kept, number of
// hashes left out, and the leaves of hashes of the segments that lack some: a
// count, then the index (later ones as the distance to the one before) and
// the leaf of each.

func appendArchiveInfo(dst []byte, i ArchiveInfo) []byte {
	dst = append(dst, byte(i.Level))
	dst = binary.AppendUvarint(dst, i.HashEvery)
	return binary.AppendUvarint(dst, i.HashesLeft)
}

func appendArchiveNotice(dst []byte, n *archiveNotice) []byte {
	dst = appendArchiveInfo(dst, n.ArchiveInfo)
	dst = binary.AppendUvarint(dst, uint64(len(n.leaves)))
	last := uint64(0)
	for _, s := range n.leaves {
		dst = binary.AppendUvarint(dst, s.index-last)
		dst = append(dst, s.leaf[:]...)
		last = s.index
	}
	return dst
}

func (c *cursor) archiveInfo() ArchiveInfo {
	i := ArchiveInfo{Level: ArchiveLevel(c.byte("the archive's level")), HashEvery: c.uvarint("one in so many hashes kept"), HashesLeft: c.uvarint("the hashes left out")}
	if c.err == nil && (i.Level == ArchiveNone && i.HashesLeft == 0 || i.Level > ArchiveMax || i.HashEvery == 0 || i.HashEvery == 1 && i.HashesLeft > 0) {
		c.fail("an archive of %v with one in %d hashes kept and %d left out", i.Level, i.HashEvery, i.HashesLeft)
	}
	return i
}

func parseArchiveNotice(body []byte) (*archiveNotice, error) {
	c := cursor{b: body}
	n := &archiveNotice{ArchiveInfo: c.archiveInfo()}
	count := c.count("the number of segments that lack hashes", maxSegments, 33)
	if c.err == nil && ((count == 0) != (n.HashesLeft == 0) || n.HashesLeft > uint64(count)*SegmentTicks) {
		c.fail("%d hashes left out of %d segments", n.HashesLeft, count)
	}
	n.leaves = make([]segmentLeaf, 0, count)
	last := uint64(0)
	for i := range count {
		d := c.uvarint("a segment's index")
		if c.err == nil && i > 0 && (d == 0 || last+d < last) {
			c.fail("segments %d and %d: they must ascend", last, last+d)
		}
		last += d
		s := segmentLeaf{index: last}
		copy(s.leaf[:], c.bytes(len(s.leaf), "a leaf of hashes"))
		n.leaves = append(n.leaves, s)
	}
	return n, c.done()
}

// keepLeaves puts back the leaves of the segments that lack hashes.
func (n *archiveNotice) keepLeaves(segments []Segment) {
	if n == nil {
		return
	}
	leaves := n.leaves
	for i := range segments {
		for len(leaves) > 0 && leaves[0].index < segments[i].Index {
			leaves = leaves[1:]
		}
		if len(leaves) > 0 && leaves[0].index == segments[i].Index {
			segments[i].Hashes = leaves[0].leaf
		}
	}
}

// whole gives the counts of the session with the hashes that were left out.
func (n *archiveNotice) whole(t Totals) Totals {
	if n != nil {
		t.Hashes += n.HashesLeft
	}
	return t
}
