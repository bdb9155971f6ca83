package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"
)

// RelayConfig says which daemon a Relay reaches, and how. Zero values take
// the default that is named.
type RelayConfig struct {
	// TLS says how the daemon is known; see Trust. It must be set.
	TLS *tls.Config
	// Token is the access token, Agent the name of the program; "reprise".
	Token []byte
	Agent string
	// Background lets DialRelay return before the daemon is reached.
	Background bool
	// DialTimeout bounds one try to reach one address; 3 s.
	DialTimeout time.Duration
	// DeadAfter is how long the daemon may be silent; 3 s.
	DeadAfter time.Duration
	// WriteTimeout bounds every write; 30 s.
	WriteTimeout time.Duration
	// WriteLinger gathers the frames of one write; 2 ms.
	WriteLinger time.Duration
	// BackoffMin and BackoffMax bound the pause before another try, which
	// grows and is random; 50 ms and 5 s.
	BackoffMin, BackoffMax time.Duration
	// OnTrouble takes why the daemon is not reached, once for each reason in
	// a row.
	OnTrouble func(error)
}

func (c RelayConfig) withDefaults() RelayConfig {
	set(&c.Agent, "reprise")
	set(&c.DialTimeout, 3*time.Second)
	set(&c.DeadAfter, 3*time.Second)
	set(&c.WriteTimeout, 30*time.Second)
	set(&c.WriteLinger, 2*time.Millisecond)
	set(&c.BackoffMin, 50*time.Millisecond)
	set(&c.BackoffMax, 5*time.Second)
	if c.OnTrouble == nil {
		c.OnTrouble = func(error) {}
	}
	return c
}

// Relay sends chunks that stand in a file to a daemon, and connects again and
// again. It keeps nothing: where a Client holds what it has recorded until
// that is durable, the caller of a Relay has a file to read it from again.
//
// After any error a session is opened again, with a higher epoch: the new
// Standing says from where on to send. A *Refusal that is not temporary is an
// answer that stays.
type Relay struct {
	cfg     RelayConfig
	addrs   *addresses
	dialing *dialing
	dial    func(ctx context.Context, addr string) (carrier, error)
	ctx     context.Context // ends with the relay
	stop    context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	link    *relayLink
	changed chan struct{} // closed with every new link
	closing bool
	said    string // the last trouble that was told
}

// MaxChunk is the largest framed chunk that can be sent.
const MaxChunk = MaxFrame - 16

// errLeft ends a relay's link whose work is done.
var errLeft = errors.New("left")

// DialRelay makes a relay to the first of addrs that answers ("host:port").
// Without Background it tries each once, and returns the errors of all where
// none does.
func DialRelay(ctx context.Context, addrs []string, cfg RelayConfig) (*Relay, error) {
	if cfg.TLS == nil {
		return nil, errors.New("a relay needs a TLS configuration: see Trust")
	}
	list, err := newAddresses(addrs)
	if err != nil {
		return nil, err
	}
	r := newRelay(list, cfg)
	r.dial = r.dialing.dialQUIC
	return r, r.start(ctx)
}

func newRelay(addrs *addresses, cfg RelayConfig) *Relay {
	cfg = cfg.withDefaults()
	r := &Relay{cfg: cfg, addrs: addrs, done: make(chan struct{}), changed: make(chan struct{}),
		dialing: &dialing{tls: cfg.TLS, token: cfg.Token, agent: cfg.Agent, lowest: LowestVersion, timeout: cfg.DialTimeout,
			silence: cfg.DeadAfter, write: cfg.WriteTimeout, socket: udpSocket}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// start connects, unless in the background, and keeps connected.
func (r *Relay) start(ctx context.Context) error {
	var first *relayLink
	if !r.cfg.Background {
		var err error
		if first, err = r.try(ctx); err != nil {
			r.stop()
			return err
		}
	}
	go r.run(first)
	return nil
}

// Open opens or resumes a session, as soon as the daemon is reached.
func (r *Relay) Open(ctx context.Context, req RelayRequest) (*RelaySession, error) {
	l, err := r.await(ctx)
	if err != nil {
		return nil, err
	}
	if n := len(req.Opening) + len(req.Session) + 64; uint64(n) > l.ok.frame {
		return nil, fmt.Errorf("an opening of %d bytes, the daemon takes %d", len(req.Opening), l.ok.frame)
	}
	s, err := l.open(&req)
	if err != nil {
		return nil, err
	}
	select {
	case <-s.answered:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s, s.Progress().Err
}

// Close takes leave: it waits until the daemon has confirmed all that was
// sent, or ctx ends.
func (r *Relay) Close(ctx context.Context) {
	r.mu.Lock()
	l := r.link
	r.closing = true
	r.mu.Unlock()
	if l != nil {
		l.leave()
		select {
		case <-l.ended:
		case <-ctx.Done():
		}
	}
	r.stop()
	<-r.done
}

// await waits for a link on which sessions may be opened.
func (r *Relay) await(ctx context.Context) (*relayLink, error) {
	for {
		r.mu.Lock()
		l, changed, closing := r.link, r.changed, r.closing
		r.mu.Unlock()
		switch {
		case closing:
			return nil, ErrClosed
		case l != nil && l.usable():
			return l, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-r.ctx.Done():
			return nil, ErrClosed
		}
	}
}

// run keeps the relay connected until it ends.
func (r *Relay) run(l *relayLink) {
	defer close(r.done)
	for tries := 0; ; tries++ {
		if l != nil {
			r.serve(l)
			if time.Since(l.since) > r.cfg.DeadAfter {
				tries = 0
			}
		}
		pause, stop := after(backoff(r.cfg.BackoffMin, r.cfg.BackoffMax, tries))
		select {
		case <-pause:
		case <-r.ctx.Done():
			stop()
			return
		}
		var err error
		if l, err = r.try(r.ctx); err != nil {
			r.tell(err)
		}
	}
}

// serve runs a link to its end.
func (r *Relay) serve(l *relayLink) {
	r.mu.Lock()
	r.link, r.said = l, ""
	close(r.changed)
	r.changed = make(chan struct{})
	closing := r.closing
	r.mu.Unlock()
	if closing {
		l.leave()
	}
	defer context.AfterFunc(r.ctx, func() { l.end(ErrClosed) })()
	err := l.serve()
	r.mu.Lock()
	r.link = nil
	r.mu.Unlock()
	if temporary(err) {
		r.addrs.turn()
	}
	r.tell(err)
}

// try dials every address once, the one that worked last first.
func (r *Relay) try(ctx context.Context) (l *relayLink, err error) {
	err = r.addrs.each(ctx, func(addr string) error {
		ctx, cancel := context.WithTimeout(ctx, r.cfg.DialTimeout)
		defer cancel()
		c, err := r.dial(ctx, addr)
		if err != nil {
			return err
		}
		p, err := r.dialing.greet(ctx, c)
		if err == nil {
			l = newRelayLink(&r.cfg, p)
		}
		return err
	})
	return l, err
}

// tell passes on why the daemon is not reached, unless it did so just now.
func (r *Relay) tell(err error) {
	r.mu.Lock()
	again := r.said == err.Error() || r.closing || r.ctx.Err() != nil
	r.said = err.Error()
	r.mu.Unlock()
	if !again {
		r.cfg.OnTrouble(err)
	}
}
