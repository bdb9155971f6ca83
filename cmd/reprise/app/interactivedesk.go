package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"time"

	"reprise/format"
	"reprise/player"
)

const (
	// pieceTime is how long a piece of work may take before the keys that
	// were pressed meanwhile are looked at.
	pieceTime = 15 * time.Millisecond
	// mostTicks bounds the ticks that are played without a look at the clock.
	mostTicks = 4096
	// mostSteps bounds the steps of a tick that are written out.
	mostSteps = 1000
)

// desk does the work of the interactive player, piece by piece: at most one
// piece is under way, and what it found is handed over as a value. Only
// interrupt and close may be called meanwhile.
type desk struct {
	ctx      context.Context
	file     *format.File
	playback *player.Playback
	clock    player.Clock
	whole    bool // the game looks ahead, so that a move cannot rest on the way
	inner    bool // single steps of a tick can be made
	// dumper names the fields of a turn-based game; nil where the playback does.
	dumper player.Dumper

	busy   chan struct{} // holds a value during a piece
	closed bool
	// loose is set while the game is in no known state: at first, and after
	// a move that failed.
	loose bool

	// reached is the last tick that was simulated.
	reached atomic.Uint64

	// Of the present piece:
	halt       atomic.Bool
	pieceCtx   context.Context
	cancelWork context.CancelFunc

	reader *format.Reader
	chunk  int // the ticks between two looks at the clock
	// asked is set once the game was asked for its state, forgets where it
	// has none to give.
	asked, forgets bool
}

func newDesk(ctx context.Context, file *format.File, sim player.Simulation, clock player.Clock, o player.PlaybackOptions) *desk {
	o.Clock = clock
	d := &desk{ctx: ctx, file: file, clock: clock, whole: player.LooksAhead(sim), busy: make(chan struct{}, 1),
		reader: file.Reader(), chunk: 1, loose: true, cancelWork: func() {}}
	o.OnOutcome = func(out player.Outcome) { d.reached.Store(uint64(out.Tick)) }
	d.playback = player.NewPlayback(file, sim, o)
	_, d.inner = sim.(*player.Local)
	if turns, ok := sim.(*player.Turns); ok {
		d.dumper, _ = turns.Game().(player.Dumper)
	}
	return d
}

// occupy keeps other pieces away until release is called.
func (d *desk) occupy() (release func()) {
	d.busy <- struct{}{}
	return func() { <-d.busy }
}

// begin must be called before each piece, by who may call interrupt.
func (d *desk) begin() {
	d.cancelWork()
	d.halt.Store(false)
	d.pieceCtx, d.cancelWork = context.WithCancel(d.ctx)
}

// interrupt ends the present piece after the tick that is being simulated.
func (d *desk) interrupt() { d.halt.Store(true) }

// giveUp is interrupt for a piece whose end is not wanted any more.
func (d *desk) giveUp() {
	d.interrupt()
	if d.whole {
		d.cancelWork()
	}
}

// close gives up the present piece, and returns when nothing uses the
// simulation any more.
func (d *desk) close() {
	d.cancelWork()
	defer d.occupy()()
	d.closed = true
}

// errClosed is given for a piece that begins after the end.
var errClosed = errors.New("the player is closed")

// place is where the playback stands and what it has found so far.
type place struct {
	// next is the tick that is played next, of which within steps were
	// applied already.
	next         format.Tick
	within       int
	compared     int
	desync       *player.DesyncError
	desyncs      int
	bad          []*player.KeyframeError
	kept         int
	keptBytes    int64
	playsThrough bool // the game's state cannot be kept
}

// moved is what a piece of a move came to.
type moved struct {
	place
	// job is the number of the job that the piece belongs to; 0 is playing.
	job int
	// arrived is set where the move is over.
	arrived bool
	err     error
}

// goal is where a move leads: before the step of a tick. Step endOfTick stands
// behind the last one.
type goal struct {
	tick format.Tick
	step int
}

const endOfTick = -1

// seek moves towards a goal, from the nearest keyframe.
func (d *desk) seek(to goal) moved {
	return d.piece(func() (bool, error) {
		there, err := d.inChunks(func(n int) (bool, error) { return d.playback.Approach(d.pieceCtx, to.tick, n) })
		if err != nil || !there || to.step == 0 {
			return there, err
		}
		return true, d.enter(to)
	})
}

// enter moves into the tick that the playback stands before, or behind it
// where it has not so many steps.
func (d *desk) enter(to goal) error {
	var tick format.TickRecord
	if err := d.read(to.tick, &tick); err != nil {
		return err
	}
	switch {
	case to.step == endOfTick:
		to.step = tick.Steps
	case to.step > tick.Steps:
		return d.playback.Seek(d.pieceCtx, to.tick+1)
	}
	return d.playback.SeekStep(d.pieceCtx, to.tick, to.step)
}

// play plays every tick up to the state before tick next. A desync that was
// not known before ends the piece.
func (d *desk) play(next format.Tick) moved {
	return d.piece(func() (bool, error) {
		known := d.playback.Report().Desync
		return d.inChunks(func(n int) (bool, error) {
			at := d.playback.Position()
			to := min(next, at+format.Tick(n))
			if d.whole {
				// Each part is played from the start again: parts that grow
				// keep the whole of them in proportion.
				to = min(next, max(to, at+(at-d.first())/8))
			}
			err := d.playback.Play(d.pieceCtx, to)
			found := d.playback.Report().Desync != known
			return err == nil && (to == next || found), err
		})
	})
}

func (d *desk) first() format.Tick { return d.file.Summary().Meta.FirstTick }

// piece runs a piece of work and says where it led.
func (d *desk) piece(work func() (bool, error)) moved {
	defer d.occupy()()
	if d.closed {
		return moved{err: errClosed}
	}
	var m moved
	m.arrived, m.err = work()
	m.place = d.place()
	d.loose = m.err != nil && !leavesAlone(m.err)
	return m
}

// leavesAlone tells errors that leave the game in the state that it was in.
func leavesAlone(err error) bool {
	return errors.Is(err, player.ErrUnable) || errors.Is(err, player.ErrNoSuchTick) || errors.Is(err, errNoTick) || isError[*player.GapError](err)
}

func (d *desk) place() place {
	p := d.playback
	report := p.Report()
	at := place{next: p.Position(), within: p.Within(), compared: report.HashesCompared, desync: report.Desync,
		desyncs: len(report.Desyncs), bad: p.BadKeyframes(), playsThrough: d.forgets || !p.Rewinds()}
	at.kept, at.keptBytes = p.Kept()
	return at
}

// inChunks calls move until it has arrived, the piece has taken its time, or
// interrupt was called. The number of ticks that it asks for follows the time
// that they take.
func (d *desk) inChunks(move func(ticks int) (bool, error)) (bool, error) {
	began := d.clock.Now()
	for at := began; ; {
		arrived, err := move(d.chunk)
		now := d.clock.Now()
		switch took := now.Sub(at); {
		case took > pieceTime/4:
			d.chunk = max(1, d.chunk/2)
		case took < pieceTime/16:
			d.chunk = min(2*d.chunk, mostTicks)
		}
		at = now
		if arrived || err != nil || now.Sub(began) >= pieceTime || d.halt.Load() {
			return arrived, err
		}
	}
}

// sight is what is shown of the place where the playback rests.
type sight struct {
	place
	// steps are the steps of the next tick as text; of unread more the text
	// is not there. There are none where the tick is not in the replay.
	steps  []string
	unread int
	// fields is the game's state; fieldsErr says why there is none.
	fields    []player.Field
	fieldsErr error
	here      bool // the tick is in the replay
	end       bool // there is no tick behind
	took      time.Duration
	err       error
}

// look reads the steps of the next tick, and the fields of the state.
func (d *desk) look() sight {
	defer d.occupy()()
	began := d.clock.Now()
	if d.closed {
		return sight{err: errClosed}
	}
	var s sight
	d.ask()
	switch {
	case d.loose:
		s.fieldsErr = errLoose
	case d.dumper != nil:
		s.fields = d.dumper.Dump()
	default:
		s.fields, s.fieldsErr = d.playback.Dump()
	}
	s.place = d.place()
	s.end = s.next >= d.file.Summary().NextTick
	s.err = d.readSteps(&s)
	s.took = d.clock.Now().Sub(began)
	return s
}

// errLoose is given for the fields of a state that is not known.
var errLoose = errors.New("the state is not known after this failure")

// ask finds out, once, whether the game's state can be kept.
func (d *desk) ask() {
	if d.asked || d.loose || d.playback.Within() > 0 {
		return
	}
	_, err := d.playback.Save(nil)
	d.asked, d.forgets = true, errors.Is(err, player.ErrUnable)
}

func (d *desk) readSteps(s *sight) error {
	var tick format.TickRecord
	if err := d.read(s.next, &tick); err != nil {
		if errors.Is(err, errNoTick) {
			return nil
		}
		return err
	}
	s.here = true
	var steps format.StepReader
	var step format.Step
	for steps.Reset(&tick); len(s.steps) < mostSteps && steps.Next(&step); {
		s.steps = append(s.steps, stepText(d.file.Book(), step))
	}
	s.unread = tick.Steps - len(s.steps)
	return nil
}

// errNoTick is given for a tick that the replay does not hold.
var errNoTick = errors.New("the tick is not in the replay")

// read reads one tick.
func (d *desk) read(next format.Tick, tick *format.TickRecord) error {
	d.reader.Seek(next)
	err := d.reader.Next(tick)
	if err == io.EOF || err == nil && tick.Tick != next {
		return fmt.Errorf("%w: %d", errNoTick, next)
	}
	return err
}

// searched is what a piece of a search came to.
type searched struct {
	job int
	// next is the tick that was found or, without found, where the search
	// goes on; over is set where there is nothing behind.
	next        format.Tick
	found, over bool
	err         error
}

// search looks for the first tick from next on that has a step of one of the
// codes.
func (d *desk) search(next format.Tick, codes map[uint16]bool) searched {
	defer d.occupy()()
	if d.closed {
		return searched{next: next, over: true, err: errClosed}
	}
	began := d.clock.Now()
	d.reader.Seek(next)
	var tick format.TickRecord
	for n := 0; ; n++ {
		if n%64 == 63 && d.clock.Now().Sub(began) >= pieceTime || d.halt.Load() {
			return searched{next: next}
		}
		err := d.reader.Next(&tick)
		switch {
		case err == io.EOF:
			return searched{next: next, over: true}
		case err != nil:
			return searched{next: next, over: true, err: err}
		case hasCode(&tick, codes):
			return searched{next: tick.Tick, found: true, over: true}
		}
		next = tick.Tick + 1
	}
}

func hasCode(tick *format.TickRecord, codes map[uint16]bool) bool {
	var steps format.StepReader
	var step format.Step
	for steps.Reset(tick); steps.Next(&step); {
		if codes[step.Code] {
			return true
		}
	}
	return false
}

// codesOf gives the codes that a person means: by number, or by a part of the
// names in the code book.
func codesOf(book *format.CodeBook, what string) (map[uint16]bool, error) {
	if n, err := parseNumber(what); err == nil {
		if n > math.MaxUint16 {
			return nil, fmt.Errorf("%s is no command code: they go up to %d", what, math.MaxUint16)
		}
		return map[uint16]bool{uint16(n): true}, nil
	}
	if book == nil {
		return nil, errors.New("the replay has no code book: search by the code's number")
	}
	codes := map[uint16]bool{}
	for _, c := range book.Codes {
		if containsFold(c.Name, what) {
			codes[c.Code] = true
		}
	}
	if len(codes) == 0 {
		return nil, fmt.Errorf("no command of the code book is named %s", what)
	}
	return codes, nil
}
