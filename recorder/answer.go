package recorder

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"reprise/recorder/disk"
)

// A call to the disk that does not return reports no error. So it is known
// which calls are under way, and one that takes too long is a trouble by
// itself, until it returns.

const (
	// hangAfter is how long a call may take before the disk is in trouble.
	hangAfter = 750 * time.Millisecond
	// stallAfter is how long the disk may take for a flush before the
	// producers are told, who are to know within a second.
	stallAfter = 900 * time.Millisecond
	// hangAfterMany is the same for a call that concerns many files: on a
	// busy disk it takes seconds.
	hangAfterMany = 5 * time.Second
)

// errNoAnswer is returned for a call that has not returned yet.
var errNoAnswer = errors.New("the disk does not answer")

// calls are those that take too long.
type calls struct {
	report func(error)
	// telling keeps reports in order. No call waits for it that is in time.
	telling sync.Mutex

	mu   sync.Mutex
	late map[*call]error
}

// call is one call to the disk.
type call struct {
	timer *time.Timer
	over  bool // guarded by calls.mu
}

// begin says that a call is made; it is told to end when it has returned.
func (c *calls) begin(what, name string, patience time.Duration) *call {
	x := &call{}
	x.timer = time.AfterFunc(patience, func() { c.tooLate(x, fmt.Errorf("%w: %s %s, for more than %v", errNoAnswer, what, name, patience)) })
	return x
}

func (c *calls) tooLate(x *call, err error) {
	c.mu.Lock()
	if !x.over {
		c.late[x] = err
	}
	c.mu.Unlock()
	c.tell()
}

// end says that the call has returned.
func (c *calls) end(x *call) {
	if x.timer.Stop() {
		return
	}
	c.mu.Lock()
	x.over = true
	delete(c.late, x)
	c.mu.Unlock()
	c.tell()
}

// tell reports how things are.
func (c *calls) tell() {
	c.telling.Lock()
	defer c.telling.Unlock()
	c.report(c.one())
}

// one gives any of those that are late; nil for none.
func (c *calls) one() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, err := range c.late {
		return err
	}
	return nil
}

// watchedDisk watches the calls to an FS.
type watchedDisk struct {
	FS
	calls *calls
}

func (d watchedDisk) OpenFile(name string, create bool) (File, error) {
	defer d.calls.end(d.calls.begin("opening", name, hangAfter))
	f, err := d.FS.OpenFile(name, create)
	if err != nil {
		return nil, err
	}
	return watchedFile{File: f, name: name, calls: d.calls}, nil
}

func (d watchedDisk) Rename(from, to string) error {
	defer d.calls.end(d.calls.begin("renaming", from, hangAfter))
	return d.FS.Rename(from, to)
}

func (d watchedDisk) Remove(name string) error {
	defer d.calls.end(d.calls.begin("removing", name, hangAfter))
	return d.FS.Remove(name)
}

func (d watchedDisk) SyncDir(dir string) error {
	defer d.calls.end(d.calls.begin("syncing", dir, hangAfterMany))
	return d.FS.SyncDir(dir)
}

func (d watchedDisk) SyncFiles(names []string) error {
	defer d.calls.end(d.calls.begin("syncing", fmt.Sprint(len(names), " session files"), hangAfterMany))
	return d.FS.SyncFiles(names)
}

func (d watchedDisk) Free() (int64, error) {
	defer d.calls.end(d.calls.begin("asking for", "the free space", hangAfter))
	return d.FS.Free()
}

// watchedFile watches the calls to a File.
type watchedFile struct {
	File
	name  string
	calls *calls
}

func (f watchedFile) ReadAt(b []byte, off int64) (int, error) {
	defer f.calls.end(f.calls.begin("reading", f.name, hangAfter))
	return f.File.ReadAt(b, off)
}

func (f watchedFile) WriteAt(b []byte, off int64) (int, error) {
	defer f.calls.end(f.calls.begin("writing", f.name, hangAfter))
	return f.File.WriteAt(b, off)
}

func (f watchedFile) Truncate(size int64) error {
	defer f.calls.end(f.calls.begin("cutting", f.name, hangAfter))
	return f.File.Truncate(size)
}

func (f watchedFile) StartSync(off, n int64) {
	if s, ok := f.File.(disk.Starter); ok {
		defer f.calls.end(f.calls.begin("storing", f.name, hangAfter))
		s.StartSync(off, n)
	}
}

func (f watchedFile) Sync() error {
	defer f.calls.end(f.calls.begin("syncing", f.name, hangAfter))
	return f.File.Sync()
}

func (f watchedFile) Close() error {
	defer f.calls.end(f.calls.begin("closing", f.name, hangAfter))
	return f.File.Close()
}
