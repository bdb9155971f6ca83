package transport

import (
	"context"
	"fmt"
)

// List asks the first daemon of addrs that answers for its sessions: those
// that have not ended, and whose id begins with prefix, by id. It needs a
// daemon that speaks version 2. A *Refusal says why there is no listing.
func List(ctx context.Context, addrs []string, cfg ClientConfig, prefix string) ([]Listed, error) {
	a, err := newAddresses(addrs)
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	d := cfg.dialing(versionList)
	return d.list(ctx, a, d.dialQUIC, prefix)
}

func (d *dialing) list(ctx context.Context, a *addresses, dial func(context.Context, string) (carrier, error), prefix string) (sessions []Listed, err error) {
	var p *peer
	err = a.each(ctx, func(addr string) error {
		ctx, cancel := context.WithTimeout(ctx, d.timeout)
		defer cancel()
		c, err := dial(ctx, addr)
		if err == nil {
			p, err = d.greet(ctx, c)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	defer p.c.End(CodeNone, "")
	defer context.AfterFunc(ctx, func() { p.c.End(CodeNone, "") })()
	sessions, err = p.list(d, prefix)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return sessions, err
}

// list asks page by page.
func (p *peer) list(d *dialing, prefix string) (sessions []Listed, err error) {
	ask := list{most: MaxListed, prefix: prefix}
	for more := true; more; {
		ask.number++
		if err := writeWithin(p.c, ask.append(nil), d.write); err != nil {
			return nil, err
		}
		page, err := p.awaitListing(ask.number)
		if err != nil {
			return nil, err
		}
		for _, s := range page.sessions {
			if s.Session <= ask.after {
				return nil, &FrameError{Frame: frameName(typeListing), What: fmt.Sprintf("session %s after %s: ids ascend", s.Session, ask.after)}
			}
			ask.after = s.Session
		}
		sessions = append(sessions, page.sessions...)
		if more = page.more; more && len(page.sessions) == 0 {
			return nil, &FrameError{Frame: frameName(typeListing), What: "no session, and more behind them"}
		}
	}
	return sessions, nil
}

// awaitListing waits for the answer to a list frame.
func (p *peer) awaitListing(number uint64) (listing, error) {
	for {
		typ, body, err := p.r.next()
		switch {
		case err != nil:
			return listing{}, p.readError(err)
		case typ == typeRefused:
			r, err := parseRefused(body)
			if err == nil {
				err = &r.refusal
			}
			return listing{}, err
		case typ == typeAlive, typ >= frameOptional:
			continue
		case typ == typeDrain:
			return listing{}, refuse(CodeDraining, "the daemon is shutting down")
		case typ != typeListing:
			return listing{}, &FrameError{Frame: frameName(typ), What: "a daemon must not send it here"}
		}
		l, err := parseListing(body)
		switch {
		case err != nil:
			return l, err
		case l.number != number:
			return l, &FrameError{Frame: frameName(typ), What: fmt.Sprintf("it answers number %d, asked was %d", l.number, number)}
		case l.code != CodeNone:
			return l, &Refusal{Code: l.code, Text: l.text}
		}
		return l, nil
	}
}
