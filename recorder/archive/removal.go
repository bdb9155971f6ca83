package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"time"
)

// store gathers what is kept, for a policy to decide over.
type store struct {
	disk    Disk
	entries []*Entry
	ended   []source
	pins    map[string]Pin
	policy  Policy
	// reopenWindow keeps unfinished files that may be gone on with.
	reopenWindow time.Duration
	now          time.Time
	// games holds the games of files that are not archived, as far as they
	// were looked up; a file that cannot be read is not in it.
	games map[string]string
}

// holdings gives every replay of a session that has ended.
func (s *store) holdings() []Holding {
	var held []Holding
	archived := map[string]bool{}
	for _, e := range s.entries {
		archived[idKey(e.ID)] = true
		h := Holding{ID: e.ID, Game: e.Game, File: e.File, Since: e.Since, Bytes: e.Bytes}
		h.Kept = s.kept(e.ID, e.End.String() == unfinishedFolder)
		held = append(held, h)
	}
	for _, f := range s.ended {
		if !archived[idKey(f.id)] {
			held = append(held, s.unarchived(f))
		}
	}
	return held
}

// kept says why a replay is not to be removed.
func (s *store) kept(id string, unfinished bool) string {
	if pin, ok := s.pins[idKey(id)]; ok {
		return "pinned, " + pin.String()
	}
	if unfinished && !s.policy.Unfinished {
		return "unfinished"
	}
	return ""
}

func (s *store) unarchived(f source) Holding {
	unfinished := path.Dir(f.name) == unfinishedFolder
	h := Holding{ID: f.id, File: f.name, Since: f.since, Bytes: f.bytes, Kept: s.kept(f.id, unfinished)}
	if !s.policy.bounds() {
		return h
	}
	game, known := s.games[f.name]
	if !known {
		if game, known = gameOf(s.disk, f.name); known {
			s.games[f.name] = game
		}
	}
	h.Game = game
	switch {
	case h.Kept != "":
	case !known:
		h.Kept = "cannot be read"
	case unfinished && s.now.Sub(f.since) < s.reopenWindow+reopenMargin:
		h.Kept = "its producer may go on with it"
	}
	return h
}

// retain removes what the policy does not keep.
func (a *Archiver) retain(ctx context.Context) error {
	s, err := a.store(time.Now())
	if err != nil {
		return err
	}
	held := s.holdings()
	a.games = s.gamesOf(held)
	policy := s.policy
	doubt := a.clock.check(s.now, time.Since(a.opened), newest(held))
	if doubt != "" {
		policy = policy.withoutAges()
	}
	remove, unmet := policy.Plan(held, s.now)
	if doubt != "" && s.policy.ages() {
		unmet = append(unmet, doubt)
	}
	var errs []error
	gone := map[string]bool{}
	for i := range remove {
		if ctx.Err() != nil {
			break
		}
		if err := a.remove(&remove[i]); err != nil {
			errs = append(errs, err)
			continue
		}
		gone[remove[i].File] = true
	}
	a.stats.keeps(held, gone, unmet)
	return errors.Join(errs...)
}

func (a *Archiver) store(now time.Time) (*store, error) {
	pins, err := a.pins.All()
	if err != nil {
		return nil, err
	}
	ended, err := endedFiles(a.disk, a.cfg.Sessions.Lookup)
	if err != nil {
		return nil, err
	}
	return &store{disk: a.disk, entries: a.catalog.all(), ended: ended, pins: pins, policy: *a.policy.Load(), reopenWindow: a.cfg.ReopenWindow, now: now,
		games: a.games}, nil
}

// remove removes one replay, and counts it.
func (a *Archiver) remove(r *Removal) error {
	gone, err := remover{a.disk, a.catalog, a.log}.remove(r)
	if gone {
		a.stats.removed(r.cause, r.Bytes)
	}
	return err
}

// remover removes replays from a data folder. The ledger keeps their ids.
type remover struct {
	disk    Disk
	catalog *catalog
	log     *slog.Logger
}

// remove removes one replay; gone tells whether its file was there and is not
// any more. One that was pinned since it was decided on stays.
func (m remover) remove(r *Removal) (gone bool, err error) {
	if pin, held, err := (Pins{m.disk}).Find(r.ID); held || err != nil {
		if held {
			m.log.Info("replay kept, pinned meanwhile", "session", r.ID, "file", r.File, "pin", pin.String())
		}
		return false, err
	}
	err = m.disk.Remove(r.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("removing %s: %w", r.File, err)
	}
	if gone = err == nil; gone {
		m.log.Info("replay removed", "session", r.ID, "file", r.File, "bytes", r.Bytes, "ended", r.Since.UTC().Format(time.RFC3339), "reason", r.Why)
	}
	if err := m.disk.SyncDir(path.Dir(r.File)); err != nil {
		return gone, err
	}
	if e := m.catalog.find(r.ID); e != nil && e.File == r.File {
		return gone, m.catalog.drop(e, r.Why)
	}
	return gone, nil
}

// gamesOf keeps the games of those files that are still there.
func (s *store) gamesOf(held []Holding) map[string]string {
	games := map[string]string{}
	for i := range held {
		if game, known := s.games[held[i].File]; known {
			games[held[i].File] = game
		}
	}
	return games
}

// ages tells whether the policy removes anything by age.
func (p Policy) ages() bool {
	for _, r := range p.Games {
		if r.Age > 0 {
			return true
		}
	}
	return p.Age > 0
}

// withoutAges is the policy without what depends on the clock.
func (p Policy) withoutAges() Policy {
	games := map[string]Rule{}
	for game, rule := range p.Games {
		rule.Age = 0
		games[game] = rule
	}
	p.Age, p.Games = 0, games
	return p
}

// newest is when the last session ended that is kept.
func newest(held []Holding) (last time.Time) {
	for i := range held {
		if held[i].Since.After(last) {
			last = held[i].Since
		}
	}
	return last
}
