package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
)

// world is a client and a daemon with in-memory connections between them, in
// virtual time.
type world struct {
	t   *testing.T
	rec *fakeRecorder
	cfg ClientConfig

	mu     sync.Mutex
	server *Server
	pipes  []*pipe
	rate   int   // of new pipes
	down   error // what dialing fails with
	dials  int
	dialed []string

	errs []error // what OnError took
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, rec: newFakeRecorder()}
	w.startDaemon(Config{})
	t.Cleanup(w.cut)
	w.cfg.OnError = func(session string, err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.errs = append(w.errs, err)
	}
	return w
}

func (w *world) startDaemon(cfg Config) {
	w.mu.Lock()
	defer w.mu.Unlock()
	cfg.Recorder = w.rec
	w.server = newServer(cfg)
	w.down = nil
}

func (w *world) dial(ctx context.Context, addr string) (carrier, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dials++
	w.dialed = append(w.dialed, addr)
	if w.down != nil {
		return nil, w.down
	}
	p := newPipe()
	p.rate = w.rate
	w.pipes = append(w.pipes, p)
	server := w.server
	go server.serve(&p.b)
	return &p.a, nil
}

// connect starts a client; the test must close it.
func (w *world) connect() *Client {
	w.t.Helper()
	c := newClient(&addresses{list: []string{"a:1", "b:2"}}, w.cfg)
	c.dial = w.dial
	if err := c.start(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// record starts a client that records match-1, and begins its oracle.
func (w *world) record() (*Client, *Recording, expected) {
	w.t.Helper()
	c := w.connect()
	r, err := c.Open(spec("match-1"))
	if err != nil {
		w.t.Fatal(err)
	}
	return c, r, expected{first: 10}
}

// resume starts a client that goes on with match-1 from its spool.
func (w *world) resume() (*Client, *Recording) {
	w.t.Helper()
	c := w.connect()
	r, err := c.Resume("match-1")
	if err != nil {
		w.t.Fatal(err)
	}
	return c, r
}

// newest is the latest connection; nil before the first.
func (w *world) newest() *pipe {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pipes) == 0 {
		return nil
	}
	return w.pipes[len(w.pipes)-1]
}

// cut resets every connection.
func (w *world) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pipes {
		p.reset()
	}
}

// kill ends the daemon as kill -9 does: what is not durable is gone.
func (w *world) kill() {
	w.mu.Lock()
	w.down = errors.New("connection refused")
	w.mu.Unlock()
	w.cut()
	synctest.Wait()
	w.rec.crash()
}

// reported gives what OnError took.
func (w *world) reported() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]error(nil), w.errs...)
}

// close closes a client; every recording must have ended or be durable.
func (w *world) close(c *Client) {
	w.t.Helper()
	if err := c.Close(within(w.t, time.Minute)); err != nil {
		w.t.Error(err)
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// spec describes a session for tests.
func spec(id string) Spec {
	return Spec{Meta: format.Metadata{Session: id, Game: "test", HashBytes: 4, TickRate: format.Rate{Num: 60, Den: 1}, FirstTick: 10}}
}

// keyed describes a session that can be continued without its spool: with a
// key and a start that the game knows.
func keyed(id string) Spec {
	s := spec(id)
	s.Key[0], s.Meta.StartedAt = 7, 1
	return s
}

// expected is the oracle: what was recorded, kept apart from the client.
type expected struct {
	first format.Tick
	ticks []expectedTick
}

type expectedTick struct {
	missing bool
	steps   []string
	hash    string
}

func (e *expected) next() format.Tick { return e.first + format.Tick(len(e.ticks)) }

func (e *expected) at(t format.Tick) *expectedTick { return &e.ticks[t-e.first] }

func stepText(code uint16, params []format.Value) string {
	s := fmt.Sprint(code)
	for _, p := range params {
		s += " " + p.String()
	}
	return s
}

// play records n ticks of varying steps and enters them in the oracle.
func (e *expected) play(t *testing.T, r *Recording, n int) {
	t.Helper()
	for range n {
		tick := r.NextTick()
		if tick != e.next() {
			t.Fatalf("the open tick is %d, expected %d", tick, e.next())
		}
		var steps []string
		for i := range int(tick) % 4 {
			code, params := uint16(i), []format.Value{format.Int(int64(tick)), format.String("go")}
			if err := r.Step(code, params...); err != nil {
				t.Fatalf("tick %d: %v", tick, err)
			}
			steps = append(steps, stepText(code, params))
		}
		err := r.EndTick()
		if err != nil && !errors.Is(err, ErrFull) {
			t.Fatalf("tick %d: %v", tick, err)
		}
		e.ticks = append(e.ticks, expectedTick{missing: err != nil, steps: steps})
	}
}

// hash records the state hash of a tick.
func (e *expected) hash(t *testing.T, r *Recording, tick format.Tick) {
	t.Helper()
	h := fmt.Sprintf("%04d", tick%10000)
	if err := r.Hash(tick, []byte(h)); err != nil {
		t.Fatal(err)
	}
	e.at(tick).hash = h
}

// compare reads the stored file and compares it with the oracle.
func (e *expected) compare(t *testing.T, f *format.File) {
	t.Helper()
	r := f.Reader()
	var rec format.TickRecord
	for tick := e.first; tick < e.next(); tick++ {
		want := e.at(tick)
		if want.missing {
			continue
		}
		if err := r.Next(&rec); err != nil {
			t.Fatalf("tick %d: %v", tick, err)
		}
		if rec.Tick != tick {
			t.Fatalf("tick %d is stored where %d was recorded", rec.Tick, tick)
		}
		if got := stepsOf(&rec); fmt.Sprint(got) != fmt.Sprint(want.steps) {
			t.Fatalf("tick %d: stored %v, recorded %v", tick, got, want.steps)
		}
		if string(rec.Hash) != want.hash {
			t.Fatalf("tick %d: stored hash %q, recorded %q", tick, rec.Hash, want.hash)
		}
	}
	if err := r.Next(&rec); err != io.EOF {
		t.Fatalf("after the last tick: tick %d, %v", rec.Tick, err)
	}
}

func stepsOf(rec *format.TickRecord) []string {
	var s format.StepReader
	s.Reset(rec)
	var step format.Step
	var steps []string
	for s.Next(&step) {
		steps = append(steps, stepText(step.Code, step.Params))
	}
	return steps
}

// sealAndCompare seals r and compares what the daemon has with the oracle.
func (w *world) sealAndCompare(r *Recording, e *expected) *format.File {
	w.t.Helper()
	if err := r.Seal(within(w.t, time.Minute)); err != nil {
		w.t.Fatal(err)
	}
	f, err := w.rec.stored(r.ID())
	if err != nil {
		w.t.Fatal(err)
	}
	e.compare(w.t, f)
	if _, err := f.Check(); err != nil {
		w.t.Fatal(err)
	}
	digest, _, ok := r.Sealed()
	if !ok || !bytes.Equal(digest[:], f.Summary().Digest[:]) {
		w.t.Fatalf("sealed as %v %v, the file's digest is %v", digest, ok, f.Summary().Digest)
	}
	return f
}
