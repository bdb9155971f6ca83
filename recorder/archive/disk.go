package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"syscall"

	"reprise/recorder"
)

// Disk is a data folder as the archiver sees it: names are slash-separated
// paths below it. Every recorder.FS has all of it but Folders, with the same
// promises; see Below. Calls may overlap.
type Disk interface {
	// OpenFile opens a file to be read, or with create to be read and
	// written, made where it does not exist.
	OpenFile(name string, create bool) (recorder.File, error)
	MkdirAll(name string) error
	// List gives the names of the regular files in a folder, Folders those of
	// the folders in it. Neither follows a link. A disk that knows no folders
	// answers with errors.ErrUnsupported.
	List(dir string) ([]string, error)
	Folders(dir string) ([]string, error)
	Rename(from, to string) error
	Remove(name string) error
	SyncDir(dir string) error
}

// folder is a Disk: nothing outside of it can be reached, by no name and by
// no link.
type folder struct{ root *os.Root }

// openFolder opens a data folder.
func openFolder(dir string) (*folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &folder{root}, nil
}

func (d *folder) Close() error { return d.root.Close() }

// Modes of what is made, as the recorder's.
const (
	folderMode = 0o750
	fileMode   = 0o640
)

func (d *folder) OpenFile(name string, create bool) (recorder.File, error) {
	flags := os.O_RDONLY
	if create {
		flags = os.O_RDWR | os.O_CREATE
	}
	f, err := d.root.OpenFile(name, flags, fileMode)
	if err != nil {
		return nil, err
	}
	return openFile{f}, nil
}

type openFile struct{ *os.File }

func (f openFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func (d *folder) MkdirAll(name string) error { return d.root.MkdirAll(name, folderMode) }

func (d *folder) List(dir string) ([]string, error) {
	return d.entries(dir, fs.FileMode.IsRegular)
}

func (d *folder) Folders(dir string) ([]string, error) {
	return d.entries(dir, fs.FileMode.IsDir)
}

func (d *folder) entries(dir string, wanted func(fs.FileMode) bool) ([]string, error) {
	f, err := d.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	var names []string
	for _, e := range list {
		if wanted(e.Type()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (d *folder) Rename(from, to string) error { return d.root.Rename(from, to) }

func (d *folder) Remove(name string) error { return d.root.Remove(name) }

// SyncDir makes the entries of a folder durable. Windows keeps them so by
// itself, and some network file systems have no such call.
func (d *folder) SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// below is a data folder on a disk of the recorder's.
type below struct {
	recorder.FS
	dir string
}

// Below gives the data folder dir of a recorder's disk.
func Below(fs recorder.FS, dir string) Disk { return below{fs, dir} }

func (d below) path(name string) string { return filepath.Join(d.dir, filepath.FromSlash(name)) }

func (d below) OpenFile(name string, create bool) (recorder.File, error) {
	return d.FS.OpenFile(d.path(name), create)
}

func (d below) MkdirAll(name string) error { return d.FS.MkdirAll(d.path(name)) }

func (d below) List(dir string) ([]string, error) { return d.FS.List(d.path(dir)) }

// Folders is only there where the disk knows folders.
func (d below) Folders(dir string) ([]string, error) {
	if known, ok := d.FS.(interface {
		Folders(dir string) ([]string, error)
	}); ok {
		return known.Folders(d.path(dir))
	}
	return nil, fmt.Errorf("folders in %s: %w", dir, errors.ErrUnsupported)
}

func (d below) Rename(from, to string) error { return d.FS.Rename(d.path(from), d.path(to)) }

func (d below) Remove(name string) error { return d.FS.Remove(d.path(name)) }

func (d below) SyncDir(dir string) error { return d.FS.SyncDir(d.path(dir)) }

// makeFolder makes a folder and those above it, and makes their names
// durable.
func makeFolder(d Disk, name string) error {
	if err := d.MkdirAll(name); err != nil {
		return err
	}
	for name != "." {
		name = path.Dir(name)
		if err := d.SyncDir(name); err != nil {
			return err
		}
	}
	return nil
}

// exists tells whether a file is there.
func exists(d Disk, name string) (bool, error) {
	f, err := d.OpenFile(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// workSuffix ends the name of a file that is being written. No id has the
// character.
const workSuffix = "~new"

// writeWhole puts b under a name so that after a crash the file is the old
// one or the new one: under a name of its own first, synced, renamed.
func writeWhole(d Disk, name string, b []byte) error {
	fresh := name + workSuffix
	f, err := d.OpenFile(fresh, true)
	if err != nil {
		return err
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(b, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := d.Rename(fresh, name); err != nil {
		return err
	}
	return d.SyncDir(path.Dir(name))
}

// readWhole reads a small file.
func readWhole(d Disk, name string) ([]byte, error) {
	f, err := d.OpenFile(name, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, 0, size))
}
