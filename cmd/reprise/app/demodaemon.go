package app

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
)

// demoDaemon is this program, started again as a daemon.
type demoDaemon struct {
	cmd   *exec.Cmd
	stdin io.Closer // ends with this process, and the daemon with it
	addr  string
	ready string
	log   bytes.Buffer
	ended chan struct{}
	err   error // how it ended
}

var readyLine = regexp.MustCompile(`^reprised: ready on ([^ ,]+)`)

// startDemoDaemon starts the daemon and waits for its ready line.
func startDemoDaemon(ctx context.Context, data, addr string) (*demoDaemon, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	d := &demoDaemon{ended: make(chan struct{}), cmd: exec.Command(self)}
	d.cmd.Args = []string{os.Args[0], "daemon", boundToStdin, "--data", data, "--listen", addr, "--http", "", "--log-level", "error"}
	d.cmd.Stderr = &d.log
	if d.stdin, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	line := make(chan string, 1)
	go d.attend(out, line)
	select {
	case d.ready = <-line:
	case <-ctx.Done():
		d.kill()
		return nil, fmt.Errorf("the daemon did not say that it is ready: %w", ctx.Err())
	}
	m := readyLine.FindStringSubmatch(d.ready)
	if m == nil {
		d.kill()
		return nil, fmt.Errorf("the daemon did not start: %s %s", d.ready, strings.TrimSpace(d.log.String()))
	}
	d.addr = m[1]
	return d, nil
}

// attend reads the first line and waits for the end.
func (d *demoDaemon) attend(out io.Reader, line chan<- string) {
	r := bufio.NewReader(out)
	s, _ := r.ReadString('\n')
	line <- strings.TrimSpace(s)
	_, _ = io.Copy(io.Discard, r)
	d.err = d.cmd.Wait()
	close(d.ended)
}

func (d *demoDaemon) pid() int { return d.cmd.Process.Pid }

// kill ends the process at once, if it has not ended, and waits until it is
// gone.
func (d *demoDaemon) kill() {
	_ = d.cmd.Process.Kill()
	<-d.ended
}

// stop asks the daemon to drain, and expects exit code 0.
func (d *demoDaemon) stop(ctx context.Context) error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-d.ended:
	case <-ctx.Done():
		return errors.New("the daemon did not drain in time")
	}
	if d.err != nil {
		return fmt.Errorf("the daemon ended with %w: %s", d.err, strings.TrimSpace(d.log.String()))
	}
	return nil
}
