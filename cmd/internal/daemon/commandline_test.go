package daemon

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
)

// --version answers on standard output, whatever else is said.
func TestVersion(t *testing.T) {
	var out, log bytes.Buffer
	if code := Main([]string{"--version", "--data", ""}, &out, &log); code != exitOK || log.Len() > 0 {
		t.Errorf("exit code %d, log %q", code, &log)
	}
	if got := out.String(); !strings.HasPrefix(got, "reprised ") || !strings.Contains(got, "protocol ") || strings.Count(got, "\n") != 1 {
		t.Errorf("output %q", got)
	}
}

// A health check says what it means that nobody is there, and keeps the cause
// where that is another.
func TestHealthUnanswered(t *testing.T) {
	port := freePort(t)
	for addr, want := range map[string]string{
		port:                      "reprised: nothing answers on " + port + ": the daemon is not running, or not ready yet\n",
		"no-such-host.invalid:80": "no-such-host.invalid",
	} {
		var log bytes.Buffer
		if code := Main([]string{"--health", "--http", addr}, io.Discard, &log); code != exitNotTried || !strings.Contains(log.String(), want) {
			t.Errorf("exit code %d, log %q; want %d and %q", code, &log, exitNotTried, want)
		}
	}
}

// A misspelt variable sets nothing, which is said with the key it is most
// like.
func TestStrangeVariables(t *testing.T) {
	got := strangeVariables([]string{"HOME=/", "REPRISE_DATA=x", "REPRISE_SESION_WINDOW=1MiB", "REPRISE_=", "REPRISE_ADMIRAL_ON_BOARD=yes", "REPRISE_TOKEN=t", "REPRISE_data=x", "XREPRISE_DATA=x"})
	want := []strange{{"REPRISE_SESION_WINDOW", "REPRISE_SESSION_WINDOW"}, {"REPRISE_", ""}, {"REPRISE_ADMIRAL_ON_BOARD", ""}, {"REPRISE_TOKEN", "REPRISE_TOKENS"}, {"REPRISE_data", ""}}
	if !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	for pair, want := range map[[2]string]int{{"", ""}: 0, {"", "abc"}: 3, {"abc", ""}: 3, {"kitten", "sitting"}: 3, {"same", "same"}: 0, {"ab", "ba"}: 2} {
		if got := typos(pair[0], pair[1]); got != want {
			t.Errorf("%q and %q are %d apart, want %d", pair[0], pair[1], got, want)
		}
	}
}

func TestDaemonNamesStrangeVariables(t *testing.T) {
	t.Parallel()
	p := launch(t, []string{"REPRISE_SESION_WINDOW=2MiB", "REPRISE_HTTP="}, "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--segment-bytes", "512KiB")
	if line, ok := p.Line(patience); !ok {
		t.Fatalf("no ready line: %q", line)
	}
	p.Terminate()
	if code := p.ExitCode(patience); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if log := p.Log.String(); !strings.Contains(log, "level=WARN") || !strings.Contains(log, "variable=REPRISE_SESION_WINDOW nearest=REPRISE_SESSION_WINDOW") || strings.Contains(log, "variable=REPRISE_HTTP") {
		t.Errorf("log %s", log)
	}
}
