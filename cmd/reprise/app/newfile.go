package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// newFile is a file that is being written. It refuses to be written on once
// the command is interrupted.
type newFile struct {
	ctx  context.Context
	file *os.File
}

func (f newFile) Write(b []byte) (int, error) {
	if f.ctx.Err() != nil {
		return 0, f.ctx.Err()
	}
	return f.file.Write(b)
}

func (f newFile) ReadAt(b []byte, at int64) (int, error) { return f.file.ReadAt(b, at) }

// writeNew creates path, which must not exist, with what write puts into it:
// under a temporary name until it is whole and on the disk. After a failure
// there is no such file.
func writeNew(ctx context.Context, path string, write func(newFile) error) error {
	if err := checkAbsent(path); err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(path), ".reprise-"+rand.Text()+".tmp")
	f, err := createTemporary(temporary, path)
	if err != nil {
		return err
	}
	err = write(newFile{ctx, f})
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = giveName(temporary, path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(temporary))
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return errors.Join(err, removeIfThere(path))
	}
	return nil
}

// createTemporary creates the file that is to be path once it is whole.
func createTemporary(temporary, path string) (*os.File, error) {
	f, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", printable(path), cause(err))
	}
	return f, nil
}

// checkAbsent refuses a path where something is.
func checkAbsent(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return existsError(path)
	}
	return nil
}

func existsError(path string) error {
	return usagef("%s exists, and is not overwritten: remove it, or use another name", printable(path))
}

// giveName moves a finished file to its name. A link fails where the name has
// been taken meanwhile; a rename would replace that file, and serves only
// where the file system has no links.
func giveName(temporary, path string) error {
	err := os.Link(temporary, path)
	switch {
	case err == nil:
		return os.Remove(temporary)
	case errors.Is(err, fs.ErrExist):
		return existsError(path)
	}
	if err := checkAbsent(path); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncFolder makes a new name in a folder last. Windows has no such call, nor
// have some network file systems.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	err = folder.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, folder.Close())
}
