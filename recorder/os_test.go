package recorder

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/format"
)

// TestRealDisk records, crashes softly and goes on in a real folder.
func TestRealDisk(t *testing.T) {
	cfg := smallConfig(nil)
	cfg.Dir = filepath.Join(t.TempDir(), "a", "data")
	if Running(cfg.Dir) {
		t.Fatal("running before it was opened")
	}
	r := mustOpen(t, cfg)
	if !Running(cfg.Dir) {
		t.Fatal("not running")
	}
	if _, err := Open(cfg); !errors.Is(err, ErrRunning) {
		t.Fatalf("opened twice: %v", err)
	}
	s, _, in := begin(t, r, "m", 1)
	mustAppend(t, s, ticksChunk("m", 1, 0, 300))
	waitDurable(t, in, 1)
	mustClose(t, r)
	if Running(cfg.Dir) {
		t.Fatal("running after Close")
	}
	f, err := format.Open(filepath.Join(cfg.Dir, r.sessions["m"].folder, r.sessions["m"].file()))
	if err != nil || f.Summary().NextTick != 300 || f.Summary().End != nil {
		t.Fatalf("the live file: %v", err)
	}
	f.Close()
	r = mustOpen(t, cfg)
	s, reply, in := begin(t, r, "m", 2)
	if reply.NextTick != 300 || r.Stats().Recovered != 0 {
		t.Fatalf("reply %+v, %d records replayed", reply, r.Stats().Recovered)
	}
	mustAppend(t, s, ticksChunk("m", 2, 300, 400))
	info := seal(t, r, s, "m", in)
	b, err := os.ReadFile(filepath.Join(cfg.Dir, info.File))
	if err != nil {
		t.Fatal(err)
	}
	if err := verifyTicks(b, "m", 0, 400, nil); err != nil {
		t.Fatal(err)
	}
	mustClose(t, r)
}

// TestOSFileSystem: the real disk keeps the contract of FS.
func TestOSFileSystem(t *testing.T) {
	dir := t.TempDir()
	d, err := openOS(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	name := filepath.Join(dir, "f")
	if _, err := d.OpenFile(name, false); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a missing file opens with %v", err)
	}
	f, err := d.OpenFile(name, true)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte("hello"), 3)
	if err := errors.Join(err, f.Sync(), f.Truncate(6)); err != nil {
		t.Fatal(err)
	}
	if n, err := f.Size(); n != 6 || err != nil {
		t.Fatalf("size %d, %v", n, err)
	}
	if err := errors.Join(f.Close(), d.Rename(name, name+"2"), d.SyncDir(dir), os.Mkdir(filepath.Join(dir, "sub"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if names, err := d.List(dir); err != nil || len(names) != 1 || names[0] != "f2" {
		t.Fatalf("names %v, %v", names, err)
	}
	many := []string{name + "2", filepath.Join(dir, "gone")}
	for len(many) < 2*syncTogether {
		many = append(many, many...)
	}
	if err := errors.Join(d.SyncFiles(many[:2]), d.SyncFiles(many), syncEach(many), d.Remove(name+"2")); err != nil {
		t.Fatal(err)
	}
	if free, err := d.Free(); free <= 0 || err != nil {
		t.Fatalf("%d bytes free, %v", free, err)
	}
}

// TestFewDescriptors records many sessions with few open files.
func TestFewDescriptors(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("counting descriptors needs /proc")
	}
	count := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	cfg := smallConfig(nil)
	cfg.Dir, cfg.FileInterval = t.TempDir(), 20*time.Millisecond
	before := count()
	r := mustOpen(t, cfg)
	const n = 500
	var sessions []*Session
	var inboxes []*inbox
	most := 0
	for i := range n {
		s, _, in := begin(t, r, fmt.Sprintf("m%d", i), 1)
		sessions, inboxes = append(sessions, s), append(inboxes, in)
		mustAppend(t, s, ticksChunk(fmt.Sprintf("m%d", i), 1, 0, 20))
		most = max(most, count()-before)
	}
	if err := r.makeCheckpoint(); err != nil {
		t.Fatal(err)
	}
	for i, s := range sessions {
		st, _ := r.Lookup(fmt.Sprintf("m%d", i))
		if err := s.Seal(st.Totals); err != nil {
			t.Fatal(err)
		}
		most = max(most, count()-before)
	}
	for i := range inboxes {
		waitFor(t, "the end", func() bool { return inboxes[i].get().sealed != nil })
	}
	// Journal, ledger, lock, root, and what the writers and syncs hold.
	if limit := 10 + 2*r.cfg.FileWriters + syncTogether*(1+enders); most > limit {
		t.Errorf("%d descriptors for %d sessions, at most %d were due", most, n, limit)
	}
	mustClose(t, r)
	waitFor(t, "the descriptors", func() bool { return count() <= before })
}

// TestManyProducers uses everything at once; it is for the race detector.
func TestManyProducers(t *testing.T) {
	cfg := smallConfig(nil)
	cfg.Dir, cfg.FileInterval, cfg.CheckpointInterval = t.TempDir(), 5*time.Millisecond, 10*time.Millisecond
	cfg.MaxSegments = 32
	r := mustOpen(t, cfg)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(3 * time.Millisecond):
			}
			for _, st := range r.List() {
				if v, ok := r.View(st.ID); ok {
					_, err := io.Copy(io.Discard, io.NewSectionReader(v, 0, v.Size()))
					if err := errors.Join(err, v.Close()); err != nil {
						t.Errorf("view of %s: %v", st.ID, err)
					}
				}
				r.Lookup(st.ID)
			}
			r.Stats()
		}
	})
	var producers sync.WaitGroup
	for i := range 30 {
		producers.Go(func() { produce(t, r, fmt.Sprintf("m%d", i)) })
	}
	producers.Wait()
	close(stop)
	wg.Wait()
	for i := range 30 {
		st, ok := r.Lookup(fmt.Sprintf("m%d", i))
		if !ok || st.Ended == nil {
			t.Fatalf("session %d: %+v", i, st)
		}
		b, err := os.ReadFile(filepath.Join(cfg.Dir, st.File))
		if err != nil {
			t.Fatal(err)
		}
		if err := verifyTicks(b, st.ID, 0, 400, nil); err != nil {
			t.Error(err)
		}
	}
	mustClose(t, r)
}

// produce sends a session with duplicates, overlaps and takeovers, and waits
// for its end.
func produce(t *testing.T, r *Recorder, id string) {
	in := &inbox{}
	open := func(epoch uint64) (*Session, uint64) {
		s, reply, err := r.OpenSession(OpenRequest{ID: id, Producer: key(1), Epoch: epoch, Opening: openingOf(id, 0), Notify: in.notify})
		if err != nil {
			t.Errorf("%s: %v", id, err)
			return nil, 0
		}
		return s, reply.Received
	}
	s, seq := open(1)
	for i := format.Tick(0); i < 40 && s != nil; i++ {
		first := i * 10
		if i%5 == 4 {
			first -= 7
		}
		seq++
		chunk := ticksChunk(id, seq, first, i*10+10)
		for _, b := range [][]byte{chunk, chunk}[:1+i%2] {
			for err := s.Append(b); err != nil; err = s.Append(b) {
				if !errors.Is(err, &Refusal{Code: CodeWindow}) {
					t.Errorf("%s: %v", id, err)
					return
				}
				time.Sleep(time.Millisecond)
			}
		}
		if i%10 == 9 {
			s, seq = open(uint64(i))
		}
	}
	st, _ := r.Lookup(id)
	if err := s.Seal(st.Totals); err != nil {
		t.Errorf("%s: %v", id, err)
		return
	}
	for range 20_000 {
		if in.get().sealed != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%s was never sealed", id)
}

// killedDir is set in the environment of the process that is to be killed.
const killedDir = "RECORDER_TEST_KILLED_DIR"

// TestKilledProcess kills a process that records, again and again, and looks
// for every tick that it had called safe.
func TestKilledProcess(t *testing.T) {
	if dir := os.Getenv(killedDir); dir != "" {
		recordUntilKilled(t, dir)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	safe := map[string]uint64{} // by session: ticks that were called safe
	for round := range 5 {
		cmd := exec.Command(self, "-test.run=^TestKilledProcess$", "-test.v")
		cmd.Env = append(os.Environ(), killedDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := 0
		for in := bufio.NewScanner(out); in.Scan(); {
			var id string
			var next uint64
			if n, _ := fmt.Sscanf(in.Text(), "safe %s %d", &id, &next); n != 2 {
				continue
			}
			safe[id] = max(safe[id], next)
			if lines++; lines == 40+30*round {
				cmd.Process.Kill()
			}
		}
		if cmd.Wait() == nil {
			t.Fatal("the process ended by itself")
		}
	}
	cfg := smallConfig(nil)
	cfg.Dir = dir
	r := mustOpen(t, cfg)
	defer mustClose(t, r)
	if len(safe) == 0 {
		t.Fatal("nothing was called safe")
	}
	for id, next := range safe {
		s, reply, in := begin(t, r, id, 1000)
		if uint64(reply.NextTick) < next {
			t.Errorf("%s: tick %d was called safe, there are %d", id, next-1, reply.NextTick)
		}
		info := seal(t, r, s, id, in)
		b, err := os.ReadFile(filepath.Join(dir, info.File))
		if err != nil {
			t.Fatal(err)
		}
		if err := verifyTicks(b, id, 0, reply.NextTick, nil); err != nil {
			t.Error(err)
		}
	}
}

// recordUntilKilled goes on with four sessions, and prints what is safe.
func recordUntilKilled(t *testing.T, dir string) {
	cfg := smallConfig(nil)
	cfg.Dir, cfg.FileInterval, cfg.CheckpointInterval = dir, 10*time.Millisecond, 20*time.Millisecond
	r := mustOpen(t, cfg)
	var wg sync.WaitGroup
	for i := range 4 {
		id := fmt.Sprintf("killed-%d", i)
		wg.Go(func() {
			s, reply, err := r.OpenSession(OpenRequest{ID: id, Producer: key(1), Epoch: 1, Opening: openingOf(id, 0), Notify: func(a Ack) {
				os.Stdout.WriteString(fmt.Sprintf("safe %s %d\n", id, a.DurableTick))
			}})
			if err != nil {
				t.Errorf("%s: %v", id, err)
				return
			}
			seq, next := reply.Received, reply.NextTick
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
				err := s.Append(ticksChunk(id, seq+1, next, next+8))
				if err != nil && !strings.Contains(err.Error(), "window") {
					t.Errorf("%s: %v", id, err)
					return
				}
				if err == nil {
					seq, next = seq+1, next+8
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	wg.Wait()
	r.Close(context.Background())
}
