package transport

import (
	"fmt"
	"slices"
	"sort"
	"sync"

	"reprise/format"
)

// cut turns what was recorded since the last cut into chunks. Hashes that
// came late go first, so that no more ticks come in front of them than the
// format allows.
func (r *Recording) cut() {
	r.disarm()
	beside := r.beside
	r.beside = false
	if beside {
		r.cutHashes()
		r.cutPlayers()
	}
	if r.b.Ticks() > 0 {
		r.cutTicks()
		r.cutPartBusy()
	}
	if beside {
		r.cutMarks()
		r.cutReports()
	}
	if r.tail != nil {
		r.tail.turn(r.q.next())
	}
}

// bodies holds memory for bodies, which are needed only until they are framed.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

func (r *Recording) cutTicks() {
	body := bodies.Get().(*[]byte)
	*body = r.b.AppendBody((*body)[:0])
	r.b.Cut()
	r.push(format.ChunkTicks, *body)
	bodies.Put(body)
}

// frameRoom is enough for the frame around a body.
const frameRoom = 20

// push frames a body as the next chunk of the stream.
func (r *Recording) push(typ format.ChunkType, body []byte) {
	c := newChunk(len(body)+frameRoom, r.spooling())
	c.data = format.AppendChunk(c.data, typ, r.q.next(), body)
	c.size, c.next = len(c.data), r.b.NextTick()-format.Tick(r.b.Ticks())
	r.q.push(c)
	r.resumed = false
	r.memory += int64(c.size)
	r.client.memory.Add(int64(c.size) + chunkCost)
	r.full = r.full || r.crowded()
	switch {
	case r.spooling():
		r.toSpool = append(r.toSpool, c)
		if !r.recovering {
			r.client.spoolSoon(r)
		}
	case typ == format.ChunkTicks && r.sendNow(c):
	case r.live:
		r.client.ready(r)
	}
}

// crowded tells whether a bound on what is not durable is passed.
func (r *Recording) crowded() bool {
	return r.memory > int64(r.client.cfg.SessionMemory) || r.client.full()
}

// hold counts bytes of chunks in memory; a negative n gives them back. What
// keeping a chunk costs beside its bytes is counted for the client only.
func (r *Recording) hold(n int64) {
	r.memory += n
	r.client.memory.Add(n)
}

// drop forgets the bytes of a chunk.
func (r *Recording) drop(c *chunk) {
	if c.data != nil {
		c.data = nil
		r.hold(-int64(c.size))
	}
}

// finishCuts cuts all that is left, and declares a gap that is still open.
func (r *Recording) finishCuts() error {
	if r.missed.active {
		if err := r.endGap(); err != nil {
			return err
		}
	}
	r.cut()
	for r.spooling() && r.cutPart() {
	}
	return nil
}

// missed is what the client left out or the game declared as missing.
type missed struct {
	// active: ticks are being left out, from first on; next is the open one.
	active      bool
	first, next format.Tick
	ticks       uint64
	gaps        []format.Gap
	bytes       int
}

// has tells whether a tick is in a gap.
func (m *missed) has(t format.Tick) bool {
	if m.active && t >= m.first {
		return true
	}
	i := sort.Search(len(m.gaps), func(i int) bool { return m.gaps[i].Last >= t })
	return i < len(m.gaps) && m.gaps[i].First <= t
}

// beginGap leaves out ticks from the open one on, which has no steps yet.
func (r *Recording) beginGap() {
	r.cut()
	tick := r.b.NextTick()
	r.missed.active, r.missed.first, r.missed.next = true, tick, tick
	r.halted = true
	r.client.tell(r.id, fmt.Errorf("%w: ticks from %d on are left out until the daemon confirms more (%d bytes wait, the bound is %d for a session and %d for the client)",
		ErrFull, tick, r.memory, r.client.cfg.SessionMemory, r.client.cfg.Memory))
}

// missTick counts a tick that is left out, and goes on recording with the
// next one where there is room again.
func (r *Recording) missTick() error {
	if !r.missed.active || r.sealing || r.closing || r.over {
		return r.haltError()
	}
	r.missed.next++
	r.missed.ticks++
	if r.memory <= int64(r.client.cfg.SessionMemory/2) && !r.client.crowded() {
		if err := r.endGap(); err != nil {
			return err
		}
	}
	return ErrFull
}

// noRoom is the reason of the gaps that the client declares.
const noRoom = "the client had no room: the daemon did not confirm in time"

// endGap declares what was left out.
func (r *Recording) endGap() error {
	m := &r.missed
	m.active, r.halted, r.full = false, false, false
	if m.next == m.first {
		return nil
	}
	r.cutHashes()
	g := format.Gap{First: m.first, Last: m.next - 1, Reason: noRoom}
	if err := r.cutGap(g); err != nil {
		return err
	}
	r.client.tell(r.id, &GapError{First: g.First, Last: g.Last, Reason: g.Reason})
	return nil
}

// cutGap cuts a gap; the builder is empty.
func (r *Recording) cutGap(g format.Gap) error {
	body := format.AppendGap(nil, g)
	if r.missed.bytes+len(body) > format.MaxNoteBytes {
		err := fmt.Errorf("%w: gaps of more than %d bytes", format.ErrLimit, format.MaxNoteBytes)
		r.end(err, false)
		return err
	}
	r.missed.bytes += len(body)
	r.missed.gaps = append(r.missed.gaps, g)
	r.b.Skip(g.Last + 1)
	r.push(format.ChunkGap, body)
	r.keep(recordGap, g.First, body)
	return nil
}

// notes are what is recorded beside ticks and waits for the next cut, which
// looks for it where Recording.beside is set.
type notes struct {
	hashes  []format.TickHash
	events  []format.PlayerEvent
	marks   []format.Mark
	reports []format.Report

	salted  bool
	present map[uint64]bool
	// markCount, playerCount and reportCount are how many there were.
	markCount, playerCount, reportCount uint64
	// markBytes and playerBytes are those of the whole session.
	markBytes, playerBytes int
	refused                uint64
}

func (r *Recording) cutHashes() {
	hashes := r.notes.hashes
	if len(hashes) == 0 {
		return
	}
	slices.SortFunc(hashes, func(a, b format.TickHash) int { return int(int64(a.Tick) - int64(b.Tick)) })
	r.push(format.ChunkHashes, format.AppendHashes(nil, hashes))
	r.notes.hashes = hashes[:0]
}

func (r *Recording) cutPlayers() {
	if len(r.notes.events) == 0 {
		return
	}
	r.push(format.ChunkPlayers, format.AppendPlayers(nil, r.notes.salt(), r.notes.events))
	r.notes.events = r.notes.events[:0]
}

func (r *Recording) cutMarks() {
	for _, m := range r.notes.marks {
		r.push(format.ChunkMark, format.AppendMark(nil, m))
	}
	r.notes.marks = r.notes.marks[:0]
}

func (r *Recording) cutReports() {
	if len(r.notes.reports) == 0 {
		return
	}
	r.push(format.ChunkReports, format.AppendReports(nil, r.notes.reports))
	r.notes.reports = r.notes.reports[:0]
}
