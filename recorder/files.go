package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"reprise/recorder/disk"
)

// Folders and files of the data folder. They must not change.
const (
	journalFolder    = "journal"
	liveFolder       = "live"
	sealedFolder     = "sealed"
	unfinishedFolder = "unfinished"

	ledgerName     = "ledger"
	lockName       = "lock"
	checkpointName = "checkpoint"
)

// allFolders are those that hold session files.
var allFolders = [...]string{liveFolder, sealedFolder, unfinishedFolder}

// fileQueue holds the sessions whose files lack durable bytes: those that
// can wait, and those whose tail is full.
type fileQueue struct {
	wake chan struct{}

	mu      sync.Mutex
	waiting []waitingFile // in the order of their coming
	full    []*recording
	hurried bool
	most    time.Duration // that journal and memory have room for; 0 for any
}

// waitingFile is a session's file that is to be written, and since when.
type waitingFile struct {
	s     *recording
	since time.Time
}

func newFileQueue() fileQueue { return fileQueue{wake: make(chan struct{}, 1)} }

// add queues a session; recording.wantsFile sees to it that it is in each
// list once.
func (q *fileQueue) add(s *recording, want fileWish) {
	if want == wishNothing {
		return
	}
	q.mu.Lock()
	if want == wishSoon {
		q.waiting = append(q.waiting, waitingFile{s, time.Now()})
	} else {
		q.full = append(q.full, s)
	}
	q.mu.Unlock()
	if want == wishNow {
		q.signal()
	}
}

func (q *fileQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// hurry has all files written without waiting.
func (q *fileQueue) hurry() {
	q.mu.Lock()
	q.hurried = true
	q.mu.Unlock()
	q.signal()
}

// bound says for how long journal and memory have room for what files lack.
func (q *fileQueue) bound(most time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.most = most
}

// lag is how far the files may lag behind: interval, or longer where so many
// sessions wait that their files would be written faster than fileSpacing. The
// caller holds mu.
func (q *fileQueue) lag(interval time.Duration) time.Duration {
	lag := time.Duration(len(q.waiting)) * fileSpacing
	if q.most > 0 {
		lag = min(lag, q.most)
	}
	return max(interval, lag)
}

// take removes the sessions with a full tail, and of the others a part, or twice
// as many where they have waited for too long: so the files of many sessions are
// not written all at once, which would hold up all else.
func (q *fileQueue) take(part int, interval time.Duration) []*recording {
	q.mu.Lock()
	due := q.full
	q.full = nil
	lag := q.lag(interval)
	before := time.Now().Add(-lag)
	n := int(float64(len(q.waiting))*float64(interval)/float64(lag)/fileParts+1) * part
	most := min(2*n, len(q.waiting))
	for n = min(n, len(q.waiting)); n < most && q.waiting[n].since.Before(before); n++ {
	}
	if q.hurried {
		n, q.hurried = len(q.waiting), false
	}
	var waited []*recording
	for _, w := range q.waiting[:n] {
		waited = append(waited, w.s)
	}
	q.waiting = slices.Delete(q.waiting, 0, n)
	q.mu.Unlock()
	for _, s := range due {
		s.mu.Lock()
		s.inFull = false
		s.mu.Unlock()
	}
	for _, s := range waited {
		s.mu.Lock()
		s.inWaiting = false
		s.mu.Unlock()
	}
	return append(due, waited...)
}

// fileWish says when a session's file wants to be written.
type fileWish int

const (
	wishNothing fileWish = iota
	wishSoon
	wishNow
)

// failedWrite tells what to queue the session for whose file could not be
// written.
func (s *recording) failedWrite() fileWish {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwritable = true
	return s.wantsFile()
}

// wantsFile tells what to queue the session for. The caller holds mu.
func (s *recording) wantsFile() fileWish {
	lacks := s.durable - s.written
	switch {
	case lacks >= s.r.cfg.TailBytes && !s.inFull && !s.unwritable:
		s.inFull = true
		return wishNow
	case (lacks > 0 || s.misplaced) && !s.inWaiting && !s.inFull:
		s.inWaiting = true
		return wishSoon
	}
	return wishNothing
}

// fileParts is into how many parts Config.FileInterval is divided, and with it
// the files that wait.
const fileParts = 32

// fileSpacing is the least time between two files that are written in their
// turn, on average. At ten thousand sessions and 2 s, writing their files would
// be more than the rest of the work: the acknowledgements wait for the same
// cores and the same disk.
const fileSpacing = 800 * time.Microsecond

// fileLoop has the files written: every session about once in
// Config.FileInterval, or in the longer time that many sessions take, unless its
// tail is full.
func (r *Recorder) fileLoop() {
	tick := time.NewTicker(max(r.cfg.FileInterval/fileParts, time.Millisecond))
	defer tick.Stop()
	for {
		part := 0
		select {
		case <-tick.C:
			part = 1
		case <-r.files.wake:
		case <-r.stop:
			return
		}
		for _, s := range r.files.take(part, r.cfg.FileInterval) {
			select {
			case r.writing <- s:
			case <-r.stop:
				return
			}
		}
	}
}

// writeLoop is one of those who write files. One that is held up by a file
// holds up nobody else.
func (r *Recorder) writeLoop() {
	for {
		select {
		case s := <-r.writing:
			if err := r.writeFile(s); err != nil {
				// The checkpoint tries again, and says when it is over. One that
				// is under way may have passed the file: so it waits for its
				// turn again.
				r.files.add(s, s.failedWrite())
				r.troubles.report(troubleFiles, err)
				r.wantCheckpoint()
			}
		case <-r.stop:
			return
		}
	}
}

// errSyncedAway is returned for a write that a failed sync may have undone.
var errSyncedAway = errors.New("a sync failed during the write")

// writeFile writes what is durable to the session's file, without a sync.
// It may be called at any time, and does nothing where nothing is to do.
func (r *Recorder) writeFile(s *recording) error {
	s.fileMu.Lock()
	defer s.fileMu.Unlock()
	covers := r.journal.settledAt()
	s.mu.Lock()
	b := s.pending[:s.durable-s.written]
	at, steps, misplaced := s.written, s.safe.totals.Steps, s.misplaced && !s.cut
	s.mu.Unlock()
	if len(b) == 0 && !misplaced {
		return nil
	}
	failures := r.syncs.failures.Load()
	if misplaced {
		if err := r.replace(s, at); err != nil {
			return fmt.Errorf("going on with %s: %w", s.file(), err)
		}
	}
	if err := r.writeAt(s, b, at); err != nil {
		return fmt.Errorf("writing %s: %w", s.file(), err)
	}
	// In the set first: whoever finds the bytes written finds them there.
	r.syncs.add(s)
	if r.syncs.failures.Load() != failures {
		return errSyncedAway
	}
	s.dropWritten(len(b), steps, misplaced, covers)
	return nil
}

// writeAt writes b at its place. A write that fails half-way is taken back,
// so that the file ends with a whole chunk.
func (r *Recorder) writeAt(s *recording, b []byte, at int64) error {
	if len(b) == 0 {
		return nil
	}
	if at == 0 {
		return r.writeFirst(r.path(s), b)
	}
	f, err := r.fs.OpenFile(r.path(s), false)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(b, at); err == nil {
		r.startStoring(f, at, len(b))
	} else {
		err = errors.Join(err, f.Truncate(at))
	}
	return errors.Join(err, f.Close())
}

// startStoring lets the system store what was written while other files are
// written: a checkpoint that finds thousands of them to store holds up all else.
// Few files are synced one by one, by descriptors that are opened for it and may
// not be told of an earlier write that failed: those are left to the sync.
func (r *Recorder) startStoring(f File, off int64, n int) {
	if s, ok := f.(disk.Starter); ok && r.files.many() {
		s.StartSync(off, int64(n))
	}
}

// many tells whether so many files wait that they are synced all together.
func (q *fileQueue) many() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) > 4*syncTogether
}

// newSuffix ends the name of a session's file until its first bytes are in
// it: no reader ever finds an empty one.
const newSuffix = ".new"

// writeFirst makes a session's file with its first bytes.
func (r *Recorder) writeFirst(path string, b []byte) error {
	f, err := r.fs.OpenFile(path+newSuffix, true)
	if err != nil {
		return err
	}
	if err = emptied(f); err == nil {
		_, err = f.WriteAt(b, 0)
	}
	if err == nil {
		r.startStoring(f, 0, len(b))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, r.fs.Remove(path+newSuffix))
	}
	return r.rename(path+newSuffix, path)
}

// emptied cuts what a file may hold. It leaves alone one that is empty: ext4
// begins to write a file back when it is closed, once it was cut to nothing.
func emptied(f File) error {
	size, err := f.Size()
	if err != nil || size == 0 {
		return err
	}
	return f.Truncate(0)
}

// replace brings the file of a session that goes on back to the live
// folder, and cuts what is behind its chunks.
func (r *Recorder) replace(s *recording, size int64) error {
	if err := r.move(s, liveFolder); err != nil {
		return err
	}
	f, err := r.fs.OpenFile(r.path(s), false)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// move brings the session's file to a folder. The caller holds fileMu.
func (r *Recorder) move(s *recording, folder string) error {
	if s.folder == folder {
		return nil
	}
	if err := r.rename(r.path(s), filepath.Join(r.cfg.Dir, folder, s.file())); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.folder = folder
	return nil
}

// rename moves a file. An error of one that was done nevertheless is none: it
// could never be done again.
func (r *Recorder) rename(from, to string) error {
	err := r.fs.Rename(from, to)
	if err != nil && r.moved(from, to) {
		r.log.Warn("a rename was done, and reported an error", "file", to, "error", err)
		return nil
	}
	return err
}

// moved tells whether a rename that reports an error was done nevertheless.
// Nothing else ever makes a file of that name.
func (r *Recorder) moved(from, to string) bool {
	if f, err := r.fs.OpenFile(from, false); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			f.Close()
		}
		return false
	}
	f, err := r.fs.OpenFile(to, false)
	return err == nil && f.Close() == nil
}

// path is where the session's file is. The caller holds fileMu or mu.
func (r *Recorder) path(s *recording) string { return filepath.Join(r.cfg.Dir, s.folder, s.file()) }
