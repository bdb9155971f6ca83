package app

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// testDaemon is a daemon in a process of its own.
type testDaemon struct {
	data, addr, pin string
	cmd             *exec.Cmd
	stdin           io.Closer
	stderr          bytes.Buffer
	once            sync.Once
}

// launchDaemon starts a daemon with this program's hidden command.
func launchDaemon(data string, flags ...string) (*testDaemon, error) {
	self, err := exec.LookPath("reprise")
	if err != nil {
		return nil, err
	}
	args := []string{"reprise", "daemon", boundToStdin, "--data", data, "--listen", "127.0.0.1:0", "--http", "", "--log-level", "error",
		"--min-free", "1MiB", "--segment-bytes", "1MiB"}
	d := &testDaemon{data: data, cmd: &exec.Cmd{Path: self, Args: append(args, flags...), Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0")}}
	d.cmd.Stderr = &d.stderr
	if d.stdin, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	m := readyLine.FindStringSubmatch(line)
	pin, err := os.ReadFile(filepath.Join(data, "tls", "fingerprint"))
	if m == nil || err != nil {
		d.kill()
		return nil, fmt.Errorf("the daemon said %q and %q (%v)", line, d.stderr.String(), err)
	}
	d.addr, d.pin = m[1], strings.TrimSpace(string(pin))
	return d, nil
}

func (d *testDaemon) kill() {
	d.once.Do(func() {
		d.stdin.Close()
		d.cmd.Process.Kill()
		d.cmd.Wait()
	})
}

// startDaemon runs a daemon until the test ends.
func startDaemon(t *testing.T) *testDaemon {
	t.Helper()
	d, err := launchDaemon(t.TempDir(), "--file-interval", "5ms")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	return d
}

// record runs the command record against the daemon.
func (d *testDaemon) record(args ...string) result {
	return reprise(append([]string{"record", "--server", d.addr, "--pin", d.pin}, args...)...)
}

// startRecord starts the command record as a process of its own.
func (d *testDaemon) startRecord(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := exec.LookPath("reprise")
	if err != nil {
		t.Fatal(err)
	}
	stderr := new(bytes.Buffer)
	cmd := &exec.Cmd{Path: self, Args: append([]string{"reprise", "record", "--server", d.addr, "--pin", d.pin}, args...), Stderr: stderr,
		Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0")}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, stderr
}

// sealed is the path of a session's sealed file.
func (d *testDaemon) sealed(t *testing.T, session string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(d.data, "sealed", "room-"+session+"-*.rply"))
	if err != nil || len(found) != 1 {
		t.Fatalf("session %s has %d sealed files: %v", session, len(found), err)
	}
	return found[0]
}
