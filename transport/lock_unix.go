//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package transport

import (
	"fmt"
	"os"
	"syscall"
)

// lockFile keeps a second process from writing the same spool. The lock ends
// with the file, or the process.
func lockFile(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s is in use by another process: %w", f.Name(), err)
	}
	return nil
}
