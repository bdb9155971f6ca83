package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"reprise/transport"
)

// Config says which daemon to reach, and how. Zero values take the default
// that is named.
type Config struct {
	// Addrs are tried in turn, each "host:port". At least one must be set.
	Addrs []string
	// TLS says how the daemon is known; see transport.Trust. It must be set.
	TLS *tls.Config
	// Token is the access token, Agent the name of the program; "reprise".
	Token []byte
	Agent string
	// Background lets Dial return before the daemon is reached.
	Background bool
	// DialTimeout bounds one try to reach one address; 3 s.
	DialTimeout time.Duration
	// DeadAfter is how long the daemon may be silent; 3 s.
	DeadAfter time.Duration
	// WriteTimeout bounds every write; 30 s.
	WriteTimeout time.Duration
	// BackoffMin and BackoffMax bound the pause before another try, which
	// grows and is random; 50 ms and 5 s.
	BackoffMin, BackoffMax time.Duration
	// OnTrouble takes why the daemon is not reached, once for each reason in
	// a row.
	OnTrouble func(error)
}

func (c Config) withDefaults() Config {
	set(&c.Agent, "reprise")
	set(&c.DialTimeout, 3*time.Second)
	set(&c.DeadAfter, 3*time.Second)
	set(&c.WriteTimeout, 30*time.Second)
	set(&c.BackoffMin, 50*time.Millisecond)
	set(&c.BackoffMax, 5*time.Second)
	if c.OnTrouble == nil {
		c.OnTrouble = func(error) {}
	}
	return c
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// tlsFor completes the configuration for one address.
func (c *Config) tlsFor(addr string) *tls.Config {
	t := c.TLS.Clone()
	t.NextProtos = []string{transport.ALPN}
	if host, _, err := net.SplitHostPort(addr); err == nil && t.ServerName == "" {
		t.ServerName = host
	}
	return t
}

// Client connects to a daemon, again and again.
type Client struct {
	cfg  Config
	ctx  context.Context // ends with the client
	stop context.CancelFunc
	done chan struct{}
	next int // the address to try first

	mu      sync.Mutex
	link    *link
	changed chan struct{} // closed with every new link
	closing bool
	said    string // the last trouble that was told
}

// ErrClosed is returned by a client that was closed.
var ErrClosed = errors.New("the client is closed")

// errLeft ends a link whose work is done.
var errLeft = errors.New("left")

// Dial makes a client. Without Config.Background it tries every address
// once, and returns the errors of all where none answers.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	if len(cfg.Addrs) == 0 || cfg.TLS == nil {
		return nil, errors.New("a relay needs the address of a daemon, and a TLS configuration")
	}
	for _, a := range cfg.Addrs {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return nil, fmt.Errorf("address %q: use host:port: %w", a, err)
		}
	}
	c := &Client{cfg: cfg.withDefaults(), done: make(chan struct{}), changed: make(chan struct{})}
	c.ctx, c.stop = context.WithCancel(context.Background())
	var first *link
	if !cfg.Background {
		var err error
		if first, err = c.try(ctx); err != nil {
			c.stop()
			return nil, err
		}
	}
	go c.run(first)
	return c, nil
}

// Open opens or resumes a session, as soon as the daemon is reached.
func (c *Client) Open(ctx context.Context, r Request) (*Session, error) {
	l, err := c.await(ctx)
	if err != nil {
		return nil, err
	}
	if n := len(r.Opening) + len(r.Session) + 64; uint64(n) > l.hello.mostFrame {
		return nil, fmt.Errorf("an opening of %d bytes, the daemon takes %d", len(r.Opening), l.hello.mostFrame)
	}
	s, err := l.open(&r)
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

// MaxChunk is the largest framed chunk that can be sent.
const MaxChunk = transport.MaxFrame - 16

// Close takes leave: it waits until the daemon has confirmed all that was
// sent, or ctx ends.
func (c *Client) Close(ctx context.Context) {
	c.mu.Lock()
	l := c.link
	c.closing = true
	c.mu.Unlock()
	if l != nil {
		l.leave()
		select {
		case <-l.ended:
		case <-ctx.Done():
		}
	}
	c.stop()
	<-c.done
}

// await waits for a link on which sessions may be opened.
func (c *Client) await(ctx context.Context) (*link, error) {
	for {
		c.mu.Lock()
		l, changed, closing := c.link, c.changed, c.closing
		c.mu.Unlock()
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
		case <-c.ctx.Done():
			return nil, ErrClosed
		}
	}
}

// run keeps the client connected until it ends.
func (c *Client) run(l *link) {
	defer close(c.done)
	for tries := 0; ; tries++ {
		if l != nil {
			c.serve(l)
			if time.Since(l.born) > c.cfg.DeadAfter {
				tries = 0
			}
		}
		select {
		case <-time.After(c.backoff(tries)):
		case <-c.ctx.Done():
			return
		}
		var err error
		if l, err = c.try(c.ctx); err != nil {
			c.tell(err)
		}
	}
}

// serve runs a link to its end.
func (c *Client) serve(l *link) {
	c.mu.Lock()
	c.link, c.said = l, ""
	close(c.changed)
	c.changed = make(chan struct{})
	closing := c.closing
	c.mu.Unlock()
	if closing {
		l.leave()
	}
	defer context.AfterFunc(c.ctx, func() { l.end(ErrClosed) })()
	err := l.serve()
	c.mu.Lock()
	c.link = nil
	c.mu.Unlock()
	var refusal *transport.Refusal
	if errors.As(err, &refusal) && refusal.Temporary() {
		c.next++
	}
	c.tell(err)
}

// try dials every address once, the one that worked last first.
func (c *Client) try(ctx context.Context) (*link, error) {
	var errs []error
	for i := range c.cfg.Addrs {
		addr := c.cfg.Addrs[(c.next+i)%len(c.cfg.Addrs)]
		l, err := dial(ctx, &c.cfg, addr)
		if err == nil {
			c.next += i
			return l, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", addr, err))
	}
	return nil, errors.Join(errs...)
}

// backoff is a random pause that doubles with each try up to a bound.
func (c *Client) backoff(tries int) time.Duration {
	most := min(c.cfg.BackoffMin<<min(tries, 16), c.cfg.BackoffMax)
	return most/2 + rand.N(most/2+1)
}

// tell passes on why the daemon is not reached, unless it did so just now.
func (c *Client) tell(err error) {
	c.mu.Lock()
	again := c.said == err.Error() || c.closing || c.ctx.Err() != nil
	c.said = err.Error()
	c.mu.Unlock()
	if !again {
		c.cfg.OnTrouble(err)
	}
}
