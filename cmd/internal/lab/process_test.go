package lab

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"reprise/cmd/internal/load"
)

// text collects what a process writes.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (x *text) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(b)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.String()
}

// process is this program in another role.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	log    text
	lines  chan string // of its standard output, one by one
	exited chan struct{}
}

// command is this program in a role, not started yet.
func command(t testing.TB, as string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	// The race detector else lets a program wait a second at its end.
	cmd.Env = append(os.Environ(), role+"="+as, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// launch starts a command. It is killed at the end of the test, and ends with
// this program in any case.
func launch(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, lines: make(chan string, 1<<16), exited: make(chan struct{})}
	cmd.Stderr = &p.log
	out, err := cmd.StdoutPipe()
	if err == nil {
		p.stdin, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go p.attend(out)
	t.Cleanup(func() {
		p.kill()
		for _, bad := range []string{"DATA RACE", "panic: ", "fatal error: "} {
			if strings.Contains(p.log.String(), bad) {
				t.Errorf("%s in process %d", strings.TrimSpace(bad), cmd.Process.Pid)
			}
		}
		if t.Failed() {
			t.Logf("log of process %d:\n%s", cmd.Process.Pid, shorten(p.log.String()))
		}
	})
	return p
}

// attend passes the lines on and waits for the end. A line that the end cut
// off is none.
func (p *process) attend(out io.Reader) {
	defer close(p.exited)
	defer close(p.lines)
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			break
		}
		p.lines <- strings.TrimSuffix(line, "\n")
	}
	p.cmd.Wait()
}

// shorten keeps the last lines of a log.
func shorten(s string) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

// kill is kill -9.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.exited
}

// terminate asks for the end, and wants exit code 0.
func (p *process) terminate() {
	p.t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.exitCode(); code != 0 {
		p.t.Errorf("exit code %d, want 0", code)
	}
}

// exitCode waits for the end.
func (p *process) exitCode() int {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("still running after %v\n%s", patience, shorten(p.log.String()))
		return -1
	}
}

// server is a daemon in a process of its own.
type server struct {
	*process
	addr, pin, http string
}

var readyLine = regexp.MustCompile(`ready on (\S+), fingerprint ([0-9a-f]{64})(?:, http ([^\s,]+))?`)

// start starts a daemon on a data folder and waits until it is ready.
func start(t testing.TB, data, listen string, more ...string) *server {
	t.Helper()
	s, ok := tryStart(t, data, listen, more...)
	if !ok {
		t.Fatalf("the daemon did not start:\n%s", shorten(s.log.String()))
	}
	return s
}

// tryStart starts a daemon and waits until it is ready, or has ended.
func tryStart(t testing.TB, data, listen string, more ...string) (*server, bool) {
	t.Helper()
	return await(t, command(t, asDaemon, append([]string{"--data", data, "--listen", listen, "--http", "127.0.0.1:0"}, more...)...))
}

// await starts a command and waits for its ready line; false where it ended
// before.
func await(t testing.TB, cmd *exec.Cmd) (*server, bool) {
	t.Helper()
	s := &server{process: launch(t, cmd)}
	select {
	case line, ok := <-s.lines:
		if !ok {
			<-s.exited
			return s, false
		}
		m := readyLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("ready line %q", line)
		}
		s.addr, s.pin, s.http = m[1], m[2], m[3]
	case <-time.After(patience):
		t.Fatalf("not ready\n%s", shorten(s.log.String()))
	}
	return s, true
}

// metric reads one figure of the daemon.
func (s *server) metric(name string) float64 {
	s.t.Helper()
	m, err := load.ReadMetrics(s.http)
	if err != nil {
		s.t.Fatal(err)
	}
	v, ok := m[name]
	if !ok {
		s.t.Fatalf("the daemon has no metric %s", name)
	}
	return v
}
