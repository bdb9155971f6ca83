package recorder

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"
)

// TestEndedAreForgotten: a session that has ended needs no memory any more,
// however long the next checkpoint takes to come.
func TestEndedAreForgotten(t *testing.T) {
	disk := newDisk()
	cfg := smallConfig(disk)
	cfg.CheckpointInterval, cfg.CheckpointBytes, cfg.FileInterval = time.Hour, 1<<30, 10*time.Millisecond
	r := mustOpen(t, cfg)
	var ended []weak.Pointer[recording]
	for i := range 20 {
		id := fmt.Sprint("m", i)
		s, _, in := begin(t, r, id, 1)
		ended = append(ended, weak.Make(r.session(id)))
		mustAppend(t, s, ticksChunk(id, 1, 0, 10))
		seal(t, r, s, id, in)
		s.Detach()
	}
	waitFor(t, "the end of all", func() bool {
		runtime.GC()
		left := 0
		for _, p := range ended {
			if p.Value() != nil {
				left++
			}
		}
		return left == 0
	})
	if r.Stats().Checkpoints > 0 {
		t.Error("there was a checkpoint")
	}
	mustClose(t, r)
}

// TestManyEndsLeadToCheckpoint: lines of the ledger do not pile up in memory.
func TestManyEndsLeadToCheckpoint(t *testing.T) {
	disk := newDisk()
	cfg := smallConfig(disk)
	cfg.CheckpointInterval, cfg.CheckpointBytes = time.Hour, 1<<30
	r := mustOpen(t, cfg)
	s, _, in := begin(t, r, "m", 1)
	for i := range ledgerQueue {
		e := r.session("m").entryNow()
		e.number, e.id = uint64(i+2), fmt.Sprint("n", i)
		r.ledger.add(e)
	}
	mustAppend(t, s, ticksChunk("m", 1, 0, 10))
	waitDurable(t, in, 1)
	waitFor(t, "a checkpoint", func() bool { return r.Stats().Checkpoints > 0 && r.ledger.waiting() == 0 })
	mustClose(t, r)
}
