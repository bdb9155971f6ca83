package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"reprise/format"
	"reprise/player"
	"reprise/recorder"
	"reprise/transport"
)

func newDemo() *cobra.Command {
	var keep string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole product on this machine: record, crash, recover, seal, verify",
		Long: `demo starts a daemon on loopback, plays matches of the sample games skirmish and
tower, and streams them to it. In the middle it kills the daemon with SIGKILL,
looks for every tick that had been acknowledged in what the crash left behind,
and starts the daemon again; the game servers go on by themselves. In the end
every match is sealed, checked, and played again with every state hash compared.

The replays are kept: in a new folder below the system's temporary one, or where
--keep says.`,
		Example: `  reprise demo
  reprise demo --keep demo-files`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := newDemoRun(keep, cmd.OutOrStdout())
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), demoPatience)
			defer cancel()
			if err := d.run(ctx); err != nil {
				return fmt.Errorf("%w (the files so far are in %s)", err, printable(d.dir))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&keep, "keep", "", "folder for data and replays; it must not exist or be empty")
	return cmd
}

// demoPatience bounds the whole demo, which takes some seconds.
const demoPatience = time.Minute

type demoRun struct {
	out     io.Writer
	dir     string
	started time.Time
	daemon  *demoDaemon
	client  *transport.Client
	matches []*demoMatch
}

// newDemoRun makes the folder, or takes one that is empty.
func newDemoRun(keep string, out io.Writer) (*demoRun, error) {
	dir := keep
	var err error
	if keep == "" {
		dir, err = os.MkdirTemp("", "reprise-demo-")
	} else {
		err = emptyFolder(keep)
	}
	if err != nil {
		return nil, err
	}
	return &demoRun{out: out, dir: dir, started: time.Now(), matches: demoMatches()}, nil
}

// emptyFolder makes a folder; one that is there must be empty.
func emptyFolder(path string) error {
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.MkdirAll(path, 0o755)
	case err != nil:
		return usagef("--keep %s: %w", printable(path), cause(err))
	case len(entries) > 0:
		return usagef("--keep %s: the folder is not empty: use another one", printable(path))
	}
	return nil
}

func (d *demoRun) say(text string, args ...any) {
	fmt.Fprintf(d.out, "%6.2fs  %s\n", time.Since(d.started).Seconds(), printable(fmt.Sprintf(text, args...)))
}

func (d *demoRun) data() string    { return filepath.Join(d.dir, "data") }
func (d *demoRun) replays() string { return filepath.Join(d.dir, "replays") }

func (d *demoRun) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if d.daemon, err = startDemoDaemon(ctx, d.data(), "127.0.0.1:0"); err != nil {
		return err
	}
	defer func() { d.daemon.kill() }()
	d.say("daemon started: process %d, %s", d.daemon.pid(), d.daemon.ready)
	if err := d.openMatches(ctx); err != nil {
		return err
	}
	played := d.playMatches(ctx)
	if err := d.crash(ctx); err != nil {
		return err
	}
	if err := <-played; err != nil {
		return err
	}
	if err := d.seal(ctx); err != nil {
		return err
	}
	return d.verify(ctx)
}

// openMatches connects as a game server would and opens a session for each
// match.
func (d *demoRun) openMatches(ctx context.Context) error {
	pin, err := os.ReadFile(filepath.Join(d.data(), "tls", "fingerprint"))
	if err != nil {
		return err
	}
	tls, err := transport.Trust{Pin: string(pin)}.Config()
	if err != nil {
		return err
	}
	d.client, err = transport.Dial(ctx, []string{d.daemon.addr}, transport.ClientConfig{TLS: tls, Agent: "reprise demo"})
	if err != nil {
		return err
	}
	for _, m := range d.matches {
		if err := m.open(d.client); err != nil {
			return err
		}
		d.say("recording %-10s %s", m.id, m.what)
	}
	return nil
}

// playMatches plays all matches at once, faster than real time.
func (d *demoRun) playMatches(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	errs := make(chan error, len(d.matches))
	var wg sync.WaitGroup
	for _, m := range d.matches {
		wg.Go(func() {
			if err := m.play(ctx); err != nil {
				errs <- fmt.Errorf("%s: %w", m.id, err)
			}
		})
	}
	go func() {
		wg.Wait()
		close(errs)
		done <- <-errs
	}()
	return done
}

// crash kills the daemon in the middle, proves that what was acknowledged is
// there, and starts the daemon again.
func (d *demoRun) crash(ctx context.Context) error {
	if err := d.waitForMiddle(ctx); err != nil {
		return err
	}
	d.daemon.kill()
	acked := map[string]format.Tick{}
	var total format.Tick
	for _, m := range d.matches {
		acked[m.id] = m.recording.Durable()
		total += acked[m.id] - m.meta.FirstTick
	}
	d.say("daemon killed with SIGKILL: %d ticks of %d sessions had been acknowledged", total, len(acked))
	if err := d.inspect(ctx, acked); err != nil {
		return err
	}
	addr := d.daemon.addr
	restarted, err := startDemoDaemon(ctx, d.data(), addr)
	if err != nil {
		return err
	}
	d.daemon = restarted
	d.say("daemon started again: process %d; the game servers resume by themselves", d.daemon.pid())
	return nil
}

// waitForMiddle waits until enough of every match is durable.
func (d *demoRun) waitForMiddle(ctx context.Context) error {
	for _, m := range d.matches {
		if err := m.recording.Wait(ctx, m.crashAt); err != nil {
			return fmt.Errorf("%s: waiting for tick %d to become durable: %w", m.id, m.crashAt, err)
		}
	}
	return nil
}

// inspect recovers a copy of what the crash left, and compares every
// acknowledged tick with what the game played. The daemon's own folder is
// left as it is.
func (d *demoRun) inspect(ctx context.Context, acked map[string]format.Tick) error {
	scratch, err := os.MkdirTemp(d.dir, "inspect-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := os.CopyFS(filepath.Join(scratch, "data"), os.DirFS(d.data())); err != nil {
		return err
	}
	r, err := recorder.Open(recorder.Config{Dir: filepath.Join(scratch, "data")})
	if err != nil {
		return err
	}
	if err := r.Close(ctx); err != nil {
		return err
	}
	compared := uint64(0)
	for _, m := range d.matches {
		n, err := m.compareWith(filepath.Join(scratch, "data", "live"), acked[m.id])
		if err != nil {
			return fmt.Errorf("%s: %w", m.id, err)
		}
		compared += n
	}
	d.say("looked into what the crash left: all %d acknowledged ticks are there, input for input", compared)
	return nil
}

// seal ends every session and stops the daemon as an operator would.
func (d *demoRun) seal(ctx context.Context) error {
	if err := os.Mkdir(d.replays(), 0o755); err != nil {
		return err
	}
	for _, m := range d.matches {
		if err := m.recording.Seal(ctx); err != nil {
			return fmt.Errorf("%s: %w", m.id, err)
		}
		_, name, _ := m.recording.Sealed()
		m.file = filepath.Join(d.replays(), name)
		s := m.recording.Stats()
		d.say("sealed %-10s %s, %s, %s", m.id, counted(s.Ticks, "tick"), counted(s.Steps, "step"), counted(s.Hashes, "hash"))
	}
	if err := d.client.Close(ctx); err != nil {
		return err
	}
	if err := d.daemon.stop(ctx); err != nil {
		return err
	}
	d.say("daemon stopped with SIGTERM")
	for _, m := range d.matches {
		if err := copyFile(ctx, filepath.Join(d.data(), "sealed", filepath.Base(m.file)), m.file); err != nil {
			return err
		}
	}
	return nil
}

// verify checks each file and plays it again.
func (d *demoRun) verify(ctx context.Context) error {
	for _, m := range d.matches {
		report, err := verifyDemoFile(ctx, m.file)
		if err != nil {
			return atFile(m.file, err)
		}
		d.say("verified %-10s %s run again, %s compared, all equal", m.id, counted(report.TicksRun, "tick"), counted(report.HashesCompared, "hash"))
	}
	self, first, folder := calledAs(), printable(d.matches[0].file), printable(d.replays())
	_, err := fmt.Fprintf(d.out, "\nThe replays are in %s. Try:\n\n  %s info %s\n  %s play --speed 8 %s\n  %s verify %s\n",
		folder, self, first, self, first, self, folder)
	return err
}

// calledAs is how this program is called in a shell: "go run" leaves no
// program behind.
func calledAs() string {
	if strings.Contains(os.Args[0], "go-build") {
		return "go run ./cmd/reprise"
	}
	return os.Args[0]
}

func verifyDemoFile(ctx context.Context, path string) (player.Report, error) {
	f, err := format.Open(path)
	if err != nil {
		return player.Report{}, err
	}
	defer f.Close()
	if _, err := f.Check(); err != nil {
		return player.Report{}, err
	}
	if !f.Summary().Complete() {
		return player.Report{}, fmt.Errorf("%w: the replay is not complete", format.ErrCorrupt)
	}
	game, err := SampleGames().Lookup(f.Summary().Meta)
	if err != nil {
		return player.Report{}, err
	}
	sim := game.Simulation()
	defer sim.Close()
	return player.Run(ctx, sim, player.NewFileSource(f), player.EngineOptions{Start: player.StartOf(f)})
}

// copyFile copies a finished replay under its final name.
func copyFile(ctx context.Context, from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	return writeNew(ctx, to, func(f newFile) error {
		_, err := io.Copy(f, src)
		return err
	})
}
