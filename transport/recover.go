package transport

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"reprise/format"
)

// keepTail begins the recording's tail. Without one it goes on: the spool
// file alone then has what was cut.
func (r *Recording) keepTail() {
	t, err := createTail(r.spool.path(tailSuffix), r.id, r.key, halfSize(r.client.cfg.ChunkBytes))
	if err != nil {
		r.client.tell(r.id, fmt.Errorf("a killed game will lose what was recorded within the chunk linger: %w", err))
		return
	}
	r.tail, r.spool.tail = t, t
}

// makeRoom turns to the other half of the tail where a record with so many
// bytes needs it, and it is spare.
func (r *Recording) makeRoom(body int) {
	if r.tail != nil && r.tail.spare && !r.tail.fits(body) {
		r.cut()
	}
}

// keepOpen puts the open tick into the tail; false where it has no room.
func (r *Recording) keepOpen(timed bool) bool {
	if r.tail == nil {
		return true
	}
	open := r.b.Open()
	if size := len(open.Commands) + len(open.Params); !r.tail.fits(size) {
		r.makeRoom(size)
		open = r.b.Open()
	}
	rec := tailRecord{kind: recordTick, tick: open.Tick, steps: open.Steps, timed: timed}
	if timed {
		rec.time = r.lastTime
	}
	return r.tail.put(&rec, open.Commands, open.Params)
}

// keep puts anything but a tick into the tail; false where it has no room.
func (r *Recording) keep(kind byte, tick format.Tick, body []byte) bool {
	r.makeRoom(len(body))
	rec := tailRecord{kind: kind, tick: tick}
	return r.tail == nil || r.tail.put(&rec, body, nil)
}

// spill cuts what the tail has no room for. While the spooler writes it
// waits: the spooler cuts when it is done.
func (r *Recording) spill() {
	if len(r.toSpool) == 0 && !r.writing {
		r.cut()
	}
}

// recoverTail records again what an earlier process left in the tail behind
// the end of the spool file, writes it there, and begins a new tail.
func (r *Recording) recoverTail() error {
	path := r.spool.path(tailSuffix)
	b, err := readTail(path)
	if err != nil {
		return err
	}
	records, ok := parseTail(b, r.id, r.key)
	if !ok && len(b) > 0 {
		r.client.tell(r.id, fmt.Errorf("%s: %w: not the tail of this session, or its header is damaged; what it held is left out", path, format.ErrCorrupt))
	}
	if err := r.replayTail(records); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	r.writeSpool()
	if !r.spooling() {
		return removeExisting(path)
	}
	r.keepTail()
	return nil
}

// readTail reads a whole tail; nothing where there is none.
func readTail(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxTail))
}

// replayTail enters records and cuts them. Only what follows is taken: what
// the spool file has already is passed over.
func (r *Recording) replayTail(records []tailRecord) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recovering = true
	defer func() { r.recovering = false }()
	for i := range records {
		r.beside = true
		if err := r.replay(&records[i]); err != nil {
			return err
		}
	}
	r.cut()
	return nil
}

func (r *Recording) replay(rec *tailRecord) error {
	switch rec.kind {
	case recordTick:
		return r.replayTick(rec)
	case recordHash:
		if err := r.enterHash(rec.tick, rec.body); !errors.Is(err, ErrHash) {
			return err
		}
	case recordGap:
		g, err := format.ParseGap(rec.body)
		if err == nil && g.First == r.b.NextTick() {
			r.cut()
			return r.cutGap(g)
		}
	case recordMark:
		m, err := format.ParseMark(rec.body)
		if err == nil && uint64(rec.tick) == r.notes.markCount {
			r.notes.addMark(m, len(rec.body))
		}
	case recordPlayers:
		_, events, err := format.ParsePlayers(rec.body)
		if events = unseen(events, rec.tick, r.notes.playerCount); err == nil {
			// Events that do not fit those before are not taken.
			_ = r.notes.addPlayers(events)
		}
	case recordReports:
		reports, err := format.ParseReports(rec.body)
		if reports = unseen(reports, rec.tick, r.notes.reportCount); err == nil {
			r.addReports(reports)
		}
	}
	return nil
}

// unseen are those of a record that follow the last one of their kind, of
// which there are count; before came before the record.
func unseen[T any](all []T, before format.Tick, count uint64) []T {
	seen := count - uint64(before)
	if uint64(before) > count || seen > uint64(len(all)) {
		return nil
	}
	return all[seen:]
}

func (r *Recording) replayTick(rec *tailRecord) error {
	t, ok := rec.ofTick(r.width)
	if !ok || t.Tick != r.b.NextTick() {
		return nil
	}
	if r.b.Ticks() > 0 && (r.b.Rows()+len(rec.body) > r.client.cfg.ChunkBytes || r.b.Ticks() >= chunkTicks) {
		r.cut()
	}
	if t.HasTime {
		r.lastTime = max(t.Time, r.lastTime)
		t.Time = r.lastTime
	}
	if err := r.b.Add(&t); err != nil {
		return err
	}
	r.count(t.Tick, t.Steps)
	r.hashed.open(t.Tick)
	return nil
}

// ofTick gives a tick's record as the format's; false where its areas do not
// fit each other.
func (rec *tailRecord) ofTick(w format.Width) (format.TickRecord, bool) {
	entry := 1 + int(w)/8
	size := rec.steps * entry
	if rec.steps > format.MaxRowBytes/2 || size > len(rec.body) {
		return format.TickRecord{}, false
	}
	t := format.TickRecord{Tick: rec.tick, Width: w, Steps: rec.steps, Commands: rec.body[:size], Params: rec.body[size:],
		Time: rec.time, HasTime: rec.timed}
	params := t.Params
	for i := 0; i < size; i += entry {
		n, err := format.ParamsLength(params, int(t.Commands[i]))
		if err != nil {
			return t, false
		}
		params = params[n:]
	}
	return t, len(params) == 0
}
