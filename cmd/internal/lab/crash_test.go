package lab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"reprise/cmd/internal/load"
	"reprise/recorder"
	"reprise/transport"
)

// The daemon is killed at a file operation of its first life, and of those
// after it: at every one in turn, when there is time. After each kill all that
// was acknowledged is there, and the clients go on with the next daemon.

// TestKilledAtOperationOfFirstLife begins with an empty folder each time.
func TestKilledAtOperationOfFirstLife(t *testing.T) {
	t.Parallel()
	rnd := random(t)
	operations := countOperations(t, rnd)
	kills := 0
	for k := range operations {
		if !long() && rnd.IntN(operations) >= 8 {
			continue
		}
		w := newCrashWorld(t, rnd)
		if w.life(int64(1 + k)) {
			kills++
		}
		w.end()
	}
	t.Logf("%d kills at operations up to %d", kills, operations)
}

// countOperations finds out how many operations a first life has.
func countOperations(t *testing.T, rnd *rand.Rand) int {
	t.Helper()
	w := newCrashWorld(t, rnd)
	w.life(0)
	last := ""
	for line := range w.daemon.Lines {
		last = line
	}
	n, err := strconv.Atoi(last)
	if err != nil || n < 50 {
		t.Fatalf("%d operations (%v): the story is too short", n, err)
	}
	w.end()
	return n
}

// TestKilledAtOperationsInTurn goes on with the same folder for a while: some
// kills hit the recovery from the one before. The worlds mostly wait: at full
// length, -parallel 16 runs so many at once.
func TestKilledAtOperationsInTurn(t *testing.T) {
	t.Parallel()
	rnd := random(t)
	worlds, kills := pick(2, 200), pick(12, 50)
	t.Run("worlds", func(t *testing.T) {
		for n := range worlds {
			own := rand.New(rand.NewPCG(rnd.Uint64(), 0))
			t.Run(strconv.Itoa(n), func(t *testing.T) {
				t.Parallel()
				killInTurn(newCrashWorld(t, own), own, kills)
			})
		}
	})
	t.Logf("%d kills", worlds*kills)
}

func killInTurn(w *crashWorld, rnd *rand.Rand, kills int) {
	w.t.Helper()
	for kills > 0 {
		if w.life(1 + int64(crashAt(rnd))) {
			kills--
		}
	}
	w.end()
}

// crashAt is small as often as large: the first operations are those of the
// recovery.
func crashAt(rnd *rand.Rand) int {
	if rnd.IntN(2) == 0 {
		return rnd.IntN(20)
	}
	return rnd.IntN(250)
}

// crashWorld is a data folder with its daemons and clients.
type crashWorld struct {
	t      *testing.T
	o      crashingOptions
	dir    string
	daemon *server
	client *transport.Client

	stop    chan struct{}
	halt    func() // closes stop
	playing sync.WaitGroup
	mu      sync.Mutex
	matches []*load.Session
}

const matchesAtOnce = 4

func newCrashWorld(t *testing.T, rnd *rand.Rand) *crashWorld {
	t.Helper()
	dir := t.TempDir()
	w := &crashWorld{t: t, dir: dir, stop: make(chan struct{}), o: crashingOptions{data: filepath.Join(dir, "data"), tls: filepath.Join(dir, "tls"), listen: freePort(t)}}
	w.halt = sync.OnceFunc(func() { close(w.stop) })
	if err := os.Mkdir(w.o.tls, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.playing.Wait)
	pair, err := transport.SelfSigned(w.o.tls)
	if err != nil {
		t.Fatal(err)
	}
	w.client = dial(t, w.o.listen, pair.Fingerprint().String(), hasty, func(cfg *transport.ClientConfig) {
		cfg.ChunkLinger, cfg.BackoffMin, cfg.BackoffMax = 5*time.Millisecond, 2*time.Millisecond, 30*time.Millisecond
	})
	t.Cleanup(w.halt) // before the client is abandoned
	for slot := range matchesAtOnce {
		r := rand.New(rand.NewPCG(rnd.Uint64(), 0))
		w.playing.Go(func() { w.play(slot, r) })
	}
	return w
}

// play plays short matches, one after the other.
func (w *crashWorld) play(slot int, rnd *rand.Rand) {
	for n := 0; !w.stopped(); n++ {
		s := load.Script{Session: fmt.Sprintf("match-%d-%d", slot, n), Number: slot<<16 | n, Rate: 500, StepBytes: 30 + rnd.IntN(200), StartedAt: 1}
		if err := w.match(s, 1+rnd.IntN(60), rnd.IntN(4) == 0); err != nil {
			if !w.t.Failed() {
				w.t.Errorf("a session was harmed: %v", err)
			}
			return
		}
	}
}

func (w *crashWorld) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// match plays one match. Its client may leave half-way, until the session has
// ended as unfinished, and come back to it.
func (w *crashWorld) match(s load.Script, ticks int, leaves bool) error {
	m, err := load.Open(w.client, s)
	if err != nil {
		return err
	}
	w.mu.Lock()
	n := len(w.matches)
	w.matches = append(w.matches, m)
	w.mu.Unlock()
	for tick := range ticks {
		if leaves && tick > 0 && tick == ticks/2 {
			if m, err = w.leave(m, s); err != nil {
				return err
			}
			w.mu.Lock()
			w.matches[n] = m
			w.mu.Unlock()
		}
		if err := m.Tick(); err != nil {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
	return m.Recording.Seal(within(w.t, 2*patience))
}

// leave closes the recording of a match and goes on with it later.
func (w *crashWorld) leave(m *load.Session, s load.Script) (*load.Session, error) {
	ctx := within(w.t, 2*patience)
	if err := m.Recording.Close(ctx); err != nil {
		return nil, err
	}
	// A producer without a spool takes its epoch from the clock, in seconds:
	// the next one must be higher.
	time.Sleep(max(2*shortTimeout, time.Until(time.Now().Truncate(time.Second).Add(time.Second))))
	return load.Continue(ctx, w.client, s, m.Recording.Key(), m.Recording.NextTick())
}

func (w *crashWorld) promises() []load.Promise {
	w.mu.Lock()
	defer w.mu.Unlock()
	var promises []load.Promise
	for _, m := range w.matches {
		promises = append(promises, m.Promise())
	}
	return promises
}

// lifeTime bounds a life that does not reach its k-th operation.
const lifeTime = 700 * time.Millisecond

// life runs a daemon until its k-th operation, or for a while; true where it
// came to that operation. Then it compares what the disk holds with the
// promises.
func (w *crashWorld) life(k int64) (reached bool) {
	w.t.Helper()
	w.o.k = k
	d, ready := await(w.t, command(w.t, asCrashing, w.o.args()...))
	w.daemon = d
	reached = true
	if ready {
		select {
		case <-d.Exited:
		case <-time.After(lifeTime):
			reached = false
			d.Kill()
		}
	}
	if d.Cmd.ProcessState.Exited() {
		w.t.Fatalf("the daemon ended by itself, with %d:\n%s", d.Cmd.ProcessState.ExitCode(), d.LastLog())
	}
	w.check(k)
	return reached
}

// check recovers a copy of the data folder, and counts.
func (w *crashWorld) check(k int64) {
	w.t.Helper()
	promises := w.promises()
	copied := filepath.Join(w.dir, "copy")
	if err := errors.Join(os.RemoveAll(copied), copyFolder(copied, w.o.data)); err != nil {
		w.t.Fatal(err)
	}
	r, err := recorder.Open(crashingConfig(copied))
	if err == nil {
		err = r.Close(within(w.t, patience))
	}
	if err != nil {
		w.t.Fatalf("recovery after a kill at operation %d: %v", k, err)
	}
	tally, err := load.CountFiles(copied, promises)
	if err != nil || tally.Missing > 0 {
		w.t.Fatalf("after a kill at operation %d %d acknowledged ticks are missing (%v)", k, tally.Missing, err)
	}
}

// copyFolder copies what there is; a daemon that was killed early has left
// nothing.
func copyFolder(to, from string) error {
	if _, err := os.Stat(from); err != nil {
		return os.Mkdir(to, 0o700)
	}
	return os.CopyFS(to, os.DirFS(from))
}

// end has a last daemon, which is not killed, take all that is left, and
// counts in its own files.
func (w *crashWorld) end() {
	w.t.Helper()
	w.o.k = 0
	d, ready := await(w.t, command(w.t, asCrashing, w.o.args()...))
	if !ready {
		w.t.Fatalf("the last daemon did not start:\n%s", d.LastLog())
	}
	w.halt()
	w.playing.Wait()
	abandon(w.client)
	d.Kill()
	promises := w.promises()
	for i := range promises {
		if !promises[i].Sealed {
			w.t.Errorf("session %s was never sealed", promises[i].Session)
		}
	}
	verdict(w.t, w.o.data, promises)
	if !w.t.Failed() {
		os.RemoveAll(w.dir) // there may be thousands
	}
}
