package player

import (
	"slices"
	"sync"
	"sync/atomic"

	"reprise/format"
)

// StepStream gives steps in order. *format.ReadStream is one; a stream over
// the chunks of a file is another. A stream that also has Err() error tells
// with it why Read ended early, and one that has Destroy() is destroyed when
// playback is over.
type StepStream interface {
	// Read gives the next step, and false where there is none (yet). Its
	// Index is one-based: the number of steps read so far. The step's
	// parameter slice is valid until the next Read.
	Read() (format.Step, bool)
	// Index is the number of steps before the one that is read next.
	Index() int
	// Len is the number of steps, or -1 where it is not known yet.
	Len() int
	// Expired reports whether the steps have changed since the stream was
	// made, so that its position means nothing any more.
	Expired() bool
}

// cursor reads a stream one step ahead. The pending step, the one to come, is
// known while the current one is executed, because it may be the passive step
// that the current one asks for.
type cursor struct {
	mu      sync.Mutex
	stream  StepStream
	pending format.Step
	has     bool
	// serial numbers the pending steps, so that a late answer finds out
	// that its step is no longer pending.
	serial uint64
	// spare is the memory of the step before the pending one.
	spare []format.Value
	read  atomic.Int64
}

func newCursor(s StepStream) *cursor {
	c := &cursor{stream: s}
	c.read.Store(int64(s.Index()))
	return c
}

// replayed is the number of steps read so far, with those before the start.
func (c *cursor) replayed() int { return int(c.read.Load()) }

func (c *cursor) expired() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stream.Expired()
}

// peek gives the pending step without its parameters, reading it first where
// nothing was read yet; false where there is none.
func (c *cursor) peek() (format.Step, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.has {
		c.fetch()
	}
	if !c.has {
		return format.Step{}, false, streamError(c.stream)
	}
	return format.Step{Code: c.pending.Code, Index: c.pending.Index}, true, nil
}

// take gives the pending step and reads the one behind it. The step's
// parameters are valid until the next take.
func (c *cursor) take() format.Step {
	c.mu.Lock()
	defer c.mu.Unlock()
	step := c.pending
	c.pending.Params, c.spare = c.spare, step.Params
	c.fetch()
	return step
}

// skip drops the pending step and reads the one behind it.
func (c *cursor) skip() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fetch()
}

// passive gives the pending step with a copy of its parameters and its serial
// number; false where none is pending.
func (c *cursor) passive() (format.Step, uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	step := c.pending
	step.Params = slices.Clone(step.Params)
	return step, c.serial, c.has
}

// answer reads on behind the pending step where it still is the one numbered
// serial, and reports whether it was.
func (c *cursor) answer(serial uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.has || c.serial != serial {
		return false
	}
	c.fetch()
	return true
}

// fetch reads the next step into pending, into memory of its own.
func (c *cursor) fetch() {
	params := c.pending.Params[:0]
	step, ok := c.stream.Read()
	c.pending = format.Step{Code: step.Code, Index: step.Index, Params: append(params, step.Params...)}
	c.has = ok
	c.serial++
	c.read.Store(int64(c.stream.Index()))
}

// destroy lets go of the stream's registration.
func (c *cursor) destroy() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d, ok := c.stream.(interface{ Destroy() }); ok {
		d.Destroy()
	}
}

func streamError(s StepStream) error {
	if f, ok := s.(interface{ Err() error }); ok {
		return f.Err()
	}
	return nil
}
