package transport

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"

	"reprise/format"
)

// A session's tail, SESSION.tail, holds what was recorded since the last
// chunk that the spool file has. It is a file mapped into memory: a record is
// in it once its bytes are stored, without a system call, and the pages stay
// with the system when the process dies.
//
//	header   magic, version, size of a half, session, checksum
//	half     records
//	half     records
//
// Records are appended to one half. A cut turns to the other half where the
// spool file has all of its records, and overwrites them: what follows the
// newest record of a half is stale. Numbers are big endian. A record:
//
//	checksum   u32   CRC-32C of all that follows, begun with the header's
//	size       u32   of the whole record
//	sequence   u64   one more than the record's before
//	tick       u64   of a gap: its first; of a mark, players or reports: how
//	                 many of its kind came before
//	time       u64   microseconds, where it has one
//	steps      u32   of a tick
//	kind       u8    1 a tick, 2 a hash, 3 a gap, 4 a mark, 5 players, 6 reports
//	timed      u8    1 where it has a time
//	           u16   0
//	body             command area and parameter area; the hash; else the
//	                 body of a chunk of the kind
//
// The numbers below are stored in files. They must not change.
const (
	tailSuffix  = ".tail"
	tailMagic   = "RPLYTAIL"
	tailVersion = 1
	tailHead    = 96
	recordHead  = 40

	recordTick    = 1
	recordHash    = 2
	recordGap     = 3
	recordMark    = 4
	recordPlayers = 5
	recordReports = 6
)

// minHalf is the least size of a half; maxTail bounds the file.
const (
	minHalf = 32 << 10
	maxTail = tailHead + 2*2*format.MaxRowBytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// tail is the mapped file. All but release is guarded by the recording's
// lock.
type tail struct {
	mapped []byte
	halves [2][]byte
	now    int // the half that is appended to
	at     int // where the next record goes
	seq    uint64
	seed   uint32
	// spare: the spool file has all records of the other half. It does once
	// it has the chunks before number waits.
	spare bool
	waits uint64
	// missed: a record did not fit since the last cut.
	missed bool
}

// halfSize gives room for a few chunks of so many row bytes.
func halfSize(chunkBytes int) int { return max(minHalf, 2*chunkBytes) }

// appendTailHeader appends a header and gives its checksum. The checksum
// covers the producer's key, so that the tail of another session that had the
// same id is not taken.
func appendTailHeader(dst []byte, id string, key [KeySize]byte, half int) ([]byte, uint32) {
	start := len(dst)
	dst = append(dst, tailMagic...)
	dst = binary.BigEndian.AppendUint32(dst, tailVersion)
	dst = binary.BigEndian.AppendUint32(dst, uint32(half))
	dst = append(dst, id...)
	dst = append(dst, make([]byte, start+tailHead-4-len(dst))...)
	seed := crc32.Update(crc32.Checksum(key[:], castagnoli), castagnoli, dst[start:])
	return binary.BigEndian.AppendUint32(dst, seed), seed
}

// createTail begins an empty tail in place of an older one. It is written
// out, not only made long, so that the disk has room for every page.
func createTail(path, id string, key [KeySize]byte, half int) (*tail, error) {
	if err := removeExisting(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, seed := appendTailHeader(nil, id, key, half)
	size := tailHead + 2*half
	if _, err := f.Write(append(b, make([]byte, size-tailHead)...)); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	mapped, err := mapFile(f, size)
	if err != nil {
		return nil, errors.Join(&fs.PathError{Op: "map", Path: path, Err: err}, os.Remove(path))
	}
	t := &tail{mapped: mapped, seed: seed, spare: true}
	t.halves = [2][]byte{mapped[tailHead : tailHead+half], mapped[tailHead+half:]}
	return t, nil
}

// release unmaps the tail, which nobody may use any more.
func (t *tail) release() error { return unmapFile(t.mapped) }

// void makes the tail one that no process takes anything from.
func (t *tail) void() { clear(t.mapped[:tailHead]) }

// fits tells whether a record with a body of so many bytes has room.
func (t *tail) fits(body int) bool { return recordHead+body <= len(t.halves[t.now])-t.at }

// put appends a record whose body is in two parts; false where it has no
// room.
func (t *tail) put(r *tailRecord, first, second []byte) bool {
	if !t.fits(len(first) + len(second)) {
		t.missed = true
		return false
	}
	size := recordHead + len(first) + len(second)
	b := t.halves[t.now][t.at : t.at+size]
	copy(b[recordHead:], first)
	copy(b[recordHead+len(first):], second)
	binary.BigEndian.PutUint32(b[4:], uint32(size))
	binary.BigEndian.PutUint64(b[8:], t.seq)
	binary.BigEndian.PutUint64(b[16:], uint64(r.tick))
	binary.BigEndian.PutUint64(b[24:], uint64(r.time))
	binary.BigEndian.PutUint32(b[32:], uint32(r.steps))
	b[36], b[37], b[38], b[39] = r.kind, 0, 0, 0
	if r.timed {
		b[37] = 1
	}
	binary.BigEndian.PutUint32(b, crc32.Update(t.seed, castagnoli, b[4:]))
	t.at += size
	t.seq++
	return true
}

// turn takes a cut: all records are in chunks before number next. Where the
// other half is spare it becomes the one that is appended to.
func (t *tail) turn(next uint64) {
	t.missed = false
	if t.spare && t.at > 0 {
		t.now, t.at, t.spare, t.waits = 1-t.now, 0, false, next
	}
}

// settle takes that the spool file has the chunks before number next.
func (t *tail) settle(next uint64) { t.spare = t.spare || next >= t.waits }

// tailRecord is one record; body is set where it was read.
type tailRecord struct {
	seq   uint64
	tick  format.Tick
	time  int64
	steps int
	kind  byte
	timed bool
	body  []byte
}

// parseTail gives the records of a tail file in their order; false where it
// is not one of this session.
func parseTail(b []byte, id string, key [KeySize]byte) ([]tailRecord, bool) {
	if len(b) < tailHead {
		return nil, false
	}
	half := int(binary.BigEndian.Uint32(b[len(tailMagic)+4:]))
	if string(b[:tailHead]) == string(make([]byte, tailHead)) {
		return nil, true // see void
	}
	header, seed := appendTailHeader(nil, id, key, half)
	if half > maxTail || string(header) != string(b[:tailHead]) {
		return nil, false
	}
	b = b[tailHead:]
	older := parseHalf(b[:min(half, len(b))], seed)
	newer := parseHalf(b[min(half, len(b)):], seed)
	if len(older) > 0 && len(newer) > 0 && newer[0].seq < older[0].seq {
		older, newer = newer, older
	}
	return append(older, newer...), true
}

// parseHalf reads records up to the first that is stale or damaged.
func parseHalf(b []byte, seed uint32) (records []tailRecord) {
	for len(b) >= recordHead {
		size := int(binary.BigEndian.Uint32(b[4:]))
		if size < recordHead || size > len(b) || crc32.Update(seed, castagnoli, b[4:size]) != binary.BigEndian.Uint32(b) {
			break
		}
		r := tailRecord{seq: binary.BigEndian.Uint64(b[8:]), tick: format.Tick(binary.BigEndian.Uint64(b[16:])),
			time: int64(binary.BigEndian.Uint64(b[24:])), steps: int(binary.BigEndian.Uint32(b[32:])),
			kind: b[36], timed: b[37] == 1, body: b[recordHead:size]}
		if n := len(records); n > 0 && r.seq != records[n-1].seq+1 {
			break
		}
		records = append(records, r)
		b = b[size:]
	}
	return records
}
