package load

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/cmd/internal/daemon"
	"reprise/transport"
)

// patience bounds every wait for something that should take far less.
const patience = 30 * time.Second

// running is a daemon in this process.
type running struct {
	data, addr, http string
	client           transport.ClientConfig
	stop             func()
}

var ready = regexp.MustCompile(`ready on (\S+), fingerprint (\w+), http (\S+),`)

func start(t *testing.T) *running {
	t.Helper()
	cfg := daemon.Default()
	cfg.Data, cfg.Listen, cfg.HTTP = filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", "127.0.0.1:0"
	cfg.SegmentBytes, cfg.DrainTimeout = 512<<10, daemon.Duration{Duration: 2 * time.Second}
	var log bytes.Buffer
	d := daemon.New(cfg, &log)
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	m := ready.FindStringSubmatch(d.Ready())
	if m == nil {
		t.Fatalf("ready line %q", d.Ready())
	}
	tls, err := transport.Trust{Pin: m[2]}.Config()
	if err != nil {
		t.Fatal(err)
	}
	r := &running{data: cfg.Data, addr: m[1], http: m[3], client: transport.ClientConfig{TLS: tls, ChunkLinger: 10 * time.Millisecond}}
	r.stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if err := d.Stop(ctx); err != nil {
			t.Errorf("stop: %v\n%s", err, &log)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func (r *running) dial(ctx context.Context, _ int) (*transport.Client, error) {
	return transport.Dial(ctx, []string{r.addr}, r.client)
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// The numbers of a run agree with each other and with the files.
func TestRun(t *testing.T) {
	r := start(t)
	const sessions, ticks = 20, 50
	result, err := Run(within(t, patience), Config{Dial: r.dial, Prefix: "run", Sessions: sessions, Connections: 3, Rate: 100, Duration: ticks * 10 * time.Millisecond,
		Players: 2, StepBytes: 40, Seal: true})
	if err != nil {
		t.Fatal(err)
	}
	const all = sessions * (1 + ticks)
	if result.Recorded != all || result.Acknowledged != all || result.LeftOut != 0 || len(result.Promises) != sessions || result.Connections != 3 {
		t.Errorf("%d ticks, %d acknowledged, %d left out, %d sessions, %d connections", result.Recorded, result.Acknowledged, result.LeftOut, len(result.Promises), result.Connections)
	}
	// The first tick of each session belongs to its opening.
	if h := result.Latency; h.Count() != sessions*ticks || h.Quantile(0.5) <= 0 || h.Max() > result.Elapsed+result.Sealing {
		t.Errorf("%d latencies, half of them up to %v, all up to %v", h.Count(), h.Quantile(0.5), h.Max())
	}
	if result.Opening <= 0 || result.Sealing <= 0 || result.Elapsed < (ticks-1)*10*time.Millisecond {
		t.Errorf("opened in %v, %v of ticks, sealed in %v", result.Opening, result.Elapsed, result.Sealing)
	}
	if want := sessions * ticks / result.Elapsed.Seconds(); result.PerSecond() != want {
		t.Errorf("%v ticks a second, want %v", result.PerSecond(), want)
	}
	for i := range result.Promises {
		if p := &result.Promises[i]; !p.Sealed || p.Next != 1+ticks || p.Durable != p.Next {
			t.Errorf("session %s: %+v", p.Session, p)
		}
	}
	tally, err := CountFiles(r.data, result.Promises)
	if want := (Tally{Sessions: sessions, Acknowledged: all, InFiles: all}); err != nil || tally != want {
		t.Errorf("files: %+v (%v), want %+v", tally, err, want)
	}
}

func TestRunFlatOut(t *testing.T) {
	r := start(t)
	result, err := Run(within(t, patience), Config{Dial: r.dial, Prefix: "flat", Sessions: 4, Connections: 2, Duration: 300 * time.Millisecond, Seal: true})
	if err != nil {
		t.Fatal(err)
	}
	if result.Recorded != result.Acknowledged || result.Recorded < 4*flatOutTurn {
		t.Errorf("%d ticks, %d acknowledged", result.Recorded, result.Acknowledged)
	}
	if tally, err := CountFiles(r.data, result.Promises); err != nil || tally.Missing != 0 || tally.InFiles != result.Recorded {
		t.Errorf("files: %+v (%v), want %d ticks", tally, err, result.Recorded)
	}
}

// Ticks that a client has no room for are counted apart, and are gaps.
func TestRunLeavesOut(t *testing.T) {
	r := start(t)
	r.client.SessionMemory = 4 << 10
	result, err := Run(within(t, patience), Config{Dial: r.dial, Prefix: "full", Sessions: 3, Connections: 1, Rate: 200, Duration: 500 * time.Millisecond, Players: 8,
		StepBytes: MaxStepBytes, Seal: true})
	if err != nil {
		t.Fatal(err)
	}
	if result.LeftOut == 0 || result.Recorded != result.Acknowledged || result.Recorded+result.LeftOut != 3*101 {
		t.Errorf("%d ticks, %d acknowledged, %d left out; want %d in all", result.Recorded, result.Acknowledged, result.LeftOut, 3*101)
	}
	tally, err := CountFiles(r.data, result.Promises)
	if want := (Tally{Sessions: 3, Acknowledged: result.Recorded, InFiles: result.Recorded, Gaps: result.LeftOut}); err != nil || tally != want {
		t.Errorf("files: %+v (%v), want %+v", tally, err, want)
	}
}

// A daemon that goes away for good is told from one that lost ticks.
func TestRunWithoutAcknowledgement(t *testing.T) {
	r := start(t)
	time.AfterFunc(300*time.Millisecond, r.stop)
	result, err := Run(within(t, patience), Config{Dial: r.dial, Prefix: "gone", Sessions: 3, Connections: 1, Rate: 100, Duration: time.Second, StepBytes: 40, Seal: true,
		Patience: 200 * time.Millisecond})
	if !errors.Is(err, ErrNotDurable) || !strings.Contains(err.Error(), "within 200ms") {
		t.Fatalf("error %v, want %v", err, ErrNotDurable)
	}
	r.stop()
	if result.Acknowledged == 0 || result.Acknowledged >= result.Recorded || result.Recorded != 3*101 {
		t.Errorf("%d ticks, %d acknowledged", result.Recorded, result.Acknowledged)
	}
	tally, err := CountFiles(r.data, result.Promises)
	if err != nil || tally.Missing != 0 || tally.Acknowledged != result.Acknowledged {
		t.Errorf("files: %+v (%v)", tally, err)
	}
}

func TestRunRefused(t *testing.T) {
	r := start(t)
	cfg := Config{Dial: r.dial, Prefix: "twice", Sessions: 2, Connections: 1, Rate: 100, Duration: 50 * time.Millisecond, Seal: true}
	if _, err := Run(within(t, patience), cfg); err != nil {
		t.Fatal(err)
	}
	var refusal *transport.Refusal
	if _, err := Run(within(t, patience), cfg); !errors.As(err, &refusal) || refusal.Code != transport.CodeExists {
		t.Errorf("ids again: %v, want %v", err, transport.CodeExists)
	}
	broken := errors.New("broken")
	cfg.Dial = func(context.Context, int) (*transport.Client, error) { return nil, broken }
	if _, err := Run(within(t, patience), cfg); err != broken {
		t.Errorf("error %v, want that of Dial", err)
	}
}

func TestMetrics(t *testing.T) {
	r := start(t)
	m, err := ReadMetrics(r.http)
	if err != nil || m["go_goroutines"] < 1 || m[`reprise_sessions{state="live"}`] != 0 {
		t.Errorf("metrics %v (%v)", m, err)
	}
	if _, ok := m[`reprise_sessions{state="live"}`]; !ok {
		t.Error("no figure with a label")
	}
	u, err := ReadUsage(r.http)
	if err != nil || u.MemoryBytes < 1<<20 {
		t.Errorf("usage %+v (%v)", u, err)
	}
	r.stop()
	if _, err := ReadUsage(r.http); err == nil {
		t.Error("no error without a daemon")
	}
}

func TestParseMetrics(t *testing.T) {
	m, err := parseMetrics(strings.NewReader("# HELP a b\na 1\nb{x=\"y z\"} 2e3\n\n"))
	if err != nil || len(m) != 2 || m["a"] != 1 || m[`b{x="y z"}`] != 2000 {
		t.Errorf("%v (%v)", m, err)
	}
	if _, err := parseMetrics(strings.NewReader("a b\n")); err == nil {
		t.Error("a value that is no number is no error")
	}
}
