package archive

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"reprise/format"
	"reprise/recorder"
)

// source is a file that is to be archived.
type source struct {
	// name is its name below the data folder.
	name string
	// dropped is set for a file of the inbox: it has no session yet.
	dropped bool
	id      string
	start   time.Time
	// since is when its session ended.
	since time.Time
	bytes int64
}

// lookup finds a session by its id; see Sessions.
type lookup func(id string) (recorder.Status, bool)

// endedFiles gives the files of sessions that have ended and are not archived,
// the oldest first. A file that the ledger does not say this of is nobody's
// here.
func endedFiles(d Disk, find lookup) ([]source, error) {
	var list []source
	for _, folder := range [...]string{sealedFolder, unfinishedFolder} {
		names, err := d.List(folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if s, ok := find.ended(folder, name); ok {
				list = append(list, s)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b source) int { return a.since.Compare(b.since) })
	return list, nil
}

// ended decides whether a file is that of a session that has ended.
func (find lookup) ended(folder, name string) (source, bool) {
	id, start, ok := recorder.SplitName(name)
	if !ok {
		return source{}, false
	}
	st, ok := find(id)
	if !ok || st.ID != id || st.Ended == nil || path.Base(st.File) != name {
		return source{}, false
	}
	return source{name: path.Join(folder, name), id: id, start: start, since: st.Ended.EndedAt, bytes: st.Bytes}, true
}

// reopenMargin keeps the archiver away from a session whose producer comes in
// the last moment that it may.
const reopenMargin = time.Minute

// due tells whether a file's time has come.
func (a *Archiver) due(s *source, now time.Time) bool {
	wait := a.cfg.Delay
	if path.Dir(s.name) == unfinishedFolder && a.cfg.ReopenWindow > 0 {
		wait = max(wait, a.cfg.ReopenWindow+reopenMargin)
	}
	return now.Sub(s.since) >= wait && a.tries.ready(s.name, now)
}

// replay is an opened file of the data folder.
type replay struct {
	*format.File
	file recorder.File
}

func (r *replay) Close() error { return r.file.Close() }

// openReplay opens a file; through gives a worker's pace to what reads it.
func (a *Archiver) openReplay(name string, through func(recorder.File) recorder.File) (*replay, error) {
	file, err := a.disk.OpenFile(name, false)
	if err != nil {
		return nil, err
	}
	size, err := file.Size()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	f, err := format.NewFile(through(file), size)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &replay{f, file}, nil
}

// unpaced reads as fast as it goes.
func unpaced(f recorder.File) recorder.File { return f }

// triesLater puts off what has failed, longer each time.
type triesLater struct{ of map[string]*try }

type try struct {
	failures int
	next     time.Time
}

const (
	firstRetry = 10 * time.Second
	lastRetry  = time.Hour
)

func (t *triesLater) ready(name string, now time.Time) bool {
	x := t.of[name]
	return x == nil || !now.Before(x.next)
}

func (t *triesLater) failed(name string, now time.Time) {
	if t.of == nil {
		t.of = map[string]*try{}
	}
	x := t.of[name]
	if x == nil {
		x = &try{}
		t.of[name] = x
	}
	x.next = now.Add(min(lastRetry, firstRetry<<min(x.failures, 20)))
	x.failures++
}

func (t *triesLater) done(name string) { delete(t.of, name) }

// only forgets all but the files that are there.
func (t *triesLater) only(there map[string]bool) {
	maps.DeleteFunc(t.of, func(name string, _ *try) bool { return !there[name] })
}
