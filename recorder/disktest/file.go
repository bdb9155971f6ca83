package disktest

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// file is an open file.
type file struct {
	d    *Disk
	name string
	n    *node
}

func (f *file) ReadAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.off {
		return 0, ErrOff
	}
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.n.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes b, or any first part of it where it fails.
func (f *file) WriteAt(b []byte, off int64) (int, error) {
	f.d.wait(OpWrite, f.name)
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.off {
		return 0, ErrOff
	}
	err := f.d.step(OpWrite, f.name)
	if err != nil {
		b = b[:f.d.rng.IntN(len(b)+1)]
	}
	over := int64(0)
	if grow := off + int64(len(b)) - int64(len(f.n.data)); grow > 0 {
		over = grow - f.d.room(grow)
	}
	if over > 0 {
		b = b[:f.d.rng.Int64N(max(0, int64(len(b))-over)+1)]
		if err == nil {
			err = &fs.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
		}
	}
	f.n.write(b, off)
	return len(b), err
}

func (f *file) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.step(OpTruncate, f.name); err != nil {
		return err
	}
	f.n.truncate(size)
	return nil
}

func (f *file) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.off {
		return 0, ErrOff
	}
	return int64(len(f.n.data)), nil
}

func (f *file) Sync() error {
	f.d.wait(OpSync, f.name)
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	err := f.d.step(OpSync, f.name)
	if errors.Is(err, ErrOff) {
		return err
	}
	f.n.sync(f.d.rng, err != nil)
	return err
}

func (f *file) Close() error { return nil }
