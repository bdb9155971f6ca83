package archive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"reprise/format"
	"reprise/recorder"
)

// Folders of the data folder that are the archiver's, beside the recorder's
// that it takes files from. They must not change.
const (
	workFolder       = archiveFolder + "/.new"
	inboxFolder      = "inbox"
	quarantineFolder = "quarantine"
	sealedFolder     = "sealed"
	unfinishedFolder = "unfinished"
)

// Archiver archives, files and removes replays beside a recorder, until Close.
type Archiver struct {
	cfg     Config
	log     *slog.Logger
	disk    Disk
	ownDisk *folder // where Open opened it
	catalog *catalog
	pins    Pins
	inbox   *inbox
	workers []*worker
	clock   clock
	opened  time.Time
	policy  atomic.Pointer[Policy]
	stats   counters

	// tries holds what could not be archived, by the name of the file.
	tries triesLater
	// games are those of files that are not archived, by name.
	games map[string]string
	// said are files of the archive folder that were complained of.
	said map[string]bool

	mu sync.Mutex
	// taken are the names that archives are about to get, by nameKey, and the
	// content digests of dropped files that are about to be filed.
	taken map[string]bool

	wake    chan struct{}
	stop    context.CancelFunc
	running sync.WaitGroup
}

// Open sets an Archiver to work in a data folder. What a crash has left is
// taken up first; where the disk does not allow that, it is tried again until it
// does, and recording goes on meanwhile.
func Open(cfg Config) (*Archiver, error) {
	a, err := open(cfg)
	if err != nil {
		return nil, fmt.Errorf("opening the archive in %s: %w", cfg.Dir, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	for range a.cfg.Workers {
		a.workers = append(a.workers, newWorker(ctx, a))
	}
	// Here, so that ids that the ledger lost are taken before any session comes.
	ready := a.prepared()
	a.running.Go(func() { a.run(ctx, ready) })
	return a, nil
}

// open makes an Archiver that does nothing yet.
func open(cfg Config) (*Archiver, error) {
	a := &Archiver{cfg: cfg.withDefaults(), disk: cfg.Disk, games: map[string]string{}, said: map[string]bool{}, taken: map[string]bool{}, wake: make(chan struct{}, 1),
		opened: time.Now()}
	a.log = a.cfg.Log
	a.stats.log = a.cfg.Log
	a.SetPolicy(cfg.Policy)
	if a.cfg.Archive && a.cfg.Inbox {
		a.inbox = newInbox()
	}
	if a.disk == nil {
		d, err := openFolder(cfg.Dir)
		if err != nil {
			return nil, err
		}
		a.disk, a.ownDisk = d, d
	}
	a.catalog, a.pins = newCatalog(a.disk), Pins{a.disk}
	return a, nil
}

// prepared tries to prepare, and tells whether all is ready.
func (a *Archiver) prepared() bool {
	err := a.prepare()
	a.stats.trouble(troubleStart, err)
	return err == nil
}

// prepare makes the folders, and takes up what an earlier run has left.
func (a *Archiver) prepare() error {
	folders := []string{workFolder}
	if a.inbox != nil {
		folders = append(folders, inboxFolder)
	}
	for _, name := range folders {
		if err := makeFolder(a.disk, name); err != nil {
			return err
		}
	}
	if err := a.dropLeftovers(); err != nil {
		return err
	}
	damaged, err := a.catalog.load()
	if err != nil {
		return err
	}
	if damaged > 0 {
		a.log.Error("damaged lines in the catalog: the archives they stood for are looked for", "lines", damaged)
	}
	return a.remember()
}

// dropLeftovers removes what a crash has left half-written.
func (a *Archiver) dropLeftovers() error {
	names, err := a.disk.List(workFolder)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, workSuffix) {
			continue
		}
		if err := a.disk.Remove(path.Join(workFolder, name)); err != nil {
			return err
		}
	}
	return nil
}

// remember enters into the ledger the ids that it does not know, since it was
// lost: they are never used again.
func (a *Archiver) remember() error {
	for _, e := range a.catalog.all() {
		if _, ok := a.cfg.Sessions.Lookup(e.ID); ok {
			continue
		}
		start := e.Since
		if _, s, ok := recorder.SplitName(path.Base(e.File)); ok {
			start = s
		}
		err := a.cfg.Sessions.Enter(e.ID, start, recorder.SealInfo{State: e.End, EndedAt: e.Since, Bytes: e.Source, Digest: e.Root})
		if err != nil {
			return err
		}
		a.log.Warn("archive that the ledger did not know is entered", "session", e.ID, "file", e.File)
	}
	return nil
}

// Close ends the work: what is half-written is given up, and its source
// stays.
func (a *Archiver) Close() error {
	a.stop()
	a.running.Wait()
	return a.release()
}

func (a *Archiver) release() error {
	if a.ownDisk == nil {
		return nil
	}
	return a.ownDisk.Close()
}

// Find gives the archive of a session, in whatever spelling of its id; false
// where it has none.
func (a *Archiver) Find(id string) (Entry, bool) {
	e := a.catalog.find(id)
	if e == nil {
		return Entry{}, false
	}
	return *e, true
}

// Pins are the pins of the data folder. They are good until Close.
func (a *Archiver) Pins() Pins { return a.pins }

// SetPolicy says what is kept from now on, and sees to it soon. The policy must
// not be changed afterwards.
func (a *Archiver) SetPolicy(p Policy) {
	a.policy.Store(&p)
	a.Wake()
}

// Wake asks for a round of work now.
func (a *Archiver) Wake() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Times between rounds.
const (
	// roundInterval is how often ended sessions, and the inbox, are looked for.
	roundInterval = 2 * time.Second
	// retainInterval is how often it is seen to what is to go.
	retainInterval = time.Minute
	// auditInterval is how often the catalog is compared with the folder.
	auditInterval = time.Hour
)

// run is the archiver's life.
func (a *Archiver) run(ctx context.Context, ready bool) {
	for ; !ready && ctx.Err() == nil; ready = a.prepared() {
		a.pause(ctx)
	}
	if a.ownDisk != nil && a.inbox != nil {
		a.running.Go(func() { a.watch(ctx) })
	}
	var retained, audited time.Time
	var policy *Policy
	for ctx.Err() == nil {
		if time.Since(audited) >= auditInterval {
			a.stats.trouble(troubleCatalog, a.audit(ctx))
			audited = time.Now()
		}
		if now := a.policy.Load(); now != policy || time.Since(retained) >= retainInterval {
			policy = now
			a.stats.trouble(troubleRetention, a.retain(ctx))
			retained = time.Now()
		}
		if a.cfg.Archive && a.round(ctx) {
			continue
		}
		a.pause(ctx)
	}
}

func (a *Archiver) pause(ctx context.Context) {
	timer := time.NewTimer(roundInterval)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.wake:
	case <-ctx.Done():
	}
}

// isDamage tells whether an error says that a file is not, or not wholly,
// what was recorded, or needs another program.
func isDamage(err error) bool {
	return format.IsDamage(err) || errors.Is(err, format.ErrNotReplay) || errors.Is(err, format.ErrNewer) || errors.Is(err, format.ErrLimit) ||
		errors.Is(err, format.ErrTorn) || errors.Is(err, format.ErrOrder) || errors.Is(err, format.ErrTotals)
}
