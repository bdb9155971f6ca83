package format

import (
	"fmt"
	"io"
)

// Reader gives a replay's ticks in ascending order, each with its hash even
// where the hash came late. A declared gap shows as a jump of the tick
// number; any other jump is damage. A Reader that failed stays failed.
type Reader struct {
	sum   *Summary
	seek  []seekEntry
	reach []int // for each stretch, the last one with late hashes for it
	scan  scanner
	ticks BatchReader
	batch Batch
	dec   archiveReader
	next  Tick // due
	until Tick // ticks before it are passed over
	gap   int  // index of the next gap
	err   error

	stretch int // of the batch
	late    map[Tick][]byte
	loaded  int // stretches whose late hashes are in late
}

func newReader(src io.ReaderAt, size int64, sum *Summary, seek []seekEntry) *Reader {
	r := &Reader{sum: sum, seek: seek, scan: scanner{src: src, size: size, at: HeaderSize}, next: sum.Meta.FirstTick, stretch: -1}
	r.reach = reachOf(seek)
	return r
}

// reachOf finds, for each stretch, the last stretch that holds a late hash
// for it or for an earlier one; nil where no hash came late.
func reachOf(seek []seekEntry) []int {
	var reach []int
	for j, e := range seek {
		if e.late == noLate {
			continue
		}
		if reach == nil {
			reach = make([]int, len(seek))
			for i := range reach {
				reach[i] = -1
			}
		}
		i := seekIndex(seek, e.late)
		if i >= 0 {
			reach[i] = max(reach[i], j)
		}
	}
	for i := 1; i < len(reach); i++ {
		reach[i] = max(reach[i], reach[i-1])
	}
	return reach
}

// seekIndex is the last entry whose tick is not after t; -1 before the
// first.
func seekIndex(seek []seekEntry, t Tick) int {
	lo, hi := 0, len(seek)
	for lo < hi {
		if mid := (lo + hi) / 2; seek[mid].tick <= t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// Seek moves the reader so that the next tick is t, or the first one after
// it that is recorded.
func (r *Reader) Seek(t Tick) {
	r.err, r.batch, r.ticks = nil, Batch{}, BatchReader{}
	r.until = t
	r.gap, r.late, r.loaded = 0, nil, 0
	r.scan.at, r.next, r.stretch = HeaderSize, r.sum.Meta.FirstTick, -1
	if i := seekIndex(r.seek, t); i >= 0 {
		r.scan.at, r.next, r.stretch = r.seek[i].offset, r.seek[i].tick, i-1
		r.loaded = i
	}
	for r.gap < len(r.sum.Gaps) && r.sum.Gaps[r.gap].Last < r.next {
		r.gap++
	}
}

// Next fills t with the next tick; io.EOF after the last one. The record is
// valid until the next call.
func (r *Reader) Next(t *TickRecord) error {
	for r.err == nil {
		if r.ticks.b == nil || !r.ticks.Next(t) {
			r.err = r.nextBatch()
			continue
		}
		if len(r.late) > 0 {
			if r.err = r.takeLate(t); r.err != nil {
				continue
			}
		}
		if t.Tick >= r.until {
			return nil
		}
	}
	return r.err
}

// takeLate gives a tick its hash that came late.
func (r *Reader) takeLate(t *TickRecord) error {
	h, ok := r.late[t.Tick]
	if !ok {
		return nil
	}
	if t.Hash != nil {
		return &CorruptError{Offset: r.scan.at, What: fmt.Sprintf("tick %d has two hashes", t.Tick)}
	}
	t.Hash = h
	delete(r.late, t.Tick)
	return nil
}

// skipEmpty passes over at most so many ticks of which nothing is recorded.
func (r *Reader) skipEmpty(most int) int {
	if r.err != nil || r.ticks.b == nil || len(r.late) > 0 {
		return 0
	}
	return r.ticks.skipEmpty(most)
}

// nextBatch finds the next ticks chunk; io.EOF at the end of the content.
func (r *Reader) nextBatch() error {
	for {
		c, at, err := r.scan.next()
		if err == io.EOF || err == nil && c.Type == ChunkEnd {
			return r.atEnd(at)
		}
		if err != nil {
			return err
		}
		if !c.Type.holdsTicks() {
			continue
		}
		if passed, err := r.pass(c, at); passed && err == nil {
			continue
		} else if err != nil {
			return err
		}
		if r.batch, err = r.dec.batch(c, r.sum.Meta.HashBytes); err != nil {
			return shift(err, r.scan.at-int64(len(c.Body)))
		}
		if err := r.follow(r.batch.First, r.batch.Next(), at); err != nil {
			return err
		}
		r.ticks = r.batch.Reader()
		return r.enterStretch(at)
	}
}

// pass goes past archived ticks that all stand before the wanted one, without
// decoding them.
func (r *Reader) pass(c Chunk, at int64) (bool, error) {
	if c.Type != ChunkArchived || r.until <= r.next {
		return false, nil
	}
	h, err := parseArchiveHead(c.Body)
	if err != nil {
		return false, shift(err, r.scan.at-int64(len(c.Body)))
	}
	if h.next() > r.until {
		return false, nil
	}
	return true, r.follow(h.First, h.next(), at)
}

// follow checks that ticks from first to before next are due, or stand behind a
// declared gap.
func (r *Reader) follow(first, next Tick, at int64) error {
	for r.gap < len(r.sum.Gaps) && r.sum.Gaps[r.gap].First == r.next && first > r.next {
		r.next = r.sum.Gaps[r.gap].Last + 1
		r.gap++
	}
	if first != r.next {
		return &CorruptError{Offset: at, What: fmt.Sprintf("tick %d stands where tick %d is due", first, r.next)}
	}
	r.next = next
	return nil
}

func (r *Reader) atEnd(at int64) error {
	for r.gap < len(r.sum.Gaps) && r.sum.Gaps[r.gap].First == r.next {
		r.next = r.sum.Gaps[r.gap].Last + 1
		r.gap++
	}
	if r.next != r.sum.NextTick {
		return &CorruptError{Offset: at, What: fmt.Sprintf("the ticks end before %d, the summary says before %d", r.next, r.sum.NextTick)}
	}
	return io.EOF
}

// enterStretch follows the seek table along and loads the late hashes that
// the new stretches need. Hashes of ticks that were passed are dropped.
func (r *Reader) enterStretch(at int64) error {
	for r.stretch+1 < len(r.seek) && r.seek[r.stretch+1].offset <= at {
		r.stretch++
	}
	if r.reach == nil || r.stretch < 0 {
		return nil
	}
	for r.loaded <= r.reach[r.stretch] {
		if err := r.loadLate(r.loaded); err != nil {
			return err
		}
		r.loaded++
	}
	return nil
}

// loadLate reads the late hashes that stand in one stretch.
func (r *Reader) loadLate(i int) error {
	if r.seek[i].late == noLate {
		return nil
	}
	end := r.scan.size
	if i+1 < len(r.seek) {
		end = r.seek[i+1].offset
	}
	if r.late == nil {
		r.late = map[Tick][]byte{}
	}
	s := scanner{src: r.scan.src, size: end, at: r.seek[i].offset}
	for {
		c, _, err := s.next()
		if err == io.EOF || err == nil && c.Type == ChunkEnd {
			return nil
		}
		if err != nil {
			return err
		}
		if c.Type != ChunkHashes {
			continue
		}
		hashes, err := ParseHashes(c.Body, r.sum.Meta.HashBytes)
		if err != nil {
			return shift(err, s.at-int64(len(c.Body)))
		}
		r.keepLate(hashes)
	}
}

func (r *Reader) keepLate(hashes []TickHash) {
	for _, h := range hashes {
		if h.Tick >= r.batch.First {
			r.late[h.Tick] = append([]byte(nil), h.Hash...)
		}
	}
}
