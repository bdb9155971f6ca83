package power

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"syscall"
	"time"

	"reprise/cmd/internal/daemon"
	"reprise/recorder/disktest"
)

// machine is where the daemon runs: a disk and a host that are turned off
// together.
type machine struct {
	w      *world
	rng    *rand.Rand
	disk   *disktest.Disk
	host   *host
	daemon *daemon.Daemon
}

const (
	daemonPort    = 4433
	daemonAddr    = "127.0.0.1:4433"
	resumeTimeout = 20 * time.Second
)

// config makes the journal turn over quickly.
func (m *machine) config() daemon.Config {
	cfg := daemon.Default()
	cfg.Data, cfg.Listen, cfg.HTTP, cfg.AutoReload = m.w.dir, daemonAddr, "", false
	cfg.SegmentBytes, cfg.Segments, cfg.MaxSegments, cfg.MinFree = 256<<10, 3, 5, 1
	cfg.SessionWindow, cfg.TailBytes = 32<<10, 4<<10
	cfg.FileInterval.Duration, cfg.CheckpointInterval.Duration = 300*time.Millisecond, 2*time.Second
	cfg.ResumeTimeout.Duration = resumeTimeout
	return cfg
}

// boot starts the daemon on the disk as it is.
func (m *machine) boot() error {
	m.host = m.w.net.host()
	socket := m.host.open(daemonPort)
	m.daemon = daemon.New(m.config(), m.w.log)
	m.daemon.On(m.disk, socket)
	err := m.daemon.Start()
	if err != nil {
		socket.Close()
		m.daemon = nil
	}
	return err
}

// plan is what happens to the disk in one life of the machine.
type plan struct {
	cutAt      int           // operation at which the machine is turned off; 0 for none
	failAt     int           // first operation that fails; 0 for none
	fails      int           // how many do
	with       error         // what they fail with
	life       time.Duration // after which the machine is turned off anyway
	full       time.Duration // for so long there is little room
	room       int64
	slow, sync time.Duration // for so long a sync of the journal takes so long
}

func (m *machine) newPlan() plan {
	p := plan{life: time.Duration(m.rng.IntN(12_000)) * time.Millisecond}
	if m.rng.IntN(3) > 0 {
		p.cutAt = 1 + m.rng.IntN(400)
	}
	switch m.rng.IntN(6) {
	case 0, 1:
		p.failAt, p.fails = 1+m.rng.IntN(200), 1+m.rng.IntN(6)
		p.with = [...]error{syscall.EIO, syscall.ENOSPC}[m.rng.IntN(2)]
	case 2:
		p.full, p.room = time.Duration(m.rng.IntN(6000))*time.Millisecond, m.rng.Int64N(200_000)
	case 3:
		p.slow, p.sync = time.Duration(m.rng.IntN(6000))*time.Millisecond, time.Duration(m.rng.IntN(3000))*time.Millisecond
	}
	return p
}

// follow lets the plan happen.
func (m *machine) follow(p plan) {
	fmt.Fprintf(m.w.log, "-- %v: %+v\n", time.Since(epoch), p)
	disk, host, before := m.disk, m.host, m.disk.Operations()
	disk.SetFault(func(number int, _ disktest.Op, _ string) disktest.Fault {
		switch n := number - before; {
		case n == p.cutAt:
			host.setDark(true) // nothing is said any more
			return disktest.Fault{Crash: true}
		case p.failAt > 0 && n >= p.failAt && n < p.failAt+p.fails:
			return disktest.Fault{Err: p.with}
		}
		return disktest.Fault{}
	})
	if p.full > 0 {
		disk.SetFree(p.room)
		time.AfterFunc(p.full, func() { disk.SetFree(-1) })
	}
	if p.slow > 0 {
		disk.SetDelay(func(op disktest.Op, name string) time.Duration {
			if op == disktest.OpSync && strings.HasPrefix(path.Base(name), "segment-") {
				return p.sync
			}
			return 0
		})
		time.AfterFunc(p.slow, func() { disk.SetDelay(nil) })
	}
	for end := time.Now().Add(p.life); time.Now().Before(end) && !disk.Off() && !m.w.failed(); {
		time.Sleep(20 * time.Millisecond)
	}
}

// cut turns the machine off.
func (m *machine) cut() {
	m.host.setDark(true)
	m.disk.TurnOff()
	if m.daemon == nil {
		return // it did not start
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = m.daemon.Stop(ctx) // it cannot succeed: the disk is gone
}

// stop ends the daemon in order. On a full disk it says so, and the journal
// keeps what the files lack.
func (m *machine) stop() error {
	m.disk.SetFault(nil)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := m.daemon.Stop(ctx)
	m.disk = m.disk.Crash(disktest.SurviveNothing)
	m.disk.SetFree(-1)
	if errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	return err
}

// restart turns the machine on again; it may be turned off while it recovers.
func (m *machine) restart() error {
	for {
		m.w.cuts++
		how := disktest.Survival(m.rng.IntN(disktest.Survivals))
		fmt.Fprintf(m.w.log, "-- %v: power cut, survival %d\n", time.Since(epoch), how)
		m.disk = m.disk.Crash(how)
		m.disk.SetFree(-1)
		if m.rng.IntN(3) == 0 {
			at := 1 + m.rng.IntN(25)
			m.disk.SetFault(func(number int, _ disktest.Op, _ string) disktest.Fault { return disktest.Fault{Crash: number == at} })
		}
		err := m.boot()
		switch {
		case m.disk.Off():
			m.cut()
		case err != nil:
			return fmt.Errorf("recovery failed on a sound disk: %w", err)
		default:
			m.disk.SetFault(nil)
			return nil
		}
	}
}
