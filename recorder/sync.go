package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// syncs knows which session files hold bytes that may not be durable.
//
// After a failed sync nobody can tell which bytes are lost, and a later sync
// may succeed without them, for the system no longer knows of them. So all
// files written since the last good sync are suspect: they are written again
// from the journal, which holds all of it, before the next sync.
type syncs struct {
	// failures counts failed syncs.
	failures atomic.Uint64

	// one is held by a sync, by the repair before it, and while journal
	// segments are freed.
	one     sync.Mutex
	suspect bool // guarded by one

	mu  sync.Mutex
	set map[*recording]bool
}

func (u *syncs) add(s *recording) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.set == nil {
		u.set = map[*recording]bool{}
	}
	u.set[s] = true
}

func (u *syncs) forget(batch []*recording) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range batch {
		delete(u.set, s)
	}
}

func (u *syncs) take() map[*recording]bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	set := u.set
	u.set = nil
	return set
}

// syncWritten makes durable all that was written to session files, and
// their places in the folders.
func (r *Recorder) syncWritten() error {
	r.syncs.one.Lock()
	defer r.syncs.one.Unlock()
	set := r.syncs.take()
	err := r.syncSet(set)
	if err != nil {
		for s := range set {
			r.syncs.add(s)
		}
		return err
	}
	return r.syncFolders(allFolders[:]...)
}

// syncSome makes durable what was written to the files of sessions that end.
func (r *Recorder) syncSome(batch []*recording) error {
	r.syncs.one.Lock()
	if r.syncs.suspect {
		r.syncs.one.Unlock()
		return r.syncWritten()
	}
	defer r.syncs.one.Unlock()
	set := make(map[*recording]bool, len(batch))
	for _, s := range batch {
		set[s] = true
	}
	if err := r.syncSet(set); err != nil {
		return err
	}
	// Nothing more is written to them: the checkpoint has no need to know.
	r.syncs.forget(batch)
	return nil
}

// syncSet syncs files, after a repair where they are suspect; set must then
// be all that was written. The caller holds syncs.one.
func (r *Recorder) syncSet(set map[*recording]bool) error {
	if r.syncs.suspect {
		if err := r.repair(set); err != nil {
			return fmt.Errorf("writing session files again from the journal: %w", err)
		}
	}
	names := make([]string, 0, len(set))
	for s := range set {
		s.mu.Lock()
		names = append(names, r.path(s))
		s.mu.Unlock()
	}
	if err := r.fs.SyncFiles(names); err != nil {
		r.syncs.failures.Add(1)
		r.syncs.suspect = true
		r.stats.fileErrors.Add(1)
		return fmt.Errorf("syncing session files: %w", err)
	}
	r.syncs.suspect = false
	return nil
}

// syncFolders makes the files' names durable.
func (r *Recorder) syncFolders(folders ...string) error {
	for _, folder := range folders {
		if err := r.fs.SyncDir(filepath.Join(r.cfg.Dir, folder)); err != nil {
			return fmt.Errorf("syncing the folder %s: %w", folder, err)
		}
	}
	return nil
}

// repair writes again what the journal holds of the files in set.
func (r *Recorder) repair(set map[*recording]bool) error {
	byNumber := make(map[uint64]*recording, len(set))
	for s := range set {
		byNumber[s.number] = s
	}
	r.log.Warn("writing session files again from the journal after a failed sync", "files", len(set))
	return r.journal.walk(func(_ *segment, rec record, _ int64) error {
		s := byNumber[rec.session]
		if s == nil || rec.kind != recordData {
			return nil
		}
		return r.repairRecord(s, rec)
	})
}

// repairRecord writes one record again, as far as it was in the file. A file
// that has ended and was taken away since is let go.
func (r *Recorder) repairRecord(s *recording, rec record) error {
	s.fileMu.Lock()
	defer s.fileMu.Unlock()
	s.mu.Lock()
	written, ended := s.written, s.state == StateSealed || s.state == StateUnfinished
	s.mu.Unlock()
	n := min(int64(len(rec.bytes)), written-rec.offset)
	if n < 0 {
		return nil
	}
	f, err := r.fs.OpenFile(r.path(s), false)
	if ended && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if n > 0 {
		_, err = f.WriteAt(rec.bytes[:n], rec.offset)
	} else {
		// The cut of a file that was gone on with.
		err = f.Truncate(written)
	}
	return errors.Join(err, f.Close())
}
