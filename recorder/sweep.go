package recorder

import (
	"fmt"
	"time"

	"reprise/format"
)

// sweepInterval is how often timeouts and the free space are looked at.
const sweepInterval = time.Second

// sweepLoop ends the sessions whose producers did not come back, and watches
// the disk.
func (r *Recorder) sweepLoop() {
	tick := time.NewTicker(min(sweepInterval, max(r.cfg.ResumeTimeout/4, time.Millisecond)))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-r.stop:
			return
		}
		r.watchDisk()
		for _, s := range r.all() {
			if s.overdue() {
				r.expire(s)
			}
		}
	}
}

// overdue tells whether the producer's time is up.
func (s *recording) overdue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == StateDetached && time.Now().After(s.deadline)
}

// expire ends a session as unfinished.
func (r *Recorder) expire(s *recording) {
	s.entry.Lock()
	defer s.entry.Unlock()
	if err := s.wake(); err != nil {
		return
	}
	if !s.overdue() {
		return
	}
	why := fmt.Sprintf("producer gone for %v before the first tick", r.cfg.ResumeTimeout)
	if last, ok := s.tracker.Summary().LastTick(); ok {
		why = fmt.Sprintf("producer gone for %v after tick %d", r.cfg.ResumeTimeout, last)
	}
	if s.overQuota {
		why += fmt.Sprintf(", when the session was as large as it may be: %d bytes", s.size)
	}
	r.log.Warn("session ends as unfinished", "session", s.id, "reason", why)
	s.beginEnd(format.EndUnfinished, why)
}

// watchDisk refuses new sessions while the disk is nearly full.
func (r *Recorder) watchDisk() {
	free, err := r.fs.Free()
	if least := r.limits.Load().MinFreeBytes; err == nil && free < least {
		err = fmt.Errorf("%d bytes are free, new sessions need %s: make room", free, sizeText(least))
	}
	r.diskLow.Store(err != nil)
	r.troubles.report(troubleDisk, err)
}
