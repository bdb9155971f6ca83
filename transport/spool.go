package transport

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reprise/format"
)

// A session's spool is three files:
//
//	SESSION.rply      an RPLY2 file: header, opening chunks, the stream's chunks
//	SESSION.tail      what was recorded behind them; see tail.go
//	SESSION.producer  the producer's key, and how often it was started
//
// and, for each keyframe that is not whole in the first, one more: see
// keyfile.go.
//
// Every chunk is written before it is sent, so a daemon never has more than
// the spool. The files are removed once the session is sealed, or closed
// with all of it durable. A process that ends leaves them for Resume; a torn
// tail is cut off there.
const (
	spoolSuffix    = ".rply"
	producerSuffix = ".producer"
	newSuffix      = ".new" // of a producer file that is being written
)

// producer is what the second file holds, as JSON.
type producer struct {
	Version int    `json:"version"`
	Key     string `json:"key"`
	// Start is in the upper bits of every epoch: it grows with each start.
	Start uint64 `json:"start"`
	// Times is Spec.Times.
	Times bool `json:"times"`
	// Unproven is set by a start that resumed the spool, until it has found
	// the daemon to go on where the spool does: the last chunk that was there
	// at that time. What stands behind it was never sent.
	Unproven *uint64 `json:"unproven,omitempty"`
	// Continued is set for a stream that Continue began.
	Continued *continued `json:"continued,omitempty"`
}

// continued is where such a stream begins: at a tick, behind the chunks and
// ticks that the daemon had.
type continued struct {
	At        format.Tick   `json:"at"`
	After     uint64        `json:"after"`
	Counted   format.Totals `json:"counted"`
	CountFrom format.Tick   `json:"count_from"`
}

const producerVersion = 1

// startShift leaves the lower bits of an epoch to the connections of one
// start: a million of them.
const startShift = 20

// nextStart numbers a start so that it is above every earlier one, also of a
// process that kept nothing but its key. It counts milliseconds: a start
// within a second of one that has reconnected must be above that, too.
func nextStart(last uint64) uint64 { return max(last+1, uint64(time.Now().UnixMilli())) }

// spool is the open spool file of one session.
type spool struct {
	dir, id string
	f       *os.File
	end     int64 // where the next chunk goes
	limit   int64
	kept    producer // what the producer file has
	tail    *tail    // mapped until the spool is retired; nil for none
	// broken is set once a write failed: the recording goes on in memory. It
	// is guarded by the recording's lock.
	broken bool
}

func (s *spool) path(suffix string) string { return filepath.Join(s.dir, s.id+suffix) }

// createSpool begins the spool of a new session.
func createSpool(dir, id string, limit int64, opening []byte, p producer) (*spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &spool{dir: dir, id: id, limit: limit}
	f, err := os.OpenFile(s.path(spoolSuffix), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: %s exists: resume it, or remove it", ErrSpooled, s.path(spoolSuffix))
	}
	if err != nil {
		return nil, err
	}
	s.f = f
	if err := s.begin(opening, p); err != nil {
		s.retire(true)
		return nil, err
	}
	return s, nil
}

func (s *spool) begin(opening []byte, p producer) error {
	if err := lockFile(s.f); err != nil {
		return err
	}
	if err := s.writeProducer(p); err != nil {
		return err
	}
	_, err := s.append(append(format.AppendHeader(nil), opening...))
	return err
}

func (s *spool) writeProducer(p producer) error {
	p.Version = producerVersion
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	// The temporary file has a fixed name, so that a process that dies here
	// leaves one at most, and retire finds it.
	temp := s.path(producerSuffix + newSuffix)
	if err := writeSynced(temp, append(b, '\n')); err != nil {
		return err
	}
	if err := os.Rename(temp, s.path(producerSuffix)); err != nil {
		return err
	}
	s.kept = p
	return nil
}

// prove says that the daemon goes on where the spool does.
func (s *spool) prove() error {
	p := s.kept
	p.Unproven = nil
	return s.writeProducer(p)
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func readProducer(path string) (p producer, key [KeySize]byte, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return p, key, err
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return p, key, fmt.Errorf("%s: %w", path, err)
	}
	if p.Version != producerVersion {
		return p, key, fmt.Errorf("%s has version %d, this program reads version %d", path, p.Version, producerVersion)
	}
	raw, err := hex.DecodeString(p.Key)
	if err != nil || len(raw) != KeySize {
		return p, key, fmt.Errorf("%s: the key is not %d hex digits", path, 2*KeySize)
	}
	return p, [KeySize]byte(raw), nil
}

// openSpool opens what an earlier process left.
func openSpool(dir, id string, limit int64) (*spool, error) {
	s := &spool{dir: dir, id: id, limit: limit}
	f, err := os.OpenFile(s.path(spoolSuffix), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	s.f = f
	if err := lockFile(f); err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

// append writes chunks behind the others and returns their place.
func (s *spool) append(b []byte) (at int64, err error) {
	at = s.end
	if at+int64(len(b)) > s.limit {
		return at, fmt.Errorf("%w: the spool of session %s would exceed %d bytes", format.ErrLimit, s.id, s.limit)
	}
	if _, err := s.f.WriteAt(b, at); err != nil {
		return at, err
	}
	s.end += int64(len(b))
	return at, nil
}

// read appends size bytes from offset at to dst.
func (s *spool) read(dst []byte, at int64, size int) ([]byte, error) {
	n := len(dst)
	dst = append(dst, make([]byte, size)...)
	_, err := s.f.ReadAt(dst[n:], at)
	return dst, err
}

// cutTail cuts the torn tail off. Where whole chunks follow it, it is not
// the end of a process that tore it: nothing is cut then. A stream from its
// beginning can be checked for that.
func (s *spool) cutTail(end int64, fromStart bool) error {
	st, err := s.f.Stat()
	if err != nil {
		return err
	}
	if end < st.Size() && fromStart {
		if _, err := format.NewFile(s.f, st.Size()); errors.Is(err, format.ErrCorrupt) {
			return fmt.Errorf("%s: %w: repair it to keep what is good", s.path(spoolSuffix), err)
		}
	}
	s.end = end
	return s.f.Truncate(end)
}

// retire closes the files, and removes them where all is delivered.
func (s *spool) retire(remove bool) error {
	err := s.f.Close()
	if s.tail != nil {
		err = errors.Join(err, s.tail.release())
	}
	if remove {
		err = errors.Join(err, s.removeKeyframes(), removeExisting(s.path(tailSuffix)), os.Remove(s.path(spoolSuffix)),
			removeExisting(s.path(producerSuffix)), removeExisting(s.path(producerSuffix+newSuffix)))
	}
	return err
}

func removeExisting(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// spooled lists the sessions of a spool folder.
func spooled(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), spoolSuffix)
		if ok && e.Type().IsRegular() && format.ValidSession(id) == nil {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// history is what a spool file says.
type history struct {
	meta    *format.Metadata
	opening []byte
	// first is the sequence number of chunks[0], or of the first to come.
	first  uint64
	chunks []*chunk
	end    int64 // of the last whole chunk

	begin     format.Tick // what the stream begins with
	next      format.Tick
	counted   format.Totals
	countFrom format.Tick
	lastTime  int64
	hashed    hashed
	notes     notes
	gaps      []format.Gap
	gapBytes  int
	// parts holds how many bytes are missing of each keyframe, by id.
	parts  map[uint64]uint64
	lastID uint64
}

// scan reads the whole file. It stops at a torn tail, which a process that
// was killed leaves. Ticks before countFrom are not counted.
func (s *spool) scan(countFrom format.Tick) (*history, error) {
	r := &chunkScanner{src: s.f}
	if err := r.header(); err != nil {
		return nil, err
	}
	h := &history{countFrom: countFrom, parts: map[uint64]uint64{}, notes: notes{present: map[uint64]bool{}}}
	for {
		c, framed, at, err := r.next()
		if err == io.EOF {
			h.end = at
			return h, h.complete()
		}
		if err == nil {
			err = h.follow(c, framed, at)
		}
		if err != nil {
			return nil, fmt.Errorf("%s at offset %d: %w", s.path(spoolSuffix), at, err)
		}
	}
}

// half counts the keyframes that are not whole.
func (h *history) half() (n int) {
	for _, missing := range h.parts {
		if missing > 0 {
			n++
		}
	}
	return n
}

// last is the number of the last chunk, and the tick that is due behind it.
func (h *history) last() (seq uint64, next format.Tick) {
	return h.first + uint64(len(h.chunks)) - 1, h.next
}

// upTo is last for the history up to a chunk.
func (h *history) upTo(seq uint64) (uint64, format.Tick) {
	last, next := h.last()
	switch {
	case seq >= last:
		return last, next
	case seq < h.first:
		return h.first - 1, h.begin
	}
	return seq, h.chunks[seq-h.first].next
}

func (h *history) complete() error {
	if h.meta == nil {
		return fmt.Errorf("the spool of the session ends before its metadata: %w", format.ErrTorn)
	}
	if h.first == 0 {
		h.first = 1
	}
	return nil
}

// follow takes the next chunk.
func (h *history) follow(c format.Chunk, framed []byte, at int64) error {
	if c.Seq == 0 {
		h.opening = append(h.opening, framed...)
	} else {
		if h.first == 0 {
			h.first = c.Seq
		}
		if want := h.first + uint64(len(h.chunks)); c.Seq != want {
			return &format.OrderError{What: "chunk", Want: want, Got: c.Seq}
		}
		h.chunks = append(h.chunks, &chunk{size: len(framed), spooled: true, at: at, part: c.Type == format.ChunkKeyframe})
	}
	if h.meta == nil && c.Type != format.ChunkMeta {
		return fmt.Errorf("%w: %v chunk before the metadata", format.ErrOrder, c.Type)
	}
	if err := h.enter(c); err != nil {
		return err
	}
	if n := len(h.chunks); c.Seq > 0 {
		h.chunks[n-1].next = h.next
	}
	return nil
}

func (h *history) enter(c format.Chunk) error {
	switch c.Type {
	case format.ChunkMeta:
		m, err := format.ParseMeta(c.Body)
		if err == nil {
			h.meta, h.next, h.hashed = m, m.FirstTick, newHashed(m.HashBytes)
		}
		return err
	case format.ChunkTicks:
		return h.enterTicks(c.Body)
	case format.ChunkHashes:
		return h.enterHashes(c.Body)
	case format.ChunkGap:
		g, err := format.ParseGap(c.Body)
		h.gaps, h.next = append(h.gaps, g), g.Last+1
		h.gapBytes += len(c.Body)
		return err
	case format.ChunkPlayers:
		return h.enterPlayers(c.Body)
	case format.ChunkMark:
		h.notes.markBytes += len(c.Body)
		h.notes.markCount++
	case format.ChunkReports:
		reports, err := format.ParseReports(c.Body)
		h.notes.reportCount += uint64(len(reports))
		return err
	case format.ChunkKeyframe:
		return h.enterPart(c.Body)
	}
	return nil
}

func (h *history) enterTicks(body []byte) error {
	b, err := format.ParseBatch(body, h.meta.HashBytes)
	if err != nil {
		return err
	}
	h.next = b.Next()
	if b.HasTimes {
		h.lastTime = b.LastTime
	}
	r, t := b.Reader(), format.TickRecord{}
	for r.Next(&t) {
		h.hashed.open(t.Tick)
		if t.Tick >= h.countFrom {
			h.counted.Ticks++
			h.counted.Steps += uint64(t.Steps)
		}
		if t.Hash != nil {
			h.enterHash(t.Tick)
		}
	}
	return nil
}

func (h *history) enterHash(t format.Tick) {
	h.hashed.set(t)
	if t >= h.countFrom {
		h.counted.Hashes++
	}
}

func (h *history) enterHashes(body []byte) error {
	hashes, err := format.ParseHashes(body, h.meta.HashBytes)
	for _, t := range hashes {
		h.enterHash(t.Tick)
	}
	return err
}

func (h *history) enterPlayers(body []byte) error {
	salt, events, err := format.ParsePlayers(body)
	h.notes.salted = h.notes.salted || len(salt) > 0
	for _, e := range events {
		h.notes.present[e.ID] = !e.Leave
	}
	h.notes.playerBytes += len(body)
	h.notes.playerCount += uint64(len(events))
	return err
}

func (h *history) enterPart(body []byte) error {
	p, err := format.ParseKeyframePart(body)
	if err != nil {
		return err
	}
	h.lastID = max(h.lastID, p.ID)
	h.parts[p.ID] = p.Total - p.Offset - uint64(len(p.Data))
	return nil
}

// chunkScanner reads the chunks of a file in order.
type chunkScanner struct {
	src io.ReaderAt
	buf []byte
	at  int64 // of buf[0]
}

const scanStep = 64 << 10

func (r *chunkScanner) header() error {
	if err := r.more(format.HeaderSize); err != nil {
		return err
	}
	if err := format.CheckHeader(r.buf); err != nil {
		return err
	}
	r.skip(format.HeaderSize)
	return nil
}

func (r *chunkScanner) skip(n int) {
	r.buf = r.buf[n:]
	r.at += int64(n)
}

// more reads on until the buffer has n bytes or the file ends.
func (r *chunkScanner) more(n int) error {
	if len(r.buf) >= n {
		return nil
	}
	b := make([]byte, n)
	have := copy(b, r.buf)
	got, err := r.src.ReadAt(b[have:], r.at+int64(have))
	r.buf = b[:have+got]
	if err == io.EOF {
		return nil
	}
	return err
}

// next returns the next chunk with its bytes and place; io.EOF at the end of
// the last whole one. Both are valid until the next call.
func (r *chunkScanner) next() (format.Chunk, []byte, int64, error) {
	for want := scanStep; ; want *= 2 {
		c, n, err := format.ParseChunk(r.buf)
		if err == nil {
			framed, at := r.buf[:n], r.at
			r.skip(n)
			return c, framed, at, nil
		}
		if !errors.Is(err, format.ErrTorn) {
			return c, nil, r.at, err
		}
		before := len(r.buf)
		if err := r.more(max(want, before+1)); err != nil {
			return c, nil, r.at, err
		}
		if len(r.buf) == before {
			return c, nil, r.at, io.EOF
		}
	}
}
