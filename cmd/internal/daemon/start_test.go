package daemon

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What cannot start says why in one line, under its exit code.
func TestBadStart(t *testing.T) {
	udp, tcp := takenPorts(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := makePair(t, time.Hour), makePair(t, time.Hour)
	expired := makePair(t, -time.Hour)
	for name, c := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"unknown key":          {[]string{"--config", file("unknown.toml", "# one\n# two\nresume_timout = \"1m\"\n")}, exitUsage, []string{"unknown.toml, line 3", `"resume_timout"`}},
		"bad value":            {[]string{"--config", file("bad.toml", "segments = \"four\"\n")}, exitUsage, []string{"bad.toml, line 1"}},
		"empty file":           {[]string{"--config", file("empty.toml", "")}, exitUsage, []string{"empty.toml is empty"}},
		"no file":              {[]string{"--config", filepath.Join(dir, "none.toml")}, exitUsage, []string{"none.toml"}},
		"unknown flag":         {[]string{"--segmnts", "4"}, exitUsage, []string{"--segmnts"}},
		"bad flag":             {[]string{"--resume-timeout", "5"}, exitUsage, []string{"resume-timeout", "a number and a unit"}},
		"argument":             {[]string{"start"}, exitUsage, []string{`"start"`}},
		"off loopback":         {[]string{"--listen", "0.0.0.0:0"}, exitUsage, []string{"listen", "0.0.0.0:0", "--tokens", "--client-ca", "--allow-unauthenticated"}},
		"no tokens":            {[]string{"--tokens", filepath.Join(dir, "none")}, exitUsage, []string{"tokens: ", filepath.Join(dir, "none")}},
		"bad tokens":           {[]string{"--tokens", file("tokens", "# a\nb\n")}, exitUsage, []string{"tokens: ", filepath.Join(dir, "tokens") + ", line 2"}},
		"bad client authority": {[]string{"--client-ca", file("ca.pem", "x")}, exitUsage, []string{"client_ca: ", filepath.Join(dir, "ca.pem")}},
		"listen in use":        {[]string{"--listen", udp.LocalAddr().String()}, exitNotTried, []string{"reprised: listen " + udp.LocalAddr().String() + ": bind: ", "in use: is another reprised running? choose another address with --listen"}},
		"http in use":          {[]string{"--http", tcp.Addr().String()}, exitNotTried, []string{"reprised: http " + tcp.Addr().String() + ": bind: ", "in use: is another reprised running? choose another address with --http"}},
		"listen not ours":      {[]string{"--listen", "192.0.2.1:0", "--allow-unauthenticated"}, exitNotTried, []string{"listen 192.0.2.1:0: bind: ", ": choose another address with --listen"}},
		"data not a folder":    {[]string{"--data", file("data", "a file")}, exitNotTried, []string{"data folder", "not a directory"}},
		"pair does not fit":    {[]string{"--tls-cert", a.cert, "--tls-key", b.key}, exitNotTried, []string{a.cert, b.key, "private key"}},
		"pair expired":         {[]string{"--tls-cert", expired.cert, "--tls-key", expired.key}, exitNotTried, []string{expired.cert, "renew"}},
		"pair missing":         {[]string{"--tls-cert", filepath.Join(dir, "none.pem"), "--tls-key", a.key}, exitNotTried, []string{"none.pem"}},
		"pair is no pem":       {[]string{"--tls-cert", file("cert.pem", "x"), "--tls-key", a.key}, exitNotTried, []string{"cert.pem"}},
		"half a pair":          {[]string{"--tls-cert", a.cert}, exitUsage, []string{"tls_cert", "tls_key"}},
		"health, no daemon":    {[]string{"--health", "--http", "127.0.0.1:1"}, exitNotTried, []string{"127.0.0.1:1"}},
		"health, no address":   {[]string{"--health", "--http", ""}, exitNotTried, []string{"--http"}},
		"little memory":        {[]string{"--max-pending", "31MiB"}, exitUsage, []string{"max_pending", "32MiB"}},
		"few segments at most": {[]string{"--segments", "5", "--max-segments", "4"}, exitUsage, []string{"max_segments"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out, log bytes.Buffer
			args := append([]string{"--listen", "127.0.0.1:0", "--http", "", "--segment-bytes", "512KiB", "--log-level", "warn", "--data", filepath.Join(t.TempDir(), "data")}, c.args...)
			if code := Main(args, &out, &log); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if out.Len() > 0 || strings.Count(log.String(), "\n") != 1 || !strings.HasPrefix(log.String(), "reprised: ") {
				t.Errorf("output %q, log %q; want one line in the log", out.String(), log.String())
			}
			for _, want := range c.want {
				if !strings.Contains(log.String(), want) {
					t.Errorf("log %q, want %q in it", log.String(), want)
				}
			}
		})
	}
}

// A data folder without the right to write ends with 3.
func TestDataNotWritable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	if code := Main([]string{"--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--http", ""}, &out, &log); code != exitNotTried || !strings.Contains(log.String(), "permission denied") {
		t.Errorf("exit code %d, log %q", code, log.String())
	}
}

func TestHelp(t *testing.T) {
	var out, log bytes.Buffer
	if code := Main([]string{"--help"}, &out, &log); code != exitOK || log.Len() > 0 {
		t.Fatalf("exit code %d, log %q", code, log.String())
	}
	c := Default()
	for _, want := range []string{"Examples:", "Exit codes:", "--session-window", c.SessionWindow.String()} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help has no %q", want)
		}
	}
}

// One ready line is all the output there is; the service manager hears of
// start, life and end.
func TestServiceManager(t *testing.T) {
	// Names of sockets are short.
	dir, err := os.MkdirTemp("", "n")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unixgram"})
	if err != nil {
		t.Skipf("no datagram sockets in the file system: %v", err)
	}
	defer socket.Close()
	heard := make(chan string, 100)
	go func() {
		defer close(heard)
		b := make([]byte, 1000)
		for {
			n, err := socket.Read(b)
			if err != nil {
				return
			}
			heard <- string(b[:n])
		}
	}()
	next := func(want string) {
		t.Helper()
		select {
		case got := <-heard:
			if got != want {
				t.Fatalf("the service manager hears %q, want %q", got, want)
			}
		case <-time.After(patience):
			t.Fatalf("the service manager hears nothing, want %q", want)
		}
	}
	p := launch(t, []string{"NOTIFY_SOCKET=" + filepath.Join(dir, "s"), "WATCHDOG_USEC=200000"},
		"--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--segment-bytes", "512KiB")
	p.awaitReady()
	next("READY=1")
	begin := time.Now()
	for range 3 {
		next("WATCHDOG=1")
	}
	if took := time.Since(begin); took < 200*time.Millisecond || took > 2*time.Second {
		t.Errorf("3 signs of life in %v, want one every 100 ms", took)
	}
	p.Terminate()
	for got := range heard {
		if got == "STOPPING=1" {
			break
		}
		if got != "WATCHDOG=1" {
			t.Errorf("the service manager hears %q", got)
		}
	}
	if code := p.ExitCode(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if line, more := <-p.Lines; more {
		t.Errorf("after the ready line it prints %q", line)
	}
}

func TestWatchdogOfAnother(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	n := &notifier{here}
	defer n.close()
	for name, c := range map[string]struct {
		micros, pid string
		want        bool
	}{
		"ours":           {"1000000", "", true},
		"ours by number": {"1000000", strconv.Itoa(os.Getpid()), true},
		"another's":      {"1000000", "1", false},
		"none":           {"", "", false},
		"nonsense":       {"x", "", false},
		"zero":           {"0", "", false},
	} {
		if got := n.beat(c.micros, c.pid) != nil; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if (&notifier{}).beat("1000000", "") != nil {
		t.Error("a watchdog without a service manager")
	}
}

// --health asks the daemon, wherever it listens.
func TestHealth(t *testing.T) {
	t.Parallel()
	d, disk := onBrittleDisk(t)
	var out, log bytes.Buffer
	if code := Main([]string{"--health", "--http", d.httpAddr.String()}, &out, &log); code != exitOK {
		t.Errorf("exit code %d, %s", code, &log)
	}
	disk.fill()
	eventually(t, "a full disk", func() bool { return len(d.notReady()) > 0 })
	if code := Main([]string{"--health", "--http", d.httpAddr.String()}, &out, &log); code != exitNotTried || !strings.Contains(log.String(), "free space") {
		t.Errorf("exit code %d, log %q; want %d and the reason", code, &log, exitNotTried)
	}
	for addr, want := range map[string]string{"0.0.0.0:80": "127.0.0.1:80", ":80": "127.0.0.1:80", "[::]:80": "[::1]:80", "127.0.0.2:80": "127.0.0.2:80", "name:80": "name:80"} {
		if got := reachable(addr); got != want {
			t.Errorf("%s is asked at %s, want %s", addr, got, want)
		}
	}
}

// The end during the start ends with 0, too.
func TestSignalDuringStart(t *testing.T) {
	t.Parallel()
	p := launch(t, nil, "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--segment-bytes", "64MiB")
	journal := filepath.Join(p.Cmd.Args[2], "journal")
	eventually(t, "the journal", func() bool { _, err := os.Stat(journal); return err == nil })
	p.Cmd.Process.Signal(syscall.SIGINT)
	if code := p.ExitCode(patience); code != 0 {
		t.Errorf("exit code %d, want 0\n%s", code, &p.Log)
	}
}
