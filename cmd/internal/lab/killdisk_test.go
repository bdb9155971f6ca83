package lab

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"reprise/recorder"
)

// killDisk is the real disk. It counts what changes it, and kills its own
// process at the k-th such operation: a write half-way, any other before it
// is done.
type killDisk struct {
	k    int64 // 0 for never
	done atomic.Int64
}

// step counts an operation; true for the one at which the process ends.
func (d *killDisk) step() bool { return d.done.Add(1) == d.k }

// before counts an operation that is done whole or not at all.
func (d *killDisk) before() {
	if d.step() {
		killSelf()
	}
}

// killSelf is kill -9 of this process.
func killSelf() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		os.Exit(4)
	}
	select {}
}

func (d *killDisk) OpenFile(name string, create bool) (recorder.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if create && errors.Is(err, fs.ErrNotExist) {
		d.before()
		f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err != nil {
		return nil, err
	}
	return killFile{f, d}, nil
}

func (d *killDisk) MkdirAll(name string) error {
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	d.before()
	return os.MkdirAll(name, 0o700)
}

func (d *killDisk) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (d *killDisk) Rename(from, to string) error {
	d.before()
	return os.Rename(from, to)
}

func (d *killDisk) Remove(name string) error {
	d.before()
	return os.Remove(name)
}

// A kill loses nothing that was written, so a sync has nothing to do here but
// to take its time, and to be a moment at which the process may end.

// syncTime is how long a sync takes: meanwhile chunks come in that are not
// durable yet.
const syncTime = 2 * time.Millisecond

func (d *killDisk) SyncDir(string) error {
	d.before()
	return nil
}

func (d *killDisk) SyncFiles([]string) error {
	d.before()
	return nil
}

func (d *killDisk) Free() (int64, error) { return 1 << 40, nil }

// Lock gives a lock that keeps nobody out: the test starts one daemon at a
// time.
func (d *killDisk) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

type killFile struct {
	*os.File
	disk *killDisk
}

func (f killFile) WriteAt(b []byte, off int64) (int, error) {
	if f.disk.step() {
		_, _ = f.File.WriteAt(b[:len(b)/2], off)
		killSelf()
	}
	return f.File.WriteAt(b, off)
}

func (f killFile) Truncate(size int64) error {
	f.disk.before()
	return f.File.Truncate(size)
}

func (f killFile) Sync() error {
	time.Sleep(syncTime)
	f.disk.before()
	return nil
}

func (f killFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
