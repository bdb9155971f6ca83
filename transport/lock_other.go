//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package transport

import "os"

// lockFile does nothing here: the daemon's fence alone keeps two processes
// from recording one session.
func lockFile(*os.File) error { return nil }
