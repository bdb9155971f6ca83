package format

import (
	"errors"
	"io"
)

// scanner reads the chunks of a file one after the other, in memory of the
// size of the largest one.
type scanner struct {
	src   io.ReaderAt
	size  int64 // where reading ends
	at    int64 // of the next chunk
	buf   []byte
	start int64 // the place of buf[0]
}

const scanBuffer = 64 << 10

// next returns the next chunk and its place. io.EOF ends the file. A chunk
// that is cut or damaged gives a TornError or CorruptError with its place
// in the file; the scanner stays before it. The body is valid until the
// next call.
func (s *scanner) next() (Chunk, int64, error) {
	if s.at >= s.size {
		return Chunk{}, s.at, io.EOF
	}
	b, err := s.window(chunkFixed + 10)
	if err != nil {
		return Chunk{}, s.at, err
	}
	size, err := chunkSize(b)
	if err != nil {
		return Chunk{}, s.at, s.place(err)
	}
	if size > s.size-s.at {
		return Chunk{}, s.at, &TornError{Offset: s.at, Size: s.size}
	}
	if b, err = s.window(size); err != nil {
		return Chunk{}, s.at, err
	}
	c, n, err := ParseChunk(b[:size])
	if err != nil {
		return c, s.at, s.place(err)
	}
	at := s.at
	s.at += int64(n)
	return c, at, nil
}

// place gives a relative error its place in the file.
func (s *scanner) place(err error) error {
	var torn *TornError
	if errors.As(err, &torn) {
		return &TornError{Offset: s.at, Size: s.size}
	}
	return shift(err, s.at)
}

// window returns the bytes from s.at on: n of them, or fewer at the end of
// the file.
func (s *scanner) window(n int64) ([]byte, error) {
	n = min(n, s.size-s.at)
	if s.at >= s.start && s.at+n <= s.start+int64(len(s.buf)) {
		return s.buf[s.at-s.start:], nil
	}
	want := min(max(n, scanBuffer), s.size-s.at)
	if int64(cap(s.buf)) < want {
		s.buf = make([]byte, want)
	}
	s.buf = s.buf[:want]
	if err := readFull(s.src, s.buf, s.at); err != nil {
		s.buf = s.buf[:0]
		return nil, err
	}
	s.start = s.at
	return s.buf, nil
}

// readFull fills b from offset at: a file that became shorter is an error.
func readFull(src io.ReaderAt, b []byte, at int64) error {
	n, err := src.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// hunt looks for the next whole chunk at or after s.at and moves there;
// false if there is none. It is how reading goes on behind damage. A chunk
// counts only if its checksum holds, and the work for false beginnings is
// bounded by a multiple of the file's size.
func (s *scanner) hunt() (bool, error) {
	budget := 16*s.size + MaxBody
	for ; s.at < s.size; s.at++ {
		b, err := s.window(chunkFixed + 10)
		if err != nil {
			return false, err
		}
		skip := indexMarker(b)
		if skip != 0 {
			s.at += int64(skip) - 1
			continue
		}
		size, err := chunkSize(b)
		if err != nil || size > s.size-s.at || !ChunkType(b[1]).Known() {
			continue
		}
		if budget -= size; budget < 0 {
			return false, nil
		}
		if b, err = s.window(size); err != nil {
			return false, err
		}
		if _, _, err := ParseChunk(b[:size]); err == nil {
			return true, nil
		}
	}
	return false, nil
}

// indexMarker is the distance to the next possible beginning of a chunk, at
// least 1 where b has none.
func indexMarker(b []byte) int {
	for i, x := range b {
		if x == chunkMarker {
			return i
		}
	}
	return max(len(b), 1)
}

// header tells whether a whole file begins at offset at.
func (s *scanner) header(at int64) (bool, error) {
	if s.size-at < HeaderSize {
		return false, nil
	}
	b := make([]byte, HeaderSize)
	if err := readFull(s.src, b, at); err != nil {
		return false, err
	}
	return CheckHeader(b) == nil, nil
}
