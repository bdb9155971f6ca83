package lab

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"reprise/cmd/internal/load"
	"reprise/format"
	"reprise/transport"
)

const diskBytes = 8 << 20

// The disk fills up under sessions that run, and is given room again.
//
// New sessions are refused before those that run suffer. When nothing is left
// clients are told within a second, and nothing is acknowledged that is not
// durable. Old replays can be read all the time. With room, recording goes on
// by itself, and no session was harmed.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, diskBytes)
	if disk == nil {
		return
	}
	data := filepath.Join(disk.dir, "data")
	d := start(t, data, "127.0.0.1:0", "--file-interval", "200ms")
	old := recordOld(t, d)
	f := newFullDisk(t, disk, d)
	disk.fill(pick[int64](1<<20, 2<<20))
	reading := keepReading(t, data, old)
	f.untilRefused()
	f.untilFull()
	f.told.check(t)
	wholeChunks(t, data)
	time.Sleep(pick(time.Second, 10*time.Second))

	disk.release()
	f.crowd.progress()
	eventually(t, "with room new sessions are taken", func() bool { return f.probe() == nil })
	time.Sleep(pick(time.Second, 20*time.Second))
	f.crowd.seal()
	reading()
	d.terminate()
	verdict(t, data, f.promises(old))
	if tight, all := f.tight.LeftOut(), f.crowd.leftOut(); tight == 0 || tight != all {
		t.Errorf("%d ticks were left out, %d of them by the client that may keep little; want some, and all by that one", all, tight)
	}
}

// The daemon is killed while the disk is full, and started again: it comes up,
// or ends and says what it needs. With room it has all that was acknowledged.
func TestKilledOnFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, diskBytes)
	if disk == nil {
		return
	}
	data := filepath.Join(disk.dir, "data")
	d := start(t, data, freePort(t), "--file-interval", "200ms")
	old := recordOld(t, d)
	f := newFullDisk(t, disk, d)
	disk.fill(600 << 10)
	reading := keepReading(t, data, old)
	f.untilFull()
	f.told.check(t)
	for range 3 {
		d.Kill()
		var up bool
		if d, up = tryStart(t, data, f.addr); up {
			t.Logf("the daemon starts on the full disk, with %d bytes free", disk.free())
			time.Sleep(300 * time.Millisecond)
		} else if code := d.exitCode(); code != 3 {
			t.Errorf("on the full disk the daemon ends with %d, want 3", code)
		} else {
			t.Logf("the daemon does not start on the full disk: %.300s", d.Log.String())
		}
	}
	d.Kill()
	disk.release()
	d = start(t, data, f.addr, "--file-interval", "200ms")
	f.crowd.progress()
	f.crowd.seal()
	reading()
	d.terminate()
	verdict(t, data, f.promises(old))
}

// recordOld records and seals two sessions.
func recordOld(t *testing.T, d *server) []load.Promise {
	t.Helper()
	c := newCrowd(t)
	c.add(dial(t, d.addr, d.pin, hasty), "old", 2, load.Script{Rate: 200, StepBytes: 100})
	c.progress()
	c.seal()
	return c.promises()
}

// keepReading reads old replays again and again. What it returns ends that.
func keepReading(t *testing.T, data string, old []load.Promise) func() {
	stop, times := make(chan struct{}), 0
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			times++
			if tally, err := load.CountFiles(filepath.Join(data, "sealed"), old); err != nil || tally.Missing > 0 {
				t.Errorf("old replays on the full disk: %d ticks are missing (%v)", tally.Missing, err)
				return
			}
		}
	})
	return func() {
		close(stop)
		reading.Wait()
		t.Logf("the old replays were read %d times", times)
	}
}

// wholeChunks looks at the replays of a daemon that runs: none ends in a part
// of a chunk, or does so for longer than a failed write takes.
func wholeChunks(t *testing.T, data string) {
	t.Helper()
	for _, path := range replays(t, data) {
		eventually(t, path+" ends with a whole chunk", func() bool {
			f, err := format.Open(path)
			if err != nil {
				return false
			}
			defer f.Close()
			return f.Torn == nil
		})
	}
}

// fullDisk is a daemon whose disk fills up.
type fullDisk struct {
	t         *testing.T
	disk      *disk
	addr, pin string
	crowd     *crowd
	tight     *load.Session // one of the crowd, whose client may keep little
	told      *informed
	probes    []*load.Session
}

// newFullDisk starts sessions at 60 ticks a second.
func newFullDisk(t *testing.T, d *disk, s *server) *fullDisk {
	t.Helper()
	f := &fullDisk{t: t, disk: d, addr: s.addr, pin: s.pin, crowd: newCrowd(t)}
	step := load.Script{Rate: 60, Players: pick(2, 1), StepBytes: load.MaxStepBytes}
	f.crowd.add(dial(t, s.addr, s.pin, hasty), "full", pick(12, 3), step)
	f.crowd.add(dial(t, s.addr, s.pin, hasty, func(cfg *transport.ClientConfig) { cfg.SessionMemory = 16 << 10 }), "tight", 1, step)
	f.tight = f.crowd.sessions[len(f.crowd.sessions)-1]
	f.crowd.progress()
	f.told = inform(f.crowd.sessions)
	return f
}

// probe opens one more session, and returns why it is refused, if it is.
func (f *fullDisk) probe() error {
	f.t.Helper()
	c := dial(f.t, f.addr, f.pin, hasty)
	defer abandon(c)
	s, err := load.Open(c, load.Script{Session: load.SessionID("probe", len(f.probes)), Number: 1000 + len(f.probes), StepBytes: 20})
	if err == nil {
		f.probes = append(f.probes, s)
		err = s.Tick()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	eventually(f.t, "an answer to a new session", func() bool { return s.Recording.Err() != nil || s.Recording.Durable() > 0 })
	return s.Recording.Err()
}

// untilRefused opens sessions until one is refused. Those that run go on.
func (f *fullDisk) untilRefused() {
	f.t.Helper()
	eventually(f.t, "new sessions are refused", func() bool {
		err := f.probe()
		var refusal *transport.Refusal
		if err != nil && (!errors.As(err, &refusal) || refusal.Code != transport.CodeStorage) {
			f.t.Fatalf("a new session was refused with %v, want %v", err, transport.CodeStorage)
		}
		time.Sleep(50 * time.Millisecond)
		return err != nil
	})
	free := f.disk.free()
	for range 3 {
		f.crowd.progress()
	}
	f.t.Logf("new sessions were refused with %d bytes free; the others went on, until %d were", free, f.disk.free())
	if n := f.told.count(); n > 0 {
		f.t.Errorf("%d sessions that run were refused as early as new ones", n)
	}
}

// untilFull waits until nothing more is acknowledged.
func (f *fullDisk) untilFull() {
	f.t.Helper()
	for end := time.Now().Add(patience + pick(0, 3*time.Minute)); f.told.count() < len(f.crowd.sessions); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("%d of %d sessions were told that the disk is full, with %d bytes free", f.told.count(), len(f.crowd.sessions), f.disk.free())
		}
	}
	f.t.Logf("the disk is full, with %d bytes free", f.disk.free())
}

// promises are those of all sessions.
func (f *fullDisk) promises(old []load.Promise) []load.Promise {
	all := append(f.crowd.promises(), old...)
	for _, s := range f.probes {
		all = append(all, s.Promise())
	}
	return all
}

// informed knows when clients were told that the disk is full.
type informed struct {
	stop     chan struct{}
	watching sync.WaitGroup

	mu      sync.Mutex
	after   map[*load.Session]time.Duration // since the last acknowledgement
	wrongly error                           // a refusal of another kind
}

// inform begins to watch sessions.
func inform(sessions []*load.Session) *informed {
	i := &informed{stop: make(chan struct{}), after: map[*load.Session]time.Duration{}}
	for _, s := range sessions {
		i.watching.Go(func() { i.watch(s) })
	}
	return i
}

func (i *informed) watch(s *load.Session) {
	acked, durable := time.Now(), s.Recording.Durable()
	for {
		select {
		case <-i.stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
		if d := s.Recording.Durable(); d > durable {
			acked, durable = time.Now(), d
		}
		var refusal *transport.Refusal
		if err := s.Recording.Err(); errors.As(err, &refusal) {
			i.tell(s, refusal, time.Since(acked))
			return
		}
	}
}

func (i *informed) tell(s *load.Session, r *transport.Refusal, after time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.after[s] = after
	if r.Code != transport.CodeStorage {
		i.wrongly = r
	}
}

func (i *informed) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.after)
}

// check wants everyone to have been told with the right code, soon.
func (i *informed) check(t *testing.T) {
	t.Helper()
	close(i.stop)
	i.watching.Wait()
	longest := time.Duration(0)
	for _, after := range i.after {
		longest = max(longest, after)
	}
	t.Logf("%d clients were told at most %v after their last acknowledgement", len(i.after), longest.Round(time.Millisecond))
	promptly(t, "telling the clients", longest, time.Second)
	if i.wrongly != nil {
		t.Errorf("a client was told %v, want %v", i.wrongly, transport.CodeStorage)
	}
}
