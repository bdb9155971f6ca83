package power

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
	"reprise/recorder/disktest"
	"reprise/transport"
)

var (
	seedFlag = flag.Uint64("power.seed", 0, "seed of the first story; 0 takes the clock")
	cutsFlag = flag.Int("power.cuts", 0, "power cuts to be made, in as many stories as it takes; 0: two stories, or a short one under the race detector")
)

const (
	servers = 4
	// patience is how long anything may take once all is well again.
	patience = 10 * time.Minute
)

// cutsOfStory is how many power cuts a story has.
func cutsOfStory() int {
	if raceDetector {
		return 4
	}
	return 25
}

// cutsToMake is how many are asked for.
func cutsToMake() int {
	switch {
	case *cutsFlag > 0:
		return *cutsFlag
	case raceDetector || testing.Short():
		return 1
	}
	return 50
}

// TestPowerCuts tells stories until there were enough power cuts.
func TestPowerCuts(t *testing.T) {
	t.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true") // there is no buffer
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("first seed %d: repeat a story with -power.seed, and -power.cuts=1", seed)
	var all tally
	for ; all.cuts < cutsToMake() && !t.Failed(); seed++ {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(dir, seed)
			w.story()
			all.add(w)
			t.Logf("seed %d: %d power cuts", seed, w.cuts)
			if w.err != nil {
				t.Errorf("seed %d, after %d power cuts: %v\nlog of the daemon:\n%s", seed, w.cuts, w.err, w.log)
			}
		})
		if !t.Failed() {
			os.RemoveAll(dir) // there may be hundreds
		}
	}
	t.Logf("%d power cuts, %d sessions: 0 acknowledged ticks missing of %d", all.cuts, all.sessions, all.acknowledged)
}

// tally counts over all stories.
type tally struct{ cuts, sessions, acknowledged int }

func (a *tally) add(w *world) {
	a.cuts += w.cuts
	for _, m := range w.known() {
		a.sessions++
		a.acknowledged += int(m.ask().durable)
	}
}

// world is one story: a machine, game servers, and what is between them.
type world struct {
	dir     string // the real folder for keys and spools
	rng     *rand.Rand
	net     *network
	trust   *tls.Config
	machine *machine
	log     *logbook
	cuts    int
	ending  chan struct{}
	// stillness is held by the one that waits for all others to rest.
	stillness chan struct{}

	mu       sync.Mutex
	err      error
	matches  []*match
	verified map[string]string // sealed replays as they were checked last
}

func newWorld(dir string, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 0))
	w := &world{dir: dir, rng: rng, net: newNetwork(fork(rng)), log: &logbook{}, ending: make(chan struct{}), stillness: make(chan struct{}, 1), verified: map[string]string{}}
	w.machine = &machine{w: w, rng: fork(rng), disk: disktest.New(fork(rng))}
	w.machine.disk.SetEach(rng.IntN(2) == 0)
	return w
}

// fork makes a source of its own for another goroutine.
func fork(rng *rand.Rand) *rand.Rand { return rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64())) }

func (w *world) story() {
	if err := w.begin(); err != nil {
		w.fail(err)
		return
	}
	var playing sync.WaitGroup
	for n := range servers {
		g := newGameServer(w, n, fork(w.rng))
		playing.Go(g.run)
	}
	for w.cuts < cutsOfStory() && !w.failed() {
		w.live()
	}
	close(w.ending)
	playing.Wait()
	w.end()
}

func (w *world) begin() error {
	if err := w.machine.boot(); err != nil {
		return err
	}
	pin, err := transport.SelfSigned(path.Join(w.dir, "tls"))
	if err != nil {
		return err
	}
	w.trust, err = transport.Trust{Pin: pin.Fingerprint().String()}.Config()
	return err
}

// live lets the machine run until its power is cut, or it is restarted in
// order, and holds what its disk has to the promises.
func (w *world) live() {
	m := w.machine
	m.follow(m.newPlan())
	if w.failed() {
		return
	}
	var err error
	if !m.disk.Off() && w.rng.IntN(8) == 0 {
		if err = m.stop(); err == nil {
			err = m.boot()
		}
	} else {
		m.cut()
		time.Sleep(time.Duration(w.rng.IntN(5000)) * time.Millisecond)
		err = m.restart()
	}
	if err != nil {
		w.fail(err)
		return
	}
	w.check()
	if w.rng.IntN(3) == 0 {
		w.fail(w.rival())
	}
}

// check holds the disk to the promises, right after a start.
func (w *world) check() {
	known := map[string]bool{}
	for _, m := range w.known() {
		known["room-"+m.id+"-"] = true
		w.blame(m, w.checkMatch(m))
	}
	for _, name := range w.machine.disk.Find("room-") {
		base := path.Base(name)
		if i := strings.LastIndexByte(base, '-'); !known[base[:i+1]] {
			w.fail(fmt.Errorf("nobody recorded %s", name))
		}
	}
}

func (w *world) checkMatch(m *match) error {
	told := m.ask()
	found := w.machine.disk.Find("room-" + m.id + "-")
	switch {
	case len(found) == 0 && told.durable == 0 && !told.sealed:
		return nil
	case len(found) != 1:
		return fmt.Errorf("acknowledged before tick %d, its files are %v", told.durable, found)
	case told.name != "" && path.Base(found[0]) != told.name:
		return fmt.Errorf("sealed as %s, its file is %s", told.name, found[0])
	}
	b, _ := w.machine.disk.Bytes(found[0])
	if told.sealed && w.verified[m.id] == string(b) {
		return nil
	}
	if err := m.check(b, told); err != nil {
		return fmt.Errorf("%s: %w", found[0], err)
	}
	if told.sealed {
		w.verified[m.id] = string(b)
	}
	return nil
}

// rival opens the id of a session that was acknowledged, as another producer
// and in another spelling.
func (w *world) rival() error {
	var taken []*match
	for _, m := range w.known() {
		if m.ask().durable > 0 {
			taken = append(taken, m)
		}
	}
	if len(taken) == 0 {
		return nil
	}
	id := taken[w.rng.IntN(len(taken))].id
	if w.rng.IntN(2) == 0 {
		id = strings.ToUpper(id)
	}
	g := &gameServer{w: w, name: "rival"}
	g.start()
	defer g.stop()
	rec, err := g.client.Open(transport.Spec{Meta: format.Metadata{Session: id}})
	if err != nil {
		return err
	}
	var refusal *transport.Refusal
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		err := rec.Err()
		switch {
		case rec.Durable() > 0:
			return fmt.Errorf("id %s was given away a second time", id)
		case errors.As(err, &refusal) && refusal.Code == transport.CodeExists:
			return nil
		case errors.As(err, &refusal) && !refusal.Temporary():
			return fmt.Errorf("id %s of another producer is refused with %w", id, err)
		}
	}
	return fmt.Errorf("id %s of another producer: no answer within %v", id, patience)
}

// end waits for sessions that were left, stops in order, and looks at what a
// reader finds for good.
func (w *world) end() {
	time.Sleep(2 * resumeTimeout)
	if w.failed() {
		w.machine.cut()
		return
	}
	if err := w.machine.stop(); err != nil {
		w.fail(fmt.Errorf("stopping: %w", err))
		return
	}
	if err := w.machine.boot(); err != nil {
		w.fail(fmt.Errorf("after a stop in order: %w", err))
		return
	}
	w.check()
	for _, m := range w.known() {
		w.blame(m, w.checkEnd(m))
	}
	w.fail(w.machine.stop())
}

// checkEnd: a session has ended, and its file says how.
func (w *world) checkEnd(m *match) error {
	told := m.ask()
	if told.sealed {
		return nil
	}
	found := w.machine.disk.Find("room-" + m.id + "-")
	switch {
	case m.gone && len(found) == 0 && m.unheard():
		return nil
	case !m.gone || len(found) != 1:
		return fmt.Errorf("never sealed, its files are %v", found)
	}
	b, _ := w.machine.disk.Bytes(found[0])
	f, err := format.NewFile(strings.NewReader(string(b)), int64(len(b)))
	if err != nil {
		return err
	}
	if end := f.Summary().End; end == nil || end.State != format.EndUnfinished || end.Reason == "" {
		return fmt.Errorf("was left, its file ends with %+v", end)
	}
	return nil
}

func (w *world) add(m *match) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.matches = append(w.matches, m)
}

func (w *world) known() []*match {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*match(nil), w.matches...)
}

// fail notes the first broken promise.
func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// blame notes the first promise to a match that was broken.
func (w *world) blame(m *match, err error) {
	if err != nil {
		w.fail(m.tells(err))
	}
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}

// over tells whether the story has ended.
func (w *world) over() bool {
	select {
	case <-w.ending:
		return true
	default:
		return w.failed()
	}
}

func (w *world) patience() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	context.AfterFunc(ctx, cancel)
	return ctx
}

// logbook keeps the last lines of the daemon's log.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logbook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines[max(0, len(l.lines)-60):], string(b))
	return len(b), nil
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "")
}
