package proctest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a program that a test has started.
type Process struct {
	Cmd   *exec.Cmd
	Stdin io.WriteCloser
	// Log is its standard error, up to CloseLog.
	Log Text
	// Lines are those of its standard output, one by one, up to its end. A
	// line that the end cut off is none. A program that was killed while it
	// was held up, too far ahead of the test, loses the last ones.
	Lines chan string
	// Exited is closed at its end.
	Exited chan struct{}

	t      testing.TB
	stderr io.ReadCloser
	// killed is closed when nobody need wait for its output any more.
	killed   chan struct{}
	killOnce sync.Once
}

// unread is how many lines of its output a program may be ahead of the test;
// then its output is held up.
const unread = 1 << 16

// Command is the test program itself with one more variable in its
// environment, not started yet.
func Command(t testing.TB, variable string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	// The race detector else lets a program wait a second at its end.
	cmd.Env = append(os.Environ(), variable, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// Start starts a command. It is killed at the end of the test, which fails
// where its log tells of a data race or a panic: the command's output and log
// are therefore not the test's to set.
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{t: t, Cmd: cmd, Lines: make(chan string, unread), Exited: make(chan struct{}), killed: make(chan struct{})}
	out, err := cmd.StdoutPipe()
	if err == nil {
		p.stderr, err = cmd.StderrPipe()
	}
	if err == nil {
		p.Stdin, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go p.attend(out)
	t.Cleanup(p.conclude)
	return p
}

// attend passes the output on and waits for the end.
func (p *Process) attend(out io.Reader) {
	defer close(p.Exited)
	defer close(p.Lines)
	var log sync.WaitGroup
	log.Go(func() { io.Copy(&p.Log, p.stderr) })
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err != nil || !p.pass(strings.TrimSuffix(line, "\n")) {
			break
		}
	}
	log.Wait()
	p.Cmd.Wait()
}

// pass hands a line over to the test; false once it was killed and there is
// no room: the lines end there, without a gap.
func (p *Process) pass(line string) bool {
	select {
	case p.Lines <- line:
		return true
	default:
	}
	select {
	case p.Lines <- line:
		return true
	case <-p.killed:
		return false
	}
}

// conclude ends the process and tells what it said.
func (p *Process) conclude() {
	p.Kill()
	pid := p.Cmd.Process.Pid
	for _, bad := range []string{"DATA RACE", "panic: ", "fatal error: "} {
		if strings.Contains(p.Log.String(), bad) {
			p.t.Errorf("%s in process %d", strings.TrimSpace(bad), pid)
		}
	}
	if p.t.Failed() {
		var rest []string
		for line := range p.Lines {
			rest = append(rest, line)
		}
		p.t.Logf("process %d printed, what nobody read:\n%s\nits log:\n%s", pid, shorten(strings.Join(rest, "\n")), p.LastLog())
	}
}

// LastLog is the end of the log, for a message.
func (p *Process) LastLog() string { return shorten(p.Log.String()) }

// shorten keeps the last lines of a text.
func shorten(s string) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

// Line waits for the next line of the output; false where it has ended.
func (p *Process) Line(bound time.Duration) (string, bool) {
	p.t.Helper()
	select {
	case line, ok := <-p.Lines:
		return line, ok
	case <-time.After(bound):
		p.t.Fatalf("it prints nothing within %v\n%s", bound, p.LastLog())
		return "", false
	}
}

// Kill is kill -9.
func (p *Process) Kill() {
	p.Cmd.Process.Kill()
	p.killOnce.Do(func() { close(p.killed) })
	<-p.Exited
}

// CloseLog takes the reader of its standard error away from it.
func (p *Process) CloseLog() { p.stderr.Close() }

// Terminate asks for the end.
func (p *Process) Terminate() { p.Cmd.Process.Signal(syscall.SIGTERM) }

// ExitCode waits for the end.
func (p *Process) ExitCode(bound time.Duration) int {
	p.t.Helper()
	select {
	case <-p.Exited:
		return p.Cmd.ProcessState.ExitCode()
	case <-time.After(bound):
		p.t.Fatalf("still running after %v\n%s", bound, p.LastLog())
		return -1
	}
}
