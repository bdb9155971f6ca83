package app

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"reprise/format"
	"reprise/player/games/skirmish"
	"reprise/player/games/tower"
	"reprise/transport"
)

// demoMatch is one match that the demo plays and records.
type demoMatch struct {
	id, what  string
	meta      *format.Metadata
	book      *format.CodeBook
	players   []format.PlayerEvent
	game      demoGame
	recording *transport.Recording
	file      string
	// pace is how long a tick takes, and most how many are played at most.
	pace time.Duration
	most int
	// crashAt is the tick behind which the daemon may be killed.
	crashAt format.Tick

	mu     sync.Mutex
	inputs [][sha256.Size]byte // of every tick played, to compare with what was kept
}

// demoGame plays one tick after the other into a recording.
type demoGame interface {
	// inputs gives the next tick's steps to add; false when the match is over.
	inputs(add func(code uint16, params ...format.Value) error) (bool, error)
	// simulate plays the tick, and gives the hashes that are known then.
	simulate(hash func(format.Tick, []byte) error) error
	// keyframe gives the state before the first tick.
	keyframe() []byte
}

// A real-time match of the demo is played fifty times faster than by people,
// and not to its end; a climb has turns at the speed of a machine.
const (
	demoTicks     = 4000
	demoPace      = time.Millisecond
	demoCrashTick = 1000
	demoTurns     = 3000
	demoTurnPace  = 2 * time.Millisecond
	demoCrashTurn = 300
)

// demoMatches prepares the matches: real-time ones and turn-based ones.
func demoMatches() []*demoMatch {
	var matches []*demoMatch
	for i, m := range []struct {
		players int
		mapName string
		seed    uint64
	}{{2, "plains-100", 1}, {2, "woods-100", 2}, {4, "canyon-120", 3}} {
		matches = append(matches, skirmishMatch(fmt.Sprintf("skirmish-%d", i+1), m.seed, m.players, m.mapName))
	}
	for i, mapName := range []string{"tower-10", "tower-20"} {
		matches = append(matches, towerMatch(fmt.Sprintf("tower-%d", i+1), uint64(10+i), mapName))
	}
	return matches
}

func skirmishMatch(id string, seed uint64, players int, mapName string) *demoMatch {
	match, err := skirmish.NewMatch(seed, players, mapName)
	if err != nil {
		panic(err)
	}
	m := &demoMatch{id: id, what: fmt.Sprintf("real-time match of %d players on %s, 20 ticks a second", players, mapName),
		meta: match.Metadata(), book: skirmish.CodeBook(), game: &skirmishDemo{match: match}, pace: demoPace, most: demoTicks, crashAt: demoCrashTick}
	for _, p := range match.Players() {
		m.players = append(m.players, format.PlayerEvent{Tick: m.meta.FirstTick, ID: p.ID, Name: p.Name, Team: p.Team})
	}
	return m
}

func towerMatch(id string, seed uint64, mapName string) *demoMatch {
	run, err := tower.NewRun(seed, mapName)
	if err != nil {
		panic(err)
	}
	meta := tower.Metadata(id, seed, mapName)
	return &demoMatch{id: id, what: "turn-based climb of " + mapName + ", a tick a turn", meta: meta, book: tower.CodeBook(),
		players: []format.PlayerEvent{{Tick: meta.FirstTick, ID: 1, Name: "climber"}}, game: &towerDemo{run: run}, pace: demoTurnPace,
		most: demoTurns, crashAt: demoCrashTurn}
}

func (m *demoMatch) open(client *transport.Client) (err error) {
	m.meta.Session = m.id
	m.recording, err = client.Open(transport.Spec{Meta: *m.meta, Book: m.book, Players: m.players, Times: true})
	if err != nil {
		return err
	}
	return m.recording.Keyframe(m.meta.FirstTick, m.game.keyframe())
}

// play plays the match as a game server: record the inputs, end the tick,
// simulate, record the hash. Nothing here waits for the daemon.
func (m *demoMatch) play(ctx context.Context) error {
	tick := time.NewTicker(m.pace)
	defer tick.Stop()
	for range m.most {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		going, err := m.tick()
		if err != nil || !going {
			return err
		}
	}
	return nil
}

func (m *demoMatch) tick() (going bool, err error) {
	inputs := inputDigest{}
	going, err = m.game.inputs(func(code uint16, params ...format.Value) error {
		inputs.add(code, params)
		return m.recording.Step(code, params...)
	})
	if err != nil {
		return false, err
	}
	if going {
		m.mu.Lock()
		m.inputs = append(m.inputs, inputs.sum())
		m.mu.Unlock()
		if err := m.recording.EndTick(); err != nil {
			return false, err
		}
	}
	return going, m.game.simulate(m.recording.Hash)
}

// compareWith compares the ticks before next in the session's file in folder
// with what was played.
func (m *demoMatch) compareWith(folder string, next format.Tick) (uint64, error) {
	names, err := filepath.Glob(filepath.Join(folder, "room-"+m.id+"-*.rply"))
	if err != nil || len(names) != 1 {
		return 0, fmt.Errorf("%d files in %s", len(names), folder)
	}
	f, err := format.Open(names[0])
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r := f.Reader()
	var t format.TickRecord
	n := uint64(0)
	for due := m.meta.FirstTick; due < next; due++ {
		if err := r.Next(&t); err == io.EOF {
			return n, fmt.Errorf("tick %d was acknowledged, the file ends before it", due)
		} else if err != nil {
			return n, err
		}
		if t.Tick != due || digestOfTick(&t) != m.played(due) {
			return n, fmt.Errorf("tick %d was acknowledged, in the file stands something else", due)
		}
		n++
	}
	return n, nil
}

func (m *demoMatch) played(t format.Tick) [sha256.Size]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inputs[t-m.meta.FirstTick]
}

// inputDigest digests the steps of one tick.
type inputDigest struct{ b []byte }

func (d *inputDigest) add(code uint16, params []format.Value) {
	d.b = binary.BigEndian.AppendUint16(d.b, code)
	d.b = append(d.b, byte(len(params)))
	for _, p := range params {
		// What cannot be stored is refused by Step.
		d.b, _ = format.AppendParam(d.b, p)
	}
}

func (d *inputDigest) sum() [sha256.Size]byte { return sha256.Sum256(d.b) }

func digestOfTick(t *format.TickRecord) [sha256.Size]byte {
	var d inputDigest
	var steps format.StepReader
	var step format.Step
	for steps.Reset(t); steps.Next(&step); {
		d.add(step.Code, step.Params)
	}
	return d.sum()
}

// skirmishDemo drives a match of skirmish.
type skirmishDemo struct {
	match  *skirmish.Match
	tick   format.Tick
	over   bool
	params []format.Value
	hash   []byte
}

func (s *skirmishDemo) keyframe() []byte { return s.match.Game().Save(nil) }

func (s *skirmishDemo) inputs(add func(uint16, ...format.Value) error) (bool, error) {
	tick, commands, done := s.match.Next()
	if s.over = done; done {
		return false, nil
	}
	s.tick = tick
	for _, c := range commands {
		s.params = c.AppendParams(s.params[:0])
		if err := add(c.Op, s.params...); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (s *skirmishDemo) simulate(hash func(format.Tick, []byte) error) error {
	if s.over {
		return nil
	}
	if err := s.match.Simulate(); err != nil {
		return err
	}
	s.hash = s.match.Game().Hash(s.hash[:0])
	return hash(s.tick, s.hash)
}

// towerDemo drives a climb of tower.
type towerDemo struct {
	run     *tower.Run
	settled []tower.Settled
}

func (t *towerDemo) keyframe() []byte { return t.run.Save(nil) }

func (t *towerDemo) inputs(add func(uint16, ...format.Value) error) (bool, error) {
	turn, settled, ok := t.run.Next()
	t.settled = settled
	if !ok {
		return false, nil
	}
	var err error
	turn.Steps(func(code uint16, params ...format.Value) {
		if err == nil {
			err = add(code, params...)
		}
	})
	return err == nil, err
}

func (t *towerDemo) simulate(hash func(format.Tick, []byte) error) error {
	for _, s := range t.settled {
		if err := hash(s.Tick, s.Hash); err != nil {
			return err
		}
	}
	return nil
}
