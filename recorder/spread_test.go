package recorder

import (
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"reprise/format"
	"reprise/recorder/disktest"
)

// TestFilesAreSpread: the files of many busy sessions are written evenly over
// the interval, and a checkpoint leaves them to that: no moment has many more
// writes than another, and none is written twice as often as it has to be.
func TestFilesAreSpread(t *testing.T) {
	const sessions, seconds, interval = 160, 12, 2 * time.Second
	inBubble(t, func(c *Config) {
		c.FileInterval, c.CheckpointInterval, c.Segments, c.MaxSegments = interval, time.Second, 16, 64
	}, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		start := time.Now()
		writes := map[time.Duration]int{} // by quarter of a second
		disk.SetFault(func(_ int, op disktest.Op, name string) disktest.Fault {
			if op == disktest.OpWrite && strings.HasPrefix(path.Base(name), "room-") {
				writes[time.Since(start)/(interval/8)]++
			}
			return disktest.Fault{}
		})
		var open []*Session
		for i := range sessions {
			s, _, _ := begin(t, r, fmt.Sprint("m", i), 1)
			open = append(open, s)
		}
		for seq := range uint64(seconds * 10) {
			for i, s := range open {
				mustAppend(t, s, ticksChunk(fmt.Sprint("m", i), seq+1, format.Tick(seq), format.Tick(seq+1)))
			}
			time.Sleep(100 * time.Millisecond)
		}
		disk.SetFault(nil)
		most, all := 0, 0
		for _, n := range writes {
			most, all = max(most, n), all+n
		}
		if most > sessions/4 {
			t.Errorf("%d of %d files are written within %v", most, sessions, interval/8)
		}
		if limit := sessions * (seconds/int(interval/time.Second) + 2); all > limit || r.Stats().Checkpoints < 3 {
			t.Errorf("%d writes, want at most %d; %d checkpoints", all, limit, r.Stats().Checkpoints)
		}
		if lags := r.Stats().PendingBytes; lags > sessions*2000 {
			t.Errorf("%d bytes are not in files", lags)
		}
	})
}
