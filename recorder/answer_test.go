package recorder

import (
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reprise/recorder/disktest"
)

// hang has the calls that are picked wait until they are released.
type hang struct{ released chan struct{} }

// hangOn makes a disk hang.
func hangOn(disk *disktest.Disk, picked func(op disktest.Op, name string) bool) *hang {
	h := &hang{released: make(chan struct{})}
	disk.SetDelay(func(op disktest.Op, name string) time.Duration {
		if picked(op, name) {
			<-h.released
		}
		return 0
	})
	return h
}

func (h *hang) release(disk *disktest.Disk) {
	disk.SetDelay(nil)
	close(h.released)
}

// TestHangingJournal: a write or sync of the journal that does not return is
// told to the producers within a second, and to the operator; nothing that the
// operator asks waits for it; all goes on by itself when it returns.
func TestHangingJournal(t *testing.T) {
	for _, op := range []disktest.Op{disktest.OpWrite, disktest.OpSync} {
		t.Run(string(op), func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
				senders := startSenders(t, r, 3)
				play(t, senders, 10)
				h := hangOn(disk, func(got disktest.Op, name string) bool {
					return got == op && strings.HasPrefix(path.Base(name), segmentPrefix)
				})
				play(t, senders, 30)
				for _, p := range senders {
					if p.toldAfter == 0 || p.toldAfter > time.Second {
						t.Errorf("%s was told after %v", p.id, p.toldAfter)
					}
				}
				_, _, in := begin(t, r, "late", 1)
				waitFor(t, "a session that comes later is told", func() bool { return in.get().stalled != nil })
				late, _, back := begin(t, r, "late", 2)
				waitFor(t, "a producer that comes back is told", func() bool { return back.get().stalled != nil })
				limits := r.limits.Load()
				if err := r.SetLimits(Limits{SessionWindow: limits.SessionWindow / 2, MinFreeBytes: limits.MinFreeBytes}); err != nil {
					t.Fatal(err)
				}
				told := back.get().count
				waitFor(t, "a stall is told behind another acknowledgement", func() bool { return back.get().count > told && back.get().last.Stalled != nil })
				before := time.Now()
				if trouble := r.Stats().Troubles[troubleAnswer]; !strings.Contains(trouble, segmentPrefix) {
					t.Errorf("trouble %q does not name the file", trouble)
				}
				if n := len(r.List()); n != 4 {
					t.Errorf("%d sessions are listed", n)
				}
				if _, ok := r.Lookup("never"); ok {
					t.Error("a session that never was is found")
				}
				if waited := time.Since(before); waited > 0 {
					t.Errorf("the operator waited for %v", waited)
				}
				h.release(disk)
				waitFor(t, "the end of trouble", func() bool { return len(r.Stats().Troubles) == 0 })
				mustAppend(t, late, ticksChunk("late", 1, 0, 10))
				waitDurable(t, back, 1)
				finishSenders(t, r, disk, senders)
			})
		})
	}
}

// TestSlowJournal: calls to the disk that all return in time, but take too long
// together, are told within a second, too; the operator hears of no trouble.
func TestSlowJournal(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		senders := startSenders(t, r, 3)
		play(t, senders, 10)
		disk.SetDelay(func(op disktest.Op, name string) time.Duration {
			if strings.HasPrefix(path.Base(name), segmentPrefix) {
				return 700 * time.Millisecond
			}
			return 0
		})
		play(t, senders, 30)
		for _, p := range senders {
			if p.toldAfter == 0 || p.toldAfter > time.Second {
				t.Errorf("%s was told after %v", p.id, p.toldAfter)
			}
		}
		if trouble := r.Stats().Troubles[troubleAnswer]; trouble != "" {
			t.Errorf("trouble %q", trouble)
		}
		disk.SetDelay(nil)
		finishSenders(t, r, disk, senders)
	})
}

// TestHangingSync: a sync of session files that does not return is told to the
// operator, and concerns no acknowledgement.
func TestHangingSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &heldSyncs{Disk: newDisk(), released: make(chan struct{})}
		cfg := smallConfig(disk)
		cfg.Segments, cfg.MaxSegments = 16, 64
		r := mustOpen(t, cfg)
		senders := startSenders(t, r, 3)
		play(t, senders, 10*int((cfg.CheckpointInterval+hangAfterMany)/time.Second)+20)
		if r.Stats().Troubles[troubleAnswer] == "" {
			t.Errorf("no trouble is reported: %+v", r.Stats())
		}
		for _, p := range senders {
			if p.in.get().stalled != nil || p.longest > time.Second {
				t.Errorf("%s: waited %v, stalled %v", p.id, p.longest, p.in.get().stalled)
			}
		}
		close(disk.released)
		finishSenders(t, r, disk.Disk, senders)
		waitFor(t, "the end of trouble", func() bool { return len(r.Stats().Troubles) == 0 })
		mustClose(t, r)
	})
}

// heldSyncs is a disk whose syncs of session files wait.
type heldSyncs struct {
	*disktest.Disk
	released chan struct{}
}

func (d *heldSyncs) SyncFiles(names []string) error {
	if len(names) > 0 {
		<-d.released
	}
	return d.Disk.SyncFiles(names)
}

// TestHangingLedger: a read of the ledger that does not return holds up only
// the one who asks.
func TestHangingLedger(t *testing.T) {
	disk := newDisk()
	slow := &slowReads{Disk: disk, released: make(chan struct{})}
	r := mustOpen(t, smallConfig(slow))
	s, _, in := begin(t, r, "old", 1)
	mustAppend(t, s, ticksChunk("old", 1, 0, 10))
	waitDurable(t, in, 1)
	seal(t, r, s, "old", in)
	if err := r.makeCheckpoint(); err != nil {
		t.Fatal(err)
	}
	slow.hold(ledgerName)
	asked := make(chan bool)
	go func() {
		_, ok := r.Lookup("old")
		asked <- ok
	}()
	opened := make(chan error)
	go func() {
		_, _, err := r.OpenSession(OpenRequest{ID: "old", Producer: key(1), Epoch: 2, Opening: openingOf("old", 0)})
		opened <- err
	}()
	waitFor(t, "both wait", func() bool { return slow.waiting() == 2 })
	s, _, in = begin(t, r, "new", 1)
	mustAppend(t, s, ticksChunk("new", 1, 0, 10))
	waitDurable(t, in, 1)
	if len(r.List()) != 1 || r.Stats().Sessions[StateLive] != 1 {
		t.Errorf("listed are %+v", r.List())
	}
	close(slow.released)
	if !<-asked {
		t.Error("the session that has ended is not found")
	}
	wantRefusal(t, <-opened, CodeEnded)
	mustClose(t, r)
}

// slowReads is a disk on which reads of a file wait.
type slowReads struct {
	*disktest.Disk
	released chan struct{}

	mu    sync.Mutex
	name  string
	waits int
}

func (d *slowReads) hold(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.name = name
}

func (d *slowReads) waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waits
}

func (d *slowReads) OpenFile(name string, create bool) (File, error) {
	f, err := d.Disk.OpenFile(name, create)
	if err != nil {
		return nil, err
	}
	return slowFile{f, d, name}, nil
}

type slowFile struct {
	File
	disk *slowReads
	name string
}

func (f slowFile) ReadAt(b []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	held := f.disk.name != "" && path.Base(f.name) == f.disk.name
	if held {
		f.disk.waits++
	}
	f.disk.mu.Unlock()
	if held {
		<-f.disk.released
	}
	return f.File.ReadAt(b, off)
}
