package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// The child finds in its environment where to connect to, and what to say
// there. The names are part of the protocol. They must not change.
const (
	// SocketVariable holds "unix:PATH" or "tcp:ADDRESS".
	SocketVariable = "REPRISE_SIM_SOCKET"
	// TokenVariable holds the token of the hello.
	TokenVariable = "REPRISE_SIM_TOKEN"
)

// outputGrace is how long the output of a child that has ended is waited for,
// where another process holds it open.
const outputGrace = 500 * time.Millisecond

// child is one process. It is always waited for, so none stays as a zombie.
type child struct {
	cmd  *exec.Cmd
	tail *tail
	// ended is closed when the process is gone and its output is read.
	ended chan struct{}
}

// startChild starts a process with its own group.
func startChild(words []string, o Options, address, token string) (*child, error) {
	c := &child{tail: &tail{out: o.Output}, ended: make(chan struct{})}
	c.cmd = exec.Command(words[0], words[1:]...)
	c.cmd.Env = append(append(os.Environ(), o.Env...), SocketVariable+"="+address, TokenVariable+"="+token)
	c.cmd.Stdout, c.cmd.Stderr = c.tail, c.tail
	c.cmd.WaitDelay = outputGrace
	ownGroup(c.cmd)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCommand, err)
	}
	go c.wait()
	return c, nil
}

func (c *child) wait() {
	// How the process ended is in its state.
	_ = c.cmd.Wait()
	killGroup(c.cmd.Process) // what it started and left behind
	close(c.ended)
}

// kill ends the process and those that it started, and waits until it is gone.
func (c *child) kill() {
	select {
	case <-c.ended: // its number may belong to another process by now
	default:
		killGroup(c.cmd.Process)
		<-c.ended
	}
}

// awaitEnd waits until the process is gone; false where it still runs then.
func (c *child) awaitEnd(most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-c.ended:
		return true
	case <-timer.C:
		return false
	}
}

// status says how the process ended.
func (c *child) status() string {
	if c.cmd.ProcessState == nil {
		return "its end is unknown"
	}
	return c.cmd.ProcessState.String()
}

// report makes an error of what is known of the child, which has ended.
// Killed says that it did not end by itself.
func (c *child) report(err error, killed bool) *ChildError {
	report := &ChildError{Err: err, Output: c.tail.lines()}
	if !killed {
		report.Status = c.status()
	}
	return report
}

// errEnded is a child that went away while it was needed.
var errEnded = errors.New("ended")
