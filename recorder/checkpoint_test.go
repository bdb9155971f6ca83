package recorder

import (
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
	"reprise/recorder/disktest"
)

// patient leaves files and checkpoints to the test.
func patient(cfg *Config) {
	cfg.FileInterval, cfg.CheckpointInterval, cfg.CheckpointBytes, cfg.TailBytes = time.Hour, time.Hour, 1<<30, 1<<30
}

// TestCheckpointLeavesFilesAlone: what files have is freed, what one lacks is
// not, and nobody is hurried.
func TestCheckpointLeavesFilesAlone(t *testing.T) {
	inBubble(t, patient, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		a, _, inA := begin(t, r, "a", 1)
		b, _, inB := begin(t, r, "b", 1)
		<-r.queue.barrier()
		if err := r.makeCheckpoint(); err != nil {
			t.Fatal(err)
		}
		before := r.journal.settledAt()
		mustAppend(t, a, ticksChunk("a", 1, 0, 20))
		waitDurable(t, inA, 1)
		between := r.journal.settledAt()
		mustAppend(t, b, ticksChunk("b", 1, 0, 20))
		waitDurable(t, inB, 1)
		for _, step := range []struct {
			write *recording
			want  uint64
		}{
			{nil, before},                // both lack their ticks
			{a.s, between},               // b lacks its own
			{b.s, r.journal.settledAt()}, // nobody lacks anything
			{nil, r.journal.settledAt()}, // and nothing new came
		} {
			if step.write != nil {
				if err := r.writeFile(step.write); err != nil {
					t.Fatal(err)
				}
			}
			pending := r.pending.Load()
			if err := r.freeFiled(); err != nil {
				t.Fatal(err)
			}
			if got := r.journal.checkpoint.needed; got != step.want {
				t.Errorf("the journal is freed before record %d, want %d", got, step.want)
			}
			if r.pending.Load() != pending {
				t.Error("the checkpoint wrote a file")
			}
		}
	})
}

// TestLongQuietSession: a session that was quiet for long lacks only what came
// since, however old what it had before.
func TestLongQuietSession(t *testing.T) {
	inBubble(t, patient, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		quiet, _, inQuiet := begin(t, r, "quiet", 1)
		busy, _, inBusy := begin(t, r, "busy", 1)
		for seq := range uint64(20) {
			mustAppend(t, busy, ticksChunk("busy", seq+1, format.Tick(10*seq), format.Tick(10*seq+10)))
			waitDurable(t, inBusy, seq+1)
			if err := r.makeCheckpoint(); err != nil {
				t.Fatal(err)
			}
		}
		want := r.journal.settledAt()
		mustAppend(t, quiet, ticksChunk("quiet", 1, 0, 10))
		waitDurable(t, inQuiet, 1)
		if got := r.filed(); got != want {
			t.Errorf("the files have all before record %d, want %d", got, want)
		}
	})
}

// TestJournalGrows: where files lag, the journal grows before they are all
// written at once, up to its usual size, and not into what is kept for a disk
// in trouble.
func TestJournalGrows(t *testing.T) {
	grow := func(cfg *Config) {
		patient(cfg)
		cfg.Segments, cfg.MaxSegments, cfg.SessionWindow = 2, 8, 1<<20
	}
	inBubble(t, grow, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		written := 0
		for seq, next := uint64(1), format.Tick(0); seq < 400; seq, next = seq+1, next+100 {
			chunk := ticksChunk("m", seq, next, next+100)
			mustAppend(t, s, chunk)
			waitDurable(t, in, seq)
			all, _ := r.journal.segments()
			if all > r.journal.usual() {
				t.Fatalf("%d segments, the usual number is %d", all, r.journal.usual())
			}
			if r.pending.Load() <= int64(len(chunk)) {
				written++
				if all < r.journal.usual() {
					t.Fatalf("the file was written when there were %d segments", all)
				}
			}
		}
		if written < 2 {
			t.Errorf("the journal was full %d times", written)
		}
	})
}

// TestFilesKeepPaceWithJournal: the files lag no longer than journal and memory
// last, whatever the number of sessions.
func TestFilesKeepPaceWithJournal(t *testing.T) {
	const interval = 2 * time.Second
	q := newFileQueue()
	for range 10_000 {
		q.waiting = append(q.waiting, waitingFile{})
	}
	for _, c := range []struct{ most, want time.Duration }{
		{0, 8 * time.Second}, {time.Minute, 8 * time.Second}, {5 * time.Second, 5 * time.Second}, {time.Millisecond, interval},
	} {
		if q.bound(c.most); q.lag(interval) != c.want {
			t.Errorf("with room for %v the files lag by %v, want %v", c.most, q.lag(interval), c.want)
		}
	}
}

// TestTimeFor reckons by what came lately, and not by a moment in which too
// little came to tell.
func TestTimeFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := startJournal(t, disktest.New(rand.New(rand.NewPCG(1, 2))))
		if got := j.timeFor(1 << 20); got < 100*365*24*time.Hour {
			t.Errorf("where nothing came, a megabyte comes in %v", got)
		}
		for _, c := range []struct {
			bytes int64
			in    time.Duration
			want  time.Duration // until 4 MiB have come
		}{
			{1 << 20, 2 * time.Second, 8 * time.Second},
			{0, time.Millisecond, 8 * time.Second}, // two checkpoints in a row
			{j.newBytes/4 - 1, time.Millisecond, 8 * time.Second},
			{1 << 20, time.Second / 2, 2 * time.Second},
			{1 << 10, time.Second, 4096 * time.Second}, // it has become quiet
		} {
			time.Sleep(c.in)
			j.written = c.bytes
			if err := j.release(0); err != nil {
				t.Fatal(err)
			}
			if got := j.timeFor(4 << 20).Round(time.Millisecond); got != c.want {
				t.Errorf("after %d bytes in %v, 4 MiB come in %v, want %v", c.bytes, c.in, got, c.want)
			}
		}
	})
}

// TestFilesInTurn: each look takes an even part, at most twice of it where
// sessions have waited for too long, and all where memory is short.
func TestFilesInTurn(t *testing.T) {
	const interval = 2 * time.Second
	fill := func(waited time.Duration) *fileQueue {
		q := newFileQueue()
		for range 10_000 {
			q.waiting = append(q.waiting, waitingFile{&recording{}, time.Now().Add(-waited)})
		}
		return &q
	}
	part := int(interval/fileSpacing/fileParts) + 1
	for _, c := range []struct {
		waited  time.Duration
		part    int
		hurried bool
		want    int
	}{
		{0, 1, false, part}, {time.Minute, 1, false, 2 * part}, {time.Minute, 0, false, 0}, {0, 0, true, 10_000},
	} {
		q := fill(c.waited)
		q.hurried = c.hurried
		if got := len(q.take(c.part, interval)); got != c.want || len(q.waiting) != 10_000-got || q.hurried {
			t.Errorf("%+v: %d were taken", c, got)
		}
	}
	q := fill(0)
	q.bound(4 * time.Second)
	if got, want := len(q.take(1, interval)), 10_000*int(interval)/int(4*time.Second)/fileParts+1; got != want {
		t.Errorf("with room for 4 s %d were taken, want %d", got, want)
	}
}

// TestFileThatFailedOnce: a write that fails once, of a session that brings
// nothing more, is done again in its turn, also where a checkpoint that was under
// way has just found the disk to be well.
func TestFileThatFailedOnce(t *testing.T) {
	slow := func(cfg *Config) {
		cfg.SegmentBytes, cfg.MaxSegments = 1<<20, 16
		cfg.FileInterval, cfg.TailBytes = time.Minute, 2<<10
	}
	inBubble(t, slow, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		held, _, inHeld := begin(t, r, "held", 1)
		quiet, _, inQuiet := begin(t, r, "quiet", 1)
		time.Sleep(4 * time.Second) // both have their files
		mustAppend(t, held, ticksChunk("held", 1, 0, 20))
		waitDurable(t, inHeld, 1)
		failed := false
		disk.SetDelay(func(op disktest.Op, name string) time.Duration {
			if op == disktest.OpWrite && strings.Contains(name, "room-held") {
				return 700 * time.Millisecond
			}
			return 0
		})
		disk.SetFault(func(_ int, op disktest.Op, name string) disktest.Fault {
			if failed || op != disktest.OpWrite || !strings.Contains(name, "room-quiet") {
				return disktest.Fault{}
			}
			failed = true
			return disktest.Fault{Err: syscall.EIO}
		})
		r.troubles.report(troubleDisk, errors.New("little is free")) // the checkpoint writes all files
		r.wantCheckpoint()
		time.Sleep(50 * time.Millisecond)
		mustAppend(t, quiet, ticksChunk("quiet", 1, 0, 200)) // a full tail: written at once
		waitDurable(t, inQuiet, 1)
		r.troubles.report(troubleDisk, nil)
		time.Sleep(3 * time.Minute)
		if _, lacks := quiet.s.lacks(); lacks || !failed {
			t.Errorf("the file lacks its ticks: %v; its write failed: %v", lacks, failed)
		}
	})
}

// TestQuietRecorderFrees: behind the last chunk the journal becomes free, though
// the last checkpoint came before the file was written.
func TestQuietRecorderFrees(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 20))
		waitDurable(t, in, 1)
		if err := r.freeFiled(); err != nil {
			t.Fatal(err)
		}
		if _, lacks := s.s.lacks(); !lacks {
			t.Fatal("the file was written before the checkpoint")
		}
		time.Sleep(time.Minute)
		if needed, settled := r.journal.checkpoint.needed, r.journal.settledAt(); needed != settled {
			t.Errorf("the journal is needed from record %d of %d on", needed, settled)
		}
	})
}

// TestReopenedSessionNeedsNothingOld: the file of a session that is gone on with
// lacks nothing of what the journal held before.
func TestReopenedSessionNeedsNothingOld(t *testing.T) {
	inBubble(t, patient, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 20))
		waitDurable(t, in, 1)
		s.Detach()
		time.Sleep(3 * time.Minute)
		if r.session("m") != nil {
			t.Fatal("the session has not ended")
		}
		before := r.journal.settledAt()
		begin(t, r, "m", 2)
		<-r.queue.barrier()
		if got := r.filed(); got < before {
			t.Errorf("the journal is needed from record %d on, its own begin behind %d", got, before)
		}
	})
}

// TestJournalGrowsToItsLimit counts the segment that the writer is about to use.
func TestJournalGrowsToItsLimit(t *testing.T) {
	j := startJournal(t, disktest.New(rand.New(rand.NewPCG(1, 2))))
	j.begins, j.most = 3, 3
	for range 2 {
		if s, err := j.take(); s == nil || err != nil {
			t.Fatal(s, err)
		}
	}
	if s, err := j.take(); s == nil || err != nil {
		t.Fatal(s, err)
	}
	if j.growEarly() {
		t.Error("a fourth segment was made of three")
	}
	if _, err := j.take(); !errors.Is(err, errJournalFull) {
		t.Errorf("taking a fourth segment: %v", err)
	}
}

// starting notes which files were begun to be stored.
type starting struct {
	File
	started *int
}

func (s starting) StartSync(int64, int64) { *s.started++ }

// TestStoredEarly: only files that are synced together with many others.
func TestStoredEarly(t *testing.T) {
	r := &Recorder{files: newFileQueue()}
	started := 0
	for _, c := range []struct{ waiting, want int }{{0, 0}, {4 * syncTogether, 0}, {4*syncTogether + 1, 1}} {
		r.files.waiting = make([]waitingFile, c.waiting)
		started = 0
		r.startStoring(starting{started: &started}, 0, 1)
		if started != c.want {
			t.Errorf("where %d wait, %d were begun, want %d", c.waiting, started, c.want)
		}
	}
}
