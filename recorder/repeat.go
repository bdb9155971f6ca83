package recorder

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"

	"reprise/format"
)

// A producer that comes back sends again what it does not know to be safe.
// Whole chunks keep their sequence numbers; one that lost its chunks makes
// new ones, whose first ticks are recorded already. What was sent again is
// compared with what is recorded, and is never recorded twice.

// overlaps tells whether a ticks chunk was refused because it begins before
// the tick that is due.
func overlaps(err error) bool {
	var order *format.OrderError
	return errors.As(err, &order) && order.What == "tick" && order.Got < order.Want
}

// repeat answers a chunk whose sequence number is taken: it is acknowledged
// again if it says what is recorded. The caller holds entry.
func (s *recording) repeat(c format.Chunk, framed []byte) *Refusal {
	if digest, ok := s.recent.find(c.Seq); ok && digest == digestOf(framed) {
		s.askAck()
		return nil
	}
	var r *Refusal
	if c.Type == format.ChunkTicks {
		r = s.sameTicks(c)
	} else {
		r = s.sameChunk(c)
	}
	if r == nil {
		s.askAck()
	}
	return r
}

// askAck has the next flush tell the producer where the session stands.
func (s *recording) askAck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enqueue()
}

// sameTicks compares a ticks chunk with the recorded ticks.
func (s *recording) sameTicks(c format.Chunk) *Refusal {
	due := s.tracker.Totals().NextTick
	b, err := format.ParseBatch(c.Body, s.hashBytes())
	if err != nil {
		return refusalOf(err, due)
	}
	if b.Next() > due {
		return refuse(CodeConflict, due, "chunk %d is recorded without tick %d, which it now holds", c.Seq, due)
	}
	missing, r := s.compareTicks(&b)
	if r == nil && len(missing) > 0 {
		t := missing[0].Tick
		r = refuse(CodeConflict, t, "chunk %d is recorded without the hash of tick %d, which it now holds", c.Seq, t)
	}
	return r
}

// sameChunk compares any other chunk with the recorded one of its number.
func (s *recording) sameChunk(c format.Chunk) *Refusal {
	due := s.tracker.Totals().NextTick
	stored := chunkReader{src: s.source(), at: s.places.beforeSeq(c.Seq), size: s.size}
	for {
		have, _, _, err := stored.next()
		if err != nil {
			return s.unreadable(err)
		}
		if have.Seq != c.Seq {
			continue
		}
		if have.Type != c.Type || !bytes.Equal(have.Body, c.Body) {
			return refuse(CodeConflict, due, "chunk %d is recorded as another %v chunk", c.Seq, have.Type)
		}
		return nil
	}
}

// unreadable refuses what would have to be compared with a file that cannot
// be read.
func (s *recording) unreadable(err error) *Refusal {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	s.r.log.Error("session cannot be read back", "session", s.id, "error", err)
	return refuse(CodeStorage, s.tracker.Totals().NextTick, "session %s cannot be read back: %s", s.id, kindOf(err))
}

// overlap takes a ticks chunk, next in number, whose first ticks are
// recorded: those are compared, the others recorded. A hash that comes with
// a recorded tick that has none is recorded as a late one.
func (s *recording) overlap(p format.Parsed, framed []byte) *Refusal {
	missing, r := s.compareTicks(&p.Batch)
	if r != nil {
		return r
	}
	due := s.tracker.Totals().NextTick
	var late format.Parsed
	var err error
	if len(missing) > 0 {
		body := format.AppendHashes(nil, missing)
		if late, err = s.tracker.Check(format.Chunk{Type: format.ChunkHashes, Body: body}); err != nil {
			return refusalOf(err, due)
		}
	}
	rest, err := s.restOf(&p.Batch, p.Chunk.Seq, due)
	if err != nil {
		return refusalOf(err, due)
	}
	if len(missing) > 0 {
		s.keep(late, format.AppendChunk(nil, format.ChunkHashes, 0, late.Chunk.Body))
	}
	s.recent.add(p.Chunk.Seq, digestOf(framed))
	s.keep(rest, format.AppendChunk(nil, rest.Chunk.Type, rest.Chunk.Seq, rest.Chunk.Body))
	return nil
}

// restOf makes a chunk of the ticks from due on. Where there are none it
// makes an empty chunk of reports, so that the producer's count goes on.
func (s *recording) restOf(b *format.Batch, seq uint64, due format.Tick) (format.Parsed, error) {
	c := format.Chunk{Type: format.ChunkReports, Seq: seq, Body: format.AppendReports(nil, nil)}
	if b.Next() > due {
		builder := format.NewBatchBuilder(b.Width, s.hashBytes(), due)
		ticks := b.Reader()
		for t := (format.TickRecord{}); ticks.Next(&t); {
			if t.Tick < due {
				continue
			}
			if err := builder.Add(&t); err != nil {
				return format.Parsed{}, err
			}
		}
		c = format.Chunk{Type: format.ChunkTicks, Seq: seq, Body: builder.AppendBody(nil)}
	}
	return s.tracker.Check(c)
}

// compareTicks compares the ticks of b that are recorded with the record:
// steps, and hashes where both have one. (The times are the first ones
// sent.) It returns the hashes that the record lacks.
func (s *recording) compareTicks(b *format.Batch) ([]format.TickHash, *Refusal) {
	meta := s.tracker.Meta()
	if b.First < meta.FirstTick || b.Width != meta.Width {
		return nil, refuse(CodeConflict, b.First, "tick %d with codes of %d bits in a session that begins with tick %d and has %d", b.First, b.Width, meta.FirstTick, meta.Width)
	}
	k := comparison{ticks: b.Reader(), until: min(b.Next(), s.tracker.Totals().NextTick), hashBytes: meta.HashBytes}
	k.advance()
	stored := chunkReader{src: s.source(), at: s.places.beforeTick(b.First), size: s.size}
	for {
		c, _, _, err := stored.next()
		if err == io.EOF {
			return k.end()
		}
		if err == nil {
			err = k.chunk(c)
		}
		var r *Refusal
		if errors.As(err, &r) {
			return nil, r
		}
		if err != nil {
			return nil, s.unreadable(err)
		}
	}
}

// comparison walks the ticks that were sent again along those recorded.
type comparison struct {
	ticks     format.BatchReader
	t         format.TickRecord // the next tick to compare
	until     format.Tick       // ticks from it on are not recorded
	done      bool
	hashBytes int
	missing   []format.TickHash
}

func (k *comparison) advance() {
	k.done = !k.ticks.Next(&k.t) || k.t.Tick >= k.until
}

// chunk compares with one recorded chunk. The error may be a *Refusal.
func (k *comparison) chunk(c format.Chunk) error {
	switch c.Type {
	case format.ChunkTicks:
		b, err := format.ParseBatch(c.Body, k.hashBytes)
		if err != nil || k.done || b.Next() <= k.t.Tick {
			return err
		}
		return k.batch(&b)
	case format.ChunkHashes:
		hashes, err := format.ParseHashes(c.Body, k.hashBytes)
		if err != nil {
			return err
		}
		return k.late(hashes)
	}
	return nil
}

func (k *comparison) batch(b *format.Batch) error {
	ticks := b.Reader()
	for have := (format.TickRecord{}); !k.done && ticks.Next(&have); {
		if have.Tick < k.t.Tick {
			continue
		}
		if err := k.tick(&have); err != nil {
			return err
		}
		k.advance()
	}
	return nil
}

func (k *comparison) tick(have *format.TickRecord) error {
	t := k.t.Tick
	switch {
	case have.Tick != t:
		return missingTick(t)
	case have.Steps != k.t.Steps || !bytes.Equal(have.Commands, k.t.Commands) || !bytes.Equal(have.Params, k.t.Params):
		return refuse(CodeConflict, t, "tick %d is recorded with other steps", t)
	case k.t.Hash == nil:
	case have.Hash == nil:
		k.missing = append(k.missing, format.TickHash{Tick: t, Hash: k.t.Hash})
	case !bytes.Equal(have.Hash, k.t.Hash):
		return refuse(CodeConflict, t, "tick %d is recorded with another hash", t)
	}
	return nil
}

// late takes recorded hashes that came after their ticks.
func (k *comparison) late(hashes []format.TickHash) error {
	for _, h := range hashes {
		i, ok := slices.BinarySearchFunc(k.missing, h.Tick, func(m format.TickHash, t format.Tick) int { return cmp.Compare(m.Tick, t) })
		if !ok || k.missing[i].Hash == nil {
			continue
		}
		if !bytes.Equal(k.missing[i].Hash, h.Hash) {
			return refuse(CodeConflict, h.Tick, "tick %d is recorded with another hash", h.Tick)
		}
		k.missing[i].Hash = nil
	}
	return nil
}

// end gives the hashes that the record lacks, once all of it was seen.
func (k *comparison) end() ([]format.TickHash, *Refusal) {
	if !k.done {
		return nil, missingTick(k.t.Tick)
	}
	return slices.DeleteFunc(k.missing, func(m format.TickHash) bool { return m.Hash == nil }), nil
}

func missingTick(t format.Tick) *Refusal {
	return refuse(CodeConflict, t, "tick %d is recorded as missing: it cannot be put in afterwards", t)
}
