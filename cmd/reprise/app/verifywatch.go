package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"
)

const (
	// watchQuiet is how long a file must be left alone before it is looked
	// at, watchPoll how often that is checked.
	watchQuiet = time.Second
	watchPoll  = 100 * time.Millisecond
)

// runWatch verifies what is in the folders and what appears there, until the
// context ends.
func (o *verifyOptions) runWatch(cmd *cobra.Command, folders []string) error {
	w, err := newFolderWatch(folders)
	if err != nil {
		return err
	}
	defer w.notify.Close()
	shown := newProgress(cmd.ErrOrStderr())
	v := &verifier{o: o, cmd: cmd, inside: o.jobs, files: newOpener(cmd), sims: o.sim.open(cmd), shown: shown, position: "watching"}
	defer v.sims.close()
	var worst outcome
	for {
		path, err := w.next(cmd.Context())
		if err != nil {
			w.sayWaiting(cmd)
			return errors.Join(err, worst.err())
		}
		if path == "" {
			w.sayWaiting(cmd)
			return worst.err()
		}
		if w.live(v.files, path) {
			continue
		}
		r := v.verify(replayEntry{path: path})
		shown.clear()
		worst.add(r.err)
		if err := r.print(cmd.OutOrStdout(), o.json); err != nil {
			return err
		}
	}
}

// folderWatch tells which files of some folders are new or changed.
type folderWatch struct {
	notify *fsnotify.Watcher
	// changed holds, for each file to be looked at, when it last changed;
	// waiting those that were looked at and are still being recorded.
	changed map[string]time.Time
	waiting map[string]bool
	order   []string
}

func newFolderWatch(folders []string) (*folderWatch, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("folders cannot be watched: %w", cause(err))
	}
	w := &folderWatch{notify: notify, changed: map[string]time.Time{}, waiting: map[string]bool{}}
	for _, folder := range folders {
		st, err := os.Stat(folder)
		if err == nil && !st.IsDir() {
			err = usagef("--watch %s: that is no folder", printable(folder))
		}
		if err == nil {
			err = w.add(folder, time.Time{})
		}
		if err != nil {
			notify.Close()
			return nil, atFile(folder, err)
		}
	}
	return w, nil
}

// add watches a folder and those inside it; its files count as changed at the
// given time.
func (w *folderWatch) add(folder string, at time.Time) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it has gone again
		case err != nil:
			return cause(err)
		case d.IsDir():
			return w.notify.Add(path)
		}
		w.touch(path, at)
		return nil
	})
}

func (w *folderWatch) touch(path string, at time.Time) {
	if !hasReplayEnding(path) {
		return
	}
	if _, ok := w.changed[path]; !ok {
		w.order = append(w.order, path)
	}
	w.changed[path] = at
}

// next gives the next file that is to be looked at; "" when the context ends.
func (w *folderWatch) next(ctx context.Context) (string, error) {
	poll := time.NewTicker(watchPoll)
	defer poll.Stop()
	for {
		if ctx.Err() != nil {
			return "", nil
		}
		if path := w.quiet(time.Now()); path != "" {
			return path, nil
		}
		select {
		case <-ctx.Done():
		case <-poll.C:
		case err := <-w.notify.Errors:
			return "", fmt.Errorf("the folders are not watched any more: %w", err)
		case event := <-w.notify.Events:
			if err := w.take(event); err != nil {
				return "", err
			}
		}
	}
}

// quiet takes out the oldest file that has been left alone.
func (w *folderWatch) quiet(now time.Time) string {
	for i, path := range w.order {
		if now.Sub(w.changed[path]) < watchQuiet {
			continue
		}
		w.order = append(w.order[:i:i], w.order[i+1:]...)
		delete(w.changed, path)
		return path
	}
	return ""
}

func (w *folderWatch) take(event fsnotify.Event) error {
	if !event.Has(fsnotify.Create) && !event.Has(fsnotify.Write) {
		return nil
	}
	if st, err := os.Stat(event.Name); err == nil && st.IsDir() {
		return w.add(event.Name, time.Now())
	}
	w.touch(event.Name, time.Now())
	return nil
}

// live reports whether a file is still being recorded: it will change again.
func (w *folderWatch) live(files *opener, path string) bool {
	delete(w.waiting, path)
	r, err := files.open(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) // it has gone again
	}
	defer r.Close()
	if r.Unproven() || r.Summary().End != nil {
		return false
	}
	w.waiting[path] = true
	return true
}

// sayWaiting tells what was left out.
func (w *folderWatch) sayWaiting(cmd *cobra.Command) {
	if n := len(w.waiting); n > 0 {
		say(cmd.ErrOrStderr(), "%s still being recorded: not verified", counted(n, "replay"))
	}
}
