package daemon

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"reprise/transport"
)

// pair is a certificate and its key in files.
type pair struct{ cert, key, fingerprint string }

// makePair makes a self-signed pair that is valid until then.
func makePair(t testing.TB, until time.Duration) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "recorder"}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(until),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := pair{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), fmt.Sprintf("%x", sha256.Sum256(der))}
	put(t, p.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	put(t, p.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
	return p
}

// put makes a file of bytes, in the place of whatever is there.
func put(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, b, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// copyFile copies a file over another.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	put(t, to, b)
}

// served is the fingerprint of the certificate that a new connection gets.
func served(t testing.TB, addr string, certs ...tls.Certificate) string {
	t.Helper()
	conn, err := quic.DialAddr(within(t, patience), addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{transport.ALPN}, Certificates: certs}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseWithError(0, "")
	return fmt.Sprintf("%x", sha256.Sum256(conn.ConnectionState().TLS.PeerCertificates[0].Raw))
}

// reloaded sends SIGHUP and gives the one line that the log then has.
func (p *process) reloaded() string {
	p.t.Helper()
	before := len(p.Log.String())
	p.Cmd.Process.Signal(syscall.SIGHUP)
	eventually(p.t, "an answer to SIGHUP", func() bool { return strings.HasSuffix(p.Log.String()[before:], "\n") })
	line := p.Log.String()[before:]
	if strings.Count(line, "\n") != 1 {
		p.t.Errorf("a reload logs %q, want one line", line)
	}
	return line
}

// A renewed certificate is taken into use for new connections. A pair that
// cannot be used is refused with one line, and the old one stays. The
// connections that run stay in any case.
func TestReloadCertificate(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	old, renewed, expired := makePair(t, time.Hour), makePair(t, time.Hour), makePair(t, -time.Hour)
	use := makePair(t, time.Hour)
	copyFile(t, old.cert, use.cert)
	copyFile(t, old.key, use.key)
	p := start(t, data, "127.0.0.1:0", "--auto-reload=false", "--tls-cert", use.cert, "--tls-key", use.key)
	if p.pin != old.fingerprint {
		t.Fatalf("fingerprint %s, want %s", p.pin, old.fingerprint)
	}
	var told complaints
	c := dial(t, p.addr, p.pin, func(cfg *transport.ClientConfig) { cfg.OnError = told.take })
	w := playAll(t, c, seed(t), 3)
	progress(t, w.players)
	check := func(name, fingerprint, line string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(line, want) {
				t.Errorf("%s: the log says %q, want %q in it", name, line, want)
			}
		}
		if got := served(t, p.addr); got != fingerprint {
			t.Errorf("%s: new connections get %s, want %s", name, got, fingerprint)
		}
		if b, err := os.ReadFile(filepath.Join(data, "tls", "fingerprint")); err != nil || string(b) != fingerprint+"\n" {
			t.Errorf("%s: the file says %q (%v), want %s", name, b, err, fingerprint)
		}
	}
	refused := []string{"level=ERROR", "reload refused", use.cert}
	for _, bad := range []struct {
		name  string
		spoil func()
	}{
		{"certificate before its key", func() { copyFile(t, renewed.cert, use.cert) }},
		{"cut certificate", func() { put(t, use.cert, []byte("-----BEGIN CERTIFICATE-----\nMIIB")) }},
		{"empty key", func() { put(t, use.key, nil) }},
		{"expired", func() { copyFile(t, expired.cert, use.cert); copyFile(t, expired.key, use.key) }},
		{"key cannot be read", func() { os.RemoveAll(use.key); os.Mkdir(use.key, 0o700) }},
		{"both gone", func() { os.RemoveAll(use.cert); os.RemoveAll(use.key) }},
	} {
		copyFile(t, old.cert, use.cert)
		copyFile(t, old.key, use.key)
		bad.spoil()
		check(bad.name, old.fingerprint, p.reloaded(), refused...)
	}
	copyFile(t, renewed.cert, use.cert)
	copyFile(t, renewed.key, use.key)
	check("renewed", renewed.fingerprint, p.reloaded(), "level=INFO", "reloaded", renewed.fingerprint)

	// A storm of them does no harm.
	for range 50 {
		p.Cmd.Process.Signal(syscall.SIGHUP)
		time.Sleep(time.Second / 50)
	}
	check("after the storm", renewed.fingerprint, p.reloaded(), "reloaded")
	progress(t, w.players)
	if c.Stats().Connects != 1 {
		t.Errorf("%d connections, want the first one to stay", c.Stats().Connects)
	}
	w.sealAll(t, data)
	if len(told.list) > 0 {
		t.Errorf("the client complains: %v", told.list)
	}
	if left, _ := filepath.Glob(filepath.Join(data, "tls", "*.new")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// Keys that are live take effect; of others the log says that they need a
// restart; a bad file changes nothing, and is told by key and line.
func TestReloadConfiguration(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "reprised.toml")
	put(t, file, []byte("log_level = \"info\"\nsegment_bytes = \"512KiB\"\n"))
	p := launch(t, nil, "--config", file, "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--auto-reload=false")
	p.awaitReady()
	for _, c := range []struct {
		name, file string
		want       []string
	}{
		{"syntax", "log_level = \"debug\"\nsegments = \n", []string{"level=ERROR", "reprised.toml, line 2"}},
		{"unknown key", "log_level = \"debug\"\n\nsegmnts = 5\n", []string{"level=ERROR", "line 3", "segmnts"}},
		{"negative", "min_free = -1\n", []string{"level=ERROR", "min_free"}},
		{"out of range", "log_level = \"debug\"\nsegments = 1\n", []string{"level=ERROR", "reprised.toml, line 2: segments is 1"}},
		{"empty", "", []string{"level=ERROR", "empty"}},
		{"off loopback", "log_level = \"error\"\nallow_unauthenticated = false\nmax_sessions = 0\n", []string{"level=ERROR", "reprised.toml, line 3: max_sessions"}},
		{"needs a restart", "segment_bytes = \"1MiB\"\nresume_timeout = \"1m\"\ndrain_timeout = \"7s\"\n", []string{"level=WARN", "segment_bytes, resume_timeout", "restart"}},
		{"as it was", "segment_bytes = \"512KiB\"\n", []string{"level=INFO", "reloaded"}},
		// The flag of the start goes over the file.
		{"under a flag", "segment_bytes = \"512KiB\"\nhttp = \"127.0.0.1:1\"\n", []string{"level=INFO", "reloaded"}},
	} {
		put(t, file, []byte(c.file))
		line := p.reloaded()
		for _, want := range c.want {
			if !strings.Contains(line, want) {
				t.Errorf("%s: the log says %q, want %q in it", c.name, line, want)
			}
		}
	}
	put(t, file, []byte("segment_bytes = \"512KiB\"\ndrain_timeout = \"11s\"\n"))
	p.reloaded()
	p.Terminate()
	if code := p.ExitCode(patience); code != 0 || !strings.Contains(p.Log.String(), "timeout=11s") {
		t.Errorf("exit code %d, log %q; want the end to take the new drain_timeout", code, &p.Log)
	}
}

// The live keys of a configuration are taken, the names of the others that
// differ are given.
func TestTake(t *testing.T) {
	now, next := Default(), Default()
	next.LogLevel, next.DrainTimeout.Duration, next.Listen, next.Segments = "debug", time.Second, "127.0.0.1:1", 5
	restart := now.take(&next)
	if now.LogLevel != "debug" || now.DrainTimeout.Duration != time.Second {
		t.Errorf("log level %s and drain timeout %v, want the new ones", now.LogLevel, now.DrainTimeout)
	}
	if now.Listen != Default().Listen || strings.Join(restart, " ") != "listen segments" {
		t.Errorf("listen %s, %q need a restart; want the old one, and listen and segments", now.Listen, restart)
	}
}

// A log level takes effect with the reload.
func TestReloadLogLevel(t *testing.T) {
	cfg := Default()
	var log bytes.Buffer
	d := New(cfg, &log)
	if d.log.Enabled(t.Context(), slog.LevelDebug) || !d.log.Enabled(t.Context(), slog.LevelInfo) {
		t.Error("the level at the start is not info")
	}
	next := cfg
	next.LogLevel = "debug"
	d.cfg.take(&next)
	d.setLevel()
	if !d.log.Enabled(t.Context(), slog.LevelDebug) {
		t.Error("the level is not debug")
	}
}

// A reset key lasts, is for its owner only, and is made anew where it is
// damaged.
func TestResetKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	first, err := resetKey(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := resetKey(path)
	if err != nil || *again != *first || *first == [resetKeyBytes]byte{} {
		t.Errorf("the key becomes %x, %v; was %x", again, err, first)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v), want 0600", st.Mode(), err)
	}
	for _, bad := range []string{"", "00ff", strings.Repeat("zz", resetKeyBytes), strings.Repeat("ab", resetKeyBytes+1)} {
		put(t, path, []byte(bad))
		key, err := resetKey(path)
		if err != nil || *key == *first || *key == [resetKeyBytes]byte{} {
			t.Errorf("with %q the key is %x, %v; want a new one", bad, key, err)
		}
	}
}
