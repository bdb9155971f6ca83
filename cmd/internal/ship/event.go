package ship

import (
	"errors"
	"fmt"
	"strings"

	"reprise/format"
)

// ErrUnsealed is matched by the error of Run where not every file that was
// seen is sealed at the daemon.
var ErrUnsealed = errors.New("not every file is sealed at the daemon")

// ErrReplaced is matched by the error of a file that is not the one that was
// shipped under its name before: it was replaced, truncated or rewritten.
var ErrReplaced = errors.New("not the file that was shipped under its name (a new one needs another name)")

// ErrTaken is matched by the error of a file whose session id belongs to
// another file of the folder.
var ErrTaken = errors.New("the session id belongs to another file (each file needs an id of its own)")

// EventKind says what happened.
type EventKind uint8

const (
	// EventStarted: the file's session was opened at the daemon.
	EventStarted EventKind = iota
	// EventResumed: the session was opened again, after a lost connection, a
	// restart or a pause of the file.
	EventResumed
	// EventDurable: all ticks before Tick are safe on the daemon's disk. It
	// is told at most once a second for a file.
	EventDurable
	// EventSealed: the session is sealed, and Digest is the file's.
	EventSealed
	// EventUnfinished: the file ends without an end mark and does not grow.
	// The session was left; it goes on if the file grows again.
	EventUnfinished
	// EventFailed: the file is given up, for this run at least. The others
	// go on.
	EventFailed
	// EventTrouble: something goes wrong that is tried again. Without a File
	// it concerns all.
	EventTrouble
	// EventSummary is the last event.
	EventSummary
)

// Event is something that happened to a file.
type Event struct {
	Kind EventKind
	// File is the file's name in the folder, Session its session id once that
	// is known.
	File, Session string
	// Tick is the first tick that is not durable.
	Tick format.Tick
	// Digest and Name are those of the sealed replay at the daemon.
	Digest format.Digest
	Name   string
	// Err says why, for the last four kinds but the summary.
	Err error
	// Summary is set for EventSummary.
	Summary *Summary
}

// String is the event as a line for people.
func (e Event) String() string {
	var b strings.Builder
	if e.File != "" {
		fmt.Fprintf(&b, "%q: ", e.File)
	}
	if e.Session != "" && e.Kind != EventDurable {
		fmt.Fprintf(&b, "session %s ", e.Session)
	}
	switch e.Kind {
	case EventStarted:
		b.WriteString("started")
	case EventResumed:
		fmt.Fprintf(&b, "resumed, durable before tick %d", e.Tick)
	case EventDurable:
		fmt.Fprintf(&b, "durable before tick %d", e.Tick)
	case EventSealed:
		fmt.Fprintf(&b, "sealed as %s, digest %v", e.Name, e.Digest)
	case EventUnfinished:
		fmt.Fprintf(&b, "left unfinished, durable before tick %d: %v", e.Tick, e.Err)
	case EventFailed:
		fmt.Fprintf(&b, "given up: %v", e.Err)
	case EventTrouble:
		fmt.Fprintf(&b, "trouble: %v", e.Err)
	case EventSummary:
		b.WriteString(e.Summary.String())
	}
	return b.String()
}

// Summary counts files at the end of a run.
type Summary struct {
	// Sealed were sealed in this run, Before in an earlier one.
	Sealed, Before int
	// Unfinished end without an end mark, Growing were on their way when the
	// run ended.
	Unfinished, Growing int
	// Failed were given up, or vanished before they were sealed.
	Failed int
}

// String is the summary as a line for people.
func (s *Summary) String() string {
	return fmt.Sprintf("%d sealed, %d sealed before, %d unfinished, %d under way, %d failed", s.Sealed, s.Before, s.Unfinished, s.Growing, s.Failed)
}

// err is nil where everything is sealed.
func (s *Summary) err() error {
	if s.Unfinished+s.Growing+s.Failed == 0 {
		return nil
	}
	return fmt.Errorf("%w: %v", ErrUnsealed, s)
}
