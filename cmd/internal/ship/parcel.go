package ship

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"reprise/format"
	"reprise/transport"
)

// parcel is one file on its way: it is looked at, its session is opened, what
// is new is sent, and what is whole is sealed. One goroutine runs it.
type parcel struct {
	s          *shipper
	name, path string
	woken      chan struct{}

	// Set by begin.

	rec     *record
	src     *source
	foreign *foreign // nil for RPLY2
	heavy   bool     // it holds the place for a foreign file
	vouched *record  // whose first bytes the file has

	chunks chunks
	seen   sample
	stamp  stamp     // how the file looked last
	quiet  time.Time // since when the file has not grown
	looked time.Time // when

	// doubt is damage that must stand for a while to be believed.
	doubt   string
	doubted time.Time

	places []place

	// What follows is about the present connection.

	opens    uint64
	session  *transport.RelaySession
	standing transport.Standing
	noted    bool // the last mark was sent
	asked    bool // the seal was asked for

	audited *audit
	told    time.Time
	safe    format.Tick // told to be durable
	trouble string      // the last that was told
}

// place is a chunk that is not known to be durable, and stands behind number
// seq.
type place struct {
	at  int64
	seq uint64
}

func newParcel(s *shipper, name string) *parcel {
	return &parcel{s: s, name: name, path: filepath.Join(s.cfg.Dir, name), woken: make(chan struct{}, 1)}
}

// wake makes the parcel look at its file and its session.
func (p *parcel) wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

// What a parcel ends with, beside a failure; nil for a file that was sealed.

// errBefore is returned for a file that was sealed in an earlier run.
var errBefore = errors.New("sealed before")

// errStopped is returned for a file that was under way when the run ended.
var errStopped = errors.New("stopped")

// parkedError is returned for a file that can only go on once it changes, or
// at a time.
type parkedError struct {
	why error
	// until is zero where only a change helps: then the session is left.
	until time.Time
}

func (e *parkedError) Error() string { return e.why.Error() }

func (e *parkedError) Unwrap() error { return e.why }

// run ships the file as far as it goes.
func (p *parcel) run(ctx context.Context) error {
	defer p.release()
	for tries := 0; ; tries++ {
		began := time.Now()
		err := p.step(ctx)
		if ctx.Err() != nil {
			return errStopped
		}
		if err == nil || !p.retries(err) {
			return err
		}
		p.complain(err)
		if bySystem(err) {
			p.startOver()
		}
		if time.Since(began) > backoffMost {
			tries = 0
		}
		if p.sleep(ctx, backoff(tries)) != nil {
			return errStopped
		}
	}
}

func (p *parcel) step(ctx context.Context) error {
	if p.src == nil {
		if err := p.begin(ctx); err != nil {
			return err
		}
	}
	return p.ship(ctx)
}

// release gives back what the parcel holds.
func (p *parcel) release() {
	if p.rec != nil {
		p.s.book.release(p.rec)
	}
	if p.heavy {
		<-p.s.heavy
	}
}

// startOver forgets all that was read, after an error that may have left it
// half done.
func (p *parcel) startOver() {
	p.release()
	p.rec, p.src, p.foreign, p.heavy, p.vouched = nil, nil, nil, false, nil
	p.seen, p.places, p.audited, p.doubt = sample{}, nil, nil, ""
}

// retries tells whether another try can help.
func (p *parcel) retries(err error) bool {
	var parked *parkedError
	var refusal *transport.Refusal
	switch {
	case errors.As(err, &parked), err == errBefore:
		return false
	case errors.Is(err, transport.ErrLink), errors.Is(err, errBusy):
		return true
	case errors.As(err, &refusal):
		return refusal.Temporary() || refusal.Code == transport.CodeWindow
	}
	return p.s.cfg.Follow && bySystem(err) // room, or rights, may be given later
}

// bySystem tells whether an error comes from the system, not from what a file
// holds.
func bySystem(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	return errors.As(err, &path) || errors.As(err, &link) || errors.Is(err, io.ErrUnexpectedEOF)
}

// complain tells a trouble once. That of the connection is told for all
// files by the transport.
func (p *parcel) complain(err error) {
	if errors.Is(err, transport.ErrLink) || errors.Is(err, errBusy) || p.trouble == err.Error() {
		return
	}
	p.trouble = err.Error()
	p.tell(Event{Kind: EventTrouble, Err: err})
}

func (p *parcel) tell(e Event) {
	e.File = p.name
	if p.rec != nil {
		e.Session = p.rec.Session
	}
	p.s.tell(e)
}

const (
	backoffLeast = 20 * time.Millisecond
	backoffMost  = 5 * time.Second
)

// backoff is a random pause that doubles with each try up to a bound.
func backoff(tries int) time.Duration {
	most := min(backoffLeast<<min(tries, 16), backoffMost)
	return most/2 + rand.N(most/2+1)
}

func (p *parcel) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// notice enters how the file looks now.
func (p *parcel) notice(st fs.FileInfo) {
	now := time.Now()
	p.looked = now
	switch {
	case p.quiet.IsZero() && st.ModTime().Before(now):
		p.quiet = st.ModTime()
	case p.quiet.IsZero(), p.stamp.Size != st.Size():
		p.quiet = now
	}
	p.stamp = stampOf(st)
}

// idle tells whether nothing more is to be expected of the file.
func (p *parcel) idle() bool { return !p.s.cfg.Follow || time.Since(p.quiet) >= p.s.cfg.Idle }

// idleAt is when the file is idle if it does not grow.
func (p *parcel) idleAt() time.Time { return p.quiet.Add(p.s.cfg.Idle) }
