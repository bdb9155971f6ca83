package ship

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"reprise/format"
)

// errGone is returned for a file that vanished before it was sealed.
var errGone = errors.New("the file is gone, and was not sealed")

// openRegular opens a file that can be read at any place.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	// Looked at before it is opened: opening a named pipe would wait.
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, errGone
	}
	if err != nil {
		return nil, nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%w: not a regular file", format.ErrNotReplay)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if st, err = f.Stat(); err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, st, nil
}

// desk is a place to read a file: there are few, so that few files are open,
// and little memory is used, at once.
type desk struct{ buf []byte }

// with opens the parcel's file for a while, at a desk.
func (p *parcel) with(ctx context.Context, do func(*os.File, fs.FileInfo) error) error {
	var d desk
	select {
	case d = <-p.s.desks:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { p.s.desks <- d }()
	f, st, err := openRegular(p.path)
	if err != nil {
		return err
	}
	defer f.Close()
	p.notice(st)
	p.chunks = chunks{src: f, size: st.Size(), buf: d.buf[:0]}
	err = do(f, st)
	d.buf, p.chunks.buf = p.chunks.buf, nil
	return err
}

// look shows the RPLY2 bytes of the parcel's file. Those of a growing file
// must be the ones that were seen before.
func (p *parcel) look(ctx context.Context, do func(*chunks) error) error {
	if p.foreign != nil {
		return do(&p.foreign.chunks)
	}
	return p.with(ctx, func(f *os.File, st fs.FileInfo) error {
		if err := p.seen.check(f, st.Size()); err != nil {
			return err
		}
		if p.rec != nil && p.rec.Ending != "" {
			p.chunks.size = min(p.chunks.size, p.rec.Offset)
		}
		return do(&p.chunks)
	})
}

// sampleSize is how much of a growing file's beginning, and of the end of
// what was read, is looked at again each time.
const sampleSize = 1 << 10

// sample remembers parts of a file.
type sample struct {
	head, tail []byte
	at         int64 // of tail
}

// keep remembers the file as it is before offset end.
func (s *sample) keep(src io.ReaderAt, end int64) error {
	if len(s.head) < sampleSize {
		s.head = make([]byte, min(sampleSize, end))
		if err := readFull(src, s.head, 0); err != nil {
			return err
		}
	}
	n := min(sampleSize, end)
	if s.at+int64(len(s.tail)) == end {
		return nil
	}
	if int64(cap(s.tail)) < n {
		s.tail = make([]byte, n)
	}
	s.tail, s.at = s.tail[:n], end-n
	return readFull(src, s.tail, s.at)
}

// check tells whether the file can still be the same.
func (s *sample) check(src io.ReaderAt, size int64) error {
	if end := s.at + int64(len(s.tail)); size < end {
		return truncated(size, end)
	}
	b := make([]byte, sampleSize)
	for _, part := range [...]struct {
		b  []byte
		at int64
	}{{s.head, 0}, {s.tail, s.at}} {
		b = b[:len(part.b)]
		if err := readFull(src, b, part.at); err != nil {
			return err
		}
		if !bytes.Equal(b, part.b) {
			return fmt.Errorf("%w: it was replaced or rewritten, its bytes from offset %d on are others", ErrReplaced, part.at)
		}
	}
	return nil
}

func truncated(size, shipped int64) error {
	return fmt.Errorf("%w: it was truncated, it has %d bytes, and %d were shipped", ErrReplaced, size, shipped)
}

// sumOf is the SHA-256 of a file's first bytes.
func sumOf(src io.ReaderAt, end int64) (string, error) {
	h := sha256.New()
	n, err := io.Copy(h, io.NewSectionReader(src, 0, end))
	if err == nil && n < end {
		err = io.ErrUnexpectedEOF
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

// vouch tells whether a file begins with what a record says was shipped.
func (r *record) vouch(src io.ReaderAt, size int64) error {
	if size < r.Offset {
		return truncated(size, r.Offset)
	}
	if r.Offset == 0 {
		return nil
	}
	sum, err := sumOf(src, r.Offset)
	if err != nil {
		return err
	}
	if sum != r.Sum {
		return fmt.Errorf("%w: it was replaced or rewritten, its first %d bytes are others", ErrReplaced, r.Offset)
	}
	return nil
}

// moveTo moves a file into a folder under its name, or one like it where that
// is taken: no file is ever replaced.
func moveTo(path, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	name := filepath.Base(path)
	for n := 1; ; n++ {
		to := filepath.Join(folder, name)
		if n > 1 {
			to = filepath.Join(folder, fmt.Sprintf("%d-%s", n, name))
		}
		_, err := os.Lstat(to)
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return os.Rename(path, to)
	}
}
