package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reprise/player"
)

// Serve makes this program a simulation that a host has started, and ends
// the program when the host is done. It is all that a main needs. Outside of a
// host it says so and ends with status 2.
func Serve(games ...player.Linked) {
	switch err := Run(games...); {
	case errors.Is(err, ErrNoHost):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// ErrNoHost is returned where this program was not started by a host.
var ErrNoHost = fmt.Errorf("this program is a simulation: give it to reprise with --sim exec:COMMAND (%s is not set)", SocketVariable)

// Run is Serve for a program that has more to do afterwards: it returns when
// the host is done, with an error where the connection broke or the host did
// not keep to the protocol.
func Run(games ...player.Linked) error {
	address := os.Getenv(SocketVariable)
	if address == "" {
		return ErrNoHost
	}
	conn, err := dial(address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return newServer(conn, games).run(os.Getenv(TokenVariable))
}

const (
	// holdTime is how long answers are collected while ticks wait: the host
	// must see that the child is alive.
	holdTime = 100 * time.Millisecond
	// holdBytes is how many bytes of them are.
	holdBytes = 32 << 10
)

// server is a child's side of the connection.
type server struct {
	conn   io.ReadWriter
	frames *frameReader
	games  []*served
	// game plays the present replay; nil before the first.
	game *served
	tick tickMessage
	// version is the protocol's, once both sides have agreed on it.
	version uint16
	// halted is set where ticks mean nothing before the next reset.
	halted bool
	// out holds answers; the oldest is there since held.
	out  []byte
	held time.Time
}

func newServer(conn io.ReadWriter, games []player.Linked) *server {
	s := &server{conn: conn, frames: newFrameReader(conn), halted: true}
	for _, g := range games {
		s.games = append(s.games, newServed(g))
	}
	return s
}

// run serves until the host says goodbye or closes the connection.
func (s *server) run(token string) error {
	if err := s.greet(token); err != nil {
		return err
	}
	for {
		if err := s.sendIf(s.frames.waits()); err != nil {
			return err
		}
		t, body, err := s.frames.next()
		switch {
		case errors.Is(err, io.EOF) || t == typeBye:
			return nil
		case err == nil:
			if len(s.out) == 0 {
				s.held = time.Now()
			}
			err = s.handle(t, body)
		}
		if err != nil {
			return s.complain(err)
		}
	}
}

// greet says hello and waits for the welcome.
func (s *server) greet(token string) error {
	h := s.hello(token, filepath.Base(os.Args[0]), Version)
	if _, err := s.conn.Write(h.append(nil)); err != nil {
		return err
	}
	t, body, err := s.frames.next()
	if err != nil {
		return fmt.Errorf("the host did not welcome this simulation: %w", err)
	}
	var w welcome
	switch err := w.parse(body); {
	case t != typeWelcome:
		return badMessage(t, errOutOfPlace)
	case err != nil:
		return badMessage(t, err)
	case w.version < LowestVersion || w.version > Version:
		return fmt.Errorf("the host speaks version %d of the protocol, not one of %d to %d", w.version, LowestVersion, Version)
	}
	s.version = w.version
	return nil
}

func (s *server) hello(token, program string, highest uint16) hello {
	h := hello{lowest: LowestVersion, highest: highest, token: token, program: program}
	for _, g := range s.games {
		h.games = append(h.games, g.info)
	}
	return h
}

// sendIf sends the answers where now says so, or where they are many or old.
func (s *server) sendIf(now bool) error {
	if len(s.out) == 0 || !now && len(s.out) < holdBytes && time.Since(s.held) < holdTime {
		return nil
	}
	_, err := s.conn.Write(s.out)
	if s.out = s.out[:0]; cap(s.out) > 4*holdBytes {
		s.out = nil
	}
	return err
}

// complain tells the host what was wrong with it, and gives up.
func (s *server) complain(err error) error {
	if errors.Is(err, errBad) {
		b := broken{tick: s.tick.record.Tick, text: err.Error()}
		s.out = b.append(s.out)
		return errors.Join(err, s.sendIf(true))
	}
	return err
}

// handle answers one message.
func (s *server) handle(t messageType, body []byte) error {
	var err error
	switch t {
	case typeTick:
		err = s.advance(body)
	case typeFlush:
		err = s.flush(body)
	case typeReset:
		err = s.reset(body)
	case typeSave:
		err = s.save(body)
	case typeLoad:
		err = s.load(body)
	case typeDump:
		err = s.dump(body)
	case typeIdentify:
		err = s.identify(body)
	default:
		err = errOutOfPlace
	}
	if err != nil {
		return badMessage(t, err)
	}
	return nil
}

func (s *server) reset(body []byte) error {
	var r reset
	if err := r.parse(body); err != nil {
		return err
	}
	if int64(r.game) >= int64(len(s.games)) {
		return fmt.Errorf("%w: game %d of %d", errBad, r.game, len(s.games))
	}
	s.game, s.halted = s.games[r.game], true
	if err := s.game.sim.Reset(r.start); err != nil {
		s.refuse(err)
		return nil
	}
	s.halted = false
	s.out = appendEmpty(s.out, typeReady)
	return nil
}

// refuse answers a request that failed. The host adds that the game cannot
// start.
func (s *server) refuse(err error) {
	var fault *player.SimulationError
	r := refused{fault: errors.As(err, &fault), text: reasonText(err)}
	r.text = strings.TrimPrefix(r.text, player.ErrStart.Error()+": ")
	s.out = r.append(s.out)
}

// reasonText prints an error for the host, and where it has a stack prints
// that for whoever reads this program's output.
func reasonText(err error) string {
	var fault *player.SimulationError
	if errors.As(err, &fault) && len(fault.Stack) > 0 {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, fault.Stack)
	}
	text := err.Error()
	return text[:min(len(text), mostReason)]
}

func (s *server) advance(body []byte) error {
	if err := s.tick.parse(body); err != nil {
		return err
	}
	if s.halted {
		return nil
	}
	s.settle(s.game.sim.Advance(&s.tick.record, s.tick.wantHash, s.emit))
	return nil
}

func (s *server) flush(body []byte) error {
	var f flush
	if err := f.parse(body); err != nil {
		return err
	}
	if !s.halted && (f.mode != flushSettled || !s.game.info.abilities.has(looksFar)) {
		s.settle(s.game.sim.Flush(f.mode == flushFinal, s.emit))
	}
	s.out = appendEmpty(s.out, typeFlushed)
	return nil
}

// emit answers a tick.
func (s *server) emit(o player.Outcome) error {
	if o.Failure != nil {
		f := newFailed(o)
		s.out = f.append(s.out)
		s.halted = true
		return nil
	}
	d := done{tick: o.Tick, ignored: uint32(o.Ignored), hash: o.Hash}
	s.out = d.append(s.out)
	return nil
}

// settle reports an error of the simulation that no answer told of.
func (s *server) settle(err error) {
	if err == nil || s.halted {
		return
	}
	s.halted = true
	b := broken{tick: s.tick.record.Tick, text: reasonText(err)}
	var fault *player.SimulationError
	if errors.As(err, &fault) && fault.HasTick {
		b.tick = fault.Tick
	}
	s.out = b.append(s.out)
}

// errRefused is the reason where a request makes no sense now.
var errRefused = errors.New("there is no such state: reset first")

// identify tells the data of every game.
func (s *server) identify(body []byte) error {
	if s.version < Version {
		return errOutOfPlace
	}
	if err := parseEmpty(body); err != nil {
		return err
	}
	var i identity
	for _, g := range s.games {
		i.data = append(i.data, g.data)
	}
	s.out = i.append(s.out)
	return nil
}

func (s *server) save(body []byte) error {
	if err := parseEmpty(body); err != nil {
		return err
	}
	if s.halted || s.game.saver == nil {
		s.refuse(errRefused)
		return nil
	}
	answer := saved{state: s.game.saver.Save(nil)}
	s.out = answer.append(s.out)
	return nil
}

func (s *server) load(body []byte) error {
	var l load
	if err := l.parse(body); err != nil {
		return err
	}
	if s.halted || !s.game.info.abilities.has(canLoad) {
		s.refuse(errRefused)
		return nil
	}
	if err := s.game.saver.Load(l.state); err != nil {
		s.halted = true
		s.refuse(err)
		return nil
	}
	s.out = appendEmpty(s.out, typeReady)
	return nil
}

func (s *server) dump(body []byte) error {
	if err := parseEmpty(body); err != nil {
		return err
	}
	if s.halted || s.game.dumper == nil {
		s.refuse(errRefused)
		return nil
	}
	answer := fields{list: s.game.dumper.Dump()}
	s.out = answer.append(s.out)
	return nil
}
