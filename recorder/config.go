package recorder

import (
	"fmt"
	"log/slog"
	"time"

	"reprise/format"
)

// Config says where and how a Recorder records. A zero field means its
// default. Only Dir must be set.
type Config struct {
	// Dir is the data folder. It is made where it does not exist, and must
	// be on a file system whose renames are atomic.
	Dir string

	// FlushInterval is how long the first waiting chunk waits for others
	// before the journal is written and synced. Default 1 ms. A flush also
	// collects all that came in during the sync before it, so more gains
	// little: 2 ms made each acknowledgement 1.1 ms later, and saved a tenth
	// of the processor time at 20,000 chunks a second.
	FlushInterval time.Duration

	// SegmentBytes is the size of a journal segment, a multiple of 4,096
	// of at least 64 KiB. By default 32 MiB, or less on a small disk: a 64th
	// of what is free, at least 512 KiB. Segments that exist keep their size.
	SegmentBytes int64
	// Segments is the number of segments that are written full of zeros
	// before the first session, at least 2. Default 4.
	Segments int
	// ChunkBytes is a chunk that must find room in the journal: where Segments
	// take only smaller ones, more of them are made, unless the disk is too
	// small for that. Default: no such demand.
	ChunkBytes int64
	// MaxSegments is how far the journal may grow while session files
	// cannot be written. Then nothing more is acknowledged. It grows to three
	// quarters of this where the files of many sessions are written in turn.
	// Default 16.
	MaxSegments int

	// CheckpointBytes of journal, or CheckpointInterval if anything was
	// journalled, lead to the next checkpoint. Defaults: a quarter of the first
	// Segments, and 30 s.
	CheckpointBytes    int64
	CheckpointInterval time.Duration

	// FileInterval is how far the session files may lag behind the journal:
	// farther where there are so many sessions that more than 1,250 files a
	// second would be written, 8 s for 10,000, as long as the journal and
	// MaxPendingBytes have room for it. Default 2 s. It costs memory, and a
	// reader of a live file sees no more than the file holds.
	FileInterval time.Duration
	// TailBytes is how many durable bytes a session may hold in memory: its
	// file is written at once when it holds more. Default 64 KiB.
	TailBytes int64
	// FileWriters is how many session files are written, and so open, at
	// once. Default 4.
	FileWriters int

	// ResumeTimeout is how long a session waits for its producer, from when
	// the connection went away or the recorder was opened. Then it ends as
	// unfinished. Default 5 min.
	ResumeTimeout time.Duration
	// ReopenWindow is how long after that end the same producer may go on
	// with it. Default 24 h; negative means never.
	ReopenWindow time.Duration

	// SessionWindow is how many bytes of a session may wait for the journal,
	// as told to its producer; twice as many are refused. A larger chunk is
	// taken only when nothing else waits. Default 1 MiB.
	SessionWindow int64
	// MaxSessions bounds the sessions that have not ended. Default 20,000.
	MaxSessions int
	// MaxPendingBytes bounds what all sessions hold in memory that is not in
	// their files. Default 256 MiB.
	MaxPendingBytes int64
	// MinFreeBytes is what must be free on the disk for a new session; those
	// that run go on. Default: the size of a journal segment; negative means
	// no such check.
	MinFreeBytes int64

	// Sign, if set, signs each session at its end, sealed or unfinished. It is
	// called by several goroutines. While it fails the end is tried again.
	Sign func(format.Statement) (format.Signature, error)

	// SessionBytes and SessionRate bound what one session may bring; see
	// Limits. Default: no bound.
	SessionBytes, SessionRate int64

	// Log takes what an operator should know. Default: nothing is logged.
	Log *slog.Logger
	// FS is the disk. Default: the real one.
	FS FS
}

// What a Config has where it does not say otherwise.
const (
	defaultFlushInterval      = time.Millisecond
	defaultSegmentBytes       = 32 << 20
	minDefaultSegmentBytes    = 512 << 10
	defaultSegments           = 4
	defaultMaxSegments        = 16
	defaultCheckpointInterval = 30 * time.Second
	defaultFileInterval       = 2 * time.Second
	defaultTailBytes          = 64 << 10
	defaultFileWriters        = 4
	defaultResumeTimeout      = 5 * time.Minute
	defaultReopenWindow       = 24 * time.Hour
	defaultSessionWindow      = 1 << 20
	defaultMaxSessions        = 20_000
	defaultMaxPendingBytes    = 256 << 20
)

// minSegmentBytes still holds a header and a few small batches.
const minSegmentBytes = 64 << 10

// Validate checks the fields that are set. The error names the field and
// what it may be.
func (c Config) Validate() error {
	if c.Dir == "" {
		return fmt.Errorf("field Dir is empty: name the data folder")
	}
	if s := c.SegmentBytes; s != 0 && (s < minSegmentBytes || s%pageSize != 0) {
		return fmt.Errorf("field SegmentBytes is %d: use a multiple of %d of at least %d", s, pageSize, minSegmentBytes)
	}
	if c.Segments == 1 {
		return fmt.Errorf("field Segments is 1: use at least 2, one is written while another is freed")
	}
	d := c.withDefaults()
	if d.MaxSegments < d.Segments {
		return fmt.Errorf("field MaxSegments is %d: use at least Segments, which is %d", d.MaxSegments, d.Segments)
	}
	return c.validateSigns()
}

// validateSigns refuses negative numbers where they mean nothing.
func (c Config) validateSigns() error {
	for _, f := range [...]struct {
		name  string
		value int64
	}{
		{"FlushInterval", int64(c.FlushInterval)}, {"Segments", int64(c.Segments)}, {"MaxSegments", int64(c.MaxSegments)},
		{"CheckpointBytes", c.CheckpointBytes}, {"CheckpointInterval", int64(c.CheckpointInterval)},
		{"FileInterval", int64(c.FileInterval)}, {"TailBytes", c.TailBytes}, {"FileWriters", int64(c.FileWriters)},
		{"ResumeTimeout", int64(c.ResumeTimeout)}, {"SessionWindow", c.SessionWindow}, {"MaxSessions", int64(c.MaxSessions)},
		{"MaxPendingBytes", c.MaxPendingBytes}, {"ChunkBytes", c.ChunkBytes},
		{"SessionBytes", c.SessionBytes}, {"SessionRate", c.SessionRate},
	} {
		if f.value < 0 {
			return fmt.Errorf("field %s is %d: use a positive number, or 0 for the default", f.name, f.value)
		}
	}
	return nil
}

// withDefaults fills in what does not depend on the disk.
func (c Config) withDefaults() Config {
	or(&c.FlushInterval, defaultFlushInterval)
	or(&c.Segments, defaultSegments)
	or(&c.MaxSegments, max(defaultMaxSegments, c.Segments))
	or(&c.CheckpointInterval, defaultCheckpointInterval)
	or(&c.FileInterval, defaultFileInterval)
	or(&c.TailBytes, defaultTailBytes)
	or(&c.FileWriters, defaultFileWriters)
	or(&c.ResumeTimeout, defaultResumeTimeout)
	or(&c.ReopenWindow, defaultReopenWindow)
	or(&c.SessionWindow, defaultSessionWindow)
	or(&c.MaxSessions, defaultMaxSessions)
	or(&c.MaxPendingBytes, defaultMaxPendingBytes)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// withDisk fills in what depends on the size of a segment, and that on what
// is free.
func (c Config) withDisk(free int64) Config {
	if c.SegmentBytes == 0 {
		c.SegmentBytes = min(defaultSegmentBytes, max(minDefaultSegmentBytes, free/64)) / pageSize * pageSize
		if large := c.forChunk(); large <= free/8/int64(c.Segments) {
			c.SegmentBytes = max(c.SegmentBytes, large)
		}
	}
	or(&c.CheckpointBytes, c.SegmentBytes*int64(c.Segments)/4)
	or(&c.MinFreeBytes, c.SegmentBytes)
	return c
}

// forChunk is how large segments must be for ChunkBytes.
func (c *Config) forChunk() int64 {
	// What chunkLimit makes of batchLimit, the other way round.
	return roundUp(8*c.ChunkBytes/int64(c.Segments-1)+8) + pageSize
}

func or[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
