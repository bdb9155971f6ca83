package ship

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// book is the state folder: the records of all files.
type book struct {
	dir  string // of the records
	home string // of the files
	lock *os.File

	mu       sync.Mutex
	files    map[string]*record // by file name
	sessions map[string]*record // by recordName
}

const lockName = "lock"

// openBook opens the state folder, which no other process may have open.
func openBook(dir, home string) (*book, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	b := &book{dir: dir, home: home, lock: lock, files: map[string]*record{}, sessions: map[string]*record{}}
	if err := lockSoon(lock); err != nil {
		lock.Close()
		return nil, fmt.Errorf("the state folder %s belongs to another ship that runs: %w", dir, err)
	}
	if err := b.load(); err != nil {
		lock.Close()
		return nil, err
	}
	return b, nil
}

// lockPatience is how long a process that is just ending may hold the lock.
const lockPatience = time.Second

func lockSoon(f *os.File) error {
	for end := time.Now().Add(lockPatience); ; time.Sleep(lockPatience / 50) {
		if err := lockFile(f); err == nil || time.Now().After(end) {
			return err
		}
	}
}

func (b *book) close() error { return b.lock.Close() }

func (b *book) load() error {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), recordSuffix) {
			continue
		}
		r, err := loadRecord(filepath.Join(b.dir, e.Name()))
		if err != nil {
			return fmt.Errorf("%w: remove it, and its session must be shipped under another id", err)
		}
		if err := b.enter(r); err != nil {
			return err
		}
	}
	return nil
}

// enter takes a loaded record. That of a file that is sealed and gone is of
// no more use.
func (b *book) enter(r *record) error {
	if r.Sealed != nil && b.missing(r.file()) {
		return os.Remove(filepath.Join(b.dir, recordName(r.Session)))
	}
	b.files[r.file()] = r
	b.sessions[recordName(r.Session)] = r
	return nil
}

// missing tells whether a file is gone.
func (b *book) missing(file string) bool {
	_, err := os.Lstat(filepath.Join(b.home, file))
	return errors.Is(err, fs.ErrNotExist)
}

// find is the record of a file; nil for a new one.
func (b *book) find(file string) *record {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.files[file]
}

// claim is what a file says of itself.
type claim struct {
	session string
	// named is set where the id comes from the file's name.
	named bool
	// head is the SHA-256 of what stands in front of the session's own
	// chunks.
	head string
}

// claim gives a file its record. One that has none takes over that of a file
// that is gone, if same says that it is that file under another name;
// otherwise it gets a new one, unless its session belongs to another file.
func (b *book) claim(file string, c *claim, same func(*record) bool) (*record, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.files[file]; r != nil {
		return r, b.take(r)
	}
	r, err := b.orphan(c, same)
	if err != nil {
		return nil, err
	}
	if r != nil {
		delete(b.files, r.file())
		r.setFile(file)
	} else {
		r = newRecord(file, c)
	}
	if err := b.take(r); err != nil {
		return nil, err
	}
	b.files[file], b.sessions[recordName(r.Session)] = r, r
	return r, r.save(b.dir, true)
}

// errBusy is returned for a record whose parcel has not ended yet.
var errBusy = errors.New("the record is in use")

func (b *book) take(r *record) error {
	if r.active {
		return errBusy
	}
	r.active = true
	return nil
}

// orphan looks for the record of a file that was renamed. The session's id
// finds it, where the file names one; else it is looked for among those whose
// files are gone.
func (b *book) orphan(c *claim, same func(*record) bool) (*record, error) {
	if r := b.sessions[recordName(c.session)]; r != nil {
		gone := b.missing(r.file())
		switch {
		case gone && r.active:
			return nil, errBusy
		case gone && r.Head == c.head && same(r):
			return r, nil
		}
		return nil, fmt.Errorf("%w: session %s is that of %q", ErrTaken, c.session, r.file())
	}
	if !c.named {
		return nil, nil
	}
	for name, r := range b.files {
		if !r.Named || r.Head != c.head || !b.missing(name) {
			continue
		}
		if r.active {
			return nil, errBusy
		}
		if same(r) {
			return r, nil
		}
	}
	return nil, nil
}

// release lets others have a record.
func (b *book) release(r *record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.active = false
}

// save writes a record.
func (b *book) save(r *record, sync bool) error { return r.save(b.dir, sync) }

// forget removes the record of a file that is sealed and gone.
func (b *book) forget(r *record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.files[r.file()] == r {
		delete(b.files, r.file())
	}
	delete(b.sessions, recordName(r.Session))
	return os.Remove(filepath.Join(b.dir, recordName(r.Session)))
}
