package recorder

import (
	"encoding/binary"
	"hash/crc32"
)

// A journal segment begins with a page that holds its header:
//
//	 0          8         16       24         28          4096
//	┌──────────┬─────────┬────────┬──────────┬───────────┐
//	│ magic    │ epoch   │ first  │ CRC-32C  │ zeros     │
//	│ RPLYJRN1 │ u64     │ u64    │ of 0..24 │           │
//	└──────────┴─────────┴────────┴──────────┴───────────┘
//
// and goes on with records:
//
//	 0         4      5       6        10      18         26        34       42
//	┌─────────┬──────┬───────┬────────┬───────┬──────────┬─────────┬────────┬───────┐
//	│ CRC-32C │ kind │ flags │ length │ epoch │ sequence │ session │ offset │ bytes │
//	│ of 4..  │ u8   │ u8    │ u32    │ u64   │ u64      │ u64     │ u64    │       │
//	└─────────┴──────┴───────┴────────┴───────┴──────────┴─────────┴────────┴───────┘
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
	recordHeader = 42

	// recordData: bytes of a session's file at offset. The file ends behind
	// the last record of its session; a record without bytes cuts it there.
	recordData = 1
	// recordLedger: bytes are a line of the ledger, without its newline.
	recordLedger = 2

	// flagMore: the next record of the session goes on with the same chunks.
	// Without it the last ones are not whole, and are dropped.
	flagMore = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is one journal record. Bytes points into what it was parsed from.
type record struct {
	kind, flags byte
	epoch       uint64
	sequence    uint64
	session     uint64
	offset      int64
	bytes       []byte
}

// appendRecord appends the bytes of a record.
func appendRecord(dst []byte, r *record) []byte {
	n := len(dst)
	dst = append(dst, 0, 0, 0, 0, r.kind, r.flags)
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
	length := int64(binary.BigEndian.Uint32(b[6:]))
	r := record{kind: b[4], flags: b[5], epoch: binary.BigEndian.Uint64(b[10:]), sequence: binary.BigEndian.Uint64(b[18:]),
		session: binary.BigEndian.Uint64(b[26:]), offset: int64(binary.BigEndian.Uint64(b[34:]))}
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

const segmentHeader = 28

// appendSegmentHeader appends a segment's first page.
func appendSegmentHeader(dst []byte, epoch, first uint64) []byte {
	n := len(dst)
	dst = append(dst, segmentMagic...)
	dst = binary.BigEndian.AppendUint64(dst, epoch)
	dst = binary.BigEndian.AppendUint64(dst, first)
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[n:], castagnoli))
	return append(dst, make([]byte, pageSize-segmentHeader)...)
}

// parseSegmentHeader reads a segment's first page; false where it is not
// one, as in a segment that was never used.
func parseSegmentHeader(b []byte) (epoch, first uint64, ok bool) {
	if len(b) < segmentHeader || string(b[:8]) != segmentMagic || binary.BigEndian.Uint32(b[24:]) != crc32.Checksum(b[:24], castagnoli) {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:]), true
}

func roundUp(n int64) int64 { return (n + pageSize - 1) / pageSize * pageSize }
