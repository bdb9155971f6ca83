package recorder

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
	"reprise/recorder/disktest"
)

// sender plays a game server at 60 ticks a second in chunks of a tenth of a
// second. While the recorder takes nothing it keeps up to keep ticks; older
// ones it drops, and declares as a gap.
type sender struct {
	id      string
	s       *Session
	in      *inbox
	seq     uint64
	sent    format.Tick // ticks before it are with the recorder
	now     format.Tick // ticks before it have been played
	keep    format.Tick
	dropped map[format.Tick]bool

	stuckSince time.Time // of the oldest chunk that is not acknowledged
	longest    time.Duration
	toldAfter  time.Duration
}

// play lets so many tenths of a second pass for all senders.
func play(t *testing.T, senders []*sender, tenths int) {
	t.Helper()
	for range tenths {
		time.Sleep(50 * time.Millisecond)
		for _, p := range senders {
			p.now += 6
			p.deliver(t)
		}
		time.Sleep(50 * time.Millisecond)
		for _, p := range senders {
			p.watch()
		}
	}
}

func (p *sender) deliver(t *testing.T) {
	t.Helper()
	if p.now-p.sent > p.keep {
		first, last := p.sent, p.now-6-1
		g := format.Gap{First: first, Last: last, Reason: "the recorder took nothing"}
		if !p.send(t, format.AppendChunk(nil, format.ChunkGap, p.seq+1, format.AppendGap(nil, g))) {
			return
		}
		for x := first; x <= last; x++ {
			p.dropped[x] = true
		}
		p.sent = last + 1
	}
	if p.sent < p.now && p.send(t, ticksChunk(p.id, p.seq+1, p.sent, p.now)) {
		p.sent = p.now
	}
}

func (p *sender) send(t *testing.T, chunk []byte) bool {
	t.Helper()
	err := p.s.Append(chunk)
	if errors.Is(err, &Refusal{Code: CodeWindow}) || errors.Is(err, &Refusal{Code: CodeBusy}) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	p.seq++
	return true
}

// watch measures how long the producer hears nothing good, and when it was
// told.
func (p *sender) watch() {
	in := p.in.get()
	if in.last.Durable == p.seq {
		p.stuckSince = time.Time{}
		p.in.mu.Lock()
		p.in.stalled = nil
		p.in.mu.Unlock()
		return
	}
	if p.stuckSince.IsZero() {
		p.stuckSince = time.Now()
	}
	stuck := time.Since(p.stuckSince)
	p.longest = max(p.longest, stuck)
	if in.stalled == nil {
		p.toldAfter = max(p.toldAfter, stuck)
	}
}

func startSenders(t *testing.T, r *Recorder, n int) []*sender {
	t.Helper()
	var senders []*sender
	for i := range n {
		p := &sender{id: fmt.Sprintf("m%d", i), keep: 120, dropped: map[format.Tick]bool{}}
		p.s, _, p.in = begin(t, r, p.id, 1)
		senders = append(senders, p)
	}
	return senders
}

// finishSenders seals all sessions and reads their files.
func finishSenders(t *testing.T, r *Recorder, disk *disktest.Disk, senders []*sender) {
	t.Helper()
	for _, p := range senders {
		waitDurable(t, p.in, p.seq)
		info := seal(t, r, p.s, p.id, p.in)
		if err := verifyTicks(sealedBytes(t, disk, info), p.id, 0, p.sent, func(x format.Tick) bool { return p.dropped[x] }); err != nil {
			t.Fatalf("%s: %v", p.id, err)
		}
	}
}

// TestFullDisk fills the disk in mid-session and makes room again later.
func TestFullDisk(t *testing.T) {
	for _, each := range []bool{false, true} {
		inBubble(t, func(c *Config) { c.SessionWindow = 4 << 10 }, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
			disk.SetEach(each)
			senders := startSenders(t, r, 3)
			play(t, senders, 50)
			disk.SetFree(20_000)
			for tries := 0; senders[0].toldAfter == 0 && senders[0].in.get().stalled == nil; tries++ {
				play(t, senders, 10)
				if tries == 1000 {
					t.Fatal("the disk is never full")
				}
			}
			play(t, senders, 100)
			if len(r.Stats().Troubles) == 0 {
				t.Error("no trouble is reported")
			}
			for _, name := range disk.Find("room-") {
				b, _ := disk.Bytes(name)
				if f, err := checkFile(b); err != nil {
					t.Fatalf("on the full disk %s: %v, summary %+v", name, err, f)
				}
			}
			disk.Grow(4 << 20)
			play(t, senders, 200)
			for _, p := range senders {
				if p.longest < 5*time.Second || p.toldAfter > time.Second {
					t.Errorf("%s: heard nothing good for %v, was told after %v", p.id, p.longest, p.toldAfter)
				}
				if len(p.dropped) == 0 || p.sent-lastDropped(p) < 600 {
					t.Errorf("%s: dropped %d ticks, the last one %d of %d", p.id, len(p.dropped), lastDropped(p), p.sent)
				}
			}
			finishSenders(t, r, disk, senders)
			waitFor(t, "the end of trouble", func() bool { return len(r.Stats().Troubles) == 0 })
		})
	}
}

func lastDropped(p *sender) (last format.Tick) {
	for x := range p.dropped {
		last = max(last, x)
	}
	return last
}

// TestSyncFailsOnce: the batch of a failed sync is written to another
// segment before it is acknowledged.
func TestSyncFailsOnce(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 50))
		waitDurable(t, in, 1)
		failed := ""
		before := disk.Operations()
		disk.SetFault(func(_ int, kind disktest.Op, name string) disktest.Fault {
			if kind == disktest.OpSync && failed == "" {
				failed = path.Base(name)
				return disktest.Fault{Err: syscall.EIO}
			}
			return disktest.Fault{}
		})
		mustAppend(t, s, ticksChunk("m", 2, 50, 100))
		waitDurable(t, in, 2)
		ops := disk.Log()[before:]
		if len(ops) < 4 || !strings.HasSuffix(ops[1], "sync "+failed) || strings.HasSuffix(ops[3], failed) || !strings.Contains(ops[3], "sync segment-") {
			t.Fatalf("after the failed sync of %s: %q", failed, ops)
		}
		if r.Stats().JournalErrors != 1 {
			t.Fatalf("%d errors counted", r.Stats().JournalErrors)
		}
		// What was acknowledged survives, though the failed sync forgot it.
		after := disk.Crash(disktest.SurviveNothing)
		r2 := mustOpen(t, smallConfig(after))
		if _, reply, _ := begin(t, r2, "m", 2); reply.NextTick != 100 {
			t.Fatalf("reply %+v", reply)
		}
		mustClose(t, r2)
		r.Close(canceled())
	})
}

// TestFileSyncFails: a checkpoint whose sync failed frees nothing before the
// files were written again from the journal.
func TestFileSyncFails(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 50))
		waitDurable(t, in, 1)
		disk.SetFault(func(_ int, kind disktest.Op, _ string) disktest.Fault {
			if kind == disktest.OpSyncFiles {
				return disktest.Fault{Err: syscall.EIO}
			}
			return disktest.Fault{}
		})
		if err := r.makeCheckpoint(); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		if got := r.journal.checkpoint.needed; got != 0 {
			t.Fatalf("freed up to %d", got)
		}
		disk.SetFault(nil)
		if err := r.makeCheckpoint(); err != nil {
			t.Fatal(err)
		}
		r.Close(canceled())
		after := disk.Crash(disktest.SurviveNothing)
		b, _ := after.Bytes(after.Find("room-m-")[0])
		if err := verifyTicks(b, "m", 0, 50, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSlowSync: a sync that takes two seconds delays, and loses nothing.
func TestSlowSync(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		senders := startSenders(t, r, 20)
		play(t, senders, 20)
		slow := true
		disk.SetDelay(func(kind disktest.Op, name string) time.Duration {
			if kind == disktest.OpSync && strings.Contains(name, "segment") && slow {
				slow = false
				return 2 * time.Second
			}
			return 0
		})
		play(t, senders, 60)
		for _, p := range senders {
			if len(p.dropped) > 0 {
				t.Errorf("%s dropped %d ticks", p.id, len(p.dropped))
			}
		}
		finishSenders(t, r, disk, senders)
	})
}

// TestBlockedFile: a session whose file takes no write holds up nobody, nor
// itself. (In real time: a goroutine that waits for a mutex keeps virtual time
// from going on.)
func TestBlockedFile(t *testing.T) {
	disk := newDisk()
	cfg := smallConfig(disk)
	cfg.Segments, cfg.MaxSegments, cfg.FileInterval, cfg.CheckpointInterval = 16, 64, 100*time.Millisecond, 200*time.Millisecond
	r := mustOpen(t, cfg)
	senders := startSenders(t, r, 20)
	play(t, senders, 2)
	release, held := make(chan struct{}), make(chan struct{})
	var once sync.Once
	disk.SetDelay(func(kind disktest.Op, name string) time.Duration {
		if kind == disktest.OpWrite && strings.HasPrefix(path.Base(name), "room-m7-") {
			once.Do(func() { close(held) })
			<-release
		}
		return 0
	})
	play(t, senders, 3)
	<-held
	waitFor(t, "the trouble is told", func() bool { return strings.Contains(r.Stats().Troubles[troubleAnswer], "room-m7-") })
	for _, p := range senders {
		p.longest = 0
	}
	play(t, senders, 15)
	for _, p := range senders {
		if p.longest > time.Second || len(p.dropped) > 0 {
			t.Errorf("%s: waited %v for an acknowledgement, dropped %d ticks", p.id, p.longest, len(p.dropped))
		}
	}
	// Others can end meanwhile.
	seal(t, r, senders[0].s, "m0", senders[0].in)
	close(release)
	finishSenders(t, r, disk, senders[1:])
	mustClose(t, r)
}

// TestBadFile: a session whose file cannot be written at all does not keep
// others from being finished, and is finished itself when that is over.
func TestBadFile(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		senders := startSenders(t, r, 4)
		disk.SetFault(func(_ int, kind disktest.Op, name string) disktest.Fault {
			if (kind == disktest.OpWrite || kind == disktest.OpCreate) && strings.HasPrefix(path.Base(name), "room-m2-") {
				return disktest.Fault{Err: syscall.EIO}
			}
			return disktest.Fault{}
		})
		play(t, senders, 10)
		for _, p := range senders {
			st, _ := r.Lookup(p.id)
			if err := p.s.Seal(st.Totals); err != nil {
				t.Fatal(err)
			}
		}
		waitFor(t, "the others", func() bool { return len(r.List()) == 1 })
		time.Sleep(10 * time.Second)
		if st := r.List()[0]; st.ID != "m2" || st.State != StateEnding || len(r.Stats().Troubles) == 0 {
			t.Fatalf("left is %+v, troubles %v", st, r.Stats().Troubles)
		}
		disk.SetFault(nil)
		waitFor(t, "the last one", func() bool { return senders[2].in.get().sealed != nil })
		if err := verifyTicks(sealedBytes(t, disk, senders[2].in.get().sealed), "m2", 0, 60, nil); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the end of trouble", func() bool { return len(r.Stats().Troubles) == 0 })
	})
}

// TestDiskLow: new sessions are refused before the disk is full, those that
// run go on.
func TestDiskLow(t *testing.T) {
	inBubble(t, func(c *Config) { c.MinFreeBytes = 1 << 20 }, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		disk.SetFree(1 << 19)
		time.Sleep(2 * time.Second)
		_, _, err := r.OpenSession(OpenRequest{ID: "n", Opening: openingOf("n", 0)})
		wantRefusal(t, err, CodeStorage)
		if text := "less than 1MiB are free on the disk"; !strings.Contains(err.Error(), text) {
			t.Errorf("refused with %q, want %q in it", err, text)
		}
		if list := r.Stats().Troubles; len(list) != 1 || !strings.Contains(fmt.Sprint(list), " bytes are free, new sessions need 1MiB: make room") {
			t.Errorf("troubles %v", list)
		}
		mustAppend(t, s, ticksChunk("m", 1, 0, 50))
		waitDurable(t, in, 1)
		disk.Grow(1 << 20)
		time.Sleep(2 * time.Second)
		begin(t, r, "n", 1)
	})
}

// TestCloseOnFullDisk: where the files cannot be written any more Close says so,
// and what was acknowledged is in the journal.
func TestCloseOnFullDisk(t *testing.T) {
	disk := newDisk()
	r := mustOpen(t, smallConfig(disk))
	s, _, in := begin(t, r, "m", 1)
	disk.SetFree(0)
	mustAppend(t, s, ticksChunk("m", 1, 0, 10))
	waitDurable(t, in, 1)
	if err := r.Close(context.Background()); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("Close on a full disk: %v", err)
	}
	disk = disk.Crash(disktest.SurviveNothing)
	disk.SetFree(-1)
	r = mustOpen(t, smallConfig(disk))
	s, reply, in := begin(t, r, "m", 2)
	if reply.Durable != 1 || reply.DurableTick != 10 {
		t.Fatalf("after the next start: %+v", reply)
	}
	if err := verifyTicks(sealedBytes(t, disk, seal(t, r, s, "m", in)), "m", 0, 10, nil); err != nil {
		t.Error(err)
	}
	mustClose(t, r)
}

// TestCloseInTime: a disk that does not answer does not keep Close for ever.
func TestCloseInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newDisk()
		r := mustOpen(t, smallConfig(disk))
		s, _, _ := begin(t, r, "m", 1)
		disk.SetDelay(func(kind disktest.Op, name string) time.Duration {
			if kind == disktest.OpSync {
				return time.Hour
			}
			return 0
		})
		mustAppend(t, s, ticksChunk("m", 1, 0, 50))
		start := time.Now()
		if err := r.Close(canceled()); err == nil || time.Since(start) > 3*time.Second {
			t.Fatalf("closed after %v with %v", time.Since(start), err)
		}
		if err := s.Append(ticksChunk("m", 2, 50, 60)); !errors.Is(err, &Refusal{Code: CodeClosing}) {
			t.Fatal(err)
		}
		if err := r.Close(t.Context()); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour) // the calls return
	})
}
