package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/format"
	"reprise/recorder"
	"reprise/recorder/disktest"
)

// match describes a replay that a test makes.
type match struct {
	id, game string
	ticks    int
	seed     uint64
	// endless leaves the end out.
	endless bool
	end     format.EndState
	marks   []format.Mark
	reports []format.Report
	started time.Time
}

// made are the files of matches that were made before.
var made = map[string][]byte{}

// bytes is the replay's file.
func (m match) bytes(t testing.TB) []byte {
	t.Helper()
	key := fmt.Sprintf("%+v", m)
	if made[key] == nil {
		made[key] = m.make(t)
	}
	return bytes.Clone(made[key])
}

func (m match) make(t testing.TB) []byte {
	t.Helper()
	if m.end == 0 {
		m.end = format.EndSealed
	}
	meta := &format.Metadata{Session: m.id, Game: m.game, Build: "b1", Seed: m.seed, TickRate: format.Rate{Num: 60, Den: 1}, HashBytes: 8, Width: format.Width16}
	if !m.started.IsZero() {
		meta.StartedAt = m.started.UnixMicro()
	}
	out := new(format.Buffer)
	w, err := format.NewWriter(out, meta, nil)
	must(t, err)
	rng := rand.New(rand.NewPCG(m.seed, 1))
	must(t, w.Keyframe(format.Keyframe{State: []byte("begin")}))
	for tick := range format.Tick(m.ticks) {
		for range rng.IntN(3) {
			must(t, w.Step(uint16(rng.IntN(300)), format.Int(rng.Int64N(1<<30)), format.String("x")))
		}
		must(t, w.EndTick())
		must(t, w.Hash(tick, hashOf(m.seed, tick)))
		for _, mark := range m.marks {
			if mark.Tick == tick {
				must(t, w.Mark(mark))
			}
		}
	}
	if len(m.reports) > 0 {
		must(t, w.Reports(m.reports))
	}
	if m.endless {
		must(t, w.Flush())
	} else {
		must(t, w.Finish(m.end, ""))
	}
	return out.Bytes()
}

func hashOf(seed uint64, tick format.Tick) []byte {
	return binary.BigEndian.AppendUint64(nil, seed*1_000_003+uint64(tick))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// simulated is a data folder on a simulated disk.
type simulated struct{ *disktest.Disk }

func newSimulated(seed uint64) simulated {
	return simulated{disktest.New(rand.New(rand.NewPCG(seed, 2)))}
}

func (d simulated) List(dir string) ([]string, error) { return d.Disk.List(dir) }

// Folders finds folders by the files below them.
func (d simulated) Folders(dir string) ([]string, error) {
	all := map[string]bool{}
	for _, name := range d.Find("") {
		rest, ok := strings.CutPrefix(name, dir+"/")
		if folder, _, deeper := strings.Cut(rest, "/"); ok && deeper {
			all[folder] = true
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// put writes a file that is durable.
func put(t testing.TB, d Disk, name string, b []byte) {
	t.Helper()
	f, err := d.OpenFile(name, true)
	must(t, err)
	must(t, f.Truncate(0))
	_, err = f.WriteAt(b, 0)
	must(t, errors.Join(err, f.Sync(), f.Close(), d.SyncDir(path.Dir(name))))
}

// ledger is what a recorder knows, for as long as a test runs.
type ledger struct {
	mu     sync.Mutex
	ended  map[string]recorder.Status
	free   int64
	needed int64
}

func newLedger() *ledger { return &ledger{ended: map[string]recorder.Status{}, free: 1 << 40} }

func (l *ledger) Lookup(id string) (recorder.Status, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	st, ok := l.ended[strings.ToLower(id)]
	return st, ok
}

func (l *ledger) Enter(id string, start time.Time, end recorder.SealInfo) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := strings.ToLower(id)
	if have, ok := l.ended[key]; ok {
		if have.Ended != nil && have.ID == id && have.Ended.Digest == end.Digest {
			return nil
		}
		return &recorder.Refusal{Code: recorder.CodeExists, Text: "taken"}
	}
	end.File = end.State.String() + "/" + recorder.FileName(id, start)
	l.ended[key] = recorder.Status{ID: id, File: end.File, Bytes: end.Bytes, Ended: &end}
	return nil
}

func (l *ledger) Room() (free, needed int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.free, l.needed, nil
}

func (l *ledger) setRoom(free, needed int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free, l.needed = free, needed
}

// record puts the file of an ended session where the recorder has it.
func (l *ledger) record(t testing.TB, d Disk, m match, ended time.Time) (name string, b []byte) {
	t.Helper()
	b = m.bytes(t)
	if m.end == 0 {
		m.end = format.EndSealed
	}
	f, err := format.NewFile(bytes.NewReader(b), int64(len(b)))
	must(t, err)
	sum := f.Summary()
	start := ended.Add(-time.Minute).UTC().Truncate(time.Second)
	must(t, l.Enter(m.id, start, recorder.SealInfo{State: m.end, EndedAt: ended, Totals: sum.Totals, Bytes: int64(len(b)), Digest: *sum.Digest}))
	st, _ := l.Lookup(m.id)
	put(t, d, st.File, b)
	return st.File, b
}

// noon is when sessions of the tests end.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// config archives at once.
func config(d Disk, l Sessions) Config {
	return Config{Dir: "data", Disk: d, Sessions: l, Archive: true, Share: 1, Inbox: true, PinMarks: []string{"flag"},
		NewEncoder: func() Encoder { return encoder }}
}

// encoder is one for all tests, for its memory takes time to make, encoders
// are some for tests of several workers. No test runs beside another.
var (
	encoder  = format.NewArchiver()
	encoders = [...]Encoder{encoder, format.NewArchiver(), format.NewArchiver()}
)

// eachEncoder gives each worker another one.
func eachEncoder() func() Encoder {
	n := 0
	return func() Encoder {
		n++
		return encoders[n-1]
	}
}

// opened opens an archiver that works only when it is told to.
func opened(t testing.TB, cfg Config) *Archiver {
	t.Helper()
	a, err := openStill(cfg)
	must(t, err)
	return a
}

func openStill(cfg Config) (*Archiver, error) {
	a, err := open(cfg)
	if err != nil {
		return nil, err
	}
	for range a.cfg.Workers {
		a.workers = append(a.workers, newWorker(context.Background(), a))
	}
	return a, a.prepare()
}

// rounds does what is to be done, all of it.
func (a *Archiver) rounds() {
	for a.round(context.Background()) {
	}
}

// logged collects a log.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// names lists the files of a disk below a folder, without what is being
// written.
func names(d simulated, dir string) []string {
	var list []string
	for _, name := range d.Find("") {
		if strings.HasPrefix(name, dir+"/") && (dir == workFolder || !strings.HasPrefix(name, workFolder)) {
			list = append(list, name)
		}
	}
	return list
}

// holds tells by an error what a file has that is not of a replay, whatever
// its layout.
func holds(d Disk, name string, want []byte) error {
	r, err := (&Archiver{disk: d}).openReplay(name, unpaced)
	if err != nil {
		return err
	}
	src, err := format.NewFile(bytes.NewReader(want), int64(len(want)))
	if err != nil {
		return err
	}
	if _, err := r.Check(); err != nil {
		return err
	}
	return format.SameContent(src, r.File)
}

// kept finds a replay's content, as its source or as an archive.
func kept(d simulated, want []byte) error {
	var errs []error
	for _, dir := range [...]string{sealedFolder, unfinishedFolder, archiveFolder, inboxFolder, quarantineFolder} {
		for _, name := range names(d, dir) {
			err := holds(d, name, want)
			if err == nil {
				return nil
			}
			if dir == archiveFolder && isDamage(err) {
				return fmt.Errorf("%s is damaged: %w", name, err)
			}
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	if len(errs) == 0 {
		return fs.ErrNotExist
	}
	return errors.Join(errs...)
}

// crc is the checksum of a line's document.
func crc(doc string) uint32 { return crc32.Checksum([]byte(doc), castagnoli) }
