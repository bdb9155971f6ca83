package keys

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGeneratedKeyIsReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	public, err := Generate(path, "cup 2027")
	if err != nil {
		t.Fatal(err)
	}
	private, err := ReadPrivate(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(private.Public().(ed25519.PublicKey), public.Key[:]) {
		t.Error("the two halves do not belong together")
	}
	trust, err := ReadTrust(path + ".pub")
	if err != nil || len(trust) != 1 || trust[0] != public || public.Name != "cup 2027" {
		t.Errorf("%+v, %v", trust, err)
	}
	for p, want := range map[string]os.FileMode{path: 0o600, path + ".pub": 0o644} {
		st, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" && st.Mode().Perm()&^want != 0 {
			t.Errorf("%s has mode %v", p, st.Mode())
		}
	}
}

func TestKeysAreNeverOverwritten(t *testing.T) {
	dir := t.TempDir()
	for _, there := range []string{"a", "b.pub"} {
		file := write(t, filepath.Join(dir, there), "old")
		if _, err := Generate(filepath.Join(dir, strings.TrimSuffix(there, ".pub")), ""); err == nil || !strings.Contains(err.Error(), "never overwritten") {
			t.Errorf("%s is there: %v", there, err)
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != "old" {
			t.Errorf("%s has changed: %q, %v", there, b, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestBadPrivateKeys(t *testing.T) {
	dir := t.TempDir()
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	block := func(typ string, b []byte) string { return string(pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: b})) }
	for name, c := range map[string]struct{ content, says string }{
		"empty":           {"", "is no private key"},
		"a public block":  {block("PUBLIC KEY", der), "is no private key"},
		"bad bytes":       {block("PRIVATE KEY", []byte("x")), "asn1"},
		"another kind":    {block("PRIVATE KEY", der), "signatures are by ed25519"},
		"a long file":     {strings.Repeat("x", maxFile+1), "is no file of keys"},
		"a public line":   {"ed25519 AAAA x\n", "is no private key"},
		"a lone boundary": {"-----BEGIN PRIVATE KEY-----\n", "is no private key"},
	} {
		if _, err := ReadPrivate(write(t, filepath.Join(dir, "key"), c.content)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	if _, err := ReadPrivate(filepath.Join(dir, "missing")); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestPrivateKeyThatEverybodyReads(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system has no such modes")
	}
	path := filepath.Join(t.TempDir(), "key")
	if _, err := Generate(path, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadPrivate(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("%v", err)
	}
}

const zeros = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

func TestTrustFiles(t *testing.T) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	block := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	trust, err := parseTrust([]byte("# who signs\r\n\r\ned25519 " + zeros + "  the  daemon \r\n" + block + "ed25519 " + zeros))
	if err != nil || len(trust) != 3 {
		t.Fatalf("%+v, %v", trust, err)
	}
	if trust[0].Name != "the  daemon" || trust[1].Name != "" || !bytes.Equal(trust[1].Key[:], public) || trust[2].Name != "" {
		t.Errorf("%+v", trust)
	}
	if p, ok := trust.Find(trust[1].Key); !ok || p.Label() != "key "+p.Key.ID() {
		t.Errorf("%+v, %v", p, ok)
	}
	if p, ok := trust[1:2].Find(trust[0].Key); ok || p.Key != trust[0].Key {
		t.Errorf("an unknown key is found: %+v", p)
	}
	if label := trust[0].Label(); label != "the  daemon (key 66687aadf862bd77)" {
		t.Errorf("%q", label)
	}
}

func TestBadTrustFiles(t *testing.T) {
	private := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
	for name, c := range map[string]struct{ content, says string }{
		"empty":           {"", "no key in it"},
		"comments":        {"# none\n", "no key in it"},
		"a word":          {"\nhello\n", `line 2: "hello" is no public key`},
		"another kind":    {"rsa " + zeros, "is no public key"},
		"a short key":     {"ed25519 AAAA name", "is no public key"},
		"a private key":   {"# x\n" + private, "line 2: this is a private key"},
		"an open block":   {"-----BEGIN PUBLIC KEY-----\nAAAA\n", "line 1: a block of PEM that does not end"},
		"control in name": {"ed25519 " + zeros + " a\x1b[31m", "control characters"},
		"behind a block":  {strings.Replace(private, "PRIVATE", "PUBLIC", 2) + "x\n", "line 1"},
	} {
		if _, err := parseTrust([]byte(c.content)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
