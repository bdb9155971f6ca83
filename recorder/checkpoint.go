package recorder

import (
	"sync"
	"time"
)

// checkpointRetry is the pause after a checkpoint that failed.
const checkpointRetry = time.Second

// wantCheckpoint asks for a checkpoint soon.
func (r *Recorder) wantCheckpoint() {
	select {
	case r.checkpointDue <- struct{}{}:
	default:
	}
}

// crowded tells whether journal or ledger hold so much that a checkpoint has
// to free it.
func (r *Recorder) crowded() bool {
	n, short := r.journal.sinceCheckpoint()
	return n >= r.cfg.CheckpointBytes || short || r.ledger.waiting() > ledgerQueue
}

// checkpointLoop makes checkpoints, off the way of the acknowledgements.
func (r *Recorder) checkpointLoop() {
	tick := time.NewTicker(r.cfg.CheckpointInterval)
	defer tick.Stop()
	for {
		select {
		case <-r.checkpointDue:
			// The flushes during a checkpoint have asked for what it did.
			if !r.crowded() && !r.troubles.any() {
				continue
			}
		case <-tick.C:
			if !r.journal.holds() {
				continue
			}
		case <-r.stop:
			return
		}
		if r.checkpoint() == nil {
			continue
		}
		if !r.sleep(checkpointRetry) {
			return
		}
		r.wantCheckpoint()
	}
}

// checkpoint frees what the files have got in their turn: to write thousands
// at once would hold up all else. Where the journal cannot grow, it writes those
// that lack what is in the oldest segments; all of them only where the disk was
// in trouble.
func (r *Recorder) checkpoint() error {
	if r.troubles.any() {
		return r.makeCheckpoint()
	}
	if err := r.freeFiled(); err != nil {
		return err
	}
	if _, short := r.journal.sinceCheckpoint(); !short {
		return nil
	}
	if r.journal.growEarly() {
		return nil
	}
	return r.writeAndFree(r.journal.oldest())
}

// freeFiled makes durable what was written to the files, and frees the
// records before the first that any of them lacks.
func (r *Recorder) freeFiled() error {
	start := time.Now()
	if err := r.syncAndFree(r.filed(), start); err != nil {
		return err
	}
	// On average a file lags by half of what it may, so that in memory is room
	// for more than what fills it.
	r.files.bound(r.journal.timeFor(min(r.journal.usualBytes(), r.cfg.MaxPendingBytes)))
	return nil
}

// filed is the sequence number of the journal before which no file lacks a
// record.
func (r *Recorder) filed() uint64 {
	// First: what becomes durable meanwhile stands behind it.
	needed := r.journal.settledAt()
	for _, s := range r.all() {
		if from, lacks := s.lacks(); lacks {
			needed = min(needed, from)
		}
	}
	return needed
}

// makeCheckpoint makes durable in the session files and the ledger what the
// journal holds, and only then frees its segments.
func (r *Recorder) makeCheckpoint() error { return r.writeAndFree(r.journal.settledAt()) }

// writeAndFree is makeCheckpoint for the records before needed.
func (r *Recorder) writeAndFree(needed uint64) error {
	start := time.Now()
	err := r.writeAll(needed)
	r.troubles.report(troubleFiles, err)
	if err != nil {
		return err
	}
	return r.syncAndFree(needed, start)
}

// syncAndFree ends a checkpoint: the files have all records before needed.
func (r *Recorder) syncAndFree(needed uint64, start time.Time) error {
	err := r.syncWritten()
	if err == nil {
		if err = r.ledger.save(); err == nil {
			err = r.freeJournal(needed)
		}
	}
	r.troubles.report(troubleCheckpoint, err)
	if err == nil {
		r.stats.checkpointed(time.Since(start))
	}
	return err
}

// freeJournal lets go of the records before needed, while no repair reads
// them.
func (r *Recorder) freeJournal(needed uint64) error {
	r.syncs.one.Lock()
	defer r.syncs.one.Unlock()
	return r.journal.release(needed)
}

// writeAll writes every file that lacks records before needed, and returns one
// of the errors.
func (r *Recorder) writeAll(needed uint64) error {
	work := make(chan *recording)
	errs := make(chan error, r.cfg.FileWriters)
	var wg sync.WaitGroup
	for range r.cfg.FileWriters {
		wg.Go(func() {
			var last error
			for s := range work {
				if err := r.writeFile(s); err != nil {
					last = err
				}
			}
			errs <- last
		})
	}
	for _, s := range r.all() {
		if from, lacks := s.lacks(); lacks && from < needed {
			work <- s
		}
	}
	close(work)
	wg.Wait()
	for range r.cfg.FileWriters {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}
