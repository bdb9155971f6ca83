package daemon

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/cmd/internal/proctest"
	"reprise/transport"
)

// awaitLog does something and waits for a line of the log that holds all of
// wants.
func (p *process) awaitLog(do func(), wants ...string) {
	p.t.Helper()
	before := len(p.Log.String())
	do()
	eventually(p.t, fmt.Sprintf("a line of the log with %q", wants), func() bool {
		for line := range strings.Lines(p.Log.String()[before:]) {
			all := true
			for _, want := range wants {
				all = all && strings.Contains(line, want)
			}
			if all {
				return true
			}
		}
		return false
	})
}

// A change of any file is taken by itself, all or nothing; a bad one shows
// until a good one comes. Connections and sessions that run stay.
func TestReloadByFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, config, tokens, ca := filepath.Join(dir, "data"), filepath.Join(dir, "reprised.toml"), filepath.Join(dir, "tokens"), filepath.Join(dir, "ca.pem")
	old, renewed, expired, use := makePair(t, time.Hour), makePair(t, time.Hour), makePair(t, -time.Hour), makePair(t, time.Hour)
	copyFile(t, old.cert, use.cert)
	copyFile(t, old.key, use.key)
	authority := newAuthority(t, time.Hour)
	token, line := newToken(t, "server", "*", time.Time{})
	later, laterLine := newToken(t, "later", "*", time.Time{})
	cert := authority.client(t, "server", time.Hour)
	text := fmt.Sprintf("data = %q\nlisten = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\nsegment_bytes = \"512KiB\"\ntls_cert = %q\ntls_key = %q\ntokens = %q\nclient_ca = %q\n",
		data, use.cert, use.key, tokens, ca)
	good := func() {
		swap(t, config, text)
		swap(t, tokens, line)
		swap(t, ca, authority.pem)
		swap(t, use.cert, readText(t, old.cert))
		swap(t, use.key, readText(t, old.key))
	}
	good()
	p := launch(t, nil, "--config", config)
	p.awaitReady()
	c := dial(t, p.addr, p.pin, func(cfg *transport.ClientConfig) {
		cfg.Token = []byte(token)
		cfg.TLS.Certificates = append(cfg.TLS.Certificates, cert)
	})
	w := playAll(t, c, seed(t), 2)
	progress(t, w.players)

	type change struct {
		name  string
		do    func()
		wants []string
	}
	var changes []change
	for _, bad := range badGuards[:4] {
		path := map[string]string{"tokens": tokens, "client_ca": ca}[bad.key]
		changes = append(changes, change{bad.key + " " + bad.want, func() { swap(t, path, bad.file) }, []string{bad.key + ": " + path, bad.want}})
	}
	changes = append(changes, []change{
		{"syntax", func() { swap(t, config, text+"segments = \n") }, []string{config + ", line 9"}},
		{"unknown key", func() { swap(t, config, text+"\nsegmnts = 5\n") }, []string{config + ", line 10", "segmnts"}},
		{"negative", func() { swap(t, config, text+"min_free = -1\n") }, []string{config + ", line 9: min_free"}},
		{"empty", func() { swap(t, config, "") }, []string{config, "empty"}},
		{"no configuration", func() { os.Remove(config) }, []string{config}},
		{"no tokens", func() { os.Remove(tokens) }, []string{"tokens: ", tokens}},
		{"tokens no file", func() { os.Remove(tokens); os.Mkdir(tokens, 0o700) }, []string{"tokens: ", tokens}},
		{"certificate before key", func() { copyFile(t, renewed.cert, use.cert) }, []string{"tls_cert: ", use.cert, "private key"}},
		{"expired pair", func() { copyFile(t, expired.cert, use.cert); copyFile(t, expired.key, use.key) }, []string{"tls_cert: ", use.cert, "renew"}},
		{"no pair", func() { os.Remove(use.cert); os.Remove(use.key) }, []string{"tls_cert: ", use.cert}},
		// The good half of it must not be taken.
		{"tokens with a bad key", func() { swap(t, config, text+"max_sessions = 0\n"); swap(t, tokens, laterLine) }, []string{config + ", line 9: max_sessions"}},
		{"tokens with a bad pair", func() { swap(t, use.key, ""); swap(t, tokens, laterLine) }, []string{"tls_cert: ", use.key}},
	}...)
	for _, bad := range changes {
		p.awaitLog(bad.do, append(bad.wants, "level=ERROR", "reload refused")...)
		if code, body := get(t, p.http, "/readyz"); code != http.StatusOK || !strings.Contains(body, "note: configuration: ") {
			t.Errorf("%s: /readyz says %d %q, want 200 with a note", bad.name, code, body)
		}
		if got := figures(t, p.http)["reprise_trouble/configuration"]; got != 1 {
			t.Errorf("%s: the trouble is %v, want 1", bad.name, got)
		}
		if err := tryRecord(t, p, "later", later, cert); !refusedWith(err, "not known") {
			t.Errorf("%s: a token of the refused reload: %v, want unauthorised", bad.name, err)
		}
		if got := served(t, p.addr, cert); got != old.fingerprint {
			t.Errorf("%s: new connections get %s, want %s", bad.name, got, old.fingerprint)
		}
		p.awaitLog(func() { removeFolder(t, tokens); good() }, "level=INFO", "msg=reloaded", old.fingerprint)
		eventually(t, "readiness without a note after "+bad.name, func() bool { _, body := get(t, p.http, "/readyz"); return body == "ready\n" })
	}
	if _, any := figures(t, p.http)["reprise_trouble/configuration"]; any {
		t.Error("the trouble stays after a good reload")
	}
	for _, restart := range []struct{ key, text string }{
		{"data", strings.Replace(text, data, data+"2", 1)},
		{"listen", strings.Replace(text, "listen = \"127.0.0.1:0\"", "listen = \"127.0.0.1:1\"", 1)},
		{"max_segments", text + "max_segments = 20\n"},
	} {
		p.awaitLog(func() { swap(t, config, restart.text) }, "level=WARN", "need a restart", "keys="+restart.key)
	}
	p.awaitLog(func() { copyFile(t, renewed.cert, use.cert); copyFile(t, renewed.key, use.key) }, "level=WARN", renewed.fingerprint)
	progress(t, w.players)
	w.sealAll(t, data)
	if c.Stats().Connects != 1 {
		t.Errorf("%d connections, want the first one to stay", c.Stats().Connects)
	}
}

func readText(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func removeFolder(t testing.TB, path string) {
	t.Helper()
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// Fifty changes in a moment, every other one bad, end with the last one in
// force, and drop nobody.
func TestRapidChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "tokens")
	token, line := newToken(t, "server", "*", time.Time{})
	put(t, file, []byte(line))
	p := start(t, data, "127.0.0.1:0", "--tokens", file)
	c := dial(t, p.addr, p.pin, func(cfg *transport.ClientConfig) { cfg.Token = []byte(token) })
	w := playAll(t, c, seed(t), 2)
	progress(t, w.players)
	last, lastLine := newToken(t, "last", "*", time.Time{})
	for range 25 {
		swap(t, file, "half a line")
		swap(t, file, line)
	}
	swap(t, file, lastLine)
	eventually(t, "the last file in force", func() bool { return tryRecord(t, p, "never", token) != nil })
	if err := tryRecord(t, p, "last", last); err != nil {
		t.Errorf("the token of the last file: %v", err)
	}
	progress(t, w.players)
	w.sealAll(t, data)
	if c.Stats().Connects != 1 {
		t.Errorf("%d connections, want the first one to stay", c.Stats().Connects)
	}
}

// A configuration cannot take away what keeps an address off loopback, which
// needs a restart to change, from being open to anyone.
func TestReloadKeepsGuard(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	_, line := newToken(t, "a", "*", time.Time{})
	put(t, file, []byte(line))
	cfg := Default()
	cfg.Listen, cfg.Tokens = "192.0.2.1:4433", file
	var log proctest.Text
	d := New(cfg, &log)
	next := Default()
	d.ReloadFrom(Source{Load: func() (Config, error) { return next, next.Validate() }})
	defer d.watch.close()
	d.reload()
	if d.cfg.Tokens != file || !strings.Contains(log.String(), "reload refused") || !strings.Contains(log.String(), "192.0.2.1") {
		t.Errorf("tokens are %q, the log says %q; want them to stay", d.cfg.Tokens, log.String())
	}
}

// Whatever puts another file behind a path is noticed, and only that.
func TestWatcher(t *testing.T) {
	for name, way := range map[string]func(t *testing.T, dir string) (path string, change func() error){
		"written": func(t *testing.T, dir string) (string, func() error) {
			path := filepath.Join(dir, "f")
			put(t, path, []byte("1"))
			return path, func() error { return os.WriteFile(path, []byte("2"), 0o600) }
		},
		"renamed": func(t *testing.T, dir string) (string, func() error) {
			path := filepath.Join(dir, "f")
			put(t, path, []byte("1"))
			put(t, path+".new", []byte("2"))
			return path, func() error { return os.Rename(path+".new", path) }
		},
		"made": func(_ *testing.T, dir string) (string, func() error) {
			path := filepath.Join(dir, "f")
			return path, func() error { return os.WriteFile(path, []byte("2"), 0o600) }
		},
		"removed": func(t *testing.T, dir string) (string, func() error) {
			path := filepath.Join(dir, "f")
			put(t, path, []byte("1"))
			return path, func() error { return os.Remove(path) }
		},
		"link to a link in another folder": func(t *testing.T, dir string) (string, func() error) {
			for _, sub := range []string{"here", "live", "store"} {
				if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			put(t, filepath.Join(dir, "store", "f1"), []byte("1"))
			put(t, filepath.Join(dir, "store", "f2"), []byte("2"))
			link(t, "../store/f1", filepath.Join(dir, "live", "f"))
			link(t, "../store/f2", filepath.Join(dir, "live", "f.new"))
			link(t, filepath.Join(dir, "live", "f"), filepath.Join(dir, "here", "f"))
			return filepath.Join(dir, "here", "f"), func() error { return os.Rename(filepath.Join(dir, "live", "f.new"), filepath.Join(dir, "live", "f")) }
		},
		"link to a folder": func(t *testing.T, dir string) (string, func() error) {
			for n, sub := range []string{"v1", "v2"} {
				if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
					t.Fatal(err)
				}
				put(t, filepath.Join(dir, sub, "f"), []byte{byte(n)})
			}
			link(t, "v1", filepath.Join(dir, "data"))
			link(t, "v2", filepath.Join(dir, "data.new"))
			link(t, "data/f", filepath.Join(dir, "f"))
			return filepath.Join(dir, "f"), func() error { return os.Rename(filepath.Join(dir, "data.new"), filepath.Join(dir, "data")) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, change := way(t, t.TempDir())
			// It never looks by itself here: an event has to come.
			w := newWatcher(time.Hour)
			defer w.close()
			w.turnTo([]string{path})
			put(t, filepath.Join(filepath.Dir(path), "other"), []byte("x"))
			awaitRing(t, w)
			if w.differ() {
				t.Error("another file in the folder counts as a change")
			}
			if err := change(); err != nil {
				t.Fatal(err)
			}
			if !w.differ() {
				t.Error("the change is not seen")
			}
			awaitRing(t, w)
			w.refresh()
			if w.differ() {
				t.Error("it differs from what was just read")
			}
			// And again, in the place where it is now.
			if err := os.WriteFile(path, []byte("3"), 0o600); err != nil {
				t.Fatal(err)
			}
			awaitRing(t, w)
			if !w.differ() {
				t.Error("the second change is not seen")
			}
		})
	}
}

func link(t testing.TB, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Skipf("no symbolic links: %v", err)
	}
}

func awaitRing(t testing.TB, w *watcher) {
	t.Helper()
	select {
	case <-w.changed:
	case <-time.After(patience):
		t.Fatal("the watcher says nothing")
	}
}

// Where no event comes, it looks from time to time; what is no file, or
// stands behind a circle of links, does not hold it up.
func TestWatcherLooks(t *testing.T) {
	dir := t.TempDir()
	w := newWatcher(time.Millisecond)
	defer w.close()
	circle := filepath.Join(dir, "circle")
	link(t, "circle", circle)
	path := filepath.Join(dir, "none", "f")
	w.turnTo([]string{path, circle, dir})
	awaitRing(t, w)
	if w.differ() {
		t.Error("a change, where there was none")
	}
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	awaitRing(t, w)
	if !w.differ() {
		t.Error("the change is not seen")
	}
}
