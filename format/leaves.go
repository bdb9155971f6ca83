package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A digest chunk has the root of the content and the leaves of its segments.
// A leaves chunk adds the leaves of everything else, so that whoever checks
// can name what is not as sealed: the metadata, or the third mark.

// maxListed is how many leaves of one kind a leaves chunk lists: of marks or
// reports there can be so many that their leaves are larger than they are. Of
// a kind with more it has the root of the group alone. The number is part of
// the format, and must not change.
const maxListed = 256

// listedKinds are the kinds of leaves in a leaves chunk, in order.
var listedKinds = [...]byte{leafMeta, leafBook, leafPlayers, leafKeyframe, leafMark, leafReport, leafGap, leafEnd}

// leafNames names a leaf of each listed kind; one that can have several is
// numbered.
var leafNames = [leafKinds + 1]string{leafMeta: "metadata", leafBook: "code book", leafPlayers: "players", leafKeyframe: "keyframe",
	leafMark: "mark", leafReport: "report", leafGap: "gap", leafEnd: "counts"}

// leafLists holds leaves by kind, up to maxListed of each.
type leafLists [leafKinds + 1][]Digest

func (l *leafLists) add(kind byte, leaf Digest) {
	if len(l[kind]) <= maxListed {
		l[kind] = append(l[kind], leaf)
	}
}

// LeafList is all that a content digest is made of.
type LeafList struct {
	// Root is the content digest.
	Root Digest
	// Segments are the leaves of the session's ticks.
	Segments []Segment

	groups [leafKinds + 1]leafGroup
	lists  leafLists
}

// ErrNoEnd is returned where a session has no end, and so no content digest:
// it is still live, or its writer was cut and Repair has to end it.
var ErrNoEnd = errors.New("the session has no end: it is still live, or has to be repaired first")

// Leaves reads the whole of a replay that has an end, and computes its
// leaves. It fails where the content is not what the file's digest says.
func Leaves(f *File) (*LeafList, error) {
	k, err := f.checked()
	if err != nil {
		return nil, err
	}
	if k.t.digest == nil {
		return nil, ErrNoEnd
	}
	return k.t.content.leafList(*k.t.digest), nil
}

// leafList gives the leaves of a closed content whose leaves were listed.
func (c *content) leafList(root Digest) *LeafList {
	l := &LeafList{Root: root, Segments: c.segments}
	for _, kind := range listedKinds {
		l.groups[kind] = leafGroup{n: c.groups[kind].n, root: c.groups[kind].root()}
		if l.groups[kind].n <= maxListed {
			l.lists[kind] = c.lists[kind]
		}
	}
	return l
}

// AppendBody appends the body of a leaves chunk: for each kind that has a
// leaf its number, the number of its leaves, and the leaves; the root of
// their group where they are more than maxListed.
func (l *LeafList) AppendBody(dst []byte) []byte {
	for _, kind := range listedKinds {
		g := &l.groups[kind]
		if g.n == 0 {
			continue
		}
		dst = append(dst, kind)
		dst = binary.AppendUvarint(dst, g.n)
		if g.n > maxListed {
			dst = append(dst, g.root[:]...)
			continue
		}
		for _, leaf := range l.lists[kind] {
			dst = append(dst, leaf[:]...)
		}
	}
	return dst
}

// parseLeaves reads the body of a leaves chunk. Root and segments are those
// of the digest chunk.
func parseLeaves(body []byte) (*LeafList, error) {
	l := &LeafList{}
	c := cursor{b: body}
	left := listedKinds[:]
	for c.err == nil && c.rest() > 0 {
		kind := c.byte("a kind of leaves")
		for len(left) > 0 && left[0] < kind {
			left = left[1:]
		}
		if len(left) == 0 || left[0] != kind {
			c.fail("leaves of kind %d", kind)
			break
		}
		left = left[1:]
		l.parseGroup(&c, kind)
	}
	return l, c.done()
}

func (l *LeafList) parseGroup(c *cursor, kind byte) {
	n := c.uvarint("the number of leaves")
	if c.err == nil && n == 0 {
		c.fail("no leaf of kind %d is written out", kind)
	}
	l.groups[kind].n = n
	if n > maxListed {
		copy(l.groups[kind].root[:], c.bytes(len(Digest{}), "a group's root"))
		return
	}
	var m merkle
	for range n {
		var leaf Digest
		copy(leaf[:], c.bytes(len(leaf), "a leaf"))
		if c.err != nil {
			return
		}
		m.add(leaf)
		l.lists[kind] = append(l.lists[kind], leaf)
	}
	l.groups[kind].root = m.root()
}

// computed is the root that the listed leaves and the segments give.
func (l *LeafList) computed(segments []Segment) Digest {
	groups := l.groups
	for kind := range groups {
		if groups[kind].n == 0 {
			groups[kind].root = (&merkle{}).root()
		}
	}
	var inputs, hashes, times merkle
	for _, s := range segments {
		inputs.add(s.Inputs)
		hashes.add(s.Hashes)
		times.add(s.Times)
	}
	for kind, m := range map[byte]*merkle{leafInputs: &inputs, leafHashes: &hashes, leafTimes: &times} {
		groups[kind] = leafGroup{n: m.n, root: m.root()}
	}
	return rootOf(&groups)
}

// differs names the first leaf that is not as in sealed; empty where all
// listed ones agree, or where sealed is nil.
func (l *LeafList) differs(sealed *LeafList) string {
	if sealed == nil {
		return ""
	}
	for _, kind := range listedKinds {
		have, want := l.groups[kind], sealed.groups[kind]
		if have == want {
			continue
		}
		return l.differsIn(kind, sealed)
	}
	return ""
}

func (l *LeafList) differsIn(kind byte, sealed *LeafList) string {
	name, have, want := leafNames[kind], l.lists[kind], sealed.lists[kind]
	switch kind {
	case leafBook:
		return [...]string{"a code book is there, but was not sealed", "the code book is not what was sealed", "a code book was sealed, but is not there"}[1-len(have)+len(want)]
	case leafMeta, leafPlayers, leafEnd:
		return fmt.Sprintf("the %s are not what was sealed", name)
	}
	for i := range min(len(have), len(want)) {
		if have[i] != want[i] {
			return fmt.Sprintf("%s %d of %d is not what was sealed", name, i+1, len(want))
		}
	}
	if l.groups[kind].n == sealed.groups[kind].n {
		return fmt.Sprintf("the %ss are not what was sealed", name)
	}
	return fmt.Sprintf("it has %s, and was sealed with %d", plural(l.groups[kind].n, name), sealed.groups[kind].n)
}

// nextKnown is the next chunk of a known type at or after offset at; false
// where there is none.
func nextKnown(src io.ReaderAt, size, at int64) (Chunk, bool) {
	s := scanner{src: src, size: size, at: at}
	for {
		c, _, err := s.next()
		if err != nil {
			return c, false
		}
		if c.Type.Known() {
			return c, true
		}
	}
}
