//go:build unix

package app

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// terminal is the program in a terminal of 80 columns and 24 lines.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	screen *os.File
	ended  chan struct{}

	mu   sync.Mutex
	seen bytes.Buffer
	read int // how much of seen was waited for
}

// openTerminal starts the program; it is killed at the test's end.
func openTerminal(t *testing.T, environment []string, args ...string) *terminal {
	t.Helper()
	cmd := exec.Command("reprise", args...)
	cmd.Env = append(append(os.Environ(), "TERM=xterm-256color", "NO_COLOR=1", "GORACE=atexit_sleep_ms=0"), environment...)
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, cmd: cmd, screen: screen, ended: make(chan struct{})}
	go func() {
		defer close(x.ended)
		io.Copy(x, screen) // its end is that of the program
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		screen.Close()
	})
	return x
}

// Write takes what the program prints.
func (x *terminal) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.seen.Write(b)
}

// patience is how long something may take on a machine that is busy.
const patience = 60 * time.Second

// await waits until the program has printed a text, behind the last one.
func (x *terminal) await(text string) {
	x.t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(5 * time.Millisecond) {
		x.mu.Lock()
		at := strings.Index(x.seen.String()[x.read:], text)
		if at >= 0 {
			x.read += at + len(text)
		}
		x.mu.Unlock()
		if at >= 0 {
			return
		}
	}
	x.t.Fatalf("%q was not printed after %q", text, x.seen.String()[:x.read])
}

func (x *terminal) send(keys string) {
	x.t.Helper()
	if _, err := io.WriteString(x.screen, keys); err != nil {
		x.t.Fatal(err)
	}
}

// exit waits for the program's end and gives its exit code.
func (x *terminal) exit() int {
	x.t.Helper()
	timer := time.AfterFunc(patience, func() { x.cmd.Process.Kill() })
	defer timer.Stop()
	err := x.cmd.Wait()
	<-x.ended
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		x.t.Fatal(err)
	}
	return x.cmd.ProcessState.ExitCode()
}

// The command itself in a terminal: start, seek, play to the end, quit.
func TestInteractiveInATerminal(t *testing.T) {
	x := openTerminal(t, nil, "play", "--interactive", "--speed", "max", sample{}.write(t))
	x.await("\x1b[?1049h") // the screen of its own
	x.await("at tick 0: ")
	x.send("g150\r")
	x.await("150")
	x.send("\x1b[H") // Home
	x.send(" ")
	x.await("ENDED")
	x.send("q")
	x.await("\x1b[?1049l")
	x.await("compared; ticks 0 to 199")
	if code := x.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if s := x.seen.String(); strings.Contains(s, "\x1b[31m") || strings.Contains(s, "\x1b[33m") {
		t.Error("colour in spite of NO_COLOR")
	}
}

// A desync that was shown is the exit code, too.
func TestInteractiveInATerminalDesync(t *testing.T) {
	x := openTerminal(t, nil, "play", "--interactive", sample{flip: 100}.write(t))
	x.await("at tick 0: ")
	x.send("\x1b[F") // End
	x.await("DESYNC")
	x.send("q")
	if code := x.exit(); code != exitFalse {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(x.seen.String(), "desync at tick 100") {
		t.Error("the desync is not told behind the screen")
	}
}

// A side file keeps the states of one sitting for the next one.
func TestInteractiveInATerminalKeyframes(t *testing.T) {
	match := sample{ticks: 1500}.write(t)
	side := filepath.Join(t.TempDir(), "side.keys")
	for _, want := range []string{`: 1400 ticks run, .*; ticks 0 to 1399\s`,
		`(?s)keyframes: 1 recorded, \d+ read.*: \d{2,3} ticks run, .*; ticks \d+ to 1399\s`} {
		x := openTerminal(t, nil, "play", "--interactive", "--from", "1400", "--keyframes", side, match)
		x.await("at tick 1400: ")
		x.send("q")
		if code := x.exit(); code != exitOK {
			t.Errorf("exit code %d", code)
		}
		if said := x.seen.String(); !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("%q has nothing like %s", said, want)
		}
	}
	x := openTerminal(t, nil, "play", "--interactive", "--keyframes", match, match)
	x.await("that is the replay")
	if code := x.exit(); code != exitUsage {
		t.Errorf("the replay as the side file: exit code %d", code)
	}
}

// A terminal that cannot move its cursor is refused.
func TestInteractiveInADumbTerminal(t *testing.T) {
	x := openTerminal(t, []string{"TERM=dumb"}, "play", "--interactive", sample{}.write(t))
	x.await(`TERM is "dumb"`)
	if code := x.exit(); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
}
