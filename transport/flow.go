package transport

import (
	"errors"
	"fmt"
	"time"

	"reprise/format"
)

// What follows is a recording as its client's connection sees it: it is
// opened on a link, gives frames, and takes what the daemon answers. A link
// that is no longer the recording's own is ignored.

// beginOpen enters the recording on a link and appends its open frame; false
// where it has ended or is open there.
func (r *Recording) beginOpen(l *link, alias uint64, dst []byte) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.link == l || r.trouble != nil && !temporary(r.trouble) {
		return dst, false
	}
	r.link, r.alias, r.live, r.sealSent, r.stalled = l, alias, false, false, false
	r.epoch++
	o := open{alias: alias, session: r.id, key: r.key, epoch: r.epoch, continues: r.continuing, at: r.continueAt}
	if !r.continued {
		o.opening = r.opening
	}
	return o.append(dst), true
}

// temporary tells whether the client tries again after err.
func temporary(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Temporary()
}

// unlink takes the recording off a link that has gone.
func (r *Recording) unlink(l *link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link == l {
		r.link, r.live = nil, false
	}
}

// take gives the link the frames that may go now, until they are a turn, the
// link has enough, or a part of a keyframe is among them; more tells whether
// some are left. Behind a part no other follows in a write: ticks that come
// meanwhile do not have to wait for the next parts on a slow link.
func (r *Recording) take(l *link) (part, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for taken := 0; r.link == l && r.live && !r.over && !r.stalled; {
		if part || taken >= turnSize || l.filled() {
			return part, true
		}
		c := r.nextChunk()
		if c == nil {
			r.takeSeal()
			return false, false
		}
		if r.spooling() && !c.spooled || !r.q.allows(c.size) {
			return false, false // the spool, or an ack, calls again
		}
		data, ok := r.dataOf(l, c)
		if !ok {
			return false, false
		}
		l.put(r.alias, data)
		r.markSent()
		taken += c.size
		part = c.part
	}
	return part, false
}

// sendNow gives the link a chunk that was just cut, while it is at hand, where
// it may go now and is the next; false where the sender must come for it.
func (r *Recording) sendNow(c *chunk) bool {
	if !r.live || r.stalled || r.q.unsent() != c || !r.q.allows(c.size) || !r.link.offer(r.alias, c.data) {
		return false
	}
	r.markSent()
	return true
}

// markSent counts the next chunk as sent, and remembers how far the daemon
// may be.
func (r *Recording) markSent() {
	r.q.markSent()
	if seq, next, ok := r.q.sentTo(); ok && seq > r.mayHave {
		r.mayHave, r.mayHaveTick = seq, next
	}
}

// nextChunk is the chunk to send next. Where none waits, a part of a
// keyframe is cut.
func (r *Recording) nextChunk() *chunk {
	if c := r.q.unsent(); c != nil || !r.cutPart() {
		return c
	}
	return r.q.unsent()
}

// dataOf gives the bytes of the next chunk. Where only the spool has them they
// are read without the lock; false where the recording has moved on meanwhile.
func (r *Recording) dataOf(l *link, c *chunk) ([]byte, bool) {
	if c.data != nil {
		return c.data, true
	}
	s, at, size := r.spool, c.at, c.size
	r.mu.Unlock()
	data, err := s.read(nil, at, size)
	r.mu.Lock()
	if r.link != l || !r.live || r.over || r.q.unsent() != c {
		return nil, false
	}
	if err != nil {
		r.end(fmt.Errorf("session %s: reading back the spool: %w", r.id, err), false)
		return nil, false
	}
	return data, true
}

// takeSeal gives the link the seal frame once all in front of it has gone.
func (r *Recording) takeSeal() {
	if !r.sealing || r.sealSent || r.sealed != nil {
		return
	}
	r.sealSent = true
	s := seal{alias: r.alias, totals: r.totals()}
	r.link.say(s.append(nil))
}

// opened takes the answer to the open frame. The error is a daemon that
// answers nonsense.
func (r *Recording) opened(l *link, o *opened) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link != l || r.over {
		l.say(appendLeave(nil, o.alias))
		return nil
	}
	if r.live {
		return &FrameError{Frame: frameName(typeOpened), What: fmt.Sprintf("session %s is open already", r.id)}
	}
	if r.continuing {
		r.beginContinued(o)
	}
	a := answer{link: l, opened: *o, compares: l.ok.version >= versionList}
	switch {
	case o.received > r.mayHave:
		r.refuseOther(&a)
	case r.unproven && r.spooling():
		r.proving = &a
		r.client.spoolSoon(r)
	default:
		r.follow(&a)
	}
	return nil
}

// answer is a daemon's answer to an open frame.
type answer struct {
	opened
	link *link
	// compares: the daemon confirms a chunk that comes again.
	compares bool
}

// refuseOther ends delivery to a daemon that has what this recording never
// sent: another process has the same key, or an older copy of the spool was
// resumed, or the spool lost its end with its machine.
func (r *Recording) refuseOther(a *answer) {
	a.link.say(appendLeave(nil, a.alias))
	r.refuse(&Refusal{Code: CodeConflict, Tick: r.mayHaveTick, HasTick: true, Text: fmt.Sprintf(
		"the daemon has chunk %d, of this recording it can have %d: another process recorded on, or this spool is an older copy; Continue goes on with the key",
		a.received, r.mayHave)})
}

// proved goes on once the spool is known to be what the daemon has: the last
// chunk that both have is sent again, so that the daemon compares it.
func (r *Recording) proved(a *answer) {
	r.unproven = false
	if r.link != a.link {
		return
	}
	if a.compares && !a.ending && a.received >= r.q.first {
		a.received--
		a.durable, a.durableTick = min(a.durable, a.received), r.firstTick
	}
	r.follow(a)
}

// follow goes on where the daemon is.
func (r *Recording) follow(a *answer) {
	switch {
	case !r.q.resume(a.received):
		r.rewind(a)
	case a.ending:
		r.followEnding(a)
	default:
		r.goLive(a)
	}
}

// goLive sends on from where the daemon is.
func (r *Recording) goLive(a *answer) {
	r.live = true
	if !r.stalled {
		r.trouble = nil
	}
	r.claimed = r.claimed || a.safe || !a.compares
	r.q.window = int64(min(a.window, 1<<62))
	r.settle(a.durable, a.durableTick)
	r.client.ready(r)
	r.announce()
}

// followEnding waits for the end of a session that was asked to be sealed on
// an earlier connection, perhaps by an earlier process. What was recorded
// since then it does not take.
func (r *Recording) followEnding(a *answer) {
	if a.received+1 < r.q.next() || r.b.Ticks() > 0 || r.b.OpenSteps() > 0 {
		r.end(&Refusal{Code: CodeEnded, Tick: a.totals.NextTick, HasTick: true, Text: "the session is sealed, without what was recorded since"}, false)
		return
	}
	r.sealing, r.sealSent, r.halted = true, true, true
	r.goLive(a)
}

// beginContinued starts the stream of a producer that goes on without its
// spool: behind the chunks and ticks that the daemon has.
func (r *Recording) beginContinued(o *opened) {
	r.q.first = o.received + 1
	r.mayHave, r.mayHaveTick = o.received, max(r.continueAt, o.totals.NextTick)
	r.countFrom = o.totals.NextTick
	r.counted = o.totals
	r.counted.NextTick = 0
}

// settledBehind tells whether the daemon has on disk what Continue goes on
// behind: the chunks of earlier processes, and the gap. Until then a daemon
// that was restarted may have less, and is asked again.
func (r *Recording) settledBehind() bool {
	return r.live && r.durableChunk+1 >= r.q.first && r.durable >= max(r.continueAt, r.countFrom)
}

// rewind handles a daemon that has less than it confirmed: it has lost that,
// and gets it again from the spool.
func (r *Recording) rewind(a *answer) {
	if r.spool == nil {
		a.link.say(appendLeave(nil, a.alias))
		r.end(fmt.Errorf("session %s: %w: it has chunk %d of %d", r.id, ErrLost, a.received, r.q.first-1), false)
		return
	}
	go r.restore(*a)
}

// restore reads the chunks that the daemon has lost back from the spool.
func (r *Recording) restore(a answer) {
	h, err := r.spool.scan(0)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link != a.link || r.over {
		return
	}
	if err == nil && (h.first > a.received+1 || h.first+uint64(len(h.chunks)) < r.q.first) {
		err = errors.New("it does not hold them either")
	}
	if err != nil {
		a.link.say(appendLeave(nil, a.alias))
		r.end(fmt.Errorf("session %s: %w; reading back the spool: %w", r.id, ErrLost, err), false)
		return
	}
	q := queue{first: h.first, window: r.q.window}
	for _, c := range h.chunks[:r.q.first-h.first] {
		r.client.memory.Add(chunkCost)
		q.push(c)
	}
	for _, c := range r.q.chunks {
		q.push(c)
	}
	r.q = q
	r.durable = min(r.durable, a.durableTick)
	r.q.resume(a.received)
	r.client.tell(r.id, fmt.Errorf("%w: it has chunk %d of %d; the spool sends them again", ErrLost, a.received, q.next()-1))
	r.goLive(&a)
}

// acked takes an ack.
func (r *Recording) acked(l *link, a *ack) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link != l || r.over {
		return nil
	}
	r.claimed = true // also while the spool is told where the daemon stands: it does not come again
	r.flowing()
	if !r.live {
		return nil
	}
	before := r.q.first
	if !r.settle(a.durable, a.durableTick) {
		return &FrameError{Frame: frameName(typeAck), What: fmt.Sprintf("session %s: chunk %d was never sent", r.id, a.durable)}
	}
	if r.q.first > before {
		r.tries = 0
	}
	if r.q.unsent() != nil || !r.keys.empty() {
		r.client.ready(r)
	}
	r.announce()
	return nil
}

// settle forgets what is durable; false where it was never sent.
func (r *Recording) settle(durable uint64, tick format.Tick) bool {
	r.durable, r.durableChunk = max(r.durable, tick), max(r.durableChunk, durable)
	var held, kept int64
	ok := r.q.settle(durable, func(c *chunk) {
		kept += chunkCost
		if c.data != nil {
			held += int64(c.size)
		}
	})
	r.memory -= held
	r.client.memory.Add(-held - kept)
	return ok
}

// windowed takes a new window.
func (r *Recording) windowed(l *link, bytes uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link == l && r.live {
		r.q.window = int64(min(bytes, 1<<62))
		r.client.ready(r)
	}
}

// stalledBy takes the daemon's word that what it has does not become durable:
// nothing more is sent until it acknowledges something.
func (r *Recording) stalledBy(l *link, why *Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link != l || r.over {
		return
	}
	r.stalled, r.trouble = true, why
	r.client.tell(r.id, why)
	r.announce()
}

// flowing ends a stall.
func (r *Recording) flowing() {
	if !r.stalled {
		return
	}
	r.stalled, r.trouble = false, nil
	if r.live {
		r.client.ready(r)
	}
}

// refused takes a refusal of the session.
func (r *Recording) refused(l *link, refusal *Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link == l && !r.over {
		r.refuse(refusal)
	}
}

// mostTries is enough for the longest pause between two tries.
const mostTries = 1000

// refuse ends delivery, for a while or for good. A recording with a spool
// goes on into it.
func (r *Recording) refuse(refusal *Refusal) {
	r.link, r.live = nil, false
	if r.continuing && !refusal.Temporary() || !refusal.Temporary() && !r.spooling() {
		r.end(refusal, false)
		return
	}
	r.trouble = refusal
	r.client.tell(r.id, refusal)
	if refusal.Temporary() {
		r.tries = min(r.tries+1, mostTries)
		r.client.retry(r, int(r.tries))
	}
	r.announce()
}

// sealedAs takes the daemon's word that the session is sealed. One that was
// not asked for ends the recording, unless nothing new was recorded: then an
// earlier process has sealed it.
func (r *Recording) sealedAs(l *link, s *sealed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link != l || r.over {
		return
	}
	if !r.sealing && !r.resumed {
		r.end(refuse(CodeEnded, "the session is sealed, without what was not delivered"), false)
		return
	}
	r.sealed = s
	r.durable = max(r.durable, r.totals().NextTick)
	r.end(ErrSealed, true)
}

// end ends the recording with its reason; the lock is held. Where all is
// delivered the spool is removed.
func (r *Recording) end(reason error, delivered bool) {
	if r.over {
		return
	}
	if r.live && r.sealed == nil {
		r.link.say(appendLeave(nil, r.alias))
	}
	r.over, r.halted, r.live, r.link = true, true, false, nil
	r.trouble = reason
	r.letGo()
	r.disarm()
	r.client.forget(r)
	r.announce()
	if reason != ErrSealed && reason != ErrClosed {
		r.client.tell(r.id, reason)
	}
	if r.spool != nil {
		r.client.retire(r.spool, delivered)
	}
}

// letGo gives back the memory of all that waits.
func (r *Recording) letGo() {
	r.hold(-r.memory)
	r.client.memory.Add(-chunkCost * int64(len(r.q.chunks)))
	for _, k := range r.keys.waiting {
		r.client.memory.Add(-int64(len(k.state)))
	}
	r.keys.waiting, r.q.chunks, r.tail = nil, nil, nil
}

// spooling tells whether chunks go to the spool first.
func (r *Recording) spooling() bool { return r.spool != nil && !r.spool.broken }

// sinceWall is the time since a wall clock start, for a recording that goes
// on in another process.
func sinceWall(startedAt int64) time.Duration {
	if startedAt == 0 {
		return 0
	}
	return max(time.Since(time.UnixMicro(startedAt)), 0)
}
