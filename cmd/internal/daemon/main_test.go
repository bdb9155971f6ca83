package daemon

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"reprise/format"
	"reprise/transport"
)

// asDaemon in the environment makes the test program the daemon.
const asDaemon = "REPRISE_TEST_DAEMON"

func TestMain(m *testing.M) {
	if os.Getenv(asDaemon) != "" {
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// patience bounds every wait for something that should take far less.
const patience = 30 * time.Second

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until is holds.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

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

// process is a daemon in a process of its own.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	out    text // all but the ready line
	log    text
	ready  chan string
	exited chan struct{}

	addr, pin, http string
}

var readyLine = regexp.MustCompile(`^reprised: ready on (\S+), fingerprint ([0-9a-f]{64}), http (\S+), data (.+)\n$`)

// command is a daemon that is to be started.
func command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asDaemon+"=1")
	return cmd
}

// launch starts a daemon without waiting for it.
func launch(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	cmd := command(t, args...)
	cmd.Env = append(cmd.Env, env...)
	return launched(t, cmd)
}

func launched(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("processes cannot be sent signals")
	}
	p := &process{t: t, cmd: cmd, ready: make(chan string, 1), exited: make(chan struct{})}
	if cmd.Stderr == nil {
		cmd.Stderr = &p.log
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		r := bufio.NewReader(out)
		line, _ := r.ReadString('\n')
		p.ready <- line
		io.Copy(&p.out, r)
		cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("log of process %d:\n%s", cmd.Process.Pid, &p.log)
		}
	})
	return p
}

// start starts a daemon on a data folder and waits until it is ready.
func start(t testing.TB, data, listen string, more ...string) *process {
	t.Helper()
	p := launch(t, nil, append([]string{"--data", data, "--listen", listen, "--http", "127.0.0.1:0", "--segment-bytes", "512KiB"}, more...)...)
	p.awaitReady()
	return p
}

func (p *process) awaitReady() {
	p.t.Helper()
	select {
	case line := <-p.ready:
		m := readyLine.FindStringSubmatch(line)
		if m == nil {
			p.t.Fatalf("ready line %q\n%s", line, &p.log)
		}
		p.addr, p.pin, p.http = m[1], m[2], m[3]
	case <-time.After(patience):
		p.t.Fatalf("not ready\n%s", &p.log)
	}
}

// kill is kill -9.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.exited
}

// terminate asks for the end.
func (p *process) terminate() { p.cmd.Process.Signal(syscall.SIGTERM) }

// exitCode waits for the end.
func (p *process) exitCode(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		p.t.Fatalf("still running after %v\n%s", limit, &p.log)
		return -1
	}
}

// dial connects a game server.
func dial(t testing.TB, addr, pin string, change ...func(*transport.ClientConfig)) *transport.Client {
	t.Helper()
	tls, err := transport.Trust{Pin: pin}.Config()
	if err != nil {
		t.Fatal(err)
	}
	cfg := transport.ClientConfig{TLS: tls, ChunkLinger: 10 * time.Millisecond, BackoffMin: 10 * time.Millisecond, BackoffMax: 200 * time.Millisecond, DeadAfter: time.Second,
		Background: true, OnError: func(session string, err error) { t.Logf("client, session %q: %v", session, err) }}
	for _, f := range change {
		f(&cfg)
	}
	c, err := transport.Dial(within(t, patience), []string{addr}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		c.Close(ctx)
	})
	return c
}

// files lists the replays in a folder of the data folder.
func files(t testing.TB, data, folder string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(data, folder, "*.rply"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// fileOf finds the one file of a session.
func fileOf(t testing.TB, data, id string) string {
	t.Helper()
	var found []string
	for _, path := range files(t, data, "*") {
		name := filepath.Base(path)
		if name[:strings.LastIndex(name, "-")] == "room-"+id {
			found = append(found, path)
		}
	}
	if len(found) != 1 {
		t.Fatalf("session %s has the files %v, want one", id, found)
	}
	return found[0]
}

// opened opens and checks a replay.
func opened(t testing.TB, path string) *format.File {
	t.Helper()
	f, err := format.Open(path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Check(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return f
}
