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

// checkpointLoop makes checkpoints, off the way of the acknowledgements.
func (r *Recorder) checkpointLoop() {
	tick := time.NewTicker(r.cfg.CheckpointInterval)
	defer tick.Stop()
	for {
		select {
		case <-r.checkpointDue:
		case <-tick.C:
			if n, _ := r.journal.sinceCheckpoint(); n == 0 {
				continue
			}
		case <-r.stop:
			return
		}
		needed := r.journal.settledAt()
		if r.awaitFiles(); r.stopped() {
			return
		}
		if r.makeCheckpointAt(needed) == nil {
			continue
		}
		if !r.sleep(checkpointRetry) {
			return
		}
		r.wantCheckpoint()
	}
}

// awaitFiles gives the files time to be written in their turn: a checkpoint
// that writes thousands at once holds up all else. It does not wait where the
// journal has no time, or the disk is in trouble.
func (r *Recorder) awaitFiles() {
	for end := time.Now().Add(r.files.lag(r.cfg.FileInterval)); time.Now().Before(end); {
		if _, short := r.journal.sinceCheckpoint(); short || r.troubles.any() || !r.sleep(r.cfg.FileInterval/fileParts) {
			return
		}
	}
}

// makeCheckpoint makes durable in the session files and the ledger what the
// journal holds, and only then frees its segments.
func (r *Recorder) makeCheckpoint() error { return r.makeCheckpointAt(r.journal.settledAt()) }

// makeCheckpointAt is makeCheckpoint for the records before needed.
func (r *Recorder) makeCheckpointAt(needed uint64) error {
	start := time.Now()
	err := r.writeAll(needed)
	r.troubles.report(troubleFiles, err)
	if err != nil {
		return err
	}
	if err = r.syncWritten(); err == nil {
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
		if s.lags(needed) {
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
