package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/cmd/internal/keys"
)

// TestDaemonSignsWhatItRecords streams a match to a daemon with a key.
func TestDaemonSignsWhatItRecords(t *testing.T) {
	data, file := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "daemon.key")
	public, err := keys.Generate(file, "daemon")
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, data, "127.0.0.1:0", "--signing-key", file)
	m := match{id: "signed-1", seed: 7}
	game := m.play(t, dial(t, p.addr, p.pin))
	for range 50 {
		game.tick()
	}
	end := game.sealIn(data)
	path := fileOf(t, data, m.id)
	m.whole(t, path, end)
	report, err := opened(t, path).Check()
	if err != nil || len(report.Signatures) != 1 || report.Signatures[0].Key != public.Key {
		t.Errorf("signatures %+v, %v", report.Signatures, err)
	}
	if !strings.Contains(p.Log.String(), public.Key.ID()) {
		t.Errorf("the log does not name the key: %s", p.Log.String())
	}
	if b, err := os.ReadFile(path); err != nil || bytes.Contains(b, []byte("127.0.0.1")) {
		t.Errorf("the file holds an address, or cannot be read: %v", err)
	}
	p.Terminate()
	if code := p.ExitCode(20 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestBadSigningKey(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	if _, err := keys.Generate(file, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ file, want string }{
		"missing":           {filepath.Join(dir, "none"), "none"},
		"a public one":      {file + ".pub", "is no private key"},
		"one for everybody": {file, "chmod 600"},
	} {
		var out, log bytes.Buffer
		args := []string{"--listen", "127.0.0.1:0", "--http", "", "--data", filepath.Join(t.TempDir(), "data"), "--signing-key", c.file}
		if code := Main(args, &out, &log); code != exitUsage || !strings.Contains(log.String(), "signing_key: ") || !strings.Contains(log.String(), c.want) {
			t.Errorf("%s: exit code %d, log %s", name, code, log.String())
		}
	}
}
