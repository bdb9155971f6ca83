package daemon

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/format"
	"reprise/recorder"
	"reprise/transport"
)

// long tells whether scenarios that take minutes are asked for.
func long() bool { return os.Getenv("REPRISE_LONG") != "" }

// A quiet session survives kill -9 right after the first acknowledgement.
func TestQuietSessionKilled(t *testing.T) {
	quietSessionKilled(t, 0, 0)
}

// The same at its real pace: one input in 10 s, killed at 12 s.
func TestQuietSessionAtItsPace(t *testing.T) {
	t.Parallel()
	if !long() {
		t.Skip("takes half a minute: set REPRISE_LONG=1")
	}
	quietSessionKilled(t, 10*time.Second, 2*time.Second)
}

func quietSessionKilled(t *testing.T, pause, after time.Duration) {
	data := filepath.Join(t.TempDir(), "data")
	p := start(t, data, "127.0.0.1:0")
	c := dial(t, p.addr, p.pin, func(cfg *transport.ClientConfig) { cfg.ChunkLinger = 100 * time.Millisecond })
	rec, err := c.Open(transport.Spec{Meta: format.Metadata{Session: "quiet", Game: "chess"}})
	if err != nil {
		t.Fatal(err)
	}
	input := func(tick int64) {
		t.Helper()
		if got := rec.NextTick(); got != format.Tick(tick) {
			t.Fatalf("tick %d is next, want %d", got, tick)
		}
		if err := errors.Join(rec.Step(7, format.Int(tick)), rec.EndTick()); err != nil {
			t.Fatal(err)
		}
		if err := rec.Wait(within(t, patience), format.Tick(tick)); err != nil {
			t.Fatal(err)
		}
	}
	input(0)
	if pause > 0 {
		time.Sleep(pause)
		input(1)
	} else {
		input(1)
	}
	time.Sleep(after)
	p.Kill()
	noEmptyFiles(t, data)

	p = start(t, data, p.addr)
	noEmptyFiles(t, data)
	if s := opened(t, fileOf(t, data, "quiet")).Summary(); s.NextTick != 2 || s.Steps != 2 {
		t.Fatalf("after the restart the file has %d steps before tick %d, want 2 before tick 2", s.Steps, s.NextTick)
	}
	time.Sleep(pause)
	input(2)
	if err := rec.Seal(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	f := opened(t, fileOf(t, data, "quiet"))
	if s := f.Summary(); !s.Complete() || s.Ticks != 3 || s.Steps != 3 {
		t.Errorf("sealed file: complete %v, %d ticks, %d steps; want all of 3", s.Complete(), s.Ticks, s.Steps)
	}
	r := f.Reader()
	for i := range int64(3) {
		var tick format.TickRecord
		var step format.Step
		var steps format.StepReader
		if err := r.Next(&tick); err != nil {
			t.Fatal(err)
		}
		steps.Reset(&tick)
		if !steps.Next(&step) || step.Code != 7 || !step.Params[0].Equal(format.Int(i)) {
			t.Errorf("tick %d holds %v, want code 7 with %d", tick.Tick, step, i)
		}
	}
	p.Terminate()
	if code := p.ExitCode(patience); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// noEmptyFiles: no replay has 0 bytes once a tick of it was acknowledged.
func noEmptyFiles(t testing.TB, data string) {
	t.Helper()
	for _, path := range files(t, data, "*") {
		if st, err := os.Stat(path); err != nil || st.Size() == 0 {
			t.Errorf("%s has 0 bytes (%v)", path, err)
		}
	}
}

// A client learns from the restarted daemon at once that its connection is
// gone, however long it would wait for a silent one.
func TestRestartIsNoticed(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := start(t, data, "127.0.0.1:0")
	c := dial(t, p.addr, p.pin, func(cfg *transport.ClientConfig) { cfg.DeadAfter = time.Minute })
	w := playAll(t, c, 31, 2)
	progress(t, w.players)
	p.Kill()
	start(t, data, p.addr)
	begin := time.Now()
	progress(t, w.players)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the clients came back after %v, want a few seconds", took)
	}
	w.sealAll(t, data)
}

// seed is REPRISE_SEED, or a random one; it is printed.
func seed(t testing.TB) uint64 {
	n := rand.Uint64()
	if s := os.Getenv("REPRISE_SEED"); s != "" {
		var err error
		if n, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("REPRISE_SEED=%d", n)
	return n
}

// crowd is a few matches played by one game server.
type crowd struct {
	players []*player
	stop    chan struct{}
	once    sync.Once
	playing sync.WaitGroup
}

// halt ends the playing.
func (w *crowd) halt() {
	w.once.Do(func() { close(w.stop) })
	w.playing.Wait()
}

func playAll(t testing.TB, c *transport.Client, seed uint64, n int) *crowd {
	t.Helper()
	w := &crowd{stop: make(chan struct{})}
	t.Cleanup(w.halt)
	for i := range n {
		p := match{id: fmt.Sprintf("Match-%d.%x", i, seed&0xfff), seed: seed + uint64(i)}.play(t, c)
		w.players = append(w.players, p)
		w.playing.Go(func() { p.run(w.stop, 2*time.Millisecond) })
	}
	return w
}

// sealAll ends the matches and compares their files.
func (w *crowd) sealAll(t testing.TB, data string) {
	t.Helper()
	w.halt()
	ticks := format.Tick(0)
	for _, p := range w.players {
		ticks += p.sealIn(data)
	}
	t.Logf("%d sessions with %d ticks are whole", len(w.players), ticks)
}

// Twenty kills at random moments under load: every acknowledged tick is there
// after each, and nothing is there twice.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	kills := 20
	if testing.Short() {
		kills = 5
	}
	seed := seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	data := filepath.Join(t.TempDir(), "data")
	args := []string{"--file-interval", "50ms", "--checkpoint-interval", "100ms", "--tail-bytes", "4KiB"}
	p := start(t, data, "127.0.0.1:0", args...)
	c := dial(t, p.addr, p.pin)
	w := playAll(t, c, seed, 5)
	durable := make([]format.Tick, len(w.players))
	for kill := range kills {
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		p.Kill()
		for i, m := range w.players {
			durable[i] = max(durable[i], m.rec.Durable())
		}
		noDamage(t, data)
		recovered(t, data, w.players, durable)
		p = start(t, data, p.addr, args...)
		if i := kill % len(w.players); durable[i] > 0 {
			idsStayTaken(t, p, w.players[i].id, r)
		}
		if kill%3 == 0 {
			// Every few kills the sessions come back in between, so that the
			// kill does not only ever hit a start.
			progress(t, w.players)
		}
	}
	w.sealAll(t, data)
	p.Terminate()
	if code := p.ExitCode(patience); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if n := len(files(t, data, "*")); n != len(w.players) {
		t.Errorf("%d files, want one for each of %d sessions", n, len(w.players))
	}
}

// noDamage looks at the files as the kill has left them: they may end inside
// a chunk, and be of no other fault.
func noDamage(t testing.TB, data string) {
	t.Helper()
	for _, path := range files(t, data, "*") {
		f, err := format.Open(path)
		if err == nil {
			_, err = f.Check()
			f.Close()
		}
		if err != nil && !errors.Is(err, format.ErrTorn) {
			t.Fatalf("after the kill, %s: %v", path, err)
		}
	}
}

// recovered recovers a copy of the data folder, and compares every session
// with its match: it has every acknowledged tick.
func recovered(t testing.TB, data string, players []*player, durable []format.Tick) {
	t.Helper()
	copied := filepath.Join(filepath.Dir(data), "copy")
	if err := errors.Join(os.RemoveAll(copied), os.CopyFS(copied, os.DirFS(data))); err != nil {
		t.Fatal(err)
	}
	r, err := recorder.Open(recorder.Config{Dir: copied, SegmentBytes: 512 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	noEmptyFiles(t, copied)
	for i, m := range players {
		if durable[i] == 0 {
			continue
		}
		m.prefix(t, opened(t, fileOf(t, copied, m.id)), durable[i], false)
	}
}

// progress waits until every match has one more tick on disk.
func progress(t testing.TB, players []*player) {
	t.Helper()
	for _, p := range players {
		tick := p.rec.NextTick()
		eventually(t, "progress of "+p.id, func() bool { return p.rec.Durable() > tick })
	}
}

// idsStayTaken: another producer gets the id of a session neither as it is
// nor in another spelling.
func idsStayTaken(t testing.TB, p *process, id string, r *rand.Rand) {
	t.Helper()
	if r.IntN(2) == 0 {
		id = strings.ToUpper(id)
	}
	c := dial(t, p.addr, p.pin, func(cfg *transport.ClientConfig) { cfg.OnError = nil })
	defer c.Close(within(t, patience))
	rec, err := c.Open(transport.Spec{Meta: format.Metadata{Session: id}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "an answer for "+id, func() bool { return rec.Err() != nil })
	var refusal *transport.Refusal
	if err := rec.Err(); !errors.As(err, &refusal) || refusal.Code != transport.CodeExists {
		t.Fatalf("id %s of another producer: %v, want %v", id, err, transport.CodeExists)
	}
}

// An id is taken for good, also after its session has ended and its file was
// deleted.
func TestIDAfterDeletion(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := start(t, data, "127.0.0.1:0")
	c := dial(t, p.addr, p.pin)
	m := match{id: "once", seed: 1}.play(t, c)
	m.tick()
	m.seal()
	if err := os.Remove(fileOf(t, data, "once")); err != nil {
		t.Fatal(err)
	}
	idsStayTaken(t, p, "once", rand.New(rand.NewPCG(1, 1)))
	p.Kill()
	p = start(t, data, p.addr)
	idsStayTaken(t, p, "once", rand.New(rand.NewPCG(1, 1)))
}
