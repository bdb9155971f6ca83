package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"reprise/format"
	"reprise/recorder"
)

// From a source to its archive, in this order:
//
//	1. the archive is written to archive/.new, and synced;
//	2. it is opened again, and compared with the source step by step;
//	3. for a file of the inbox, an id is claimed in the ledger;
//	4. its folder is made and synced, it is renamed to its name, and both
//	   folders are synced;
//	5. its line is appended to the catalog, which is synced;
//	6. the source is removed, and its folder synced.
//
// So at every moment the source is there, or an archive that was compared
// with it. What a crash leaves is done again from the start: an archive that
// has its name already is compared with the source, and taken as it is.

// worker archives one file after the other.
type worker struct {
	*Archiver
	encoder Encoder
	pace    *pace
	number  int
}

func newWorker(ctx context.Context, a *Archiver) *worker {
	return &worker{Archiver: a, encoder: a.cfg.NewEncoder(), pace: newPace(ctx, a.cfg.Share), number: len(a.workers)}
}

// paced gives the worker's pace to what reads a file.
func (w *worker) paced(f recorder.File) recorder.File { return pacedReader{f, w.pace} }

// archive takes a file through all the steps.
func (w *worker) archive(s source) error {
	w.pace.begin()
	src, err := w.openReplay(s.name, w.paced)
	if err != nil {
		return err
	}
	e, err := w.file(&s, src)
	err = errors.Join(err, src.Close())
	if err != nil {
		return err
	}
	if err := w.removeSource(s.name); err != nil {
		return fmt.Errorf("removing the source, whose archive is %s: %w", e.File, err)
	}
	w.log.Info("replay archived", "session", e.ID, "file", e.File, "source", s.name, "bytes", e.Bytes, "source_bytes", e.Source)
	w.stats.archived.Add(1)
	w.stats.bytesIn.Add(e.Source)
	w.stats.bytesOut.Add(e.Bytes)
	return nil
}

// file makes sure that there is an archive of src in its place.
func (w *worker) file(s *source, src *replay) (*Entry, error) {
	if s.dropped {
		if err := w.judge(s, src); err != nil {
			return nil, err
		}
	}
	if e, err := w.filed(s, src); e != nil || err != nil {
		return e, err
	}
	work := path.Join(workFolder, fmt.Sprintf("%d%s", w.number, workSuffix))
	report, err := w.write(work, src)
	if err == nil {
		err = w.compare(work, src)
	}
	var e *Entry
	if err == nil {
		e, err = w.place(s, src, work, report)
	}
	if err == nil {
		return e, nil
	}
	if left := w.leftOver(err, src); left != nil {
		e, err = left, nil
	}
	return e, errors.Join(err, w.removeWork(work))
}

// leftOver is the archive of a dropped file that a crash kept from being
// removed, before the catalog had the archive.
func (w *worker) leftOver(err error, src *replay) *Entry {
	twice, ok := errors.AsType[*duplicateError](err)
	if !ok {
		return nil
	}
	e := w.catalog.find(twice.id)
	if e == nil || !e.Found || w.compare(e.File, src) != nil {
		return nil
	}
	return e
}

// filed finds the archive that an earlier attempt has made of src, if it is
// whole.
func (w *worker) filed(s *source, src *replay) (*Entry, error) {
	e := w.catalog.find(s.id)
	if s.dropped {
		e = w.catalog.madeOf(s.name)
	}
	if e == nil {
		return nil, nil
	}
	err := w.compare(e.File, src)
	if _, different := errors.AsType[*format.DifferenceError](err); different || isDamage(err) || errors.Is(err, fs.ErrNotExist) {
		w.log.Warn("archive is not what the catalog says, and is made anew", "file", e.File, "error", err)
		return nil, nil
	}
	return e, err
}

// write is step 1.
func (w *worker) write(work string, src *replay) (*format.ArchiveReport, error) {
	f, err := w.disk.OpenFile(work, true)
	if err != nil {
		return nil, err
	}
	report, err := w.encode(f, src)
	if err == nil {
		err = f.Sync()
	}
	return report, errors.Join(err, f.Close())
}

// writePiece is what is written at once.
const writePiece = 64 << 10

func (w *worker) encode(f recorder.File, src *replay) (*format.ArchiveReport, error) {
	if err := f.Truncate(0); err != nil {
		return nil, err
	}
	out := bufio.NewWriterSize(&pacedWriter{file: f, pace: w.pace}, writePiece)
	report, err := w.encoder.Archive(src.File, out, w.cfg.Options)
	if err != nil {
		return nil, err
	}
	return report, out.Flush()
}

// compare is step 2. It reads every byte of the archive.
func (w *worker) compare(name string, src *replay) error {
	made, err := w.openReplay(name, w.paced)
	if err != nil {
		return fmt.Errorf("reading back %s: %w", name, err)
	}
	defer made.Close()
	if err := format.SameContent(src.File, made.File); err != nil {
		return fmt.Errorf("comparing %s with its source: %w", name, err)
	}
	if _, err := made.Check(); err != nil {
		return fmt.Errorf("checking %s: %w", name, err)
	}
	return nil
}

// place is steps 3 to 5.
func (w *worker) place(s *source, src *replay, work string, report *format.ArchiveReport) (*Entry, error) {
	sum := src.Summary()
	e := &Entry{ID: s.id, Game: sum.Meta.Game, End: format.EndUnfinished, Since: s.since, Bytes: report.Bytes, Source: src.Bytes, Root: report.Root}
	if sum.End != nil {
		e.End = sum.End.State
	}
	if s.dropped {
		// Another copy of it may be on its way with another worker.
		release, ok := w.take(e.Root.String())
		if !ok {
			return nil, errNotYet
		}
		defer release()
		e.From = s.name
		if err := w.claim(s, src, e); err != nil {
			return nil, err
		}
	}
	if err := w.pinByContent(e.ID, src.File); err != nil {
		return nil, err
	}
	there, release, err := w.choose(s, src, e)
	if err != nil {
		return nil, err
	}
	defer release()
	if there {
		err = w.removeWork(work)
	} else {
		err = w.move(work, e.File)
	}
	if err != nil {
		return nil, err
	}
	return e, w.catalog.add(e)
}

// maxNames is how many names are tried for one archive.
const maxNames = 100

// choose finds the archive's name: the first that is free, or that has the
// archive already. The name is kept from other workers until release.
func (w *worker) choose(s *source, src *replay, e *Entry) (there bool, release func(), err error) {
	facts := Facts{ID: e.ID, Game: e.Game, Build: src.Summary().Meta.Build, Start: s.start}
	for n := 1; n <= maxNames; n++ {
		name := w.cfg.Name.Name(facts, n)
		release, ok := w.reserve(name, e.ID)
		if !ok {
			continue
		}
		there, free, err := w.usable(name, src)
		if err == nil && (there || free) {
			e.File = name
			return there, release, nil
		}
		release()
		if err != nil {
			return false, nil, err
		}
	}
	return false, nil, fmt.Errorf("%d names are taken, the last is %s", maxNames, w.cfg.Name.Name(facts, maxNames))
}

// reserve keeps a name from the other workers; false where it is taken.
func (a *Archiver) reserve(name, id string) (release func(), ok bool) {
	if other := a.catalog.named(name); other != nil && idKey(other.ID) != idKey(id) {
		return nil, false
	}
	return a.take(nameKey(name))
}

// take keeps something from the other workers; false where one has it.
func (a *Archiver) take(key string) (release func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.taken[key] {
		return nil, false
	}
	a.taken[key] = true
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.taken, key)
	}, true
}

// usable tells whether a name is free, or whether the archive of src is there.
func (w *worker) usable(name string, src *replay) (there, free bool, err error) {
	if there, err = exists(w.disk, name); err != nil || !there {
		return false, err == nil, err
	}
	err = w.compare(name, src)
	if _, different := errors.AsType[*format.DifferenceError](err); different || isDamage(err) {
		return false, false, nil
	}
	return err == nil, false, err
}

// move is step 4.
func (w *worker) move(work, name string) error {
	if err := makeFolder(w.disk, path.Dir(name)); err != nil {
		return err
	}
	if err := w.disk.Rename(work, name); err != nil {
		return err
	}
	return errors.Join(w.disk.SyncDir(path.Dir(name)), w.disk.SyncDir(workFolder))
}

// removeWork removes what was written and is not needed.
func (a *Archiver) removeWork(work string) error {
	err := a.disk.Remove(work)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeSource is step 6. A file that is gone was taken away by somebody.
func (a *Archiver) removeSource(name string) error {
	if err := a.disk.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return a.disk.SyncDir(path.Dir(name))
}

// roomError says that archives wait for room on the disk.
type roomError struct {
	free, kept int64
	waiting    int
}

func (e *roomError) Error() string {
	return fmt.Sprintf("%d bytes are free, of which archiving leaves %d to recording: %d replays wait to be archived; make room, or set retain_bytes", e.free, e.kept, e.waiting)
}
