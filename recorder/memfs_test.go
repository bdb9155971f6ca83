package recorder

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
	"syscall"
	"time"
)

// memFS is a disk in memory that can crash. What was not synced may survive
// a crash or not, sector by sector; folder entries likewise, in the order in
// which they were made. A sync that fails forgets what it should have made
// durable, so that the next one succeeds without it.
type memFS struct {
	mu    sync.Mutex
	rng   *rand.Rand
	names map[string]*memNode // as programs see them
	// solid are the names that a crash leaves, changes the ones after.
	solid   map[string]*memNode
	changes []nameChange
	limit   int64 // bytes of all files; 0 means no end
	ops     int   // that change something, so far
	// fault decides over each such operation.
	fault   func(op int, kind opKind, name string) fault
	crashed bool
	locked  bool
	journal []string // the operations, for messages
	// each makes SyncFiles sync only the named files, not all.
	each bool
	// delay is how long an operation takes.
	delay func(kind opKind, name string) time.Duration
}

type opKind string

const (
	opOpen    opKind = "create"
	opWrite   opKind = "write"
	opTrunc   opKind = "truncate"
	opSync    opKind = "sync"
	opRename  opKind = "rename"
	opRemove  opKind = "remove"
	opSyncDir opKind = "syncdir"
	opSyncAll opKind = "syncfiles"
)

// fault is what happens to an operation: nothing, an error, or the end.
type fault struct {
	err   error
	crash bool
}

var errCrashed = errors.New("the machine is off")

const sector = 512

type memNode struct {
	data  []byte // as programs read it
	solid []byte // what a crash leaves
	// dirty are the sectors that were written since the last sync.
	dirty     map[int]bool
	sizeDirty bool
}

// nameChange is one change of the folders that is not durable.
type nameChange struct {
	dirs  []string
	apply func(names map[string]*memNode)
}

func newMemFS(rng *rand.Rand) *memFS {
	return &memFS{rng: rng, names: map[string]*memNode{}, solid: map[string]*memNode{}}
}

// setFault decides over the operations to come; nil lets all succeed.
func (m *memFS) setFault(f func(op int, kind opKind, name string) fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = f
}

// setDelay decides how long the operations to come take.
func (m *memFS) setDelay(f func(kind opKind, name string) time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delay = f
}

// operations is how many operations there were.
func (m *memFS) operations() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ops
}

// wait takes the time of an operation.
func (m *memFS) wait(kind opKind, name string) {
	m.mu.Lock()
	delay := m.delay
	m.mu.Unlock()
	if delay != nil {
		time.Sleep(delay(kind, name))
	}
}

// step counts an operation and decides over it. The caller holds mu.
func (m *memFS) step(kind opKind, name string) error {
	if m.crashed {
		return errCrashed
	}
	m.ops++
	m.journal = append(m.journal, fmt.Sprintf("%d %s %s", m.ops, kind, path.Base(name)))
	if m.fault == nil {
		return nil
	}
	f := m.fault(m.ops, kind, name)
	if f.crash {
		m.crashed = true
		return errCrashed
	}
	if f.err != nil {
		return &fs.PathError{Op: string(kind), Path: name, Err: f.err}
	}
	return nil
}

func (m *memFS) used() int64 {
	n := int64(0)
	for _, f := range m.names {
		n += int64(len(f.data))
	}
	return n
}

func (m *memFS) change(c nameChange) {
	c.apply(m.names)
	m.changes = append(m.changes, c)
}

func (m *memFS) OpenFile(name string, create bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.crashed {
		return nil, errCrashed
	}
	n := m.names[name]
	if n == nil && !create {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if n == nil {
		if err := m.step(opOpen, name); err != nil {
			return nil, err
		}
		n = &memNode{dirty: map[int]bool{}}
		m.change(nameChange{dirs: []string{path.Dir(name)}, apply: func(names map[string]*memNode) { names[name] = n }})
	}
	return &memFile{m: m, name: name, n: n}, nil
}

func (m *memFS) MkdirAll(string) error { return nil }

func (m *memFS) List(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		if path.Dir(name) == dir {
			names = append(names, path.Base(name))
		}
	}
	return names, nil
}

func (m *memFS) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(opRename, from); err != nil {
		return err
	}
	n := m.names[from]
	if n == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	m.change(nameChange{dirs: []string{path.Dir(from), path.Dir(to)}, apply: func(names map[string]*memNode) {
		delete(names, from)
		names[to] = n
	}})
	return nil
}

func (m *memFS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(opRemove, name); err != nil {
		return err
	}
	m.change(nameChange{dirs: []string{path.Dir(name)}, apply: func(names map[string]*memNode) { delete(names, name) }})
	return nil
}

func (m *memFS) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(opSyncDir, dir); err != nil {
		return err
	}
	last := -1
	for i, c := range m.changes {
		if slices.Contains(c.dirs, dir) {
			last = i
		}
	}
	for _, c := range m.changes[:last+1] {
		c.apply(m.solid)
	}
	m.changes = m.changes[last+1:]
	return nil
}

func (m *memFS) SyncFiles(names []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(names) == 0 {
		return nil
	}
	err := m.step(opSyncAll, fmt.Sprint(len(names), " files"))
	if err == errCrashed {
		return err
	}
	if !m.each {
		names = slices.Collect(maps.Keys(m.names))
	}
	for _, name := range names {
		n := m.names[name]
		if n == nil || strings.Contains(name, journalFolder) && !m.each {
			continue
		}
		m.sync(n, err != nil)
	}
	return err
}

// sync makes a file durable; lost leaves a random part of it behind.
func (m *memFS) sync(n *memNode, lost bool) {
	if !lost || !n.sizeDirty || m.rng.IntN(2) == 0 {
		n.resize()
	}
	for i := range n.dirty {
		if !lost || m.rng.IntN(2) == 0 {
			n.settle(i)
		}
	}
	clear(n.dirty)
	n.sizeDirty = false
}

func (n *memNode) resize() {
	if len(n.solid) > len(n.data) {
		n.solid = n.solid[:len(n.data)]
	}
	if d := len(n.data) - len(n.solid); d > 0 {
		n.solid = append(n.solid, make([]byte, d)...)
	}
}

// settle makes one sector durable, as far as the durable size reaches.
func (n *memNode) settle(i int) {
	from, to := i*sector, min((i+1)*sector, len(n.data), len(n.solid))
	if from < to {
		copy(n.solid[from:to], n.data[from:to])
	}
}

func (m *memFS) Free() (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limit == 0 {
		return 1 << 30, nil
	}
	return max(0, m.limit-m.used()), nil
}

func (m *memFS) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked {
		return nil, ErrRunning
	}
	m.locked = true
	return memLock{m}, nil
}

type memLock struct{ m *memFS }

func (l memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	l.m.locked = false
	return nil
}

// survival says what of the unsynced bytes and names a crash leaves.
type survival int

const (
	surviveNothing survival = iota // the disk had written nothing
	surviveAll                     // as when only the process is killed
	surviveSome                    // any sectors, and the first changes of names
)

// crash gives the disk as it is found after the power is back.
func (m *memFS) crash(rng *rand.Rand, how survival) *memFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.crashed = true
	after := newMemFS(rng)
	after.limit, after.each = m.limit, m.each
	keep := map[survival]int{surviveAll: len(m.changes), surviveSome: rng.IntN(len(m.changes) + 1)}[how]
	names := maps.Clone(m.solid)
	for _, c := range m.changes[:keep] {
		c.apply(names)
	}
	for name, n := range names {
		after.names[name] = n.survivor(rng, how)
	}
	after.solid = maps.Clone(after.names)
	return after
}

func (n *memNode) survivor(rng *rand.Rand, how survival) *memNode {
	c := &memNode{data: n.data, solid: slices.Clone(n.solid), dirty: map[int]bool{}}
	if n.sizeDirty && (how == surviveAll || how == surviveSome && rng.IntN(2) == 0) {
		c.resize()
	}
	for _, i := range slices.Sorted(maps.Keys(n.dirty)) {
		if how == surviveAll || how == surviveSome && rng.IntN(2) == 0 {
			c.settle(i)
		}
	}
	c.data = slices.Clone(c.solid)
	return c
}

// bytes gives a file as programs read it.
func (m *memFS) bytes(name string) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[name]
	if n == nil {
		return nil, false
	}
	return slices.Clone(n.data), true
}

// find gives the names in all session folders that begin so.
func (m *memFS) find(prefix string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []string
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		if strings.HasPrefix(path.Base(name), prefix) {
			found = append(found, name)
		}
	}
	return found
}

type memFile struct {
	m    *memFS
	name string
	n    *memNode
}

func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.m.crashed {
		return 0, errCrashed
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

func (f *memFile) WriteAt(b []byte, off int64) (int, error) {
	f.m.wait(opWrite, f.name)
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.m.crashed {
		return 0, errCrashed
	}
	err := f.m.step(opWrite, f.name)
	if grow := off + int64(len(b)) - int64(len(f.n.data)); err == nil && f.m.limit > 0 && grow > 0 && f.m.used()+grow > f.m.limit {
		err = &fs.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
	}
	if err != nil {
		// Any part of it may have been done.
		b = b[:f.m.rng.IntN(len(b)+1)]
		if f.m.limit > 0 {
			b = b[:min(int64(len(b)), max(0, int64(len(f.n.data))+f.m.limit-f.m.used()-off))]
		}
	}
	f.n.write(b, off)
	return len(b), err
}

func (n *memNode) write(b []byte, off int64) {
	if len(b) == 0 {
		return
	}
	if end := off + int64(len(b)); end > int64(len(n.data)) {
		n.data = append(n.data, make([]byte, end-int64(len(n.data)))...)
		n.sizeDirty = true
	}
	copy(n.data[off:], b)
	for i := off / sector; i <= (off+int64(len(b))-1)/sector; i++ {
		n.dirty[int(i)] = true
	}
}

func (f *memFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.step(opTrunc, f.name); err != nil {
		return err
	}
	n := f.n
	if size > int64(len(n.data)) {
		n.data = append(n.data, make([]byte, size-int64(len(n.data)))...)
	}
	n.data = n.data[:size:size]
	n.sizeDirty = true
	return nil
}

func (f *memFile) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.m.crashed {
		return 0, errCrashed
	}
	return int64(len(f.n.data)), nil
}

func (f *memFile) Sync() error {
	f.m.wait(opSync, f.name)
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.m.crashed {
		return errCrashed
	}
	err := f.m.step(opSync, f.name)
	if err == errCrashed {
		return err
	}
	f.m.sync(f.n, err != nil)
	return err
}

func (f *memFile) Close() error { return nil }
