package daemon

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"reprise/cmd/internal/access"
	"reprise/transport"
)

// guard is who may record: what the files tokens and client_ca said when they
// were read. A reload puts a new one in its place, as a whole.
type guard struct {
	tokens  *access.Tokens // nil: no token is asked for
	clients *x509.CertPool // nil: no certificate is asked for
}

// readGuard reads the files that a configuration names. Errors are of type
// keyError.
func readGuard(cfg *Config) (*guard, error) {
	g := &guard{}
	var err error
	if cfg.Tokens != "" {
		if g.tokens, err = readTokens(cfg.Tokens); err != nil {
			return nil, badFile("tokens", err)
		}
	}
	if cfg.ClientCA != "" {
		if g.clients, err = readAuthorities(cfg.ClientCA); err != nil {
			return nil, badFile("client_ca", err)
		}
	}
	return g, nil
}

// errEmptyFile is more likely a file that is just being written than a wish.
var errEmptyFile = errors.New("the file is empty")

func readFull(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err == nil && len(b) == 0 {
		return nil, fmt.Errorf("%s: %w", path, errEmptyFile)
	}
	return b, err
}

func readTokens(path string) (*access.Tokens, error) {
	b, err := readFull(path)
	if err != nil {
		return nil, err
	}
	t, err := access.Parse(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%s, %w", path, err)
	}
	return t, nil
}

// readAuthorities reads PEM certificates. One that has expired does no harm
// beside another that is valid.
func readAuthorities(path string) (*x509.CertPool, error) {
	b, err := readFull(path)
	if err != nil {
		return nil, err
	}
	pool, valid := x509.NewCertPool(), 0
	for n := 1; ; n++ {
		block, rest := pem.Decode(b)
		if block == nil {
			break
		}
		line := 1 + bytes.Count(b[:len(b)-len(rest)], []byte("\n"))
		b = rest
		cert, err := parseCertificate(block)
		if err != nil {
			return nil, fmt.Errorf("%s, certificate %d, which ends before line %d: %w", path, n, line, err)
		}
		pool.AddCert(cert)
		if now := time.Now(); !now.Before(cert.NotBefore) && !now.After(cert.NotAfter) {
			valid++
		}
	}
	switch {
	case bytes.Contains(b, []byte("-----BEGIN")):
		return nil, fmt.Errorf("%s: the last certificate is cut off", path)
	case valid == 0:
		return nil, fmt.Errorf("%s holds no PEM certificate that is valid now", path)
	}
	return pool, nil
}

func parseCertificate(block *pem.Block) (*x509.Certificate, error) {
	if block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("it is a %.40s", block.Type)
	}
	return x509.ParseCertificate(block.Bytes)
}

// tlsConfig asks each new connection for what the guard of that moment wants.
func (d *Daemon) tlsConfig() *tls.Config {
	cfg := d.pair.Config()
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if err := d.gate.handshake(); err != nil {
			return nil, err
		}
		clients := d.guard.Load().clients
		if clients == nil {
			return nil, nil
		}
		asking := d.pair.Config()
		asking.ClientAuth, asking.ClientCAs = tls.RequireAndVerifyClientCert, clients
		// A ticket would let in whoever showed a certificate before its
		// authority was taken out.
		asking.SessionTicketsDisabled = true
		asking.VerifyConnection = func(s tls.ConnectionState) error {
			d.log.Info("client certificate accepted", "subject", s.PeerCertificates[0].Subject.String(), "remote", hello.Conn.RemoteAddr().String())
			return nil
		}
		return asking, nil
	}
	return cfg
}

// authorise decides on a new connection.
func (d *Daemon) authorise(token []byte, remote net.Addr) error {
	if err := d.gate.admit(); err != nil {
		return err
	}
	grant, err := d.guard.Load().grant(token)
	if grant != nil {
		d.log.Info("token accepted", "grant", grant.Name, "remote", remote.String())
	}
	return err
}

// guarded is a Recorder for those who are allowed to.
type guarded struct {
	transport.Recorder
	allow func(*transport.OpenRequest) error
}

// Open opens a session that is allowed.
func (g guarded) Open(req transport.OpenRequest, sink transport.Sink) (transport.Session, transport.OpenReply, error) {
	if err := g.allow(&req); err != nil {
		return nil, transport.OpenReply{}, err
	}
	return g.Recorder.Open(req, sink)
}

// allow decides on each session that a connection opens, by what the files
// say at that moment.
func (d *Daemon) allow(req *transport.OpenRequest) error {
	grant, err := d.guard.Load().grant(req.Token)
	if grant == nil {
		return err
	}
	if err := grant.Allows(req.Session); err != nil {
		return unauthorised(err)
	}
	d.log.Info("session allowed", "session", req.Session, "grant", grant.Name, "remote", req.Remote.String())
	return nil
}

// grant finds the grant of a token; none where no token is asked for. The
// error is a refusal.
func (g *guard) grant(token []byte) (*access.Grant, error) {
	switch {
	case g.tokens == nil:
		return nil, nil
	case len(token) == 0:
		return nil, unauthorised(errNoToken)
	}
	grant, err := g.tokens.Find(token, time.Now())
	if err != nil {
		return nil, unauthorised(err)
	}
	return grant, nil
}

var errNoToken = errors.New("this daemon asks for a token, and none was given")

func unauthorised(err error) error {
	return &transport.Refusal{Code: transport.CodeUnauthorised, Text: err.Error()}
}
