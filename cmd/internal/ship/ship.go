package ship

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"reprise/transport"
)

// Run ships the files of a folder until all are sealed or given up or, with
// Config.Follow, until ctx ends. The error is nil where every file that was
// seen is sealed; where not, it matches ErrUnsealed.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	s := newShipper(cfg.withDefaults())
	var err error
	if s.book, err = openBook(s.cfg.State, s.cfg.Dir); err != nil {
		return err
	}
	defer s.book.close()
	s.client, err = transport.DialRelay(ctx, cfg.Servers, transport.RelayConfig{TLS: cfg.TLS, Token: cfg.Token, Agent: s.cfg.Agent, Background: cfg.Follow,
		DialTimeout: cfg.deadAfter, DeadAfter: cfg.deadAfter, BackoffMax: cfg.backoffMax, OnTrouble: func(err error) { s.tell(Event{Kind: EventTrouble, Err: err}) }})
	if err != nil {
		return err
	}
	return s.run(ctx)
}

func newShipper(cfg Config) *shipper {
	s := &shipper{cfg: cfg, desks: make(chan desk, cfg.readers), heavy: make(chan struct{}, 1), touched: make(chan string, 64), results: make(chan result),
		files: map[string]*entry{}, due: map[string]time.Time{}, lost: map[string]bool{}}
	for range cfg.readers {
		s.desks <- desk{}
	}
	return s
}

// shipper runs the parcels of a folder. What is not said to be shared belongs
// to its loop.
type shipper struct {
	cfg     Config
	book    *book            // shared
	client  *transport.Relay // shared
	desks   chan desk        // shared: places for open files
	heavy   chan struct{}    // shared: the place for a foreign file in memory
	touched chan string      // shared: names of files that changed
	results chan result      // shared: of parcels

	telling sync.Mutex

	files   map[string]*entry
	waiting []string             // files to start, in order
	due     map[string]time.Time // parked files that are looked at again
	active  int
	sum     Summary
	// lost holds the sessions of files that vanished.
	lost map[string]bool
	// scanned is set where the last look through the folder went well.
	scanned bool
}

// tell passes an event on. It is shared.
func (s *shipper) tell(e Event) {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.cfg.OnEvent(e)
}

// state is what becomes of a file.
type state uint8

const (
	queued state = iota
	running
	parked
	sealed
	failed
)

// entry is one file of the folder.
type entry struct {
	state  state
	parcel *parcel // while it runs
	left   bool    // parked, for it does not grow
	stamp  stamp   // how the file looked when it was last considered
}

// result is what a parcel ended with.
type result struct {
	parcel *parcel
	err    error
}

// closeTime bounds how long the daemon may take to confirm the end.
const closeTime = 15 * time.Second

func (s *shipper) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.cfg.Follow {
		if err := s.watch(ctx); err != nil {
			s.tell(Event{Kind: EventTrouble, Err: fmt.Errorf("the folder is only looked through every %v: %w", s.cfg.Rescan, err)})
		}
	}
	s.loop(ctx)
	s.close(ctx)
	for ; s.active > 0; s.active-- {
		s.settle(<-s.results)
	}
	s.summarise()
	s.tell(Event{Kind: EventSummary, Summary: &s.sum})
	return s.sum.err()
}

// close takes leave of the daemon: at once, where the run was stopped, for the
// files still hold all that is not durable.
func (s *shipper) close(ctx context.Context) {
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer done()
	if ctx.Err() != nil {
		done()
	}
	s.client.Close(closing)
}

// loop decides which files are on their way.
func (s *shipper) loop(ctx context.Context) {
	rescan := time.NewTicker(s.cfg.Rescan)
	defer rescan.Stop()
	s.scan()
	for {
		due := time.NewTimer(s.requeueDue())
		s.start(ctx)
		if !s.cfg.Follow && s.active == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case name := <-s.touched:
			s.touch(name)
		case <-rescan.C:
			s.scan()
		case r := <-s.results:
			s.active--
			s.settle(r)
		case <-due.C:
		}
		due.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// start starts parcels while there is room.
func (s *shipper) start(ctx context.Context) {
	for len(s.waiting) > 0 && s.active < s.cfg.Active {
		name := s.waiting[0]
		s.waiting = s.waiting[1:]
		e := s.files[name]
		if e == nil || e.state != queued {
			continue
		}
		p := newParcel(s, name)
		e.state, e.left, e.parcel = running, false, p
		s.active++
		go func() { s.results <- result{p, p.run(ctx)} }()
	}
}

func (s *shipper) enqueue(name string, e *entry) {
	e.state = queued
	delete(s.due, name)
	s.waiting = append(s.waiting, name)
}

// requeueDue queues the parked files that are due, and returns the time until
// the next one is.
func (s *shipper) requeueDue() time.Duration {
	next := s.cfg.Rescan
	for name, at := range s.due {
		left := time.Until(at)
		if e := s.files[name]; left <= 0 && e != nil && e.state == parked {
			s.enqueue(name, e)
			left = 0
		}
		next = min(next, max(left, 0))
	}
	return next
}

// touch takes word that a file has changed.
func (s *shipper) touch(name string) {
	if name == "" {
		s.scan()
		return
	}
	if e := s.files[name]; e != nil && e.state == running {
		e.parcel.wake()
		return
	}
	st, err := os.Stat(filepath.Join(s.cfg.Dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.vanished(name)
	case err == nil:
		s.consider(name, st)
	}
}

// scan looks through the folder.
func (s *shipper) scan() {
	entries, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		if s.scanned {
			s.tell(Event{Kind: EventTrouble, Err: err})
		}
		s.scanned = false
		return
	}
	s.scanned = true
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
	}
	for name := range s.files {
		if !there[name] {
			s.vanished(name)
		}
	}
	for _, e := range entries {
		if _, ok := stem(e.Name()); ok {
			s.look(e.Name())
		}
	}
}

// look considers a file that is in the folder.
func (s *shipper) look(name string) {
	st, err := os.Stat(filepath.Join(s.cfg.Dir, name))
	switch {
	case err == nil:
		s.consider(name, st)
	case s.files[name] == nil: // a link to nowhere
		s.files[name] = &entry{state: failed}
		s.tell(Event{Kind: EventFailed, File: name, Err: err})
	}
}

// consider decides what to do about a file as it looks now.
func (s *shipper) consider(name string, st fs.FileInfo) {
	e := s.files[name]
	if e == nil {
		e = &entry{stamp: stampOf(st)}
		s.files[name] = e
		s.enqueue(name, e)
		return
	}
	changed := !e.stamp.fits(st)
	e.stamp = stampOf(st)
	switch {
	case !changed, e.state == queued, e.state == failed:
	case e.state == running:
		e.parcel.wake()
	default:
		s.enqueue(name, e)
	}
}

// vanished forgets a file that is gone. A parcel of it finds out itself.
func (s *shipper) vanished(name string) {
	e := s.files[name]
	switch {
	case e == nil:
	case e.state == running:
		e.parcel.wake()
	default:
		if r := s.book.find(name); r != nil && r.Sealed == nil && !r.Ended {
			s.lost[r.Session] = true
			s.tell(Event{Kind: EventFailed, File: name, Session: r.Session, Err: errGone})
		}
		delete(s.files, name)
		delete(s.due, name)
	}
}

// settle takes the result of a parcel.
func (s *shipper) settle(r result) {
	name := r.parcel.name
	e := s.files[name]
	e.parcel, e.stamp = nil, r.parcel.stamp
	var later *parkedError
	switch {
	case r.err == nil:
		e.state = sealed
		s.sum.Sealed++
	case r.err == errBefore:
		e.state = sealed
		s.sum.Before++
	case errors.As(r.err, &later):
		s.park(name, e, later)
	case r.err == errStopped:
		e.state = parked
	case errors.Is(r.err, errGone):
		e.state = parked
		s.vanished(name)
		return
	default:
		e.state = failed
		s.tell(Event{Kind: EventFailed, File: name, Session: s.sessionOf(name), Err: r.err})
	}
	delete(s.lost, s.sessionOf(name))
}

func (s *shipper) sessionOf(name string) string {
	if r := s.book.find(name); r != nil {
		return r.Session
	}
	return ""
}

// park keeps a file until it changes, which it may have done already, or
// until it is due.
func (s *shipper) park(name string, e *entry, later *parkedError) {
	e.state, e.left = parked, later.until.IsZero()
	if e.left && errors.Is(later.why, errNoOpening) {
		s.tell(Event{Kind: EventUnfinished, File: name, Err: later.why})
	}
	if !e.left {
		s.due[name] = later.until
	}
	if s.cfg.Follow {
		s.touch(name)
	}
}

// summarise counts what is not sealed.
func (s *shipper) summarise() {
	for _, e := range s.files {
		switch {
		case e.state == failed:
			s.sum.Failed++
		case e.state == parked && e.left:
			s.sum.Unfinished++
		case e.state != sealed:
			s.sum.Growing++
		}
	}
	s.sum.Failed += len(s.lost)
}
