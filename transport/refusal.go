package transport

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"reprise/format"
)

// Code says why a session or a connection was refused. The same numbers are
// QUIC's application error codes when a connection is closed.
type Code uint64

// Codes travel on the wire. They must not change.
const (
	// CodeNone closes a connection whose work is done.
	CodeNone Code = 0
	// CodeProtocol: a frame that is malformed, or not allowed where it came.
	CodeProtocol Code = 1
	// CodeVersion: no version that both sides speak.
	CodeVersion Code = 2
	// CodeUnauthorised: the token does not allow it.
	CodeUnauthorised Code = 3
	// CodeExists: the session belongs to another producer.
	CodeExists Code = 4
	// CodeConflict: what was sent again is not what is stored; the tick says where.
	CodeConflict Code = 5
	// CodeOrder: a tick or a chunk that cannot follow the one before.
	CodeOrder Code = 6
	// CodeDamaged: a chunk that cannot be what was recorded.
	CodeDamaged Code = 7
	// CodeLimit: something exceeds a limit.
	CodeLimit Code = 8
	// CodeFenced: a newer start of the same producer took the session over.
	CodeFenced Code = 9
	// CodeWindow: more was sent than the window allows.
	CodeWindow Code = 10
	// CodeEnded: the session is sealed or closed.
	CodeEnded Code = 11
	// CodeUnavailable: not now; another try may succeed.
	CodeUnavailable Code = 12
	// CodeStorage: the storage is full or failing; another try may succeed.
	CodeStorage Code = 13
	// CodeTotals: the final counts differ from what was recorded.
	CodeTotals Code = 14
	// CodeSlow: the peer did not take what was written in time.
	CodeSlow Code = 15
	// CodeDraining: the daemon is shutting down.
	CodeDraining Code = 16
	// CodeSilent: nothing was heard for too long.
	CodeSilent Code = 17
	// CodeUnknown: there is no such session, and no opening came to begin it.
	CodeUnknown Code = 18
	// CodeInvalid: the id or the opening cannot be recorded.
	CodeInvalid Code = 19
)

// codeTexts gives every code its words and, for people, what to do next.
var codeTexts = map[Code]struct{ name, hint string }{
	CodeNone:         {"done", ""},
	CodeProtocol:     {"protocol error", "check that both ends are built from the same protocol version"},
	CodeVersion:      {"no common version", "update the older side"},
	CodeUnauthorised: {"unauthorised", "check the token"},
	CodeExists:       {"session exists", "use an id that was never used, or the producer key that opened it"},
	CodeConflict:     {"conflict", "what was sent again differs from what is stored: record under a new id"},
	CodeOrder:        {"out of order", "ticks and chunks must follow each other without a jump"},
	CodeDamaged:      {"damaged", "the chunk was changed on its way to the daemon"},
	CodeLimit:        {"over a limit", "record less, or raise the daemon's limit"},
	CodeFenced:       {"taken over", "a newer start of this producer records the session now"},
	CodeWindow:       {"over the window", "send no more than the window that the daemon gave"},
	CodeEnded:        {"session has ended", "record under a new id"},
	CodeUnavailable:  {"unavailable", "try again later"},
	CodeStorage:      {"storage is full or failing", "look at the daemon's disk: its free space, its errors, its load"},
	CodeTotals:       {"final counts differ", "ticks were lost between the game and the daemon: the session stays unfinished"},
	CodeSlow:         {"peer too slow", "look at the load of the peer and of the network"},
	CodeDraining:     {"shutting down", "connect again"},
	CodeSilent:       {"peer silent", "look at the peer and at the network"},
	CodeUnknown:      {"no such session", "open it with its metadata"},
	CodeInvalid:      {"invalid", "correct the id, the metadata, the code book or the players"},
}

// String names the code.
func (c Code) String() string {
	if t, ok := codeTexts[c]; ok {
		return t.name
	}
	return fmt.Sprintf("code %d", uint64(c))
}

// Refusal is why a session, a chunk or a connection was refused. Callers
// find it with errors.As and branch on its Code.
type Refusal struct {
	Code Code
	// Tick says where, if HasTick: the first tick that differs or was due.
	Tick    format.Tick
	HasTick bool
	// Text is for people; it may be empty.
	Text string
}

func (r *Refusal) Error() string {
	var b strings.Builder
	b.WriteString("refused: ")
	if name := r.Code.String(); !strings.HasPrefix(r.Text, name) {
		b.WriteString(name)
		if r.Text != "" {
			b.WriteString(": ")
		}
	}
	b.WriteString(r.Text)
	if r.HasTick {
		fmt.Fprintf(&b, ", tick %d", r.Tick)
	}
	if hint := codeTexts[r.Code].hint; hint != "" {
		fmt.Fprintf(&b, " (%s)", hint)
	}
	return b.String()
}

// Temporary tells whether the same request may succeed later. A client tries
// again by itself.
func (r *Refusal) Temporary() bool {
	return r.Code == CodeUnavailable || r.Code == CodeStorage || r.Code == CodeDraining
}

// refuse makes a refusal without a tick.
func refuse(code Code, text string, args ...any) *Refusal {
	return &Refusal{Code: code, Text: fmt.Sprintf(text, args...)}
}

// refusalFor finds the refusal in an error of a Recorder. Errors of package
// format get their code; of any other the client learns only that the daemon
// could not do it, for the text may name files of the daemon.
func refusalFor(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	for _, known := range [...]struct {
		err  error
		code Code
	}{{format.ErrOrder, CodeOrder}, {format.ErrCorrupt, CodeDamaged}, {format.ErrTorn, CodeDamaged},
		{format.ErrNewer, CodeVersion}, {format.ErrLimit, CodeLimit}, {format.ErrTotals, CodeTotals}} {
		if errors.Is(err, known.err) {
			return &Refusal{Code: known.code, Text: err.Error()}
		}
	}
	return refuse(CodeUnavailable, "internal error")
}

// cutText shortens s to at most n bytes without splitting a character.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
