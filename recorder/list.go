package recorder

import (
	"cmp"
	"slices"
	"time"

	"reprise/format"
)

// Status is one session as it stands.
type Status struct {
	ID    string
	State State
	// Reason says why a session is in quarantine, or ends as unfinished.
	Reason string
	// File is the name of its file below the data folder. It need not exist
	// before the first bytes are written to it.
	File string
	// Epoch is the producer's connection, by number.
	Epoch uint64
	// Asleep is set until the file of a session found at the start was read;
	// the counts are not known before.
	Asleep bool
	// Received and Durable are sequence numbers; Totals counts what was
	// received, and ticks before DurableTick are safe.
	Received, Durable uint64
	format.Totals
	DurableTick format.Tick
	// Bytes is the size of the file once all of it is written. PendingBytes
	// of it, with PendingSteps steps, are in memory only or in the journal.
	Bytes, PendingBytes int64
	PendingSteps        int
	// Deadline is when a detached session ends; else zero.
	Deadline time.Time
	// Ended is set for a session that has ended.
	Ended *SealInfo
}

// List gives the sessions that have not ended, by id.
func (r *Recorder) List() []Status {
	all := r.all()
	list := make([]Status, len(all))
	for i, s := range all {
		list[i] = s.status()
	}
	slices.SortFunc(list, func(a, b Status) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Lookup gives one session, also one that has ended, however long ago; false
// where the id was never used. The id is found in any spelling.
func (r *Recorder) Lookup(id string) (Status, bool) {
	r.mu.Lock()
	s := r.sessions[idKey(id)]
	r.mu.Unlock()
	if s != nil {
		return s.status(), true
	}
	e, err := r.ledger.find(idKey(id))
	if err != nil || e == nil || e.live() {
		return Status{}, false
	}
	return e.status(), true
}

func (s *recording) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{ID: s.id, State: s.state, Reason: s.why, File: s.folder + "/" + s.file(), Epoch: s.epoch, Asleep: s.asleep,
		Received: s.now.seq, Durable: s.safe.seq, Totals: s.now.totals, DurableTick: s.safe.totals.NextTick,
		Bytes: s.size, PendingBytes: s.size - s.written}
	if !s.asleep {
		st.PendingSteps = int(s.now.totals.Steps - s.writtenSteps)
	}
	if s.state == StateDetached {
		st.Deadline = s.deadline
	}
	return st
}
