package recorder

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"reprise/format"
)

// The ledger is a text file: one line for each change of a session's life,
// appended, never rewritten. It outlives the sessions' files, so that no id
// is ever used twice.
//
//	1 17 m-42 20261129T190259Z 8a51…c2 3 open 51f0a3c4
//	1 17 m-42 20261129T190259Z 8a51…c2 3 sealed 1795978979000000 7200 7200 9120 240 118 61530 9f86…08 0c1d22e9
//
// Fields, separated by one space: version, number, id, start, digest of the
// producer's key, its epoch, state; behind sealed and unfinished the end in
// microseconds since 1970, next tick, ticks, steps, hashes, last sequence
// number, bytes, and content digest; last the CRC-32C of all before it, in
// hex. The last line of an id counts.

// Words of the ledger are stored. They must not change.
const (
	ledgerVersion    = "1"
	ledgerOpen       = "open"
	ledgerSealed     = "sealed"
	ledgerUnfinished = "unfinished"

	openFields = 8
	endFields  = 16
)

// producerID is what the ledger keeps of a producer's key: not enough to
// take its sessions over.
type producerID [16]byte

// entry is one line of the ledger: a session as it stands.
type entry struct {
	number   uint64
	id       string
	start    string
	producer producerID
	epoch    uint64
	// end is nil while the session has not ended.
	end *SealInfo
}

// SealInfo is what is known of a session that has ended.
type SealInfo struct {
	// State is format.EndSealed or format.EndUnfinished.
	State format.EndState
	// File is the name of its file below the data folder when it ended.
	File string
	// EndedAt is when its file was finished.
	EndedAt time.Time
	format.Totals
	// Seq is the last sequence number of the producer's stream.
	Seq uint64
	// Bytes is the size of the file, Digest its content digest.
	Bytes  int64
	Digest format.Digest
}

// file is the name of the session's file, in whatever folder.
func (e *entry) file() string { return fileName(e.id, e.start) }

func fileName(id, start string) string { return "room-" + id + "-" + start + ".rply" }

// live tells whether the session has not ended.
func (e *entry) live() bool { return e.end == nil }

// appendEntry appends the line of e, without a newline.
func appendEntry(dst []byte, e *entry) []byte {
	n := len(dst)
	dst = fmt.Appendf(dst, "%s %d %s %s %x %d ", ledgerVersion, e.number, e.id, e.start, e.producer, e.epoch)
	if e.live() {
		dst = append(dst, ledgerOpen+" "...)
	} else {
		s := e.end
		dst = fmt.Appendf(dst, "%s %d %d %d %d %d %d %d %x ", endWord(s.State), s.EndedAt.UnixMicro(), s.NextTick, s.Ticks, s.Steps, s.Hashes, s.Seq, s.Bytes, s.Digest[:])
	}
	return fmt.Appendf(dst, "%08x", crc32.Checksum(dst[n:], castagnoli))
}

func endWord(s format.EndState) string {
	if s == format.EndSealed {
		return ledgerSealed
	}
	return ledgerUnfinished
}

// errLedgerLine is returned for a line that is not whole, or was changed.
var errLedgerLine = errors.New("not a whole line of the ledger")

// parseEntry reads one line, without its newline.
func parseEntry(line []byte) (*entry, error) {
	cut := bytes.LastIndexByte(line, ' ') + 1
	f := strings.Split(string(line), " ")
	sum, err := strconv.ParseUint(f[len(f)-1], 16, 32)
	if err != nil || uint32(sum) != crc32.Checksum(line[:cut], castagnoli) || len(f) < openFields {
		return nil, errLedgerLine
	}
	if f[0] != ledgerVersion {
		return nil, fmt.Errorf("%w: ledger line of version %q", format.ErrNewer, f[0])
	}
	p := fieldParser{f: f[1:]}
	e := &entry{number: p.number(), id: p.text(), start: p.text()}
	p.hex(e.producer[:])
	e.epoch = p.number()
	switch state := p.text(); {
	case state == ledgerOpen && len(f) == openFields:
	case state == ledgerSealed && len(f) == endFields:
		e.end = &SealInfo{State: format.EndSealed}
	case state == ledgerUnfinished && len(f) == endFields:
		e.end = &SealInfo{State: format.EndUnfinished}
	default:
		return nil, fmt.Errorf("%w: ledger line of state %q with %d fields", format.ErrNewer, state, len(f))
	}
	if e.end != nil {
		p.end(e)
	}
	if p.err != nil || !bytes.Equal(appendEntry(nil, e), line) {
		return nil, errLedgerLine
	}
	return e, nil
}

// fieldParser reads fields in order; the first failure stays.
type fieldParser struct {
	f   []string
	err error
}

func (p *fieldParser) text() string {
	s := p.f[0]
	p.f = p.f[1:]
	return s
}

func (p *fieldParser) number() uint64 {
	v, err := strconv.ParseUint(p.text(), 10, 64)
	p.err = errors.Join(p.err, err)
	return v
}

func (p *fieldParser) hex(to []byte) {
	b, err := hex.DecodeString(p.text())
	if err == nil && len(b) != len(to) {
		err = fmt.Errorf("%d bytes where %d are due", len(b), len(to))
	}
	copy(to, b)
	p.err = errors.Join(p.err, err)
}

func (p *fieldParser) end(e *entry) {
	s := e.end
	s.EndedAt = time.UnixMicro(int64(p.number())).UTC()
	s.NextTick = format.Tick(p.number())
	s.Ticks, s.Steps, s.Hashes, s.Seq = p.number(), p.number(), p.number(), p.number()
	s.Bytes = int64(p.number())
	p.hex(s.Digest[:])
	s.File = endFolder(s.State) + "/" + e.file()
}

// ledger finds the last line of every id. It remembers a digest and a place
// for each, about 50 bytes, and reads the line again when asked.
type ledger struct {
	file File
	log  *slog.Logger
	// saving is held while lines are written.
	saving sync.Mutex

	mu sync.Mutex
	// size is where the next line goes; what is behind it, left by a failed
	// write, is overwritten.
	size  int64
	spots map[idDigest]int64
	// fresh holds the newest lines that are not in the file yet, by
	// lower-case id, and queue them in order.
	fresh map[string]*entry
	queue []*entry
	// numbers is the highest session number so far.
	numbers uint64
}

// idKey is how ids are compared: without regard to case.
func idKey(id string) string { return strings.ToLower(id) }

// openLedger reads the file. live gets the sessions that have not ended, by
// number. damaged counts the lines that could not be read, but for a torn
// last one.
func openLedger(disk FS, name string, log *slog.Logger) (l *ledger, live map[uint64]*entry, damaged int, err error) {
	f, err := disk.OpenFile(name, true)
	if err != nil {
		return nil, nil, 0, err
	}
	l = &ledger{file: f, log: log, spots: map[idDigest]int64{}, fresh: map[string]*entry{}}
	live = map[uint64]*entry{}
	if damaged, err = l.load(name, live); err != nil {
		return nil, nil, 0, errors.Join(fmt.Errorf("reading %s: %w", name, err), f.Close())
	}
	return l, live, damaged, nil
}

const ledgerWindow = 1 << 20

// load reads all lines. A line that is not whole is passed over: one at the
// end is what a crash left, and is cut.
func (l *ledger) load(name string, live map[uint64]*entry) (damaged int, err error) {
	size, err := l.file.Size()
	if err != nil {
		return 0, err
	}
	var rest []byte
	for read := int64(0); read < size; {
		b := make([]byte, min(ledgerWindow, size-read))
		if err := readFull(l.file, b, read); err != nil {
			return 0, err
		}
		read += int64(len(b))
		rest = append(rest, b...)
		for i := bytes.IndexByte(rest, '\n'); i >= 0; i = bytes.IndexByte(rest, '\n') {
			at := read - int64(len(rest))
			if err := l.loadLine(rest[:i], at, live); errors.Is(err, errLedgerLine) {
				l.log.Error("damaged line in the ledger", "file", name, "offset", at)
				damaged++
			} else if err != nil {
				return damaged, err
			}
			rest = rest[i+1:]
			l.size = at + int64(i) + 1
		}
	}
	if len(rest) > 0 {
		l.log.Warn("torn tail of the ledger cut", "file", name, "bytes", len(rest))
	}
	return damaged, nil
}

func (l *ledger) loadLine(line []byte, at int64, live map[uint64]*entry) error {
	e, err := parseEntry(line)
	if err != nil {
		return err
	}
	l.numbers = max(l.numbers, e.number)
	if e.live() {
		live[e.number] = e
	} else {
		delete(live, e.number)
	}
	l.spots[digestID(e.id)] = at
	return nil
}

// idDigest stands for an id. Two ids with one digest of 128 bits would be
// taken for one, and the second refused.
type idDigest [2]uint64

var idSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func digestID(id string) (d idDigest) {
	key := idKey(id)
	for i := range d {
		d[i] = maphash.String(idSeeds[i], key)
	}
	return d
}

// read reads the line at a place of a file of so many bytes. Lines in the
// file never change.
func (l *ledger) read(at, size int64) (*entry, error) {
	b := make([]byte, min(maxLedgerLine, size-at))
	if err := readFull(l.file, b, at); err != nil {
		return nil, err
	}
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return nil, errLedgerLine
	}
	return parseEntry(b[:end])
}

// maxLedgerLine is more than any line takes.
const maxLedgerLine = 1 << 10

// spot is where the newest line of an id is: in memory, or at a place of the
// file that has so many bytes. The zero value is that of an unused id.
type spot struct {
	fresh *entry
	known bool
	at    int64
}

// look finds an id without reading the file.
func (l *ledger) look(key string) (where spot, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.fresh[key]; ok {
		return spot{fresh: e}, l.size
	}
	at, known := l.spots[digestID(key)]
	return spot{known: known, at: at}, l.size
}

// find returns the newest entry of an id in any spelling; nil where the id
// was never used.
func (l *ledger) find(key string) (*entry, error) {
	e, _, err := l.findAt(key)
	return e, err
}

// findAt is find, and tells where the entry is. It may read the file, and
// keeps nobody waiting meanwhile.
func (l *ledger) findAt(key string) (*entry, spot, error) {
	where, size := l.look(key)
	if !where.known {
		return where.fresh, where, nil
	}
	e, err := l.read(where.at, size)
	return e, where, err
}

// add queues a line. It is durable already, by the journal.
func (l *ledger) add(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.numbers = max(l.numbers, e.number)
	l.fresh[idKey(e.id)] = e
	l.queue = append(l.queue, e)
}

// ledgerQueue lines that are not in the file lead to a checkpoint: each holds
// a few hundred bytes of memory, also where sessions are short.
const ledgerQueue = 16 << 10

// waiting is how many lines are not in the file.
func (l *ledger) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}

// nextNumber gives a new session its number.
func (l *ledger) nextNumber() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.numbers++
	return l.numbers
}

// save appends the queued lines and syncs the file, without holding up those
// who add. After an error the lines stay queued, and are written again.
func (l *ledger) save() error {
	l.saving.Lock()
	defer l.saving.Unlock()
	l.mu.Lock()
	queue := l.queue
	start := l.size
	l.mu.Unlock()
	if len(queue) == 0 {
		return nil
	}
	var b []byte
	places := make([]int64, len(queue))
	for i, e := range queue {
		places[i] = start + int64(len(b))
		b = append(appendEntry(b, e), '\n')
	}
	if _, err := l.file.WriteAt(b, start); err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("syncing the ledger: %w", err)
	}
	l.saved(queue, places, start+int64(len(b)))
	return nil
}

// saved notes where the lines of queue, the front of l.queue, now are.
func (l *ledger) saved(queue []*entry, places []int64, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range queue {
		key := idKey(e.id)
		l.spots[digestID(e.id)] = places[i]
		if l.fresh[key] == e {
			delete(l.fresh, key)
		}
	}
	l.queue = append([]*entry(nil), l.queue[len(queue):]...)
	l.size = size
}
