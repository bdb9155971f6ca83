package archive

import (
	"context"
	"path"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// watch has the inbox looked at as soon as something happens in it. Events may
// be lost, and some file systems tell of none: every round looks as well.
func (a *Archiver) watch(ctx context.Context) {
	events, err := fsnotify.NewWatcher()
	if err == nil {
		defer events.Close()
		err = events.Add(filepath.Join(a.cfg.Dir, inboxFolder))
	}
	if err != nil {
		a.log.Warn("the inbox cannot be watched, and is looked at from time to time", "every", roundInterval, "error", err)
		return
	}
	for {
		select {
		case e, ok := <-events.Events:
			if !ok {
				return
			}
			a.inbox.changed(path.Join(inboxFolder, filepath.Base(e.Name)))
			if e.Has(fsnotify.Create) {
				a.Wake()
			}
		case _, ok := <-events.Errors:
			if !ok {
				return
			}
			a.Wake()
		case <-ctx.Done():
			return
		}
	}
}
