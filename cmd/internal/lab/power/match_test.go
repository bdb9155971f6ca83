package power

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"reprise/format"
	"reprise/transport"
)

// match is the model of a session: what its game recorded, and what its
// client was told. It is kept by tick and knows nothing of chunks or files.
type match struct {
	id    string
	rng   *rand.Rand
	times bool

	mu       sync.Mutex
	rec      *transport.Recording // nil while no process records it
	key      [transport.KeySize]byte
	next     format.Tick
	ticks    map[format.Tick]*tick
	marks    []string
	players  []string
	present  map[uint64]bool
	keyframe map[format.Tick]string
	// lossy: a process died, and with it marks, joins and keyframes.
	lossy bool
	// holes are the ticks that nobody had any more when the session was
	// gone on with.
	holes    map[format.Tick]bool
	hashFrom format.Tick // ticks before it get no hash any more
	// asked is the tick at which a process wanted to go on: the daemon may
	// have it before the process hears of it.
	asked format.Tick

	story []string // what happened, for messages

	sealing bool // its game wants it sealed
	free    bool // its spool is gone
	gone    bool // its game has left it for good
	told    promises
}

// tick is what was recorded of one.
type tick struct {
	steps string
	play  []step
	hash  string
	// maybe: the hash was recorded by a process that has died without its
	// spool.
	maybe bool
	// left: the game or its client left it out, and said so.
	left bool
}

type step struct {
	code   uint16
	number int64
	text   string
}

func (s *step) params() []format.Value {
	return []format.Value{format.Int(s.number), format.String(s.text)}
}

func (s *step) String() string { return fmt.Sprintf("%d(%d,%q)", s.code, s.number, s.text) }

// promises are what clients were told of a session, over all processes.
type promises struct {
	durable format.Tick // ticks before it are on disk
	sealed  bool
	name    string // of the sealed replay, with its digest; empty where nobody heard it
	digest  format.Digest
}

func newMatch(id string, rng *rand.Rand) *match {
	return &match{id: id, rng: rng, times: rng.IntN(2) == 0, ticks: map[format.Tick]*tick{}, present: map[uint64]bool{}, keyframe: map[format.Tick]string{}, holes: map[format.Tick]bool{}}
}

const hashBytes = 4

func (m *match) spec() transport.Spec {
	return transport.Spec{Key: m.key, Times: m.times,
		Meta: format.Metadata{Session: m.id, Game: "power", HashBytes: hashBytes, TickRate: format.Rate{Num: 60, Den: 1}, Width: format.Width16, StartedAt: 1}}
}

// happened enters what happened.
func (m *match) happened(text string, args ...any) {
	m.story = append(m.story, fmt.Sprintf("%v next %d, told %d: %s", time.Since(epoch), m.next, m.told.durable, fmt.Sprintf(text, args...)))
}

// epoch is where virtual time begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// tells gives an error with the match's story.
func (m *match) tells(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Errorf("%s: %w\n%s", m.id, err, strings.Join(m.story, "\n"))
}

// ask enters what the client has been told by now.
func (m *match) ask() promises {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.askLocked()
}

func (m *match) askLocked() promises {
	if m.rec == nil {
		return m.told
	}
	m.told.durable = max(m.told.durable, m.rec.Durable())
	if digest, name, ok := m.rec.Sealed(); ok && !m.told.sealed {
		m.happened("sealed")
		m.told.sealed, m.told.digest, m.told.name = true, digest, name
	}
	return m.told
}

// harmed is a refusal that no other try will change: none is due.
func (m *match) harmed() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rec == nil {
		return nil
	}
	var r *transport.Refusal
	if err := m.rec.Err(); err != nil && !(errors.As(err, &r) && r.Temporary()) && !errors.Is(err, transport.ErrClosed) {
		return err
	}
	return nil
}

// play records one tick. The client may have no room for it.
func (m *match) play() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := &tick{}
	for range m.rng.IntN(4) {
		t.play = append(t.play, step{uint16(m.rng.IntN(500)), m.rng.Int64() >> m.rng.IntN(60), strings.Repeat("x", m.rng.IntN(200))})
	}
	return m.enter(t)
}

func (m *match) enter(t *tick) error {
	if got := m.rec.NextTick(); got != m.next {
		return fmt.Errorf("the client is at tick %d, the game at %d", got, m.next)
	}
	var texts []string
	for i := range t.play {
		if err := m.rec.Step(t.play[i].code, t.play[i].params()...); err != nil {
			return fmt.Errorf("step of tick %d: %w", m.next, err)
		}
		texts = append(texts, t.play[i].String())
	}
	t.steps = strings.Join(texts, " ")
	switch err := m.rec.EndTick(); {
	case errors.Is(err, transport.ErrFull) && m.ticks[m.next] != nil:
		m.holes[m.next] = true // it may have been stored before
		t = m.ticks[m.next]
	case errors.Is(err, transport.ErrFull):
		t = &tick{left: true}
	case err != nil:
		return fmt.Errorf("end of tick %d: %w", m.next, err)
	}
	m.ticks[m.next] = t
	m.next++
	return nil
}

// maxLate is how late a hash may come.
const maxLate = 30

// hash gives a recent tick its hash, some of them late.
func (m *match) hash() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.next - min(m.next, 1+format.Tick(m.rng.IntN(maxLate)))
	t := m.ticks[at]
	if at < m.hashFrom || t == nil || t.left || t.hash != "" {
		return nil
	}
	hash := fmt.Sprintf("%04x", m.rng.IntN(1<<16))
	if err := m.rec.Hash(at, []byte(hash)); err != nil {
		return fmt.Errorf("hash of tick %d: %w", at, err)
	}
	t.hash = hash
	return nil
}

// note records something beside the ticks. The client may have no room.
func (m *match) note() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch m.rng.IntN(4) {
	case 0:
		state := strings.Repeat("k", 1+m.rng.IntN(30_000))
		if m.keyframe[m.next] != "" {
			return nil
		}
		return m.taken(m.rec.Keyframe(m.next, []byte(state)), func() { m.keyframe[m.next] = state })
	case 1, 2:
		text := fmt.Sprintf("mark-%d-%d", m.next, m.rng.IntN(1<<30))
		return m.taken(m.rec.Mark(format.Mark{Tick: m.next, Kind: "round", Text: text}), func() { m.marks = append(m.marks, text) })
	}
	if m.lossy {
		return nil // who is present, nobody knows
	}
	id := uint64(m.rng.IntN(4))
	if m.present[id] {
		return m.taken(m.rec.Leave(id), func() { m.player(id, false) })
	}
	return m.taken(m.rec.Join(format.Player{ID: id, Name: "x"}), func() { m.player(id, true) })
}

func (m *match) player(id uint64, present bool) {
	m.present[id] = present
	m.players = append(m.players, fmt.Sprint(m.next, id, present))
}

// taken enters what the client took.
func (m *match) taken(err error, enter func()) error {
	switch {
	case err == nil:
		enter()
	case !errors.Is(err, transport.ErrFull):
		return fmt.Errorf("a note at tick %d: %w", m.next, err)
	}
	return nil
}

// gap leaves a few ticks out.
func (m *match) gap() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.next + format.Tick(m.rng.IntN(20))
	if err := m.rec.Gap(last, "paused"); err != nil {
		return fmt.Errorf("gap at tick %d: %w", m.next, err)
	}
	m.happened("gap to %d", last)
	for ; m.next <= last; m.next++ {
		m.ticks[m.next] = &tick{left: true}
	}
	return nil
}

// seal enters that the game wants the match sealed.
func (m *match) seal() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.sealing {
		m.happened("to be sealed")
	}
	m.sealing = true
}

// unheard tells whether no client was ever told that the session is there.
func (m *match) unheard() bool {
	told := m.ask()
	return told.durable == 0 && !told.sealed
}

// endedUnheard enters that the session was sealed, which an earlier process
// asked for and did not live to hear.
func (m *match) endedUnheard() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told.sealed = true
}

// ended tells whether the client was told that the replay is finished.
func (m *match) ended() bool { return m.ask().sealed }

// adopt takes the recording of a new process that has the spool: nothing
// closed is lost.
func (m *match) adopt(rec *transport.Recording) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rec = rec
	m.happened("resumed from the spool")
	if got := rec.NextTick(); got != m.next {
		return fmt.Errorf("the spool goes on at tick %d, the game had closed all before %d", got, m.next)
	}
	return nil
}

// leave parts the match from its process: killed, or in order.
func (m *match) leave(killed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.askLocked()
	m.happened("process gone, killed %v", killed)
	m.rec = nil
	m.lossy = m.lossy || killed
}

// whence decides where a process without a spool goes on. What is not
// acknowledged before it may be missing from now on.
func (m *match) whence() format.Tick {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.anyTick()
	for t := m.told.durable; t < at; t++ {
		m.holes[t] = true
	}
	m.asked = max(m.asked, at)
	return at
}

// anyTick is one near the last that was acknowledged, but none before ticks
// that the model has as left out.
func (m *match) anyTick() format.Tick {
	if m.sealing {
		return m.next // it may be sealed already
	}
	at := m.told.durable - min(m.told.durable, 5)
	if m.rng.IntN(2) == 0 {
		at = m.told.durable + format.Tick(m.rng.Int64N(int64(m.next-min(m.next, m.told.durable))+8))
	}
	for t := at; t < m.next; t++ {
		if m.ticks[t].left || m.holes[t] {
			at = t + 1
		}
	}
	return at
}

// resumeAt enters that a process without a spool goes on at a tick, and
// records again what the game plays again.
func (m *match) resumeAt(rec *transport.Recording, at format.Tick) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rec, m.lossy, m.hashFrom = rec, true, m.next
	m.happened("continued at %d", at)
	was := m.next
	for t := m.told.durable - min(m.told.durable, maxLate); t < was; t++ {
		m.ticks[t].maybe = true
	}
	for t := m.told.durable; t < at; t++ {
		if m.ticks[t] == nil {
			m.ticks[t] = &tick{left: true}
		}
	}
	for m.next = at; m.next < was; {
		t := *m.ticks[m.next]
		if err := m.enter(&t); err != nil {
			return err
		}
	}
	return nil
}
