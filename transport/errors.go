package transport

import (
	"errors"
	"fmt"

	"reprise/format"
)

// Errors of a client and its recordings that callers branch on.
var (
	// ErrFull is returned where the bound on what is not yet durable is
	// reached. From EndTick it means that this tick is left out; the client
	// declares the gap as soon as there is room again.
	ErrFull = errors.New("no room: too much is not durable yet")
	// ErrSealed is returned by what would record into a session after its
	// Seal or Close was called.
	ErrSealed = errors.New("the recording is sealed or closed")
	// ErrClosed is returned once the client or the recording is closed.
	ErrClosed = errors.New("closed")
	// ErrHash is returned for a state hash that cannot be recorded: of the
	// wrong width, for a tick that is not closed, is missing, is too old or
	// has one. Nothing is recorded then.
	ErrHash = errors.New("hash cannot be recorded")
	// ErrMissing is returned by Wait for a tick that is in a declared gap.
	ErrMissing = errors.New("tick is missing")
	// ErrSpooled is returned by Open for a session whose spool file exists:
	// an earlier process recorded it. See Client.Resume.
	ErrSpooled = errors.New("the session is in the spool")
	// ErrLink is matched by the errors of a RelaySession whose connection is
	// gone: open it again.
	ErrLink = errors.New("the connection to the daemon is gone")
	// ErrLost is matched where the daemon no longer has chunks that it had
	// confirmed as durable, and the client has dropped them: its storage was
	// lost or exchanged.
	ErrLost = errors.New("the daemon has lost what it had confirmed")
)

// GapError reports ticks that the client left out, both ends included. It
// goes to ClientConfig.OnError; it matches ErrFull.
type GapError struct {
	First, Last format.Tick
	Reason      string
}

func (e *GapError) Error() string {
	return fmt.Sprintf("ticks %d to %d are missing: %s", e.First, e.Last, e.Reason)
}

// Is matches ErrFull.
func (e *GapError) Is(target error) bool { return target == ErrFull }

// UndeliveredError says what was not durable when a client was closed.
type UndeliveredError struct {
	// Sessions and Bytes count what the daemon has not confirmed.
	Sessions int
	Bytes    int64
	// Spooled tells whether all of it is in the spool, for Resume.
	Spooled bool
}

func (e *UndeliveredError) Error() string {
	where := "it is lost: configure a spool to keep it"
	if e.Spooled {
		where = "it is in the spool: resume it with the next start"
	}
	return fmt.Sprintf("%d bytes of %d sessions are not durable; %s", e.Bytes, e.Sessions, where)
}
