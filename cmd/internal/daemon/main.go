package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"reprise/cmd/internal/version"
)

// Exit codes. Scripts rely on them: they must not change.
const (
	exitOK       = 0
	exitUsage    = 2
	exitNotTried = 3
)

const help = `reprised records matches of deterministic games: game servers stream them over
QUIC, and are told which tick is safe on disk.

Usage:
  reprised [--config FILE] [flags]

With no configuration at all it runs: data in ./reprise-data, QUIC on
127.0.0.1:4433, HTTP on 127.0.0.1:8433, and a self-signed certificate whose
fingerprint it prints and keeps in DATA/tls/fingerprint. It prints one line when
it accepts sessions. SIGTERM drains and ends with 0, a second one ends at once;
SIGHUP, or a change of a file, takes a renewed certificate, other tokens and
some keys into use. To listen off loopback it needs --tokens or --client-ca.

Every flag is also a key of the configuration file and an environment variable:
--session-window is session_window and REPRISE_SESSION_WINDOW. A flag goes over
the environment, the environment over the file.

Examples:
  reprised
  reprised --data /var/lib/reprise --config /etc/reprise/reprised.toml
  reprised --health

Exit codes: 0 drained, or healthy; 2 usage or configuration; 3 could not be done.

Flags:
`

// errAnswered is returned by parse where the command line asked for a text
// that was printed.
var errAnswered = errors.New("answered")

// Main runs the daemon until it is told to stop, and returns its exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	cfg, file, health, err := parse(args, stdout)
	switch {
	case errors.Is(err, pflag.ErrHelp), errors.Is(err, errAnswered):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "reprised: %v\n", err)
		return exitUsage
	case health:
		err = checkHealth(cfg.HTTP)
	default:
		err = serve(cfg, Source{file, func() (Config, error) { return reparse(args) }}, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintf(stderr, "reprised: %v\n", err)
		return exitCode(err)
	}
	return exitOK
}

func exitCode(err error) int {
	var bad *keyError
	if errors.As(err, &bad) {
		return exitUsage
	}
	return exitNotTried
}

// parse reads flags, environment and the configuration file.
func parse(args []string, stdout io.Writer) (cfg Config, file string, health bool, err error) {
	cfg = Default()
	fs := pflag.NewFlagSet("reprised", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.Usage = func() { fmt.Fprint(stdout, help+fs.FlagUsages()) }
	fs.StringVar(&file, "config", "", "configuration file (TOML); see configs/reprised.toml")
	fs.BoolVar(&health, "health", false, "ask the daemon at --http whether it is ready, and end with 0 if so")
	versions := fs.Bool("version", false, "print the build, and the versions of the file format and of the protocol")
	cfg.Flags(fs)
	if err := fs.Parse(args); err != nil {
		return cfg, file, false, err
	}
	if *versions {
		fmt.Fprintln(stdout, version.Line("reprised"))
		return cfg, file, false, errAnswered
	}
	if fs.NArg() > 0 {
		return cfg, file, false, fmt.Errorf("unknown argument %q: everything is a flag, see --help", fs.Arg(0))
	}
	err = cfg.Load(file, os.LookupEnv, fs)
	return cfg, file, health, err
}

// reparse reads the configuration again, under the flags of the start.
func reparse(args []string) (Config, error) {
	cfg, _, _, err := parse(args, io.Discard)
	return cfg, err
}

func serve(cfg Config, source Source, stdout, stderr io.Writer) error {
	// The QUIC library prints lines about small UDP buffers to the log of
	// the process; the daemon has a line of its own for them.
	if err := os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true"); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals...)
	defer stop()
	// Once the first signal drains, a second one ends the process at once.
	defer context.AfterFunc(ctx, stop)()
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, reloadSignals...)
	defer signal.Stop(reload)
	// Whoever reads the log may go away.
	signal.Ignore(ignoredSignals...)
	d := New(cfg, stderr)
	d.ReloadFrom(source)
	if err := d.Start(); err != nil {
		return err
	}
	d.warnOfStrange(os.Environ())
	fmt.Fprintln(stdout, d.Ready())
	return d.Run(ctx, reload)
}

// checkHealth asks a running daemon whether it is ready.
func checkHealth(addr string) error {
	if addr == "" {
		return errors.New("--health needs the daemon's HTTP address: --http")
	}
	client := http.Client{Timeout: healthTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	addr = reachable(addr)
	resp, err := client.Get("http://" + addr + "/readyz")
	if err != nil {
		return unanswered(addr, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	return errors.Join(fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(b))), err)
}

// unanswered says what it means that a daemon could not be asked.
func unanswered(addr string, err error) error {
	var dial *net.OpError
	var name *net.DNSError
	if errors.As(err, &dial) && dial.Op == "dial" && !errors.As(err, &name) {
		return fmt.Errorf("nothing answers on %s: the daemon is not running, or not ready yet", addr)
	}
	return err
}

const healthTimeout = 3 * time.Second

// reachable is where to ask a daemon that listens on addr: one that listens
// on every address is on loopback, too.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	switch {
	case err != nil || host != "" && !ip.IsUnspecified():
		return addr
	case host != "" && ip.To4() == nil:
		return net.JoinHostPort("::1", port)
	}
	return net.JoinHostPort("127.0.0.1", port)
}
