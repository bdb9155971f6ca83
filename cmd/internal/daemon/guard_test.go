package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"reprise/cmd/internal/access"
	"reprise/transport"
)

// newToken makes a token and its line.
func newToken(t testing.TB, name, sessions string, expires time.Time) (token, line string) {
	t.Helper()
	token, line, err := access.New(name, sessions, expires)
	if err != nil {
		t.Fatal(err)
	}
	return token, line + "\n"
}

// swap makes a file appear in the place of another at once.
func swap(t testing.TB, path, text string) {
	t.Helper()
	next := path + ".next"
	if err := errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, path)); err != nil {
		t.Fatal(err)
	}
}

// tryRecord records a short session over a connection of its own.
func tryRecord(t testing.TB, p *process, session, token string, certs ...tls.Certificate) error {
	t.Helper()
	trust, err := transport.Trust{Pin: p.pin}.Config()
	if err != nil {
		t.Fatal(err)
	}
	trust.Certificates = certs
	c, err := transport.Dial(within(t, patience), []string{p.addr}, transport.ClientConfig{TLS: trust, Token: []byte(token)})
	if err != nil {
		return err
	}
	defer c.Close(within(t, patience))
	return openAndSeal(t, c, session)
}

func openAndSeal(t testing.TB, c *transport.Client, session string) error {
	t.Helper()
	m := match{id: session, seed: 9}.play(t, c)
	for range 5 {
		// A refused session takes no more ticks; Seal says why.
		_ = m.rec.EndTick()
	}
	return m.rec.Seal(within(t, patience))
}

// refusedWith tells whether err is the daemon's refusal with a text.
func refusedWith(err error, text string) bool {
	var r *transport.Refusal
	return errors.As(err, &r) && r.Code == transport.CodeUnauthorised && strings.Contains(r.Text, text)
}

// With tokens only those who show one may record, and what it allows. The log
// names the line of the file, and never a token.
func TestTokens(t *testing.T) {
	t.Parallel()
	all, lineAll := newToken(t, "all", "*", time.Time{})
	eu, lineEU := newToken(t, "eu-west", "eu-*", time.Now().Add(time.Hour))
	old, lineOld := newToken(t, "old", "*", time.Now().Add(-time.Second))
	foreign, _ := newToken(t, "foreign", "*", time.Time{})
	file := filepath.Join(t.TempDir(), "tokens")
	put(t, file, []byte("# game servers\n"+lineAll+lineEU+lineOld))
	p := start(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", "--tokens", file)
	for _, c := range []struct{ name, session, token, refused string }{
		{"any session", "one", all, ""},
		{"its session", "eu-1", eu, ""},
		{"another session", "us-1", eu, "eu-west may record eu-*"},
		{"no token", "eu-2", "", "none was given"},
		{"unknown token", "eu-2", foreign, "not known"},
		{"cut token", "eu-2", all[:len(all)-1], "not known"},
		{"the hash itself", "eu-2", strings.Fields(lineAll)[1], "not known"},
		{"expired", "eu-2", old, "expired: old, on "},
	} {
		switch err := tryRecord(t, p, c.session, c.token); {
		case c.refused == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.refused != "" && !refusedWith(err, c.refused):
			t.Errorf("%s: %v, want unauthorised with %q", c.name, err, c.refused)
		}
	}
	for _, want := range []string{`msg="token accepted" grant=all`, `msg="session allowed" session=eu-1 grant=eu-west`, "eu-west may record eu-*"} {
		if !strings.Contains(p.Log.String(), want) {
			t.Errorf("the log has no %q", want)
		}
	}
	for _, token := range []string{all, eu, old, foreign} {
		if strings.Contains(p.Log.String(), token) {
			t.Error("the log holds a token")
		}
	}
}

// A token that is taken back or has expired opens no session any more, on new
// connections and on those that run; the sessions that it has opened go on.
func TestTokenTakenBack(t *testing.T) {
	t.Parallel()
	token, line := newToken(t, "server", "*", time.Time{})
	other, otherLine := newToken(t, "other", "*", time.Time{})
	file := filepath.Join(t.TempDir(), "tokens")
	put(t, file, []byte(line+otherLine))
	data := filepath.Join(t.TempDir(), "data")
	p := start(t, data, "127.0.0.1:0", "--tokens", file)
	c := dial(t, p.addr, p.pin, func(cfg *transport.ClientConfig) { cfg.Token = []byte(token) })
	w := playAll(t, c, seed(t), 2)
	progress(t, w.players)

	expired := strings.Replace(line, "never", "2001-01-01T00:00:00Z", 1)
	for i, without := range []struct{ file, text string }{{otherLine, "not known"}, {otherLine + expired, "expired: server"}} {
		p.awaitLog(func() { swap(t, file, without.file) }, "level=INFO", "msg=reloaded")
		if err := openAndSeal(t, c, fmt.Sprint("same-connection-", i)); !refusedWith(err, without.text) {
			t.Errorf("a session on the connection that runs: %v, want unauthorised with %q", err, without.text)
		}
		if err := tryRecord(t, p, "new-connection", token); !refusedWith(err, without.text) {
			t.Errorf("a new connection: %v, want unauthorised with %q", err, without.text)
		}
		progress(t, w.players)
	}
	if err := tryRecord(t, p, "of-another", other); err != nil {
		t.Errorf("the other token: %v", err)
	}
	p.awaitLog(func() { swap(t, file, line) }, "level=INFO", "msg=reloaded")
	if err := openAndSeal(t, c, "given-back"); err != nil {
		t.Errorf("with the token given back: %v", err)
	}
	w.sealAll(t, data)
	if c.Stats().Connects != 1 {
		t.Errorf("%d connections, want the first one to stay", c.Stats().Connects)
	}
}

// authority signs certificates of clients.
type authority struct {
	pem  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, until time.Duration) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key = sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, until, nil)
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
	return a
}

// client makes the certificate of a game server.
func (a *authority) client(t testing.TB, name string, until time.Duration) tls.Certificate {
	t.Helper()
	cert, key := sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, until, a)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func sign(t testing.TB, template *x509.Certificate, until time.Duration, by *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-2*time.Hour), time.Now().Add(until)
	if by == nil {
		by = &authority{cert: template, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// With client_ca a connection needs a certificate of an authority that is in
// the file at that moment; with tokens besides, it needs both.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t, time.Hour), newAuthority(t, time.Hour)
	token, line := newToken(t, "server", "*", time.Time{})
	dir := t.TempDir()
	ca, tokens := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "tokens")
	put(t, ca, []byte(ours.pem))
	put(t, tokens, []byte(line))
	data := filepath.Join(dir, "data")
	p := start(t, data, "127.0.0.1:0", "--client-ca", ca, "--tokens", tokens)
	good, other, old := ours.client(t, "eu-west", time.Hour), theirs.client(t, "mallory", time.Hour), ours.client(t, "old", -time.Hour)
	if err := tryRecord(t, p, "good", token, good); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	if err := tryRecord(t, p, "no-token", "", good); !refusedWith(err, "none was given") {
		t.Errorf("with a certificate but no token: %v, want unauthorised", err)
	}
	for name, certs := range map[string][]tls.Certificate{"none": nil, "another authority's": {other}, "expired": {old}} {
		var failed *quic.TransportError
		if err := tryRecord(t, p, "bad", token, certs...); !errors.As(err, &failed) || !failed.ErrorCode.IsCryptoError() {
			t.Errorf("certificate %s: %v, want the handshake to fail", name, err)
		}
	}
	if log := p.Log.String(); !strings.Contains(log, `msg="client certificate accepted" subject="CN=eu-west"`) || strings.Contains(log, "mallory") {
		t.Error("the log does not name the subject of the one that was accepted, or one that was not")
	}

	// Another authority takes over: who is there stays, who comes needs it.
	c := dial(t, p.addr, p.pin, func(cfg *transport.ClientConfig) {
		cfg.Token, cfg.TLS.Certificates = []byte(token), []tls.Certificate{good}
	})
	w := playAll(t, c, seed(t), 1)
	progress(t, w.players)
	p.awaitLog(func() { swap(t, ca, theirs.pem) }, "level=INFO", "msg=reloaded")
	if err := tryRecord(t, p, "late", token, good); err == nil {
		t.Error("a certificate of the authority that is gone is accepted")
	}
	if err := tryRecord(t, p, "new", token, other); err != nil {
		t.Errorf("a certificate of the new authority: %v", err)
	}
	w.sealAll(t, data)
	if c.Stats().Connects != 1 {
		t.Errorf("%d connections, want the first one to stay", c.Stats().Connects)
	}
}

// No ticket of an earlier connection stands in for a certificate.
func TestCertificateAtEveryConnection(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, time.Hour)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	put(t, ca, []byte(ours.pem))
	d, _ := onBrittleDisk(t, func(c *Config) { c.ClientCA = ca })
	cfg := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{transport.ALPN}, ClientSessionCache: tls.NewLRUClientSessionCache(4),
		Certificates: []tls.Certificate{ours.client(t, "a", time.Hour)}}
	for range 3 {
		conn, err := quic.DialAddr(within(t, patience), d.server.Addr().String(), cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		// A ticket, if there was one, has come before the daemon ends the
		// connection for its silence.
		stream, err := conn.OpenStreamSync(within(t, patience))
		if err == nil {
			_, err = stream.Write(make([]byte, 64))
		}
		if err != nil {
			t.Fatal(err)
		}
		<-conn.Context().Done()
		if conn.ConnectionState().TLS.DidResume {
			t.Error("a connection was resumed by a ticket")
		}
	}
}

// Off loopback any one of three keys has to say who may record.
func TestOffLoopback(t *testing.T) {
	for _, c := range []struct {
		args []string
		ok   bool
	}{
		{nil, false}, {[]string{"--tokens", "t"}, true}, {[]string{"--client-ca", "c"}, true}, {[]string{"--allow-unauthenticated"}, true},
	} {
		for _, addr := range []string{"0.0.0.0:4433", ":4433", "[::]:4433", "192.0.2.1:4433", "recorder.example:4433"} {
			_, err := load(t, "", nil, append(c.args, "--listen", addr)...)
			if (err == nil) != c.ok {
				t.Errorf("%s with %q: %v", addr, c.args, err)
			}
			for _, key := range []string{"listen", "tokens", "client_ca", "allow_unauthenticated"} {
				if err != nil && !strings.Contains(err.Error(), key) {
					t.Errorf("%s: %v, want it to name %s", addr, err, key)
				}
			}
		}
	}
}

// badGuards are contents of the files that cannot be used.
var badGuards = []struct{ key, file, want string }{
	{"tokens", "eu record *\n", "line 1: 3 fields"},
	{"tokens", "# a\n\nname rt_x record * never\n", "line 3"},
	{"tokens", "", "empty"},
	{"client_ca", "", "empty"},
	{"client_ca", "no certificate\n", "no PEM certificate"},
	{"client_ca", "-----BEGIN CERTIFICATE-----\nMIIB", "cut off"},
	{"client_ca", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "certificate 1, which ends before line 4"},
	{"client_ca", "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n", "it is a PRIVATE KEY"},
}

func TestBadGuards(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	check := func(cfg Config, want string) {
		t.Helper()
		g, err := readGuard(&cfg)
		var bad *keyError
		if !errors.As(err, &bad) || exitCode(err) != exitUsage || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("guard %v, %v; want an error with %q that names the file", g, err, want)
		}
	}
	check(Config{Tokens: path}, "tokens: ")
	check(Config{ClientCA: path}, "client_ca: ")
	for _, bad := range badGuards {
		put(t, path, []byte(bad.file))
		cfg := Config{Tokens: path}
		if bad.key == "client_ca" {
			cfg = Config{ClientCA: path}
		}
		check(cfg, bad.want)
	}
	old, valid := newAuthority(t, -time.Hour), newAuthority(t, time.Hour)
	put(t, path, []byte(old.pem))
	check(Config{ClientCA: path}, "valid now")
	put(t, path, []byte("in use\n"+old.pem+"\nnext\n"+valid.pem))
	if _, err := readGuard(&Config{ClientCA: path}); err != nil {
		t.Errorf("an expired authority beside a valid one: %v", err)
	}
}
