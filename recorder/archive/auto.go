package archive

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"time"

	"reprise/format"
)

// pinByContent pins a replay that says itself why it is to be kept: a state
// hash that differs, or a mark of a kind that pins. One that was pinned before,
// and released, is left as it is.
func (a *Archiver) pinByContent(id string, f *format.File) error {
	pin := Pin{Session: id, Since: time.Now().UTC()}
	tick, differs, err := desync(f)
	if err != nil {
		return fmt.Errorf("comparing reported hashes: %w", err)
	}
	switch mark := a.pinningMark(f.Summary()); {
	case differs:
		pin.Kind, pin.Reason = PinDesync, fmt.Sprintf("state hashes of tick %d differ", tick)
	case mark != nil:
		pin.Kind, pin.Reason = PinMarked, fmt.Sprintf("mark %q at tick %d", mark.Kind, mark.Tick)
	default:
		return nil
	}
	fresh, err := a.pins.setOnce(pin)
	if err != nil {
		return fmt.Errorf("pinning session %s: %w", id, err)
	}
	if fresh {
		a.log.Info("replay pinned", "session", id, "reason", pin.String())
	}
	return nil
}

func (a *Archiver) pinningMark(s *format.Summary) *format.Mark {
	for i := range s.Marks {
		if slices.Contains(a.cfg.PinMarks, s.Marks[i].Kind) {
			return &s.Marks[i]
		}
	}
	return nil
}

// desync finds the first report that differs from the recorded hash of its
// tick, or where none is recorded, from the first report of it. It holds the
// hashes of a window of ticks: reports come soon after what they report.
func desync(f *format.File) (tick format.Tick, differs bool, err error) {
	if f.Summary().Reports == 0 {
		return 0, false, nil
	}
	h := &hashWindow{ticks: f.Reader(), hashes: map[format.Tick][]byte{}}
	err = f.Reports(func(r format.Report) error {
		if differs {
			return nil
		}
		have, err := h.of(r.Of)
		switch {
		case err != nil:
			return err
		case have == nil:
			h.hashes[r.Of] = bytes.Clone(r.Hash)
		case len(have) == len(r.Hash) && !bytes.Equal(have, r.Hash):
			tick, differs = r.Of, true
		}
		return nil
	})
	return tick, differs, err
}

// hashWindow gives the hashes of ticks in about ascending order.
type hashWindow struct {
	ticks  *format.Reader
	hashes map[format.Tick][]byte
	// read is the tick after the last that was read, dropped the one before
	// which hashes are gone.
	read, dropped format.Tick
	ended         bool
}

// of gives the hash of a tick; nil where none is known.
func (h *hashWindow) of(tick format.Tick) ([]byte, error) {
	var rec format.TickRecord
	for !h.ended && h.read <= tick {
		err := h.ticks.Next(&rec)
		if err == io.EOF {
			h.ended = true
			break
		}
		if err != nil {
			return nil, err
		}
		h.read = rec.Tick + 1
		if rec.Hash != nil {
			h.hashes[rec.Tick] = bytes.Clone(rec.Hash)
		}
	}
	h.forget()
	return h.hashes[tick], nil
}

// forget keeps the window in bounds.
func (h *hashWindow) forget() {
	if h.read < h.dropped+2*format.MaxHashLag {
		return
	}
	h.dropped = h.read - format.MaxHashLag
	for tick := range h.hashes {
		if tick < h.dropped {
			delete(h.hashes, tick)
		}
	}
}
