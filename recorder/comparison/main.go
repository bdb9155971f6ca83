package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// The servers end with the thread that started them; see bind.
func init() { runtime.LockOSThread() }

func main() {
	if err := start(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "comparison: %v\n", err)
		os.Exit(1)
	}
}

func start(args []string) error {
	if len(args) > 0 && args[0] == natsRole {
		return serveNATS(args[1:], os.Stdout)
	}
	if runtime.GOOS != "linux" {
		return errors.New("the figures come from /proc: it runs on Linux only")
	}
	o, err := parse(args)
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return compare(ctx, o, os.Stdout, os.Stderr)
}

// options are the command line.
type options struct {
	args     []string
	plan     plan
	dir      string
	reprised string
	streams  int
}

func parse(args []string) (options, error) {
	o := options{args: args, plan: fullPlan}
	f := flag.NewFlagSet("comparison", flag.ContinueOnError)
	short := f.Bool("short", false, "smaller loads and shorter times: less than 90 s, and figures that only show that it works")
	f.StringVar(&o.dir, "dir", os.TempDir(), "folder on the disk to measure on; everything is removed afterwards")
	f.StringVar(&o.reprised, "reprised", "", "daemon to measure; empty: it is built")
	f.IntVar(&o.streams, "streams", 1, "streams that JetStream spreads the sessions over")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q: everything is a flag, see -help", f.Arg(0))
	}
	if o.streams < 1 {
		return o, fmt.Errorf("-streams is %d: use at least 1", o.streams)
	}
	if *short {
		o.plan = shortPlan
	}
	return o, nil
}

// compare measures everything and prints the result.
func compare(ctx context.Context, o options, out, progress io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, o.plan.limit)
	defer cancel()
	began := time.Now()
	b, err := newBench(ctx, o.dir, o.reprised, o.streams)
	if err != nil {
		return err
	}
	// Also after a failure nothing stays on the disk.
	defer b.remove()
	if err := b.printConditions(ctx, o.args, out); err != nil {
		return err
	}
	err = errors.Join(b.byNumber(ctx, o.plan, out, progress), b.byAge(ctx, o.plan, out, progress), b.bySystem(ctx, o.plan, out, progress))
	fmt.Fprintf(out, "\nMeasured in %v.\n", time.Since(began).Round(time.Second))
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("the time of %v was over before everything was measured: %s stands for what is missing", o.plan.limit, none)
	}
	return err
}

// printConditions says how, when and on what the figures are taken.
func (b *bench) printConditions(ctx context.Context, args []string, out io.Writer) error {
	on, err := machine(b.disk)
	if err != nil {
		return err
	}
	others, err := b.disk.background(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "- Command: `%s`, %s\n- Machine: %s\n- Others, before the run: load average %s, %s KiB/s written to the disk\n- JetStream: nats-server %s, %d stream(s), file storage\n",
		command(args), time.Now().UTC().Format("2006-01-02 15:04 UTC"), on, loadAverage(), number(others/(1<<10)), versionOf("github.com/nats-io/nats-server/v2"), b.streams)
	return nil
}

// command is how to measure again.
func command(args []string) string {
	return strings.Join(append([]string{"go -C recorder/comparison run ."}, args...), " ")
}
