package ship

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"reprise/format"
	"reprise/transport"
)

// source turns the chunks of a file into those of a producer's stream. They
// keep their bytes where the file's sequence numbers count from 1 without a
// hole, as those of a live file do; else they are numbered anew, alike each
// time. Every chunk is checked and counted once, when it is first read.
type source struct {
	open    *opening
	opening []byte // as it is sent
	renamed bool   // the file names no session

	// at is the place of the next chunk, seq the number of the last one of
	// the stream before it.
	at  int64
	seq uint64

	// What follows is about the bytes before tracked, which were read once.

	tracked int64
	tracker *format.Tracker
	sum     hash.Hash // of the file's bytes
	fileSeq uint64    // the last sequence number in the file
	frame   []byte

	end      *format.End
	endAt    int64 // where the content ends, once end is set
	stated   *format.Digest
	finished bool // the trailer was read
}

// item is the next chunk of a file.
type item struct {
	chunk format.Chunk
	// raw is the chunk in the file. framed is the chunk as it is sent, with
	// number seq; nil for what is not sent. All are valid until the next one
	// is read.
	raw, framed []byte
	seq         uint64
}

// newSource begins with what stands in front of the session's own chunks.
func newSource(c *chunks, o *opening, id string) (*source, error) {
	s := &source{open: o, renamed: o.name(id), at: format.HeaderSize, tracker: format.NewTracker(), sum: sha256.New()}
	for _, chunk := range o.chunks() {
		s.opening = format.AppendChunk(s.opening, chunk.Type, 0, chunk.Body)
		if err := s.tracker.Add(chunk, 0); err != nil {
			return nil, &format.CorruptError{Offset: format.HeaderSize, What: err.Error()}
		}
	}
	head := make([]byte, format.HeaderSize)
	if err := readFull(c.src, head, 0); err != nil {
		return nil, err
	}
	s.sum.Write(head)
	s.tracked = format.HeaderSize
	return s, nil
}

// rewind goes back to a place that was read before.
func (s *source) rewind(at int64, seq uint64) { s.at, s.seq = at, seq }

// peek reads the next chunk and leaves the source before it; take goes on
// behind it. Errors are those of chunks.read.
func (s *source) peek(c *chunks) (item, error) {
	chunk, raw, err := c.read(s.at)
	if err != nil {
		return item{}, err
	}
	it := item{chunk: chunk, raw: raw}
	if s.end == nil && s.streams(chunk) {
		it.seq = s.seq + 1
		it.framed = raw
		if chunk.Seq != it.seq {
			s.frame = format.AppendChunk(s.frame[:0], chunk.Type, it.seq, chunk.Body)
			it.framed = s.frame
		}
		if len(it.framed) > transport.MaxChunk {
			return it, s.damage("a chunk of %d bytes, a daemon takes %d", len(it.framed), transport.MaxChunk)
		}
	}
	return it, nil
}

// streams tells whether the next chunk belongs to the producer's stream.
func (s *source) streams(c format.Chunk) bool {
	switch c.Type {
	case format.ChunkTicks, format.ChunkGap, format.ChunkKeyframe, format.ChunkHashes, format.ChunkMark, format.ChunkReports:
		return true
	case format.ChunkPlayers:
		return s.at != s.open.playersAt
	}
	return !c.Type.Known()
}

// take checks the chunk that peek gave, unless it was read before, and goes
// on behind it.
func (s *source) take(it item) error {
	if s.at >= s.tracked {
		if err := s.check(it); err != nil {
			return err
		}
		s.sum.Write(it.raw)
		s.tracked = s.at + int64(len(it.raw))
	}
	s.at += int64(len(it.raw))
	s.seq = max(s.seq, it.seq)
	return nil
}

func (s *source) check(it item) error {
	if n := it.chunk.Seq; n != 0 && n != s.fileSeq+1 {
		return s.damage("chunk %d stands where chunk %d is due", n, s.fileSeq+1)
	}
	if err := s.follow(it); err != nil {
		return s.place(it, err)
	}
	if it.chunk.Seq != 0 {
		s.fileSeq = it.chunk.Seq
	}
	return nil
}

// follow takes a chunk that comes for the first time.
func (s *source) follow(it item) error {
	c := it.chunk
	switch {
	case s.finished:
		return errors.New("a chunk behind the trailer")
	case it.framed != nil:
		return s.tracker.Add(format.Chunk{Type: c.Type, Seq: it.seq, Body: c.Body}, s.at)
	case s.end == nil && c.Type < format.ChunkDigest && c.Type != format.ChunkEnd:
		return nil // of the opening
	case s.end == nil && c.Type == format.ChunkEnd:
		return s.finish(c.Body)
	case s.end == nil, c.Type < format.ChunkDigest:
		return fmt.Errorf("a %v chunk out of its place at the end", c.Type)
	case c.Type == format.ChunkDigest && len(c.Body) >= sha256.Size:
		s.stated = (*format.Digest)(append([]byte(nil), c.Body[:sha256.Size]...))
	case c.Type == format.ChunkTrailer:
		s.finished = true
	}
	return nil
}

// finish takes the end chunk.
func (s *source) finish(body []byte) error {
	end, err := format.ParseEnd(body)
	if err == nil {
		err = s.tracker.CheckTotals(end.Totals)
	}
	if err != nil {
		return err
	}
	s.end, s.endAt = &end, s.at
	return nil
}

// damage is an error at the next chunk.
func (s *source) damage(what string, args ...any) error {
	return &format.CorruptError{Offset: s.at, What: fmt.Sprintf(what, args...)}
}

// place turns what is wrong with the next chunk into damage of the file.
func (s *source) place(it item, err error) error {
	var d *format.CorruptError
	if errors.As(err, &d) {
		body := s.at + int64(len(it.raw)-len(it.chunk.Body))
		return &format.CorruptError{Offset: body + d.Offset, What: d.What}
	}
	return s.damage("%v", err)
}

// totals are the counts of all that was read.
func (s *source) totals() format.Totals { return s.tracker.Totals() }

// digest computes the digest of the session as it is to be sealed. The
// source takes nothing after it. src gives the file's bytes.
func (s *source) digest(src io.ReaderAt) (d format.Digest, err error) {
	end := s.tracked
	if s.end != nil {
		end = s.endAt
	}
	footer, err := s.tracker.Footer(src, end, format.EndSealed, "")
	if err != nil {
		return d, err
	}
	for len(footer) > 0 {
		c, n, err := format.ParseChunk(footer)
		if err != nil {
			return d, err
		}
		if c.Type == format.ChunkDigest {
			return format.Digest(c.Body[:len(d)]), nil
		}
		footer = footer[n:]
	}
	return d, errors.New("a footer without a digest")
}

// key is a producer's key.
type key = [transport.KeySize]byte
