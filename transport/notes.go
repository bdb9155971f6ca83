package transport

import (
	"crypto/rand"
	"fmt"
	"slices"

	"reprise/format"
)

// salt gives the random bytes of the session's first players chunk, once.
func (n *notes) salt() []byte {
	if n.salted {
		return nil
	}
	n.salted = true
	salt := make([]byte, format.SaltBytes)
	rand.Read(salt)
	return salt
}

// admitNote decides whether something beside ticks is taken: within spare
// bytes above the bound it is.
func (r *Recording) admitNote(spare int) error {
	if r.halted && !r.missed.active {
		return r.haltError()
	}
	if r.memory > int64(r.client.cfg.SessionMemory+spare) || spare == 0 && (r.missed.active || r.client.full()) {
		r.notes.refused++
		return ErrFull
	}
	return nil
}

// Mark records a named point.
func (r *Recording) Mark(m format.Mark) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.admitNote(0); err != nil {
		return err
	}
	body := format.AppendMark(nil, m)
	size := len(body)
	switch {
	case m.Tick > format.MaxTick, len(m.Kind) > format.MaxText, len(m.Text) > format.MaxText:
		return fmt.Errorf("%w: a mark at tick %d with a kind of %d and a text of %d bytes", format.ErrLimit, m.Tick, len(m.Kind), len(m.Text))
	case r.notes.markBytes+size > format.MaxNoteBytes:
		return fmt.Errorf("%w: marks of more than %d bytes", format.ErrLimit, format.MaxNoteBytes)
	}
	kept := r.keep(recordMark, format.Tick(r.notes.markCount), body)
	r.notes.addMark(m, size)
	r.noted(kept)
	return nil
}

func (n *notes) addMark(m format.Mark, size int) {
	n.markBytes += size
	n.markCount++
	n.marks = append(n.marks, m)
}

// noted makes sure that a note goes soon; kept tells whether the tail has it
// until then.
func (r *Recording) noted(kept bool) {
	r.beside = true
	r.arm(r.client.clock())
	if !kept {
		r.spill()
	}
}

// maxReports bounds the reports of one chunk.
const maxReports = 4096

// Report records peers' state hashes. They never decide whether the replay
// is in sync.
func (r *Recording) Report(reports ...format.Report) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.admitNote(0); err != nil {
		return err
	}
	for i := range reports {
		if n := len(reports[i].Hash); n == 0 || n > format.MaxHashBytes || reports[i].At > format.MaxTick || reports[i].Of > format.MaxTick {
			return fmt.Errorf("%w: a report of tick %d with a hash of %d bytes: 1 to %d", format.ErrLimit, reports[i].Of, n, format.MaxHashBytes)
		}
	}
	kept := r.keep(recordReports, format.Tick(r.notes.reportCount), format.AppendReports(nil, reports))
	r.addReports(reports)
	r.noted(kept)
	return nil
}

func (r *Recording) addReports(reports []format.Report) {
	for _, p := range reports {
		p.Hash = slices.Clone(p.Hash)
		r.notes.reports = append(r.notes.reports, p)
		r.notes.reportCount++
		if len(r.notes.reports) >= maxReports {
			r.cutReports()
		}
	}
}

// Join records that a player takes part from the open tick on.
func (r *Recording) Join(p format.Player) error {
	return r.playerAtOpenTick(format.PlayerEvent{ID: p.ID, Name: p.Name, Team: p.Team, Observer: p.Observer})
}

// Leave records that a player no longer takes part from the open tick on.
func (r *Recording) Leave(id uint64) error {
	return r.playerAtOpenTick(format.PlayerEvent{ID: id, Leave: true})
}

func (r *Recording) playerAtOpenTick(e format.PlayerEvent) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Tick = r.nextTick()
	return r.players([]format.PlayerEvent{e})
}

// Players records joins and leaves with their ticks: all of them, or none
// where one does not fit.
func (r *Recording) Players(events ...format.PlayerEvent) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.players(events)
}

func (r *Recording) players(events []format.PlayerEvent) error {
	if err := r.admitNote(playerRoom); err != nil {
		return err
	}
	before := r.notes.playerCount
	if err := r.notes.addPlayers(events); err != nil {
		return err
	}
	r.noted(r.keep(recordPlayers, format.Tick(before), format.AppendPlayers(nil, nil, events)))
	return nil
}

// addPlayers takes events that fit those before.
func (n *notes) addPlayers(events []format.PlayerEvent) error {
	size, err := checkPlayers(n.present, events)
	if err != nil {
		return err
	}
	// Each call may become a chunk of its own, with counts of its own.
	if size += format.SaltBytes; n.playerBytes+size > format.MaxNoteBytes {
		return fmt.Errorf("%w: players of more than %d bytes", format.ErrLimit, format.MaxNoteBytes)
	}
	n.playerBytes += size
	for _, e := range events {
		n.present[e.ID] = !e.Leave
	}
	n.playerCount += uint64(len(events))
	n.events = append(n.events, events...)
	return nil
}

// checkPlayers checks events against who is present, and gives their size.
func checkPlayers(present map[uint64]bool, events []format.PlayerEvent) (int, error) {
	here := map[uint64]bool{}
	for _, e := range events {
		was, ok := here[e.ID]
		if !ok {
			was = present[e.ID]
		}
		switch {
		case e.Leave && !was:
			return 0, fmt.Errorf("%w: player %d leaves without having joined", format.ErrOrder, e.ID)
		case !e.Leave && was:
			return 0, fmt.Errorf("%w: player %d joins twice", format.ErrOrder, e.ID)
		case len(e.Name) > format.MaxText, len(e.Team) > format.MaxText, e.Tick > format.MaxTick:
			return 0, fmt.Errorf("%w: player %d with a name of %d and a team of %d bytes at tick %d", format.ErrLimit, e.ID, len(e.Name), len(e.Team), e.Tick)
		}
		here[e.ID] = !e.Leave
	}
	return len(format.AppendPlayers(nil, nil, events)), nil
}

// keyframes are the keyframes on their way, the first being sent in parts.
type keyframes struct {
	waiting []*keyframe
	nextID  uint64
	// half counts those of an earlier process that were never sent whole.
	half int
}

type keyframe struct {
	id    uint64
	next  format.Tick
	state []byte
	off   int
}

func (k *keyframes) empty() bool { return len(k.waiting) == 0 }

// Keyframe records the whole state before tick next. The state is copied,
// and sent in small parts behind the ticks. With a spool the copy outlives the
// game's process from the return of Keyframe on: it is written to a file of
// its own, which costs what the system takes for so many bytes. ErrFull means
// that it is not taken.
func (r *Recording) Keyframe(next format.Tick, state []byte) error {
	k, spool, err := r.admitKeyframe(next, state)
	if err != nil {
		return err
	}
	k.state = slices.Clone(state)
	if spool != nil {
		if err := spool.writeKeyframe(k, r.key); err != nil {
			r.client.tell(r.id, fmt.Errorf("a killed game will lose the keyframe before tick %d: %w", next, err))
		}
	}
	return r.addKeyframe(k, spool)
}

// admitKeyframe decides whether a keyframe is taken, and reserves memory for
// it. spool is set where it is to be written there.
func (r *Recording) admitKeyframe(next format.Tick, state []byte) (k *keyframe, s *spool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.admitNote(0); err != nil {
		return nil, nil, err
	}
	switch {
	case len(state) > format.MaxKeyframe:
		return nil, nil, fmt.Errorf("%w: a keyframe of %d bytes, the most is %d", format.ErrLimit, len(state), format.MaxKeyframe)
	case next < r.firstTick || next > format.MaxTick:
		return nil, nil, fmt.Errorf("%w: a keyframe before tick %d, the first is %d", format.ErrOrder, next, r.firstTick)
	case r.keys.half >= format.MaxOpenKeyframes:
		return nil, nil, fmt.Errorf("%w: %d keyframes of earlier starts are not whole", format.ErrLimit, r.keys.half)
	case r.client.memory.Load()+int64(len(state)) > int64(r.client.cfg.Memory/2):
		r.notes.refused++
		return nil, nil, ErrFull
	}
	r.keys.nextID++
	r.client.memory.Add(int64(len(state)))
	if r.spooling() {
		s = r.spool
	}
	return &keyframe{id: r.keys.nextID, next: next}, s, nil
}

// addKeyframe queues a keyframe, unless the recording has ended meanwhile.
func (r *Recording) addKeyframe(k *keyframe, s *spool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.halted && !r.missed.active {
		r.client.memory.Add(-int64(len(k.state)))
		if s != nil {
			_ = s.removeKeyframe(k.id) // what is left of it is removed with the spool, or dropped by Resume
		}
		return r.haltError()
	}
	r.keys.waiting = append(r.keys.waiting, k)
	r.client.ready(r)
	return nil
}

// cutPartBusy lets one part of a keyframe go with a chunk of ticks, so that
// keyframes come on though ticks always wait. Without a spool it does so only
// while the daemon takes what is sent.
func (r *Recording) cutPartBusy() {
	if (r.live || r.spooling()) && r.memory < int64(r.client.cfg.SessionMemory/2) {
		r.cutPart()
	}
}

// cutPart cuts the next part of the first keyframe; false where there is
// none that may go. The ticks before a keyframe go in front of it.
func (r *Recording) cutPart() bool {
	if r.keys.empty() {
		return false
	}
	k := r.keys.waiting[0]
	if k.next > r.b.NextTick()-format.Tick(r.b.Ticks()) && !r.sealing && !r.closing {
		return false
	}
	n := min(format.MaxKeyframePart, len(k.state)-k.off)
	r.push(format.ChunkKeyframe, format.AppendKeyframePart(nil, format.KeyframePart{ID: k.id, NextTick: k.next,
		Total: uint64(len(k.state)), Offset: uint64(k.off), Data: k.state[k.off : k.off+n]}))
	c := r.q.chunks[len(r.q.chunks)-1]
	c.part = true
	k.off += n
	if k.off == len(k.state) {
		c.keyframe = k.id
		r.client.memory.Add(-int64(len(k.state)))
		r.keys.waiting = slices.Delete(r.keys.waiting, 0, 1)
	}
	return true
}
