package ship

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"reprise/format"
)

// begin finds out what the file is, and which session it belongs to.
func (p *parcel) begin(ctx context.Context) error {
	if r := p.s.book.find(p.name); r != nil && (r.Sealed != nil || r.Ended) {
		return p.beginEnded(ctx, r)
	}
	foreign := false
	err := p.with(ctx, func(f *os.File, st fs.FileInfo) (err error) {
		if r := p.s.book.find(p.name); r != nil {
			if err := r.vouch(f, st.Size()); err != nil {
				return err
			}
			p.vouched = r
			if r.Left.fits(st) && p.idle() {
				p.tell(Event{Kind: EventUnfinished, Session: r.Session, Err: errNoEnd})
				return &parkedError{why: errNoEnd}
			}
		}
		foreign, err = p.sniff(f, st)
		if err != nil || foreign {
			return err
		}
		return p.identify(&p.chunks, f)
	})
	if foreign && err == nil {
		err = p.beginForeign(ctx)
	}
	return err
}

// sniff tells whether the file is of a foreign format, and waits for one
// that may still be written.
func (p *parcel) sniff(f *os.File, st fs.FileInfo) (foreign bool, err error) {
	head := make([]byte, min(st.Size(), int64(len(format.Magic))))
	if err := readFull(f, head, 0); err != nil {
		return false, err
	}
	foreign = !native(head)
	if (foreign || len(head) < len(format.Magic)) && !p.idle() {
		return false, &parkedError{why: errNoOpening, until: p.idleAt()}
	}
	if len(head) == 0 {
		return false, fmt.Errorf("%w: the file is empty", format.ErrNotReplay)
	}
	return foreign, nil
}

// beginForeign reads a foreign file into memory, one at a time.
func (p *parcel) beginForeign(ctx context.Context) error {
	select {
	case p.s.heavy <- struct{}{}:
		p.heavy = true
	case <-ctx.Done():
		return ctx.Err()
	}
	err := p.with(ctx, func(f *os.File, st fs.FileInfo) (err error) {
		if p.foreign, err = loadForeign(f, st); err != nil {
			return err
		}
		return p.identify(&p.foreign.chunks, f)
	})
	if err != nil {
		<-p.s.heavy
		p.heavy, p.foreign = false, nil
	}
	return err
}

// identify reads the opening, and finds the file's record. c are its RPLY2
// bytes, f the file itself.
func (p *parcel) identify(c *chunks, f io.ReaderAt) error {
	o, err := readOpening(c)
	if errors.Is(err, errNoOpening) {
		return p.parkUnopened()
	}
	if err != nil {
		return err
	}
	head, err := sumOf(c.src, o.end)
	if err != nil {
		return err
	}
	claim := &claim{session: o.parsed.Session, head: head}
	if claim.session == "" {
		claim.session, claim.named = sessionOf(p.name), true
	}
	vouches := func(r *record) bool { return p.vouch(r, claim, f) == nil }
	r, err := p.s.book.claim(p.name, claim, vouches)
	if err != nil {
		return err
	}
	if err = p.adopt(r, claim, c, o, f); err != nil {
		p.s.book.release(r)
	}
	return err
}

// parkUnopened waits until something is recorded. A session is opened only
// then: what opens it can no longer change.
func (p *parcel) parkUnopened() error {
	if p.idle() {
		return &parkedError{why: errNoOpening}
	}
	return &parkedError{why: errNoOpening, until: p.idleAt()}
}

// vouch tells whether the file is the one that a record is about.
func (p *parcel) vouch(r *record, c *claim, f io.ReaderAt) error {
	if r.Head != c.head {
		return fmt.Errorf("%w: it was replaced, it begins otherwise", ErrReplaced)
	}
	if p.vouched != r {
		if err := r.vouch(f, p.stamp.Size); err != nil {
			return err
		}
		p.vouched = r
	}
	if p.foreign != nil && r.Offset > 0 && r.Offset != p.stamp.Size {
		return fmt.Errorf("%w: it grew after it was taken for whole: it has %d bytes, and %d were shipped", ErrReplaced, p.stamp.Size, r.Offset)
	}
	return nil
}

// adopt takes a record that belongs to the file, if the file still is the
// one.
func (p *parcel) adopt(r *record, c *claim, chunks *chunks, o *opening, f io.ReaderAt) error {
	if err := p.vouch(r, c, f); err != nil {
		return err
	}
	if r.Sealed != nil || r.Ended {
		return p.ended(r)
	}
	src, err := newSource(chunks, o, r.Session)
	if err != nil {
		return err
	}
	r.begin()
	r.Left = nil
	if x := p.foreign; x != nil {
		r.Offset, r.Sum = x.size, x.sum
		if r.Ending == "" {
			r.Ending = x.ending
		}
	} else if err := p.seen.keep(f, max(o.end, r.Offset)); err != nil {
		return err
	}
	if err := p.s.book.save(r, false); err != nil {
		return err
	}
	p.rec, p.src, p.opens = r, src, 0
	return nil
}
