package ship

import (
	"context"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// watch passes on the names of files that change, and rings where some may
// have been missed. It returns at once; where the system cannot watch, the
// rescan alone finds what changes.
func (s *shipper) watch(ctx context.Context) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	if err := w.Add(s.cfg.Dir); err != nil {
		w.Close()
		return err
	}
	go s.pass(ctx, w)
	return nil
}

func (s *shipper) pass(ctx context.Context, w *fsnotify.Watcher) {
	defer w.Close()
	for {
		select {
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			if e.Op != fsnotify.Chmod {
				s.changed(ctx, filepath.Base(e.Name))
			}
		case _, ok := <-w.Errors:
			if !ok {
				return
			}
			s.changed(ctx, "") // some events are lost
		case <-ctx.Done():
			return
		}
	}
}

// changed tells the loop that a file has changed; any, where name is empty.
func (s *shipper) changed(ctx context.Context, name string) {
	if _, ok := stem(name); !ok && name != "" {
		return
	}
	select {
	case s.touched <- name:
	case <-ctx.Done():
	}
}
