package recorder

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
)

// View reads a session that has not ended as if its file were written up to
// its size already: what is not in the file comes from memory. It implements
// io.ReaderAt, and stays good while the session goes on and ends.
type View struct {
	s    *recording
	size int64

	mu   sync.Mutex
	file File
}

// View gives what is durable of a session, for format.NewFile; false where
// no such session is held.
func (r *Recorder) View(id string) (*View, bool) {
	s := r.session(id)
	if s == nil {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &View{s: s, size: s.durable}, true
}

// source gives all that is accepted, for the recorder itself. It keeps no
// file open.
func (s *recording) source() io.ReaderAt { return sourceReader{s} }

type sourceReader struct{ s *recording }

func (v sourceReader) ReadAt(b []byte, off int64) (int, error) {
	return v.s.readAt(b, off, func(b []byte, off int64) error {
		f, err := v.s.openFile()
		if err != nil {
			return err
		}
		return errors.Join(readFull(f, b, off), f.Close())
	})
}

// Size is how many bytes the view has.
func (v *View) Size() int64 { return v.size }

// ReadAt reads as io.ReaderAt says.
func (v *View) ReadAt(b []byte, off int64) (int, error) {
	short := off+int64(len(b)) > v.size
	if short {
		b = b[:max(0, v.size-off)]
	}
	n, err := v.s.readAt(b, off, v.readFile)
	if err == nil && short {
		err = io.EOF
	}
	return n, err
}

// readFile reads from the session's file, which stays open.
func (v *View) readFile(b []byte, off int64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.file == nil {
		f, err := v.s.openFile()
		if err != nil {
			return err
		}
		v.file = f
	}
	return readFull(v.file, b, off)
}

// Close releases the file.
func (v *View) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.file == nil {
		return nil
	}
	f := v.file
	v.file = nil
	return f.Close()
}

// readAt fills b from offset off: what is in the file by fromFile, the rest
// from memory.
func (s *recording) readAt(b []byte, off int64, fromFile func([]byte, int64) error) (int, error) {
	done := 0
	for done < len(b) {
		at := off + int64(done)
		s.mu.Lock()
		if at >= s.written {
			n := 0
			if at < s.size {
				n = copy(b[done:], s.pending[at-s.written:])
			}
			s.mu.Unlock()
			if done += n; done < len(b) {
				return done, io.EOF
			}
			break
		}
		n := int(min(int64(len(b)-done), s.written-at))
		s.mu.Unlock()
		if err := fromFile(b[done:done+n], at); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// openFile opens the session's file wherever it is: it may be moved at any
// moment.
func (s *recording) openFile() (File, error) {
	var err error
	for range 2 {
		for _, folder := range allFolders {
			var f File
			if f, err = s.r.fs.OpenFile(filepath.Join(s.r.cfg.Dir, folder, s.file()), false); err == nil {
				return f, nil
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	return nil, err
}
