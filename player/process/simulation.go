package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"reprise/format"
	"reprise/player"
)

// Options says how a child is run. The zero Options are good.
type Options struct {
	// StartTimeout is how long the child may take to say hello, counted
	// from its start; 0 means 10 seconds.
	StartTimeout time.Duration
	// TickTimeout is how long it may say nothing while it works on ticks;
	// 0 means 10 seconds.
	TickTimeout time.Duration
	// StateTimeout is how long it may take to reset, save, load or dump; 0
	// means a minute.
	StateTimeout time.Duration
	// CloseTimeout is how long it may take to end when told to, before it
	// is killed; 0 means 2 seconds.
	CloseTimeout time.Duration
	// Fresh starts a new child for every replay.
	Fresh bool
	// AnyGame plays replays of other games, builds and data than the child's;
	// where they do differ, that shows as desync.
	AnyGame bool
	// TCP uses a port of this machine also where there are unix sockets.
	TCP bool
	// Output takes what the child writes to its standard output and error;
	// nil drops it. It may be written to from another goroutine.
	Output io.Writer
	// Env is added to the child's environment, which else is this one's.
	Env []string
}

func (o *Options) setDefaults() {
	for _, d := range [...]struct {
		value *time.Duration
		or    time.Duration
	}{
		{&o.StartTimeout, 10 * time.Second}, {&o.TickTimeout, 10 * time.Second},
		{&o.StateTimeout, time.Minute}, {&o.CloseTimeout, 2 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.or
		}
	}
}

// Simulation is a game in a child process. It is a player.Simulation. A child
// that failed is replaced by the next Reset.
type Simulation struct {
	ctx   context.Context
	words []string
	o     Options
	// link is nil where no child could be started in place of another one.
	link   *link
	hello  hello
	unhook func() bool
	// used is set once the child was given a replay; game is the one that
	// plays it.
	used bool
	game *gameInfo

	// writer, out and batch hold the ticks that are not sent yet.
	writer tickWriter
	out    []byte
	batch  []expectation
	// answers are the ones that came; the first handed of them were handed
	// on.
	answers []answer
	handed  int
	// broken is set where nothing more can be simulated before a Reset.
	broken error
}

var (
	_ player.Simulation = (*Simulation)(nil)
	_ player.LookAhead  = (*Simulation)(nil)
)

var (
	errNoReset = errors.New("no replay was started: reset first")
	// errUnderWay is returned where a state is asked for between ticks.
	errUnderWay = errors.New("ticks are under way: flush first")
)

// New starts a child by its command line; see Split. The child lives until
// Close, or until ctx is done, which ends every call. The error is or wraps
// ErrCommand, a player.SimulationError or the context's.
func New(ctx context.Context, command string, o Options) (*Simulation, error) {
	words, err := Split(command)
	if err != nil {
		return nil, err
	}
	o.setDefaults()
	s := &Simulation{ctx: ctx, words: words, o: o, broken: errNoReset}
	if err := s.start(); err != nil {
		return nil, err
	}
	return s, nil
}

// start runs a new child up to its hello.
func (s *Simulation) start() error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	door, err := openDoor(s.o.TCP)
	if err != nil {
		return err
	}
	child, err := startChild(s.words, s.o, door.address, door.token)
	if err != nil {
		door.shut()
		return err
	}
	greeter := newGreeter(door)
	visitor, err := greeter.await(s.ctx, child, s.o.StartTimeout)
	greeter.close()
	if err != nil {
		return s.notGreeted(child, err)
	}
	s.link, s.hello, s.used = newLink(visitor.conn, child), visitor.hello, false
	s.link.write((&welcome{version: s.hello.version()}).append(nil))
	link := s.link
	s.unhook = context.AfterFunc(s.ctx, func() { link.end(context.Cause(s.ctx)) })
	if s.hello.version() < Version {
		return nil
	}
	return s.identify()
}

// identify asks a new child for the data of its games; one that does not tell
// is ended.
func (s *Simulation) identify() error {
	r, err := s.request(appendEmpty(nil, typeIdentify), typeIdentify, typeIdentity)
	if err == nil && len(r.data) != len(s.hello.games) {
		bad := fmt.Errorf("%w: the data of %d games, of %d", errBad, len(r.data), len(s.hello.games))
		err = &player.SimulationError{What: "answered badly", Err: badMessage(typeIdentity, bad)}
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	s.hello.data = r.data
	return nil
}

// notGreeted ends a child whose hello did not come.
func (s *Simulation) notGreeted(c *child, err error) error {
	ended := errors.Is(err, errEnded) || isGone(err) && c.awaitEnd(endGrace)
	c.kill()
	switch {
	case ended:
		return &player.SimulationError{What: "ended before its hello", Err: c.report(nil, false)}
	case errors.Is(err, errNoHello):
		what := fmt.Sprintf("did not say hello within %v", s.o.StartTimeout)
		return &player.SimulationError{What: what, Err: c.report(nil, true)}
	case errors.Is(err, errBadHello):
		return &player.SimulationError{What: "answered badly", Err: c.report(err, true)}
	}
	return err
}

// Program is what the child says of itself: its engine and version.
func (s *Simulation) Program() string { return printable(s.hello.program) }

// Offers gives the games that the child offers.
func (s *Simulation) Offers() []Offer { return s.hello.offers() }

// LooksAhead reports whether the game of the present replay does.
func (s *Simulation) LooksAhead() bool { return s.game != nil && s.game.abilities.has(looksFar) }

// Reset starts a replay, in a new child where the present one failed or is
// not fresh. The error is a player.GameMissingError, BuildMismatchError or
// DataMismatchError where the child does not offer the recorded game, matches player.ErrStart
// where the game refuses the replay, and is as that of New otherwise.
func (s *Simulation) Reset(start player.Start) error {
	s.out, s.batch, s.answers, s.handed = s.out[:0], s.batch[:0], s.answers[:0], 0
	s.broken = s.reset(start)
	return s.broken
}

func (s *Simulation) reset(start player.Start) error {
	if err := s.renew(); err != nil {
		return err
	}
	position, err := s.hello.choose(start.Meta, "", s.o.AnyGame)
	if err != nil {
		return err
	}
	s.game = &s.hello.games[position]
	width, err := s.game.hashWidth(start.Meta)
	if err != nil {
		return err
	}
	s.used = true
	s.link.begin(width, s.LooksAhead())
	_, err = s.request((&reset{game: uint32(position), start: start}).append(nil), typeReset, typeReady)
	return err
}

// renew replaces the child where it has to be.
func (s *Simulation) renew() error {
	if s.link != nil {
		if s.link.news().err == nil && !(s.o.Fresh && s.used) {
			return nil
		}
	}
	if err := s.Close(); err != nil {
		return err
	}
	return s.start()
}

// Advance gives the next tick. It is sent at once where the child has nothing
// to do, and else in a batch with those behind it.
func (s *Simulation) Advance(tick *format.TickRecord, wantHash bool, emit func(player.Outcome) error) error {
	if s.broken != nil {
		return s.broken
	}
	out, err := s.writer.append(s.out, tick, wantHash)
	if err != nil {
		s.broken = err
		return err
	}
	s.out = out
	s.batch = append(s.batch, expectation{tick: tick.Tick, steps: tick.Steps, asked: wantHash})
	n, err := s.poll(emit)
	switch {
	case err != nil:
		return err
	case n.unanswered+len(s.batch) > mostUnanswered:
		what := fmt.Sprintf("left more than %d ticks unanswered", mostUnanswered)
		s.broken = &player.SimulationError{Tick: tick.Tick, HasTick: true, What: what}
		return s.broken
	case n.batches == 0 || len(s.batch) >= n.batchTicks || len(s.out) >= mostBatchBytes:
		return s.send(flushSettled, emit)
	}
	return nil
}

// Flush has every tick answered.
func (s *Simulation) Flush(final bool, emit func(player.Outcome) error) error {
	if s.broken != nil {
		return s.broken
	}
	mode := flushAll
	if final {
		mode = flushFinal
	}
	if err := s.send(mode, emit); err != nil {
		return err
	}
	_, err := s.wait(emit, func(n news) bool { return n.batches == 0 })
	return err
}

// send sends the ticks that wait, once there is room for another batch.
func (s *Simulation) send(mode flushMode, emit func(player.Outcome) error) error {
	if _, err := s.wait(emit, func(n news) bool { return n.batches < mostBatches }); err != nil {
		return err
	}
	s.out = (&flush{mode: mode}).append(s.out)
	s.link.expect(s.batch, mode, s.o.TickTimeout)
	s.link.write(s.out)
	s.out, s.batch = s.out[:0], s.batch[:0]
	if cap(s.out) > 4*mostBatchBytes {
		s.out = nil
	}
	return nil
}

// wait hands answers on until what has come is enough.
func (s *Simulation) wait(emit func(player.Outcome) error, enough func(news) bool) (news, error) {
	for {
		n, err := s.poll(emit)
		if err != nil || enough(n) {
			return n, err
		}
		<-s.link.wake
	}
}

// poll hands on the answers that have come. Those that came before the child
// failed still count.
func (s *Simulation) poll(emit func(player.Outcome) error) (news, error) {
	var n news
	s.answers, n = s.link.collect(s.answers)
	for s.handed < len(s.answers) {
		a := &s.answers[s.handed]
		s.handed++
		if err := s.hand(a, emit); err != nil {
			return n, err
		}
	}
	s.answers, s.handed = s.answers[:0], 0
	if n.err != nil {
		s.broken = n.err
	}
	return n, n.err
}

// hand hands on one answer.
func (s *Simulation) hand(a *answer, emit func(player.Outcome) error) error {
	switch {
	case a.broken != nil:
		s.broken = a.broken
		return s.broken
	case a.failure != nil:
		s.broken = a.failure
		if err := emit(a.outcome()); err != nil {
			return err
		}
		return s.broken
	}
	return emit(a.outcome())
}

// Close ends the child, by force where it does not end when told to.
func (s *Simulation) Close() error {
	if s.link != nil {
		s.unhook()
		s.link.close(s.o.CloseTimeout)
		s.link = nil
	}
	return nil
}
