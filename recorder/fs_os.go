package recorder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	folderMode = 0o750
	fileMode   = 0o640

	// syncTogether is how many files are synced at once where each needs a
	// sync of its own. More gained nothing on the disks measured.
	syncTogether = 32
	// lockTries and lockPause let a start outlast a Running that looks at
	// the lock at the same moment.
	lockTries = 10
	lockPause = 50 * time.Millisecond
)

// osFS is the real disk. root stays open for as long as the recorder runs:
// a sync of the whole file system reports each failed write once to every
// descriptor that was open when it failed.
type osFS struct {
	root *os.File
}

func openOS(dir string) (*osFS, error) {
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return nil, err
	}
	root, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return &osFS{root: root}, nil
}

func (d *osFS) Close() error { return d.root.Close() }

// osFile adds the two calls whose best form depends on the system.
type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func (f osFile) StartSync(off, n int64) { startSync(f.File, off, n) }

func (f osFile) Sync() error { return syncData(f.File) }

func (d *osFS) OpenFile(name string, create bool) (File, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(name, flags, fileMode)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d *osFS) MkdirAll(name string) error { return os.MkdirAll(name, folderMode) }

func (d *osFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (d *osFS) Rename(from, to string) error { return os.Rename(from, to) }

func (d *osFS) Remove(name string) error { return os.Remove(name) }

func (d *osFS) SyncDir(dir string) error { return syncDir(dir) }

func (d *osFS) SyncFiles(names []string) error {
	if wholeSync && len(names) > syncTogether {
		return syncAll(d.root)
	}
	return syncEach(names)
}

// syncEach syncs the files side by side.
func syncEach(names []string) error {
	errs := make([]error, len(names))
	work := make(chan int)
	var wg sync.WaitGroup
	for range min(syncTogether, len(names)) {
		wg.Go(func() {
			for i := range work {
				errs[i] = syncOne(names[i])
			}
		})
	}
	for i := range names {
		work <- i
	}
	close(work)
	wg.Wait()
	return errors.Join(errs...)
}

func syncOne(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(syncData(f), f.Close())
}

func (d *osFS) Free() (int64, error) { return freeBytes(d.root.Name()) }

func (d *osFS) Lock(name string) (io.Closer, error) { return takeLock(name) }

// Lock takes the lock of the data folder dir, as a recorder does that has it
// open, until the result is closed. While another has it the error matches
// ErrRunning.
func Lock(dir string) (io.Closer, error) { return takeLock(filepath.Join(dir, lockName)) }

func takeLock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		held, err := lockFile(f)
		if err == nil && !held {
			return f, nil
		}
		if err == nil && try < lockTries {
			time.Sleep(lockPause)
			continue
		}
		f.Close()
		if err == nil {
			err = fmt.Errorf("%w: %s", ErrRunning, name)
		}
		return nil, err
	}
}

// Running tells whether a recorder has the data folder dir open. A live
// file of a folder without one is unfinished, for nobody writes it.
func Running(dir string) bool {
	f, err := os.Open(filepath.Join(dir, lockName))
	if err != nil {
		return false
	}
	defer f.Close()
	held, err := lockFile(f)
	return err == nil && held
}
