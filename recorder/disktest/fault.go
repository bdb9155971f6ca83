package disktest

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"
)

// Op is a kind of operation that changes something.
type Op string

// The operations.
const (
	OpCreate    Op = "create"
	OpWrite     Op = "write"
	OpTruncate  Op = "truncate"
	OpSync      Op = "sync"
	OpRename    Op = "rename"
	OpRemove    Op = "remove"
	OpSyncDir   Op = "syncdir"
	OpSyncFiles Op = "syncfiles"
)

// Fault is what happens to an operation: nothing, an error, or the machine
// is turned off before it is done.
type Fault struct {
	Err   error
	Crash bool
}

// ErrOff is returned by all operations once the machine is off.
var ErrOff = errors.New("the machine is off")

// SetFault decides over the operations to come, by their number, kind and
// file; nil lets all succeed.
func (d *Disk) SetFault(f func(number int, op Op, name string) Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// SetDelay decides how long writes and syncs of single files take from now on.
func (d *Disk) SetDelay(f func(op Op, name string) time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delay = f
}

// Operations is how many operations there were.
func (d *Disk) Operations() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.log)
}

// Log lists the operations in their order, for messages: number, kind and
// file.
func (d *Disk) Log() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := make([]string, len(d.log))
	for i, e := range d.log {
		lines[i] = fmt.Sprintf("%d %s %s", i+1, e.op, path.Base(e.name))
	}
	return lines
}

// entry is an operation of the log.
type entry struct {
	op   Op
	name string
}

// wait takes the time of an operation.
func (d *Disk) wait(op Op, name string) {
	d.mu.Lock()
	delay := d.delay
	d.mu.Unlock()
	if delay != nil {
		time.Sleep(delay(op, name))
	}
}

// step enters an operation and decides over it. The caller holds mu.
func (d *Disk) step(op Op, name string) error {
	if d.off {
		return ErrOff
	}
	d.log = append(d.log, entry{op, name})
	if d.fault == nil {
		return nil
	}
	f := d.fault(len(d.log), op, name)
	if f.Crash {
		d.off = true
		return ErrOff
	}
	if f.Err != nil {
		return &fs.PathError{Op: string(op), Path: name, Err: f.Err}
	}
	return nil
}
