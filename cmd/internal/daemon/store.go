package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"reprise/format"
	"reprise/recorder"
	"reprise/transport"
)

// store is the recorder as the transport's server sees it.
type store struct {
	recorder *recorder.Recorder
	// waiting ends when what waits for room is given up.
	waiting context.Context
}

// openPatience is how long an open waits for room before the client is told
// to try again.
const openPatience = 2 * time.Second

// Open opens or resumes a session.
func (s store) Open(req transport.OpenRequest, sink transport.Sink) (transport.Session, transport.OpenReply, error) {
	if err := s.awaitRoom(openPatience); err != nil {
		return nil, transport.OpenReply{}, onWire(err)
	}
	open := recorder.OpenRequest{ID: req.Session, Producer: req.Key, Epoch: req.Epoch, Opening: req.Opening,
		Notify: func(a recorder.Ack) { tell(sink, a) }}
	if req.Continues {
		open.ContinueAt = &req.ContinueAt
	}
	session, reply, err := s.recorder.OpenSession(open)
	switch {
	case reply.Sealed != nil && reply.Sealed.State == format.EndSealed:
		sealed(sink, reply.Sealed)
		return ended{}, openReply(reply), nil
	case err != nil:
		return nil, transport.OpenReply{}, onWire(err)
	}
	return &kept{store: s, session: session}, openReply(reply), nil
}

// awaitRoom waits while all sessions together hold as much memory as they
// may.
func (s store) awaitRoom(patience time.Duration) error {
	ctx, cancel := context.WithTimeout(s.waiting, patience)
	defer cancel()
	return s.recorder.WaitForRoom(ctx)
}

func openReply(r recorder.OpenReply) transport.OpenReply {
	return transport.OpenReply{Received: r.Received, Durable: r.Durable, DurableTick: r.DurableTick, Totals: r.Totals, Ending: r.Ending, Window: int(r.Window)}
}

// tell passes what happened to a session on to its client. Notices stay
// here: the recorder logs them.
func tell(sink transport.Sink, a recorder.Ack) {
	if a.Durable > 0 || a.Err == nil && a.Stalled == nil {
		// The first one says that the opening is durable, which a refusal or
		// a stall does not.
		sink.Ack(a.Received, a.Durable, a.DurableTick)
	}
	if a.Window > 0 {
		sink.Window(int(a.Window))
	}
	switch {
	case a.Err != nil:
		sink.Failed(*refusal(a.Err))
	case a.Stalled != nil:
		// The session stays as it is: to end and to open thousands again would
		// be too much for a machine that is busy already.
		sink.Stalled(*refusal(a.Stalled))
	case a.Sealed != nil:
		sealed(sink, a.Sealed)
	}
}

// sealed says how the session has ended.
func sealed(sink transport.Sink, info *recorder.SealInfo) {
	if info.State != format.EndSealed {
		sink.Failed(transport.Refusal{Code: transport.CodeEnded, Text: "the session has ended as " + info.State.String()})
		return
	}
	sink.Sealed(info.Digest, filepath.Base(info.File))
}

// kept is an open session.
type kept struct {
	store   store
	session *recorder.Session
}

// Append keeps a chunk. While all sessions together hold as much as they
// may, the connection waits here, and so does a chunk that others were faster
// than: a refusal would cost its session the connection. Config.Validate sees
// to it that a chunk that had room once does not come round here forever.
func (k *kept) Append(chunk []byte) error {
	for {
		if err := k.store.recorder.WaitForRoom(k.store.waiting); err != nil {
			return onWire(err)
		}
		err := k.session.Append(chunk)
		if !errors.Is(err, errBusy) {
			return onWire(err)
		}
	}
}

var errBusy = &recorder.Refusal{Code: recorder.CodeBusy}

// Seal ends the session. Where the counts differ the session goes on at the
// recorder, and ends as unfinished unless its producer comes back.
func (k *kept) Seal(totals format.Totals) error { return onWire(k.session.Seal(totals)) }

// Detach lets the session wait for its producer.
func (k *kept) Detach() { k.session.Detach() }

// ended is a session that was sealed before its producer came back for it.
type ended struct{}

func (ended) Append([]byte) error {
	return &transport.Refusal{Code: transport.CodeEnded, Text: "the session is sealed"}
}

func (ended) Seal(format.Totals) error { return nil }

func (ended) Detach() {}

// wireCodes gives the recorder's reasons their codes on the wire. Those that
// pass by themselves have a code that clients try again after, so that none
// of them ever ends a session.
var wireCodes = map[recorder.Code]transport.Code{
	recorder.CodeInvalid:  transport.CodeProtocol,
	recorder.CodeExists:   transport.CodeExists,
	recorder.CodeUnknown:  transport.CodeProtocol,
	recorder.CodeConflict: transport.CodeConflict,
	recorder.CodeOrder:    transport.CodeOrder,
	recorder.CodeDamaged:  transport.CodeDamaged,
	recorder.CodeLimit:    transport.CodeLimit,
	recorder.CodeFenced:   transport.CodeFenced,
	recorder.CodeWindow:   transport.CodeUnavailable,
	recorder.CodeBusy:     transport.CodeUnavailable,
	recorder.CodeEnded:    transport.CodeEnded,
	recorder.CodeTotals:   transport.CodeTotals,
	recorder.CodeClosing:  transport.CodeDraining,
	recorder.CodeStorage:  transport.CodeStorage,
	recorder.CodeRate:     transport.CodeUnavailable,
	recorder.CodeQuota:    transport.CodeLimit,
}

// onWire turns an error of the recorder into the transport's. One that is no
// refusal passes as it is: the transport logs it, and tells the client
// nothing of it.
func onWire(err error) error {
	var r *recorder.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &r):
		return refusal(r)
	case errors.Is(err, context.DeadlineExceeded):
		return &transport.Refusal{Code: transport.CodeUnavailable, Text: "the daemon's memory is used up until its disk has caught up"}
	case errors.Is(err, context.Canceled), errors.Is(err, recorder.ErrClosed):
		return &transport.Refusal{Code: transport.CodeDraining, Text: "the daemon is shutting down"}
	}
	return err
}

// refusal keeps the tick where it says which one is due, or differs.
func refusal(r *recorder.Refusal) *transport.Refusal {
	code := wireCodes[r.Code]
	where := code == transport.CodeOrder || code == transport.CodeConflict
	w := &transport.Refusal{Code: code, HasTick: where, Text: r.Text}
	if where {
		w.Tick = r.Tick
	}
	return w
}
