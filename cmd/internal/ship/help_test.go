package ship

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/cmd/internal/daemon"
	"reprise/cmd/internal/proctest"
	"reprise/format"
	"reprise/transport"
)

// patience bounds every wait for something that should take far less.
const patience = 20 * time.Second

// eventually waits until is holds.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	proctest.Eventually(t, patience, what, is)
}

// host is a daemon in this process.
type host struct {
	t    testing.TB
	cfg  daemon.Config
	d    *daemon.Daemon
	log  proctest.Text
	addr string
}

var readyLine = regexp.MustCompile(`ready on (\S+), fingerprint`)

func newHost(t testing.TB, change ...func(*daemon.Config)) *host {
	t.Helper()
	cfg := daemon.Default()
	cfg.Data, cfg.Listen, cfg.HTTP = filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", ""
	cfg.SegmentBytes, cfg.FileInterval = 512<<10, daemon.Duration{Duration: 10 * time.Millisecond}
	for _, f := range change {
		f(&cfg)
	}
	h := &host{t: t, cfg: cfg}
	h.start()
	t.Cleanup(func() {
		h.stop()
		if t.Failed() {
			t.Logf("log of the daemon:\n%s", &h.log)
		}
	})
	return h
}

func (h *host) start() {
	h.t.Helper()
	h.d = daemon.New(h.cfg, &h.log)
	if err := h.d.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.addr = readyLine.FindStringSubmatch(h.d.Ready())[1]
	h.cfg.Listen = h.addr
}

func (h *host) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := h.d.Stop(ctx); err != nil {
		h.t.Errorf("stopping the daemon: %v", err)
	}
}

// trust is the TLS configuration for a daemon's data folder.
func trust(data string) (*tls.Config, error) {
	pin, err := os.ReadFile(filepath.Join(data, "tls", "fingerprint"))
	if err != nil {
		return nil, err
	}
	return transport.Trust{Pin: strings.TrimSpace(string(pin))}.Config()
}

// hasty ships dir to the daemon of a data folder, in a hurry.
func hasty(dir, addr, data string) (Config, error) {
	tls, err := trust(data)
	return Config{Dir: dir, Servers: []string{addr}, TLS: tls, Rescan: 50 * time.Millisecond, Idle: time.Hour,
		linger: 2 * time.Millisecond, settle: 20 * time.Millisecond, deadAfter: time.Second, backoffMax: 100 * time.Millisecond}, err
}

func (h *host) config(dir string) Config {
	h.t.Helper()
	cfg, err := hasty(dir, h.addr, h.cfg.Data)
	if err != nil {
		h.t.Fatal(err)
	}
	return cfg
}

// files lists the replays of a session in a data folder, with their folders.
func files(t testing.TB, data, id string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(data, "*", "room-"+id+"-????????T??????Z.rply"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// all lists every replay in a data folder.
func all(t testing.TB, data string) []string { return files(t, data, "*") }

// one is the one replay of a session.
func one(t testing.TB, data, id string) string {
	t.Helper()
	list := files(t, data, id)
	if len(list) != 1 {
		t.Fatalf("session %s has the files %v, want one", id, list)
	}
	return list[0]
}

// unfinished waits until the daemon has ended a session as unfinished, and
// gives its replay.
func unfinished(t testing.TB, data, id string) (path string) {
	t.Helper()
	eventually(t, "session "+id+" ends as unfinished", func() bool {
		list, err := filepath.Glob(filepath.Join(data, "unfinished", "room-"+id+"-*.rply"))
		must(t, err)
		if len(list) == 1 {
			path = list[0]
		}
		return path != ""
	})
	return path
}

// sealedOne is the one replay of a session that must be sealed.
func sealedOne(t testing.TB, data, id string) string {
	t.Helper()
	path := one(t, data, id)
	if folder := filepath.Base(filepath.Dir(path)); folder != "sealed" {
		t.Fatalf("session %s is in %s, want sealed", id, folder)
	}
	return path
}

// diary keeps the events of a run.
type diary struct {
	mu     sync.Mutex
	events []Event
}

func (d *diary) add(e Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

// of lists the events of a kind about a file; of any, where it is empty.
func (d *diary) of(kind EventKind, file string) []Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []Event
	for _, e := range d.events {
		if e.Kind == kind && (file == "" || e.File == file) {
			list = append(list, e)
		}
	}
	return list
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b strings.Builder
	for _, e := range d.events {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

// run is a Run that can be ended.
type run struct {
	diary
	t    testing.TB
	stop context.CancelFunc
	done chan struct{}
	err  error
}

func begin(t testing.TB, cfg Config) *run {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{t: t, stop: cancel, done: make(chan struct{})}
	cfg.OnEvent = r.add
	go func() {
		defer close(r.done)
		r.err = Run(ctx, cfg)
	}()
	t.Cleanup(func() {
		r.end()
		if t.Failed() {
			t.Logf("events:\n%s", r)
		}
	})
	return r
}

// follow is begin with Follow.
func follow(t testing.TB, cfg Config) *run {
	t.Helper()
	cfg.Follow = true
	return begin(t, cfg)
}

// end ends the run at once.
func (r *run) end() error {
	r.stop()
	return r.wait()
}

// wait waits for the end of the run.
func (r *run) wait() error {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(patience):
		r.t.Fatalf("the run does not end\n%s", r)
	}
	return r.err
}

// await waits for the n-th event of a kind about a file.
func (r *run) await(kind EventKind, file string, n int) Event {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("event %d of kind %d about %q", n, kind, file), func() bool { return len(r.of(kind, file)) >= n })
	return r.of(kind, file)[n-1]
}

// once ships what is there, and wants no error.
func once(t testing.TB, cfg Config) *run {
	t.Helper()
	r := begin(t, cfg)
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
	return r
}

// summary is the last event's.
func (r *run) summary() Summary {
	r.t.Helper()
	list := r.of(EventSummary, "")
	if len(list) != 1 {
		r.t.Fatalf("%d summaries\n%s", len(list), r)
	}
	return *list[0].Summary
}

func put(t testing.TB, dir, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func appendTo(t testing.TB, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	_, err = f.Write(b)
	must(t, err)
}

// opened opens and checks a replay.
func opened(t testing.TB, src io.ReaderAt, size int64) *format.File {
	t.Helper()
	f, err := format.NewFile(src, size)
	if err == nil {
		_, err = f.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// same compares the content of two replays: all but the id that ship may have
// given the second one.
func same(t testing.TB, want []byte, path string) *format.File {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a, z := opened(t, bytes.NewReader(want), int64(len(want))), opened(t, bytes.NewReader(b), int64(len(b)))
	x, y := a.Summary(), z.Summary()
	mx, my := *x.Meta, *y.Meta
	if mx.Session == "" {
		my.Session = ""
	}
	if !bytes.Equal(format.AppendMeta(nil, &mx), format.AppendMeta(nil, &my)) {
		t.Errorf("%s: metadata %+v, want %+v", path, my, mx)
	}
	if x.Totals != y.Totals || !slices.Equal(x.Gaps, y.Gaps) || !slices.Equal(x.Marks, y.Marks) || !slices.Equal(x.Players, y.Players) {
		t.Errorf("%s: totals %+v, gaps %v, marks %v, players %v\nwant %+v, %v, %v, %v", path, y.Totals, y.Gaps, y.Marks, y.Players, x.Totals, x.Gaps, x.Marks, x.Players)
	}
	sameKeyframes(t, a, z)
	sameReports(t, a, z)
	sameTicks(t, a, z)
	return z
}

func sameTicks(t testing.TB, a, z *format.File) {
	t.Helper()
	r, q := a.Reader(), z.Reader()
	for {
		var x, y format.TickRecord
		ex, ey := r.Next(&x), q.Next(&y)
		if ex == io.EOF && ey == io.EOF {
			return
		}
		if ex != nil || ey != nil {
			t.Fatalf("ticks end with %v and %v", ex, ey)
		}
		if x.Tick != y.Tick || x.Steps != y.Steps || !bytes.Equal(x.Commands, y.Commands) || !bytes.Equal(x.Params, y.Params) ||
			!bytes.Equal(x.Hash, y.Hash) || x.HasTime != y.HasTime || x.Time != y.Time {
			t.Fatalf("tick %+v\nwant %+v", y, x)
		}
	}
}

func sameKeyframes(t testing.TB, a, z *format.File) {
	t.Helper()
	if len(a.Summary().Keyframes) != len(z.Summary().Keyframes) {
		t.Fatalf("%d keyframes, want %d", len(z.Summary().Keyframes), len(a.Summary().Keyframes))
	}
	for i := range a.Summary().Keyframes {
		x, ex := a.Keyframe(i)
		y, ey := z.Keyframe(i)
		if err := errors.Join(ex, ey); err != nil || x.NextTick != y.NextTick || !bytes.Equal(x.State, y.State) {
			t.Fatalf("keyframe %d differs: %v", i, err)
		}
	}
}

func sameReports(t testing.TB, a, z *format.File) {
	t.Helper()
	list := func(f *format.File) (l []string) {
		if err := f.Reports(func(r format.Report) error {
			l = append(l, fmt.Sprintf("%d %d %d %x", r.At, r.Of, r.Peer, r.Hash))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return l
	}
	if x, y := list(a), list(z); !slices.Equal(x, y) {
		t.Errorf("reports %v, want %v", y, x)
	}
}

// digestOf is the digest that a replay states.
func digestOf(t testing.TB, b []byte) format.Digest {
	t.Helper()
	f := opened(t, bytes.NewReader(b), int64(len(b)))
	return *f.Summary().Digest
}
