package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"
)

// dialing is how a program reaches a daemon, whatever it wants there.
type dialing struct {
	tls   *tls.Config
	token []byte
	agent string
	// lowest is the oldest version of the protocol that will do.
	lowest uint64
	// timeout bounds one try, silence how long the daemon may be silent
	// after it, write every write.
	timeout, silence, write time.Duration
	// socket makes the socket of a connection.
	socket func(daemon *net.UDPAddr) (net.PacketConn, error)
}

// peer is a daemon that has answered hello.
type peer struct {
	c  carrier
	r  *frameReader
	ok helloOK
}

// greet says hello and waits for the answer.
func (d *dialing) greet(ctx context.Context, c carrier) (*peer, error) {
	p := &peer{c: c, r: newFrameReader(c)}
	stop := context.AfterFunc(ctx, func() { c.End(CodeNone, "") })
	defer stop()
	if err := p.hello(d); err != nil {
		c.End(endCode(err), err.Error())
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	p.r.silence = d.silence
	return p, nil
}

func (p *peer) hello(d *dialing) error {
	h := hello{low: d.lowest, high: Version, heartbeat: min(d.silence/3, MaxHeartbeat), token: d.token, agent: cutText(d.agent, MaxAgent)}
	if len(h.token) > MaxToken {
		return fmt.Errorf("a token of %d bytes, the most is %d", len(h.token), MaxToken)
	}
	if err := writeWithin(p.c, h.append(nil), d.timeout); err != nil {
		return err
	}
	p.r.silence = d.timeout
	typ, body, err := p.r.next()
	switch {
	case err != nil:
		return err
	case typ == typeRefused:
		r, err := parseRefused(body)
		if err != nil {
			return err
		}
		return &r.refusal
	case typ != typeHelloOK:
		return &FrameError{Frame: frameName(typ), What: "the first frame must be hello-ok"}
	}
	p.ok, err = parseHelloOK(body)
	if err == nil && (p.ok.version < d.lowest || p.ok.version > Version) {
		err = refuse(CodeVersion, "the daemon chose version %d, this client speaks %d to %d", p.ok.version, d.lowest, Version)
	}
	return err
}

// readError says what it means that no frame could be read.
func (p *peer) readError(err error) error {
	switch {
	case silent(err):
		return fmt.Errorf("the daemon was silent for %v: %w", p.r.quiet(), err)
	case errors.Is(err, io.EOF):
		return errors.New("the daemon closed the connection")
	}
	return err
}

// checkClosed judges the daemon's last frame: nil where it answers this side's
// own wish to leave.
func checkClosed(body []byte, leaving, draining bool) error {
	if err := parseEmpty(typeClosed, body); err != nil {
		return err
	}
	switch {
	case !leaving:
		return &FrameError{Frame: frameName(typeClosed), What: "it answers no close"}
	case draining:
		return refuse(CodeDraining, "the daemon is shutting down")
	}
	return nil
}

// endCode is the code to end a connection with after an error of the peer.
func endCode(err error) Code {
	var r *Refusal
	switch {
	case errors.Is(err, ErrFrame):
		return CodeProtocol
	case errors.As(err, &r):
		return CodeNone
	case silent(err):
		return CodeSilent
	}
	return CodeNone
}

// addresses are those of a program's daemons.
type addresses struct {
	list []string
	next int // the one to try first
}

func newAddresses(list []string) (*addresses, error) {
	if len(list) == 0 {
		return nil, errors.New("a client needs the address of a daemon")
	}
	for _, a := range list {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return nil, fmt.Errorf("address %q: use host:port: %w", a, err)
		}
	}
	return &addresses{list: list}, nil
}

// each tries every address once, the one that worked last first, until one
// does.
func (a *addresses) each(ctx context.Context, try func(addr string) error) error {
	var errs []error
	for i := range a.list {
		n := (a.next + i) % len(a.list)
		err := try(a.list[n])
		if err == nil {
			a.next = n
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", a.list[n], err))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// turn puts the next address first.
func (a *addresses) turn() { a.next = (a.next + 1) % len(a.list) }

// backoff is a random pause that doubles with each try up to a bound.
func backoff(least, most time.Duration, tries int) time.Duration {
	bound := least << min(tries, 20)
	if bound > most || bound <= 0 {
		bound = most
	}
	return bound/2 + rand.N(bound/2+1)
}
