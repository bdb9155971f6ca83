package daemon

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleTime gathers the events of one change: a renewal writes several
	// files.
	settleTime = 200 * time.Millisecond
	// lookInterval finds what no event tells of: some file systems, and files
	// that are mounted one by one, tell nothing.
	lookInterval = 10 * time.Second
	// maxLinks ends the way through links that lead round in a circle.
	maxLinks = 40
)

// watcher tells when files may have changed. It watches their folders, for
// files are replaced more often than written.
type watcher struct {
	events *fsnotify.Watcher // nil: the system does not tell, looking has to do
	// changed rings when it is time to look at the files.
	changed chan struct{}
	done    chan struct{}
	once    sync.Once
	// seen is what each file that is watched held when it was last read.
	seen map[string]content
}

// newWatcher makes a watcher that looks every so often by itself.
func newWatcher(every time.Duration) *watcher {
	w := &watcher{changed: make(chan struct{}, 1), done: make(chan struct{}), seen: map[string]content{}}
	var told <-chan fsnotify.Event
	var lost <-chan error
	if events, err := fsnotify.NewWatcher(); err == nil {
		w.events, told, lost = events, events.Events, events.Errors
	}
	go w.run(told, lost, every)
	return w
}

func (w *watcher) close() {
	w.once.Do(func() { close(w.done) })
	if w.events != nil {
		w.events.Close()
	}
}

// run gathers events. A folder in which something changes all the time does
// not put off the look: the first event sets its time.
func (w *watcher) run(told <-chan fsnotify.Event, lost <-chan error, every time.Duration) {
	look := time.NewTicker(every)
	defer look.Stop()
	var settled <-chan time.Time
	settle := func() {
		if settled == nil {
			settled = time.After(settleTime)
		}
	}
	for {
		select {
		case _, ok := <-told:
			if !ok {
				told = nil
				continue
			}
			settle()
		case _, ok := <-lost:
			if !ok {
				lost = nil
				continue
			}
			settle()
		case <-settled:
			settled = nil
			w.ring()
		case <-look.C:
			w.ring()
		case <-w.done:
			return
		}
	}
}

func (w *watcher) ring() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// refresh remembers what the files hold. It is called before they are read,
// so that no change is missed.
func (w *watcher) refresh() {
	for path := range w.seen {
		w.seen[path] = contentOf(path)
	}
	w.follow()
}

// turnTo watches these files from now on, and no others. What it has seen of
// them before stays as it was.
func (w *watcher) turnTo(files []string) {
	seen := map[string]content{}
	for _, path := range files {
		before, ok := w.seen[path]
		if !ok {
			before = contentOf(path)
		}
		seen[path] = before
	}
	w.seen = seen
	w.follow()
}

// differ tells whether any file holds anything else than it did.
func (w *watcher) differ() bool {
	// The same files may stand behind other links now.
	w.follow()
	for path, before := range w.seen {
		if contentOf(path) != before {
			return true
		}
	}
	return false
}

// follow watches the folders in which the files are now. One that cannot be
// watched is looked at from time to time.
func (w *watcher) follow() {
	if w.events == nil {
		return
	}
	var wanted []string
	for path := range w.seen {
		wanted = append(wanted, folders(path)...)
	}
	for _, folder := range wanted {
		_ = w.events.Add(folder)
	}
	for _, folder := range w.events.WatchList() {
		if !slices.Contains(wanted, folder) {
			_ = w.events.Remove(folder)
		}
	}
}

// folders are those in which a change can give a path another file: the
// file's own, and that of every link on the way to it.
func folders(path string) (all []string) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	root := filepath.VolumeName(path) + string(filepath.Separator)
	here, names := root, split(path[len(root):])
	for links := 0; len(names) > 0 && links < maxLinks; {
		next := filepath.Join(here, names[0])
		target, err := os.Readlink(next)
		if names = names[1:]; err != nil {
			if len(names) == 0 {
				all = append(all, here)
			}
			here = next
			continue
		}
		all = append(all, here)
		links++
		if filepath.IsAbs(target) {
			root := filepath.VolumeName(target) + string(filepath.Separator)
			here, target = root, target[len(root):]
		}
		names = append(split(target), names...)
	}
	return all
}

func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
}

// content stands for what a file holds, or for why it cannot be read.
type content struct {
	sum [sha256.Size]byte
	err string
}

// contentOf reads a file. One that is no file, such as a pipe, would not
// give the same twice, and counts as unchanged.
func contentOf(path string) content {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return content{err: errorText(err)}
	}
	b, err := os.ReadFile(path)
	return content{sum: sha256.Sum256(b), err: errorText(err)}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
