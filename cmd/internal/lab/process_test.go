package lab

import (
	"os/exec"
	"regexp"
	"testing"

	"reprise/cmd/internal/load"
	"reprise/cmd/internal/proctest"
)

// process is this program in another role.
type process struct {
	*proctest.Process
	t testing.TB
}

// command is this program in a role, not started yet.
func command(t testing.TB, as string, args ...string) *exec.Cmd {
	t.Helper()
	return proctest.Command(t, role+"="+as, args...)
}

// launch starts a command. It ends with this program in any case.
func launch(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	return &process{proctest.Start(t, cmd), t}
}

// terminate asks for the end, and wants exit code 0.
func (p *process) terminate() {
	p.t.Helper()
	p.Terminate()
	if code := p.exitCode(); code != 0 {
		p.t.Errorf("exit code %d, want 0", code)
	}
}

// exitCode waits for the end.
func (p *process) exitCode() int {
	p.t.Helper()
	return p.ExitCode(patience)
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
		t.Fatalf("the daemon did not start:\n%s", s.LastLog())
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
	line, ok := s.Line(patience)
	if !ok {
		<-s.Exited
		return s, false
	}
	m := readyLine.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("ready line %q", line)
	}
	s.addr, s.pin, s.http = m[1], m[2], m[3]
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
