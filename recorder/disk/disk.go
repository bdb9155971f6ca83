package disk

import "io"

// FS is the disk as the recorder sees it. Calls may overlap; names are
// paths below the data folder. A missing file is reported as an error that
// matches fs.ErrNotExist. An FS that fails a write or a sync may have kept
// any part of the bytes: the recorder never trusts them afterwards.
type FS interface {
	// OpenFile opens a file for reading and writing; with create it is
	// made where it does not exist, and its folder's entry is not durable
	// before SyncDir.
	OpenFile(name string, create bool) (File, error)
	// MkdirAll makes a folder and those above it.
	MkdirAll(name string) error
	// List gives the names of the regular files in a folder.
	List(dir string) ([]string, error)
	// Rename moves a file within the data folder, all or nothing, also in
	// a crash.
	Rename(from, to string) error
	// Remove deletes a file.
	Remove(name string) error
	// SyncDir makes the entries of a folder durable.
	SyncDir(dir string) error
	// SyncFiles makes all bytes that were written to the named files
	// durable, and may do so for others. A file that is gone is passed
	// over. An error means that any of the files may lack any bytes
	// written since the last good sync.
	SyncFiles(names []string) error
	// Free is the number of bytes that can still be stored.
	Free() (int64, error)
	// Lock takes the lock that Running looks at; it fails where another
	// process holds it.
	Lock(name string) (io.Closer, error)
}

// File is an open file. Reads may overlap writes.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Truncate sets the size; a longer file reads as zeros at its end.
	Truncate(size int64) error
	Size() (int64, error)
	// Sync makes the file's bytes and its size durable.
	Sync() error
}

// Starter is a File that can begin to store n bytes from off on, so that a
// later sync finds less to do. It promises nothing.
type Starter interface {
	StartSync(off, n int64)
}
