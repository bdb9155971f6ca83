package archive

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Stats are the archiver's own numbers. Counters begin at 0 with Open.
type Stats struct {
	// Archived counts the files that were archived, BytesIn their sizes,
	// BytesOut those of their archives.
	Archived          uint64
	BytesIn, BytesOut int64
	// Failed counts failed attempts, Failing the files whose last one failed.
	Failed  uint64
	Failing int
	// Queue is how many files were due at the last look.
	Queue int64
	// Quarantined counts the files of the inbox that were set aside.
	Quarantined uint64
	// Removed counts replays that were removed, and RemovedBytes their sizes,
	// by what asked for it: age, bytes or count.
	Removed      map[string]uint64
	RemovedBytes int64
	// Held counts the replays that are kept, HeldBytes their sizes, Kept those
	// of them that are not to be removed.
	Held, Kept int
	HeldBytes  int64
	// Bounds are the policy's for all replays, Unmet says which bounds
	// cannot be met.
	Bounds Rule
	Unmet  []string
	// Worked is how long the workers worked, Rested how long they paused for
	// their share.
	Worked, Rested time.Duration
	// Troubles says what does not work at this moment, by part.
	Troubles map[string]string
}

// What can be in trouble.
const (
	troubleStart      = "start of the archiver"
	troubleArchiver   = "archiver"
	troubleRoom       = "room for archives"
	troubleFull       = "full disk"
	troubleFolders    = "folders of the archiver"
	troubleCatalog    = "catalog"
	troubleRetention  = "retention"
	troubleQuarantine = "quarantine"
)

// keepsFailing is how many attempts must fail one after the other, without one
// that goes well, before that is a trouble.
const keepsFailing = 3

// counters collect the Stats.
type counters struct {
	log                   *slog.Logger
	archived, quarantined atomic.Uint64
	bytesIn, bytesOut     atomic.Int64
	queue                 atomic.Int64

	mu       sync.Mutex
	failed   uint64
	failing  map[string]bool // files
	inARow   int
	troubles map[string]string
	gone     map[string]uint64
	goneSize int64
	held     Stats // Held, HeldBytes, Kept, Unmet
}

// trouble says how it went last with a part; nil ends the trouble.
func (c *counters) trouble(part string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setTrouble(part, err)
}

func (c *counters) setTrouble(part string, err error) {
	_, was := c.troubles[part]
	switch {
	case err == nil && was:
		delete(c.troubles, part)
		c.log.Info("trouble is over", "with", part)
	case err != nil:
		if c.troubles == nil {
			c.troubles = map[string]string{}
		}
		c.troubles[part] = strings.ReplaceAll(err.Error(), "\n", "; ")
		if !was {
			c.log.Error("trouble", "with", part, "error", err)
		}
	}
}

// settled notes how the work on a file went. Damage of a single file is no
// trouble of the archiver's, though the file counts as failing.
func (c *counters) settled(name string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.failing, name)
		c.inARow = 0
		c.setTrouble(troubleArchiver, nil)
		c.setTrouble(troubleFull, nil)
		return
	}
	c.failed++
	if c.failing == nil {
		c.failing = map[string]bool{}
	}
	c.failing[name] = true
	if isDamage(err) {
		return
	}
	if c.inARow++; c.inARow >= keepsFailing {
		c.setTrouble(troubleArchiver, err)
	}
}

// failingOnly forgets all but the files that are there.
func (c *counters) failingOnly(there map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.failing, func(name string, _ bool) bool { return !there[name] })
}

// removed notes a removal.
func (c *counters) removed(cause string, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone == nil {
		c.gone = map[string]uint64{}
	}
	c.gone[cause]++
	c.goneSize += bytes
}

// keeps notes what is kept after a look at it, without the files that are gone.
func (c *counters) keeps(held []Holding, gone map[string]bool, unmet []string) {
	now := Stats{Unmet: unmet}
	for i := range held {
		if gone[held[i].File] {
			continue
		}
		now.Held++
		now.HeldBytes += held[i].Bytes
		if held[i].Kept != "" {
			now.Kept++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(unmet, c.held.Unmet) && len(unmet) > 0 {
		c.log.Warn("what is kept is not within its bounds", "bounds", strings.Join(unmet, "; "))
	}
	c.held = now
}

// Stats gives the numbers as they stand.
func (a *Archiver) Stats() Stats {
	c := &a.stats
	c.mu.Lock()
	s := c.held
	s.Bounds = a.policy.Load().Rule
	s.Failed, s.Failing = c.failed, len(c.failing)
	s.Removed, s.RemovedBytes = maps.Clone(c.gone), c.goneSize
	s.Troubles = maps.Clone(c.troubles)
	c.mu.Unlock()
	s.Archived, s.Quarantined, s.Queue = c.archived.Load(), c.quarantined.Load(), c.queue.Load()
	s.BytesIn, s.BytesOut = c.bytesIn.Load(), c.bytesOut.Load()
	for _, w := range a.workers {
		worked, rested := w.pace.spent()
		s.Worked += worked
		s.Rested += rested
	}
	return s
}
