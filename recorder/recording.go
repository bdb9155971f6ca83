package recorder

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	"reprise/format"
)

// State says where a session is in its life.
type State uint8

// States of a session that the recorder holds.
const (
	// StateLive: its producer is connected.
	StateLive State = 1
	// StateDetached: the connection went away, and may come back.
	StateDetached State = 2
	// StateEnding: its end is decided, its file is being finished.
	StateEnding State = 3
	// StateQuarantined: its file cannot be trusted; nothing touches it.
	StateQuarantined State = 4
	// StateSealed and StateUnfinished are those of a session that has ended.
	StateSealed     State = 5
	StateUnfinished State = 6
)

// String gives the word that lists and logs use.
func (s State) String() string {
	switch s {
	case StateLive:
		return "live"
	case StateDetached:
		return "detached"
	case StateEnding:
		return "ending"
	case StateQuarantined:
		return "quarantined"
	case StateSealed:
		return "sealed"
	case StateUnfinished:
		return "unfinished"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// recording is one session that has not ended. Locks are taken in the order
// entry, fileMu, mu. No producer is called back while fileMu or mu is held.
type recording struct {
	// What every chunk and every flush touch stands together: of many thousand
	// sessions none is in the processor's cache when its chunk comes.
	r *Recorder

	// entry serialises what its producers do. It may be held while the
	// session's file is read.
	entry sync.Mutex
	// tracker is nil in a session found at the start, until it is woken.
	tracker *format.Tracker
	places  places
	opening openingNote

	// mu guards what is below, up to fileMu; it is held for short.
	mu    sync.Mutex
	state State
	// misplaced is set where the file must be moved to the live folder, and
	// cut at written, before it is written.
	misplaced         bool
	cut               bool // journal that the file ends at durable
	queued            bool // for the flush
	inWaiting, inFull bool // for the file writers
	unwritable        bool // the last write to the file failed: no hurry
	stalled           bool // its producer knows that the flush does not come
	attached          *Session
	notices           []string
	// Three places in the file: written bytes are in the file, durable ones
	// in the journal at least, and size counts those accepted.
	written, durable, size int64
	// pending holds the bytes from written to size, usually no more than usual.
	pending []byte
	usual   int
	// covered is a sequence number of the journal: the file has all before it.
	covered uint64
	// line waits for the ledger, by way of the journal; flyingLine is the one
	// in the flush under way.
	line, flyingLine *entry
	// number stands for the session in the journal; it never changes.
	number uint64
	// now is where the session stands at size, safe where it does at durable,
	// and flying where it did at the flush under way.
	now, safe, flying standing
	pace              pace

	// writtenSteps are those of the ticks before written.
	writtenSteps uint64
	// epoch is the producer's.
	epoch uint64
	// why is the reason of a quarantine, or of an unfinished end.
	why string
	// endState is how it ends, while it does. ended is set once that is to
	// stand in the ledger: no line behind it may call the session open again.
	endState format.EndState
	ended    *SealInfo
	deadline time.Time // while detached
	asleep   bool      // see wake

	// fileMu serialises what changes the session's file. It is held while
	// the disk works.
	fileMu sync.Mutex
	// folder is where the file is; it changes under fileMu and mu together.
	folder string

	id       string
	start    string
	producer producerID

	// What follows is guarded by entry, as are tracker, places and opening.

	// reopening is set while an unfinished session is gone on with.
	reopening bool
	// overQuota is set where the last chunk was refused for the session's size.
	overQuota bool
	// info is set once the file's footer is made.
	info   *SealInfo
	recent recentChunks
}

// standing is a place in a session.
type standing struct {
	size   int64
	seq    uint64
	totals format.Totals
}

// openingNote remembers the opening as it was sent.
type openingNote struct {
	size   int64
	digest uint64
}

// identify digests a producer's key.
func identify(key [16]byte) producerID {
	sum := sha256.Sum256(key[:])
	return producerID(sum[:16])
}

func (s *recording) entryNow() *entry {
	return &entry{number: s.number, id: s.id, start: s.start, producer: s.producer, epoch: s.epoch, end: s.ended}
}

// file is the name of the session's file, in whatever folder.
func (s *recording) file() string { return fileName(s.id, s.start) }

// keep takes chunks that the tracker has passed: they are accepted. The
// caller holds entry.
func (s *recording) keep(p format.Parsed, framed []byte) {
	if p.Chunk.Seq > 0 {
		s.places.add(place{seq: p.Chunk.Seq, tick: s.tracker.Totals().NextTick, offset: s.size})
	}
	s.tracker.Apply(p, s.size)
	notices := s.tracker.TakeNotices()
	for _, n := range notices {
		s.r.log.Warn(n, "session", s.id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notices = append(s.notices, notices...)
	s.hold(framed)
	s.now = standing{size: s.size, seq: s.tracker.Seq(), totals: s.tracker.Totals()}
	s.enqueue()
}

// hold adds bytes to pending. Once the file was written it takes half of what
// that had, and then all of it: append would make a dozen ever larger slices
// meanwhile. The caller holds mu.
func (s *recording) hold(b []byte) {
	if need := len(s.pending) + len(b); need > cap(s.pending) {
		grown := make([]byte, len(s.pending), max(need, 2*cap(s.pending), s.usual/2))
		copy(grown, s.pending)
		s.pending = grown
	}
	s.pending = append(s.pending, b...)
	s.size += int64(len(b))
	s.r.pending.Add(int64(len(b)))
}

// enqueue has the next flush look at the session. The caller holds mu.
func (s *recording) enqueue() {
	if !s.queued {
		s.queued = true
		s.r.queue.add(s)
	}
}

// newLine queues the session's line for the ledger as it stands now. It is
// durable with the chunks that are queued now, or before them. The caller
// holds mu.
func (s *recording) newLine() {
	s.line = s.entryNow()
	s.enqueue()
}

// takeFlight appends the records that make the session durable as it stands
// now. The line stands behind the chunks: where a new session's line is
// found, its opening is. The bytes never change: pending only grows, and
// loses its front by being copied. The caller holds mu.
func (s *recording) takeFlight(records []record) []record {
	s.flying, s.flyingLine = s.now, s.line
	from, to := s.durable-s.written, s.size-s.written
	if from < to || s.cut {
		records = append(records, record{kind: recordData, session: s.number, offset: s.durable, bytes: s.pending[from:to:to]})
	}
	if s.line != nil {
		records = append(records, record{kind: recordLedger, session: s.number, bytes: appendEntry(nil, s.line)})
	}
	return records
}

// land says that the flight is durable, and what to queue the file for. The
// records of the flight stand in the journal behind settled.
func (s *recording) land(settled uint64) fileWish {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written == s.durable && !s.misplaced {
		s.covered = settled
	}
	s.durable, s.safe, s.cut, s.stalled = s.flying.size, s.flying, false, false
	if s.flyingLine != nil {
		s.r.ledger.add(s.flyingLine)
	}
	if s.line == s.flyingLine {
		s.line = nil
	}
	s.flyingLine = nil
	s.queued = s.size > s.durable || s.line != nil
	if s.queued {
		s.r.queue.add(s)
	}
	return s.wantsFile()
}

// dropWritten says that n more bytes are in the file, which has so many
// steps now, that it is in its place if it was replaced, and that it lacks no
// record of the journal before covers.
func (s *recording) dropWritten(n int, steps uint64, replaced bool, covers uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.covered = covers
	s.misplaced, s.unwritable = s.misplaced && !replaced, false
	s.written += int64(n)
	s.r.pending.Add(-int64(n))
	s.writtenSteps = max(s.writtenSteps, steps)
	s.usual = min(n+n/8, int(s.r.cfg.TailBytes))
	rest := s.pending[n:]
	s.pending = nil
	if len(rest) > 0 {
		s.pending = slices.Clone(rest)
	}
}

// lacks tells whether the file lacks records of the journal, and where the
// first of them may stand.
func (s *recording) lacks() (from uint64, lacks bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.covered, s.written < s.durable || s.misplaced
}

// hashBytes is the width of the session's hashes. The metadata never
// changes once the tracker has it.
func (s *recording) hashBytes() int { return s.tracker.Meta().HashBytes }

// held is how many bytes the session has in memory, and how many of them,
// but for the opening, wait for the journal.
func (s *recording) held() (all, waiting int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size - s.written, s.size - max(s.durable, format.HeaderSize+s.opening.size)
}
