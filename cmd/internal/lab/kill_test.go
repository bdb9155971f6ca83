package lab

import (
	"path/filepath"
	"testing"
	"time"

	"reprise/cmd/internal/load"
)

// The daemon is killed again and again under load, and started on the same
// port. Its clients come back by themselves, and nothing acknowledged is lost.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	d := start(t, data, freePort(t), "--segment-bytes", "512KiB", "--file-interval", "200ms")
	c := newCrowd(t)
	for _, prefix := range []string{"red", "green", "blue", "gold"} {
		c.add(dial(t, d.addr, d.pin, hasty), prefix, pick(10, 50), load.Script{Rate: 60, Players: 2, StepBytes: 60})
	}
	kills, pause := pick(6, 60), pick(700*time.Millisecond, 5*time.Second)
	for range kills {
		time.Sleep(pause)
		c.progress()
		d.Kill()
		d = start(t, data, d.addr, "--segment-bytes", "512KiB", "--file-interval", "200ms")
	}
	c.seal()
	if n := c.leftOut(); n > 0 {
		t.Errorf("clients left out %d ticks, though they had room for all", n)
	}
	d.terminate()
	t.Logf("%d kills", kills)
	verdict(t, data, c.promises())
}
