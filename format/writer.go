package format

import (
	"fmt"
	"io"
)

// ReplayFile is what a Writer needs of its target: bytes are appended, and
// read back once at the seal where hashes came late.
type ReplayFile interface {
	io.Writer
	io.ReaderAt
}

// Writer writes an RPLY2 file. A Writer that failed stays failed. It holds
// one chunk in memory.
type Writer struct {
	out     ReplayFile
	at      int64
	t       *Tracker
	b       *BatchBuilder
	seq     uint64
	nextKey uint64
	time    int64 // of the last timed tick
	frame   []byte
	body    []byte
	err     error
}

const (
	// A Writer ends a chunk after so many row bytes or ticks: small enough
	// to seek, large enough that its frame costs nothing.
	writerRows  = 64 << 10
	writerTicks = 4096
)

// NewWriter writes the file header, the metadata, and the code book if
// there is one. out must be empty.
func NewWriter(out ReplayFile, meta *Metadata, book *CodeBook) (*Writer, error) {
	if err := meta.Validate(); err != nil {
		return nil, err
	}
	if book != nil {
		if err := book.Validate(); err != nil {
			return nil, err
		}
	}
	w := &Writer{out: out, t: NewTracker(), b: NewBatchBuilder(meta.Width, meta.HashBytes, meta.FirstTick), nextKey: 1}
	w.write(AppendHeader(nil))
	if err := w.insert(ChunkMeta, AppendMeta(nil, meta)); err != nil {
		return nil, err
	}
	if book != nil {
		if err := w.insert(ChunkBook, AppendBook(nil, book)); err != nil {
			return nil, err
		}
	}
	return w, w.err
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	if _, w.err = w.out.Write(b); w.err == nil {
		w.at += int64(len(b))
	}
}

// put checks, frames and writes one chunk. A refused one changes nothing.
func (w *Writer) put(typ ChunkType, seq uint64, body []byte) error {
	if w.err != nil {
		return w.err
	}
	if len(body) > MaxBody {
		return fmt.Errorf("%w: %v chunk of %d bytes, the most is %d", ErrLimit, typ, len(body), MaxBody)
	}
	if err := w.t.Add(Chunk{Type: typ, Seq: seq, Body: body}, w.at); err != nil {
		return err
	}
	w.frame = AppendChunk(w.frame[:0], typ, seq, body)
	w.write(w.frame)
	return w.err
}

// next writes one chunk of the session's own stream.
func (w *Writer) next(typ ChunkType, body []byte) error {
	err := w.put(typ, w.seq+1, body)
	if err == nil {
		w.seq++
	}
	return err
}

// insert writes one chunk outside of that stream.
func (w *Writer) insert(typ ChunkType, body []byte) error { return w.put(typ, 0, body) }

// NextTick is the tick that the next EndTick closes.
func (w *Writer) NextTick() Tick { return w.b.NextTick() }

// Step adds a step to the open tick. An error that matches ErrStep or
// ErrTickSize leaves the tick as it was, and the Writer usable.
func (w *Writer) Step(code uint16, params ...Value) error {
	if w.err != nil {
		return w.err
	}
	return w.b.Step(code, params...)
}

// EndTick closes the open tick.
func (w *Writer) EndTick() error {
	if err := w.makeRoom(0); err != nil {
		return err
	}
	w.b.EndTick()
	return nil
}

// EndTickAt closes the open tick with its time, microseconds since the
// session's start.
func (w *Writer) EndTickAt(time int64) error {
	if err := w.checkTime(time); err != nil {
		return err
	}
	if err := w.makeRoom(0); err != nil {
		return err
	}
	w.b.EndTickAt(time)
	w.time = time
	return nil
}

// checkTime checks that times do not decrease.
func (w *Writer) checkTime(time int64) error {
	if time < w.time || time > maxTime {
		return fmt.Errorf("%w: time of %d microseconds after %d", ErrOrder, time, w.time)
	}
	return nil
}

// DropTick forgets the steps of the open tick.
func (w *Writer) DropTick() { w.b.Drop() }

// makeRoom ends the chunk where the open tick, and more bytes, do not fit.
func (w *Writer) makeRoom(more int) error {
	if w.b.Full() || w.b.Ticks() > 0 && (w.b.Rows()+more > writerRows || w.b.Ticks() >= writerTicks) {
		return w.flush()
	}
	return w.err
}

// Add writes a whole tick as it was read.
func (w *Writer) Add(t *TickRecord) error {
	if err := w.makeRoom(len(t.Commands) + len(t.Params)); err != nil {
		return err
	}
	if t.HasTime {
		if err := w.checkTime(t.Time); err != nil {
			return err
		}
	}
	if err := w.b.Add(t); err != nil {
		return err
	}
	w.time = max(w.time, t.Time)
	return nil
}

// Hash sets the state hash of a closed tick.
func (w *Writer) Hash(t Tick, h []byte) error {
	if w.err != nil || w.b.Hash(t, h) {
		return w.err
	}
	if t >= w.b.NextTick()-Tick(w.b.Ticks()) || len(h) != w.t.meta.HashBytes {
		return fmt.Errorf("%w: hash of %d bytes for tick %d, the session has %d bytes and the open tick is %d", ErrOrder, len(h), t, w.t.meta.HashBytes, w.b.NextTick())
	}
	return w.next(ChunkHashes, AppendHashes(nil, []TickHash{{t, h}}))
}

func (w *Writer) flush() error {
	if w.err != nil || w.b.Ticks() == 0 {
		return w.err
	}
	w.body = w.b.AppendBody(w.body[:0])
	w.b.Cut()
	if err := w.next(ChunkTicks, w.body); err != nil {
		w.err = err
	}
	return w.err
}

// Gap declares ticks as missing. g.First must be the next tick, and the
// open tick empty.
func (w *Writer) Gap(g Gap) error {
	if err := w.flush(); err != nil {
		return err
	}
	if w.b.OpenSteps() > 0 {
		return fmt.Errorf("%w: gap inside tick %d", ErrOrder, w.b.NextTick())
	}
	write := w.next
	if g.ByRecorder {
		write = w.insert
	}
	if err := write(ChunkGap, AppendGap(nil, g)); err != nil {
		return err
	}
	w.b.Skip(g.Last + 1)
	return nil
}

// Mark writes a mark.
func (w *Writer) Mark(m Mark) error { return w.next(ChunkMark, AppendMark(nil, m)) }

// Reports writes peers' reports.
func (w *Writer) Reports(r []Report) error { return w.next(ChunkReports, AppendReports(nil, r)) }

// Players writes joins and leaves. salt has SaltBytes random bytes in the
// first call and is nil in later ones.
func (w *Writer) Players(salt []byte, events []PlayerEvent) error {
	return w.next(ChunkPlayers, AppendPlayers(nil, salt, events))
}

// Keyframe writes a keyframe in parts, behind the closed ticks.
func (w *Writer) Keyframe(k Keyframe) error {
	if err := w.flush(); err != nil {
		return err
	}
	id := w.nextKey
	w.nextKey++
	for _, p := range SplitKeyframe(id, k) {
		if err := w.next(ChunkKeyframe, AppendKeyframePart(nil, p)); err != nil {
			return err
		}
	}
	return nil
}

// Finish ends the file with state and reason. The open tick must be empty.
func (w *Writer) Finish(state EndState, reason string) error {
	if err := w.flush(); err != nil {
		return err
	}
	if n := w.b.OpenSteps(); n > 0 {
		return fmt.Errorf("%w: the end inside tick %d, which has %s", ErrOrder, w.b.NextTick(), plural(n, "step"))
	}
	footer, err := w.t.Footer(w.out, w.at, state, reason)
	if err != nil {
		if w.t.End() != nil {
			w.err = err
		}
		return err
	}
	w.write(footer)
	return w.err
}

// Flush writes the closed ticks without ending the file.
func (w *Writer) Flush() error { return w.flush() }
