package recorder

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"reprise/format"
)

// The end of a session, sealed or unfinished:
//
//	1. the footer goes the way of every chunk, through the journal;
//	2. the file is written and synced;
//	3. it is renamed into its folder, and the folders are synced;
//	4. the ledger's line goes through the journal;
//	5. the producer is told.
//
// A crash before 1 is durable leaves a session that goes on; one after it
// finds the footer and goes on with 2. Sessions that end at the same time
// share the syncs.

// endQueue holds the sessions whose end is decided.
type endQueue struct {
	wake chan struct{}
	mu   sync.Mutex
	list []*recording
}

func newEndQueue() endQueue { return endQueue{wake: make(chan struct{}, 1)} }

func (q *endQueue) add(s *recording) {
	q.mu.Lock()
	q.list = append(q.list, s)
	q.mu.Unlock()
	q.signal()
}

func (q *endQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// endBatch is how many sessions are finished together at most, and enders
// how many batches at once: a file that is held up holds up no other batch.
const (
	endBatch = 256
	enders   = 4
	endRetry = time.Second
)

func (q *endQueue) take() []*recording {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.list), endBatch)
	batch := slices.Clone(q.list[:n])
	q.list = slices.Delete(q.list, 0, n)
	if len(q.list) > 0 {
		q.signal()
	}
	return batch
}

// endLoop is one of those who finish sessions.
func (r *Recorder) endLoop() {
	for {
		select {
		case <-r.ending.wake:
			if batch := r.ending.take(); len(batch) > 0 {
				r.finish(batch)
			}
		case <-r.stop:
			return
		}
	}
}

// finish takes a batch of sessions to their end. Where the recorder stops
// before that, recovery or the producer takes it up.
func (r *Recorder) finish(batch []*recording) {
	all := len(batch)
	batch = r.each(batch, (*recording).addFooter)
	if len(batch) == 0 || !r.wait(r.queue.barrier()) {
		return
	}
	batch = r.each(batch, r.writeFile)
	if !r.persist(func() error { return r.syncSome(batch) }) {
		return
	}
	batch = r.each(batch, r.shelve)
	if !r.persist(func() error { return r.syncFolders(allFolders[:]...) }) {
		return
	}
	for _, s := range batch {
		s.mu.Lock()
		s.ended = s.info
		s.newLine()
		s.mu.Unlock()
	}
	if !r.wait(r.queue.barrier()) {
		return
	}
	for _, s := range batch {
		r.conclude(s)
	}
	if len(batch) == all {
		r.troubles.report(troubleEnd, nil)
	}
}

// each does the same for all sessions of a batch, and returns those for which
// it went well. The others are tried again later, from the start; those that
// can never be finished are set aside.
func (r *Recorder) each(batch []*recording, do func(*recording) error) []*recording {
	var good []*recording
	for _, s := range batch {
		err := do(s)
		switch {
		case err == nil:
			good = append(good, s)
		case format.IsDamage(err) || errors.Is(err, format.ErrLimit):
			r.setAside(s, fmt.Errorf("its file cannot be finished: %w", err))
		default:
			r.troubles.report(troubleEnd, err)
			time.AfterFunc(endRetry, func() { r.ending.add(s) })
		}
	}
	return good
}

// persist tries until it goes well; false where the recorder stops first.
func (r *Recorder) persist(try func() error) bool {
	for {
		err := try()
		if err == nil {
			return true
		}
		r.troubles.report(troubleEnd, err)
		if !r.sleep(endRetry) {
			return false
		}
	}
}

// wait waits for a barrier; false where the recorder stops first.
func (r *Recorder) wait(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-r.stop:
		return false
	}
}

// addFooter appends the footer, unless a recovered file has it already.
func (s *recording) addFooter() error {
	s.entry.Lock()
	defer s.entry.Unlock()
	if s.info != nil {
		return nil
	}
	footer, info, err := s.makeFooter()
	if err != nil {
		return err
	}
	if info.Digest, err = digestIn(footer); err != nil {
		return err
	}
	if most := s.r.journal.chunkLimit(); int64(len(footer)) > most {
		return fmt.Errorf("%w: footer of %d bytes, the journal takes %d at once: raise SegmentBytes or Segments", format.ErrLimit, len(footer), most)
	}
	s.info = info
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold(footer)
	s.now.size = s.size
	s.enqueue()
	return nil
}

// makeFooter has the tracker end the session. A tracker that could not is
// made anew from the file.
func (s *recording) makeFooter() ([]byte, *SealInfo, error) {
	s.mu.Lock()
	end, why := s.endState, s.why
	s.mu.Unlock()
	if s.tracker.End() != nil {
		found, err := s.scan(s.source(), s.size)
		if err != nil {
			return nil, nil, err
		}
		s.tracker = found.tracker
	}
	seq := s.tracker.Seq()
	footer, err := s.tracker.FooterWith(s.source(), s.size, end, why, format.FooterOptions{Sign: s.r.cfg.Sign})
	if err != nil {
		return nil, nil, err
	}
	return footer, &SealInfo{State: end, File: endFolder(end) + "/" + s.file(), EndedAt: now(),
		Totals: s.tracker.Totals(), Seq: seq, Bytes: s.size + int64(len(footer))}, nil
}

// digestIn finds the content digest in a footer: the digest chunk begins
// with it.
func digestIn(footer []byte) (d format.Digest, err error) {
	for len(footer) > 0 {
		c, n, err := format.ParseChunk(footer)
		if err != nil {
			return d, err
		}
		if c.Type == format.ChunkDigest {
			copy(d[:], c.Body)
			return d, nil
		}
		footer = footer[n:]
	}
	return d, fmt.Errorf("%w: footer without a digest", format.ErrCorrupt)
}

// endFolder is where the file of a session that ended so belongs.
func endFolder(end format.EndState) string {
	if end == format.EndSealed {
		return sealedFolder
	}
	return unfinishedFolder
}

// shelve moves a finished file to where it belongs.
func (r *Recorder) shelve(s *recording) error {
	s.fileMu.Lock()
	defer s.fileMu.Unlock()
	if err := r.move(s, endFolder(s.info.State)); err != nil {
		return fmt.Errorf("moving %s: %w", s.file(), err)
	}
	return nil
}

// conclude lets go of a session that has ended, and tells its producer.
func (r *Recorder) conclude(s *recording) {
	info := s.info
	r.forget(s)
	s.mu.Lock()
	s.state = StateSealed
	if info.State == format.EndUnfinished {
		s.state = StateUnfinished
	}
	h := s.attached
	s.mu.Unlock()
	s.entry.Lock()
	s.tracker, s.places = nil, places{}
	s.entry.Unlock()
	r.log.Info("session ended", "session", s.id, "state", info.State, "file", info.File, "ticks", info.Ticks)
	r.stats.ended(info.State)
	if h != nil {
		h.tell(func(a *Ack) { a.Sealed = info })
	}
}

// setAside quarantines a session whose file cannot be trusted. The file is
// not touched again.
func (r *Recorder) setAside(s *recording, err error) {
	s.mu.Lock()
	s.state, s.why = StateQuarantined, err.Error()
	s.mu.Unlock()
	r.log.Error("session set aside", "session", s.id, "file", s.file(), "error", err)
	s.ack(func(a *Ack) {
		a.Err = refuse(CodeDamaged, a.DurableTick, "session %s is set aside: %s", s.id, kindOf(err))
	})
}
