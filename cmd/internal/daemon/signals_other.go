//go:build !unix

package daemon

import (
	"os"
	"syscall"
)

var (
	stopSignals = []os.Signal{syscall.SIGTERM, os.Interrupt}
	// reloadSignals is a signal that such a system never sends: there is no
	// reload by signal.
	reloadSignals  = []os.Signal{syscall.SIGHUP}
	ignoredSignals = []os.Signal{syscall.SIGPIPE}
)
