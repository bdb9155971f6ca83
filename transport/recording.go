package transport

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"reprise/format"
)

// Spec says what a recording is of.
type Spec struct {
	// Meta is the session's metadata; Meta.Session is its id, which must
	// never have been used. Width 0 takes 8 bits where the code book proves
	// them enough, else 16. StartedAt 0 takes the present time, and Env nil
	// the facts of this machine (see Machine); an Env that is empty but not
	// nil records none. Client.Continue, which compares all of it, needs
	// both as they were; so set them, where it may run on another machine.
	Meta format.Metadata
	// Book names the command codes; it may be nil.
	Book *format.CodeBook
	// Players are the joins that are known at the start.
	Players []format.PlayerEvent
	// Times lets EndTick record the time of every tick, by the monotonic
	// clock.
	Times bool
	// Key is the producer's key; zero takes a random one. A game server that
	// wants to go on without its spool keeps the key itself; see
	// Client.Continue.
	Key [KeySize]byte
}

const (
	// chunkTicks ends a chunk of few bytes.
	chunkTicks = 4096
	// chunkCost is what keeping a chunk costs beside its bytes.
	chunkCost = 64
	// playerRoom is kept for joins and leaves where all else is refused.
	playerRoom = 64 << 10
)

// Recording records one session. Its methods may be called by any goroutine;
// those that record keep the order of their calls. Apart from Seal, Close,
// Wait and Room none waits for the network or a disk; Keyframe, with a spool,
// writes a file.
type Recording struct {
	// What every tick, chunk or ack touches stands together: of many thousand
	// sessions none is in the processor's cache when its tick ends.
	client *Client
	mu     sync.Mutex
	times  bool
	hashes bool // the session has them
	// halted is set where Step and EndTick must not touch the builder: while
	// ticks are left out, and from Seal, Close or a failure on.
	halted  bool
	armed   bool // a chunk is open
	full    bool // the bound is reached: the next tick begins a gap
	live    bool // opened on link
	over    bool
	stalled bool // the daemon's disk does not take what it has
	claimed bool // the daemon has the session itself on disk
	resumed bool // nothing was recorded since Resume
	sealing bool
	closing bool
	beside  bool   // some of notes wait
	tries   uint16 // temporary refusals since a chunk became durable
	link    *link
	since   time.Duration // when the open chunk began, by the client's clock
	pace    pace

	// counted are the final counts so far, without the next tick; ticks
	// before countFrom are stored already and come again.
	counted   format.Totals
	countFrom format.Tick
	lastTime  int64
	place     uint64 // of the open chunk in the client's
	tail      *tail  // of what is not in the spool file; nil for none

	hashed  hashed
	memory  int64       // bytes of chunks that are held in memory
	durable format.Tick // the first tick that is not durable
	// durableChunk is the last chunk that the daemon has called durable.
	durableChunk uint64
	// mayHave is the last chunk that the daemon may have of this recording,
	// and its tick the one that is due behind it.
	mayHave     uint64
	mayHaveTick format.Tick

	q       queue
	alias   uint64
	changed chan struct{}
	spool   *spool
	keys    keyframes
	b       format.BatchBuilder
	notes   notes

	// What follows is guarded by mu, as is all above from halted on but times,
	// apart from what does not change once the recording is made.
	id  string
	key [KeySize]byte
	// opening is sent with every open frame, unless the session is continued:
	// then only the daemon has the first one.
	opening   []byte
	continued bool
	width     format.Width
	hashBytes int
	firstTick format.Tick
	elapsed   time.Duration // recorded time when the client's clock began

	turn   *format.BatchBuilder // tries a turn's steps; nil before the first
	missed missed               // active only while halted

	toSpool []*chunk // to be written to the spool, in order
	writing bool     // the spooler writes what it took from toSpool
	// recovering: the spool is written by Resume, not by the spooler.
	recovering bool

	// unproven is set from Resume on until the daemon was found to go on
	// where the spool does, and was compared with it; proving is its answer
	// while the spool is told of that.
	unproven bool
	proving  *answer
	epoch    uint64
	// continuing is set until Continue returns.
	continuing bool
	continueAt format.Tick

	sealSent bool
	sealed   *sealed
	trouble  error // why it is not being delivered, or ended

	queued bool // in the client's sendable, and guarded by its lock
}

// ID is the session's id.
func (r *Recording) ID() string { return r.id }

// Key is the producer's key; see Client.Continue.
func (r *Recording) Key() [KeySize]byte { return r.key }

// NextTick is the open tick: the one that EndTick closes next.
func (r *Recording) NextTick() format.Tick {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nextTick()
}

func (r *Recording) nextTick() format.Tick {
	if r.halted && r.missed.active {
		return r.missed.next
	}
	return r.b.NextTick()
}

// Step adds a step to the open tick. An error that matches format.ErrStep or
// format.ErrTickSize leaves the tick as it was.
func (r *Recording) Step(code uint16, params ...format.Value) error {
	r.mu.Lock()
	if r.halted {
		err := r.haltError()
		r.mu.Unlock()
		return err
	}
	err := r.b.Step(code, params...)
	r.mu.Unlock()
	return err
}

// haltError is why nothing is recorded; nil while ticks are left out, for
// EndTick tells that.
func (r *Recording) haltError() error {
	switch {
	case r.over && r.trouble != nil:
		return r.trouble
	case r.over, r.sealing, r.closing:
		return ErrSealed
	}
	return nil
}

// EndTick closes the open tick. Call it before the game simulates the tick:
// with a spool, its steps then outlive the game's process from here on, so
// that the input that crashes a game is recorded. ErrFull means that the
// tick is left out; see Stats.
func (r *Recording) EndTick() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.endTickNow()
}

func (r *Recording) endTickNow() error {
	now := r.client.clock()
	if !r.times {
		return r.endTick(now, 0, false)
	}
	return r.endTick(now, (r.elapsed + now).Microseconds(), true)
}

// EndTickAt closes the open tick with its time since the session's start. A
// time before that of an earlier tick becomes the same as that.
func (r *Recording) EndTickAt(at time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.endTick(r.client.clock(), at.Microseconds(), true)
}

// endTick closes the open tick, now by the client's clock and with its time in
// microseconds where it is timed.
func (r *Recording) endTick(now time.Duration, at int64, timed bool) error {
	if r.halted {
		return r.missTick()
	}
	if r.b.Full() || r.b.Rows() >= r.client.cfg.ChunkBytes || r.b.Ticks() >= chunkTicks {
		r.cut()
	}
	if timed {
		r.lastTime = max(at, r.lastTime)
	}
	kept := r.keepOpen(timed)
	tick := r.b.NextTick()
	r.count(tick, r.b.OpenSteps())
	if timed {
		r.b.EndTickAt(r.lastTime)
	} else {
		r.b.EndTick()
	}
	if r.hashes {
		r.hashed.open(tick)
	}
	if !kept {
		r.spill()
	}
	if r.full {
		r.full = r.crowded()
		if r.full {
			r.beginGap()
		}
	}
	r.arm(now)
	r.pace.tick(now, r.client.cfg.ChunkLinger)
	if !r.hashes {
		r.leave()
	}
	return nil
}

// count adds a tick to the final counts.
func (r *Recording) count(tick format.Tick, steps int) {
	if tick >= r.countFrom {
		r.counted.Ticks++
		r.counted.Steps += uint64(steps)
	}
}

// Input is one step of a turn.
type Input struct {
	Code   uint16
	Params []format.Value
}

// RecordTurn records one turn of a game without ticks: an active step and
// the passive steps that answer what it asks. The turn is one tick, which
// RecordTurn closes and returns. On an error that matches format.ErrStep or
// format.ErrTickSize nothing is recorded.
func (r *Recording) RecordTurn(active Input, passive ...Input) (format.Tick, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tick := r.nextTick()
	if r.halted {
		return tick, r.missTick()
	}
	if n := r.b.OpenSteps(); n > 0 {
		return tick, fmt.Errorf("%w: a turn inside tick %d, which has %d steps", format.ErrOrder, tick, n)
	}
	if err := r.tryTurn(active, passive); err != nil {
		return tick, err
	}
	r.b.Step(active.Code, active.Params...)
	for _, p := range passive {
		r.b.Step(p.Code, p.Params...)
	}
	return tick, r.endTickNow()
}

// tryTurn finds out whether every step of a turn can be stored.
func (r *Recording) tryTurn(active Input, passive []Input) error {
	if r.turn == nil {
		r.turn = format.NewBatchBuilder(r.width, 0, 0)
	}
	err := r.turn.Step(active.Code, active.Params...)
	for _, p := range passive {
		if err == nil {
			err = r.turn.Step(p.Code, p.Params...)
		}
	}
	r.turn.EndTick()
	r.turn.Cut()
	return err
}

// Hash records the state hash after a closed tick. It may come late, up to
// format.MaxHashLag ticks, and out of order; a game that rolls back gives
// the hashes of confirmed ticks only. An error matches ErrHash.
func (r *Recording) Hash(tick format.Tick, h []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.halted && !r.missed.active {
		return r.haltError()
	}
	return r.enterHash(tick, h)
}

func (r *Recording) enterHash(tick format.Tick, h []byte) error {
	if err := r.checkHash(tick, h); err != nil {
		return err
	}
	if tick < r.countFrom {
		return nil // see Continue
	}
	kept := r.keep(recordHash, tick, h)
	late := !r.b.Hash(tick, h)
	if late {
		r.notes.hashes = append(r.notes.hashes, format.TickHash{Tick: tick, Hash: slices.Clone(h)})
		r.beside = true
		r.arm(r.client.clock())
	}
	r.hashed.set(tick)
	r.counted.Hashes++
	if !kept {
		r.spill()
	}
	if !late && tick+1 == r.b.NextTick() {
		r.leave()
	}
	return nil
}

func (r *Recording) checkHash(tick format.Tick, h []byte) error {
	next := r.nextTick()
	switch {
	case r.hashBytes == 0:
		return fmt.Errorf("%w: the session declares no hashes: set Metadata.HashBytes", ErrHash)
	case len(h) != r.hashBytes:
		return fmt.Errorf("%w: it has %d bytes, the session's have %d", ErrHash, len(h), r.hashBytes)
	case tick >= next:
		return fmt.Errorf("%w: tick %d is not closed, the open tick is %d", ErrHash, tick, next)
	case tick < r.firstTick || r.missed.has(tick):
		return fmt.Errorf("%w: tick %d is not recorded", ErrHash, tick)
	case next-tick > format.MaxHashLag:
		return fmt.Errorf("%w: tick %d is %d ticks back, the most is %d", ErrHash, tick, next-tick, format.MaxHashLag)
	case r.hashed.has(tick):
		return fmt.Errorf("%w: tick %d has one already", ErrHash, tick)
	}
	return nil
}

// Gap declares the ticks from the open one to last as missing, for example
// because the game itself lost them. The open tick must have no steps.
func (r *Recording) Gap(last format.Tick, reason string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.nextTick()
	switch n := r.b.OpenSteps(); {
	case r.halted && !r.missed.active:
		return r.haltError()
	case n > 0:
		return fmt.Errorf("%w: a gap inside tick %d, which has %d steps", format.ErrOrder, first, n)
	case last < first || last >= format.MaxTick:
		return fmt.Errorf("%w: a gap from %d to %d", format.ErrOrder, first, last)
	case len(reason) > format.MaxText:
		return fmt.Errorf("%w: a reason of %d bytes", format.ErrLimit, len(reason))
	}
	if r.missed.active {
		r.missed.ticks += uint64(last + 1 - r.missed.next)
		r.missed.next = last + 1
		return nil
	}
	r.cut()
	if err := r.cutGap(format.Gap{First: first, Last: last, Reason: reason}); err != nil {
		return err
	}
	r.arm(r.client.clock())
	return nil
}

// Flush lets what was recorded go without waiting for the linger. It does not
// wait until it has gone.
func (r *Recording) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.cut()
	}
}

// Durable is the first tick that is not yet safe on the daemon's disk: every
// tick before it is.
func (r *Recording) Durable() format.Tick {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.durable
}

// Err is nil while all goes well. Else it is why the session is not being
// delivered: a *Refusal that is Temporary while the client tries again or
// waits for the daemon's disk, any other error for good.
func (r *Recording) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sealed != nil {
		return nil
	}
	return r.trouble
}

// Wait waits until a tick is durable. It returns ErrMissing for a tick in a
// gap that the client declared, the error that ended the recording, or that
// of ctx.
func (r *Recording) Wait(ctx context.Context, tick format.Tick) error {
	err := r.await(ctx, func() bool { return r.durable > tick })
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missed.has(tick) {
		return fmt.Errorf("%w: %d is in a declared gap", ErrMissing, tick)
	}
	return nil
}

// Room waits until there is room for more: at most half of the bound is not
// yet durable. A producer that has no ticks to keep up with, such as a
// converter, calls it before every tick, and then loses none.
func (r *Recording) Room(ctx context.Context) error {
	half := int64(r.client.cfg.SessionMemory / 2)
	return r.await(ctx, func() bool { return r.q.total <= half && r.memory <= half && !r.client.crowded() })
}

// await waits until done, checked under the lock whenever something changed.
func (r *Recording) await(ctx context.Context, done func() bool) error {
	for {
		r.mu.Lock()
		if done() {
			r.mu.Unlock()
			return nil
		}
		if err := r.stopped(); err != nil {
			r.mu.Unlock()
			return err
		}
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stopped is why nothing will change any more.
func (r *Recording) stopped() error {
	switch {
	case r.trouble != nil && (r.over || !temporary(r.trouble)):
		return r.trouble
	case r.over:
		return ErrClosed
	}
	return nil
}

// announce wakes those that wait for a change.
func (r *Recording) announce() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// totals are the final counts of what was recorded.
func (r *Recording) totals() format.Totals {
	t := r.counted
	t.NextTick = max(r.nextTick(), r.countFrom)
	return t
}

// Seal ends the session: it sends all that was recorded with the final
// counts, and waits until the daemon has compared them and sealed the
// replay. Steps of an open tick are an error. Where ctx ends first, sealing
// goes on; Seal may be called again to wait for it.
func (r *Recording) Seal(ctx context.Context) error {
	r.mu.Lock()
	if err := r.beginSeal(); err != nil {
		r.mu.Unlock()
		return err
	}
	r.mu.Unlock()
	return r.await(ctx, func() bool { return r.sealed != nil })
}

func (r *Recording) beginSeal() error {
	if r.sealed != nil || r.sealing {
		return nil
	}
	if err := r.stopped(); err != nil {
		return err
	}
	if r.closing {
		return ErrSealed
	}
	if n := r.b.OpenSteps(); n > 0 {
		return fmt.Errorf("%w: the end inside tick %d, which has %d steps: call EndTick", format.ErrOrder, r.b.NextTick(), n)
	}
	if err := r.finishCuts(); err != nil {
		return err
	}
	r.sealing, r.halted = true, true
	r.client.ready(r)
	return nil
}

// Sealed gives the digest of the sealed replay and its name at the daemon;
// false before Seal has returned without error.
func (r *Recording) Sealed() (digest format.Digest, name string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sealed == nil {
		return format.Digest{}, "", false
	}
	return r.sealed.digest, r.sealed.name, true
}

// Close ends the recording without sealing the session: it waits until the
// session itself and all closed ticks are durable, and leaves. The daemon keeps the replay as
// unfinished. After Seal it waits for that instead. Where ctx ends first, what is not durable is lost, unless it is
// in the spool, for Client.Resume.
func (r *Recording) Close(ctx context.Context) error {
	r.mu.Lock()
	if !r.halted || r.missed.active {
		if err := r.finishCuts(); err != nil {
			r.mu.Unlock()
			return err
		}
	}
	r.closing, r.halted = true, true
	r.client.ready(r)
	r.mu.Unlock()
	err := r.await(ctx, func() bool { return r.allDurable() && !r.sealing })
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return r.endError()
	}
	r.end(ErrClosed, err == nil)
	return err
}

// endError is what Close returns for a recording that has ended before.
func (r *Recording) endError() error {
	if r.sealed != nil || r.trouble == ErrClosed {
		return nil
	}
	return r.trouble
}

// allDurable tells whether the daemon has confirmed all that was recorded.
func (r *Recording) allDurable() bool {
	return r.claimed && len(r.q.chunks) == 0 && r.keys.empty() && r.b.Ticks() == 0
}

// RecordingStats are a recording's figures.
type RecordingStats struct {
	// Ticks, Steps and Hashes count what was recorded.
	Ticks, Steps, Hashes uint64
	// MissedTicks counts the ticks that were left out, Gaps the gaps that
	// were declared for them or by the game.
	MissedTicks uint64
	Gaps        int
	// Refused counts marks, reports, joins and keyframes that were refused
	// with ErrFull.
	Refused uint64
	// NotDurable is the bytes that the daemon has not confirmed, Memory
	// those of them that are held in memory.
	NotDurable, Memory int64
	// Durable is the first tick that is not durable, Next the open tick.
	Durable, Next format.Tick
}

// Stats gives the present figures.
func (r *Recording) Stats() RecordingStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return RecordingStats{Ticks: r.counted.Ticks, Steps: r.counted.Steps, Hashes: r.counted.Hashes, MissedTicks: r.missed.ticks,
		Gaps: len(r.missed.gaps), Refused: r.notes.refused, NotDurable: r.q.total, Memory: r.memory, Durable: r.durable, Next: r.nextTick()}
}
