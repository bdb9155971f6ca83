package recorder

import (
	"encoding/binary"
	"hash/crc32"
)

// A journal segment begins with a page that holds its header:
//
//	 0          8         16       24       32         36          4096
//	┌──────────┬─────────┬────────┬────────┬──────────┬───────────┐
//	│ magic    │ epoch   │ first  │ batch  │ CRC-32C  │ zeros     │
//	│ RPLYJRN1 │ u64     │ u64    │ u64    │ of 0..32 │           │
//	└──────────┴─────────┴────────┴────────┴──────────┴───────────┘
//
// first is the sequence number of its first record, batch that of the first
// record of the batch which it goes on with: a segment that begins within a
// batch counts only where the batch's records before it are found.
//
// and goes on with records:
//
//	 0         4      5        9       17         25        33       41
//	┌─────────┬──────┬────────┬───────┬──────────┬─────────┬────────┬───────┐
//	│ CRC-32C │ kind │ length │ epoch │ sequence │ session │ offset │ bytes │
//	│ of 4..  │ u8   │ u32    │ u64   │ u64      │ u64     │ u64    │       │
//	└─────────┴──────┴────────┴───────┴──────────┴─────────┴────────┴───────┘
//
// All numbers are big-endian. Sequence numbers rise by one from record to
// record, through all segments; the epoch is the segment's own. So bytes
// left from an earlier use of the segment are never taken for a record.
//
// A flush starts on a page of its own, and zeros fill the page it ends in:
// no write ever touches a page that holds an acknowledged byte.

// Numbers below are stored in the journal. They must not change.
const (
	segmentMagic = "RPLYJRN1"
	pageSize     = 4096
	recordHeader = 41

	// recordData: bytes of a session's file at offset. The file ends behind
	// the last record of its session; a record without bytes cuts it there.
	recordData = 1
	// recordLedger: bytes are a line of the ledger, without its newline.
	recordLedger = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is one journal record. Bytes points into what it was parsed from.
type record struct {
	kind     byte
	epoch    uint64
	sequence uint64
	session  uint64
	offset   int64
	bytes    []byte
}

// appendRecord appends the bytes of a record.
func appendRecord(dst []byte, r *record) []byte {
	n := len(dst)
	dst = append(dst, 0, 0, 0, 0, r.kind)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(r.bytes)))
	for _, v := range [4]uint64{r.epoch, r.sequence, r.session, uint64(r.offset)} {
		dst = binary.BigEndian.AppendUint64(dst, v)
	}
	dst = append(dst, r.bytes...)
	binary.BigEndian.PutUint32(dst[n:], crc32.Checksum(dst[n+4:], castagnoli))
	return dst
}

// parseRecord reads the record at b[0:]; false where there is none of this
// epoch with this sequence number.
func parseRecord(b []byte, epoch, sequence uint64) (record, int, bool) {
	if len(b) < recordHeader {
		return record{}, 0, false
	}
	length := int64(binary.BigEndian.Uint32(b[5:]))
	r := record{kind: b[4], epoch: binary.BigEndian.Uint64(b[9:]), sequence: binary.BigEndian.Uint64(b[17:]),
		session: binary.BigEndian.Uint64(b[25:]), offset: int64(binary.BigEndian.Uint64(b[33:]))}
	if r.epoch != epoch || r.sequence != sequence || length > int64(len(b)-recordHeader) {
		return record{}, 0, false
	}
	n := recordHeader + int(length)
	if binary.BigEndian.Uint32(b) != crc32.Checksum(b[4:n], castagnoli) {
		return record{}, 0, false
	}
	r.bytes = b[recordHeader:n:n]
	return r, n, true
}

const segmentHeader = 36

// appendSegmentHeader appends a segment's first page.
func appendSegmentHeader(dst []byte, epoch, first, batch uint64) []byte {
	n := len(dst)
	dst = append(dst, segmentMagic...)
	for _, v := range [3]uint64{epoch, first, batch} {
		dst = binary.BigEndian.AppendUint64(dst, v)
	}
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[n:], castagnoli))
	return append(dst, make([]byte, pageSize-segmentHeader)...)
}

// parseSegmentHeader reads a segment's first page; false where it is not
// one, as in a segment that was never used.
func parseSegmentHeader(b []byte) (epoch, first, batch uint64, ok bool) {
	if len(b) < segmentHeader || string(b[:8]) != segmentMagic || binary.BigEndian.Uint32(b[32:]) != crc32.Checksum(b[:32], castagnoli) {
		return 0, 0, 0, false
	}
	return binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:]), binary.BigEndian.Uint64(b[24:]), true
}

func roundUp(n int64) int64 { return (n + pageSize - 1) / pageSize * pageSize }
