package recorder

import (
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
	"reprise/recorder/disktest"
)

// lateFiles is a recorder that leaves session files to its checkpoints.
func lateFiles(disk FS) Config {
	cfg := smallConfig(disk)
	cfg.FileInterval, cfg.TailBytes, cfg.CheckpointInterval = time.Hour, 1<<20, time.Hour
	return cfg
}

// halfWritten records ticks 0 to 99 of three sessions, of which the files hold
// nothing ("none"), the first half ("half") and all ("all"), and turns the
// machine off.
func halfWritten(t *testing.T, how disktest.Survival) *disktest.Disk {
	t.Helper()
	disk := newDisk()
	r := mustOpen(t, lateFiles(disk))
	add := func(id string, s *Session, in *inbox, from, to uint64) {
		for i := from; i < to; i++ {
			mustAppend(t, s, ticksChunk(id, i+1, format.Tick(i*10), format.Tick(i*10+10)))
		}
		waitDurable(t, in, to)
	}
	all, _, allIn := begin(t, r, "all", 1)
	add("all", all, allIn, 0, 10)
	half, _, halfIn := begin(t, r, "half", 1)
	add("half", half, halfIn, 0, 5)
	if err := r.makeCheckpoint(); err != nil {
		t.Fatal(err)
	}
	add("half", half, halfIn, 5, 10)
	none, _, noneIn := begin(t, r, "none", 1)
	add("none", none, noneIn, 0, 10)
	after := disk.Crash(how)
	r.Close(canceled())
	return after
}

var threeSessions = []string{"all", "half", "none"}

// TestStartOnFullDisk: a start that cannot write session files goes on
// nevertheless. What it cannot write stays in the journal, also through the
// next crash, and is written when there is room.
func TestStartOnFullDisk(t *testing.T) {
	for how := range disktest.Survival(disktest.Survivals) {
		for _, fault := range []string{"full", "bad"} {
			t.Run(fmt.Sprint(fault, how), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { startOnFullDisk(t, halfWritten(t, how), fault, how) })
			})
		}
	}
}

func startOnFullDisk(t *testing.T, disk *disktest.Disk, fault string, how disktest.Survival) {
	spoil := func(disk *disktest.Disk) {
		disk.SetFree(0)
		if fault == "bad" {
			disk.SetFree(-1)
			disk.SetFault(func(_ int, op disktest.Op, name string) disktest.Fault {
				if op == disktest.OpWrite && strings.HasPrefix(path.Base(name), "room-") {
					return disktest.Fault{Err: syscall.EIO}
				}
				return disktest.Fault{}
			})
		}
	}
	for range 3 {
		spoil(disk)
		r := mustOpen(t, lateFiles(disk))
		if len(r.Stats().Troubles) == 0 || len(r.List()) != 3 {
			t.Fatalf("troubles %v, sessions %+v", r.Stats().Troubles, r.List())
		}
		r.Close(canceled())
		disk = disk.Crash(how)
	}
	spoil(disk)
	r := mustOpen(t, lateFiles(disk))
	for _, id := range threeSessions {
		s, reply, in := begin(t, r, id, 2)
		if reply.NextTick != 100 || reply.Durable != 10 {
			t.Fatalf("%s: reply %+v", id, reply)
		}
		if err := s.Append(ticksChunk(id, 10, 90, 100)); err != nil {
			t.Fatalf("%s: what is there is not taken again: %v", id, err)
		}
		mustAppend(t, s, ticksChunk(id, 11, 100, 110))
		waitDurable(t, in, 11)
	}
	r.Close(canceled())
	disk = disk.Crash(how)
	spoil(disk)
	r = mustOpen(t, lateFiles(disk))
	if p := r.Stats().PendingBytes; p == 0 {
		t.Error("nothing waits for the files")
	}
	disk.SetFree(-1)
	disk.SetFault(nil)
	waitFor(t, "the end of trouble", func() bool { return len(r.Stats().Troubles) == 0 && r.Stats().PendingBytes == 0 })
	if _, used := r.journal.segments(); used > 1 {
		t.Errorf("%d segments are used after the checkpoint", used)
	}
	for _, id := range threeSessions {
		s, reply, in := begin(t, r, id, 3)
		if reply.NextTick != 110 {
			t.Fatalf("%s: reply %+v", id, reply)
		}
		info := seal(t, r, s, id, in)
		if err := verifyTicks(sealedBytes(t, disk, info), id, 0, 110, nil); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	mustClose(t, r)
}

// TestStartWithoutRoom: where a start needs room it says how much, and where.
func TestStartWithoutRoom(t *testing.T) {
	disk := newDisk()
	disk.SetFree(100 << 10)
	_, err := Open(smallConfig(disk))
	if err == nil || !strings.Contains(err.Error(), "make room: 524288 bytes needed in data/journal") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the first start says %v", err)
	}
	after := halfWritten(t, disktest.SurviveNothing)
	after.SetFree(0)
	cfg := smallConfig(after)
	cfg.MaxPendingBytes = 1000
	_, err = Open(cfg)
	if err == nil || !strings.Contains(err.Error(), "make room: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a start whose memory does not suffice says %v", err)
	}
}

// TestRenameDoneWithError: a rename that was done and reports an error is not
// done again for ever.
func TestRenameDoneWithError(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		r.fs = lyingRename{r.fs}
		s, _, in := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 50))
		info := seal(t, r, s, "m", in)
		if err := verifyTicks(sealedBytes(t, disk, info), "m", 0, 50, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// lyingRename renames, and reports an error.
type lyingRename struct{ FS }

func (d lyingRename) Rename(from, to string) error {
	if err := d.FS.Rename(from, to); err != nil {
		return err
	}
	return syscall.EIO
}

// TestLargestChunk: the journal gets as many segments as a chunk needs.
func TestLargestChunk(t *testing.T) {
	inBubble(t, func(c *Config) { c.SegmentBytes, c.ChunkBytes, c.SessionWindow = 512<<10, 1<<20, 1<<20 }, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		b := format.NewBatchBuilder(format.Width16, 8, 0)
		if err := b.Step(1, format.Bytes(make([]byte, 1<<20-100))); err != nil {
			t.Fatal(err)
		}
		b.EndTick()
		mustAppend(t, s, format.AppendChunk(nil, format.ChunkTicks, 1, b.AppendBody(nil)))
		waitDurable(t, in, 1)
		all, _ := r.journal.segments()
		if want := 1 + 8*(1<<20)/(512<<10-pageSize) + 1; all != want {
			t.Errorf("%d segments, want %d", all, want)
		}
	})
}

// TestNoPathsToProducers: refusals say what kind of trouble it is, and name no
// file of the daemon.
func TestNoPathsToProducers(t *testing.T) {
	inBubble(t, func(c *Config) { c.SessionWindow = 2 << 10 }, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 20))
		waitDurable(t, in, 1)
		if err := r.makeCheckpoint(); err != nil {
			t.Fatal(err)
		}
		check := func(what string, text string) {
			t.Helper()
			if text == "" || strings.Contains(text, dataDir+"/") || strings.Contains(text, "room-") || strings.Contains(text, segmentPrefix) {
				t.Errorf("%s: a producer is told %q", what, text)
			}
		}
		disk.SetFault(func(_ int, op disktest.Op, _ string) disktest.Fault {
			if op == disktest.OpSync {
				return disktest.Fault{Err: syscall.EIO}
			}
			return disktest.Fault{}
		})
		mustAppend(t, s, ticksChunk("m", 2, 20, 40))
		waitFor(t, "the stall is told", func() bool { return in.get().stalled != nil })
		check("a stall", in.get().stalled.Text)
		disk.SetFault(nil)
		waitDurable(t, in, 2)

		name := disk.Find("room-m-")[0]
		good := r.fs
		r.fs = unreadable{good}
		check("a chunk again", wantRefusal(t, s.Append(ticksChunk("m", 1, 0, 10)), CodeStorage).Text)
		s.Detach()
		r.session("m").tracker = nil // as after a start
		_, _, err := r.OpenSession(OpenRequest{ID: "m", Producer: key(1), Epoch: 2})
		check("an open", wantRefusal(t, err, CodeStorage).Text)
		r.fs = good
		if err := disk.Rename(name, name+".away"); err != nil {
			t.Fatal(err)
		}
		r.setAside(r.session("m"), fmt.Errorf("its file is missing: open %s", name))
		_, _, err = r.OpenSession(OpenRequest{ID: "m", Producer: key(1), Epoch: 3})
		check("an open of a session set aside", wantRefusal(t, err, CodeDamaged).Text)
		r.Close(canceled())
	})
}

// unreadable is a disk whose session files cannot be opened.
type unreadable struct{ FS }

func (d unreadable) OpenFile(name string, create bool) (File, error) {
	if strings.HasPrefix(path.Base(name), "room-") {
		return nil, fmt.Errorf("open %s: %w", name, syscall.EIO)
	}
	return d.FS.OpenFile(name, create)
}
