package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"reprise/format"
)

// ErrRunning is returned by Open where another recorder has the data
// folder open. Nothing was changed.
var ErrRunning = errors.New("another recorder has this data folder open: is another reprised running on it?")

// ErrClosed is returned by calls on a Recorder after Close.
var ErrClosed = errors.New("the recorder is closed")

// Code says why something was refused. A producer branches on it.
type Code uint8

// Codes may travel to producers. They must not change.
const (
	// CodeInvalid: the id, or the session's opening, cannot be recorded.
	CodeInvalid Code = 1
	// CodeExists: the id was used before, by another producer or in another
	// spelling, or the session has ended. Ids are never used again.
	CodeExists Code = 2
	// CodeUnknown: there is no such session, and no opening came with it.
	CodeUnknown Code = 3
	// CodeConflict: what was sent again differs from what is recorded.
	CodeConflict Code = 4
	// CodeOrder: a chunk, tick or time does not follow the last one.
	CodeOrder Code = 5
	// CodeDamaged: the chunk is not what was sent, or the session's file is
	// damaged.
	CodeDamaged Code = 6
	// CodeLimit: something exceeds a limit that is named.
	CodeLimit Code = 7
	// CodeFenced: a newer connection of the producer has the session.
	CodeFenced Code = 8
	// CodeWindow: more waits for the disk than the session's window. Send
	// the chunk again after the next acknowledgement.
	CodeWindow Code = 9
	// CodeBusy: the recorder holds as much as it may, or the session is just
	// ending. Try again.
	CodeBusy Code = 10
	// CodeEnded: the session has ended; nothing can be added.
	CodeEnded Code = 11
	// CodeTotals: the final counts differ. The session goes on.
	CodeTotals Code = 12
	// CodeClosing: the recorder is shutting down; resume after its restart.
	CodeClosing Code = 13
	// CodeStorage: the disk does not take what must be stored.
	CodeStorage Code = 14
	// CodeRate: the session brings more bytes a second than it may. Go on
	// after a pause.
	CodeRate Code = 15
	// CodeQuota: the session has as many bytes as it may. It can be sealed.
	CodeQuota Code = 16
)

var codeNames = [...]string{
	CodeInvalid: "invalid", CodeExists: "exists", CodeUnknown: "unknown", CodeConflict: "conflict", CodeOrder: "order",
	CodeDamaged: "damaged", CodeLimit: "limit", CodeFenced: "fenced", CodeWindow: "window", CodeBusy: "busy",
	CodeEnded: "ended", CodeTotals: "totals", CodeClosing: "closing", CodeStorage: "storage", CodeRate: "rate", CodeQuota: "quota",
}

// String gives the word that logs and flags use.
func (c Code) String() string {
	if int(c) < len(codeNames) && codeNames[c] != "" {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// Refusal is why something was refused. What was refused left no trace, and
// no other session is concerned.
type Refusal struct {
	Code Code
	// Tick is the tick in question; for CodeOrder the one that is due, for
	// CodeConflict the first one that differs.
	Tick format.Tick
	// Text is for people, and says what to do.
	Text string
}

func (r *Refusal) Error() string { return r.Code.String() + ": " + r.Text }

// Is matches a Refusal of the same code, so that errors.Is(err,
// &Refusal{Code: CodeOrder}) tells why.
func (r *Refusal) Is(target error) bool {
	t, ok := target.(*Refusal)
	return ok && t.Code == r.Code
}

func refuse(code Code, tick format.Tick, text string, args ...any) *Refusal {
	return &Refusal{Code: code, Tick: tick, Text: fmt.Sprintf(text, args...)}
}

// kindOf says what kind of trouble an error of the disk is. A refusal says no
// more: the error may name files of the daemon, which are for its log.
func kindOf(err error) string {
	switch {
	case errors.Is(err, errNoAnswer):
		return "no answer"
	case errors.Is(err, errJournalFull):
		return "the journal is full"
	case errors.Is(err, syscall.ENOSPC):
		return "no space is left"
	case errors.Is(err, fs.ErrNotExist):
		return "a file is missing"
	case format.IsDamage(err):
		return "a file is damaged"
	case errors.Is(err, format.ErrLimit):
		return "a limit is exceeded"
	}
	return "input/output error"
}

// refusalOf turns the format's verdict on a chunk into a refusal.
func refusalOf(err error, due format.Tick) *Refusal {
	var order *format.OrderError
	switch {
	case errors.As(err, &order) && order.Got > order.Want && (order.What == "tick" || order.What == "gap's first tick"):
		return refuse(CodeOrder, due, "tick %d comes where tick %d is due: send what is between, or declare it as a gap", order.Got, due)
	case errors.Is(err, format.ErrTotals):
		return refuse(CodeTotals, due, "%v", err)
	case errors.Is(err, format.ErrOrder):
		return refuse(CodeOrder, due, "%v", err)
	case errors.Is(err, format.ErrLimit):
		return refuse(CodeLimit, due, "%v", err)
	case errors.Is(err, format.ErrNewer):
		return refuse(CodeInvalid, due, "%v: update the recorder", err)
	}
	return refuse(CodeDamaged, due, "%v", err)
}
