package recorder

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes a file's bytes durable, and of its attributes only what
// reading them needs.
func syncData(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
		return nil
	}
}

// startSync begins to write a part of a file back. What cannot be written the
// next sync of the whole file system tells.
func startSync(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}

// wholeSync tells whether one call can make many files durable and says so
// when it could not: syncfs hides failed writes before Linux 5.8.
var wholeSync = kernelAtLeast(5, 8)

func kernelAtLeast(major, minor int) bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var a, b int
	n, _ := fmt.Sscanf(string(bytes.TrimRight(u.Release[:], "\x00")), "%d.%d", &a, &b)
	return n == 2 && (a > major || a == major && b >= minor)
}

// syncAll makes durable all that was written to the file system of root.
func syncAll(root *os.File) error {
	if err := unix.Syncfs(int(root.Fd())); err != nil {
		return &os.PathError{Op: "syncfs", Path: root.Name(), Err: err}
	}
	return nil
}
