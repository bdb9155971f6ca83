package main

import (
	"bytes"
	"context"
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
}

func (o *serverOptions) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.servers, "server", nil, "address of the daemon, host:port; several are tried in turn")
	f.StringVar(&o.pin, "pin", "", "SHA-256 fingerprint of the daemon's certificate (it stands in DATA/tls/fingerprint)")
	f.StringVar(&o.ca, "ca", "", "file with the authority's certificate (PEM)")
	f.BoolVar(&o.insecure, "insecure", false, "accept any certificate: anyone on the way can then pose as the daemon")
	f.StringVar(&o.tokenFile, "token-file", "", "file with the access token")
}

// config makes the client's configuration, or says what is missing.
func (o *serverOptions) config(stderr io.Writer) (transport.ClientConfig, error) {
	if len(o.servers) == 0 {
		return transport.ClientConfig{}, usagef("name the daemon with --server host:port")
	}
	tls, err := transport.Trust{Pin: o.pin, CAFile: o.ca, Insecure: o.insecure}.Config()
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

func (o *serverOptions) dial(ctx context.Context, cfg transport.ClientConfig) (*transport.Client, error) {
	client, err := transport.Dial(ctx, o.servers, cfg)
	if isError[x509.UnknownAuthorityError](err) {
		return nil, &hintedError{err, "say how the daemon is known: --pin with its fingerprint (DATA/tls/fingerprint), or --ca FILE"}
	}
	return client, err
}

// warnings prints what a client complains of and goes on after. What ends a
// session is the error of the command.
func warnings(stderr io.Writer, shown *progress) func(string, error) {
	var mu sync.Mutex
	return func(session string, err error) {
		var refusal *transport.Refusal
		if errors.As(err, &refusal) && !refusal.Temporary() {
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
