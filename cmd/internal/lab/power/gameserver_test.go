package power

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing/synctest"
	"time"

	"reprise/transport"
)

// gameServer is a client's process, or one after the other. It plays matches
// until the story ends.
type gameServer struct {
	w       *world
	name    string
	rng     *rand.Rand
	host    *host
	spool   string // empty: it keeps all in memory
	spools  int
	client  *transport.Client
	matches []*match // that it plays
	played  int
}

func newGameServer(w *world, n int, rng *rand.Rand) *gameServer {
	g := &gameServer{w: w, name: fmt.Sprintf("Server-%d", n), rng: rng}
	if n != tightServer {
		g.spool = g.newSpool()
	}
	return g
}

// tightServer is the one without a spool, and with little memory.
const tightServer = 2

func (g *gameServer) newSpool() string {
	g.spools++
	return filepath.Join(g.w.dir, fmt.Sprintf("%s-spool-%d", g.name, g.spools))
}

// run plays until the story ends, and then brings every match to its end.
func (g *gameServer) run() {
	g.start()
	for !g.w.over() {
		if err := g.act(); err != nil {
			g.w.fail(err)
		}
	}
	if !g.w.failed() {
		g.finish()
	}
	g.stop()
}

// start starts a process. Its matches it has from the spool.
func (g *gameServer) start() {
	cfg := transport.ClientConfig{TLS: g.w.trust, Background: true, Spool: g.spool, ChunkLinger: 20 * time.Millisecond, ChunkBytes: 4 << 10,
		DialTimeout: time.Second, DeadAfter: time.Second, BackoffMin: 10 * time.Millisecond, BackoffMax: 500 * time.Millisecond}
	if g.spool == "" {
		cfg.SessionMemory = 64 << 10
	}
	g.host = g.w.net.host()
	h := g.host
	cfg.Socket = func(*net.UDPAddr) (net.PacketConn, error) { return h.open(0), nil }
	client, err := transport.Dial(context.Background(), []string{daemonAddr}, cfg)
	if err != nil {
		g.w.fail(err)
		return
	}
	g.client = client
	for _, m := range g.matches {
		g.w.blame(m, g.resume(m))
	}
}

// resume goes on with a match: from the spool, or where that has nothing of
// it with its key alone.
func (g *gameServer) resume(m *match) error {
	if g.spool != "" {
		rec, err := g.client.Resume(m.id)
		if err == nil {
			return m.adopt(rec)
		}
		if !m.free || !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("from the spool: %w", err)
		}
	}
	time.Sleep(2 * time.Second) // the next epoch is a second of the clock
	at := m.whence()
	rec, err := g.client.Continue(g.w.patience(), m.spec(), at)
	var refusal *transport.Refusal
	switch {
	case errors.As(err, &refusal) && (refusal.Code == transport.CodeUnknown || refusal.Code == transport.CodeProtocol) && m.unheard():
		m.gone = true // the daemon has never told to have it
		return nil
	case m.sealing && (errors.As(err, &refusal) && refusal.Code == transport.CodeEnded || errors.Is(err, transport.ErrSealed)):
		m.endedUnheard() // the earlier process has had it sealed, perhaps just now
		return nil
	case err != nil:
		return fmt.Errorf("continuing at tick %d: %w", at, err)
	}
	return m.resumeAt(rec, at)
}

// stop ends the process without a wait for anything.
func (g *gameServer) stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = g.client.Close(ctx) // what is not delivered is in the spool
	g.host.setDark(true)
}

// act does one random thing.
func (g *gameServer) act() error {
	g.drop()
	k := g.rng.IntN(100)
	if len(g.matches) == 0 || len(g.matches) < 3 && k < 10 {
		return g.open()
	}
	m := g.matches[g.rng.IntN(len(g.matches))]
	switch {
	case k < 80 && !m.sealing:
		g.w.blame(m, g.record(m, k))
	case k < 88:
		time.Sleep(time.Duration(g.rng.IntN(2000)) * time.Millisecond)
	case k < 91:
		g.blackOut()
	case k < 95:
		g.w.blame(m, g.seal(m, time.Duration(g.rng.IntN(3000))*time.Millisecond))
	case k < 96:
		g.w.blame(m, g.leave(m))
	case k < 98:
		return g.die()
	default:
		return g.restart()
	}
	return nil
}

func (g *gameServer) record(m *match, k int) error {
	switch {
	case k < 60:
		return g.play(m, 1+g.rng.IntN(30))
	case k < 70:
		return m.hash()
	case k < 77:
		return m.note()
	}
	return m.gap()
}

// drop forgets matches that have ended, and reports harm.
func (g *gameServer) drop() {
	var left []*match
	for _, m := range g.matches {
		g.w.blame(m, m.harmed())
		if !m.ended() && !m.gone {
			left = append(left, m)
		}
	}
	g.matches = left
}

func (g *gameServer) open() error {
	m := newMatch(fmt.Sprintf("%s.Match-%d", g.name, g.played), rand.New(rand.NewPCG(g.rng.Uint64(), 1)))
	g.played++
	rec, err := g.client.Open(m.spec())
	if err != nil {
		return err
	}
	m.rec, m.key = rec, rec.Key()
	g.matches = append(g.matches, m)
	g.w.add(m)
	return nil
}

func (g *gameServer) play(m *match, ticks int) error {
	pause := time.Duration(g.rng.IntN(20)) * time.Millisecond
	for range ticks {
		if err := m.play(); err != nil {
			return err
		}
		time.Sleep(pause)
	}
	return nil
}

// blackOut takes the network away for a while.
func (g *gameServer) blackOut() {
	h := g.host
	h.setDark(true)
	time.AfterFunc(time.Duration(g.rng.IntN(5000))*time.Millisecond, func() { h.setDark(false) })
}

// seal ends a match, or goes on to wait for that.
func (g *gameServer) seal(m *match, patience time.Duration) error {
	m.seal()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := m.rec.Seal(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("seal: %w", err)
	}
	return nil
}

// leave closes a match unsealed once all of it is delivered: some for good,
// some until the session has ended as unfinished.
func (g *gameServer) leave(m *match) error {
	if m.sealing {
		return nil
	}
	err := m.rec.Close(g.w.patience())
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	m.leave(false)
	m.free = true
	if g.rng.IntN(2) == 0 {
		m.gone = true
		return nil
	}
	time.Sleep(time.Duration(g.rng.Int64N(int64(2 * resumeTimeout))))
	return g.resume(m)
}

// die kills the process at a moment at which nothing runs. The next one has
// what the spool held then; sometimes that is lost, too.
func (g *gameServer) die() error {
	g.w.still(func() {
		g.host.setDark(true)
		for _, m := range g.matches {
			m.leave(true)
		}
		if g.spool == "" {
			return
		}
		next := g.newSpool()
		if g.rng.IntN(4) > 0 {
			g.w.fail(copyFolder(next, g.spool))
		} else {
			for _, m := range g.matches {
				m.free = true
			}
		}
		g.spool = next
	})
	g.stop()
	g.reopen()
	return nil
}

// restart ends the process in order.
func (g *gameServer) restart() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(g.rng.IntN(2000))*time.Millisecond)
	defer cancel()
	var undelivered *transport.UndeliveredError
	if err := g.client.Close(ctx); err != nil && !errors.As(err, &undelivered) {
		return fmt.Errorf("%s: %w", g.name, err)
	}
	for _, m := range g.matches {
		m.leave(g.spool == "")
	}
	g.host.setDark(true)
	g.reopen()
	return nil
}

// reopen starts the next process, for the matches that have not ended.
func (g *gameServer) reopen() {
	g.drop()
	time.Sleep(time.Duration(g.rng.IntN(1000)) * time.Millisecond)
	g.start()
}

// finish seals all that is left.
func (g *gameServer) finish() {
	for _, m := range g.matches {
		if m.ended() || m.gone {
			continue
		}
		g.w.blame(m, g.seal(m, patience))
		if !m.ended() {
			g.w.blame(m, fmt.Errorf("is not sealed within %v: %w", patience, m.rec.Err()))
		}
	}
}

func copyFolder(to, from string) error {
	if _, err := os.Stat(from); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return os.CopyFS(to, os.DirFS(from))
}

// still does something while nothing else runs: no time passes, no write is
// half done.
func (w *world) still(do func()) {
	w.stillness <- struct{}{}
	defer func() { <-w.stillness }()
	synctest.Wait()
	do()
}
