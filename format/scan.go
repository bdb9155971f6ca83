package format

import (
	"bytes"
	"encoding/binary"
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
	spent int64 // bytes checked for false beginnings of chunks
}

const (
	scanBuffer = 64 << 10
	// huntWork times the size of a file is the most that is checked for
	// false beginnings of chunks.
	huntWork = 16
)

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

// resync moves to where reading can go on behind damage, after next failed
// with err: to the next whole chunk, or to the end where there is none.
//
// Bodies hold what players sent, and bytes of a chunk could be among that. So
// where the damaged chunk's length leads to a whole chunk, nothing inside it
// is looked at. Where it leads past the end of the file, the file was cut
// inside that chunk, and nothing follows, unless it is the length that is
// damaged: then the checksum holds for the true one.
func (s *scanner) resync(err error) error {
	start, past := s.at, errors.Is(err, ErrTorn)
	if !past {
		if leapt, err := s.leap(); leapt || err != nil {
			return err
		}
	}
	s.at++
	for {
		found, err := s.hunt()
		if err != nil || !found || past && s.exhausted() {
			s.at = s.size
			return err
		}
		if !past {
			return nil
		}
		if ends, err := s.endsHere(start); err != nil || ends {
			return err
		}
		if _, _, err := s.next(); err != nil {
			return err
		}
	}
}

// endsHere tells whether the checksum of the chunk at offset start holds if
// its length is such that it ends at s.at.
func (s *scanner) endsHere(start int64) (bool, error) {
	size := s.at - start
	if size < chunkMinSize || size > MaxBody {
		return false, nil
	}
	b := make([]byte, size)
	if err := readFull(s.src, b, start); err != nil {
		return false, err
	}
	s.spent += size
	_, n := binary.Uvarint(b[chunkFixed:])
	binary.BigEndian.PutUint32(b[2:], uint32(size)-chunkFixed-uint32(n))
	return n > 0 && binary.BigEndian.Uint32(b[6:]) == chunkSum(b), nil
}

// leap passes over a damaged chunk by its length, if a whole chunk or the
// end of the file stands there.
func (s *scanner) leap() (bool, error) {
	b, err := s.window(chunkFixed + 10)
	if err != nil {
		return false, err
	}
	size, err := chunkSize(b)
	if err != nil || size > s.size-s.at {
		return false, nil
	}
	rest := scanner{src: s.src, size: s.size, at: s.at + size}
	_, _, err = rest.next()
	switch {
	case err == nil, err == io.EOF, errors.Is(err, ErrNewer):
		s.at += size
		return true, nil
	case IsDamage(err):
		return false, nil
	}
	return false, err
}

// hunt looks for the next whole chunk of a known type at or after s.at and
// moves there; false if there is none. A chunk counts only if its checksum
// holds. The work for false beginnings is bounded by a multiple of the file's
// size, over all hunts of a scanner: what lies behind is given up.
func (s *scanner) hunt() (bool, error) {
	for s.at < s.size {
		b, err := s.window(chunkFixed + 10)
		if err != nil {
			return false, err
		}
		if skip := bytes.IndexByte(b, chunkMarker); skip != 0 {
			if skip < 0 {
				skip = len(b)
			}
			s.at += int64(skip)
			continue
		}
		whole, err := s.wholeChunk(b)
		if err != nil || whole {
			return whole, err
		}
		if s.exhausted() {
			return false, nil
		}
		s.at++
	}
	return false, nil
}

// exhausted tells whether enough was checked for false beginnings.
func (s *scanner) exhausted() bool { return s.spent > huntWork*s.size+MaxBody }

// wholeChunk tells whether a whole chunk of a known type begins at s.at; b
// are the bytes from there on, at least its frame.
func (s *scanner) wholeChunk(b []byte) (bool, error) {
	size, err := chunkSize(b)
	if err != nil || size > s.size-s.at || !ChunkType(b[1]).Known() {
		return false, nil
	}
	if b, err = s.window(size); err != nil {
		return false, err
	}
	if _, _, err := ParseChunk(b[:size]); err == nil {
		return true, nil
	}
	s.spent += size
	return false, nil
}

// zerosToEnd tells whether only zero bytes are left.
func (s *scanner) zerosToEnd() (bool, error) {
	buf := make([]byte, scanBuffer)
	for at := s.at; at < s.size; at += int64(len(buf)) {
		b := buf[:min(int64(len(buf)), s.size-at)]
		if err := readFull(s.src, b, at); err != nil {
			return false, err
		}
		if zeros(b) < len(b) {
			return false, nil
		}
	}
	return true, nil
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
