package daemon

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"reprise/format"
	"reprise/transport"
)

// match is a made-up game whose every tick follows from its seed: what a file
// of it must hold is known without asking any recorder.
type match struct {
	id   string
	seed uint64
}

const matchHashBytes = 8

func (m match) rand(tick format.Tick, what uint64) *rand.Rand {
	return rand.New(rand.NewPCG(m.seed^what<<56, uint64(tick)))
}

func (m match) spec() transport.Spec {
	return transport.Spec{Meta: format.Metadata{Session: m.id, Game: "match", Seed: m.seed, TickRate: format.Rate{Num: 500, Den: 1}, HashBytes: matchHashBytes},
		Key: m.key(), Players: []format.PlayerEvent{{ID: 1, Name: "Ωne"}, {ID: 2, Name: "two"}}}
}

func (m match) key() (key [transport.KeySize]byte) {
	binary.BigEndian.PutUint64(key[:], m.seed+1)
	return key
}

// steps are the inputs of a tick; most ticks have none.
func (m match) steps(tick format.Tick) []transport.Input {
	r := m.rand(tick, 1)
	var steps []transport.Input
	for range max(0, r.IntN(6)-3) {
		steps = append(steps, transport.Input{Code: uint16(r.IntN(300)), Params: []format.Value{
			format.Int(r.Int64N(1 << 40)), format.String(fmt.Sprint("unit ", tick)), format.Ints([]int64{r.Int64N(9), -r.Int64N(1 << 20)})}})
	}
	return steps
}

// hash is the state hash after a tick, nil for those without, and how many
// ticks later it comes.
func (m match) hash(tick format.Tick) (h []byte, late format.Tick) {
	r := m.rand(tick, 2)
	if r.IntN(3) > 0 {
		return nil, 0
	}
	return binary.BigEndian.AppendUint64(nil, r.Uint64()), format.Tick(max(0, r.IntN(80)-40))
}

// gap is how many ticks are missing from a tick on; mostly none.
func (m match) gap(tick format.Tick) format.Tick {
	if r := m.rand(tick, 3); r.IntN(200) == 0 {
		return format.Tick(1 + r.IntN(5))
	}
	return 0
}

// keyframe is the state before a tick; mostly there is none.
func (m match) keyframe(tick format.Tick) []byte {
	r := m.rand(tick, 4)
	if r.IntN(150) > 0 {
		return nil
	}
	state := make([]byte, 1+r.IntN(80<<10))
	for i := range state {
		state[i] = byte(r.Uint32())
	}
	return state
}

func (m match) mark(tick format.Tick) (format.Mark, bool) {
	r := m.rand(tick, 5)
	return format.Mark{Tick: tick, Kind: "kill", Player: r.Uint64N(4), Text: fmt.Sprint("at ", tick)}, r.IntN(60) == 0
}

// event is a join or a leave before a tick: a third player comes and goes.
func (m match) event(tick format.Tick) (e format.PlayerEvent, any bool) {
	e = format.PlayerEvent{Tick: tick, ID: 3, Leave: tick%200 != 50}
	if !e.Leave {
		e.Name = fmt.Sprint("guest ", tick)
	}
	return e, tick%100 == 50
}

// player plays a match into a recording.
type player struct {
	match
	t    testing.TB
	rec  *transport.Recording
	late map[format.Tick][]format.Tick // hashes that are due, by the tick they are due at
	gone bool                          // the third player is not there
	// failed is set once anything could not be recorded.
	failed bool
}

func (m match) play(t testing.TB, c *transport.Client) *player {
	t.Helper()
	rec, err := c.Open(m.spec())
	if err != nil {
		t.Fatal(err)
	}
	return &player{match: m, t: t, rec: rec, late: map[format.Tick][]format.Tick{}, gone: true}
}

// tick records one tick, or the gap that stands in its place.
func (p *player) tick() {
	tick := p.rec.NextTick()
	if n := p.gap(tick); n > 0 {
		p.must(p.rec.Gap(tick+n-1, "lost"))
		return
	}
	if e, any := p.event(tick); any && e.Leave != p.gone {
		p.must(p.rec.Players(e))
		p.gone = e.Leave
	}
	if state := p.keyframe(tick); state != nil {
		p.must(p.rec.Keyframe(tick, state))
	}
	for _, s := range p.steps(tick) {
		p.must(p.rec.Step(s.Code, s.Params...))
	}
	p.must(p.rec.EndTick())
	if mark, any := p.mark(tick); any {
		p.must(p.rec.Mark(mark))
	}
	if h, late := p.hash(tick); h != nil {
		p.late[tick+late] = append(p.late[tick+late], tick)
	}
	p.hashes(tick)
}

// hashes gives the hashes that are due.
func (p *player) hashes(until format.Tick) {
	for due, ticks := range p.late {
		if due > until {
			continue
		}
		for _, tick := range ticks {
			h, _ := p.hash(tick)
			p.must(p.rec.Hash(tick, h))
		}
		delete(p.late, due)
	}
}

// must ends the playing with the first error.
func (p *player) must(err error) {
	if err != nil && !p.failed {
		p.failed = true
		p.t.Errorf("session %s: %v", p.id, err)
	}
}

// run plays until stop.
func (p *player) run(stop <-chan struct{}, pause time.Duration) {
	beat := time.NewTicker(pause)
	defer beat.Stop()
	for !p.failed {
		select {
		case <-stop:
			return
		case <-beat.C:
			p.tick()
		}
	}
}

// seal ends the match and returns the tick after the last.
func (p *player) seal() format.Tick {
	p.t.Helper()
	end := p.rec.NextTick()
	p.hashes(format.MaxTick)
	if err := p.rec.Seal(within(p.t, patience)); err != nil {
		p.t.Fatalf("sealing %s: %v", p.id, err)
	}
	return end
}

// sealIn ends the match, and compares its file in a data folder with it.
func (p *player) sealIn(data string) format.Tick {
	p.t.Helper()
	end := p.seal()
	path := fileOf(p.t, data, p.id)
	if filepath.Base(filepath.Dir(path)) != "sealed" {
		p.t.Errorf("%s is not among the sealed files", path)
	}
	p.whole(p.t, path, end)
	return end
}

// whole compares a finished file with the match up to tick end.
func (m match) whole(t testing.TB, path string, end format.Tick) {
	t.Helper()
	f := opened(t, path)
	if s := f.Summary(); s.End == nil || s.End.State != format.EndSealed || s.NextTick != end {
		t.Fatalf("%s: end %+v, next tick %d, want it sealed with %d", path, s.End, s.NextTick, end)
	}
	m.prefix(t, f, end, true)
	m.notes(t, f, end)
}

// prefix compares the ticks of a file with the match: each once, none
// missing, up to tick end at least. A hash may be missing while it is late.
func (m match) prefix(t testing.TB, f *format.File, end format.Tick, whole bool) {
	t.Helper()
	r := f.Reader()
	due := format.Tick(0)
	for rec := (format.TickRecord{}); ; due++ {
		for due < f.Summary().NextTick && m.gap(due) > 0 {
			due += m.gap(due)
		}
		err := r.Next(&rec)
		if err == io.EOF {
			break
		}
		if err != nil || rec.Tick != due {
			t.Fatalf("session %s: tick %d, %v, want tick %d", m.id, rec.Tick, err, due)
		}
		m.same(t, &rec, whole)
	}
	if due < end {
		t.Fatalf("session %s: the file ends before tick %d, want every tick before %d", m.id, due, end)
	}
}

func (m match) same(t testing.TB, rec *format.TickRecord, whole bool) {
	t.Helper()
	want := m.steps(rec.Tick)
	if rec.Steps != len(want) {
		t.Fatalf("session %s, tick %d: %d steps, want %d", m.id, rec.Tick, rec.Steps, len(want))
	}
	var steps format.StepReader
	steps.Reset(rec)
	var s format.Step
	for i := 0; steps.Next(&s); i++ {
		if s.Code != want[i].Code || !slices.EqualFunc(s.Params, want[i].Params, format.Value.Equal) {
			t.Fatalf("session %s, tick %d, step %d: %d %v, want %d %v", m.id, rec.Tick, i, s.Code, s.Params, want[i].Code, want[i].Params)
		}
	}
	h, _ := m.hash(rec.Tick)
	if (whole || rec.Hash != nil) && !bytes.Equal(rec.Hash, h) {
		t.Fatalf("session %s, tick %d: hash %x, want %x", m.id, rec.Tick, rec.Hash, h)
	}
}

// notes compares what a finished file has beside ticks.
func (m match) notes(t testing.TB, f *format.File, end format.Tick) {
	t.Helper()
	var gaps []format.Gap
	var marks []format.Mark
	var keyframes []format.Tick
	players := m.spec().Players
	gone := true
	for tick := format.Tick(0); tick < end; tick++ {
		if n := m.gap(tick); n > 0 {
			gaps = append(gaps, format.Gap{First: tick, Last: tick + n - 1, Reason: "lost"})
			tick += n - 1
			continue
		}
		if e, any := m.event(tick); any && e.Leave != gone {
			players, gone = append(players, e), e.Leave
		}
		if mark, any := m.mark(tick); any {
			marks = append(marks, mark)
		}
		if m.keyframe(tick) != nil {
			keyframes = append(keyframes, tick)
		}
	}
	s := f.Summary()
	slices.SortStableFunc(s.Marks, func(a, b format.Mark) int { return cmp.Compare(a.Tick, b.Tick) })
	if !slices.Equal(s.Gaps, gaps) || !slices.Equal(s.Marks, marks) || !slices.Equal(s.Players, players) {
		t.Fatalf("session %s: gaps %v\nwant %v\nmarks %v\nwant %v\nplayers %v\nwant %v", m.id, s.Gaps, gaps, s.Marks, marks, s.Players, players)
	}
	if len(s.Keyframes) != len(keyframes) {
		t.Fatalf("session %s: %d keyframes, want %d", m.id, len(s.Keyframes), len(keyframes))
	}
	for i := range s.Keyframes {
		k, err := f.Keyframe(i)
		if err != nil || !bytes.Equal(k.State, m.keyframe(k.NextTick)) {
			t.Fatalf("session %s: keyframe %d before tick %d: %v, or another state", m.id, i, k.NextTick, err)
		}
	}
}
