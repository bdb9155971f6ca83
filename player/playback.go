package player

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"reprise/format"
)

// PlaybackOptions says how a Playback seeks. The zero value is good.
type PlaybackOptions struct {
	// Budget bounds the memory of the keyframes that are made on the way,
	// in bytes; 0 means 512 MiB, less than 0 makes none.
	Budget int64
	// Spacing is how many ticks lie between two of them at first; 0 means
	// 64. It doubles whenever the budget is reached.
	Spacing int
	// Clock measures what keyframes cost; nil means SystemClock.
	Clock Clock
	// Trace and OnOutcome are as in EngineOptions; a tick that is run again
	// is told again.
	Trace     func(tick format.Tick, hash []byte) error
	OnOutcome func(Outcome)
}

const (
	defaultBudget  = 512 << 20
	defaultSpacing = 64
	// saveShare bounds the time that saving may take: a share of the time
	// that the simulation itself takes.
	saveShare = 8
)

// Playback is a replay that can be moved to any tick, forward and back. It
// starts each move from the nearest keyframe: a recorded one, or one that it
// made when it came by. Every recorded hash on the way is compared. A game
// that cannot save its state, or looks ahead, is replayed from the last
// recorded keyframe or from the start at each move back; Rewinds tells.
//
// Its methods must not be called at the same time. Position, Report and the
// like are valid after an error, too.
type Playback struct {
	file   *format.File
	sim    Simulation
	keeper Keeper // nil where the game cannot save
	start  Start
	clock  Clock
	states stateStore

	// recorded are the file's keyframes in tick order, and behind them those
	// of a side file.
	recorded []recordedFrame
	packer   sidePacker
	// since is the keyframe that the present state came from; -1 where it came
	// from elsewhere.
	since int
	// next is the tick that is played next; placed is set while the
	// simulation is in the state before it.
	next   format.Tick
	placed bool
	within int // the steps of tick next that were applied

	source *FileSource
	buffer []byte
	spent  struct{ run, save time.Duration }
	report Report
	bad    []*KeyframeError

	trace     func(tick format.Tick, hash []byte) error
	onOutcome func(Outcome)
}

type recordedFrame struct {
	index  int // in the file
	side   *sideFrame
	next   format.Tick
	proven bool // its state has a hash that was recorded
	bad    bool
	// doubt is the desync that came first behind it.
	doubt *DesyncError
}

// KeyframeError is a recorded keyframe that is not used: it cannot be read or
// loaded, or its state is not the one that the recorded hashes belong to.
type KeyframeError struct {
	// NextTick is the tick that the keyframe stands before.
	NextTick format.Tick
	// Side is set for a keyframe of a side file.
	Side bool
	Err  error
}

func (e *KeyframeError) Error() string {
	if e.Side {
		return fmt.Sprintf("the side file's keyframe before tick %d is not used: %v", e.NextTick, e.Err)
	}
	return fmt.Sprintf("the keyframe before tick %d is not used: %v", e.NextTick, e.Err)
}

func (e *KeyframeError) Unwrap() error { return e.Err }

// ErrNoSuchTick is returned for a move to a tick that the replay does not
// have.
var ErrNoSuchTick = errors.New("the replay has no such tick")

// NewPlayback puts file under sim, which nothing else may use meanwhile. It
// stands before the first tick; nothing is simulated before the first move.
func NewPlayback(file *format.File, sim Simulation, o PlaybackOptions) *Playback {
	p := &Playback{file: file, sim: sim, start: StartOf(file), clock: clockOr(o.Clock),
		source: NewFileSource(file), trace: o.Trace, onOutcome: o.OnOutcome, since: -1}
	p.next = p.start.NextTick
	p.states.budget, p.states.spacing = o.Budget, format.Tick(o.Spacing)
	if o.Budget == 0 {
		p.states.budget = defaultBudget
	}
	if o.Spacing <= 0 {
		p.states.spacing = defaultSpacing
	}
	if keeper, ok := sim.(Keeper); ok && !LooksAhead(sim) && o.Budget >= 0 {
		p.keeper = keeper
	}
	for i, k := range file.Summary().Keyframes {
		p.recorded = append(p.recorded, recordedFrame{index: i, next: k.NextTick})
	}
	return p
}

// Position is the tick that Step plays next; behind the last one it is the
// last tick plus one.
func (p *Playback) Position() format.Tick { return p.next }

// Rewinds reports whether the game's state can be kept, so that a move back
// need not replay from a recorded keyframe or from the start.
func (p *Playback) Rewinds() bool { return p.keeper != nil }

// Report tells what was run; a tick that is simulated again counts again, and
// so does its hash. Desync is the one of the lowest tick.
func (p *Playback) Report() Report { return p.report }

// BadKeyframes are the keyframes, recorded or of a side file, that were found
// to be unusable.
func (p *Playback) BadKeyframes() []*KeyframeError { return p.bad }

// Kept is the number of keyframes in memory and their bytes.
func (p *Playback) Kept() (keyframes int, bytes int64) { return len(p.states.kept), p.states.used }

// Dump names the fields of the present state, or gives ErrUnable.
func (p *Playback) Dump() ([]Field, error) {
	inspector, ok := p.sim.(Inspector)
	if !ok {
		return nil, ErrUnable
	}
	if p.within == 0 {
		if err := p.place(context.Background()); err != nil {
			return nil, err
		}
	}
	return inspector.Dump()
}

// Save appends the present state to dst, or gives ErrUnable.
func (p *Playback) Save(dst []byte) ([]byte, error) {
	if p.keeper == nil {
		return dst, ErrUnable
	}
	if err := p.place(context.Background()); err != nil {
		return dst, err
	}
	return p.keeper.Save(dst)
}

// place brings the simulation to the position, where nothing has yet.
func (p *Playback) place(ctx context.Context) error {
	if p.placed {
		return nil
	}
	return p.Seek(ctx, p.next)
}

// Seek moves to the state before tick next, which may be one behind the last.
// The error is or wraps ErrNoSuchTick; a GapError where the tick lies in a gap
// or no keyframe restarts the game behind one; a StepFailure; a
// SimulationError; ErrStart; the error of the context or of the file. A desync
// on the way is no error: see Report.
func (p *Playback) Seek(ctx context.Context, next format.Tick) error {
	first, err := p.island(next)
	if err != nil {
		return err
	}
	for {
		from := p.nearest(first, next)
		if from.kind == fromNothing {
			return p.unreachable(first, next)
		}
		if err := p.travel(ctx, from, next); err != errBadFrame {
			return err
		}
	}
}

// Play plays every tick from the position on, up to the state before tick
// next: it never jumps to a keyframe, except over a gap that one follows. The
// errors are those of Seek.
func (p *Playback) Play(ctx context.Context, next format.Tick) error {
	for p.next < next {
		here := stretchAt(p.file.Summary(), p.next)
		to := here.behind
		if !here.missing {
			to = min(to, next)
		}
		if err := p.place(ctx); err != nil {
			return err
		}
		if here.missing || LooksAhead(p.sim) {
			if err := p.Seek(ctx, to); err != nil {
				return err
			}
			continue
		}
		if err := p.travel(ctx, origin{kind: fromHere}, to); err != nil && err != errBadFrame {
			return err
		}
	}
	return nil
}

// Step plays one tick, and gives its number; io.EOF behind the last one. A gap
// before it is passed where a keyframe restarts the game behind it.
func (p *Playback) Step(ctx context.Context) (format.Tick, error) {
	tick := p.next
	if here := stretchAt(p.file.Summary(), tick); here.missing {
		tick = here.behind
	}
	if tick >= p.file.Summary().NextTick {
		return tick, io.EOF
	}
	return tick, p.Play(ctx, tick+1)
}

// Back moves one tick back, or to the beginning of the tick that SeekStep
// moved into; it does nothing before the first one.
func (p *Playback) Back(ctx context.Context) error {
	to := p.next
	if p.within > 0 {
		return p.Seek(ctx, to)
	}
	if to <= p.start.Meta.FirstTick {
		return nil
	}
	to--
	if before := stretchAt(p.file.Summary(), to); before.missing {
		to = before.first
	}
	return p.Seek(ctx, to)
}

// island finds the first tick of the run of ticks without a gap that leads to
// the state before next.
func (p *Playback) island(next format.Tick) (format.Tick, error) {
	s := p.file.Summary()
	if next < s.Meta.FirstTick || next > s.NextTick {
		return 0, fmt.Errorf("%w: %d (it has the ticks %d to %d)", ErrNoSuchTick, next, s.Meta.FirstTick, s.NextTick-1)
	}
	first := s.Meta.FirstTick
	for i, g := range s.Gaps {
		switch {
		case g.Last < next:
			first = g.Last + 1
		case g.First < next:
			return 0, &GapError{Gap: s.Gaps[i], Declared: true}
		}
	}
	return first, nil
}

// unreachable is the error where nothing leads to the state before next.
func (p *Playback) unreachable(first, next format.Tick) error {
	for _, g := range p.file.Summary().Gaps {
		if g.Last+1 == first {
			return &GapError{Gap: g, Declared: true}
		}
	}
	return fmt.Errorf("%w: nothing leads to the state before tick %d", ErrStart, next)
}

// origin is where a move starts from.
type origin struct {
	kind originKind
	at   int // the index of the state or frame
	next format.Tick
}

type originKind uint8

const (
	fromNothing originKind = 0
	fromHere    originKind = 1
	fromStart   originKind = 2
	fromKept    originKind = 3
	fromFrame   originKind = 4
)

// nearest finds the last known state from tick first on that is not behind
// next. Of two at the same tick, the earlier in this list is taken: where the
// playback stands, a keyframe in memory, a recorded one, the game's own start.
func (p *Playback) nearest(first, next format.Tick) origin {
	best := origin{}
	offer := func(o origin) {
		if o.next >= first && o.next <= next && (best.kind == fromNothing || o.next > best.next) {
			best = o
		}
	}
	if p.placed && (p.next == next || !LooksAhead(p.sim)) {
		offer(origin{kind: fromHere, next: p.next})
	}
	if i := p.states.before(next); i >= 0 {
		offer(origin{kind: fromKept, at: i, next: p.states.kept[i].next})
	}
	for i, f := range p.recorded {
		if !f.bad && f.doubt == nil {
			offer(origin{kind: fromFrame, at: i, next: f.next})
		}
	}
	if first == p.start.Meta.FirstTick {
		offer(origin{kind: fromStart, next: first})
	}
	return best
}

// errBadFrame makes a move start anew, from an earlier state.
var errBadFrame = errors.New("a recorded keyframe is not used")

// travel plays from an origin to the state before next. It is errBadFrame
// where a keyframe that the state came from turned out to be bad; the position
// is then to be reached again.
func (p *Playback) travel(ctx context.Context, from origin, next format.Tick) error {
	p.within = 0
	if from.kind != fromHere {
		p.placed = false
		if err := p.depart(from); err != nil {
			return err
		}
		p.next, p.since = from.next, -1
		if from.kind == fromFrame {
			p.since = from.at
		}
	}
	for p.next < next {
		p.placed = false
		if err := p.leg(ctx, next, p.unproven()); err != nil {
			return err
		}
	}
	p.placed = true
	return nil
}

// unproven gives the keyframe that the present state came from, while no
// recorded hash has shown that it is right.
func (p *Playback) unproven() *recordedFrame {
	if p.since < 0 || p.recorded[p.since].proven {
		return nil
	}
	return &p.recorded[p.since]
}

// depart puts the simulation into the state of an origin.
func (p *Playback) depart(from origin) error {
	start := p.start
	start.NextTick = from.next
	switch from.kind {
	case fromKept:
		p.buffer = p.states.state(from.at, p.buffer[:0])
		if p.keeper.Load(p.buffer, from.next) == nil {
			return nil
		}
		start.State = p.buffer
	case fromFrame:
		return p.load(&p.recorded[from.at], start)
	}
	return p.sim.Reset(start)
}

// load starts the simulation from a recorded keyframe and compares its hash
// with the one recorded for the tick before.
func (p *Playback) load(frame *recordedFrame, start Start) error {
	state, err := p.stateOf(frame)
	if err == nil {
		start.State = state
		err = p.sim.Reset(start)
	}
	if err == nil && !frame.proven {
		err = p.prove(frame)
	}
	if err == nil {
		return nil
	}
	p.refuse(frame, err)
	return errBadFrame
}

// stateOf reads a keyframe of the file or of the side file.
func (p *Playback) stateOf(frame *recordedFrame) ([]byte, error) {
	if frame.side != nil {
		state, err := p.packer.unpack(p.buffer[:0], frame.side)
		p.buffer = state
		return state, err
	}
	k, err := p.file.Keyframe(frame.index)
	if err != nil {
		return nil, err
	}
	return k.State, nil
}

// refuse notes that a keyframe is not used any more.
func (p *Playback) refuse(frame *recordedFrame, err error) {
	frame.bad = true
	p.bad = append(p.bad, &KeyframeError{NextTick: frame.next, Side: frame.side != nil, Err: err})
}

// prove compares the hash of the state that was just loaded, where the game
// gives it and the tick before has one.
func (p *Playback) prove(frame *recordedFrame) error {
	hasher, ok := p.sim.(Hasher)
	if !ok || frame.next == p.start.Meta.FirstTick {
		return nil
	}
	var tick format.TickRecord
	r := p.file.Reader()
	r.Seek(frame.next - 1)
	if err := r.Next(&tick); err != nil || tick.Tick != frame.next-1 || tick.Hash == nil {
		return nil // nothing to compare with: the ticks behind it will tell
	}
	hash, err := hasher.StateHash(nil)
	if err != nil {
		return err
	}
	if !bytes.Equal(hash, tick.Hash) {
		return fmt.Errorf("its state has the hash %x, recorded after tick %d is %x", hash, tick.Tick, tick.Hash)
	}
	frame.proven = true
	return nil
}

// leg plays on, at most to the next tick whose state is worth keeping.
func (p *Playback) leg(ctx context.Context, next format.Tick, frame *recordedFrame) error {
	end := next
	if p.keeper != nil {
		end = min(end, p.next-p.next%p.states.spacing+p.states.spacing)
	}
	last := end - 1
	began := p.clock.Now()
	e := NewEngine(p.sim, p.at(p.next), EngineOptions{
		Start: Start{Meta: p.start.Meta, NextTick: p.next}, Underway: true, KeepGoing: true, Last: &last,
		Clock: p.clock, Trace: p.trace, OnOutcome: p.onOutcome,
	})
	err := e.run(ctx)
	p.spent.run += p.clock.Now().Sub(began)
	if frame != nil && !frame.proven && e.report.Desync != nil && !e.report.Desync.HasLastGood {
		frame.doubt = e.report.Desync
		return errBadFrame
	}
	p.add(&e.report)
	if err != nil {
		return err
	}
	if frame != nil && e.report.HashesCompared > 0 {
		frame.proven = true
	}
	p.next = end
	if p.unproven() != nil && p.file.Summary().Hashes > 0 {
		return nil // a state that may be wrong is not worth keeping
	}
	return p.keep()
}

// at gives the source, before tick next.
func (p *Playback) at(next format.Tick) *FileSource {
	if p.source.due != next || p.source.held {
		p.source.Seek(next)
	}
	return p.source
}

// keep saves the present state where that is worth its time.
func (p *Playback) keep() error {
	if p.keeper == nil || p.next%p.states.spacing != 0 || p.states.has(p.next) || p.spent.save*saveShare > p.spent.run {
		return nil
	}
	began := p.clock.Now()
	state, err := p.keeper.Save(p.buffer[:0])
	if errors.Is(err, ErrUnable) {
		p.keeper = nil
		return nil
	}
	if err != nil {
		return err
	}
	p.buffer = state
	p.states.put(p.next, state)
	p.spent.save += p.clock.Now().Sub(began)
	return nil
}

// add counts a leg, and settles doubts about keyframes: one whose first hash
// behind it differed is bad where the same tick is right when it is played
// from further back.
func (p *Playback) add(r *Report) {
	for i := range p.recorded {
		f := &p.recorded[i]
		if f.doubt == nil || r.TicksRun == 0 || f.doubt.Tick < r.FirstTick || f.doubt.Tick > r.LastTick {
			continue
		}
		if !r.desyncedLike(f.doubt) {
			p.refuse(f, f.doubt)
		}
		f.doubt = nil
	}
	p.report.Add(r)
}

// SeekStep moves into tick, to the state before its step number step, counted
// from 0; with the number of its steps it stands before the end of the tick.
// It is ErrUnable where the game does not run in this process, or looks ahead.
func (p *Playback) SeekStep(ctx context.Context, tick format.Tick, step int) error {
	local, ok := p.sim.(*Local)
	if !ok {
		return fmt.Errorf("%w: single steps of a tick need a game in this process", ErrUnable)
	}
	if err := p.Seek(ctx, tick); err != nil || step == 0 {
		return err
	}
	item, err := p.at(tick).Next()
	if err == nil && (item.Tick == nil || item.Tick.Tick != tick || step > item.Tick.Steps) {
		return fmt.Errorf("%w: step %d of tick %d", ErrNoSuchTick, step, tick)
	}
	if err != nil {
		return err
	}
	p.placed, p.within = false, step
	return local.Apply(item.Tick, step)
}

// Within is the number of steps of the present tick that SeekStep applied.
func (p *Playback) Within() int { return p.within }
