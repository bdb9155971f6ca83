//go:build unix

package process

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup starts the command in a process group of its own, so that what it
// starts can be ended with it, and so that an interrupt at the terminal
// reaches this process alone, which then ends the child in order.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// killGroup kills the group that p leads.
func killGroup(p *os.Process) {
	// The group may be gone already.
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
}

// isRunning reports whether there is a process of this number, or one that
// this process may not ask.
func isRunning(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) != syscall.ESRCH }
