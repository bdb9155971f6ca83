package recorder

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// journal is the write-ahead log of all sessions together. Batches of
// records are added and committed by one goroutine; the checkpoint frees
// segments from another.
type journal struct {
	fs       FS
	log      *slog.Logger
	dir      string
	newBytes int64 // size of new segments
	// begins is the number of segments that a start makes, most how many there
	// may be.
	begins, most int
	// batchLimit is how many bytes fit into one batch when all but the
	// present segment are free: records do not fill a segment to its end, but
	// at least to its half.
	batchLimit int64

	// watch is called where the writer goes to the disk, and what it returns
	// where it is back.
	watch func() (over func())

	// The writer's own.
	epoch uint64 // of the last header written
	next  uint64 // sequence number of the next record
	first uint64 // and of the open batch's first one
	buf   []byte // of the open batch, not yet written
	dirty bool   // something of the open batch is written or in buf

	// growing is held while a segment is made.
	growing sync.Mutex
	all     int // segments that there are
	number  int // of the next new segment file

	mu     sync.Mutex
	cur    *segment
	closed []*segment // hold records that session files may lack
	free   []*segment
	// committed is the sequence number behind the last durable record. Of
	// those before settled the sessions know, too.
	committed, settled uint64
	// freed is the sequence number before which no file lacks a record.
	freed   uint64
	written int64     // bytes committed since the last checkpoint
	since   time.Time // when that was
	rate    float64   // bytes a second lately; 0: not known

	checkpoint *checkpointFile
}

const (
	// writePiece is how much is written at once.
	writePiece = 1 << 20
	// runShift: an epoch is the number of the recorder's run, and in the low
	// half the number of the segment use within it.
	runShift = 32
)

// errJournalFull is returned where every segment holds records that session
// files still lack, and there may be no more segments. Nothing is
// acknowledged until a checkpoint frees one.
var errJournalFull = errors.New("the journal is full: session files cannot be written fast enough, or not at all")

// start takes over the segments of a journal that was recovered, makes the
// missing ones, and begins a new run behind sequence number next. Where keep
// is set, session files lack records still: their segments stay.
func (j *journal) start(segs []*segment, next uint64, want demand, keep bool) error {
	run, needed := j.checkpoint.run, next
	if keep {
		needed = j.checkpoint.needed
	}
	for _, s := range segs {
		run = max(run, s.epoch>>runShift)
	}
	segs, err := j.dropHalfMade(segs)
	if err != nil {
		return err
	}
	j.all = len(segs)
	if segs, err = j.fill(segs, want); err != nil {
		return err
	}
	j.free = nil
	for _, s := range segs {
		if keep && s.acked {
			j.closed = append(j.closed, s)
		} else {
			j.free = append(j.free, s)
		}
	}
	j.batchLimit, j.most = batchLimit(segs), max(j.most, len(segs))
	j.next, j.first, j.committed, j.settled = next, next, next, next
	j.freed, j.since = needed, time.Now()
	j.epoch = (run + 1) << runShift
	// From here on nothing of an earlier run is replayed but what is kept.
	return j.checkpoint.write(run+1, needed)
}

// demand is what a journal needs: so many segments, and those that a chunk
// of so many bytes needs.
type demand struct {
	segments int
	chunk    int64
}

// met tells whether segments are enough.
func (d demand) met(segs []*segment) bool {
	return len(segs) >= d.segments && chunkLimit(batchLimit(segs)) >= d.chunk
}

// fill makes the segments that are missing. Where the disk takes no more, those
// that are there will do if they are enough to go round.
func (j *journal) fill(segs []*segment, want demand) ([]*segment, error) {
	was := len(segs)
	for !want.met(segs) {
		if len(segs) >= want.segments && !j.roomFor(want.missing(segs, j.newBytes)) {
			j.log.Warn("the disk is small: larger chunks are refused", "bytes", chunkLimit(batchLimit(segs)), "wanted", want.chunk)
			break
		}
		s, err := j.grow()
		if err != nil && len(segs) >= fewestSegments {
			j.log.Warn("the journal is smaller than it should be", "segments", len(segs), "error", err)
			break
		}
		if err != nil {
			return segs, makeRoom(j.dir, int64(want.segments-len(segs))*j.newBytes, err)
		}
		segs = append(segs, s)
	}
	if n := len(segs) - was; n > 0 {
		j.log.Info("journal segments made", "number", n, "bytes", j.newBytes)
	}
	return segs, nil
}

// missing is about how many segments of a size have to be made for the chunk.
func (d demand) missing(segs []*segment, size int64) int64 {
	lacks := d.chunk - chunkLimit(batchLimit(segs))
	return 1 + lacks/chunkLimit(batchLimit([]*segment{{size: size}, {size: size}}))
}

// roomFor tells whether the disk has room for n more segments, and as much
// again for session files.
func (j *journal) roomFor(n int64) bool {
	free, err := j.fs.Free()
	return err == nil && free/2 >= n*j.newBytes
}

// fewestSegments are enough: one is written while the other is freed.
const fewestSegments = 2

// makeRoom says what a start needs that fails for want of room.
func makeRoom(dir string, bytes int64, err error) error {
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return fmt.Errorf("make room: %d bytes needed in %s: %w", bytes, dir, err)
}

// batchLimit is what a batch may have in a journal of these segments.
func batchLimit(segs []*segment) int64 {
	if len(segs) == 0 {
		return 0
	}
	smallest := segs[0].size
	for _, s := range segs {
		smallest = min(smallest, s.size)
	}
	return int64(len(segs)-1) * (smallest - pageSize) / 2
}

// dropHalfMade removes the segments that a crash kept from being made whole.
func (j *journal) dropHalfMade(segs []*segment) (whole []*segment, err error) {
	for _, s := range segs {
		if s.epoch == 0 && s.size != j.newBytes {
			err = errors.Join(err, s.file.Close(), j.fs.Remove(s.name))
			continue
		}
		whole = append(whole, s)
	}
	return whole, err
}

func (j *journal) grow() (*segment, error) {
	s, err := newSegment(j.fs, j.dir, segmentName(j.number), j.newBytes)
	if err == nil {
		j.number++
		j.all++
	}
	return s, err
}

// take finds a segment to write next.
func (j *journal) take() (*segment, error) {
	if s := j.takeFree(); s != nil {
		return s, nil
	}
	defer j.watch()()
	j.growing.Lock()
	defer j.growing.Unlock()
	if s := j.takeFree(); s != nil {
		return s, nil // made meanwhile
	}
	if j.all >= j.most {
		return nil, errJournalFull
	}
	// Session files need what is left more than the journal does.
	if free, err := j.fs.Free(); err != nil || free < spareSegments*j.newBytes {
		return nil, errors.Join(errJournalFull, err)
	}
	return j.grow()
}

// usual is how many segments the journal grows to by and by: three quarters of
// what it may have. The rest is for when files cannot be written.
func (j *journal) usual() int { return max(j.begins, j.most-j.most/4) }

// growEarly makes one more segment, up to the usual number, before the writer
// needs it: no flush has to wait for the zeros. Where it cannot, it says so,
// and the writer will tell why.
func (j *journal) growEarly() bool {
	j.growing.Lock()
	defer j.growing.Unlock()
	if j.all >= j.usual() {
		return false
	}
	if free, err := j.fs.Free(); err != nil || free < spareSegments*j.newBytes {
		return false
	}
	s, err := j.grow()
	if err != nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.free = append(j.free, s)
	return true
}

// spareSegments is how many segments must fit on the disk for the journal to
// grow by one.
const spareSegments = 4

func (j *journal) takeFree() *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.free) == 0 {
		return nil
	}
	s := j.free[0]
	j.free = j.free[1:]
	return s
}

// room is the most bytes that a record in the present segment can hold.
func (j *journal) room() int64 {
	if j.cur == nil {
		return -1
	}
	return j.cur.size - j.cur.at - int64(len(j.buf)) - recordHeader
}

// fresh tells whether the present segment holds nothing but its header.
func (j *journal) fresh() bool { return j.cur != nil && j.cur.at+int64(len(j.buf)) == pageSize }

// add puts a record into the open batch. One that no segment can hold is
// split: where only a part of it survives, the session's file ends in a torn
// chunk, which is cut. After an error the whole batch has to be given up.
func (j *journal) add(r record) error {
	rest := r.bytes
	for {
		room := j.room()
		switch {
		case int64(len(rest)) <= room:
			r.bytes = rest
			return j.put(r)
		case !j.fresh():
			if err := j.rotate(); err != nil {
				return err
			}
		default:
			piece := r
			piece.bytes = rest[:room]
			if err := j.put(piece); err != nil {
				return err
			}
			rest = rest[room:]
			r.offset += room
		}
	}
}

func (j *journal) put(r record) error {
	r.epoch, r.sequence = j.cur.epoch, j.next
	j.buf = appendRecord(j.buf, &r)
	j.next++
	j.dirty = true
	if len(j.buf) >= writePiece {
		return j.write()
	}
	return nil
}

// write hands the buffered bytes to the disk, without a sync.
func (j *journal) write() error {
	defer j.watch()()
	if _, err := j.cur.file.WriteAt(j.buf, j.cur.at); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	j.cur.at += int64(len(j.buf))
	j.buf = j.buf[:0]
	return nil
}

// rotate goes on in another segment. What the open batch has in the old one
// is made durable first.
func (j *journal) rotate() error {
	if j.cur != nil && j.dirty {
		if err := errors.Join(j.write(), j.sync()); err != nil {
			return err
		}
	}
	s, err := j.take()
	if err != nil {
		return err
	}
	j.epoch++
	s.epoch, s.first, s.batch, s.end, s.at, s.acked = j.epoch, j.next, j.first, math.MaxUint64, 0, false
	j.buf = appendSegmentHeader(j.buf[:0], s.epoch, s.first, s.batch)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.cur != nil {
		j.cur.end = j.next
		j.closed = append(j.closed, j.cur)
	}
	j.cur = s
	return nil
}

func (j *journal) sync() error {
	defer j.watch()()
	if err := j.cur.file.Sync(); err != nil {
		return fmt.Errorf("syncing the journal: %w", err)
	}
	return nil
}

// commit makes the open batch durable.
func (j *journal) commit() error {
	if !j.dirty {
		return nil
	}
	size := j.cur.at + int64(len(j.buf))
	j.buf = append(j.buf, make([]byte, roundUp(size)-size)...)
	n := int64(len(j.buf))
	if err := j.write(); err != nil {
		return err
	}
	if err := j.sync(); err != nil {
		return err
	}
	j.first, j.dirty = j.next, false
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cur.acked = true
	for _, s := range j.closed {
		s.acked = true // also those that the batch filled
	}
	j.committed = j.next
	j.written += n
	return nil
}

// chunkLimit is the most bytes that a session may add at once, so that all
// that waits of it fits into a batch: its opening, its window or one chunk,
// and its footer.
func (j *journal) chunkLimit() int64 { return chunkLimit(j.batchLimit) }

func chunkLimit(batch int64) int64 { return batch / 4 }

// giveUp drops the open batch after a failed write or sync. Nobody can tell
// what of it is on the disk, so its segment takes no more writes before a
// checkpoint has freed it: the batch is added again, to another one.
func (j *journal) giveUp() {
	j.next, j.buf, j.dirty = j.first, j.buf[:0], false
	j.mu.Lock()
	defer j.mu.Unlock()
	tried := j.closed
	if j.cur != nil {
		tried = append(tried, j.cur)
	}
	j.cur, j.closed = nil, nil
	for _, s := range tried {
		if s.end = min(s.end, j.first); s.first < j.first && s.acked {
			j.closed = append(j.closed, s)
		} else {
			j.free = append(j.free, s)
		}
	}
}

// settle says that the sessions know of all that was committed.
func (j *journal) settle() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.settled = j.next
}

// settledAt is the sequence number before which every record is durable and
// known to its session.
func (j *journal) settledAt() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.settled
}

// oldest is the sequence number behind a quarter of the closed segments: to
// free them is enough to go on for a while.
func (j *journal) oldest() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	ends := []uint64{j.settled}
	for _, s := range j.closed {
		ends = append(ends, min(s.end, j.settled))
	}
	slices.Sort(ends)
	return ends[(len(ends)-1)/4]
}

// release frees the segments whose records are all before needed. Session
// files and ledger hold those records durably; first the disk is told so.
func (j *journal) release(needed uint64) error {
	// A slower checkpoint must not take back what a later one has freed.
	needed = max(needed, j.checkpoint.needed)
	if err := j.checkpoint.write(j.checkpoint.run, needed); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var kept []*segment
	for _, s := range j.closed {
		if s.end <= needed {
			j.free = append(j.free, s)
		} else {
			kept = append(kept, s)
		}
	}
	j.closed = kept
	j.rateNow()
	j.freed, j.written, j.since = needed, 0, time.Now()
	return nil
}

// walk reads the records that are durable and not yet freed.
func (j *journal) walk(each func(s *segment, r record, at int64) error) error {
	j.mu.Lock()
	var segs []*segment
	for _, s := range append(j.closed[:len(j.closed):len(j.closed)], j.cur) {
		if s != nil {
			// Copies: the segments of a batch that is given up may be used
			// again at any moment.
			segs = append(segs, &segment{file: s.file, size: s.size, epoch: s.epoch, first: s.first, batch: s.batch})
		}
	}
	from, to := j.checkpoint.needed, j.committed
	j.mu.Unlock()
	_, err := walk(segs, from, to, each)
	return err
}

// holds tells whether there are records that a checkpoint may free.
func (j *journal) holds() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.freed < j.settled
}

// sinceCheckpoint is how many bytes were committed since then; short is set
// where the next segment is not there yet.
func (j *journal) sinceCheckpoint() (n int64, short bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.written, len(j.free) == 0 && len(j.closed) > 0
}

// rateNow takes the bytes since the last checkpoint for the rate, if they are
// enough, or came over long enough, to tell it. The caller holds mu.
func (j *journal) rateNow() {
	if past := time.Since(j.since); j.written >= j.newBytes/4 || past >= time.Second {
		j.rate = float64(j.written) / past.Seconds()
	}
}

// timeFor tells how long it takes until so many bytes have come.
func (j *journal) timeFor(bytes int64) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return time.Duration(min(float64(bytes)/j.rate*float64(time.Second), math.MaxInt64/2))
}

// usualBytes is what the usual segments hold for files that lag behind. Five
// are left out: the one that is written, one that is needed in part, and what
// comes until the next checkpoint, while it syncs, and while a segment is made.
func (j *journal) usualBytes() int64 { return int64(max(j.usual()-5, 1)) * j.newBytes }

// segments counts all segments, and those that hold records.
func (j *journal) segments() (all, used int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	used = len(j.closed)
	if j.cur != nil {
		used++
	}
	return used + len(j.free), used
}

// close releases the files.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := append(append([]*segment(nil), j.closed...), j.free...)
	if j.cur != nil {
		all = append(all, j.cur)
	}
	return errors.Join(closeSegments(all), j.checkpoint.file.Close())
}

// openJournal opens the files of the folder dir, for recovery first.
func openJournal(disk FS, dir string, log *slog.Logger) (*journal, []*segment, error) {
	c, err := openCheckpointFile(disk, filepath.Join(dir, checkpointName))
	if err != nil {
		return nil, nil, err
	}
	segs, number, err := openSegments(disk, dir)
	if err != nil {
		c.file.Close()
		return nil, nil, err
	}
	unwatched := func() (over func()) { return func() {} }
	return &journal{fs: disk, log: log, dir: dir, number: number, checkpoint: c, watch: unwatched}, segs, nil
}
