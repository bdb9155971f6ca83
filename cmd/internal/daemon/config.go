package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/pflag"

	"reprise/format"
	"reprise/recorder/archive"
)

// Config holds every key of the configuration. A key stands in the file under
// its toml name, is the flag of that name with dashes, and the environment
// variable REPRISE_ with capitals; flag goes over environment over file over
// default. configs/reprised.toml explains each key. A reload takes those
// tagged live into use, a change of any other needs a restart.
type Config struct {
	Data                 string   `toml:"data" help:"folder of everything that is kept"`
	Listen               string   `toml:"listen" help:"QUIC address for recording"`
	Tokens               string   `toml:"tokens" live:"yes" help:"file of the tokens that may record (see: reprise token); empty: none is asked for"`
	ClientCA             string   `toml:"client_ca" live:"yes" help:"authorities (PEM) whose client certificates may record; empty: none is asked for"`
	AllowUnauthenticated bool     `toml:"allow_unauthenticated" help:"listen off loopback although anyone who reaches the address may record"`
	HTTP                 string   `toml:"http" help:"HTTP address for metrics, health and the listing; empty switches it off"`
	TLSCert              string   `toml:"tls_cert" help:"certificate file (PEM); empty: a self-signed one is kept in the data folder"`
	TLSKey               string   `toml:"tls_key" help:"key file (PEM) of tls_cert"`
	SigningKey           string   `toml:"signing_key" help:"private key (see: reprise keygen) that signs each session at its end; empty: none is signed"`
	AutoReload           bool     `toml:"auto_reload" help:"reload when the configuration, or a file that it names, changes; SIGHUP does so in any case"`
	LogFormat            string   `toml:"log_format" help:"text or json"`
	LogLevel             string   `toml:"log_level" live:"yes" help:"debug, info, warn or error"`
	FlushInterval        Duration `toml:"flush_interval" help:"how long a flush gathers chunks before its one sync"`
	AckInterval          Duration `toml:"ack_interval" help:"how long acknowledgements are gathered"`
	SegmentBytes         Size     `toml:"segment_bytes" help:"size of one journal segment; 0: 32MiB, or less on a small disk"`
	Segments             int      `toml:"segments" help:"number of journal segments"`
	MaxSegments          int      `toml:"max_segments" help:"number of segments that the journal may grow to while session files cannot be written"`
	CheckpointInterval   Duration `toml:"checkpoint_interval" help:"longest time between two checkpoints"`
	FileInterval         Duration `toml:"file_interval" help:"how far session files may lag behind the journal"`
	TailBytes            Size     `toml:"tail_bytes" help:"bytes of a session that may wait in memory for its file"`
	ResumeTimeout        Duration `toml:"resume_timeout" help:"how long a detached session waits for its producer"`
	ReopenWindow         Duration `toml:"reopen_window" help:"how long an unfinished session may be reopened by its producer; 0: never"`
	SessionWindow        Size     `toml:"session_window" live:"yes" help:"bytes of one session that may wait to become durable"`
	MaxPending           Size     `toml:"max_pending" help:"bytes that all sessions together may hold in memory"`
	SessionMaxBytes      Size     `toml:"session_max_bytes" live:"yes" help:"bytes that one session may have; 0: no bound"`
	SessionBytesPerSec   Size     `toml:"session_bytes_per_second" live:"yes" help:"bytes a second that one session may bring in the long run; 0: no bound"`
	MaxSessions          int      `toml:"max_sessions" live:"yes" help:"most sessions at once"`
	MaxConnections       int      `toml:"max_connections" live:"yes" help:"most connections at once"`
	MinFree              Size     `toml:"min_free" live:"yes" help:"free bytes of the disk below which new sessions are refused; 0: the size of a journal segment"`
	DrainTimeout         Duration `toml:"drain_timeout" live:"yes" help:"how long SIGTERM waits for clients and disk before it ends"`

	Archive          bool     `toml:"archive" help:"rewrite the files of sessions that have ended as archives"`
	ArchiveName      string   `toml:"archive_name" help:"template of archives' names"`
	ArchiveLevel     string   `toml:"archive_level" help:"how much time archives may take: fast, default or max"`
	ArchiveHashEvery int      `toml:"archive_hash_every" help:"keep one in so many state hashes in archives; 1: all"`
	ArchiveDelay     Duration `toml:"archive_delay" help:"how long a file stays as it is after its session ended"`
	ArchiveWorkers   int      `toml:"archive_workers" help:"files that are archived at once"`
	ArchiveCPUShare  Share    `toml:"archive_cpu_share" help:"most of one processor that each worker takes, above 0 up to 1"`
	Inbox            bool     `toml:"inbox" help:"file and archive what is dropped into DATA/inbox"`
	InboxSettle      Duration `toml:"inbox_settle" help:"how long nothing must have changed a file of the inbox before it is taken"`
	PinMarks         string   `toml:"pin_marks" help:"kinds of marks, with commas between, that pin a replay"`
	RetainAge        Duration `toml:"retain_age" live:"yes" help:"how long replays are kept after their sessions ended; 0: for good"`
	RetainBytes      Size     `toml:"retain_bytes" live:"yes" help:"most bytes of replays of sessions that have ended; 0: no bound"`
	RetainCount      int      `toml:"retain_count" live:"yes" help:"most replays of sessions that have ended; 0: no bound"`
	RetainGames      Rules    `toml:"retain_games" live:"yes" help:"the same for single games"`
	RetainUnfinished bool     `toml:"retain_unfinished" live:"yes" help:"let unfinished replays be removed like sealed ones"`
}

// Default is the configuration without a file, a flag or a variable.
func Default() Config {
	return Config{
		Data: "./reprise-data", Listen: "127.0.0.1:4433", HTTP: "127.0.0.1:8433", AutoReload: true,
		LogFormat: "text", LogLevel: "info",
		FlushInterval: Duration{2 * time.Millisecond}, AckInterval: Duration{2 * time.Millisecond},
		Segments: 4, MaxSegments: 16, CheckpointInterval: Duration{30 * time.Second}, FileInterval: Duration{2 * time.Second}, TailBytes: 64 << 10,
		ResumeTimeout: Duration{5 * time.Minute}, ReopenWindow: Duration{24 * time.Hour},
		SessionWindow: 1 << 20, MaxPending: 256 << 20, MaxSessions: 20_000, MaxConnections: 4096,
		DrainTimeout: Duration{30 * time.Second},
		Archive:      true, ArchiveName: archive.DefaultTemplate, ArchiveLevel: format.ArchiveDefault.String(), ArchiveHashEvery: 1,
		ArchiveDelay: Duration{5 * time.Minute}, ArchiveWorkers: 1, ArchiveCPUShare: 0.25, Inbox: true, InboxSettle: Duration{2 * time.Second},
		PinMarks: "desync,flag", RetainGames: Rules{},
	}
}

// Flags registers a flag for every key on fs.
func (c *Config) Flags(fs *pflag.FlagSet) {
	c.eachKey(func(name, help string, field reflect.Value) {
		flag := strings.ReplaceAll(name, "_", "-")
		switch p := field.Addr().Interface().(type) {
		case *string:
			fs.StringVar(p, flag, *p, help)
		case *bool:
			fs.BoolVar(p, flag, *p, help)
		case *int:
			fs.IntVar(p, flag, *p, help)
		case pflag.Value:
			fs.Var(p, flag, help)
		}
	})
}

func (c *Config) eachKey(each func(name, help string, field reflect.Value)) {
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		each(tag.Get("toml"), tag.Get("help"), v.Field(i))
	}
}

// take takes the live keys of next, and names the others that differ.
func (c *Config) take(next *Config) (restart []string) {
	now, then := reflect.ValueOf(c).Elem(), reflect.ValueOf(next).Elem()
	for i := range now.NumField() {
		tag := now.Type().Field(i).Tag
		switch {
		case tag.Get("live") != "":
			now.Field(i).Set(then.Field(i))
		case !now.Field(i).Equal(then.Field(i)):
			restart = append(restart, tag.Get("toml"))
		}
	}
	return restart
}

// Load fills c from the file (if path is not empty), then the environment,
// then the flags of fs that were given, and checks the result.
func (c *Config) Load(path string, env func(string) (string, bool), fs *pflag.FlagSet) error {
	given := map[string]string{}
	fs.Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
	*c = Default()
	if path != "" {
		if err := c.loadFile(path); err != nil {
			return err
		}
	}
	if err := c.loadEnv(env, fs); err != nil {
		return err
	}
	for name, value := range given {
		if err := fs.Set(name, value); err != nil {
			return err
		}
	}
	err := c.Validate()
	var bad *keyError
	// fs has what stands in the environment, too.
	if errors.As(err, &bad) && path != "" && !fs.Changed(strings.ReplaceAll(bad.key, "_", "-")) {
		bad.place = placeOf(bad.key, path)
	}
	return err
}

// loadFile reads a TOML file; an unknown key is an error with its line.
func (c *Config) loadFile(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if len(b) == 0 {
		// More likely a file that is just being written than a wish.
		return fmt.Errorf("configuration: %s is empty: write a key or a comment into it, or name no file", path)
	}
	d := toml.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err = d.Decode(c)
	var unknown *toml.StrictMissingError
	var bad *toml.DecodeError
	switch {
	case errors.As(err, &unknown):
		line, _ := unknown.Errors[0].Position()
		return fmt.Errorf("configuration: %s, line %d: unknown key %q", path, line, strings.Join(unknown.Errors[0].Key(), "."))
	case errors.As(err, &bad):
		line, _ := bad.Position()
		return fmt.Errorf("configuration: %s, line %d: %s", path, line, strings.TrimPrefix(bad.Error(), "toml: "))
	case err != nil:
		return fmt.Errorf("configuration: %s: %w", path, err)
	}
	return nil
}

func (c *Config) loadEnv(env func(string) (string, bool), fs *pflag.FlagSet) error {
	var failed error
	c.eachKey(func(name, _ string, _ reflect.Value) {
		variable := variableOf(name)
		value, ok := env(variable)
		if !ok || failed != nil {
			return
		}
		if err := fs.Set(strings.ReplaceAll(name, "_", "-"), value); err != nil {
			failed = fmt.Errorf("configuration: environment variable %s: %w", variable, err)
		}
	})
	return failed
}

// Variables of the environment that are keys begin with variablePrefix.
const variablePrefix = "REPRISE_"

func variableOf(key string) string { return variablePrefix + strings.ToUpper(key) }

// strange is a variable of the environment that looks like a key, and is none.
type strange struct {
	name    string
	nearest string // the key's variable that it is most like; empty for none
}

// strangeVariables finds them in an environment as os.Environ gives it.
func strangeVariables(environ []string) (found []strange) {
	var known []string
	new(Config).eachKey(func(name, _ string, _ reflect.Value) { known = append(known, variableOf(name)) })
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, variablePrefix) && !slices.Contains(known, name) {
			found = append(found, strange{name, nearest(name, known)})
		}
	}
	return found
}

// warnOfStrange says which variables set nothing.
func (d *Daemon) warnOfStrange(environ []string) {
	for _, v := range strangeVariables(environ) {
		about := []any{"variable", v.name}
		if v.nearest != "" {
			about = append(about, "nearest", v.nearest)
		}
		d.log.Warn("this environment variable is no key of the configuration: it is ignored", about...)
	}
}

// mostTypos is how many typing errors apart two names may be for one to be
// taken for the other.
const mostTypos = 3

func nearest(name string, known []string) (best string) {
	least := mostTypos + 1
	for _, k := range known {
		if d := typos(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// typos is how many characters have to be put in, taken out or exchanged to
// make a of b.
func typos(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Validate checks what single values cannot: ranges and what goes together.
// The error names the key.
func (c *Config) Validate() error {
	switch c.LogFormat {
	case "text", "json":
	default:
		return badKey("log_format", "%q: use text or json", c.LogFormat)
	}
	if _, err := c.level(); err != nil {
		return badKey("log_level", "%q: use debug, info, warn or error", c.LogLevel)
	}
	if c.Data == "" {
		return badKey("data", "is empty: name a folder")
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return badKey("tls_cert", "and tls_key go together: give both or neither")
	}
	if err := c.validateNumbers(); err != nil {
		return err
	}
	if err := c.validateArchive(); err != nil {
		return err
	}
	if c.HTTP != "" {
		if _, _, err := net.SplitHostPort(c.HTTP); err != nil {
			return badKey("http", "%q is not HOST:PORT", c.HTTP)
		}
	}
	return c.validateListen()
}

// minPending lets a chunk of any size in as soon as the recorder has room for
// one: it says so while that much is free, and no less than half of all.
const minPending = 2 * format.MaxBody

// minSegment is the smallest journal segment: the recorder, which takes
// smaller ones, would then refuse chunks of usual size. segmentUnit is what its
// size is a multiple of.
const (
	minSegment  = 512 << 10
	segmentUnit = 4096
)

func (c *Config) validateNumbers() error {
	for _, n := range [...]struct {
		key   string
		value int64
	}{
		{"flush_interval", int64(c.FlushInterval.Duration)}, {"ack_interval", int64(c.AckInterval.Duration)},
		{"checkpoint_interval", int64(c.CheckpointInterval.Duration)}, {"file_interval", int64(c.FileInterval.Duration)},
		{"tail_bytes", int64(c.TailBytes)}, {"resume_timeout", int64(c.ResumeTimeout.Duration)}, {"session_window", int64(c.SessionWindow)},
		{"max_sessions", int64(c.MaxSessions)}, {"max_connections", int64(c.MaxConnections)}, {"drain_timeout", int64(c.DrainTimeout.Duration)},
	} {
		if n.value <= 0 {
			return badKey(n.key, "must be above 0")
		}
	}
	switch {
	case c.SegmentBytes != 0 && (c.SegmentBytes < minSegment || c.SegmentBytes%segmentUnit != 0):
		return badKey("segment_bytes", "is %v: use a multiple of %d of at least %v, or 0", c.SegmentBytes, segmentUnit, Size(minSegment))
	case c.Segments < 2:
		return badKey("segments", "is %d: use at least 2, one is written while another is freed", c.Segments)
	case c.MaxSegments < c.Segments:
		return badKey("max_segments", "is %d: use at least segments, which is %d", c.MaxSegments, c.Segments)
	case c.MaxPending < minPending || c.MaxPending < c.SessionWindow:
		return badKey("max_pending", "is %v: use at least %v, and no less than session_window", c.MaxPending, Size(minPending))
	case c.MaxConnections > connectionCeiling:
		return badKey("max_connections", "is %d: use at most %d", c.MaxConnections, connectionCeiling)
	case c.MinFree < 0:
		return badKey("min_free", "must not be negative")
	}
	return nil
}

func (c *Config) validateListen() error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return badKey("listen", "%q is not HOST:PORT", c.Listen)
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	if !loopback && c.Tokens == "" && c.ClientCA == "" && !c.AllowUnauthenticated {
		return badKey("listen", "%q is not a loopback address, and anyone who reaches it could record: set tokens (--tokens FILE), or client_ca (--client-ca FILE), "+
			"or guard the network and set allow_unauthenticated (--allow-unauthenticated, REPRISE_ALLOW_UNAUTHENTICATED=true)", c.Listen)
	}
	return nil
}

// keyError is a value that cannot be used.
type keyError struct {
	key string
	// place is where it stands, as far as that is known.
	place string
	err   error
}

func (e *keyError) Error() string { return "configuration: " + e.place + e.key + e.err.Error() }

func (e *keyError) Unwrap() error { return e.err }

func badKey(key, text string, args ...any) error {
	return &keyError{key: key, err: fmt.Errorf(" "+text, args...)}
}

// badFile is a key whose file cannot be used.
func badFile(key string, err error) error {
	return &keyError{key: key, err: fmt.Errorf(": %w", err)}
}

// placeOf says where in the file a key stands, if it does.
func placeOf(key, path string) string {
	b, err := os.ReadFile(path)
	at := regexp.MustCompile(`(?m)^[ \t]*` + key + `[ \t]*=`).FindIndex(b)
	if err != nil || at == nil {
		return ""
	}
	return fmt.Sprintf("%s, line %d: ", path, 1+bytes.Count(b[:at[0]], []byte("\n")))
}

func (c *Config) level() (level slog.Level, err error) {
	err = level.UnmarshalText([]byte(c.LogLevel))
	return level, err
}
