package format

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// A redaction chunk stands in a copy from which something was erased. It holds
// the leaves that what is left can no longer give, so that the content digest
// stays that of the whole, and a signature over it holds.

// Redaction says what was erased from a replay. The content digest still
// covers it.
type Redaction struct {
	// Players is set where the players, and their salt, were erased.
	Players bool
	// Metadata is set where labels, facts of the environment or a foreign
	// header were erased.
	Metadata bool
	// Params counts the parameters that were emptied, and Segments the
	// segments that they stand in.
	Params, Segments uint64
	// Marks counts the marks whose text was emptied.
	Marks uint64

	// The leaves that were kept; nil in a summary, which has the facts alone.
	meta, players *Digest
	inputs, marks []keptLeaf
}

// keptLeaf is the leaf of a segment, or of a mark, by its number.
type keptLeaf struct {
	index uint64
	leaf  Digest
}

// Unproven tells whether something is there that the digest does not prove:
// what is left of metadata, inputs or marks of which a part was erased. Erased
// players leave nothing.
func (r *Redaction) Unproven() bool {
	return r != nil && (r.Metadata || r.Params > 0 || r.Marks > 0)
}

// clone gives a redaction that can be added to; that of nil is empty.
func (r *Redaction) clone() *Redaction {
	if r == nil {
		return &Redaction{}
	}
	c := *r
	c.inputs, c.marks = slices.Clone(r.inputs), slices.Clone(r.marks)
	return &c
}

// facts leaves out the leaves.
func (r *Redaction) facts() *Redaction {
	if r == nil {
		return nil
	}
	f := *r
	f.meta, f.players, f.inputs, f.marks = nil, nil, nil, nil
	return &f
}

// The substitutes are asked for by the content as it is closed.

func (r *Redaction) metaLeaf(own Digest) Digest {
	if r == nil || r.meta == nil {
		return own
	}
	return *r.meta
}

func (r *Redaction) playersLeaf(own Digest) Digest {
	if r == nil || r.players == nil {
		return own
	}
	return *r.players
}

func (r *Redaction) markLeaf(index uint64, own Digest) Digest {
	if r == nil {
		return own
	}
	return kept(r.marks, index, own)
}

// substitute puts kept leaves in the place of those that the ticks gave.
func (r *Redaction) substitute(segments []Segment) {
	if r == nil {
		return
	}
	for i := range segments {
		segments[i].Inputs = kept(r.inputs, segments[i].Index, segments[i].Inputs)
	}
}

// kept finds the leaf with a number; own where there is none.
func kept(list []keptLeaf, index uint64, own Digest) Digest {
	if i, ok := findKept(list, index); ok {
		return list[i].leaf
	}
	return own
}

func findKept(list []keptLeaf, index uint64) (int, bool) {
	return slices.BinarySearchFunc(list, index, func(k keptLeaf, index uint64) int { return cmp.Compare(k.index, index) })
}

// Field numbers of the redaction chunk are stored in files. They must not
// change. A reader refuses a field that it does not know: it could not compute
// the digest.
const (
	redactPlayers  = 1
	redactMetadata = 2
	redactInputs   = 3
	redactMarks    = 4
)

// appendRedaction appends the body of a redaction chunk: fields of number,
// length and content, by ascending number.
func appendRedaction(dst []byte, r *Redaction) []byte {
	field := func(id uint64, content []byte) {
		dst = binary.AppendUvarint(dst, id)
		dst = binary.AppendUvarint(dst, uint64(len(content)))
		dst = append(dst, content...)
	}
	if r.players != nil {
		field(redactPlayers, r.players[:])
	}
	if r.meta != nil {
		field(redactMetadata, r.meta[:])
	}
	if r.Params > 0 {
		field(redactInputs, appendKept(binary.AppendUvarint(nil, r.Params), r.inputs))
	}
	if r.Marks > 0 {
		field(redactMarks, appendKept(nil, r.marks))
	}
	return dst
}

// appendKept appends a count, then number (later ones as the distance to the
// one before) and leaf of each.
func appendKept(dst []byte, list []keptLeaf) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	last := uint64(0)
	for _, k := range list {
		dst = binary.AppendUvarint(dst, k.index-last)
		dst = append(dst, k.leaf[:]...)
		last = k.index
	}
	return dst
}

// parseRedaction reads the body of a redaction chunk.
func parseRedaction(body []byte) (*Redaction, error) {
	r := &Redaction{}
	c := cursor{b: body}
	last := uint64(0)
	for c.err == nil && c.rest() > 0 {
		id := c.uvarint("a field number")
		content := c.bytes(c.count("the length of a field", MaxBody, 1), "a field")
		if c.err == nil && (id <= last || id > redactMarks) {
			c.fail("field %d after field %d", id, last)
		}
		last = id
		if c.err == nil {
			c.failIn(id, content, r.setField(id, &cursor{b: content}))
		}
	}
	if c.err == nil && last == 0 {
		c.fail("nothing is erased")
	}
	return r, c.done()
}

func (r *Redaction) setField(id uint64, f *cursor) error {
	switch id {
	case redactPlayers:
		r.Players, r.players = true, f.digest("the players' leaf")
	case redactMetadata:
		r.Metadata, r.meta = true, f.digest("the metadata's leaf")
	case redactInputs:
		r.Params = f.uvarint("the number of emptied parameters")
		r.inputs = f.keptLeaves()
		r.Segments = uint64(len(r.inputs))
		if f.err == nil && r.Params < r.Segments {
			f.fail("%d emptied parameters in %d segments", r.Params, r.Segments)
		}
	case redactMarks:
		r.marks = f.keptLeaves()
		r.Marks = uint64(len(r.marks))
	}
	return f.done()
}

func (c *cursor) digest(field string) *Digest {
	d := new(Digest)
	copy(d[:], c.bytes(len(d), field))
	return d
}

// keptLeaves reads at least one leaf.
func (c *cursor) keptLeaves() []keptLeaf {
	n := c.count("the number of kept leaves", MaxBody, 1+len(Digest{}))
	if c.err == nil && n == 0 {
		c.fail("no leaf is kept")
	}
	list := make([]keptLeaf, 0, n)
	last := uint64(0)
	for i := range n {
		d := c.uvarint("the number of a kept leaf")
		if c.err == nil && (i > 0 && d == 0 || d > uint64(MaxTick)-last) {
			c.fail("kept leaf %d after leaf %d", d, last)
		}
		last += d
		list = append(list, keptLeaf{last, *c.digest("a kept leaf")})
	}
	return list
}

const (
	redactedPlayers  = 1
	redactedMetadata = 2
)

// appendFacts appends what the summary says of a redaction: flags, emptied
// parameters, their segments, emptied marks.
func (r *Redaction) appendFacts(dst []byte) []byte {
	flags := flag(r.Players)*redactedPlayers | flag(r.Metadata)*redactedMetadata
	dst = append(dst, flags)
	for _, v := range [...]uint64{r.Params, r.Segments, r.Marks} {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

func (c *cursor) redactionFacts() *Redaction {
	flags := c.byte("the flags of the redaction")
	if flags > redactedPlayers|redactedMetadata {
		c.fail("flags %#02x of the redaction", flags)
	}
	return &Redaction{Players: flags&redactedPlayers != 0, Metadata: flags&redactedMetadata != 0,
		Params: c.uvarint("the number of emptied parameters"), Segments: c.uvarint("the number of their segments"), Marks: c.uvarint("the number of emptied marks")}
}

// checkRedaction holds the place of a redaction chunk: before all that it
// speaks of, and not in a producer's stream, which has nothing to erase.
func (t *Tracker) checkRedaction(p *Parsed) error {
	if t.redaction != nil || t.started || p.Chunk.Seq != 0 {
		return fmt.Errorf("%w: a redaction chunk that does not stand behind the opening", ErrOrder)
	}
	var err error
	if p.redaction, err = parseRedaction(p.Chunk.Body); err != nil {
		return err
	}
	if p.redaction.Players && t.salted {
		return errErased
	}
	return nil
}

// errErased is returned for players in a replay that says they were erased.
var errErased = fmt.Errorf("%w: players that were erased are there", ErrOrder)
