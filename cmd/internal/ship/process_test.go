package ship

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/cmd/internal/daemon"
	"reprise/cmd/internal/proctest"
)

// as in the environment makes the test program something else.
const as = "REPRISE_TEST_AS"

func TestMain(m *testing.M) {
	switch os.Getenv(as) {
	case "daemon":
		os.Exit(daemon.Main(os.Args[1:], os.Stdout, os.Stderr))
	case "ship":
		shipMain(os.Args[1], os.Args[2], os.Args[3])
	}
	os.Exit(m.Run())
}

// shipMain follows a folder until it is killed.
func shipMain(dir, addr, data string) {
	cfg, err := hasty(dir, addr, data)
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	cfg.Follow, cfg.OnEvent = true, func(e Event) { fmt.Println(e) }
	fmt.Println(Run(context.Background(), cfg))
	os.Exit(1)
}

// launch starts this program as something else.
func launch(t testing.TB, what string, args ...string) *proctest.Process {
	t.Helper()
	return proctest.Start(t, proctest.Command(t, as+"="+what, args...))
}

// startDaemon starts a daemon in a process of its own and returns its
// address.
func startDaemon(t testing.TB, data, listen string) (*proctest.Process, string) {
	t.Helper()
	p := launch(t, "daemon", "--data", data, "--listen", listen, "--http", "", "--segment-bytes", "512KiB", "--log-level", "warn")
	line, _ := p.Line(patience)
	m := readyLine.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("the daemon says %q\n%s", line, p.LastLog())
	}
	return p, m[1]
}

// Ship and daemon are killed in turn, while files grow.
func TestBothAreKilled(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
	rnd := seeded(t)
	host, addr := startDaemon(t, data, "127.0.0.1:0")
	shipping := launch(t, "ship", dir, addr, data)
	a, b := finished("both-a", 11, 1200).bytes(t), finished("", 12, 1200).bytes(t)
	grown := make(chan struct{}, 2)
	for name, content := range map[string][]byte{"a.rply": a, "b.rply": b} {
		g := grow(t, dir, name, content, rand.New(rand.NewPCG(rnd.Uint64(), 0)))
		go func() {
			g.all(len(content)/120, 10*time.Millisecond)
			grown <- struct{}{}
		}()
	}
	for range 4 {
		time.Sleep(time.Duration(50+rnd.IntN(200)) * time.Millisecond)
		shipping.Kill()
		shipping = launch(t, "ship", dir, addr, data)
		time.Sleep(time.Duration(50+rnd.IntN(200)) * time.Millisecond)
		host.Kill()
		host, addr = startDaemon(t, data, addr)
	}
	<-grown
	<-grown
	shipping.Kill()
	cfg, err := hasty(dir, addr, data)
	if err != nil {
		t.Fatal(err)
	}
	r := begin(t, cfg)
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
	same(t, a, sealedOne(t, data, "both-a"))
	same(t, b, sealedOne(t, data, "b"))
	if list := all(t, data); len(list) != 2 {
		t.Errorf("the daemon has %v, want two replays", list)
	}
}
