package ship

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Disposal says what becomes of a file once its session is sealed, and the
// seal's digest is that of the file.
type Disposal uint8

const (
	// Keep leaves the file where it is.
	Keep Disposal = iota
	// Move moves it into the folder "sent" below Config.Dir.
	Move
	// Remove removes it.
	Remove
)

// SentFolder is where Move puts files, StateFolder where the state is kept by
// default; both are in Config.Dir.
const (
	SentFolder  = "sent"
	StateFolder = ".reprise-ship"
)

// Config says what to ship, and where to. Zero values take the default that
// is named.
type Config struct {
	// Dir holds the files: those in it, not those of folders in it.
	Dir string
	// Follow goes on until the context ends: with files that grow, and with
	// new ones. Without it what is there once is shipped.
	Follow bool
	// State is the folder of the records; StateFolder in Dir. It belongs to
	// one running ship at a time.
	State string
	// Dispose says what becomes of a file that is sealed at the daemon.
	Dispose Disposal
	// Idle is how long a file may not grow before it counts as left behind
	// by its writer; 10 min.
	Idle time.Duration
	// Rescan is how often the folder is looked through beside what the
	// system tells of changes, which can get lost; 10 s.
	Rescan time.Duration
	// Active bounds the files that are on their way at once; the others wait;
	// 512.
	Active int

	// Servers are the daemon's addresses, tried in turn; TLS says how it is
	// known, see transport.Trust. Token is the access token.
	Servers []string
	TLS     *tls.Config
	Token   []byte
	Agent   string

	// OnEvent takes what happens, one event at a time. It must not block for
	// long.
	OnEvent func(Event)

	// readers bounds the files that are open at once.
	readers int
	// linger is the shortest time between two looks at a growing file, settle
	// how long damage must stand before it is believed: it may be a write
	// that is not whole yet.
	linger, settle time.Duration
	// deadAfter and backoffMax are the relay's.
	deadAfter, backoffMax time.Duration
	// batch is how many bytes of a file are read at once.
	batch int
}

func (c Config) withDefaults() Config {
	set(&c.State, filepath.Join(c.Dir, StateFolder))
	set(&c.Idle, 10*time.Minute)
	set(&c.Rescan, 10*time.Second)
	set(&c.Active, 512)
	set(&c.Agent, "reprise ship")
	set(&c.readers, 8)
	set(&c.linger, 100*time.Millisecond)
	set(&c.settle, 5*time.Second)
	set(&c.batch, 256<<10)
	if c.OnEvent == nil {
		c.OnEvent = func(Event) {}
	}
	return c
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate checks what can be checked before any work is done.
func (c *Config) validate() error {
	switch {
	case c.Dir == "":
		return errors.New("name the folder to ship")
	case c.Idle < 0 || c.Rescan < 0 || c.Active < 0:
		return errors.New("times and numbers must not be negative")
	case c.Dispose > Remove:
		return fmt.Errorf("disposal %d is not known", c.Dispose)
	}
	st, err := os.Stat(c.Dir)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fmt.Errorf("%s is not a folder", c.Dir)
	}
	return nil
}
