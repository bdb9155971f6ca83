package recorder

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"reprise/format"
)

// Enter claims the id of a session that was recorded elsewhere, for good, and
// notes how it ended. The line is durable when Enter returns. To enter the
// same content under the same id again does no harm; an id that is taken by
// anything else is a *Refusal of CodeExists.
func (r *Recorder) Enter(id string, start time.Time, end SealInfo) error {
	if err := format.ValidSession(id); err != nil {
		return refuse(CodeInvalid, 0, "%v", err)
	}
	if err := r.claim(id, start, end); err != nil {
		return err
	}
	return r.ledger.save()
}

// claim queues the line of a session that was recorded elsewhere.
func (r *Recorder) claim(id string, start time.Time, end SealInfo) error {
	key := idKey(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing.Load() {
		return ErrClosed
	}
	if r.sessions[key] != nil {
		return refuseExists(id)
	}
	e, err := r.ledger.find(key)
	switch {
	case err != nil:
		return refuse(CodeStorage, 0, "reading the ledger: %v", err)
	case e != nil && (e.live() || e.id != id || e.end.Digest != end.Digest):
		return refuseExists(id)
	case e != nil:
		return nil
	}
	e = &entry{number: r.ledger.nextNumber(), id: id, start: start.UTC().Format(startLayout), end: &end}
	end.EndedAt = end.EndedAt.UTC().Truncate(time.Microsecond)
	end.File = endFolder(end.State) + "/" + e.file()
	r.ledger.add(e)
	return nil
}

// Room is how many bytes are free on the disk, and how many must be for a new
// session.
func (r *Recorder) Room() (free, needed int64, err error) {
	free, err = r.fs.Free()
	return free, max(0, r.limits.Load().MinFreeBytes), err
}

// ReadLedger gives the sessions that have ended, by lower-case id, as the
// ledger of a data folder has them. It may lag behind a recorder that runs
// there by Config.CheckpointInterval.
func ReadLedger(dir string) (map[string]Status, error) {
	f, err := os.Open(filepath.Join(dir, ledgerName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ended := map[string]Status{}
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, ledgerWindow), ledgerWindow)
	for lines.Scan() {
		e, err := parseEntry(lines.Bytes())
		switch {
		case err != nil:
			// The recorder complains of a line that cannot be read.
		case e.live():
			delete(ended, idKey(e.id))
		default:
			ended[idKey(e.id)] = e.status()
		}
	}
	return ended, lines.Err()
}

// status is how a session stands that has ended.
func (e *entry) status() Status {
	st := Status{ID: e.id, State: StateSealed, File: e.end.File, Epoch: e.epoch, Received: e.end.Seq, Durable: e.end.Seq,
		Totals: e.end.Totals, DurableTick: e.end.NextTick, Bytes: e.end.Bytes, Ended: e.end}
	if e.end.State == format.EndUnfinished {
		st.State = StateUnfinished
	}
	return st
}

// SplitName takes the name of a session's file apart.
func SplitName(name string) (id string, start time.Time, ok bool) {
	id, text, ok := splitFileName(name)
	if !ok {
		return "", time.Time{}, false
	}
	start, err := time.Parse(startLayout, text)
	return id, start, err == nil
}

// FileName is the name of a session's file in the data folder.
func FileName(id string, start time.Time) string {
	return fileName(id, start.UTC().Format(startLayout))
}
