package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/internal/load"
	"reprise/transport"
)

func newLoad() *cobra.Command {
	var o loadOptions
	cmd := &cobra.Command{
		Use:   "load --server ADDR",
		Short: "Drive a daemon with many sessions, and count what is missing afterwards",
		Long: `load records as many game servers would: --sessions at --rate ticks a second each,
spread over --connections, or flat out with --rate 0. It measures the time from a
tick's end to the acknowledgement that the tick is on the daemon's disk, of up to
500 of the sessions.

At the end it waits for every acknowledgement, seals the sessions, and with --data
reads the daemon's files and counts the ticks that are missing; any that is
missing, wrong or not acknowledged is exit code 1. --http adds the daemon's memory
and CPU time, from its metrics.

Where "generator late" is not small, this machine was too slow to make the ticks
in time: the figures then say little about the daemon.`,
		Example: `  reprise load --server 127.0.0.1:4433 --pin "$(cat data/tls/fingerprint)" --sessions 1000 --rate 20 --seconds 10
  reprise load --server 127.0.0.1:4433 --insecure --sessions 10000 --rate 20 --seconds 60 --data data --http 127.0.0.1:8433`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	o.server.flags(f)
	f.IntVar(&o.sessions, "sessions", 100, "sessions")
	f.IntVar(&o.connections, "connections", 8, "connections, each as of one game-server process")
	f.Float64Var(&o.rate, "rate", 20, "ticks a second of each session; 0 is flat out")
	f.Float64Var(&o.seconds, "seconds", 10, "how long to record")
	f.IntVar(&o.tickBytes, "tick-bytes", 40, fmt.Sprintf("size of a tick's inputs in bytes, from %d to %d", load.MinStepBytes, load.MaxStepBytes))
	f.DurationVar(&o.linger, "linger", 100*time.Millisecond, "how long a session's chunk gathers ticks")
	f.DurationVar(&o.patience, "patience", time.Minute, "how long to wait for the openings, for the last acknowledgements, and for the seals")
	f.StringVar(&o.data, "data", "", "the daemon's data folder, to count what is missing in its files")
	f.StringVar(&o.http, "http", "", "the daemon's HTTP address, for its memory and CPU time")
	f.BoolVar(&o.json, "json", false, "print the result as one JSON document")
	return cmd
}

type loadOptions struct {
	server                serverOptions
	sessions, connections int
	rate, seconds         float64
	tickBytes             int
	linger, patience      time.Duration
	data, http            string
	json                  bool
}

// loadResult is what `load --json` prints.
type loadResult struct {
	Sessions     int     `json:"sessions"`
	Connections  int     `json:"connections"`
	Rate         float64 `json:"rate"`
	Seconds      float64 `json:"seconds"`
	Recorded     uint64  `json:"ticks_recorded"`
	Acknowledged uint64  `json:"ticks_acknowledged"`
	LeftOut      uint64  `json:"ticks_left_out"`
	PerSecond    float64 `json:"ticks_per_second"`
	P50          float64 `json:"p50_ms"`
	P99          float64 `json:"p99_ms"`
	P999         float64 `json:"p999_ms"`
	Max          float64 `json:"max_ms"`
	Sampled      int     `json:"sampled_sessions"`
	Late         uint64  `json:"generator_late"`
	Opening      float64 `json:"opening_seconds"`
	Sealing      float64 `json:"sealing_seconds"`
	Counted      *uint64 `json:"ticks_in_files,omitempty"`
	Missing      *uint64 `json:"ticks_missing,omitempty"`
	DaemonCPU    float64 `json:"daemon_cpu_seconds,omitempty"`
	DaemonCores  float64 `json:"daemon_cores,omitempty"`
	DaemonRSS    float64 `json:"daemon_memory_mib,omitempty"`
}

func (o *loadOptions) check() error {
	switch {
	case o.sessions < 1 || o.connections < 1:
		return usagef("--sessions and --connections must be at least 1")
	case o.rate < 0 || o.rate > 0 && o.rate < 0.01 || o.rate > 1000:
		return usagef("--rate %v: use 0, or a number from 0.01 to 1000", o.rate)
	case o.seconds <= 0:
		return usagef("--seconds must be above 0")
	case o.tickBytes < load.MinStepBytes || o.tickBytes > load.MaxStepBytes:
		return usagef("--tick-bytes is from %d to %d", load.MinStepBytes, load.MaxStepBytes)
	case o.linger <= 0 || o.patience <= 0:
		return usagef("--linger and --patience must be above 0")
	}
	if o.data != "" {
		if _, err := os.Stat(filepath.Join(o.data, "ledger")); err != nil {
			return usagef("--data %s is not a daemon's data folder: %w", printable(o.data), cause(err))
		}
	}
	return nil
}

func (o *loadOptions) run(cmd *cobra.Command) error {
	if err := o.check(); err != nil {
		return err
	}
	client, err := o.server.config(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	heard := firstWarnings(cmd.ErrOrStderr())
	defer heard.rest()
	client.ChunkLinger, client.Agent, client.OnError = o.linger, "reprise load", heard.hear
	before, err := o.usage()
	if err != nil {
		return err
	}
	driven, err := load.Run(cmd.Context(), o.plan(client))
	if driven == nil {
		return err
	}
	result := o.summarise(driven)
	if err == nil {
		err = o.measure(&result, before)
	}
	if err == nil && o.data != "" {
		err = o.count(&result, driven)
	}
	if perr := o.print(cmd.OutOrStdout(), &result); perr != nil {
		return perr
	}
	return result.verdict(err)
}

// plan is what to drive. The ids are new.
func (o *loadOptions) plan(client transport.ClientConfig) load.Config {
	var random [4]byte
	rand.Read(random[:])
	return load.Config{Prefix: "load-" + hex.EncodeToString(random[:]), Sessions: o.sessions, Connections: min(o.connections, o.sessions), Rate: o.rate,
		Duration: time.Duration(o.seconds * float64(time.Second)), StepBytes: o.tickBytes, Seal: true, Patience: o.patience,
		Dial: func(ctx context.Context, _ int) (*transport.Client, error) { return o.server.dial(ctx, client) }}
}

func (o *loadOptions) summarise(r *load.Result) loadResult {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return loadResult{Sessions: len(r.Promises), Connections: r.Connections, Rate: o.rate, Seconds: r.Elapsed.Seconds(), Recorded: r.Recorded,
		Acknowledged: r.Acknowledged, LeftOut: r.LeftOut, PerSecond: r.PerSecond(), P50: ms(r.Latency.Quantile(0.5)), P99: ms(r.Latency.Quantile(0.99)),
		P999: ms(r.Latency.Quantile(0.999)), Max: ms(r.Latency.Max()), Sampled: r.Sampled, Late: r.Late, Opening: r.Opening.Seconds(), Sealing: r.Sealing.Seconds()}
}

// usage asks for the daemon's memory and CPU time; zeros without --http.
func (o *loadOptions) usage() (load.Usage, error) {
	if o.http == "" {
		return load.Usage{}, nil
	}
	return load.ReadUsage(o.http)
}

func (o *loadOptions) measure(r *loadResult, before load.Usage) error {
	after, err := o.usage()
	if err != nil || o.http == "" {
		return err
	}
	r.DaemonCPU = after.CPUSeconds - before.CPUSeconds
	r.DaemonCores = r.DaemonCPU / (r.Opening + r.Seconds + r.Sealing)
	r.DaemonRSS = after.MemoryBytes / (1 << 20)
	return nil
}

// count reads the daemon's file of every session. All are sealed, so that
// nothing of them is in the journal only.
func (o *loadOptions) count(r *loadResult, driven *load.Result) error {
	tally, err := load.CountFiles(o.data, driven.Promises)
	if err != nil {
		err = &exitError{exitFalse, err}
	}
	r.Counted, r.Missing = &tally.InFiles, &tally.Missing
	return err
}

// verdict is what the command ends with. A tick that is not where it should
// be weighs more than what kept the run from its end.
func (r *loadResult) verdict(err error) error {
	var missing error
	switch {
	case r.Missing != nil && *r.Missing > 0:
		missing = fmt.Errorf("%s missing in the files", counted(*r.Missing, "acknowledged tick"))
	case errors.Is(err, load.ErrNotDurable):
		missing = fmt.Errorf("%s not acknowledged", counted(r.Recorded-r.Acknowledged, "tick"))
	}
	if missing != nil {
		return &exitError{exitFalse, errors.Join(missing, err)}
	}
	return err
}

func (o *loadOptions) print(w io.Writer, r *loadResult) error {
	if o.json {
		return writeJSON(w, r)
	}
	r.table(w)
	return nil
}

func (r *loadResult) table(w io.Writer) {
	row := func(name, text string, args ...any) { fmt.Fprintf(w, "%-28s %s\n", name, fmt.Sprintf(text, args...)) }
	row("sessions", "%d over %s, opened in %.2f s", r.Sessions, counted(r.Connections, "connection"), r.Opening)
	if r.Rate > 0 {
		row("rate", "%g ticks a second each, for %.1f s", r.Rate, r.Seconds)
	} else {
		row("rate", "flat out, for %.1f s", r.Seconds)
	}
	row("ticks recorded", "%d, %.0f a second", r.Recorded, r.PerSecond)
	row("ticks acknowledged", "%d", r.Acknowledged)
	row("ticks left out by clients", "%d", r.LeftOut)
	row("end of tick to durable", "p50 %.1f ms, p99 %.1f ms, p99.9 %.1f ms, max %.1f ms, of %s", r.P50, r.P99, r.P999, r.Max, counted(r.Sampled, "session"))
	row("generator late", "%s", counted(r.Late, "tick"))
	row("sealed in", "%.2f s", r.Sealing)
	if r.DaemonRSS > 0 {
		row("daemon", "%.1f CPU seconds (%.2f cores), %.0f MiB", r.DaemonCPU, r.DaemonCores, r.DaemonRSS)
	}
	if r.Missing != nil {
		row("ticks in the files", "%d", *r.Counted)
		row("acknowledged ticks missing", "%d", *r.Missing)
	}
}
