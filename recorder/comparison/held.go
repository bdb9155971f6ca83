package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"reprise/format"
	"reprise/recorder"
)

// held are sessions of a recorder within this process, whose memory can be
// looked at after a collection. That of another process cannot.
type held struct {
	recorder *recorder.Recorder
	opened   int
	// group are the sessions that grow now: each has so many ticks, and seq
	// is the sequence number of the last chunk.
	group []*heldSession
	ticks int
	seq   uint64
	batch *format.BatchBuilder
}

type heldSession struct {
	number  int
	session *recorder.Session
	durable atomic.Uint64 // the last durable sequence number
}

// heldChunkTicks are about as many as fill a chunk flat out.
const heldChunkTicks = gatherBytes / rowBytes

// hold opens a recorder in a new folder below parent.
func hold(parent string) (*held, error) {
	dir, err := os.MkdirTemp(parent, "recorder-")
	if err != nil {
		return nil, err
	}
	// Files that are written soon make the rests short, and change nothing
	// about a session whose file is written.
	r, err := recorder.Open(recorder.Config{Dir: dir, FileInterval: 50 * time.Millisecond})
	return &held{recorder: r, batch: format.NewBatchBuilder(format.Width16, 0, 0)}, err
}

// openGroup opens sessions, which are the ones that grow from now on.
func (h *held) openGroup(n int) error {
	h.group, h.ticks, h.seq = make([]*heldSession, n), 0, 0
	for i := range h.group {
		s := &heldSession{number: h.opened}
		h.opened++
		meta := metadata(s.number, tickRate)
		opening := format.AppendChunk(nil, format.ChunkMeta, 0, format.AppendMeta(nil, &meta))
		opening = format.AppendChunk(opening, format.ChunkBook, 0, format.AppendBook(nil, book()))
		var err error
		s.session, _, err = h.recorder.OpenSession(recorder.OpenRequest{ID: meta.Session, Producer: [16]byte{1}, Epoch: 1, Opening: opening,
			Notify: func(a recorder.Ack) { s.durable.Store(a.Durable) }})
		if err != nil {
			return err
		}
		h.group[i] = s
	}
	return nil
}

// heap is the memory in use after a collection.
func heap() uint64 {
	// The first one may leave what finalizers and pools release.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// heapByAge gives the bytes of heap that a session has at every age, while
// nothing is recorded. As many other sessions have the recorder make before
// what all share, so that it does not count.
func (h *held) heapByAge(ctx context.Context, sessions int) ([]float64, error) {
	if err := h.openGroup(sessions); err != nil {
		return nil, err
	}
	if err := h.grow(ctx, heldChunkTicks); err != nil {
		return nil, err
	}
	others := heap()
	if err := h.openGroup(sessions); err != nil {
		return nil, err
	}
	var each []float64
	for _, age := range ages {
		if err := h.grow(ctx, ageTicks(age)); err != nil {
			return nil, fmt.Errorf("at an age of %v: %w", age, err)
		}
		each = append(each, (float64(heap())-float64(others))/float64(sessions))
	}
	return each, nil
}

// grow brings every session to so many ticks, and waits until all is in the
// files.
func (h *held) grow(ctx context.Context, target int) error {
	for h.ticks < target {
		n := min(heldChunkTicks, target-h.ticks)
		h.seq++
		for _, s := range h.group {
			if err := h.append(s, n); err != nil {
				return err
			}
		}
		h.ticks += n
		if err := h.await(ctx, h.allDurable); err != nil {
			return err
		}
	}
	return h.await(ctx, func() bool { return h.recorder.Stats().PendingBytes == 0 })
}

// append gives a session its next chunk.
func (h *held) append(s *heldSession, n int) error {
	h.batch.Skip(format.Tick(h.ticks))
	var f filler
	for range n {
		params := tickParams(s.number, h.batch.NextTick(), &f)
		if err := h.batch.Step(tickCode, params[:]...); err != nil {
			return err
		}
		h.batch.EndTick()
	}
	chunk := format.AppendChunk(nil, format.ChunkTicks, h.seq, h.batch.AppendBody(nil))
	h.batch.Cut()
	if err := s.session.Append(chunk); err != nil {
		return fmt.Errorf("session %d, tick %d: %w", s.number, h.ticks, err)
	}
	return nil
}

func (h *held) allDurable() bool {
	for _, s := range h.group {
		if s.durable.Load() < h.seq {
			return false
		}
	}
	return true
}

// await waits until done.
func (h *held) await(ctx context.Context, done func() bool) error {
	for !done() {
		if err := sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (h *held) close() {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	_ = h.recorder.Close(ctx)
}
