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
	lines   []*entry // ledger lines, behind the chunks
	dirty   []*recording
	waiters []chan struct{}
}

// flight is what one flush takes from the queue.
type flight struct {
	lines   []*entry
	dirty   []*recording
	waiters []chan struct{}
	// told counts the sessions whose producers know that the disk refuses.
	told int
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

// addNew queues a new session with its line in the ledger. They share a
// batch, in which the line stands behind the chunks: where the line is found,
// they are.
func (q *flushQueue) addNew(s *recording, e *entry) {
	q.mu.Lock()
	q.dirty = append(q.dirty, s)
	q.lines = append(q.lines, e)
	q.mu.Unlock()
	q.signal()
}

// addLine queues a ledger line. It is durable no later than chunks that are
// queued after it.
func (q *flushQueue) addLine(e *entry) {
	q.mu.Lock()
	q.lines = append(q.lines, e)
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
	f.lines = append(f.lines, q.lines...)
	f.dirty = append(f.dirty, q.dirty...)
	f.waiters = append(f.waiters, q.waiters...)
	clear(q.dirty)
	q.lines, q.dirty, q.waiters = nil, q.dirty[:0], nil
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
		f = flight{lines: f.lines[:0], dirty: f.dirty[:0], waiters: f.waiters[:0]}
	}
}

// fly makes f durable, however long the disk refuses; false where the
// recorder stops first.
func (r *Recorder) fly(f *flight) bool {
	start := time.Now()
	for {
		err := r.tryFlight(f)
		if err == nil {
			break
		}
		r.stalled(f, err)
		if !r.sleep(stallPause) {
			return false
		}
		r.queue.take(f)
	}
	r.troubles.report(troubleJournal, nil)
	r.stats.flushed(time.Since(start), len(f.dirty))
	r.land(f)
	return true
}

// tryFlight commits f, in another segment where one fails.
func (r *Recorder) tryFlight(f *flight) error {
	var err error
	for range flushTries {
		if err = r.commit(f); err == nil {
			return nil
		}
		r.journal.giveUp()
		r.stats.journalErrors.Add(1)
		if errors.Is(err, errJournalFull) {
			break
		}
		r.log.Error("journal batch is written again in another segment", "error", err)
	}
	return err
}

// commit writes one batch and syncs it. Chunks that come in meanwhile go
// into the next.
func (r *Recorder) commit(f *flight) error {
	for _, s := range f.dirty {
		if err := r.addFlight(s); err != nil {
			return err
		}
	}
	for _, e := range f.lines {
		if err := r.journal.add(record{kind: recordLedger, session: e.number, bytes: appendEntry(nil, e)}); err != nil {
			return err
		}
	}
	return r.journal.commit()
}

func (r *Recorder) addFlight(s *recording) error {
	s.mu.Lock()
	rec, any := s.takeFlight()
	s.mu.Unlock()
	if !any {
		return nil
	}
	return r.journal.add(rec)
}

// land tells all concerned that f is durable.
func (r *Recorder) land(f *flight) {
	for _, e := range f.lines {
		r.ledger.add(e)
	}
	for _, s := range f.dirty {
		r.files.add(s, s.land())
	}
	r.journal.settle()
	for _, w := range f.waiters {
		close(w)
	}
	for _, s := range f.dirty {
		s.ack(nil)
	}
	if n, short := r.journal.sinceCheckpoint(); n >= r.cfg.CheckpointBytes || short {
		r.wantCheckpoint()
	}
}

// stalled tells the producers that the disk does not take their chunks, and
// has the checkpoint try to free room.
func (r *Recorder) stalled(f *flight, err error) {
	r.troubles.report(troubleJournal, err)
	r.wantCheckpoint()
	for ; f.told < len(f.dirty); f.told++ {
		f.dirty[f.told].ack(func(a *Ack) {
			a.Stalled = refuse(CodeStorage, a.DurableTick, "the disk does not take the journal: %v", err)
		})
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
