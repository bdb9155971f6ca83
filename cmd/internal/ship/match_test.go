package ship

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/format"
)

// match is a made-up game with one of everything. It writes its file as a
// game would: in small chunks, with hashes that come late.
type match struct {
	id    string
	seed  uint64
	ticks int
	// end is how the file ends; 0 for not at all.
	end    format.EndState
	reason string
	// again tells matches with the same metadata apart.
	again uint64
}

const matchFirst = 7

func (m match) meta() *format.Metadata {
	return &format.Metadata{Session: m.id, Game: "match", Build: "1.0", Seed: m.seed, TickRate: format.Rate{Num: 20, Den: 1}, FirstTick: matchFirst,
		HashBytes: 8, Width: format.Width16, Labels: []format.Label{{Key: "mode", Value: "düel"}}}
}

func (m match) book() *format.CodeBook {
	return &format.CodeBook{Codes: []format.CodeInfo{{Code: 3, Name: "move", Params: []format.ParamInfo{{Name: "unit"}, {Name: "say", Personal: true}}}}}
}

// bytes is the whole file.
func (m match) bytes(t testing.TB) []byte {
	t.Helper()
	var out format.Buffer
	w, err := format.NewWriter(&out, m.meta(), m.book())
	if err != nil {
		t.Fatal(err)
	}
	p := &writer{m: m, t: t, w: w, r: rand.New(rand.NewPCG(m.seed, m.again)), late: map[format.Tick][]byte{}}
	p.must(w.Players(bytes.Repeat([]byte{byte(m.seed)}, format.SaltBytes), []format.PlayerEvent{{Tick: matchFirst, ID: 1, Name: "Ωne"}, {Tick: matchFirst, ID: 2}}))
	for range m.ticks {
		p.tick()
	}
	p.hashes()
	p.must(w.Flush())
	if m.end != 0 {
		p.must(w.Finish(m.end, m.reason))
	}
	return out.Bytes()
}

type writer struct {
	m     match
	t     testing.TB
	w     *format.Writer
	r     *rand.Rand
	late  map[format.Tick][]byte
	guest bool
	time  int64
}

func (p *writer) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// tick writes a tick and what happens around it.
func (p *writer) tick() {
	tick := p.w.NextTick()
	for range max(0, p.r.IntN(5)-2) {
		p.must(p.w.Step(3, format.Int(p.r.Int64N(1<<30)), format.String(fmt.Sprint("at ", tick))))
	}
	p.time += p.r.Int64N(60_000)
	if p.r.IntN(8) > 0 {
		p.must(p.w.EndTickAt(p.time))
	} else {
		p.must(p.w.EndTick())
	}
	if p.r.IntN(2) == 0 {
		p.late[tick] = binary.BigEndian.AppendUint64(nil, p.r.Uint64())
	}
	switch p.r.IntN(24) {
	case 0:
		p.must(p.w.Mark(format.Mark{Tick: tick, Kind: "kill", Player: 2, Text: fmt.Sprint("mark ", tick)}))
	case 1:
		p.must(p.w.Reports([]format.Report{{At: tick, Of: tick, Peer: 9, Hash: []byte{1, byte(tick)}}, {At: tick, Of: tick - 1, Peer: 8, Hash: []byte{2}}}))
	case 2:
		p.must(p.w.Players(nil, []format.PlayerEvent{{Tick: tick + 1, ID: 3, Leave: p.guest, Name: map[bool]string{false: "guest"}[p.guest]}}))
		p.guest = !p.guest
	case 3:
		p.must(p.w.Gap(format.Gap{First: tick + 1, Last: tick + 1 + format.Tick(p.r.IntN(4)), Reason: "lost", ByRecorder: p.r.IntN(2) == 0}))
	case 4:
		state := make([]byte, p.r.IntN(70<<10))
		for i := 0; i < len(state); i += 7 {
			state[i] = byte(p.r.Uint32())
		}
		p.must(p.w.Keyframe(format.Keyframe{NextTick: p.w.NextTick(), State: state}))
	case 5, 6, 7:
		p.must(p.w.Flush())
	case 8:
		p.hashes()
	}
}

// hashes gives the hashes that wait, most of them late, the newest first.
func (p *writer) hashes() {
	for _, tick := range slices.Backward(slices.Sorted(maps.Keys(p.late))) {
		p.must(p.w.Hash(tick, p.late[tick]))
	}
	clear(p.late)
}

// finished is a match that was sealed.
func finished(id string, seed uint64, ticks int) match {
	return match{id: id, seed: seed, ticks: ticks, end: format.EndSealed}
}

// live is a match that goes on.
func live(id string, seed uint64, ticks int) match { return match{id: id, seed: seed, ticks: ticks} }
