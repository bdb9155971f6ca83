package format

import (
	"encoding/binary"
	"fmt"
)

// An archived ticks chunk holds what a ticks chunk holds, in fewer bytes:
//
//	┌───────┬───────┬───────┬───────┬────────┬──────┬───────┬────────┬───────┬────────┬────────┐
//	│ first │ ticks │ flags │ steps │ params │ runs │ times │ method │ coded │ coded  │ hashes │
//	│ tick  │       │       │       │        │      │       │ u8     │ bytes │ part   │        │
//	└───────┴───────┴───────┴───────┴────────┴──────┴───────┴────────┴───────┴────────┴────────┘
//
// First tick to params are those of the ticks chunk. Runs counts the bytes of
// its timeline and its bitmap of hashes, times those of its bitmap of times and
// its times. The coded part gives command area, parameter area, runs and times;
// how, the method says. State hashes do not compress, and stand as they are.

// Methods are stored in files. They must not change.
const (
	methodStored  = 0 // the bytes as they are
	methodRows    = 1 // the bytes in one zstd frame
	methodColumns = 2 // columns, each in its smallest form
	methodModel   = 3 // adaptive models and an arithmetic coder
)

const (
	// maxRuns bounds timeline and bitmap of hashes: a run of a tick takes at
	// most three bytes.
	maxRuns = MaxChunkTicks*3 + MaxChunkTicks/8
	// maxTimes bounds the times and their bitmap.
	maxTimes = MaxChunkTicks*9 + MaxChunkTicks/8
	// maxArchiveParts bounds what the coded part of a chunk stands for.
	maxArchiveParts = MaxRowBytes + maxRuns + maxTimes
)

// archiveHead is what an archived ticks chunk says without being decoded.
type archiveHead struct {
	First  Tick
	Ticks  int
	flags  byte
	Steps  int
	params int
	runs   int
	times  int
	method byte
	coded  []byte
	hashes []byte
}

func (h *archiveHead) width() Width {
	if h.flags&batchWide != 0 {
		return Width16
	}
	return Width8
}

// commands is the size of the command area.
func (h *archiveHead) commands() int { return h.Steps * h.width().entry() }

// rows is the size of command and parameter area.
func (h *archiveHead) rows() int { return h.commands() + h.params }

// size is the number of bytes that the coded part stands for.
func (h *archiveHead) size() int { return h.rows() + h.runs + h.times }

// next is the tick behind the chunk.
func (h *archiveHead) next() Tick { return h.First + Tick(h.Ticks) }

// parseArchiveHead reads the body of an archived ticks chunk up to its coded
// part. All that will be allocated for it has been checked.
func parseArchiveHead(body []byte) (archiveHead, error) {
	c := cursor{b: body}
	h := archiveHead{First: c.tick("the first tick"), Ticks: int(c.limited("the number of ticks", MaxChunkTicks)), flags: c.byte("the flags"),
		Steps: int(c.limited("the number of steps", MaxRowBytes/2)), params: int(c.limited("the bytes of parameters", MaxRowBytes)),
		runs: int(c.limited("the bytes of the runs", maxRuns)), times: int(c.limited("the bytes of the times", maxTimes))}
	h.method = c.byte("the method")
	if c.err == nil && (h.Ticks == 0 || h.flags&^batchFlags != 0) {
		c.fail("%d ticks with flags %#02x", h.Ticks, h.flags)
	}
	if c.err == nil && h.rows() > MaxRowBytes {
		c.fail("%d row bytes, the most is %d", h.rows(), MaxRowBytes)
	}
	h.coded = c.bytes(c.count("the bytes of the coded part", MaxBody, 1), "the coded part")
	h.hashes = c.bytes(c.rest(), "the hashes")
	if c.err == nil && len(h.hashes) > h.Ticks*MaxHashBytes {
		c.fail("%d bytes of hashes for %d ticks", len(h.hashes), h.Ticks)
	}
	return h, c.done()
}

// appendArchive appends the body of an archived ticks chunk.
func appendArchive(dst []byte, h *archiveHead) []byte {
	dst = appendBatchHead(dst, h)
	dst = binary.AppendUvarint(dst, uint64(h.runs))
	dst = binary.AppendUvarint(dst, uint64(h.times))
	dst = append(dst, h.method)
	dst = binary.AppendUvarint(dst, uint64(len(h.coded)))
	dst = append(dst, h.coded...)
	return append(dst, h.hashes...)
}

// appendBatchHead appends the fields that a ticks chunk begins with.
func appendBatchHead(dst []byte, h *archiveHead) []byte {
	dst = binary.AppendUvarint(dst, uint64(h.First))
	dst = binary.AppendUvarint(dst, uint64(h.Ticks))
	dst = append(dst, h.flags)
	dst = binary.AppendUvarint(dst, uint64(h.Steps))
	return binary.AppendUvarint(dst, uint64(h.params))
}

// archiveReader decodes archived ticks chunks. Its memory is used again for the
// next one.
type archiveReader struct {
	parts []byte
	body  []byte
	state []byte // of a keyframe
	zstd  zstdReader
	// cols and model are made for the first chunk that needs them: they are
	// large.
	cols  *columnReader
	model *rowModel
	// decoded counts the chunks.
	decoded int
}

// ticks decodes the body of an archived ticks chunk into that of a ticks chunk,
// which has yet to be parsed. It is valid until the next call.
func (r *archiveReader) ticks(body []byte) ([]byte, error) {
	h, err := parseArchiveHead(body)
	if err != nil {
		return nil, err
	}
	r.decoded++
	if err := r.decode(&h); err != nil {
		return nil, corrupt(0, "%v", err)
	}
	rows, runs := h.rows(), h.rows()+h.runs
	r.body = appendBatchHead(r.body[:0], &h)
	r.body = append(r.body, r.parts[:rows]...)
	r.body = append(r.body, r.parts[rows:runs]...)
	r.body = append(r.body, h.hashes...)
	r.body = append(r.body, r.parts[runs:]...)
	return r.body, nil
}

// decode fills r.parts with what the coded part stands for.
func (r *archiveReader) decode(h *archiveHead) error {
	if cap(r.parts) < h.size() {
		r.parts = make([]byte, h.size())
	}
	r.parts = r.parts[:h.size()]
	switch h.method {
	case methodStored:
		if len(h.coded) != h.size() {
			return fmt.Errorf("%d stored bytes, %d are due", len(h.coded), h.size())
		}
		copy(r.parts, h.coded)
		return nil
	case methodRows:
		return r.zstd.into(r.parts, h.coded)
	case methodColumns:
		if r.cols == nil {
			r.cols = new(columnReader)
		}
		return r.cols.decode(r.parts, h)
	case methodModel:
		if r.model == nil {
			r.model = new(rowModel)
		}
		return r.model.decode(r.parts, h)
	}
	return fmt.Errorf("method %d is not known", h.method)
}

// batch decodes and parses a ticks chunk of either layout.
func (r *archiveReader) batch(c Chunk, hashBytes int) (Batch, error) {
	if c.Type == ChunkTicks {
		return ParseBatch(c.Body, hashBytes)
	}
	body, err := r.ticks(c.Body)
	if err != nil {
		return Batch{}, err
	}
	b, err := ParseBatch(body, hashBytes)
	if err != nil {
		err = corrupt(0, "decoded ticks: %v", err)
	}
	return b, err
}

// holdsTicks tells whether chunks of the type hold ticks.
func (t ChunkType) holdsTicks() bool { return t == ChunkTicks || t == ChunkArchived }
