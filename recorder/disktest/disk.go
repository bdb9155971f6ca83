package disktest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/recorder/disk"
)

// Disk is a simulated disk. Its calls may overlap.
type Disk struct {
	mu    sync.Mutex
	rng   *rand.Rand
	names map[string]*node // as programs see them
	// solid are the names that a crash leaves, changes the ones after.
	solid   map[string]*node
	changes []change
	limit   int64 // bytes of all files; below 0 there is no end
	log     []entry
	fault   func(number int, op Op, name string) Fault
	delay   func(op Op, name string) time.Duration
	off     bool
	locked  bool
	each    bool // see SetEach
}

// change is one change of the folders that is not durable.
type change struct {
	dirs  []string
	apply func(names map[string]*node)
}

// plenty is what is free on a disk without end.
const plenty = 1 << 30

// journalFolder is where the recorder keeps its journal.
const journalFolder = "journal"

// New makes an empty disk, which takes its chances from rng. rng is the
// disk's own from now on.
func New(rng *rand.Rand) *Disk {
	return &Disk{rng: rng, names: map[string]*node{}, solid: map[string]*node{}, limit: -1}
}

// SetEach makes SyncFiles sync only the named files. Otherwise it syncs all
// but the journal's, whose own syncs are to make them durable.
func (d *Disk) SetEach(each bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.each = each
}

// SetFree leaves n bytes free; below 0 there is no end.
func (d *Disk) SetFree(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limit = -1
	if n >= 0 {
		d.limit = d.used() + n
	}
}

// Grow makes a disk that has an end larger by n bytes.
func (d *Disk) Grow(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limit += n
}

func (d *Disk) used() int64 {
	n := int64(0)
	for _, f := range d.names {
		n += int64(len(f.data))
	}
	return n
}

// room is how much of n more bytes can be stored.
func (d *Disk) room(n int64) int64 {
	if d.limit < 0 {
		return n
	}
	return max(0, min(n, d.limit-d.used()))
}

// Bytes gives a file as programs read it.
func (d *Disk) Bytes(name string) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[name]
	if n == nil {
		return nil, false
	}
	return slices.Clone(n.data), true
}

// Find gives the files in all folders whose names begin so.
func (d *Disk) Find(prefix string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []string
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if strings.HasPrefix(path.Base(name), prefix) {
			found = append(found, name)
		}
	}
	return found
}

func (d *Disk) change(c change) {
	c.apply(d.names)
	d.changes = append(d.changes, c)
}

// OpenFile opens a file.
func (d *Disk) OpenFile(name string, create bool) (disk.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.off {
		return nil, ErrOff
	}
	n := d.names[name]
	if n == nil && !create {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if n == nil {
		if err := d.step(OpCreate, name); err != nil {
			return nil, err
		}
		n = newNode()
		d.change(change{dirs: []string{path.Dir(name)}, apply: func(names map[string]*node) { names[name] = n }})
	}
	return &file{d: d, name: name, n: n}, nil
}

// MkdirAll does nothing: a folder is there once it has a file.
func (d *Disk) MkdirAll(string) error { return nil }

// List gives the names of the files in a folder.
func (d *Disk) List(dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if path.Dir(name) == dir {
			names = append(names, path.Base(name))
		}
	}
	return names, nil
}

// Rename moves a file.
func (d *Disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(OpRename, from); err != nil {
		return err
	}
	n := d.names[from]
	if n == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	d.change(change{dirs: []string{path.Dir(from), path.Dir(to)}, apply: func(names map[string]*node) {
		delete(names, from)
		names[to] = n
	}})
	return nil
}

// Remove deletes a file.
func (d *Disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(OpRemove, name); err != nil {
		return err
	}
	d.change(change{dirs: []string{path.Dir(name)}, apply: func(names map[string]*node) { delete(names, name) }})
	return nil
}

// SyncDir makes the entries of a folder durable, and with them all changes
// that were made before.
func (d *Disk) SyncDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(OpSyncDir, dir); err != nil {
		return err
	}
	last := -1
	for i, c := range d.changes {
		if slices.Contains(c.dirs, dir) {
			last = i
		}
	}
	for _, c := range d.changes[:last+1] {
		c.apply(d.solid)
	}
	d.changes = d.changes[last+1:]
	return nil
}

// SyncFiles makes the named files durable, or all.
func (d *Disk) SyncFiles(names []string) error {
	if len(names) == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.step(OpSyncFiles, fmt.Sprint(len(names), " files"))
	if errors.Is(err, ErrOff) {
		return err
	}
	if !d.each {
		names = slices.Sorted(maps.Keys(d.names))
	}
	for _, name := range names {
		n := d.names[name]
		if n == nil || strings.Contains(name, journalFolder) && !d.each {
			continue
		}
		n.sync(d.rng, err != nil)
	}
	return err
}

// Free is what can still be stored.
func (d *Disk) Free() (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.room(plenty), nil
}

// Lock takes the one lock.
func (d *Disk) Lock(name string) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked {
		return nil, fmt.Errorf("%s is locked", name)
	}
	d.locked = true
	return unlock{d}, nil
}

type unlock struct{ d *Disk }

func (u unlock) Close() error {
	u.d.mu.Lock()
	defer u.d.mu.Unlock()
	u.d.locked = false
	return nil
}
