package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"reprise/format"
	"reprise/recorder"
	"reprise/recorder/archive"
	"reprise/transport"
)

// Daemon is a running reprised.
type Daemon struct {
	cfg   Config
	log   *slog.Logger
	level slog.LevelVar
	// disk is where the recorder writes; nil for the data folder itself.
	disk recorder.FS
	// socket is where clients come in; where it is nil, bind takes one at the
	// configured address.
	socket net.PacketConn
	// udp and tcp are what bind took.
	udp net.PacketConn
	tcp net.Listener

	// sign signs sessions at their end; nil where there is no key.
	sign func(format.Statement) (format.Signature, error)

	recorder *recorder.Recorder
	archive  *archive.Archiver
	giveUp   context.CancelFunc // ends what waits for room
	pair     *transport.Keypair
	guard    atomic.Pointer[guard]
	gate     gate
	server   *transport.Server
	http     *http.Server
	httpAddr net.Addr
	httpDone chan struct{}
	notify   *notifier
	draining atomic.Bool

	source Source
	watch  *watcher // nil: a reload comes by signal alone
	// refusedReload says why the last reload was refused; nil after a good one.
	refusedReload atomic.Pointer[string]
}

// New makes a daemon of a valid configuration, which logs to w.
func New(cfg Config, w io.Writer) *Daemon {
	d := &Daemon{cfg: cfg, notify: newNotifier(os.Getenv("NOTIFY_SOCKET"))}
	d.setLevel()
	o := &slog.HandlerOptions{Level: &d.level}
	if cfg.LogFormat == "json" {
		d.log = slog.New(slog.NewJSONHandler(w, o))
	} else {
		d.log = slog.New(slog.NewTextHandler(w, o))
	}
	return d
}

// On puts another disk and another socket under the daemon than those of
// the machine, where they are not nil. It is called before Start.
func (d *Daemon) On(disk recorder.FS, socket net.PacketConn) { d.disk, d.socket = disk, socket }

// setLevel sets the level of the log, which Config.Validate has read before.
func (d *Daemon) setLevel() {
	if level, err := d.cfg.level(); err == nil {
		d.level.Set(level)
	}
}

// Start recovers the data folder and begins to accept sessions. After an
// error nothing is left to stop.
func (d *Daemon) Start() error {
	if err := d.start(); err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return errors.Join(err, d.Stop(ctx))
	}
	return nil
}

func (d *Daemon) start() error {
	guard, err := readGuard(&d.cfg)
	if err != nil {
		return err
	}
	d.guard.Store(guard)
	d.gate.most.Store(int64(d.cfg.MaxConnections))
	if err := d.readSigningKey(); err != nil {
		return err
	}
	if err := d.bind(); err != nil {
		return err
	}
	if d.recorder, err = recorder.Open(d.recorderConfig()); err != nil {
		return err
	}
	if err := d.openArchive(); err != nil {
		return err
	}
	if err := d.openPair(); err != nil {
		return err
	}
	if err := d.startServer(); err != nil {
		return err
	}
	if b := d.server.Buffers(); !b.Enough() {
		d.log.Warn("UDP buffers are small: bursts of many game servers may lose packets, which are sent again",
			"receive", b.Receive, "send", b.Send, "wanted", transport.WantedBuffer, "remedy", "sysctl net.core.rmem_max and net.core.wmem_max")
	}
	d.startHTTP()
	return nil
}

func (d *Daemon) recorderConfig() recorder.Config {
	c := &d.cfg
	return recorder.Config{Dir: c.Data, FlushInterval: c.FlushInterval.Duration, SegmentBytes: int64(c.SegmentBytes), Segments: c.Segments,
		MaxSegments: c.MaxSegments, CheckpointInterval: c.CheckpointInterval.Duration, FileInterval: c.FileInterval.Duration,
		ResumeTimeout: c.ResumeTimeout.Duration, ReopenWindow: neverIfZero(c.ReopenWindow.Duration),
		SessionWindow: int64(c.SessionWindow), MaxPendingBytes: int64(c.MaxPending),
		MaxSessions: c.MaxSessions, TailBytes: int64(c.TailBytes), MinFreeBytes: int64(c.MinFree),
		SessionBytes: int64(c.SessionMaxBytes), SessionRate: int64(c.SessionBytesPerSec), ChunkBytes: largestChunk, Sign: d.sign, Log: d.log, FS: d.disk}
}

// largestChunk is one whose ticks have as many bytes of steps as a chunk may.
const largestChunk = format.MaxRowBytes + 64<<10

// limits are those that a reload may change.
func (c *Config) limits() recorder.Limits {
	return recorder.Limits{MaxSessions: c.MaxSessions, SessionWindow: int64(c.SessionWindow), MinFreeBytes: int64(c.MinFree),
		SessionBytes: int64(c.SessionMaxBytes), SessionRate: int64(c.SessionBytesPerSec)}
}

// neverIfZero turns a 0 of the configuration into the recorder's "never":
// its own 0 means the default.
func neverIfZero[T ~int64](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

func (d *Daemon) serverConfig() (transport.Config, error) {
	key, err := resetKey(d.tlsFile(resetKeyName))
	if err != nil {
		return transport.Config{}, err
	}
	waiting, giveUp := context.WithCancel(context.Background())
	d.giveUp = giveUp
	return transport.Config{Recorder: guarded{store{recorder: d.recorder, waiting: waiting}, d.allow},
		Lister: lister{d.recorder, d.guard.Load}, Authorise: d.authorise,
		ResetKey: key, MaxConnections: connectionCeiling, Window: int(d.cfg.SessionWindow), AckDelay: d.cfg.AckInterval.Duration, Log: d.log}, nil
}

// Ready is the line that says that sessions are accepted.
func (d *Daemon) Ready() string {
	s := fmt.Sprintf("reprised: ready on %v, fingerprint %v", d.server.Addr(), d.pair.Fingerprint())
	if d.httpAddr != nil {
		s += fmt.Sprintf(", http %v", d.httpAddr)
	}
	return s + ", data " + d.cfg.Data
}

// Run serves until ctx ends, then drains. hup asks for a reload.
func (d *Daemon) Run(ctx context.Context, hup <-chan os.Signal) error {
	d.notify.send("READY=1")
	defer d.notify.close()
	beat := d.notify.beat(os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID"))
	stop, stopped, changed := ctx.Done(), make(chan error, 1), d.changed()
	for {
		select {
		case <-stop:
			stop, hup, changed = nil, nil, nil
			d.notify.send("STOPPING=1")
			go func() { stopped <- d.drain() }()
		case err := <-stopped:
			return err
		case <-hup:
			d.reload()
		case <-changed:
			d.reloadIfChanged()
		case <-beat:
			d.beat()
		}
	}
}

// beat tells the service manager that the daemon is alive. It is, while
// nothing holds up a look at any session.
func (d *Daemon) beat() {
	d.recorder.List()
	d.notify.send("WATCHDOG=1")
}

// drain stops within the time that the configuration gives.
func (d *Daemon) drain() error {
	d.log.Info("draining", "timeout", d.cfg.DrainTimeout)
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.DrainTimeout.Duration)
	defer cancel()
	return d.Stop(ctx)
}

// Stop takes leave of the clients, writes what is pending, and releases the
// data folder. Clients that do not leave in time are cut off: they keep what
// was not acknowledged, and resume. Where the disk is too slow for ctx, the
// error says so, and the journal holds what was acknowledged.
func (d *Daemon) Stop(ctx context.Context) error {
	d.draining.Store(true)
	if d.watch != nil {
		d.watch.close()
	}
	var errs []error
	if d.server != nil {
		errs = append(errs, d.seeOff(ctx))
	}
	if d.giveUp != nil {
		d.giveUp()
	}
	errs = append(errs, d.closeArchive())
	if d.recorder != nil {
		errs = append(errs, d.recorder.Close(ctx))
	}
	return errors.Join(append(errs, d.stopHTTP(), d.unbind())...)
}

// seeOff ends the connections, in the clients' part of the time.
func (d *Daemon) seeOff(ctx context.Context) error {
	ctx, cancel := clientsPart(ctx)
	defer cancel()
	// A chunk that still waits for room then would hold up its connection.
	defer context.AfterFunc(ctx, d.giveUp)()
	err := d.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		d.log.Warn("clients that did not leave in time were cut off", "error", err)
		return nil
	}
	return err
}

// clientsPart is the time of ctx without the disk's: a quarter, at least a
// second, at most half.
func clientsPart(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	left := time.Until(deadline)
	return context.WithTimeout(ctx, left-min(max(left/4, time.Second), left/2))
}
