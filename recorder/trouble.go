package recorder

import (
	"log/slog"
	"sync"
	"time"
)

// What can be in trouble.
const (
	troubleJournal    = "journal"
	troubleFiles      = "session files"
	troubleCheckpoint = "checkpoint"
	troubleEnd        = "finishing sessions"
	troubleDisk       = "free space"
)

// troubles keeps the errors that last, and logs when one begins, now and
// then while it lasts, and when it is over.
type troubles struct {
	log *slog.Logger
	mu  sync.Mutex
	now map[string]*trouble
}

type trouble struct {
	text   string
	since  time.Time
	logged time.Time
}

// troubleAgain is how often a trouble that lasts is logged.
const troubleAgain = time.Minute

// report says how it went last; nil ends the trouble.
func (t *troubles) report(what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.now[what]
	switch {
	case err == nil && x != nil:
		delete(t.now, what)
		t.log.Info("trouble is over", "with", what, "after", time.Since(x.since).Round(time.Millisecond))
	case err == nil:
	case x == nil:
		t.now[what] = &trouble{text: err.Error(), since: time.Now(), logged: time.Now()}
		t.log.Error("trouble", "with", what, "error", err)
	default:
		x.text = err.Error()
		if time.Since(x.logged) >= troubleAgain {
			x.logged = time.Now()
			t.log.Error("trouble goes on", "with", what, "error", err, "since", x.since)
		}
	}
}

// list gives the present troubles as sentences, by part.
func (t *troubles) list() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := make(map[string]string, len(t.now))
	for what, x := range t.now {
		m[what] = x.text
	}
	return m
}
