package lab

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"reprise/cmd/internal/daemon"
	"reprise/cmd/internal/proctest"
)

// role in the environment makes the test program something else.
const role = "REPRISE_LAB_ROLE"

const (
	asDaemon     = "daemon"
	asGameServer = "game server"
	asCrashing   = "crashing daemon"
)

func TestMain(m *testing.M) {
	as := os.Getenv(role)
	if as != "" {
		limitDescriptors()
	}
	switch as {
	case "":
		flag.Parse()
		if why := leftOut(); why != "" {
			fmt.Printf("the failure laboratory is left out %s: REPRISE_LAB=1 runs it all the same, REPRISE_LONG=1 at full length\n", why)
			os.Exit(0)
		}
		runTogether()
		os.Exit(m.Run())
	case asDaemon:
		endWithParent()
		os.Exit(daemon.Main(os.Args[1:], os.Stdout, os.Stderr))
	case asGameServer:
		os.Exit(gameServerMain(os.Args[1:]))
	case asCrashing:
		endWithParent()
		os.Exit(crashingMain(os.Args[1:]))
	}
	fmt.Fprintf(os.Stderr, "no such role: %s\n", as)
	os.Exit(2)
}

// leftOut says why the scenarios are not run; nothing where they are.
func leftOut() string {
	switch {
	case os.Getenv("REPRISE_LAB") != "" || long():
		return ""
	case testing.Short():
		return "with -short"
	case raceDetector:
		return "under the race detector, which makes its daemons several times slower"
	}
	return ""
}

// runTogether has more scenarios run at once than there are processors, unless
// told otherwise: most of their time they wait.
func runTogether() {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
}

// endWithParent ends this process with the one that holds the other end of
// its standard input, however that ends.
func endWithParent() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
}

// long tells whether scenarios are to take their full time.
func long() bool { return os.Getenv("REPRISE_LONG") != "" }

// pick chooses between the numbers of the short and of the long form.
func pick[T any](short, full T) T {
	if long() {
		return full
	}
	return short
}

// patience bounds every wait for something that should take far less, also
// where other tests take the processors.
const patience = 3 * time.Minute

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

// promptly holds a time to its bound. A short form shares its processors
// with other tests, so that it only tells.
func promptly(t testing.TB, what string, took, bound time.Duration) {
	t.Helper()
	switch {
	case took <= bound:
	case long():
		t.Errorf("%s took %v, want at most %v", what, took, bound)
	default:
		t.Logf("%s took %v, more than %v: held against it at full length only", what, took, bound)
	}
}

// random is a source of numbers that REPRISE_SEED repeats.
func random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("REPRISE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("REPRISE_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// takenPorts are those that freePort gave away.
var takenPorts sync.Map

// freePort finds a UDP port for a daemon that comes back to it. It is none
// that the system gives to clients, so nobody takes it meanwhile.
func freePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		c, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		c.Close()
		// A daemon that was killed leaves its port to others for a moment.
		if _, taken := takenPorts.LoadOrStore(addr, true); !taken {
			return addr
		}
	}
	t.Fatal("no UDP port is free")
	return ""
}
