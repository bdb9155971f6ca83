package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/spf13/pflag"

	"reprise/transport"
)

// serverOptions are the flags of every command that talks to a daemon.
type serverOptions struct {
	servers   []string
	pin, ca   string
	insecure  bool
	tokenFile string
	cert, key string
}

func (o *serverOptions) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.servers, "server", nil, "address of the daemon, host:port; several are tried in turn")
	f.StringVar(&o.pin, "pin", "", "SHA-256 fingerprint of the daemon's certificate (it stands in DATA/tls/fingerprint)")
	f.StringVar(&o.ca, "ca", "", "file with the authority's certificate (PEM)")
	f.BoolVar(&o.insecure, "insecure", false, "accept any certificate: anyone on the way can then pose as the daemon")
	f.StringVar(&o.tokenFile, "token-file", "", "file with the access token")
	f.StringVar(&o.cert, "cert", "", "certificate (PEM) to show a daemon that asks for one; with --key")
	f.StringVar(&o.key, "key", "", "key (PEM) of --cert")
}

// named tells whether a flag says how a daemon is reached.
func (o *serverOptions) named() bool {
	return o.pin != "" || o.ca != "" || o.insecure || o.tokenFile != "" || o.cert != "" || o.key != ""
}

// config makes the client's configuration, or says what is missing.
func (o *serverOptions) config(stderr io.Writer) (transport.ClientConfig, error) {
	if len(o.servers) == 0 {
		return transport.ClientConfig{}, usagef("name the daemon with --server host:port")
	}
	tls, err := o.tls()
	if err != nil {
		return transport.ClientConfig{}, usagef("%w", err)
	}
	cfg := transport.ClientConfig{TLS: tls, Agent: "reprise", OnError: warnings(stderr, &progress{})}
	if o.tokenFile != "" {
		token, err := os.ReadFile(o.tokenFile)
		if err != nil {
			return cfg, usagef("--token-file %s: %w", printable(o.tokenFile), cause(err))
		}
		cfg.Token = bytes.TrimSpace(token)
	}
	return cfg, nil
}

// tls says how the daemon is known, and what it is shown.
func (o *serverOptions) tls() (*tls.Config, error) {
	cfg, err := transport.Trust{Pin: o.pin, CAFile: o.ca, Insecure: o.insecure}.Config()
	switch {
	case err != nil:
		return nil, err
	case o.cert == "" && o.key == "":
		return cfg, nil
	case o.cert == "" || o.key == "":
		return nil, errors.New("--cert and --key go together: give both or neither")
	}
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return nil, fmt.Errorf("--cert %s with --key %s: %w", printable(o.cert), printable(o.key), err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return cfg, nil
}

func (o *serverOptions) dial(ctx context.Context, cfg transport.ClientConfig) (*transport.Client, error) {
	client, err := transport.Dial(ctx, o.servers, cfg)
	return client, unreached(err)
}

// unreached says what helps where a daemon is not known.
func unreached(err error) error {
	if isError[x509.UnknownAuthorityError](err) {
		return &hintedError{err, "say how the daemon is known: --pin with its fingerprint (DATA/tls/fingerprint), or --ca FILE"}
	}
	return err
}

// warnings prints what a client complains of and goes on after. What ends a
// session is the error of the command.
func warnings(stderr io.Writer, shown *progress) func(string, error) {
	var mu sync.Mutex
	return func(session string, err error) {
		if endsSession(err) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		shown.clear()
		if session != "" {
			err = fmt.Errorf("session %s: %w", session, err)
		}
		say(stderr, "%s", err)
	}
}

func endsSession(err error) bool {
	var refusal *transport.Refusal
	return errors.As(err, &refusal) && !refusal.Temporary()
}

// firstWarnings prints what many sessions complain of once for each kind, and
// counts the others.
type firstWarnings struct {
	stderr io.Writer

	mu    sync.Mutex
	kinds []string
	more  map[string]int // of each kind, without the one that was printed
}

func (f *firstWarnings) hear(session string, err error) {
	if endsSession(err) {
		return
	}
	kind := warningKind(err)
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, heard := f.more[kind]; heard {
		f.more[kind]++
		return
	}
	if f.more == nil {
		f.more = map[string]int{}
	}
	f.more[kind] = 0
	f.kinds = append(f.kinds, kind)
	warnings(f.stderr, &progress{})(session, err)
}

// warningKind is the same for errors that differ in the session or the tick.
func warningKind(err error) string {
	if refusal := (*transport.Refusal)(nil); errors.As(err, &refusal) {
		return "refused: " + refusal.Code.String()
	}
	if gap := (*transport.GapError)(nil); errors.As(err, &gap) {
		return "ticks are missing: " + gap.Reason
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

// rest says how many were not printed.
func (f *firstWarnings) rest() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, kind := range f.kinds {
		if n := f.more[kind]; n > 0 {
			say(f.stderr, "%s, and %d more like the first", kind, n)
		}
	}
	f.kinds, f.more = nil, nil
}
