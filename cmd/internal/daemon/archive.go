package daemon

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/prometheus/client_golang/prometheus"

	"reprise/format"
	"reprise/recorder"
	"reprise/recorder/archive"
)

// openArchive sets the archiver to work beside the recorder.
func (d *Daemon) openArchive() (err error) {
	d.archive, err = archive.Open(d.archiveConfig())
	return err
}

// closeArchive ends its work before the recorder's.
func (d *Daemon) closeArchive() error {
	if d.archive == nil {
		return nil
	}
	return d.archive.Close()
}

func (d *Daemon) archiveConfig() archive.Config {
	c := &d.cfg
	// Config.Validate has read both before.
	name, _ := archive.ParseTemplate(c.ArchiveName)
	level, _ := format.ParseArchiveLevel(c.ArchiveLevel)
	cfg := archive.Config{Dir: c.Data, Sessions: d.recorder, Archive: c.Archive,
		Options: format.ArchiveOptions{Level: level, HashEvery: uint64(c.ArchiveHashEvery)},
		Workers: c.ArchiveWorkers, Share: float64(c.ArchiveCPUShare), Delay: c.ArchiveDelay.Duration, ReopenWindow: c.ReopenWindow.Duration,
		Name: name, Inbox: c.Inbox, Settle: c.InboxSettle.Duration, Policy: c.Policy(), PinMarks: c.pinMarks(), Log: d.log}
	if d.disk != nil {
		cfg.Disk = archive.Below(d.disk, c.Data)
	}
	return cfg
}

// Policy is what the keys of retention say.
func (c *Config) Policy() archive.Policy {
	p := archive.Policy{Rule: archive.Rule{Age: c.RetainAge.Duration, Bytes: int64(c.RetainBytes), Count: c.RetainCount},
		Games: map[string]archive.Rule{}, Unfinished: c.RetainUnfinished}
	for game, r := range c.RetainGames {
		p.Games[game] = archive.Rule{Age: r.Age.Duration, Bytes: int64(r.Bytes), Count: r.Count}
	}
	return p
}

func (c *Config) pinMarks() []string {
	return strings.FieldsFunc(c.PinMarks, func(r rune) bool { return r == ',' || r == ' ' })
}

// validateArchive checks the keys of archive, inbox and retention.
func (c *Config) validateArchive() error {
	if _, err := archive.ParseTemplate(c.ArchiveName); err != nil {
		return badKey("archive_name", "%w", err)
	}
	if _, err := format.ParseArchiveLevel(c.ArchiveLevel); err != nil {
		return badKey("archive_level", "%w", err)
	}
	switch {
	case c.ArchiveHashEvery < 1:
		return badKey("archive_hash_every", "is %d: use 1 to keep every state hash, or N to keep one in N", c.ArchiveHashEvery)
	case c.ArchiveWorkers < 1:
		return badKey("archive_workers", "is %d: use at least 1; archive = false archives nothing", c.ArchiveWorkers)
	case !(c.ArchiveCPUShare > 0 && c.ArchiveCPUShare <= 1):
		return badKey("archive_cpu_share", "is %v: use a share of one processor, above 0 and at most 1", c.ArchiveCPUShare)
	case c.InboxSettle.Duration <= 0:
		return badKey("inbox_settle", "must be above 0")
	case c.RetainBytes < 0:
		return badKey("retain_bytes", "must not be negative")
	case c.RetainCount < 0:
		return badKey("retain_count", "must not be negative")
	}
	for game, r := range c.RetainGames {
		if r.Bytes < 0 || r.Count < 0 {
			return badKey("retain_games", "has a negative number for %q", game)
		}
	}
	return nil
}

// retune takes the live keys of retention into use.
func (d *Daemon) retune() {
	if d.archive != nil {
		d.archive.SetPolicy(d.cfg.Policy())
	}
}

// place puts the archive of a session into its status.
func (d *Daemon) place(s *recorder.Status) {
	if e, ok := d.archive.Find(s.ID); ok && s.Ended != nil {
		s.File, s.Bytes = e.File, e.Bytes
	}
}

// archiveTroubles says what does not work of archive, inbox and retention.
func (d *Daemon) archiveTroubles() []string {
	var why []string
	for part, text := range d.archive.Stats().Troubles {
		why = append(why, fmt.Sprintf("degraded: %s: %s", part, text))
	}
	return why
}

var (
	descArchived     = describe("archived_total", "Files that were archived.")
	descArchiveIn    = describe("archive_source_bytes_total", "Bytes of the files that were archived.")
	descArchiveOut   = describe("archive_bytes_total", "Bytes of the archives they became.")
	descArchiveFail  = describe("archive_failures_total", "Attempts to archive a file that failed. The file stays.")
	descFailing      = describe("archive_failing", "Files whose last attempt failed: they are tried again, later each time.")
	descArchiveQueue = describe("archive_queue", "Files that were due to be archived at the last look.")
	descArchiveWork  = describe("archive_seconds_total", "Time that the workers spent at work, and pausing for their share.", "what")
	descSetAside     = describe("quarantined_total", "Files of the inbox that were set aside in quarantine.")
	descRemoved      = describe("removed_total", "Replays that were removed, by what asked for it.", "reason")
	descRemovedBytes = describe("removed_bytes_total", "Bytes of the replays that were removed.")
	descHeld         = describe("held", "Replays of sessions that have ended, archived or not; kept are those that nothing may remove.", "which")
	descHeldBytes    = describe("held_bytes", "Their bytes.")
	descBound        = describe("retain_bound", "Bounds on what is held; 0 for none.", "of")
	descUnmet        = describe("retain_unmet", "Bounds that cannot be met, for what is above them is to be kept.")
)

// collectArchive gives the figures of archive, inbox and retention.
func (d *Daemon) collectArchive(gauge, counter sample) {
	s := d.archive.Stats()
	for part := range s.Troubles {
		gauge(descTrouble, 1, part)
	}
	for _, c := range [...]struct {
		desc  *prometheus.Desc
		value float64
	}{{descArchived, float64(s.Archived)}, {descArchiveIn, float64(s.BytesIn)}, {descArchiveOut, float64(s.BytesOut)}, {descArchiveFail, float64(s.Failed)},
		{descSetAside, float64(s.Quarantined)}, {descRemovedBytes, float64(s.RemovedBytes)}} {
		counter(c.desc, c.value)
	}
	counter(descArchiveWork, s.Worked.Seconds(), "work")
	counter(descArchiveWork, s.Rested.Seconds(), "pause")
	for _, reason := range archive.Causes {
		counter(descRemoved, float64(s.Removed[reason]), reason)
	}
	gauge(descFailing, float64(s.Failing))
	gauge(descArchiveQueue, float64(s.Queue))
	gauge(descHeld, float64(s.Held), "all")
	gauge(descHeld, float64(s.Kept), "kept")
	gauge(descHeldBytes, float64(s.HeldBytes))
	gauge(descBound, float64(s.Bounds.Bytes), "bytes")
	gauge(descBound, float64(s.Bounds.Count), "count")
	gauge(descBound, s.Bounds.Age.Seconds(), "seconds")
	gauge(descUnmet, float64(len(s.Unmet)))
}

// Share is a part of one processor in the configuration: 0.25.
type Share float64

func (s Share) String() string { return fmt.Sprint(float64(s)) }

// Set reads a number.
func (s *Share) Set(text string) error {
	var v float64
	if n, err := fmt.Sscanf(text, "%g", &v); err != nil || n != 1 {
		return fmt.Errorf("%q is not a number: use a share of one processor, such as 0.25", text)
	}
	*s = Share(v)
	return nil
}

// Type names the kind of value in help texts.
func (s *Share) Type() string { return "share" }

// Rules are bounds for single games in the configuration: a table of its own
// for each. On the command line and in the environment they stand as in the
// file behind the =.
type Rules map[string]GameRule

// GameRule is what is kept of one game; 0 sets no bound.
type GameRule struct {
	Age   Duration `toml:"age"`
	Bytes Size     `toml:"bytes"`
	Count int      `toml:"count"`
}

func (r Rules) String() string {
	games := make([]string, 0, len(r))
	for game, rule := range r {
		games = append(games, fmt.Sprintf("%q = { age = %q, bytes = %d, count = %d }", game, rule.Age, int64(rule.Bytes), rule.Count))
	}
	slices.Sort(games)
	return "{ " + strings.Join(games, ", ") + " }"
}

// Set reads a table.
func (r *Rules) Set(text string) error {
	var file struct {
		Rules Rules `toml:"rules"`
	}
	d := toml.NewDecoder(strings.NewReader("rules = " + text))
	if err := d.DisallowUnknownFields().Decode(&file); err != nil {
		return fmt.Errorf(`%q is not a table of rules, such as { skirmish = { age = "720h", bytes = "10GiB", count = 1000 } }: %w`, text, err)
	}
	*r = file.Rules
	return nil
}

// Type names the kind of value in help texts.
func (r *Rules) Type() string { return "table" }
