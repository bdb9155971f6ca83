package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

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
	for _, addr := range o.servers {
		if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
			return transport.ClientConfig{}, usagef("--server %s: use host:port, such as 127.0.0.1:4433 or [::1]:4433", printable(addr))
		}
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
		if cfg.Token = bytes.TrimSpace(token); len(cfg.Token) == 0 {
			return cfg, usagef("--token-file %s is empty", printable(o.tokenFile))
		}
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

// fewWarnings prints what is complained of again and again once for each
// kind, and counts the others.
type fewWarnings struct {
	stderr io.Writer
	shown  *progress
	// kindOf tells what is alike; "" is printed each time.
	kindOf func(session string, err error) string
	// again is the time after which a kind is printed once more, with the
	// number of those that were not; 0: never.
	again time.Duration

	mu    sync.Mutex
	kinds []string
	heard map[string]*heardWarning
}

// firstWarnings are those of many sessions.
func firstWarnings(stderr io.Writer) *fewWarnings {
	kind := func(_ string, err error) string { return warningKind(err) }
	return &fewWarnings{stderr: stderr, shown: &progress{}, kindOf: kind, heard: map[string]*heardWarning{}}
}

// repeatPause is how long the same complaint of one session is not printed.
const repeatPause = time.Minute

// changedWarnings are those of one session, which hears the same at every try.
func changedWarnings(stderr io.Writer, shown *progress) *fewWarnings {
	return &fewWarnings{stderr: stderr, shown: shown, kindOf: repeatedKind, again: repeatPause, heard: map[string]*heardWarning{}}
}

// heardWarning is a kind of complaint that was printed.
type heardWarning struct {
	printed time.Time
	more    int // heard since then
}

func (f *fewWarnings) hear(session string, err error) {
	if endsSession(err) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	print, more := f.count(f.kindOf(session, err))
	if !print {
		return
	}
	if more > 0 {
		err = fmt.Errorf("%w, after %d more like it", err, more)
	}
	warnings(f.stderr, f.shown)(session, err)
}

// count tells whether a complaint of a kind is printed, and how many were not
// since the last one that was. The caller holds f.mu.
func (f *fewWarnings) count(kind string) (print bool, more int) {
	if kind == "" {
		return true, 0
	}
	h := f.heard[kind]
	if h == nil {
		h = &heardWarning{}
		f.heard[kind] = h
		f.kinds = append(f.kinds, kind)
	} else if f.again == 0 || time.Since(h.printed) < f.again {
		h.more++
		return false, 0
	}
	more = h.more
	*h = heardWarning{printed: time.Now()}
	return true, more
}

// repeatedKind is the kind of what one session hears at every try: a refusal
// that is temporary, where only numbers change from one try to the next, and that
// there is no connection.
func repeatedKind(session string, err error) string {
	if isError[*transport.Refusal](err) || session == "" {
		return strings.Map(withoutDigits, err.Error())
	}
	return ""
}

func withoutDigits(c rune) rune {
	if unicode.IsDigit(c) {
		return -1
	}
	return c
}

// warningKind is the same for errors that differ in the session or the tick.
// The errors of a lost QUIC connection wrap net.ErrClosed, which says less
// than they do.
func warningKind(err error) string {
	if refusal := (*transport.Refusal)(nil); errors.As(err, &refusal) {
		return "refused: " + refusal.Code.String()
	}
	if gap := (*transport.GapError)(nil); errors.As(err, &gap) {
		return "ticks are missing: " + gap.Reason
	}
	for inner := errors.Unwrap(err); inner != nil && inner != net.ErrClosed; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

// rest says how many were not printed.
func (f *fewWarnings) rest() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, kind := range f.kinds {
		if n := f.heard[kind].more; n > 0 {
			say(f.stderr, "%s, and %d more like the first", kind, n)
		}
	}
	f.kinds = nil
	clear(f.heard)
}
