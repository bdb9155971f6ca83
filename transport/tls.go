package transport

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// Fingerprint is the SHA-256 of a certificate's DER bytes.
type Fingerprint [sha256.Size]byte

// String gives 64 hex digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// ParseFingerprint reads 64 hex digits, in either case, with or without
// colons.
func ParseFingerprint(s string) (f Fingerprint, err error) {
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(s), ":", ""))
	if err != nil || len(b) != len(f) {
		return f, fmt.Errorf("fingerprint %.80q is not 64 hex digits: use the SHA-256 that the daemon prints", s)
	}
	return Fingerprint(b), nil
}

// Keypair is a daemon's certificate and key on disk. Reload takes a changed
// pair into use for new connections; those that run keep theirs.
type Keypair struct {
	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]
}

// LoadKeypair reads a certificate (with its chain) and its key, both PEM.
func LoadKeypair(certFile, keyFile string) (*Keypair, error) {
	k := &Keypair{certFile: certFile, keyFile: keyFile}
	return k, k.Reload()
}

// Reload reads the files again. On an error the pair in use stays: a pair
// that does not fit together or is not valid now is never taken into use.
func (k *Keypair) Reload() error {
	pair, err := tls.LoadX509KeyPair(k.certFile, k.keyFile)
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", k.certFile, k.keyFile, err)
	}
	if now := time.Now(); now.Before(pair.Leaf.NotBefore) || now.After(pair.Leaf.NotAfter) {
		return fmt.Errorf("certificate %s is valid from %s to %s, which is not now: renew it", k.certFile,
			pair.Leaf.NotBefore.Format(time.RFC3339), pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	k.current.Store(&pair)
	return nil
}

// Fingerprint is that of the certificate in use.
func (k *Keypair) Fingerprint() Fingerprint {
	return sha256.Sum256(k.current.Load().Certificate[0])
}

// NotAfter is when the certificate in use ends to be valid.
func (k *Keypair) NotAfter() time.Time { return k.current.Load().Leaf.NotAfter }

// Config is a daemon's TLS configuration that always gives the pair in use.
func (k *Keypair) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{ALPN},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.current.Load(), nil }}
}

const (
	certName = "cert.pem"
	keyName  = "key.pem"
	// selfSignedFor is long: a pin is compared with the certificate itself,
	// and changing it means to tell every game server.
	selfSignedFor = 20 * 365 * 24 * time.Hour
)

// SelfSigned loads the pair of dir, cert.pem and key.pem. Where the
// certificate is missing it makes one for this machine's name and loopback,
// with the key that is there or a new one that only its owner can read.
func SelfSigned(dir string) (*Keypair, error) {
	certFile, keyFile := filepath.Join(dir, certName), filepath.Join(dir, keyName)
	if missing(certFile) {
		if err := makePair(dir, certFile, keyFile); err != nil {
			return nil, fmt.Errorf("making a self-signed certificate in %s: %w", dir, err)
		}
	}
	return LoadKeypair(certFile, keyFile)
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func makePair(dir, certFile, keyFile string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	key, err := loadOrMakeKey(keyFile)
	if err != nil {
		return err
	}
	template, err := selfSignedTemplate()
	if err != nil {
		return err
	}
	certDER, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	return writeWhole(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certDER}), 0o644)
}

func loadOrMakeKey(path string) (crypto.Signer, error) {
	if !missing(path) {
		return loadKey(path)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writeWhole(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

func loadKey(path string) (crypto.Signer, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM key", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the key of %s cannot sign", path)
	}
	return signer, nil
}

// selfSignedTemplate is its own authority, so that a client can also name
// the certificate as its CA.
func selfSignedTemplate() (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	names := []string{"localhost"}
	if host, err := os.Hostname(); err == nil && host != "localhost" {
		names = append(names, host)
	}
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "reprised"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(selfSignedFor),
		DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true}, nil
}

// writeWhole makes a file appear with all its bytes, or not at all.
func writeWhole(path string, b []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Trust says how a client knows its daemon. At most one of Pin, CAFile and
// Insecure is set; with none the system's authorities decide.
type Trust struct {
	// Pin is the fingerprint of the daemon's certificate; see ParseFingerprint.
	Pin string
	// CAFile holds the certificates of authorities, PEM.
	CAFile string
	// Insecure trusts any certificate: anyone on the network path can then
	// pose as the daemon.
	Insecure bool
	// ServerName is the name that the certificate must carry; empty means
	// the host of the address that is dialed. Only for authorities.
	ServerName string
}

// Config makes a client's TLS configuration.
func (t Trust) Config() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{ALPN}, ServerName: t.ServerName}
	set := 0
	for _, is := range [...]bool{t.Pin != "", t.CAFile != "", t.Insecure} {
		if is {
			set++
		}
	}
	switch {
	case set > 1:
		return nil, errors.New("a pin, a CA file and insecure exclude each other: give one")
	case t.Pin != "":
		pin, err := ParseFingerprint(t.Pin)
		if err != nil {
			return nil, err
		}
		cfg.InsecureSkipVerify = true // VerifyConnection compares the pin instead
		cfg.VerifyConnection = func(s tls.ConnectionState) error { return pin.check(s) }
	case t.CAFile != "":
		pool, err := loadCAs(t.CAFile)
		if err != nil {
			return nil, err
		}
		cfg.RootCAs = pool
	case t.Insecure:
		cfg.InsecureSkipVerify = true
	}
	return cfg, nil
}

// check compares the daemon's own certificate with the pin.
func (f Fingerprint) check(s tls.ConnectionState) error {
	got := Fingerprint(sha256.Sum256(s.PeerCertificates[0].Raw))
	if !bytes.Equal(got[:], f[:]) {
		return fmt.Errorf("the daemon's certificate has fingerprint %v, the pin is %v: another daemon answers, or its certificate was renewed", got, f)
	}
	return nil
}

func loadCAs(path string) (*x509.CertPool, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("%s holds no PEM certificate", path)
	}
	return pool, nil
}
