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
	troubleAnswer     = "disk"
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

// report says how it went last; nil ends the trouble. The log is written
// without the lock: whoever reads it may be slow.
func (t *troubles) report(what string, err error) {
	if err == nil {
		if x := t.end(what); x != nil {
			t.log.Info("trouble is over", "with", what, "after", time.Since(x.since).Round(time.Millisecond))
		}
		return
	}
	if since, first, again := t.note(what, err.Error()); first {
		t.log.Error("trouble", "with", what, "error", err)
	} else if again {
		t.log.Error("trouble goes on", "with", what, "error", err, "since", since)
	}
}

// end returns the trouble that is over; nil for none.
func (t *troubles) end(what string) *trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.now[what]
	delete(t.now, what)
	return x
}

// note tells since when the trouble lasts, and whether to log it, for the
// first time or again.
func (t *troubles) note(what, text string) (since time.Time, first, again bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.now[what]
	if x == nil {
		t.now[what] = &trouble{text: text, since: time.Now(), logged: time.Now()}
		return time.Now(), true, false
	}
	x.text = text
	if again = time.Since(x.logged) >= troubleAgain; again {
		x.logged = time.Now()
	}
	return x.since, false, again
}

// any tells whether there is any trouble.
func (t *troubles) any() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.now) > 0
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
