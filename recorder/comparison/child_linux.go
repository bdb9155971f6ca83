package main

import (
	"os/exec"
	"syscall"
)

// bind lets a child end when the thread that starts it does: with this
// process, for the main goroutine is locked to its thread.
func bind(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// settle waits until the disks have what was written, so that no measurement
// pays for the one before it.
func settle() { syscall.Sync() }
