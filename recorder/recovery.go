package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"sync"

	"reprise/format"
)

// Recovery brings the session files and the ledger to where the journal is.
// It changes the journal last, so it may be killed and run again.

// recovery is what one start finds.
type recovery struct {
	r    *Recorder
	live map[uint64]*entry // sessions that have not ended, by number
	// last holds the newest ledger line of each session in the journal, and
	// records the places of its bytes.
	last    map[uint64]*entry
	records map[uint64][]recordPlace
	// cautious is set where the journal does not know what of it is stale:
	// then no file is cut.
	cautious bool
	// trouble is why files lack what the journal holds, although all else
	// is well: it stays there, and is written when the disk takes it.
	trouble error
}

// recordPlace is where the bytes of a journal record are.
type recordPlace struct {
	segment *segment
	at      int64 // in the segment
	offset  int64 // in the session's file
	length  int64
}

// recover reads ledger and journal, and returns the sessions that go on.
func (r *Recorder) recover() ([]*recording, error) {
	ledger, live, damaged, err := openLedger(r.fs, filepath.Join(r.cfg.Dir, ledgerName), r.log)
	if err != nil {
		return nil, err
	}
	r.ledger = ledger
	journal, segs, err := openJournal(r.fs, filepath.Join(r.cfg.Dir, journalFolder), r.log)
	if err != nil {
		return nil, err
	}
	r.journal = journal
	journal.free = segs // so that close finds them
	c := &recovery{r: r, live: live, last: map[uint64]*entry{}, records: map[uint64][]recordPlace{}, cautious: !journal.checkpoint.whole}
	next, err := c.readJournal(segs)
	if err != nil {
		return nil, err
	}
	if err := c.takeLines(); err != nil {
		return nil, err
	}
	if damaged > 0 || ledger.numbers == 0 {
		if err := c.adopt(); err != nil {
			return nil, err
		}
	}
	found, err := c.restoreAll()
	if err != nil {
		return nil, err
	}
	if err := c.dropUnborn(); err != nil {
		return nil, err
	}
	if err := ledger.save(); err != nil {
		c.trouble = err
	}
	for _, dir := range [...]string{filepath.Join(r.cfg.Dir, journalFolder), r.cfg.Dir, filepath.Dir(r.cfg.Dir)} {
		if err := r.fs.SyncDir(dir); err != nil {
			return nil, err
		}
	}
	journal.newBytes, journal.begins, journal.most = r.cfg.SegmentBytes, r.cfg.Segments, r.cfg.MaxSegments
	if err := journal.start(segs, next, demand{r.cfg.Segments, r.cfg.ChunkBytes}, c.trouble != nil); err != nil {
		return nil, err
	}
	if c.trouble != nil {
		r.troubles.report(troubleFiles, c.trouble)
		r.wantCheckpoint()
	}
	return found, nil
}

// readJournal notes what the journal holds, and returns the next sequence
// number.
func (c *recovery) readJournal(segs []*segment) (uint64, error) {
	needed := c.r.journal.checkpoint.needed
	if c.cautious {
		c.r.log.Error("the journal's checkpoint cannot be read: all of the journal is replayed, and no file is cut")
	}
	count := 0
	found, err := walk(segs, needed, math.MaxUint64, func(s *segment, r record, at int64) error {
		count++
		return c.note(s, r, at)
	})
	if err != nil {
		return 0, err
	}
	if found.lost > 0 && !c.cautious {
		c.r.log.Error("the journal has holes: the disk lost what it had called safe", "records", found.lost)
	}
	if count > 0 {
		c.r.log.Info("replaying the journal", "records", count, "sessions", len(c.records))
	}
	c.r.stats.recovered.Store(uint64(count))
	return max(found.next, needed), nil
}

func (c *recovery) note(s *segment, r record, at int64) error {
	s.acked, s.end = true, r.sequence+1
	switch r.kind {
	case recordLedger:
		e, err := parseEntry(r.bytes)
		if err != nil {
			return fmt.Errorf("the journal holds a ledger line that cannot be read: %w", err)
		}
		c.last[e.number] = e
	case recordData:
		c.records[r.session] = append(c.records[r.session], recordPlace{segment: s, at: at, offset: r.offset, length: int64(len(r.bytes))})
	default:
		return fmt.Errorf("%w: journal record of kind %d", format.ErrNewer, r.kind)
	}
	return nil
}

// takeLines brings the ledger up to date: the journal's line is the newest.
func (c *recovery) takeLines() error {
	for number, e := range c.last {
		have, err := c.r.ledger.find(idKey(e.id))
		if err != nil {
			return fmt.Errorf("reading the ledger: %w", err)
		}
		if have == nil || string(appendEntry(nil, have)) != string(appendEntry(nil, e)) {
			c.r.ledger.add(e)
		}
		if e.live() {
			c.live[number] = e
		} else {
			delete(c.live, number)
		}
	}
	return nil
}

// adopt enters session files into a ledger that does not know them, since it
// was lost or damaged. Nobody can go on with them.
func (c *recovery) adopt() error {
	for _, folder := range allFolders {
		names, err := c.r.fs.List(filepath.Join(c.r.cfg.Dir, folder))
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := c.adoptFile(folder, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropUnborn removes what a crash left of files that never got their first
// bytes. Where those are durable, the journal has just made the file.
func (c *recovery) dropUnborn() error {
	names, err := c.r.fs.List(filepath.Join(c.r.cfg.Dir, liveFolder))
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, newSuffix) {
			if err := c.r.fs.Remove(filepath.Join(c.r.cfg.Dir, liveFolder, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *recovery) adoptFile(folder, name string) error {
	id, start, ok := splitFileName(name)
	if !ok {
		return nil
	}
	if have, err := c.r.ledger.find(idKey(id)); have != nil || err != nil {
		return err
	}
	e := &entry{number: c.r.ledger.nextNumber(), id: id, start: start}
	switch folder {
	case liveFolder:
		c.live[e.number] = e
	case sealedFolder:
		e.end = &SealInfo{State: format.EndSealed, EndedAt: now()}
	case unfinishedFolder:
		e.end = &SealInfo{State: format.EndUnfinished, EndedAt: now()}
	}
	c.r.ledger.add(e)
	c.r.log.Warn("file that the ledger did not know is entered", "file", folder+"/"+name)
	return nil
}

// splitFileName takes the name of a session's file apart.
func splitFileName(name string) (id, start string, ok bool) {
	name, prefix := strings.CutPrefix(name, "room-")
	name, suffix := strings.CutSuffix(name, ".rply")
	i := strings.LastIndexByte(name, '-')
	if !prefix || !suffix || i < 0 || len(name)-i-1 != len(startLayout) {
		return "", "", false
	}
	return name[:i], name[i+1:], format.ValidSession(name[:i]) == nil
}

// restored is a session whose file was brought up to date.
type restored struct {
	s *recording
	// written is set where something was written to the file.
	written bool
	// kept is why the rest of its bytes stays in memory and in the journal.
	kept error
}

// restoreAll brings every session's file up to date, makes all of it
// durable, and returns the sessions. What the disk does not take is kept.
func (c *recovery) restoreAll() ([]*recording, error) {
	all, err := c.restoreEach()
	if err != nil {
		return nil, err
	}
	found := make([]*recording, len(all))
	var written []*recording
	for i, x := range all {
		found[i] = x.s
		if x.written {
			written = append(written, x.s)
		}
		if x.kept != nil {
			c.trouble = x.kept
		}
	}
	if n := c.r.pending.Load(); n > c.r.cfg.MaxPendingBytes {
		return nil, makeRoom(c.r.cfg.Dir, n, c.trouble)
	}
	if err := c.syncAll(written); err != nil {
		c.trouble = err
	}
	return found, nil
}

// syncAll makes durable what was written. After an error a checkpoint writes
// it again.
func (c *recovery) syncAll(written []*recording) error {
	names := make([]string, len(written))
	for i, s := range written {
		names[i] = c.r.path(s)
	}
	if err := c.r.fs.SyncFiles(names); err != nil {
		c.r.syncs.suspect = true
		for _, s := range written {
			c.r.syncs.add(s)
		}
		return fmt.Errorf("syncing session files: %w", err)
	}
	return c.r.syncFolders(allFolders[:]...)
}

// restoreEach restores the sessions side by side.
func (c *recovery) restoreEach() ([]restored, error) {
	work := make(chan *entry)
	var mu sync.Mutex
	var all []restored
	var failed error // of one: they mostly fail for one reason
	var wg sync.WaitGroup
	for range c.r.cfg.FileWriters {
		wg.Go(func() {
			for e := range work {
				x, err := c.restore(e)
				mu.Lock()
				if err != nil {
					failed = fmt.Errorf("recovering %s: %w", e.file(), err)
				} else {
					all = append(all, x)
				}
				mu.Unlock()
			}
		})
	}
	for _, e := range c.live {
		work <- e
	}
	close(work)
	wg.Wait()
	return all, failed
}

// restore writes a session's records into its file.
func (c *recovery) restore(e *entry) (restored, error) {
	places := c.records[e.number]
	f, folder, created, err := c.open(e, len(places) > 0)
	if errors.Is(err, fs.ErrNotExist) {
		s := c.r.sleeping(e, liveFolder, 0)
		c.r.setAside(s, fmt.Errorf("its file is missing: %w", err))
		return restored{s: s}, nil
	}
	if err != nil && len(places) > 0 && created {
		return c.keep(e, folder, replayed{failed: err})
	}
	if err != nil {
		return restored{}, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return restored{}, err
	}
	if len(places) == 0 {
		return restored{s: c.r.sleeping(e, folder, size)}, nil
	}
	if created {
		return c.restoreFirst(e, f)
	}
	done, err := c.replay(f, size, places)
	if err != nil {
		return restored{}, err
	}
	if done.failed != nil {
		return c.keep(e, folder, done)
	}
	return restored{s: c.r.sleeping(e, folder, done.end), written: true}, nil
}

// restoreFirst makes the file of a session that never got its first bytes.
func (c *recovery) restoreFirst(e *entry, f File) (restored, error) {
	path := filepath.Join(c.r.cfg.Dir, liveFolder, e.file())
	done, err := c.replay(f, 0, c.records[e.number])
	if err != nil {
		return restored{}, err
	}
	if done.failed == nil {
		done.failed = errors.Join(f.Close(), c.r.rename(path+newSuffix, path))
	}
	if done.failed == nil {
		return restored{s: c.r.sleeping(e, liveFolder, done.end), written: true}, nil
	}
	// What there is of it is removed with all that were not born.
	return c.keep(e, liveFolder, replayed{failed: done.failed})
}

// keep leaves to a later write what a file lacks: the bytes stay in memory, and
// their records in the journal.
func (c *recovery) keep(e *entry, folder string, done replayed) (restored, error) {
	rest := c.records[e.number][done.places:]
	if c.cautious {
		// What of the journal is stale is not known: it cannot be kept.
		return restored{}, makeRoom(c.r.cfg.Dir, lengthOf(rest), done.failed)
	}
	at, bytes, err := c.remember(rest, done.end)
	if err != nil {
		return restored{}, err
	}
	s := c.r.sleeping(e, folder, at+int64(len(bytes)))
	s.written, s.pending, s.misplaced = at, bytes, at > 0
	c.r.pending.Add(int64(len(bytes)))
	return restored{s: s, kept: fmt.Errorf("writing %s: %w", e.file(), done.failed)}, nil
}

func lengthOf(places []recordPlace) (n int64) {
	for _, p := range places {
		n += p.length
	}
	return n
}

// remember gives what records add to a file, of which the first at bytes are
// good.
func (c *recovery) remember(places []recordPlace, at int64) (int64, []byte, error) {
	var bytes []byte
	for _, p := range places {
		if p.offset > at+int64(len(bytes)) {
			break
		}
		if p.offset < at {
			at, bytes = p.offset, nil
		}
		n := int(p.offset - at)
		bytes = append(bytes[:n], make([]byte, p.length)...)
		if err := readFull(p.segment.file, bytes[n:], p.at); err != nil {
			return 0, nil, fmt.Errorf("reading the journal: %w", err)
		}
	}
	return at, bytes, nil
}

// open finds a session's file. With create it is made where there is none,
// empty and under its first name; created is set then, also where that fails.
func (c *recovery) open(e *entry, create bool) (f File, folder string, created bool, err error) {
	for _, folder := range allFolders {
		f, err = c.r.fs.OpenFile(filepath.Join(c.r.cfg.Dir, folder, e.file()), false)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, folder, false, err
		}
	}
	if !create {
		return nil, liveFolder, false, err
	}
	f, err = c.r.fs.OpenFile(filepath.Join(c.r.cfg.Dir, liveFolder, e.file()+newSuffix), true)
	if err != nil {
		return nil, liveFolder, true, err
	}
	if err = emptied(f); err != nil {
		f.Close()
		return nil, liveFolder, true, err
	}
	return f, liveFolder, true, nil
}

// replayed is how far a session's records got into its file.
type replayed struct {
	// end is the size of the file. After a write that failed it is how much
	// of the file is good, by the first so many places.
	end    int64
	places int
	failed error
}

// replay writes records at their offsets and cuts the file behind the last,
// however often it is done. An error is one of the journal.
func (c *recovery) replay(f File, size int64, places []recordPlace) (replayed, error) {
	reached := size
	done := replayed{end: size}
	var run []byte // bytes for start
	var start int64
	for i, p := range places {
		if p.offset > reached {
			// What is between was lost by the disk; nothing can follow.
			c.r.log.Error("bytes of a session are lost", "from", reached, "to", p.offset)
			break
		}
		if len(run) > 0 && (p.offset != start+int64(len(run)) || len(run) > writePiece) {
			if _, done.failed = f.WriteAt(run, start); done.failed != nil {
				done.end = start
				return done, nil
			}
			run, done.places = run[:0], i
		}
		if len(run) == 0 {
			start = p.offset
		}
		n := len(run)
		run = append(run, make([]byte, p.length)...)
		if err := readFull(p.segment.file, run[n:], p.at); err != nil {
			return done, fmt.Errorf("reading the journal: %w", err)
		}
		done.end = p.offset + p.length
		reached = max(reached, done.end)
	}
	if _, done.failed = f.WriteAt(run, start); done.failed != nil {
		done.end = start
		return done, nil
	}
	if c.cautious {
		done.end = reached
		return done, nil
	}
	if reached == done.end {
		return done, nil // nothing is behind it
	}
	if done.failed = f.Truncate(done.end); done.failed != nil {
		done.places = len(places)
	}
	return done, nil
}
