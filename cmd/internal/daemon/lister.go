package daemon

import (
	"errors"
	"strings"
	"time"

	"reprise/format"
	"reprise/recorder"
	"reprise/transport"
)

// lister answers clients that ask what sessions there are. A client sees
// those that its token allows.
type lister struct {
	recorder *recorder.Recorder
	guard    func() *guard
}

// List gives one page of the sessions that have not ended.
func (l lister) List(req transport.ListRequest) (page []transport.Listed, more bool, err error) {
	grant, err := l.guard().grant(req.Token)
	if err != nil {
		return nil, false, err
	}
	for _, s := range l.recorder.List() {
		if s.ID <= req.After || !strings.HasPrefix(s.ID, req.Prefix) || grant != nil && grant.Allows(s.ID) != nil {
			continue
		}
		if len(page) == req.Most {
			return page, true, nil
		}
		page = append(page, l.listed(&s))
	}
	return page, false, nil
}

// wireStates gives the recorder's states their numbers on the wire.
var wireStates = map[recorder.State]transport.SessionState{
	recorder.StateLive:        transport.SessionLive,
	recorder.StateDetached:    transport.SessionDetached,
	recorder.StateEnding:      transport.SessionEnding,
	recorder.StateQuarantined: transport.SessionQuarantined,
	recorder.StateSealed:      transport.SessionSealed,
	recorder.StateUnfinished:  transport.SessionUnfinished,
}

func (l lister) listed(s *recorder.Status) transport.Listed {
	out := transport.Listed{Session: s.ID, State: wireStates[s.State], Reason: s.Reason, File: s.File, Ends: s.Deadline,
		DurableTick: s.DurableTick, Totals: s.Totals, Bytes: uint64(max(s.Bytes, 0))}
	if m := l.meta(s.ID); m != nil {
		out.Game = m.Game
		if m.StartedAt != 0 {
			out.Started = time.UnixMicro(m.StartedAt)
		}
	}
	return out
}

// metaSizes are how much of a session is read for its metadata, the second
// where the first was not enough.
var metaSizes = [...]int{4 << 10, 256 << 10}

// meta reads the metadata, the first chunk of a session; nil where it is not
// there, or cannot be read.
func (l lister) meta(id string) *format.Metadata {
	v, ok := l.recorder.View(id)
	if !ok {
		return nil
	}
	defer v.Close()
	for _, n := range metaSizes {
		b := make([]byte, min(int64(n), v.Size()))
		if got, err := v.ReadAt(b, 0); err != nil || got < format.HeaderSize {
			return nil
		}
		c, _, err := format.ParseChunk(b[format.HeaderSize:])
		if errors.Is(err, format.ErrTorn) {
			continue
		}
		if err != nil || c.Type != format.ChunkMeta {
			return nil
		}
		m, err := format.ParseMeta(c.Body)
		if err != nil {
			return nil
		}
		return m
	}
	return nil
}
