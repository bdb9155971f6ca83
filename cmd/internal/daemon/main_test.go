package daemon

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"reprise/cmd/internal/proctest"
	"reprise/format"
	"reprise/transport"
)

// asDaemon in the environment makes the test program the daemon.
const asDaemon = "REPRISE_TEST_DAEMON"

func TestMain(m *testing.M) {
	if os.Getenv(asDaemon) != "" {
		// The variables of the tests are no keys of the configuration.
		for _, name := range []string{asDaemon, "REPRISE_LONG", "REPRISE_SEED", "REPRISE_LAB"} {
			os.Unsetenv(name)
		}
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
	proctest.Eventually(t, patience, what, is)
}

// process is a daemon in a process of its own.
type process struct {
	*proctest.Process
	t               testing.TB
	addr, pin, http string
}

var readyLine = regexp.MustCompile(`^reprised: ready on (\S+), fingerprint ([0-9a-f]{64}), http (\S+), data (.+)$`)

// command is a daemon that is to be started.
func command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return proctest.Command(t, asDaemon+"=1", args...)
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
	return &process{Process: proctest.Start(t, cmd), t: t}
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
	line, _ := p.Line(patience)
	m := readyLine.FindStringSubmatch(line)
	if m == nil {
		p.t.Fatalf("ready line %q\n%s", line, &p.Log)
	}
	p.addr, p.pin, p.http = m[1], m[2], m[3]
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

// freePort is a TCP address on which nothing listens.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
