//go:build unix

package daemon

import (
	"os"
	"syscall"
)

var (
	stopSignals   = []os.Signal{syscall.SIGTERM, os.Interrupt}
	reloadSignals = []os.Signal{syscall.SIGHUP}
	// ignoredSignals would end the daemon where its log has lost its reader.
	ignoredSignals = []os.Signal{syscall.SIGPIPE}
)
