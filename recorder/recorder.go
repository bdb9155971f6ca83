package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"reprise/format"
)

// Recorder records sessions into a data folder. Its methods may be called
// from any goroutine.
type Recorder struct {
	cfg      Config
	fs       FS
	log      *slog.Logger
	troubles troubles
	stats    counters

	calls   *calls // that the disk does not answer
	lock    io.Closer
	ownDisk io.Closer // the disk, where Open opened it
	journal *journal
	ledger  *ledger

	mu       sync.Mutex
	sessions map[string]*recording // that have not ended, by lower-case id

	pending atomic.Int64 // bytes in memory that are not in files
	coming  atomic.Int64 // of chunks that were let in and are not in pending yet
	limits  atomic.Pointer[Limits]
	diskLow atomic.Bool
	closing atomic.Bool

	queue         flushQueue
	files         fileQueue
	writing       chan *recording
	syncs         syncs
	ending        endQueue
	checkpointDue chan struct{}
	// flushWait is how long the disk has taken for the flush under way; it
	// is the flush loop's own.
	flushWait time.Duration

	stop    chan struct{}
	running sync.WaitGroup
}

// Open opens a data folder and recovers what a crash has left. The sessions
// that had not ended wait for their producers from now on. The error matches
// ErrRunning where another recorder has the folder open.
func Open(cfg Config) (*Recorder, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("recorder configuration: %w", err)
	}
	cfg = cfg.withDefaults()
	r := &Recorder{cfg: cfg, fs: cfg.FS, log: cfg.Log, sessions: map[string]*recording{}, queue: newFlushQueue(), files: newFileQueue(), ending: newEndQueue(),
		writing: make(chan *recording), checkpointDue: make(chan struct{}, 1), stop: make(chan struct{})}
	r.troubles = troubles{log: cfg.Log, now: map[string]*trouble{}}
	found, err := r.open()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the data folder %s: %w", cfg.Dir, err), r.release())
	}
	for _, s := range found {
		r.sessions[idKey(s.id)] = s
	}
	r.run(found)
	return r, nil
}

func (r *Recorder) open() ([]*recording, error) {
	if r.fs == nil {
		disk, err := openOS(r.cfg.Dir)
		if err != nil {
			return nil, err
		}
		r.fs, r.ownDisk = disk, disk
	}
	r.calls = &calls{report: func(err error) { r.troubles.report(troubleAnswer, err) }, late: map[*call]error{}}
	r.fs = watchedDisk{FS: r.fs, calls: r.calls}
	for _, folder := range [...]string{journalFolder, liveFolder, sealedFolder, unfinishedFolder} {
		if err := r.fs.MkdirAll(filepath.Join(r.cfg.Dir, folder)); err != nil {
			return nil, err
		}
	}
	var err error
	if r.lock, err = r.fs.Lock(filepath.Join(r.cfg.Dir, lockName)); err != nil {
		return nil, err
	}
	free, err := r.fs.Free()
	if err != nil {
		return nil, err
	}
	r.cfg = r.cfg.withDisk(free)
	limits := r.cfg.limits()
	r.limits.Store(&limits)
	found, err := r.recover()
	if err != nil {
		return nil, err
	}
	r.watchDisk()
	return found, nil
}

// run starts the goroutines.
func (r *Recorder) run(found []*recording) {
	for _, s := range found {
		s.deadline = time.Now().Add(r.cfg.ResumeTimeout)
	}
	r.journal.watch = r.watchCall
	for _, loop := range [...]func(){r.flushLoop, r.fileLoop, r.checkpointLoop, r.sweepLoop, func() { r.wakeLoop(found) }} {
		r.running.Go(loop)
	}
	for range r.cfg.FileWriters {
		r.running.Go(r.writeLoop)
	}
	for range enders {
		r.running.Go(r.endLoop)
	}
}

// Close makes all that was accepted durable in the session files, and leaves
// the sessions for their producers to resume after the next Open. Where ctx
// ends first, or the disk refuses, the journal holds what is durable, and the
// error says so.
func (r *Recorder) Close(ctx context.Context) error {
	r.mu.Lock()
	was := r.closing.Swap(true)
	r.mu.Unlock()
	if was {
		return ErrClosed
	}
	drained := make(chan error, 1)
	r.running.Go(func() { drained <- r.drain() })
	var err error
	select {
	case err = <-drained:
	case <-ctx.Done():
		err = fmt.Errorf("closing before all was written, what was acknowledged is in the journal: %w", ctx.Err())
	}
	close(r.stop)
	done := make(chan struct{})
	go func() {
		r.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return errors.Join(err, r.release())
	case <-time.After(closeGrace):
		// A call to the disk does not return: the lock stays until the
		// process ends.
		return errors.Join(err, errors.New("the disk does not answer"))
	}
}

// closeGrace is how long Close waits for calls to the disk that are under
// way when its time is over.
const closeGrace = 2 * time.Second

// drain flushes and makes a last checkpoint.
func (r *Recorder) drain() error {
	if !r.wait(r.queue.barrier()) {
		return ErrClosed
	}
	return r.makeCheckpoint()
}

// release closes the files and gives the lock back.
func (r *Recorder) release() error {
	var errs []error
	if r.journal != nil {
		errs = append(errs, r.journal.close())
	}
	if r.ledger != nil {
		errs = append(errs, r.ledger.file.Close())
	}
	if r.lock != nil {
		errs = append(errs, r.lock.Close())
	}
	if r.ownDisk != nil {
		errs = append(errs, r.ownDisk.Close())
	}
	return errors.Join(errs...)
}

func (r *Recorder) stopped() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// window is how many bytes a producer may send ahead.
func (r *Recorder) window() int64 {
	return min(r.limits.Load().SessionWindow, r.journal.chunkLimit()/windowSlack)
}

// session finds one that has not ended.
func (r *Recorder) session(id string) *recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessions[idKey(id)]
	if s == nil || s.id != id {
		return nil
	}
	return s
}

// all gives the sessions that have not ended, in no order.
func (r *Recorder) all() []*recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*recording, 0, len(r.sessions))
	for _, s := range r.sessions {
		list = append(list, s)
	}
	return list
}

// forget drops a session that has ended: the ledger knows it.
func (r *Recorder) forget(s *recording) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, idKey(s.id))
}

// WaitForRoom blocks while all sessions together hold as much memory as they
// may, so that a server can stop reading instead of having chunks refused.
func (r *Recorder) WaitForRoom(ctx context.Context) error {
	if r.roomy() {
		return nil
	}
	tick := time.NewTicker(roomPause)
	defer tick.Stop()
	for !r.roomy() {
		r.files.hurry()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-r.stop:
			return ErrClosed
		}
	}
	return nil
}

// roomy tells whether all sessions together may hold more.
func (r *Recorder) roomy() bool {
	return r.pending.Load() < max(r.cfg.MaxPendingBytes/2, r.cfg.MaxPendingBytes-format.MaxBody)
}

// roomPause is how often a server that waits for room looks again.
const roomPause = 5 * time.Millisecond
