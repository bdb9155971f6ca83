package archive

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"syscall"
	"time"
)

// batch is how many files a worker gets in one round, so that rounds stay
// short enough to look after everything else in between.
const batch = 8

// round archives what is due, as much as one round takes, and tells whether
// there is more.
func (a *Archiver) round(ctx context.Context) (more bool) {
	now := time.Now()
	due, err := a.dueNow(now)
	a.stats.trouble(troubleFolders, err)
	a.stats.queue.Store(int64(len(due)))
	due, waits := a.affordable(due)
	a.stats.trouble(troubleRoom, waits)
	most := batch * len(a.workers)
	more = len(due) > most
	due = due[:min(len(due), most)]
	for _, r := range a.work(due) {
		if ctx.Err() != nil {
			return false
		}
		a.settle(r, time.Now())
	}
	return more
}

// dueNow gives what is to be archived now.
func (a *Archiver) dueNow(now time.Time) ([]source, error) {
	ended, err := endedFiles(a.disk, a.cfg.Sessions.Lookup)
	if err != nil {
		return nil, err
	}
	var due []source
	there := map[string]bool{}
	for i := range ended {
		there[ended[i].name] = true
		if a.due(&ended[i], now) {
			due = append(due, ended[i])
		}
	}
	if a.inbox != nil {
		var dropped []source
		dropped, err = a.dropped(now, there)
		due = append(due, dropped...)
	}
	a.tries.only(there)
	a.stats.failingOnly(there)
	return due, err
}

// result is how the work on a file went.
type result struct {
	source
	err error
}

// work has the workers archive files, and waits for them.
func (a *Archiver) work(due []source) []result {
	results := make([]result, len(due))
	next := make(chan int)
	var running sync.WaitGroup
	for _, w := range a.workers[:min(len(a.workers), len(due))] {
		running.Go(func() {
			for i := range next {
				results[i] = result{due[i], w.archive(due[i])}
			}
		})
	}
	for i := range due {
		next <- i
	}
	close(next)
	running.Wait()
	return results
}

// settle draws the conclusion from how the work on a file went.
func (a *Archiver) settle(r result, now time.Time) {
	switch {
	case r.err == nil:
		a.tries.done(r.name)
		a.stats.settled(r.name, nil)
	case errors.Is(r.err, fs.ErrNotExist) && !a.there(r.name):
		// Somebody took it away, as they may.
		a.tries.done(r.name)
		a.stats.settled(r.name, nil)
	case errors.Is(r.err, errNotYet), r.dropped && setsAside(r.err) && a.inbox.hurried(r.name):
		a.inbox.wait(r.name)
	case r.dropped && setsAside(r.err):
		err := a.quarantine(r.name, r.err)
		a.stats.trouble(troubleQuarantine, err)
	case errors.Is(r.err, syscall.ENOSPC):
		a.tries.failed(r.name, now)
		a.stats.trouble(troubleFull, r.err)
	default:
		a.tries.failed(r.name, now)
		a.stats.settled(r.name, r.err)
		a.log.Error("replay not archived, its file stays", "file", r.name, "error", r.err, "again_at", a.tries.of[r.name].next.Format(time.RFC3339))
	}
}

func (a *Archiver) there(name string) bool {
	there, err := exists(a.disk, name)
	return there || err != nil
}

// affordable leaves out what does not fit on the disk beside what recording
// needs, twice over, and says so.
func (a *Archiver) affordable(due []source) ([]source, error) {
	free, needed, err := a.cfg.Sessions.Room()
	if err != nil {
		return nil, err
	}
	spare := free - reserve*needed
	fits := due[:0]
	for _, s := range due {
		if s.bytes+roomForNames <= spare {
			fits = append(fits, s)
		}
	}
	if len(fits) < len(due) {
		return fits, &roomError{free: free, kept: reserve * needed, waiting: len(due) - len(fits)}
	}
	return fits, nil
}

const (
	// reserve times what recording needs stays free: archiving stops first.
	reserve = 2
	// roomForNames is more than folders and the catalog grow by.
	roomForNames = 64 << 10
)
