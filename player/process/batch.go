package process

import "time"

// Ticks go out in batches, each of which ends with a flush. Two batches are
// under way at most: the child works on one while the other waits for it, so
// it never runs dry, and what has to be waited for when playback rests is
// short.
const (
	// mostBatches is how many batches are under way.
	mostBatches = 2
	// mostBatchTicks and mostBatchBytes bound one. A larger tick is a batch
	// of its own.
	mostBatchTicks = 256
	mostBatchBytes = 64 << 10
	// A batch should take the child batchTime; half and twice of it are
	// good, too.
	batchTime = 10 * time.Millisecond
)

// batch is ticks on their way.
type batch struct {
	mode flushMode
	// ticks is their number, and end that of all ticks up to the last one.
	ticks int
	end   uint64
	sent  time.Time
}

// sizer finds out how many ticks make a batch of the right time: fast games
// need large ones for the sake of speed, slow ones small for the sake of rest.
type sizer struct {
	limit int
	// full is when the last batch came back.
	full time.Time
}

// returned notes a batch that came back.
func (s *sizer) returned(b batch, now time.Time) {
	from := b.sent
	if s.full.After(from) {
		from = s.full // the child worked on another one until then
	}
	s.full = now
	took := now.Sub(from)
	switch {
	case b.ticks == 0:
	case took > 2*batchTime:
		s.limit = max(1, int(int64(b.ticks)*int64(batchTime)/int64(took)))
	case took < batchTime/2 && b.ticks >= s.limit:
		s.limit = min(2*s.limit, mostBatchTicks)
	}
}
