package ship

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"time"

	"reprise/format"
	"reprise/transport"
)

func hexSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// ship opens the session and serves it until it is over, or the connection
// is.
func (p *parcel) ship(ctx context.Context) error {
	if err := p.openSession(ctx); err != nil {
		return err
	}
	defer p.session.Leave()
	for {
		st, err := p.pump(ctx)
		if err != nil {
			return err
		}
		if over, err := p.conclude(ctx, st); over || err != nil {
			return err
		}
		if err := p.wait(ctx, st); err != nil {
			return err
		}
	}
}

func (p *parcel) openSession(ctx context.Context) error {
	p.opens++
	session, err := p.s.client.Open(ctx, transport.RelayRequest{Session: p.rec.Session, Key: p.rec.key(), Epoch: p.rec.Start<<startShift + p.opens,
		Opening: p.src.opening, Wake: p.wake})
	if err != nil {
		return err
	}
	p.session, p.standing, p.noted, p.asked, p.trouble = session, session.Standing(), false, false, ""
	p.safe = p.standing.DurableTick
	if p.standing.Sealed != nil {
		p.standing.Received = math.MaxUint64
		return nil
	}
	p.rewind()
	e := Event{Kind: EventResumed, Tick: p.standing.DurableTick}
	if p.standing.Received == 0 && p.opens == 1 {
		e.Kind = EventStarted
	}
	p.tell(e)
	return nil
}

// rewind goes back to where chunks that the daemon does not have are found:
// to the last place before them, or to the start.
func (p *parcel) rewind() {
	if p.src.seq <= p.standing.Received {
		return
	}
	from := place{at: format.HeaderSize}
	for _, x := range p.places {
		if x.seq <= p.standing.Received {
			from = x
		}
	}
	p.src.rewind(from.at, from.seq)
}

// mark notes the present place, where it is a new one, and forgets those that
// are durable.
func (p *parcel) mark(durable uint64) {
	n := 0
	for n+1 < len(p.places) && p.places[n+1].seq <= durable {
		n++
	}
	p.places = p.places[n:]
	if p.src.at == p.src.tracked && (len(p.places) == 0 || p.places[len(p.places)-1].at < p.src.at) {
		p.places = append(p.places, place{p.src.at, p.src.seq})
	}
}

// status is how far a look at the file came.
type status uint8

const (
	// more: there is more to read.
	more status = iota
	// blocked: there is, but the daemon must confirm first.
	blocked
	// waiting: the file ends, perhaps inside a chunk.
	waiting
	// doubtful: what follows looks damaged.
	doubtful
	// complete: the file ends with its trailer.
	complete
)

// load is what one look gathers to be sent.
type load struct {
	bytes  []byte
	chunks []loaded
}

type loaded struct {
	seq  uint64
	size int
}

// pump reads and sends what there is.
func (p *parcel) pump(ctx context.Context) (status, error) {
	for {
		st, err := p.batch(ctx)
		if err != nil || st != more {
			return st, err
		}
	}
}

// batch looks at the file once.
func (p *parcel) batch(ctx context.Context) (st status, err error) {
	if err := p.session.Progress().Err; err != nil {
		return st, err
	}
	var l load
	p.mark(p.session.Progress().Durable)
	err = p.look(ctx, func(c *chunks) error {
		if st, err = p.gather(c, &l); err != nil && !format.IsDamage(err) {
			return err
		}
		if err != nil && len(l.chunks) == 0 {
			st, err = p.doubtIt(c, err)
		} else if err != nil {
			st, err = more, nil // what is good goes first
		}
		if p.foreign == nil && err == nil {
			err = p.seen.keep(c.src, p.src.tracked)
		}
		return err
	})
	if err != nil {
		return st, err
	}
	return st, p.send(&l)
}

// gather reads chunks as far as they can be sent.
func (p *parcel) gather(c *chunks, l *load) (status, error) {
	for read := 0; read < p.s.cfg.batch; {
		it, err := p.src.peek(c)
		switch {
		case err == io.EOF && p.src.finished:
			return complete, nil
		case err == io.EOF, errors.Is(err, format.ErrTorn):
			p.doubt = ""
			return waiting, nil
		case err != nil:
			return more, err
		}
		wanted := it.framed != nil && it.seq > p.standing.Received
		if wanted && !p.session.Fits(len(l.bytes), len(it.framed)) {
			return blocked, nil
		}
		fresh := p.src.at >= p.src.tracked
		if err := p.src.take(it); err != nil {
			return more, err
		}
		p.doubt = ""
		if fresh && it.framed != nil && it.seq == p.standing.Received && p.src.totals() != p.standing.Totals {
			return more, fmt.Errorf("%w: up to chunk %d it has %+v, the daemon has %+v", ErrReplaced, it.seq, p.src.totals(), p.standing.Totals)
		}
		if wanted {
			l.bytes = append(l.bytes, it.framed...)
			l.chunks = append(l.chunks, loaded{it.seq, len(it.framed)})
		}
		read += len(it.raw)
	}
	return more, nil
}

// doubtIt holds back damage until it has stood for a while: a write that is
// not whole yet can look like it.
func (p *parcel) doubtIt(c *chunks, damage error) (status, error) {
	now := time.Now()
	switch {
	case p.foreign != nil:
		return doubtful, damage
	case p.doubt != damage.Error():
		p.doubt, p.doubted = damage.Error(), now
		return doubtful, nil
	case now.Sub(p.doubted) < p.s.cfg.settle:
		return doubtful, nil
	}
	sum, err := sumOf(c.src, p.src.tracked)
	if err != nil {
		return doubtful, err
	}
	if sum != hexSum(p.src.sum) {
		return doubtful, fmt.Errorf("%w: it was rewritten while it was shipped", ErrReplaced)
	}
	return waiting, p.endEarly(damage.Error())
}

// endEarly decides that the session ends unfinished with what was read.
func (p *parcel) endEarly(why string) error {
	p.rec.Ending = why
	if p.foreign == nil {
		p.rec.Offset, p.rec.Sum = p.src.tracked, hexSum(p.src.sum)
	}
	return p.s.book.save(p.rec, true)
}

// send sends what was gathered, once the record vouches for it.
func (p *parcel) send(l *load) error {
	if p.foreign == nil && p.src.tracked > p.rec.Offset {
		p.rec.Offset, p.rec.Sum = p.src.tracked, hexSum(p.src.sum)
		if err := p.s.book.save(p.rec, false); err != nil {
			return err
		}
	}
	for _, c := range l.chunks {
		if err := p.session.Send(c.seq, l.bytes[:c.size]); err != nil {
			return err
		}
		l.bytes = l.bytes[c.size:]
	}
	return nil
}

// tellInterval is the shortest time between two EventDurable of a file.
const tellInterval = time.Second

// tellDurable tells how far the session is safe.
func (p *parcel) tellDurable(tick format.Tick) {
	if tick > p.safe && time.Since(p.told) >= tellInterval {
		p.safe, p.told = tick, time.Now()
		p.tell(Event{Kind: EventDurable, Tick: tick})
	}
}

// wait waits until there may be something to do. Looks at a file that grows
// keep their distance.
func (p *parcel) wait(ctx context.Context, st status) error {
	timer := time.NewTimer(p.patience(st))
	defer timer.Stop()
	select {
	case <-p.woken:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if st != waiting && st != doubtful {
		return nil
	}
	return p.sleep(ctx, time.Until(p.looked.Add(p.s.cfg.linger)))
}

// patience is how long to wait at most.
func (p *parcel) patience(st status) time.Duration {
	switch {
	case st == doubtful:
		return p.s.cfg.settle
	case st == waiting && p.s.cfg.Follow && !p.idle():
		return time.Until(p.idleAt()) + time.Millisecond
	}
	return p.s.cfg.Rescan
}
