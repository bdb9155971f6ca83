package archive

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"reprise/recorder"
)

// pace keeps one worker to its share of a processor: the work between two
// calls of rest is measured, and each piece of it is followed by a pause in
// proportion. Waiting for the disk counts as work.
type pace struct {
	ctx   context.Context
	share float64

	from time.Time     // of the work that is not paid for
	owed time.Duration // pauses that are due
	// worked and rested are the sums, in nanoseconds.
	worked, rested atomic.Int64
}

// shortPause is what is owed before a worker pauses: timers are not exact.
const shortPause = 5 * time.Millisecond

func newPace(ctx context.Context, share float64) *pace {
	return &pace{ctx: ctx, share: share, from: time.Now()}
}

// begin says that work starts now: what was before was waiting.
func (p *pace) begin() { p.from = time.Now() }

// rest pauses as long as the work since the last call demands. The error is
// the end of the context.
func (p *pace) rest() error {
	work := time.Since(p.from)
	p.worked.Add(int64(work))
	p.owed += time.Duration(float64(work) * (1/p.share - 1))
	if p.owed >= shortPause {
		p.pause()
	}
	p.from = time.Now()
	return p.ctx.Err()
}

func (p *pace) pause() {
	start := time.Now()
	timer := time.NewTimer(p.owed)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
	}
	rested := time.Since(start)
	p.rested.Add(int64(rested))
	p.owed = max(0, p.owed-rested)
}

// spent gives the sums of work and pauses. It may be called at any time.
func (p *pace) spent() (worked, rested time.Duration) {
	return time.Duration(p.worked.Load()), time.Duration(p.rested.Load())
}

// pacedReader and pacedWriter rest at every call.
type pacedReader struct {
	recorder.File
	pace *pace
}

func (r pacedReader) ReadAt(b []byte, off int64) (int, error) {
	if err := r.pace.rest(); err != nil {
		return 0, err
	}
	return r.File.ReadAt(b, off)
}

// pacedWriter appends to a file.
type pacedWriter struct {
	file recorder.File
	pace *pace
	at   int64
}

var _ io.Writer = (*pacedWriter)(nil)

func (w *pacedWriter) Write(b []byte) (int, error) {
	if err := w.pace.rest(); err != nil {
		return 0, err
	}
	n, err := w.file.WriteAt(b, w.at)
	w.at += int64(n)
	return n, err
}
