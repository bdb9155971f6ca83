package archive

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"strings"
	"sync"
	"time"
)

// A file that is dropped into the inbox may still be growing. It is taken
// once nothing has changed it for Config.Settle. One that ends like a
// finished replay, as it does when it was moved in, is taken at once; where
// that turns out to be wrong it waits like the others. A replay without an
// end may be a match that is on: it waits for noEndSettle.

// noEndSettle is how long nothing must have changed a replay without an end.
const noEndSettle = time.Minute

// finishedEnd is how every finished RPLY2 file ends; see the specification of
// the format.
const finishedEnd = "RPLY2END"

// inbox remembers the files that wait in the inbox.
type inbox struct {
	mu    sync.Mutex
	files map[string]*waiting // by name below the data folder
}

type waiting struct {
	size  int64
	since time.Time // of the last change
	// hurry is set while its end says that it is whole, long once it was
	// found to have no end.
	hurry, long bool
}

func newInbox() *inbox { return &inbox{files: map[string]*waiting{}} }

// changed notes that something has changed a file.
func (b *inbox) changed(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.files[name]; w != nil {
		w.since = time.Now()
	}
}

// wait has a file wait that was taken too early.
func (b *inbox) wait(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.files[name]; w != nil {
		w.long = w.long || !w.hurry
		w.hurry = false
	}
}

// hurried tells whether a file was taken by its end alone.
func (b *inbox) hurried(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.files[name]
	return w != nil && w.hurry
}

// quiet is for how long nothing has changed a file.
func (b *inbox) quiet(name string, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.files[name]
	if w == nil {
		return 0
	}
	return now.Sub(w.since)
}

// unfinishedNames end the names of files that their writers have not finished.
var unfinishedNames = []string{"~", ".tmp", ".part", ".partial", ".filepart", ".crdownload"}

// passedOver tells which names are not looked at.
func passedOver(name string) bool {
	if strings.HasPrefix(name, ".") {
		return true
	}
	for _, ending := range unfinishedNames {
		if strings.HasSuffix(strings.ToLower(name), ending) {
			return true
		}
	}
	return false
}

// dropped looks at the inbox, and gives the files whose time has come. there
// gets the names of all.
func (a *Archiver) dropped(now time.Time, there map[string]bool) ([]source, error) {
	names, err := a.disk.List(inboxFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []source
	var errs []error
	for _, base := range names {
		if passedOver(base) {
			continue
		}
		name := path.Join(inboxFolder, base)
		there[name] = true
		s, ready, err := a.look(name, now)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs = append(errs, err)
		case ready && a.tries.ready(name, now):
			list = append(list, s)
		}
	}
	a.inbox.only(there)
	return list, errors.Join(errs...)
}

// only forgets all but the files that are there.
func (b *inbox) only(there map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.files, func(name string, _ *waiting) bool { return !there[name] })
}

// look notes a file's size, and tells whether it may be taken.
func (a *Archiver) look(name string, now time.Time) (source, bool, error) {
	size, finished, err := a.sizeAndEnd(name)
	if err != nil {
		return source{}, false, err
	}
	a.inbox.mu.Lock()
	defer a.inbox.mu.Unlock()
	w := a.inbox.files[name]
	if w == nil {
		w = &waiting{size: size, since: now, hurry: finished}
		a.inbox.files[name] = w
	}
	if w.size != size {
		*w = waiting{size: size, since: now, hurry: finished}
	}
	quiet := now.Sub(w.since)
	ready := w.hurry || quiet >= a.cfg.Settle && !w.long || quiet >= max(a.cfg.Settle, noEndSettle)
	return source{name: name, dropped: true, since: now, bytes: size}, ready, nil
}

// sizeAndEnd tells how long a file is, and whether it ends like a finished
// replay.
func (a *Archiver) sizeAndEnd(name string) (size int64, finished bool, err error) {
	f, err := a.disk.OpenFile(name, false)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	if size, err = f.Size(); err != nil || size < int64(len(finishedEnd)) {
		return size, false, err
	}
	end := make([]byte, len(finishedEnd))
	if _, err := f.ReadAt(end, size-int64(len(end))); err != nil && err != io.EOF {
		return size, false, err
	}
	return size, string(end) == finishedEnd, nil
}
