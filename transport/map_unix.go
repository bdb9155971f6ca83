//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package transport

import (
	"os"
	"syscall"
)

// mapFile maps the first size bytes of a file, shared with every process
// that reads it. The mapping outlives the descriptor.
func mapFile(f *os.File, size int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

func unmapFile(b []byte) error { return syscall.Munmap(b) }
