//go:build unix

package process

import (
	"bytes"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// killSelf ends this process as a crash does.
func killSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }

func ignoreSignals() { signal.Ignore() }

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err == nil {
		return !bytes.Contains(status, []byte("State:\tZ"))
	}
	return syscall.Kill(pid, 0) == nil
}
