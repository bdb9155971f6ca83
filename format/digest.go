package format

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
)

// Digest is a SHA-256 value.
type Digest [sha256.Size]byte

// String gives 64 hex digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// The content digest covers what a session says, not how a file stores it.
// Its leaves stand in groups; each group is a Merkle tree as in RFC 6962,
// and the root hashes the groups' roots:
//
//	leaf = SHA-256(00 · kind · content)
//	node = SHA-256(01 · left · right)
//	root = SHA-256(02 · for each kind 1…11: kind · leaves u64 · group root)

// Kinds of leaves are part of every digest. They must not change.
const (
	leafMeta     = 1
	leafBook     = 2
	leafPlayers  = 3
	leafInputs   = 4
	leafHashes   = 5
	leafTimes    = 6
	leafKeyframe = 7
	leafMark     = 8
	leafReport   = 9
	leafGap      = 10
	leafEnd      = 11

	leafKinds = 11

	// SegmentTicks is the number of ticks that one leaf of inputs, hashes or
	// times covers: segment s holds the ticks from s·1024 on.
	SegmentTicks = 1024
)

// merkle computes the root of a growing list of leaves in memory that grows
// with the logarithm of its length.
type merkle struct {
	n     uint64
	stack []Digest
}

func (m *merkle) add(leaf Digest) {
	m.stack = append(m.stack, leaf)
	for n := m.n; n&1 == 1; n >>= 1 {
		m.fold()
	}
	m.n++
}

func (m *merkle) fold() {
	top := len(m.stack) - 1
	m.stack[top-1] = node(m.stack[top-1], m.stack[top])
	m.stack = m.stack[:top]
}

// root leaves m as it is.
func (m *merkle) root() Digest {
	if m.n == 0 {
		return sha256.Sum256(nil)
	}
	r := m.stack[len(m.stack)-1]
	for i := len(m.stack) - 2; i >= 0; i-- {
		r = node(m.stack[i], r)
	}
	return r
}

func node(left, right Digest) Digest {
	var b [1 + 2*sha256.Size]byte
	b[0] = 1
	copy(b[1:], left[:])
	copy(b[1+sha256.Size:], right[:])
	return sha256.Sum256(b[:])
}

func newLeaf(kind byte) hash.Hash {
	h := sha256.New()
	h.Write([]byte{0, kind})
	return h
}

func leaf(kind byte, content []byte) Digest {
	h := newLeaf(kind)
	h.Write(content)
	return sum(h)
}

func sum(h hash.Hash) (d Digest) {
	h.Sum(d[:0])
	return d
}

// Segment holds the leaves of one segment that has at least one tick.
type Segment struct {
	Index                 uint64
	Inputs, Hashes, Times Digest
}

// content collects the leaves of a session as it goes.
type content struct {
	open    openSegment
	groups  [leafKinds + 1]merkle
	lists   *leafLists // nil: the leaves are not listed
	meta    Digest
	players hash.Hash
	// redaction holds leaves that the content can no longer give; nil for
	// none.
	redaction *Redaction
	// keyframes are sorted by tick at the end: the order in which they
	// become whole depends on how the ticks stand in chunks.
	keyframes []keyframeLeaf
	segments  []Segment
}

// openSegment hashes the newest segment: its ticks come in order. The hash of
// a leaf is nil before its first entry: many sessions have no times.
type openSegment struct {
	index  uint64
	inputs hash.Hash
	ticks  uint16
	// number holds one or two numbers on their way into a hash. On the stack
	// they would cost an allocation: a hash is behind an interface.
	number        [14]byte
	hashes, times hash.Hash
}

type keyframeLeaf struct {
	next Tick
	leaf Digest
}

func (c *content) addLeaf(kind byte, body []byte) { c.add(kind, leaf(kind, body)) }

func (c *content) add(kind byte, leaf Digest) {
	c.groups[kind].add(leaf)
	if c.lists != nil {
		c.lists.add(kind, leaf)
	}
}

// addMark adds the leaf of a mark, or the one that it had before its text was
// erased.
func (c *content) addMark(body []byte) {
	c.add(leafMark, c.redaction.markLeaf(c.groups[leafMark].n, leaf(leafMark, body)))
}

func (c *content) addKeyframe(next Tick, leaf Digest) {
	c.keyframes = append(c.keyframes, keyframeLeaf{next, leaf})
}

// addBatch appends the ticks of a checked batch.
func (c *content) addBatch(b *Batch) {
	r := b.Reader()
	var t TickRecord
	var parts segmentBytes
	for r.Next(&t) {
		if c.open.ticks == 0 || uint64(t.Tick)/SegmentTicks != c.open.index {
			c.open.write(&parts)
			c.closeSegment()
			c.open.index = uint64(t.Tick) / SegmentTicks
		}
		if b.Ticks < gatherTicks {
			c.open.add(&t)
		} else if parts.add(&t); len(parts.inputs) >= segmentBuffer {
			c.open.write(&parts)
		}
		left := SegmentTicks - 1 - int(t.Tick%SegmentTicks)
		c.open.ticks += 1 + uint16(r.skipEmpty(left))
	}
	c.open.write(&parts)
}

// segmentBytes gathers what goes into the three leaves of a segment, so
// that hashing runs over long stretches.
type segmentBytes struct{ inputs, hashes, times []byte }

const (
	// gatherTicks is how many ticks a batch has for its entries to be gathered.
	// For fewer it does not pay: memory to gather in, one for each session, has
	// left the processor's cache by the session's next chunk.
	gatherTicks = 64
	// segmentBuffer is where gathered inputs are hashed.
	segmentBuffer = 2 << 10
)

// add gathers the entries of a tick.
func (s *segmentBytes) add(t *TickRecord) {
	offset := uint64(t.Tick) % SegmentTicks
	if t.Steps > 0 {
		s.inputs = appendPair(s.inputs, offset, uint64(t.Steps))
		s.inputs = appendWide(s.inputs, t)
		s.inputs = append(s.inputs, t.Params...)
	}
	if t.Hash != nil {
		s.hashes = append(binary.AppendUvarint(s.hashes, offset), t.Hash...)
	}
	if t.HasTime {
		s.times = appendPair(s.times, offset, uint64(t.Time))
	}
}

func appendPair(dst []byte, a, b uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, a), b)
}

// write hashes what was gathered.
func (o *openSegment) write(s *segmentBytes) {
	for _, l := range [...]struct {
		hash  *hash.Hash
		kind  byte
		bytes *[]byte
	}{{&o.inputs, leafInputs, &s.inputs}, {&o.hashes, leafHashes, &s.hashes}, {&o.times, leafTimes, &s.times}} {
		if len(*l.bytes) > 0 {
			o.begun(l.hash, l.kind).Write(*l.bytes)
			*l.bytes = (*l.bytes)[:0]
		}
	}
}

// add hashes the entries of a tick as segmentBytes has them, without gathering
// them first.
func (o *openSegment) add(t *TickRecord) {
	offset := uint64(t.Tick) % SegmentTicks
	if t.Steps > 0 {
		o.begun(&o.inputs, leafInputs).Write(appendPair(o.number[:0], offset, uint64(t.Steps)))
		o.writeWide(t)
		o.inputs.Write(t.Params)
	}
	if t.Hash != nil {
		o.begun(&o.hashes, leafHashes).Write(binary.AppendUvarint(o.number[:0], offset))
		o.hashes.Write(t.Hash)
	}
	if t.HasTime {
		o.begun(&o.times, leafTimes).Write(appendPair(o.number[:0], offset, uint64(t.Time)))
	}
}

// writeWide hashes the tick's command area in 16-bit width.
func (o *openSegment) writeWide(t *TickRecord) {
	if t.Width == Width16 {
		o.inputs.Write(t.Commands)
		return
	}
	const most = 8 // they become twelve bytes
	part := TickRecord{Width: t.Width}
	for left := t.Commands; len(left) > 0; left = left[len(part.Commands):] {
		part.Commands = left[:min(most, len(left))]
		o.inputs.Write(appendWide(o.number[:0], &part))
	}
}

// appendWide appends the tick's command area in 16-bit width, so that a
// change of the stored width leaves the digest.
func appendWide(dst []byte, t *TickRecord) []byte {
	if t.Width == Width16 {
		return append(dst, t.Commands...)
	}
	for i := 0; i < len(t.Commands); i += 2 {
		dst = append(dst, t.Commands[i], 0, t.Commands[i+1])
	}
	return dst
}

// begun gives the hash of one of the segment's leaves, and makes it for the
// leaf's first entry.
func (o *openSegment) begun(h *hash.Hash, kind byte) hash.Hash {
	if *h == nil {
		*h = newSegment(kind, o.index)
	}
	return *h
}

// newSegment begins a segment's leaf: its content is the index as u64, then
// the entries.
func newSegment(kind byte, index uint64) hash.Hash {
	h := newLeaf(kind)
	h.Write(binary.BigEndian.AppendUint64(nil, index))
	return h
}

// closeSegment ends the open segment; the inputs' leaf also covers the
// number of ticks, so that dropped empty ticks show.
func (c *content) closeSegment() {
	if c.open.ticks == 0 {
		return
	}
	o := &c.open
	o.begun(&o.inputs, leafInputs).Write(binary.BigEndian.AppendUint64(nil, uint64(o.ticks)))
	c.segments = append(c.segments, Segment{Index: o.index, Inputs: sum(o.inputs), Hashes: sum(o.begun(&o.hashes, leafHashes)), Times: sum(o.begun(&o.times, leafTimes))})
	*o = openSegment{}
}

// root closes the content. end is the end leaf's content.
func (c *content) root(end []byte) Digest {
	c.closeSegment()
	c.redaction.substitute(c.segments)
	for _, s := range c.segments {
		c.groups[leafInputs].add(s.Inputs)
		c.groups[leafHashes].add(s.Hashes)
		c.groups[leafTimes].add(s.Times)
	}
	c.add(leafMeta, c.redaction.metaLeaf(c.meta))
	slices.SortFunc(c.keyframes, func(a, b keyframeLeaf) int { return cmp.Compare(a.next, b.next) })
	for _, k := range c.keyframes {
		c.add(leafKeyframe, k.leaf)
	}
	c.add(leafPlayers, c.redaction.playersLeaf(sum(c.players)))
	c.addLeaf(leafEnd, end)
	var groups [leafKinds + 1]leafGroup
	for kind := range groups {
		groups[kind] = leafGroup{n: c.groups[kind].n, root: c.groups[kind].root()}
	}
	return rootOf(&groups)
}

// leafGroup is what the root covers of one kind of leaves.
type leafGroup struct {
	n    uint64
	root Digest
}

// rootOf hashes the groups, which stand at their kinds.
func rootOf(groups *[leafKinds + 1]leafGroup) Digest {
	h := sha256.New()
	h.Write([]byte{2})
	for kind := 1; kind <= leafKinds; kind++ {
		h.Write([]byte{byte(kind)})
		h.Write(binary.BigEndian.AppendUint64(nil, groups[kind].n))
		h.Write(groups[kind].root[:])
	}
	return sum(h)
}
