package daemon

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"reprise/cmd/internal/proctest"
	"reprise/recorder"
)

// brittleDisk is a folder whose writes and syncs fail or wait on demand.
type brittleDisk struct {
	mu   sync.Mutex
	part string        // what is concerned: a part of a path
	err  error         // what writes and syncs of it fail with
	held chan struct{} // what they wait for
	full bool          // nothing is free
}

var errBadDisk = errors.New("input/output error")

// fail has writes and syncs of files below part fail, until heal.
func (d *brittleDisk) fail(part string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.part, d.err = part, errBadDisk
}

// hold has them wait until heal.
func (d *brittleDisk) hold(part string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.part, d.held = part, make(chan struct{})
}

func (d *brittleDisk) heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held != nil {
		close(d.held)
	}
	d.part, d.err, d.held, d.full = "", nil, nil, false
}

func (d *brittleDisk) fill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = true
}

// allow is asked before every write and sync.
func (d *brittleDisk) allow(name string) error {
	d.mu.Lock()
	concerned := d.part != "" && strings.Contains(name, d.part)
	err, held := d.err, d.held
	d.mu.Unlock()
	if !concerned {
		return nil
	}
	if held != nil {
		<-held
	}
	return err
}

func (d *brittleDisk) OpenFile(name string, create bool) (recorder.File, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	return brittleFile{f, d}, nil
}

func (d *brittleDisk) MkdirAll(name string) error { return os.MkdirAll(name, 0o700) }

func (d *brittleDisk) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (d *brittleDisk) Rename(from, to string) error {
	if err := d.allow(to); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func (d *brittleDisk) Remove(name string) error { return os.Remove(name) }

func (d *brittleDisk) SyncDir(dir string) error { return d.allow(dir + string(filepath.Separator)) }

func (d *brittleDisk) SyncFiles(names []string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, d.allow(name))
	}
	return errors.Join(errs...)
}

func (d *brittleDisk) Free() (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		return 0, nil
	}
	return 1 << 40, nil
}

func (d *brittleDisk) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

type brittleFile struct {
	*os.File
	disk *brittleDisk
}

func (f brittleFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.disk.allow(f.Name()); err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, off)
}

func (f brittleFile) Sync() error { return f.disk.allow(f.Name()) }

func (f brittleFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// brittleFolder is a data folder that is removed patiently: a write that hung
// may end, and make a file, while its folder goes.
func brittleFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "brittle-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		eventually(t, "the folder is removed", func() bool { return os.RemoveAll(dir) == nil })
	})
	return filepath.Join(dir, "data")
}

// onBrittleDisk starts a daemon in this process whose disk can be made to
// fail. It is stopped, healed, at the end.
func onBrittleDisk(t testing.TB, change ...func(*Config)) (*Daemon, *brittleDisk) {
	t.Helper()
	cfg := Default()
	cfg.Data, cfg.Listen, cfg.HTTP = brittleFolder(t), "127.0.0.1:0", "127.0.0.1:0"
	cfg.SegmentBytes = 512 << 10
	for _, f := range change {
		f(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	disk := &brittleDisk{}
	var log proctest.Text
	d := New(cfg, &log)
	d.disk = disk
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		disk.heal()
		if !d.draining.Load() {
			if err := d.Stop(within(t, patience)); err != nil {
				t.Errorf("stop: %v", err)
			}
		}
		if t.Failed() {
			t.Logf("log:\n%s", &log)
		}
	})
	return d, disk
}
