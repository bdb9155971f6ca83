//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package ship

import (
	"os"
	"syscall"
)

// lockFile keeps a second process away. The lock ends with the file, or the
// process.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
