package recorder

import (
	"errors"
	"sync"
	"time"
)

// flushQueue holds what the next flush makes durable.
type flushQueue struct {
	wake chan struct{}

	mu      sync.Mutex
	dirty   []*recording
	waiters []chan struct{}
}

// flight is what a flush has taken from the queue.
type flight struct {
	// dirty are the sessions; those before landed are durable already.
	dirty   []*recording
	landed  int
	waiters []chan struct{}
}

func newFlushQueue() flushQueue { return flushQueue{wake: make(chan struct{}, 1)} }

func (q *flushQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// add queues a session; recording.enqueue sees to it that it is in the
// queue once.
func (q *flushQueue) add(s *recording) {
	q.mu.Lock()
	q.dirty = append(q.dirty, s)
	q.mu.Unlock()
	q.signal()
}

// barrier returns a channel that is closed when all that is queued now is
// durable.
func (q *flushQueue) barrier() <-chan struct{} {
	done := make(chan struct{})
	q.mu.Lock()
	q.waiters = append(q.waiters, done)
	q.mu.Unlock()
	q.signal()
	return done
}

// take adds what is queued to f.
func (q *flushQueue) take(f *flight) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f.dirty = append(f.dirty, q.dirty...)
	f.waiters = append(f.waiters, q.waiters...)
	clear(q.dirty)
	q.dirty, q.waiters = q.dirty[:0], nil
}

const (
	// A batch that the disk does not take is tried at once in other
	// segments, then after a pause, for as long as it takes.
	flushTries = 3
	stallPause = 250 * time.Millisecond
)

// flushLoop is the one goroutine that writes the journal: it collects what
// waits, writes it, syncs once, and tells the producers.
func (r *Recorder) flushLoop() {
	var f flight
	for {
		select {
		case <-r.queue.wake:
		case <-r.stop:
			return
		}
		r.sleep(r.cfg.FlushInterval)
		r.queue.take(&f)
		if !r.fly(&f) {
			return
		}
		clear(f.dirty)
		f = flight{dirty: f.dirty[:0]}
	}
}

// fly makes f durable, in as many batches as the journal's size demands and
// however long the disk refuses; false where the recorder stops first.
func (r *Recorder) fly(f *flight) bool {
	for f.landed < len(f.dirty) {
		start := time.Now()
		n, err := r.tryBatch(f.dirty[f.landed:])
		if err != nil {
			r.stalled(err)
			if !r.sleep(stallPause) {
				return false
			}
			r.queue.take(f)
			continue
		}
		r.troubles.report(troubleJournal, nil)
		r.stats.flushed(time.Since(start), n)
		r.land(f.dirty[f.landed : f.landed+n])
		f.landed += n
	}
	for _, w := range f.waiters {
		close(w)
	}
	return true
}

// tryBatch commits as many of the sessions as one batch takes, in another
// segment where one fails.
func (r *Recorder) tryBatch(dirty []*recording) (n int, err error) {
	r.flushWait = 0
	for range flushTries {
		if n, err = r.commit(dirty); err == nil {
			return n, nil
		}
		r.journal.giveUp()
		r.stats.journalErrors.Add(1)
		if errors.Is(err, errJournalFull) {
			break
		}
		r.log.Error("journal batch is written again in another segment", "error", err)
	}
	return 0, err
}

// commit writes one batch and syncs it. Chunks that come in meanwhile go
// into the next. n is how many of the sessions it holds.
func (r *Recorder) commit(dirty []*recording) (n int, err error) {
	size := int64(0)
	var records []record
	for _, s := range dirty {
		s.mu.Lock()
		records = s.takeFlight(records[:0])
		s.mu.Unlock()
		more := int64(0)
		for _, rec := range records {
			more += recordHeader + int64(len(rec.bytes))
		}
		if n > 0 && size+more > r.journal.batchLimit {
			break
		}
		for _, rec := range records {
			if err := r.journal.add(rec); err != nil {
				return 0, err
			}
		}
		size += more
		n++
	}
	return n, r.journal.commit()
}

// land tells all concerned that a batch is durable.
func (r *Recorder) land(batch []*recording) {
	settled := r.journal.settledAt()
	for _, s := range batch {
		r.files.add(s, s.land(settled))
	}
	r.journal.settle()
	for _, s := range batch {
		s.ack(nil)
	}
	if r.crowded() {
		r.wantCheckpoint()
	}
}

// stalled tells the producers that the disk does not take their chunks, and
// has the checkpoint try to free room.
func (r *Recorder) stalled(err error) {
	r.troubles.report(troubleJournal, err)
	r.wantCheckpoint()
	r.tellStalled(err)
}

// tellStalled tells the producers of the sessions that wait for a flush why
// they do: each once, until it is over.
func (r *Recorder) tellStalled(err error) {
	for _, s := range r.all() {
		if s.noteStall() {
			s.ack(func(a *Ack) {
				if s.isStalled() {
					a.Stalled = refuse(CodeStorage, a.DurableTick, "the daemon's disk does not take what is recorded: %s", kindOf(err))
				}
			})
		}
	}
}

// isStalled tells whether the flush still does not come: where it has, the
// acknowledgement that says so may have been told.
func (s *recording) isStalled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stalled
}

// noteStall tells whether the producer has to be told that its session is
// stalled.
func (s *recording) noteStall() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.queued || s.stalled || s.attached == nil {
		return false
	}
	s.stalled = true
	return true
}

// forgetStall has a stall told again, behind an acknowledgement that says
// nothing of it.
func (s *recording) forgetStall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = false
}

// watchCall watches a call to the disk that the flush makes. Only what the disk
// takes for a batch counts, over all such calls: what a busy machine needs to
// make the batch is no stall. What it returns says that the call is over.
func (r *Recorder) watchCall() (over func()) {
	start, stop := time.Now(), r.tellAfter(stallAfter-r.flushWait)
	return func() {
		stop()
		r.flushWait += time.Since(start)
	}
}

// tellAfter has the producers told after some time that the disk does not
// answer, and again for those that come later. What it returns ends that.
func (r *Recorder) tellAfter(patience time.Duration) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	hangs := time.AfterFunc(patience, func() {
		defer close(done)
		for more := true; more; {
			r.tellStalled(errNoAnswer)
			select {
			case <-over:
				more = false
			case <-r.stop:
				more = false
			case <-time.After(stallPause):
			}
		}
	})
	return func() {
		close(over)
		if !hangs.Stop() {
			<-done
		}
	}
}

// sleep pauses; false where the recorder stops.
func (r *Recorder) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.stop:
		return false
	}
}
