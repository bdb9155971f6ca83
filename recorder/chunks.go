package recorder

import (
	"errors"
	"hash/maphash"
	"io"

	"reprise/format"
)

// chunkReader gives the chunks of a session's file in order, in memory of
// the size of the largest one.
type chunkReader struct {
	src      io.ReaderAt
	at, size int64 // of the next chunk; where reading ends
	buf      []byte
	start    int64 // the place of buf[0]
}

// chunkWindow is how much is read at once.
const chunkWindow = 64 << 10

// next returns the next chunk, its framed bytes and its place; io.EOF at
// the end. Where the bytes end inside a chunk the error matches
// format.ErrTorn, and c.at stays before it. All is valid until the next call.
func (c *chunkReader) next() (chunk format.Chunk, framed []byte, at int64, err error) {
	for want := int64(chunkWindow); ; want = min(4*want, format.MaxBody+chunkWindow) {
		if c.at >= c.size {
			return chunk, nil, c.at, io.EOF
		}
		b, err := c.window(want)
		if err != nil {
			return chunk, nil, c.at, err
		}
		chunk, n, err := format.ParseChunk(b)
		if errors.Is(err, format.ErrTorn) && int64(len(b)) < c.size-c.at {
			continue
		}
		if err != nil {
			return chunk, nil, c.at, err
		}
		at = c.at
		c.at += int64(n)
		return chunk, b[:n], at, nil
	}
}

// window returns the bytes from c.at on: at least want of them, or all that
// is left. What it has is enough to begin with.
func (c *chunkReader) window(want int64) ([]byte, error) {
	have := c.start + int64(len(c.buf)) - c.at
	if c.at >= c.start && have > 0 && want == chunkWindow {
		return c.buf[c.at-c.start:], nil
	}
	want = min(want, c.size-c.at)
	if int64(cap(c.buf)) < want {
		c.buf = make([]byte, want)
	}
	c.buf = c.buf[:want]
	if err := readFull(c.src, c.buf, c.at); err != nil {
		c.buf = c.buf[:0]
		return nil, err
	}
	c.start = c.at
	return c.buf, nil
}

// digestSeed makes the digests of chunks: they live as long as the process.
var digestSeed = maphash.MakeSeed()

func digestOf(framed []byte) uint64 { return maphash.Bytes(digestSeed, framed) }

// recentChunks remembers the digests of a session's last chunks as they were
// sent, by sequence number.
type recentChunks struct {
	notes [32]chunkNote
}

type chunkNote struct{ seq, digest uint64 }

func (r *recentChunks) add(seq, digest uint64) {
	r.notes[seq%uint64(len(r.notes))] = chunkNote{seq, digest}
}

func (r *recentChunks) find(seq uint64) (uint64, bool) {
	n := r.notes[seq%uint64(len(r.notes))]
	return n.digest, n.seq == seq && seq != 0
}

// places says where to begin reading for a sequence number or a tick. It
// holds at most maxPlaces entries, whatever the length of the file.
type places struct {
	list    []place
	spacing int64 // between two entries
	next    int64 // no entry is due before this offset
}

// place: the chunk at offset is the producer's chunk seq, and tick was due
// before it.
type place struct {
	seq    uint64
	tick   format.Tick
	offset int64
}

const (
	maxPlaces    = 512
	firstSpacing = 64 << 10
)

// add notes a chunk if the last note is far enough back.
func (p *places) add(x place) {
	if x.offset < p.next {
		return
	}
	p.spacing = max(p.spacing, firstSpacing)
	if len(p.list) == maxPlaces {
		for i := range maxPlaces / 2 {
			p.list[i] = p.list[2*i]
		}
		p.list = p.list[:maxPlaces/2]
		p.spacing *= 2
	}
	p.list = append(p.list, x)
	p.next = x.offset + p.spacing
}

// before finds the last place that fits; else the start of the chunks.
func (p *places) before(fits func(place) bool) int64 {
	lo, hi := 0, len(p.list)
	for lo < hi {
		if mid := (lo + hi) / 2; fits(p.list[mid]) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return format.HeaderSize
	}
	return p.list[lo-1].offset
}

func (p *places) beforeSeq(seq uint64) int64 {
	return p.before(func(x place) bool { return x.seq <= seq })
}

func (p *places) beforeTick(t format.Tick) int64 {
	return p.before(func(x place) bool { return x.tick <= t })
}
