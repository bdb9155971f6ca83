package ship

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reprise/format"
	"reprise/transport"
)

// endedError is why a session ended unfinished for good.
type endedError struct{ why string }

func (e *endedError) Error() string {
	return "the session ends unfinished with what was good: " + e.why
}

// errNoEnd is why a file that does not grow is left unfinished.
var errNoEnd = errors.New("the file has no end mark, and does not grow")

// conclude decides what follows from how far file and session have come.
func (p *parcel) conclude(ctx context.Context, st status) (over bool, err error) {
	now := p.session.Progress()
	if now.Err != nil {
		return false, now.Err
	}
	p.tellDurable(now.DurableTick)
	if st != waiting && st != complete {
		return false, nil
	}
	if p.src.end != nil && st == waiting && !p.idle() {
		return false, nil // the footer is still to come
	}
	if err := p.decideEnding(); err != nil {
		return false, err
	}
	if err := p.compareLengths(now); err != nil {
		return false, err
	}
	switch {
	case p.rec.Ending != "":
		return p.note(now)
	case p.src.end != nil:
		return p.seal(ctx, now)
	case now.Sealed != nil:
		return false, errors.New("the session is sealed at the daemon, and the file has no end")
	case p.idle() && now.Durable >= p.src.seq:
		return p.leave(now)
	}
	return false, nil
}

// decideEnding finds a file that says itself that it is not whole.
func (p *parcel) decideEnding() error {
	end := p.src.end
	if end == nil || end.State == format.EndSealed || p.rec.Ending != "" || p.foreign != nil && p.foreign.whole {
		return nil
	}
	return p.endEarly("unfinished where it comes from: " + end.Reason)
}

// compareLengths refuses a file that is shorter than what the daemon has.
func (p *parcel) compareLengths(now transport.Progress) error {
	last := p.src.seq
	if p.rec.Ending != "" {
		last++ // the note
	}
	if now.Sealed == nil && p.standing.Received > last {
		return fmt.Errorf("%w: the daemon has chunk %d of its session, the file ends with %d: it was truncated", ErrReplaced, p.standing.Received, last)
	}
	return nil
}

// noteKind is the kind of the mark that says why a session ends unfinished.
const noteKind = "ship"

// note sends a last mark with the reason, and is over once all is durable.
func (p *parcel) note(now transport.Progress) (over bool, err error) {
	seq := p.src.seq + 1
	if now.Sealed != nil {
		return false, &endedError{"it is sealed at the daemon, but " + p.rec.Ending}
	}
	if !p.noted && seq > p.standing.Received {
		text := p.rec.Ending[:min(len(p.rec.Ending), format.MaxText)]
		body := format.AppendMark(nil, format.Mark{Tick: p.src.totals().NextTick, Kind: noteKind, Text: strings.ToValidUTF8(text, "")})
		chunk := format.AppendChunk(nil, format.ChunkMark, seq, body)
		if !p.session.Fits(0, len(chunk)) {
			return false, nil
		}
		p.noted = true
		return false, p.session.Send(seq, chunk)
	}
	if now.Durable < seq {
		return false, nil
	}
	p.rec.Ended = true
	if err := p.s.book.save(p.rec, true); err != nil {
		return false, err
	}
	return false, &endedError{p.rec.Ending}
}

// leave lets a session be whose file does not grow. What stands behind the
// last whole chunk may be damaged: then the session ends.
func (p *parcel) leave(now transport.Progress) (over bool, err error) {
	why := errNoEnd
	f, err := format.Open(p.path)
	if err == nil {
		if f.Torn != nil {
			why = fmt.Errorf("%w: %w", errNoEnd, f.Torn)
		}
		f.Close()
	}
	switch {
	case errors.Is(err, format.ErrCorrupt):
		p.wake()
		return false, p.endEarly(err.Error())
	case errors.Is(err, fs.ErrNotExist):
		return false, errGone
	case err != nil && !format.IsDamage(err):
		return false, err
	}
	left := p.stamp
	p.rec.Left = &left
	if err := p.s.book.save(p.rec, false); err != nil {
		return false, err
	}
	p.tell(Event{Kind: EventUnfinished, Tick: now.DurableTick, Err: why})
	return false, &parkedError{why: why}
}

// seal asks for the seal, and compares what the daemon sealed with the file.
func (p *parcel) seal(ctx context.Context, now transport.Progress) (over bool, err error) {
	if p.audited == nil {
		if p.audited, err = p.audit(ctx); err != nil || p.audited == nil {
			p.wake()
			return false, err
		}
	}
	switch {
	case now.Sealed != nil:
		return true, p.sealed(now.Sealed)
	case !p.asked:
		p.asked = true
		p.session.Seal(p.src.totals())
	}
	return false, nil
}

// audit is what a whole file was found to be: the digest that the daemon must
// come to, and how the file looked.
type audit struct {
	digest format.Digest
	stamp  stamp
}

// audit audits a file that is still what was read. Where it states another
// digest than its content has it is damaged, and the session ends early:
// there is no audit then.
func (p *parcel) audit(ctx context.Context) (*audit, error) {
	var d format.Digest
	err := p.look(ctx, func(c *chunks) (err error) {
		if err := p.unchanged(c); err != nil {
			return err
		}
		if sum, err := sumOf(c.src, p.src.tracked); err != nil || sum != hexSum(p.src.sum) {
			return errors.Join(err, fmt.Errorf("%w: it was rewritten while it was shipped", ErrReplaced))
		}
		if d, err = p.src.digest(c.src); err != nil {
			return err
		}
		return p.checkStated(c, d)
	})
	if errors.Is(err, format.ErrCorrupt) {
		return nil, p.endEarly(err.Error())
	}
	return &audit{d, p.stamp}, err
}

// unchanged tells whether a file that is whole has stayed as it is.
func (p *parcel) unchanged(c *chunks) error {
	if p.foreign == nil {
		if p.src.finished && c.size > p.src.tracked {
			return &format.CorruptError{Offset: p.src.tracked, What: fmt.Sprintf("%d bytes after the trailer", c.size-p.src.tracked)}
		}
		return nil
	}
	st, err := os.Stat(p.path)
	if err == nil && !p.stamp.fits(st) {
		err = fmt.Errorf("%w: it changed after it was taken for whole", ErrReplaced)
	}
	return err
}

// checkStated compares the digest with the one that the file states. A file
// that was given an id has another digest than it states, and is checked as
// it stands.
func (p *parcel) checkStated(c *chunks, d format.Digest) error {
	if p.src.stated == nil {
		return nil
	}
	if p.src.renamed {
		f, err := format.NewFile(c.src, c.size)
		if err == nil {
			_, err = f.Check()
		}
		return err
	}
	if *p.src.stated != d {
		return &format.CorruptError{Offset: p.src.endAt, What: fmt.Sprintf("the digest is %v, the content gives %v", *p.src.stated, d)}
	}
	return nil
}

// sealed enters the daemon's seal, if it is of what the file holds.
func (p *parcel) sealed(s *transport.Sealed) error {
	if a := p.audited; s.Digest != a.digest {
		why := fmt.Sprintf("the daemon sealed digest %v, the file's is %v", s.Digest, a.digest)
		p.rec.Ended = true
		return errors.Join(&endedError{why}, p.endEarly(why))
	}
	p.rec.Sealed = &sealedAs{Digest: s.Digest.String(), Name: s.Name, stamp: p.audited.stamp}
	if err := p.s.book.save(p.rec, true); err != nil {
		return err
	}
	p.tell(Event{Kind: EventSealed, Digest: s.Digest, Name: s.Name, Tick: p.src.totals().NextTick})
	p.dispose(p.rec)
	return nil
}

// beginEnded looks at a file whose session has ended before.
func (p *parcel) beginEnded(ctx context.Context, r *record) error {
	return p.with(ctx, func(f *os.File, st fs.FileInfo) error {
		if s := r.Sealed; s != nil && !s.fits(st) {
			if err := p.stillSealed(r, f); err != nil {
				return err
			}
		}
		return p.ended(r)
	})
}

// stillSealed tells whether a file that looks otherwise holds what was
// sealed.
func (p *parcel) stillSealed(r *record, f *os.File) error {
	if err := r.vouch(f, p.stamp.Size); err != nil {
		return err
	}
	if p.stamp.Size != r.Sealed.Size {
		return fmt.Errorf("%w: it has %d bytes, and was sealed with %d", ErrReplaced, p.stamp.Size, r.Sealed.Size)
	}
	r.Sealed.stamp = p.stamp
	return p.s.book.save(r, false)
}

// ended says how the session of a file has ended.
func (p *parcel) ended(r *record) error {
	if r.Ended {
		return &endedError{r.Ending}
	}
	p.dispose(r)
	return errBefore
}

// dispose does with a sealed file what was asked for, if it still is as it
// was when it was sealed.
func (p *parcel) dispose(r *record) {
	if err := p.tryDispose(r); err != nil {
		p.tell(Event{Kind: EventTrouble, Err: fmt.Errorf("the file is sealed, and stays where it is: %w", err)})
	}
}

func (p *parcel) tryDispose(r *record) error {
	if p.s.cfg.Dispose == Keep {
		return nil
	}
	st, err := os.Stat(p.path)
	if err != nil {
		return err
	}
	if !r.Sealed.fits(st) {
		return fmt.Errorf("%w: it was changed at %v", ErrReplaced, st.ModTime().Format(time.RFC3339))
	}
	if p.s.cfg.Dispose == Move {
		err = moveTo(p.path, filepath.Join(p.s.cfg.Dir, SentFolder))
	} else {
		err = os.Remove(p.path)
	}
	if err != nil {
		return err
	}
	return p.s.book.forget(r)
}
