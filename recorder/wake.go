package recorder

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"

	"reprise/format"
)

// A session found at the start sleeps: what its file holds is read when its
// producer comes, or in the background. So a start takes as long as the
// journal is, not as the files are.

// scanned is what a session's file says.
type scanned struct {
	tracker *format.Tracker
	// end is where the chunks of the session end; a footer, or a torn tail,
	// begins there.
	end     int64
	torn    bool
	opening openingNote
	recent  recentChunks
	places  places
	// info is set where a whole footer follows.
	info *SealInfo
}

// wake makes the session ready to go on. The caller holds entry. An error
// that says damage has set the session aside.
func (s *recording) wake() error {
	if s.tracker != nil {
		return nil
	}
	s.mu.Lock()
	state, why := s.state, s.why
	s.mu.Unlock()
	if state == StateQuarantined {
		return fmt.Errorf("%w: %s", format.ErrCorrupt, why)
	}
	found, err := s.scan(s.source(), s.size)
	if format.IsDamage(err) {
		s.r.setAside(s, err)
	}
	if err != nil {
		return err
	}
	s.tracker, s.opening, s.recent, s.places = found.tracker, found.opening, found.recent, found.places
	if found.torn {
		s.r.log.Warn("torn tail cut", "file", s.file(), "bytes", s.size-found.end)
	}
	s.awake(found)
	return nil
}

// awake puts what was read to use.
func (s *recording) awake(found *scanned) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asleep = false
	s.now = standing{size: s.size, seq: s.tracker.Seq(), totals: s.tracker.Totals()}
	if found.info != nil && !s.reopening {
		s.safe, s.info = s.now, found.info
		s.state, s.endState = StateEnding, found.info.State
		s.r.ending.add(s)
		return
	}
	if s.reopening {
		s.reopening = false
		// Its file was made durable when it ended: only what comes from now on
		// is needed of the journal.
		s.covered = s.r.journal.settledAt()
		s.newLine()
	}
	s.cut = found.end < s.size
	s.misplaced = s.misplaced || s.cut || s.folder != liveFolder
	s.cutTo(found.end)
	s.now.size = found.end
	s.safe, s.writtenSteps = s.now, s.now.totals.Steps
	if s.misplaced {
		s.enqueue()
	}
}

// cutTo drops what is behind the session's last chunk. What a start could not
// write is in memory. The caller holds mu.
func (s *recording) cutTo(end int64) {
	s.size, s.durable, s.written = end, end, min(s.written, end)
	keep := s.pending[:end-s.written]
	s.r.pending.Add(int64(len(keep) - len(s.pending)))
	s.pending = keep
}

// scan reads the first size bytes of a session's file. Errors that match
// format.IsDamage mean that it cannot be trusted.
func (s *recording) scan(src io.ReaderAt, size int64) (*scanned, error) {
	head := make([]byte, min(size, format.HeaderSize))
	if err := readFull(src, head, 0); err != nil {
		return nil, err
	}
	if err := format.CheckHeader(head); err != nil {
		return nil, err
	}
	f := &scanned{tracker: format.NewTracker(), end: format.HeaderSize}
	var opening maphash.Hash
	opening.SetSeed(digestSeed)
	chunks := chunkReader{src: src, at: format.HeaderSize, size: size}
	for {
		c, framed, at, err := chunks.next()
		switch {
		case err == io.EOF:
		case errors.Is(err, format.ErrTorn):
			f.torn = true
		case err != nil:
			return nil, placed(err, at)
		case c.Type == format.ChunkEnd:
			f.info, err = footerInfo(&chunks, c, f.tracker)
			if err != nil {
				return nil, placed(err, at)
			}
		default:
			if err := f.add(c, framed, at, &opening); err != nil {
				return nil, placed(err, at)
			}
			if s.r.stopped() {
				return nil, ErrClosed
			}
			continue
		}
		f.opening.digest = opening.Sum64()
		return f, s.complete(f)
	}
}

// complete checks that the file is this session's, and that its metadata is
// there.
func (s *recording) complete(f *scanned) error {
	if f.tracker.Meta() == nil {
		return fmt.Errorf("%w: the metadata is missing", format.ErrCorrupt)
	}
	if id := f.tracker.Meta().Session; id != s.id {
		return fmt.Errorf("%w: the file is one of session %q", format.ErrCorrupt, id)
	}
	if f.info != nil {
		f.info.File = endFolder(f.info.State) + "/" + s.file()
	}
	return nil
}

func placed(err error, at int64) error {
	if !format.IsDamage(err) && !errors.Is(err, format.ErrOrder) && !errors.Is(err, format.ErrLimit) {
		return err
	}
	return fmt.Errorf("%w: chunk at offset %d: %v", format.ErrCorrupt, at, err)
}

// add takes one chunk of the session.
func (f *scanned) add(c format.Chunk, framed []byte, at int64, opening *maphash.Hash) error {
	if c.Seq == 0 && isOpening(c.Type) && f.opening.size == at-format.HeaderSize {
		opening.Write(framed)
		f.opening.size += int64(len(framed))
	}
	if c.Seq > 0 {
		f.places.add(place{seq: c.Seq, tick: f.tracker.Totals().NextTick, offset: at})
		f.recent.add(c.Seq, digestOf(framed))
	}
	if err := f.tracker.Add(c, at); err != nil {
		return err
	}
	f.end = at + int64(len(framed))
	return nil
}

// footerInfo reads the footer behind the end chunk; nil where it is not
// whole, as when the recorder was killed while it wrote it.
func footerInfo(chunks *chunkReader, end format.Chunk, t *format.Tracker) (*SealInfo, error) {
	e, err := format.ParseEnd(end.Body)
	if err != nil {
		return nil, err
	}
	info := &SealInfo{State: e.State, EndedAt: now(), Totals: e.Totals, Seq: t.Seq(), Bytes: chunks.size}
	for {
		c, _, _, err := chunks.next()
		switch {
		case err == io.EOF || errors.Is(err, format.ErrTorn):
			return nil, nil
		case err != nil:
			return nil, err
		case c.Type == format.ChunkDigest:
			copy(info.Digest[:], c.Body)
		case c.Type == format.ChunkTrailer && chunks.at == chunks.size:
			return info, nil
		}
	}
}

// wakeLoop reads the files of the sessions found at the start.
func (r *Recorder) wakeLoop(found []*recording) {
	for _, s := range found {
		if r.stopped() {
			return
		}
		s.entry.Lock()
		err := s.wake()
		s.entry.Unlock()
		if err != nil && !format.IsDamage(err) && !errors.Is(err, ErrClosed) {
			r.log.Error("session cannot be read yet", "session", s.id, "error", err)
		}
	}
}
