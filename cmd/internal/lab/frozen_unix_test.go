//go:build unix

package lab

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"reprise/cmd/internal/load"
)

// The daemon stops for longer than its clients wait, and goes on where it was:
// with connections that the clients have given up.
func TestDaemonFrozen(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	d := start(t, data, "127.0.0.1:0")
	c := newCrowd(t)
	for _, prefix := range []string{"north", "south"} {
		c.add(dial(t, d.addr, d.pin, hasty), prefix, 10, load.Script{Rate: 60, Players: 2, StepBytes: 60})
	}
	for range pick(2, 10) {
		c.progress()
		d.freeze(pick(2*time.Second, 30*time.Second))
	}
	c.progress()
	c.seal()
	d.terminate()
	verdict(t, data, c.promises())
}

// A game server stops for longer than the daemon waits, and then goes on. The
// others do not feel it.
func TestGameServerFrozen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	d := start(t, data, "127.0.0.1:0", "--resume-timeout", "1s")
	g := newGame(t, gameOptions{addr: d.addr, pin: d.pin, spool: filepath.Join(dir, "spool"), prefix: "frozen", sessions: 3, rate: 60})
	g.start()
	g.progress()
	c := newCrowd(t)
	c.add(dial(t, d.addr, d.pin, hasty), "lively", 5, load.Script{Rate: 60, StepBytes: 60})
	c.progress()
	before := c.promises()
	g.proc.freeze(pick(8*time.Second, time.Minute))
	for i, p := range c.promises() {
		if got := p.Durable - before[i].Durable; got < 60 {
			t.Errorf("session %s had %d ticks acknowledged while another game server was frozen", p.Session, got)
		}
	}
	g.progress()
	g.seal()
	c.seal()
	d.terminate()
	verdict(t, data, append(c.promises(), g.promises...))
}

// freeze stops a process for a while.
func (p *process) freeze(d time.Duration) {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		p.t.Fatal(err)
	}
	time.Sleep(d)
	if err := p.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
		p.t.Fatal(err)
	}
}
