package archive

import (
	"cmp"
	"io"
	"log/slog"
	"time"

	"reprise/format"
	"reprise/recorder"
)

// Sessions is what the archiver asks of the recorder.
type Sessions interface {
	// Lookup finds a session by its id; Status.Ended is set once it has ended
	// and the ledger says so durably.
	Lookup(id string) (recorder.Status, bool)
	// Enter claims the id of a session that was recorded elsewhere. It is
	// durable then. To enter the same content again does no harm; an id that
	// is taken otherwise is a *recorder.Refusal of recorder.CodeExists.
	Enter(id string, start time.Time, end recorder.SealInfo) error
	// Room is how many bytes are free, and how many recording needs.
	Room() (free, needed int64, err error)
}

// Encoder writes archives, one at a time: a format.Archiver. Errors of src and
// out must come back so that errors.Is finds them.
type Encoder interface {
	Archive(src *format.File, out io.Writer, o format.ArchiveOptions) (*format.ArchiveReport, error)
}

// Config says what an Archiver does. A zero field means its default.
type Config struct {
	// Dir is the data folder.
	Dir string
	// Sessions is the recorder of the data folder. It must be set, and stay
	// open until Close.
	Sessions Sessions

	// Archive has sessions archived. Without it their files stay where they
	// are, and the inbox is left alone.
	Archive bool
	// Options say how; see format.Archiver.
	Options format.ArchiveOptions
	// NewEncoder makes the encoder of a worker. Default: format.NewArchiver.
	NewEncoder func() Encoder
	// Workers is how many files are archived at once. Default 1.
	Workers int
	// Share is how much of one processor a worker takes at most, above 0 up to
	// 1. Default 0.25.
	Share float64
	// Delay is how long a file stays as it is after its session ended. The
	// zero Delay means no time at all.
	Delay time.Duration
	// ReopenWindow is the recorder's: an unfinished session is left alone for
	// as long as its producer may go on with it.
	ReopenWindow time.Duration
	// Name makes the names of archives. Default: DefaultTemplate.
	Name Template

	// Inbox has the inbox looked after. A file there is taken once nothing
	// has changed it for Settle (default 2 s), or at once where it says itself
	// that it is whole.
	Inbox  bool
	Settle time.Duration

	// Policy is what is kept.
	Policy Policy
	// PinMarks are the kinds of marks that pin a replay.
	PinMarks []string

	// Log takes what an operator should know. Default: nothing is logged.
	Log *slog.Logger
	// Disk is the data folder. Default: Dir.
	Disk Disk
}

// What a Config has where it does not say otherwise.
const (
	defaultShare  = 0.25
	defaultSettle = 2 * time.Second
)

func (c Config) withDefaults() Config {
	c.Workers = cmp.Or(c.Workers, 1)
	c.Share = cmp.Or(c.Share, defaultShare)
	c.Settle = cmp.Or(c.Settle, defaultSettle)
	if c.NewEncoder == nil {
		c.NewEncoder = func() Encoder { return format.NewArchiver() }
	}
	if c.Name == (Template{}) {
		c.Name = Template{DefaultTemplate}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
