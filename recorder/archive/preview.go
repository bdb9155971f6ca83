package archive

import (
	"time"

	"reprise/recorder"
)

// Preview tells what a policy would remove from a data folder at a time, what
// bounds it cannot meet, and what is kept, without changing anything.
// reopenWindow is the recorder's. Where a recorder runs there, sessions that
// have just ended may be missing.
func Preview(dir string, policy Policy, reopenWindow time.Duration, now time.Time) (remove []Removal, unmet []string, held []Holding, err error) {
	d, err := openFolder(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	defer d.Close()
	s, _, err := readStore(d, dir, policy, reopenWindow, now)
	if err != nil {
		return nil, nil, nil, err
	}
	held = s.holdings()
	remove, unmet = policy.Plan(held, now)
	return remove, unmet, held, nil
}

// readStore reads what a data folder holds, and its catalog.
func readStore(d Disk, dir string, policy Policy, reopenWindow time.Duration, now time.Time) (*store, *catalog, error) {
	ledger, err := recorder.ReadLedger(dir)
	if err != nil {
		return nil, nil, err
	}
	c, _, err := readCatalog(d)
	if err != nil {
		return nil, nil, err
	}
	pins, err := Pins{d}.All()
	if err != nil {
		return nil, nil, err
	}
	ended, err := endedFiles(d, func(id string) (recorder.Status, bool) {
		st, ok := ledger[idKey(id)]
		return st, ok
	})
	return &store{disk: d, entries: c.all(), ended: ended, pins: pins, policy: policy, reopenWindow: reopenWindow, now: now, games: map[string]string{}}, c, err
}
