package recorder

import (
	"log/slog"
	"sync"
)

// What can be in trouble.
const (
	troubleJournal    = "journal"
	troubleFiles      = "session files"
	troubleCheckpoint = "checkpoint"
	troubleEnd        = "finishing sessions"
	troubleDisk       = "free space"
)

// troubles keeps the errors that last, and logs when one begins and ends.
type troubles struct {
	log *slog.Logger
	mu  sync.Mutex
	now map[string]string
}

// report says how it went last; nil ends the trouble.
func (t *troubles) report(what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, bad := t.now[what]
	switch {
	case err == nil && bad:
		delete(t.now, what)
		t.log.Info("trouble is over", "with", what)
	case err != nil && was != err.Error():
		t.now[what] = err.Error()
		t.log.Error("trouble", "with", what, "error", err)
	}
}

// list gives the present troubles as sentences.
func (t *troubles) list() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := make(map[string]string, len(t.now))
	for k, v := range t.now {
		m[k] = v
	}
	return m
}
