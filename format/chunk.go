package format

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A file begins with a header of 16 bytes:
//
//	 0          10      11      12          16
//	┌───────────┬───────┬───────┬───────────┐
//	│ magic     │ major │ minor │ CRC-32C   │
//	└───────────┴───────┴───────┴───────────┘
//
// and goes on with chunks:
//
//	 0        1      2          6          10          10+n
//	┌────────┬──────┬──────────┬──────────┬───────────┬──────────────┐
//	│ marker │ type │ length   │ CRC-32C  │ sequence  │ body         │
//	│ C5     │ u8   │ u32      │ u32      │ uvarint   │ length bytes │
//	└────────┴──────┴──────────┴──────────┴───────────┴──────────────┘
//
// The checksum covers marker, type, length, sequence and body. All
// fixed-width numbers are big-endian; a uvarint is LEB128.

// Numbers below are stored in files. They must not change.
const (
	// Magic opens every RPLY2 file. Like PNG's it holds a byte above 127,
	// a CR LF, an end-of-text and a lone LF, so that a transfer in text
	// mode shows; and no damage to one byte turns RPLY1's magic into it.
	Magic = "\x89RPLY2\r\n\x1a\n"

	// VersionMajor changes when an old reader must not read on.
	VersionMajor = 1
	// VersionMinor changes when something optional was added.
	VersionMinor = 0

	// HeaderSize is the size of the file header.
	HeaderSize = 16

	chunkMarker   = 0xC5
	chunkMinSize  = 11 // with a sequence number of one byte
	chunkFixed    = 10 // before the sequence number
	chunkOptional = 0x80
)

// ChunkType says what a chunk holds. A reader skips and keeps a type that
// it does not know if the high bit is set, and refuses the file otherwise.
type ChunkType uint8

// Chunk types are stored in files. They must not change.
const (
	ChunkMeta     ChunkType = 0x01
	ChunkBook     ChunkType = 0x02
	ChunkTicks    ChunkType = 0x03
	ChunkGap      ChunkType = 0x04
	ChunkKeyframe ChunkType = 0x05
	ChunkEnd      ChunkType = 0x06
	// ChunkArchived holds ticks in the archive layout.
	ChunkArchived ChunkType = 0x07
	// ChunkArchivedKeyframe holds a part of a keyframe, compressed.
	ChunkArchivedKeyframe ChunkType = 0x08

	ChunkRedaction ChunkType = 0x80

	ChunkPlayers ChunkType = 0x81
	ChunkHashes  ChunkType = 0x82
	ChunkMark    ChunkType = 0x83
	ChunkReports ChunkType = 0x84
	ChunkDigest  ChunkType = 0x85
	ChunkSummary ChunkType = 0x86
	ChunkSeek    ChunkType = 0x87
	ChunkTrailer ChunkType = 0x88
	// ChunkArchive says that a file is an archive, and what it leaves out.
	ChunkArchive ChunkType = 0x89

	ChunkLeaves    ChunkType = 0x8A
	ChunkSignature ChunkType = 0x8B
	// ChunkSparse is a digest without the leaves of segments in which nothing
	// stands.
	ChunkSparse ChunkType = 0x8C
)

var chunkNames = map[ChunkType]string{
	ChunkMeta: "metadata", ChunkBook: "code book", ChunkTicks: "ticks", ChunkGap: "gap",
	ChunkKeyframe: "keyframe", ChunkEnd: "end", ChunkPlayers: "players", ChunkHashes: "hashes",
	ChunkArchived: "archived ticks", ChunkArchivedKeyframe: "archived keyframe", ChunkArchive: "archive notice",
	ChunkMark: "mark", ChunkReports: "reports", ChunkDigest: "digest", ChunkSummary: "summary",
	ChunkSeek: "seek table", ChunkTrailer: "trailer",
	ChunkRedaction: "redaction", ChunkLeaves: "leaves", ChunkSignature: "signature",
	ChunkSparse: "sparse digest",
}

// knownTypes are those that have a name, by number: every chunk is looked up.
var knownTypes = makeKnownTypes()

func makeKnownTypes() (known [256]bool) {
	for t := range chunkNames {
		known[t] = true
	}
	return known
}

// String names the type.
func (t ChunkType) String() string {
	if n, ok := chunkNames[t]; ok {
		return n
	}
	return fmt.Sprintf("type %#02x", uint8(t))
}

// Known tells whether this program can read the type.
func (t ChunkType) Known() bool { return knownTypes[t] }

// Optional tells whether a reader may skip the type.
func (t ChunkType) Optional() bool { return t&chunkOptional != 0 }

// opens tells whether the code book can no longer follow the type: it must
// be found without reading on.
func (t ChunkType) opens() bool {
	return t.Known() && t != ChunkMeta && t != ChunkBook && t != ChunkPlayers
}

// ofFooter tells whether the type stands behind the end.
func (t ChunkType) ofFooter() bool {
	return t >= ChunkDigest && t <= ChunkTrailer || t == ChunkLeaves || t == ChunkSignature || t == ChunkSparse
}

// Chunk is one framed record. Body points into the bytes it was parsed
// from.
type Chunk struct {
	Type ChunkType
	// Seq counts the chunks of a producer's stream from 1. It is 0 for the
	// opening chunks and for what the recorder itself writes.
	Seq  uint64
	Body []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendHeader appends the file header.
func AppendHeader(dst []byte) []byte {
	n := len(dst)
	dst = append(dst, Magic...)
	dst = append(dst, VersionMajor, VersionMinor)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[n:], castagnoli))
}

// CheckHeader checks the first bytes of a file. It returns ErrNotReplay,
// ErrNewer, a TornError or a CorruptError.
func CheckHeader(b []byte) error {
	n := min(len(b), len(Magic))
	if n == 0 || string(b[:n]) != Magic[:n] {
		return notReplay(b)
	}
	if len(b) < HeaderSize {
		return &TornError{Offset: 0, Size: int64(len(b))}
	}
	sum := crc32.Checksum(b[:12], castagnoli)
	if got := binary.BigEndian.Uint32(b[12:]); got != sum {
		return corrupt(12, "checksum of the file header is %08x, its bytes give %08x", got, sum)
	}
	if b[10] == 0 {
		return corrupt(10, "format version 0.%d, the first is 1.0", b[11])
	}
	if b[10] > VersionMajor {
		return fmt.Errorf("%w: format version %d.%d, this program reads up to %d.x", ErrNewer, b[10], b[11], VersionMajor)
	}
	return nil
}

// AppendChunk frames body as one chunk and appends it to dst.
func AppendChunk(dst []byte, typ ChunkType, seq uint64, body []byte) []byte {
	n := len(dst)
	dst = beginChunk(dst, typ, seq)
	dst = append(dst, body...)
	return finishChunk(dst, n, seq)
}

// beginChunk appends a frame with room for length and checksum, so that a
// body can be appended in place; finishChunk fills them in.
func beginChunk(dst []byte, typ ChunkType, seq uint64) []byte {
	dst = append(dst, chunkMarker, byte(typ), 0, 0, 0, 0, 0, 0, 0, 0)
	return binary.AppendUvarint(dst, seq)
}

func finishChunk(dst []byte, start int, seq uint64) []byte {
	c := dst[start:]
	binary.BigEndian.PutUint32(c[2:], uint32(len(c)-chunkFixed-uvarintLen(seq)))
	binary.BigEndian.PutUint32(c[6:], chunkSum(c))
	return dst
}

// chunkSum is the checksum of a whole framed chunk.
func chunkSum(c []byte) uint32 {
	return crc32.Update(crc32.Checksum(c[:6], castagnoli), castagnoli, c[chunkFixed:])
}

// ParseChunk reads the chunk at b[0:] and returns its framed length. If b
// ends inside the chunk, the error matches ErrTorn; a chunk that cannot be
// right is a CorruptError relative to b[0].
func ParseChunk(b []byte) (Chunk, int, error) {
	size, err := chunkSize(b)
	if err != nil {
		return Chunk{}, 0, err
	}
	if size > int64(len(b)) {
		return Chunk{}, 0, &TornError{Size: int64(len(b))}
	}
	c := b[:size]
	if got, sum := binary.BigEndian.Uint32(c[6:]), chunkSum(c); got != sum {
		return Chunk{}, 0, corrupt(6, "checksum of the %v chunk is %08x, its bytes give %08x", ChunkType(c[1]), got, sum)
	}
	seq, n := binary.Uvarint(c[chunkFixed:])
	chunk := Chunk{Type: ChunkType(c[1]), Seq: seq, Body: c[chunkFixed+n:]}
	if !chunk.Type.Known() && !chunk.Type.Optional() {
		return chunk, 0, fmt.Errorf("%w: critical chunk of %v", ErrNewer, chunk.Type)
	}
	return chunk, int(size), nil
}

// chunkSize reads the framed length of the chunk at b[0:] from its first
// bytes; it may be more than len(b).
func chunkSize(b []byte) (int64, error) {
	if len(b) > 0 && b[0] != chunkMarker {
		return 0, corrupt(0, "byte %02x where a chunk begins with %02x", b[0], chunkMarker)
	}
	if len(b) < chunkMinSize {
		return 0, &TornError{Size: int64(len(b))}
	}
	length := binary.BigEndian.Uint32(b[2:])
	if length > MaxBody {
		return 0, corrupt(2, "length %d of the %v chunk, the most is %d", length, ChunkType(b[1]), MaxBody)
	}
	seq, n := binary.Uvarint(b[chunkFixed:min(len(b), chunkFixed+binary.MaxVarintLen64)])
	if n == 0 && len(b) < chunkFixed+binary.MaxVarintLen64 {
		return 0, &TornError{Size: int64(len(b))}
	}
	if n <= 0 || n != uvarintLen(seq) {
		return 0, corrupt(chunkFixed, "sequence number is not a shortest uvarint of 64 bits")
	}
	return chunkFixed + int64(n) + int64(length), nil
}

func uvarintLen(v uint64) int {
	n := 1
	for v >= 0x80 {
		v >>= 7
		n++
	}
	return n
}
