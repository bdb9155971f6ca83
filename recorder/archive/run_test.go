package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
	"reprise/recorder"
	"reprise/recorder/disktest"
)

func readerOf(b []byte) io.ReaderAt { return bytes.NewReader(b) }

// A file stays as it is for the delay, an unfinished one while its producer
// may come back, and one of a session that has not ended for good.
func TestWhenFilesAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newSimulated(1), newLedger()
		l.record(t, d, match{id: "sealed", ticks: 9}, time.Now())
		l.record(t, d, match{id: "unfinished", ticks: 9, end: format.EndUnfinished}, time.Now())
		name, _ := l.record(t, d, match{id: "going-on", ticks: 9}, time.Now())
		l.ended["going-on"] = recorder.Status{ID: "going-on", State: recorder.StateEnding, File: name}
		cfg := config(d, l)
		cfg.Delay, cfg.ReopenWindow = 10*time.Minute, 2*time.Hour
		a, err := Open(cfg)
		must(t, err)
		defer a.Close()
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{9 * time.Minute, ""}, {2 * time.Minute, "sealed"}, {109 * time.Minute, "sealed"}, {2 * time.Minute, "sealed unfinished"}, {100 * time.Hour, "sealed unfinished"}} {
			time.Sleep(step.after)
			synctest.Wait()
			var ids []string
			for _, e := range a.catalog.all() {
				ids = append(ids, e.ID)
			}
			if got := strings.Join(ids, " "); got != step.want {
				t.Fatalf("after %v more: archived %q, want %q", step.after, got, step.want)
			}
		}
	})
}

// Several workers archive a backlog of which many would get one name.
func TestWorkersAndNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newSimulated(1), newLedger()
		all := map[string][]byte{}
		for i := range 40 {
			id := fmt.Sprintf("m-%02d", i)
			_, all[id] = l.record(t, d, match{id: id, game: strings.Repeat("g", 20+i), ticks: 9, seed: uint64(i)}, time.Now())
		}
		cfg := config(d, l)
		cfg.Workers, cfg.NewEncoder = len(encoders), eachEncoder()
		// Cut to the longest part, all names are the same.
		var err error
		cfg.Name, err = ParseTemplate("archive/" + strings.Repeat("<yyyy><mm><dd>", 6) + strings.Repeat("x", 90) + strings.Repeat("<hh>", 4) + "<id>.rply")
		if err == nil {
			t.Fatal("the template is longer than it may be")
		}
		cfg.Name, err = ParseTemplate("archive/" + strings.Repeat("<build><start>", 12) + "<id>.rply")
		must(t, err)
		a, err := Open(cfg)
		must(t, err)
		time.Sleep(time.Minute)
		synctest.Wait()
		must(t, a.Close())
		for id, want := range all {
			e, ok := a.Find(id)
			if !ok {
				t.Errorf("%s is not archived", id)
				continue
			}
			if err := holds(d, e.File, want); err != nil {
				t.Errorf("%s: %v", e.File, err)
			}
		}
		if st := a.Stats(); st.Archived != 40 || st.Queue != 0 || len(st.Troubles) > 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

// A worker takes its share of a processor, in the middle of a file too.
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, share := range []float64{0.1, 0.25, 1} {
			p := newPace(context.Background(), share)
			start := time.Now()
			p.begin()
			for range 1000 {
				time.Sleep(time.Millisecond) // stands for work
				must(t, p.rest())
			}
			worked, rested := p.spent()
			took := time.Since(start)
			if got := worked.Seconds() / took.Seconds(); worked != time.Second || got < share*0.99 || got > share*1.02+0.001 {
				t.Errorf("share %v: %v of work and %v of rest in %v: a share of %.3f", share, worked, rested, took, got)
			}
		}
	})
}

// Waiting between files is no work, and does not earn any.
func TestIdleTimeDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(context.Background(), 0.5)
		time.Sleep(time.Hour)
		p.begin()
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		must(t, p.rest())
		if took := time.Since(start); took != 100*time.Millisecond {
			t.Errorf("a rest of %v for 100 ms of work at a half", took)
		}
	})
}

// Close does not wait for a pause or a long file: its source stays.
func TestCloseInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newSimulated(1), newLedger()
		_, want := l.record(t, d, match{id: "m", ticks: 3000}, time.Now())
		d.SetDelay(func(op disktest.Op, _ string) time.Duration { return 20 * time.Millisecond })
		cfg := config(d, l)
		cfg.Share = 0.0001
		a, err := Open(cfg)
		must(t, err)
		time.Sleep(time.Second)
		start := time.Now()
		must(t, a.Close())
		if took := time.Since(start); took > time.Second {
			t.Errorf("closing took %v", took)
		}
		if left := names(d, sealedFolder); len(left) != 1 || kept(d, want) != nil {
			t.Errorf("the source is %v", left)
		}
		if left := names(d, workFolder); len(left) > 0 {
			t.Errorf("half-written: %v", left)
		}
	})
}

// Archiving stops while what recording needs is at stake, says so, and goes
// on by itself. A small file that fits does not wait for a large one.
func TestRoomOnTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newSimulated(1), newLedger()
		l.setRoom(2<<20+roomForNames+5000, 1<<20)
		l.record(t, d, match{id: "large", ticks: 3000}, time.Now())
		l.record(t, d, match{id: "small", ticks: 20}, time.Now())
		a, err := Open(config(d, l))
		must(t, err)
		defer a.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		_, large := a.Find("large")
		_, small := a.Find("small")
		if large || !small || !strings.Contains(a.Stats().Troubles[troubleRoom], "1 replays wait") {
			t.Errorf("large %v, small %v, stats %+v", large, small, a.Stats())
		}
		l.setRoom(1<<30, 1<<20)
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, large := a.Find("large"); !large || len(a.Stats().Troubles) > 0 {
			t.Errorf("with room: large %v, stats %+v", large, a.Stats())
		}
	})
}

// A disk that is full after all costs an attempt, not a file.
func TestDiskFullWhileWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newSimulated(1), newLedger()
		_, want := l.record(t, d, match{id: "m", ticks: 500}, time.Now())
		d.SetFree(500)
		a, err := Open(config(d, l))
		must(t, err)
		defer a.Close()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		st := a.Stats()
		if st.Archived > 0 || st.Failed > 0 || !strings.Contains(st.Troubles[troubleFull], syscall.ENOSPC.Error()) || len(names(d, workFolder)) > 0 || len(names(d, sealedFolder)) != 1 {
			t.Errorf("stats %+v, half-written %v", st, names(d, workFolder))
		}
		d.SetFree(-1)
		time.Sleep(time.Hour)
		synctest.Wait()
		if e, ok := a.Find("m"); !ok || holds(d, e.File, want) != nil || len(a.Stats().Troubles) > 0 {
			t.Errorf("with room: %+v, stats %+v", e, a.Stats())
		}
	})
}

// A disk that is bad at the start keeps nobody from starting: the work begins
// once it is better.
func TestBadStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newSimulated(1), newLedger()
		l.record(t, d, match{id: "m-1", ticks: 9}, time.Now())
		d.SetFault(func(int, disktest.Op, string) disktest.Fault { return disktest.Fault{Err: syscall.ENOSPC} })
		a, err := Open(config(d, l))
		must(t, err)
		defer a.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		if st := a.Stats(); !strings.Contains(st.Troubles[troubleStart], syscall.ENOSPC.Error()) {
			t.Errorf("stats %+v", st)
		}
		d.SetFault(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, ok := a.Find("m-1"); !ok || len(a.Stats().Troubles) > 0 {
			t.Errorf("archived %v, stats %+v", ok, a.Stats())
		}
	})
}

// A disk that keeps failing shows, and the end of it too. One damaged file
// among good ones is counted, and holds up nobody.
func TestFailuresShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newSimulated(1), newLedger()
		for i := range 5 {
			l.record(t, d, match{id: fmt.Sprint("m-", i), ticks: 9, seed: uint64(i)}, time.Now())
		}
		damaged, _ := l.record(t, d, match{id: "bad", ticks: 9}, time.Now().Add(-time.Hour))
		put(t, d, damaged, []byte("damaged"))
		d.SetFault(func(_ int, op disktest.Op, name string) disktest.Fault {
			if op == disktest.OpSync && strings.HasPrefix(name, workFolder) {
				return disktest.Fault{Err: errors.New("input/output error")}
			}
			return disktest.Fault{}
		})
		var log logged
		cfg := config(d, l)
		cfg.Log = log.logger()
		a, err := Open(cfg)
		must(t, err)
		defer a.Close()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		st := a.Stats()
		if st.Failing != 6 || st.Failed < 12 || st.Failed > 60 || !strings.Contains(st.Troubles[troubleArchiver], "input/output error") {
			t.Errorf("stats %+v", st)
		}
		d.SetFault(nil)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if st := a.Stats(); st.Failing != 1 || st.Archived != 5 || len(st.Troubles) > 0 {
			t.Errorf("when the disk works again: stats %+v", st)
		}
		if b, _ := d.Bytes(damaged); string(b) != "damaged" {
			t.Errorf("the damaged file is now %q", b)
		}
		if !strings.Contains(log.String(), "trouble is over") {
			t.Error("the end of the trouble is not logged")
		}
		must(t, d.Remove(damaged))
		time.Sleep(time.Minute)
		synctest.Wait()
		if st := a.Stats(); st.Failing != 0 {
			t.Errorf("when somebody took the damaged file away: stats %+v", st)
		}
	})
}

// On the real disk: a file that is moved into the inbox is filed by its event.
func TestWatchedInbox(t *testing.T) {
	dir := t.TempDir()
	l := newLedger()
	cfg := config(nil, l)
	cfg.Dir, cfg.Disk = dir, nil
	a, err := Open(cfg)
	must(t, err)
	defer a.Close()
	b := match{id: "dropped", ticks: 30}.bytes(t)
	must(t, os.WriteFile(filepath.Join(dir, "upload"), b, 0o600))
	must(t, os.Rename(filepath.Join(dir, "upload"), filepath.Join(dir, inboxFolder, "dropped.rply")))
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if e, ok := a.Find("dropped"); ok {
			if err := holds(a.disk, e.File, b); err != nil {
				t.Error(err)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("not filed: %+v", a.Stats())
		}
	}
}
