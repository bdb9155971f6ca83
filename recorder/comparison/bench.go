package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// bench is where measurements run: a folder for the servers' data, the disk
// below it, and the programs.
type bench struct {
	dir      string
	disk     *disk
	self     string // this program
	reprised string
	streams  int // of JetStream
}

// newBench makes a folder below parent, and builds reprised unless it is
// given.
func newBench(ctx context.Context, parent, reprised string, streams int) (*bench, error) {
	disk, err := diskOf(parent)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "reprise-comparison-")
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir, disk: disk, self: self, reprised: reprised, streams: streams}
	if reprised == "" {
		b.reprised = filepath.Join(dir, "reprised")
		err = build(ctx, b.reprised)
	}
	if err != nil {
		return nil, errors.Join(err, b.remove())
	}
	return b, nil
}

func (b *bench) remove() error { return os.RemoveAll(b.dir) }

// build builds the daemon from the module that this one stands in.
func build(ctx context.Context, target string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "reprise").Output()
	if err != nil {
		return fmt.Errorf("finding the project (run this with go -C recorder/comparison run ., or give -reprised): %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", target, "./cmd/reprised")
	cmd.Dir = strings.TrimSpace(string(root))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building reprised (or give one with -reprised): %w\n%s", err, out)
	}
	return nil
}

const (
	// openLimit is how long all sessions may take to open.
	openLimit = 20 * time.Second
	// drainLimit is how long a system may take to acknowledge what it was
	// given, once a load has ended.
	drainLimit = 5 * time.Second
)

// dial connects to a server and opens the sessions.
func (b *bench) dial(ctx context.Context, s system, srv *server, w workload) (client, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	var c client
	var err error
	if s.nats {
		c, err = dialNATS(ctx, s, srv.addr, w, b.streams)
	} else {
		c, err = dialReprised(ctx, srv, w, s.linger)
	}
	if err != nil {
		return nil, err
	}
	if err := c.open(ctx); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// measure runs one load against one system, in a new process and folder.
func (b *bench) measure(ctx context.Context, s system, w workload, p plan) (figures, error) {
	settle()
	srv, err := b.startServer(ctx, s)
	if err != nil {
		return figures{}, err
	}
	defer srv.discard()
	c, err := b.dial(ctx, s, srv, w)
	if err != nil {
		return figures{}, err
	}
	r := run{disk: b.disk, srv: srv, c: c}
	err = r.load(ctx, w, p)
	c.close()
	if err == nil {
		err = r.end()
	}
	if err != nil && srv.log.String() != "" {
		err = fmt.Errorf("%w%s", err, srv.log)
	}
	return r.f, err
}

// run is one measurement under way.
type run struct {
	disk *disk
	srv  *server
	c    client
	f    figures
	// before is what the disk was given, opened the ticks that were
	// acknowledged, both before the load.
	before int64
	opened uint64
}

// load drives the load, and takes the figures of the window.
func (r *run) load(ctx context.Context, w workload, p plan) (err error) {
	settle()
	if r.before, err = r.disk.written(); err != nil {
		return err
	}
	r.opened = r.c.acknowledged()
	driving, stop := context.WithCancel(ctx)
	driven := make(chan error, 1)
	go func() { driven <- drive(driving, r.c, w) }()
	err = r.window(ctx, p)
	stop()
	if err = errors.Join(err, <-driven); err != nil {
		return err
	}
	return r.drain(ctx)
}

// drain lets the system acknowledge the rest. One that is overloaded may
// leave some.
func (r *run) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	if err := r.c.drain(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// window waits until the load is warm, and looks at the server over a span
// of time.
func (r *run) window(ctx context.Context, p plan) error {
	if err := sleep(ctx, p.warm); err != nil {
		return err
	}
	start, acked := time.Now(), r.c.acknowledged()
	from, err := r.srv.usage()
	if err != nil {
		return err
	}
	waits := r.c.waits()
	waits.on.Store(true)
	if err := sleep(ctx, p.window); err != nil {
		return err
	}
	to, err := r.srv.usage()
	if err != nil {
		return err
	}
	ticks := float64(r.c.acknowledged() - acked)
	r.f.acked = ticks / time.Since(start).Seconds()
	sorted := waits.sorted()
	r.f.p50, r.f.p99 = quantile(sorted, 0.5), quantile(sorted, 0.99)
	r.f.cpu = per((to.cpu - from.cpu).Seconds(), ticks/1e6)
	r.f.memory = float64(to.memory)
	return nil
}

// end lets the server end, and counts what the disk was given for the load:
// all of it, also what is written late.
func (r *run) end() error {
	if err := r.srv.stop(); err != nil {
		return err
	}
	settle()
	written, err := r.disk.written()
	if err != nil {
		return err
	}
	kept, err := r.srv.kept()
	if err != nil {
		return err
	}
	acked := r.c.acknowledged()
	r.f.written = per(float64(written-r.before), float64((acked-r.opened)*rowBytes))
	r.f.kept = per(float64(kept), float64(acked*rowBytes))
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
