package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"reprise/format"
)

// audit compares the catalog with the archive folder. Archives that somebody
// took away leave the catalog. Those that it lacks, since a crash came between
// or it was lost, are entered, if the ledger says that their content was
// recorded or filed here; any other file is somebody else's, and left alone.
func (a *Archiver) audit(ctx context.Context) error {
	found := map[string]bool{}
	err := a.walk(ctx, archiveFolder, found)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range a.catalog.all() {
		if found[e.File] {
			continue
		}
		a.log.Warn("archive is no longer there", "session", e.ID, "file", e.File)
		errs = append(errs, a.catalog.drop(e, "taken away"))
	}
	for name := range found {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if a.catalog.named(name) == nil && strings.HasSuffix(name, replayEnding) {
			errs = append(errs, a.adopt(name))
		}
	}
	return errors.Join(errs...)
}

// walk gathers the files of a folder and of those in it.
func (a *Archiver) walk(ctx context.Context, dir string, found map[string]bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	names, err := a.disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking into %s: %w", dir, err)
	}
	for _, name := range names {
		found[path.Join(dir, name)] = true
	}
	folders, err := a.disk.Folders(dir)
	if err != nil {
		return fmt.Errorf("looking into %s: %w", dir, err)
	}
	for _, folder := range folders {
		if path.Join(dir, folder) == workFolder {
			continue
		}
		if err := a.walk(ctx, path.Join(dir, folder), found); err != nil {
			return err
		}
	}
	return nil
}

// adopt enters an archive that the catalog lacks.
func (a *Archiver) adopt(name string) error {
	r, err := a.openReplay(name, unpaced)
	if err != nil {
		a.foreign(name, err.Error())
		return nil
	}
	defer r.Close()
	sum := r.Summary()
	if sum.End == nil || sum.Digest == nil {
		a.foreign(name, "it has no end")
		return nil
	}
	own := ownID(name, sum.Meta.Session)
	for _, id := range [...]string{own, withDigest(own, *sum.Digest)} {
		st, ok := a.cfg.Sessions.Lookup(id)
		if !ok || st.Ended == nil || st.Ended.Digest != *sum.Digest || a.catalog.find(st.ID) != nil {
			continue
		}
		e := &Entry{ID: st.ID, File: name, Game: sum.Meta.Game, End: sum.End.State, Since: st.Ended.EndedAt, Bytes: r.Bytes, Source: st.Bytes,
			Root: *sum.Digest, Found: true}
		a.log.Info("archive that the catalog lacked is entered", "session", e.ID, "file", name)
		return a.catalog.add(e)
	}
	a.foreign(name, "the ledger does not know its content, or it is filed under another name")
	return nil
}

// foreign says once that a file of the archive folder is left alone.
func (a *Archiver) foreign(name, why string) {
	if !a.said[name] {
		a.said[name] = true
		a.log.Warn("file in the archive folder is left alone", "file", name, "reason", why)
	}
}

// gameOf gives the game of a session's file that is not archived; false where
// it cannot be read.
func gameOf(d Disk, name string) (string, bool) {
	f, err := d.OpenFile(name, false)
	if err != nil {
		return "", false
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return "", false
	}
	r, err := format.NewFile(f, size)
	if err != nil {
		return "", false
	}
	return r.Summary().Meta.Game, true
}
