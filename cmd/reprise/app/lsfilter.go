package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"reprise/recorder/archive"
)

// lsFilters are those of ls that look beyond what info prints.
type lsFilters struct {
	since, until string
	pinned       bool

	from, to time.Time // zero: no bound
	folders  dataFolders
}

func (l *lsFilters) flags(f *pflag.FlagSet) {
	f.StringVar(&l.since, "since", "", "only replays of sessions that started then or later: 2026-11-29, 2026-11-29T18:00:00Z, or how long ago: 36h, 7d")
	f.StringVar(&l.until, "until", "", "only replays of sessions that started before then")
	f.BoolVar(&l.pinned, "pinned", false, "only replays in a data folder that are pinned")
}

func (l *lsFilters) parse(now time.Time) (err error) {
	if l.from, err = parseWhen("since", l.since, now); err != nil {
		return err
	}
	l.to, err = parseWhen("until", l.until, now)
	return err
}

// parseWhen reads a point in time: a day or a time in UTC, or how long ago.
func parseWhen(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range [...]string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	ago, err := parseAgo(text)
	if err != nil {
		return time.Time{}, usagef("--%s %q: use a day as 2026-11-29, a time as 2026-11-29T18:00:00Z, or how long ago, as 36h or 7d", flag, text)
	}
	return now.Add(-ago), nil
}

// parseAgo reads a time span, also in days.
func parseAgo(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = errors.New("negative")
	}
	return d, err
}

// want tells whether the filters let a replay pass. One that does not say when
// it started passes no bound on that.
func (l *lsFilters) want(r *replay) (bool, error) {
	if !l.from.IsZero() || !l.to.IsZero() {
		micros := r.Summary().Meta.StartedAt
		at := time.UnixMicro(micros)
		if micros == 0 || at.Before(l.from) || !l.to.IsZero() && !at.Before(l.to) {
			return false, nil
		}
	}
	if !l.pinned {
		return true, nil
	}
	return l.folders.pinned(r.path, r.Summary().Meta.Session)
}

// dataFolders knows the data folders that files are in. It may be used by
// several goroutines.
type dataFolders struct {
	mu sync.Mutex
	// of holds the data folder of each folder, pins the pins of each data
	// folder, by lower-case id, ids the sessions of its archives, by name.
	of   map[string]string
	pins map[string]map[string]archive.Pin
	ids  map[string]map[string]string
}

// errNoData is returned for a file that is in no data folder.
var errNoData = errors.New("not in a data folder of reprised: no folder above it has a ledger")

// find gives the data folder that a file is in, and the file's name below it.
func (d *dataFolders) find(path string) (data, name string, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", "", err
	}
	folder := filepath.Dir(abs)
	d.mu.Lock()
	defer d.mu.Unlock()
	data, known := d.of[folder]
	if !known {
		if data, err = dataAbove(folder); err != nil {
			return "", "", err
		}
		if d.of == nil {
			d.of = map[string]string{}
		}
		d.of[folder] = data
	}
	if data == "" {
		return "", "", errNoData
	}
	name, err = filepath.Rel(data, abs)
	return data, filepath.ToSlash(name), err
}

// dataAbove looks for the data folder that a folder is in; empty for none.
func dataAbove(folder string) (string, error) {
	for {
		st, err := os.Stat(filepath.Join(folder, "ledger"))
		if err == nil && st.Mode().IsRegular() {
			return folder, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		above := filepath.Dir(folder)
		if above == folder {
			return "", nil
		}
		folder = above
	}
}

// session gives the id under which a file stands in the ledger.
func (d *dataFolders) session(data, name, own string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ids, known := d.ids[data]
	if !known {
		var err error
		if ids, err = archive.ReadSessions(data); err != nil {
			return "", err
		}
		if d.ids == nil {
			d.ids = map[string]map[string]string{}
		}
		d.ids[data] = ids
	}
	if id, ok := ids[name]; ok {
		return id, nil
	}
	return own, nil
}

// pinned tells whether a file is pinned.
func (d *dataFolders) pinned(path, own string) (bool, error) {
	data, name, err := d.find(path)
	if errors.Is(err, errNoData) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	id, err := d.session(data, name, own)
	if err != nil {
		return false, err
	}
	pins, err := d.allPins(data)
	_, pinned := pins[strings.ToLower(id)]
	return pinned, err
}

func (d *dataFolders) allPins(data string) (map[string]archive.Pin, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if pins, known := d.pins[data]; known {
		return pins, nil
	}
	open, err := archive.OpenPins(data)
	if err != nil {
		return nil, err
	}
	defer open.Close()
	pins, err := open.All()
	if err != nil {
		return nil, err
	}
	if d.pins == nil {
		d.pins = map[string]map[string]archive.Pin{}
	}
	d.pins[data] = pins
	return pins, nil
}
