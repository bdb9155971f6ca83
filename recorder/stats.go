package recorder

import (
	"sync"
	"sync/atomic"
	"time"

	"reprise/format"
)

// Stats are the recorder's own numbers. Counters begin at 0 with Open.
type Stats struct {
	// Sessions counts those that have not ended by state.
	Sessions map[State]int
	// PendingBytes are in memory and not in session files.
	PendingBytes int64
	// Segments of the journal: all, and those that hold records.
	Segments, SegmentsUsed int

	// Flushes counts syncs of the journal; FlushTime is their sum, LastFlush
	// and SlowestFlush single ones. FlushedSessions adds up the sessions
	// that shared them.
	Flushes, FlushedSessions           uint64
	FlushTime, LastFlush, SlowestFlush time.Duration
	// Checkpoints likewise.
	Checkpoints    uint64
	LastCheckpoint time.Duration
	// JournalErrors counts failed writes and syncs of the journal, FileErrors
	// failed syncs of session files. No data was lost by them.
	JournalErrors, FileErrors uint64
	// Recovered counts the journal records that the start replayed.
	Recovered uint64

	// Sealed and Unfinished count the sessions that ended so.
	Sealed, Unfinished uint64
	// Refused counts refusals by code.
	Refused map[Code]uint64
	// Troubles says what does not work at this moment, by part.
	Troubles map[string]string
}

// counters collect the Stats.
type counters struct {
	journalErrors, fileErrors, recovered atomic.Uint64
	sealed, unfinished                   atomic.Uint64
	refused                              [len(codeNames)]atomic.Uint64

	mu sync.Mutex
	s  Stats
}

func (c *counters) flushed(d time.Duration, sessions int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Flushes++
	c.s.FlushedSessions += uint64(sessions)
	c.s.FlushTime += d
	c.s.LastFlush = d
	c.s.SlowestFlush = max(c.s.SlowestFlush, d)
}

func (c *counters) checkpointed(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Checkpoints++
	c.s.LastCheckpoint = d
}

func (c *counters) ended(end format.EndState) {
	if end == format.EndSealed {
		c.sealed.Add(1)
		return
	}
	c.unfinished.Add(1)
}

// count counts a refusal and returns it as an error; nil for none.
func (r *Recorder) count(f *Refusal) error {
	if f == nil {
		return nil
	}
	r.stats.refused[f.Code].Add(1)
	return f
}

// Stats gives the numbers as they stand.
func (r *Recorder) Stats() Stats {
	r.stats.mu.Lock()
	s := r.stats.s
	r.stats.mu.Unlock()
	s.Sessions, s.Refused = map[State]int{}, map[Code]uint64{}
	for _, x := range r.all() {
		s.Sessions[x.status().State]++
	}
	s.PendingBytes = r.pending.Load()
	s.Segments, s.SegmentsUsed = r.journal.segments()
	s.JournalErrors, s.FileErrors, s.Recovered = r.stats.journalErrors.Load(), r.stats.fileErrors.Load(), r.stats.recovered.Load()
	s.Sealed, s.Unfinished = r.stats.sealed.Load(), r.stats.unfinished.Load()
	for i := range r.stats.refused {
		if n := r.stats.refused[i].Load(); n > 0 {
			s.Refused[Code(i)] = n
		}
	}
	s.Troubles = r.troubles.list()
	return s
}
