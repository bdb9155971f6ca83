package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/transport"
)

// newest is how much of the last ticks may be lost when a game server is
// killed: what no chunk has gathered yet, and what was not in the spool.
const newest = time.Second

// kill -9 of a game server, with the daemon there, with the daemon away, and
// in between: the next process goes on from the spool where that ends.
func TestGameServerKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	d := start(t, data, freePort(t))
	g := newGame(t, gameOptions{addr: d.addr, pin: d.pin, spool: filepath.Join(dir, "spool"), prefix: "spooled", sessions: 5, rate: 60})
	g.start()
	away := pick(3*time.Second, 3*time.Minute)
	for range pick(2, 10) {
		g.progress()
		killAndResume(t, g)
	}
	g.progress()
	d.Kill()
	for range 2 {
		time.Sleep(away / 2)
		killAndResume(t, g)
	}
	d = start(t, data, d.addr)
	g.progress()
	g.seal()
	d.terminate()
	verdict(t, data, g.promises)
	spoolIsEmpty(t, g.o.spool)
}

// killAndResume kills the game server and starts the next: all but its newest
// ticks were in the spool.
func killAndResume(t *testing.T, g *game) {
	t.Helper()
	recorded := g.kill(newest)
	durable := g.durable()
	g.start()
	for i, begun := range g.begun {
		if begun < durable[i] {
			t.Errorf("session %d goes on at tick %d, ticks before %d were acknowledged", i, begun, durable[i])
		}
	}
	if g.begun[0] < recorded {
		t.Errorf("session 0 goes on at tick %d, ticks before %d were recorded %v before the kill", g.begun[0], recorded, newest)
	}
}

func spoolIsEmpty(t *testing.T, spool string) {
	t.Helper()
	left, err := os.ReadDir(spool)
	if err != nil || len(left) > 0 {
		t.Errorf("the spool still holds %v (%v)", left, err)
	}
}

// A game server comes back when its sessions have ended as unfinished: within
// the reopen window it goes on with them, after that it is refused and the
// spool keeps what it has.
func TestGameServerAwayForLong(t *testing.T) {
	t.Parallel()
	t.Run("reopened", func(t *testing.T) {
		t.Parallel()
		g, data, d := awayForLong(t, "24h")
		g.start()
		g.progress()
		g.seal()
		d.terminate()
		verdict(t, data, g.promises)
		spoolIsEmpty(t, g.o.spool)
	})
	t.Run("too late", func(t *testing.T) {
		t.Parallel()
		g, data, d := awayForLong(t, "1ms")
		durable := g.durable()
		g.start()
		eventually(t, "refusals", func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			for _, why := range g.refused {
				if !strings.Contains(why, transport.CodeEnded.String()) {
					return false
				}
			}
			return true
		})
		g.kill(0)
		if after := g.durable(); after[0] != durable[0] {
			t.Errorf("%d ticks were acknowledged of a session that had ended with %d", after[0], durable[0])
		}
		if left, err := os.ReadDir(g.o.spool); err != nil || len(left) < 2*g.o.sessions {
			t.Errorf("the spool holds %d files (%v), want two of each of %d sessions", len(left), err, g.o.sessions)
		}
		d.terminate()
		verdict(t, data, g.promises)
	})
}

// awayForLong records, kills the game server, and waits until the daemon has
// ended its sessions.
func awayForLong(t *testing.T, reopenWindow string) (*game, string, *server) {
	t.Helper()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	d := start(t, data, "127.0.0.1:0", "--resume-timeout", pick("500ms", "2m"), "--reopen-window", reopenWindow)
	g := newGame(t, gameOptions{addr: d.addr, pin: d.pin, spool: filepath.Join(dir, "spool"), prefix: "late", sessions: 3, rate: 60})
	g.start()
	g.progress()
	g.kill(0)
	end := time.Now().Add(patience + pick(0, 3*time.Minute))
	for d.metric(`reprise_sessions_ended_total{state="unfinished"}`) < float64(g.o.sessions) {
		if time.Now().After(end) {
			t.Fatal("the sessions of a game server that is gone did not end")
		}
		time.Sleep(50 * time.Millisecond)
	}
	if left, err := filepath.Glob(filepath.Join(data, "unfinished", "*.rply")); err != nil || len(left) != g.o.sessions {
		t.Errorf("%d unfinished replays (%v), want %d", len(left), err, g.o.sessions)
	}
	return g, data, d
}
