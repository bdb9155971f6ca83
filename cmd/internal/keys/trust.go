package keys

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"reprise/format"
)

// Public is a public key, and whose it is.
type Public struct {
	Key format.PublicKey
	// Name is empty for a key from PEM.
	Name string
}

// algorithm begins a public line.
const algorithm = "ed25519"

// String is the key's line in a file of trusted keys:
//
//	ed25519 BASE64 NAME
func (p Public) String() string {
	return strings.TrimSpace(algorithm + " " + base64.StdEncoding.EncodeToString(p.Key[:]) + " " + p.Name)
}

// Label names the key for people: the name, if there is one, and the id.
func (p Public) Label() string {
	if p.Name == "" {
		return "key " + p.Key.ID()
	}
	return fmt.Sprintf("%s (key %s)", p.Name, p.Key.ID())
}

// Trust is a list of keys that somebody trusts.
type Trust []Public

// Find gives the trusted key; false for an unknown one.
func (t Trust) Find(key format.PublicKey) (Public, bool) {
	for _, p := range t {
		if p.Key == key {
			return p, true
		}
	}
	return Public{Key: key}, false
}

// maxFile bounds the files of keys.
const maxFile = 1 << 20

// readSmall reads a file of keys.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		return nil, fmt.Errorf("%s has more than %d bytes: it is no file of keys", path, maxFile)
	}
	return b, err
}

// ReadTrust reads a file of trusted keys: public lines, empty lines, comments
// that begin with #, and blocks of PEM. It must have at least one key.
func ReadTrust(path string) (Trust, error) {
	b, err := readSmall(path)
	if err != nil {
		return nil, err
	}
	t, err := parseTrust(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func parseTrust(b []byte) (Trust, error) {
	var t Trust
	n := 0
	for len(b) > 0 {
		line, rest, _ := strings.Cut(string(b), "\n")
		n++
		text := strings.TrimSpace(line)
		if strings.HasPrefix(text, "-----BEGIN") {
			block, behind := pem.Decode(b)
			if block == nil {
				return nil, fmt.Errorf("line %d: a block of PEM that does not end", n)
			}
			p, err := parsePEM(block)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			t = append(t, p)
			n += strings.Count(string(b[:len(b)-len(behind)]), "\n") - 1
			b = behind
			continue
		}
		b = []byte(rest)
		if text == "" || text[0] == '#' {
			continue
		}
		p, err := parseLine(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		t = append(t, p)
	}
	if len(t) == 0 {
		return nil, errors.New("no key in it")
	}
	return t, nil
}

func parseLine(line string) (Public, error) {
	kind, rest, _ := strings.Cut(line, " ")
	text, name, _ := strings.Cut(strings.TrimSpace(rest), " ")
	key, err := base64.StdEncoding.DecodeString(text)
	if kind != algorithm || err != nil || len(key) != ed25519.PublicKeySize {
		return Public{}, fmt.Errorf("%q is no public key: use \"ed25519 BASE64 NAME\", as in the .pub file of \"reprise keygen\"", shorten(line))
	}
	p := Public{Key: format.PublicKey(key), Name: strings.TrimSpace(name)}
	return p, checkName(p.Name)
}

func parsePEM(block *pem.Block) (Public, error) {
	if block.Type == privateBlock {
		return Public{}, errors.New("this is a private key: trust its public one, in the .pub file")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return Public{}, err
	}
	public, ok := key.(ed25519.PublicKey)
	if !ok {
		return Public{}, fmt.Errorf("a %T, signatures are by ed25519", key)
	}
	return Public{Key: format.PublicKey(public)}, nil
}

// checkName keeps names on one line.
func checkName(name string) error {
	if len(name) > 256 || strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("name %q: use up to 256 bytes without control characters", shorten(name))
	}
	return nil
}

func shorten(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}
