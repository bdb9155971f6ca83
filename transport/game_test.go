package transport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/format"
)

// gamePlanVariable makes the test binary a game process that plays its plan
// and kills itself.
const gamePlanVariable = "REPRISE_TEST_GAME"

// gamePlan is what a game process does.
type gamePlan struct {
	Spool, Addr, Pin string
	Seed             uint64 // of the inputs
	Linger           time.Duration
	// Ticks are played before the process kills itself at Moment.
	Ticks  int
	Moment string
	After  time.Duration // of the moment "any"
}

// The moments of death. "closed" is between the return of EndTick and the
// simulation, "simulating" in it, "stepping" in the middle of the next tick's
// steps, "any" whatever the process does then, also in Resume.
var gameMoments = []string{"closed", "simulating", "stepping", "any"}

// gameSteps are the inputs of a tick: the model that every process and the
// comparison share.
func gameSteps(seed uint64, tick format.Tick) (codes []uint16, params [][]format.Value) {
	rnd := rand.New(rand.NewPCG(seed, uint64(tick)))
	for range rnd.IntN(5) {
		text := strings.Repeat("x", rnd.IntN(40))
		if rnd.IntN(30) == 0 {
			text = strings.Repeat("large", rnd.IntN(4000))
		}
		codes = append(codes, uint16(rnd.IntN(300)))
		params = append(params, []format.Value{format.Int(rnd.Int64N(1 << 40)), format.String(text)})
	}
	return codes, params
}

func gameHash(seed uint64, tick format.Tick) []byte {
	return fmt.Appendf(nil, "%04x", (seed*31+uint64(tick)*7)&0xffff)
}

// playGame plays in the game process. It reports on standard output, a line
// a word and a tick: where it starts, what EndTick and Hash have returned
// for, and, before its last EndTick, that it dies behind it.
func playGame(text string) {
	var p gamePlan
	check(json.Unmarshal([]byte(text), &p))
	tls, err := Trust{Pin: p.Pin}.Config()
	check(err)
	if p.Moment == "any" {
		time.AfterFunc(p.After, dieNow)
	}
	c, err := Dial(context.Background(), []string{p.Addr}, ClientConfig{TLS: tls, Background: true, Spool: p.Spool, ChunkLinger: p.Linger,
		ChunkBytes: 2 << 10, OnError: func(_ string, err error) { fmt.Fprintln(os.Stderr, err) }})
	check(err)
	r, err := openGame(c)
	check(err)
	report("start", r.NextTick())
	rnd := rand.New(rand.NewPCG(p.Seed, uint64(r.NextTick())))
	for i := 1; ; i++ {
		tick := playTick(r, &p, i == p.Ticks)
		report("closed", tick)
		if i == p.Ticks && p.Moment == "simulating" {
			time.Sleep(time.Duration(rnd.Int64N(int64(3 * time.Millisecond))))
			dieNow()
		}
		if tick >= 13 && rnd.IntN(3) > 0 {
			if r.Hash(tick-3, gameHash(p.Seed, tick-3)) == nil {
				report("hashed", tick-3)
			}
		}
		if rnd.IntN(3) == 0 {
			playNote(r, tick, rnd.IntN(4))
		}
		if rnd.IntN(4) == 0 {
			time.Sleep(time.Duration(rnd.Int64N(int64(6 * time.Millisecond))))
		}
	}
}

// playNote records something beside the ticks, which the tick names.
func playNote(r *Recording, tick format.Tick, kind int) {
	switch kind {
	case 0:
		check(r.Mark(format.Mark{Tick: tick, Kind: "note", Text: fmt.Sprint(tick)}))
		report("marked", tick)
	case 1:
		check(r.Join(format.Player{ID: uint64(tick)}))
		report("joined", tick)
	case 2:
		check(r.Report(format.Report{At: tick, Of: tick, Hash: []byte{1}}, format.Report{At: tick, Of: tick, Peer: 1, Hash: []byte{2}}))
		report("reported", tick)
	case 3:
		check(r.Keyframe(tick+1, gameState(tick)))
		report("keyed", tick)
	}
}

// gameState is some parts of a keyframe.
func gameState(tick format.Tick) []byte { return bytes.Repeat([]byte{byte(tick)}, int(tick%5)*20_000) }

func playTick(r *Recording, p *gamePlan, last bool) format.Tick {
	tick := r.NextTick()
	codes, params := gameSteps(p.Seed, tick)
	for i, code := range codes {
		check(r.Step(code, params[i]...))
	}
	if last && p.Moment == "closed" {
		report("dying", tick)
	}
	check(r.EndTick())
	if last && p.Moment == "closed" {
		dieNow()
	}
	if last && p.Moment == "stepping" {
		report("closed", tick)
		check(r.Step(299, format.Int(1)))
		dieNow()
	}
	return tick
}

func openGame(c *Client) (*Recording, error) {
	if ids, err := c.Spooled(); len(ids) > 0 || err != nil {
		return c.Resume("match-1")
	}
	s := spec("match-1")
	s.Times = true
	return c.Open(s)
}

func report(what string, tick format.Tick) { fmt.Fprintf(os.Stdout, "%s %d\n", what, tick) }

// dieNow is kill -9 by the process itself.
func dieNow() {
	p, err := os.FindProcess(os.Getpid())
	check(err)
	check(p.Kill())
	select {}
}

// check ends the game process with an exit code that is not that of a kill.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// killedGame is a session of game processes that all were killed.
type killedGame struct {
	t      *testing.T
	plan   gamePlan
	rec    *fakeRecorder
	k      *Keypair
	closed format.Tick // the first tick that no process has closed for sure
	hashed map[format.Tick]bool
	// noted has what was recorded beside ticks, as "marked 17".
	noted map[string]bool
}

// What EndTick or Hash has returned for survives the death of the process at
// any moment, whether or not a daemon is there, and comes once.
func TestKilledGame(t *testing.T) {
	for seed := range uint64(6) {
		for _, away := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d,away=%v", seed, away), func(t *testing.T) {
				t.Parallel()
				g := killedGame{t: t, rec: newFakeRecorder(), k: keypair(t), closed: 10, hashed: map[format.Tick]bool{}, noted: map[string]bool{}}
				g.plan = gamePlan{Spool: t.TempDir(), Pin: g.k.Fingerprint().String(), Seed: seed, Addr: "127.0.0.1:9"}
				if !away {
					g.plan.Addr = listen(t, g.k, "127.0.0.1:0", Config{Recorder: g.rec}).Addr().String()
				}
				rnd := rand.New(rand.NewPCG(seed, 99))
				for round := range 6 {
					g.play(rnd, round)
				}
				g.finish()
			})
		}
	}
}

// play runs one process until it is dead.
func (g *killedGame) play(rnd *rand.Rand, round int) {
	p := g.plan
	p.Ticks = 1 + rnd.IntN(60)
	p.Linger = time.Duration(1+rnd.IntN(100)) * time.Millisecond
	p.Moment = gameMoments[rnd.IntN(len(gameMoments))]
	if round == 0 {
		p.Moment = "closed" // a spool that was half begun cannot be resumed
	}
	if p.Moment == "any" {
		p.Ticks, p.After = 0, time.Duration(rnd.Int64N(int64(60*time.Millisecond)))
	}
	text, err := json.Marshal(p)
	if err != nil {
		g.t.Fatal(err)
	}
	game := exec.Command(os.Args[0])
	game.Env = append(os.Environ(), gamePlanVariable+"="+string(text))
	var complaints strings.Builder
	game.Stderr = &complaints
	out, err := game.StdoutPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	if err := game.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.read(out)
	if game.Wait(); game.ProcessState.ExitCode() == 3 {
		g.t.Fatalf("the game failed, it was not killed: %s", complaints.String())
	}
}

// read takes what a game process reports until its death.
func (g *killedGame) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var what string
		var tick format.Tick
		if _, err := fmt.Sscan(lines.Text(), &what, &tick); err != nil {
			g.t.Fatalf("line %q: %v", lines.Text(), err)
		}
		switch what {
		case "start":
			// One tick may be closed without the report of it.
			if tick < g.closed || tick > g.closed+1 {
				g.t.Fatalf("a game goes on at tick %d, the one before closed those before %d", tick, g.closed)
			}
			g.closed = tick
		case "dying", "closed":
			g.closed = max(g.closed, tick+1)
		case "hashed":
			g.hashed[tick] = true
		default:
			g.noted[lines.Text()] = true
		}
	}
}

// finish delivers the session and compares it with the model.
func (g *killedGame) finish() {
	t := g.t
	s := listen(t, g.k, "127.0.0.1:0", Config{Recorder: g.rec})
	c := dialServer(t, s.Addr().String(), ClientConfig{TLS: trust(t, g.k), Spool: g.plan.Spool})
	r, err := c.Resume("match-1")
	if err != nil {
		t.Fatal(err)
	}
	if next := r.NextTick(); next < g.closed || next > g.closed+1 {
		t.Fatalf("resumed at tick %d, the games closed those before %d", next, g.closed)
	}
	next := r.NextTick()
	if err := r.Seal(within(t, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	f, err := g.rec.stored("match-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Check(); err != nil {
		t.Error(err)
	}
	g.compare(f, next)
	g.compareNotes(f)
	if err := c.Close(within(t, 10*time.Second)); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(g.plan.Spool); len(left) != 0 || err != nil {
		t.Errorf("the spool still has %v, %v", left, err)
	}
}

// compareNotes: what was recorded beside the ticks is there, once.
func (g *killedGame) compareNotes(f *format.File) {
	stored := map[string]int{}
	for _, m := range f.Summary().Marks {
		stored["marked "+m.Text]++
	}
	for _, p := range f.Summary().Players {
		stored[fmt.Sprint("joined ", p.ID)]++
	}
	if err := f.Reports(func(r format.Report) error {
		stored[fmt.Sprint("reported ", r.At)] += 1 + 10*int(r.Peer)
		return nil
	}); err != nil {
		g.t.Fatal(err)
	}
	for i := range f.Summary().Keyframes {
		k, err := f.Keyframe(i)
		if tick := k.NextTick - 1; err != nil || !bytes.Equal(k.State, gameState(tick)) {
			g.t.Errorf("the keyframe behind tick %d has %d bytes, %v", tick, len(k.State), err)
		}
		stored[fmt.Sprint("keyed ", k.NextTick-1)]++
	}
	for what, n := range stored {
		want := 1
		if strings.HasPrefix(what, "reported") {
			want = 12 // one of each peer
		}
		if n != want {
			g.t.Errorf("%s: stored %d times", what, n)
		}
	}
	for what := range g.noted {
		if stored[what] == 0 {
			g.t.Errorf("%s: not stored", what)
		}
	}
	if len(g.noted) < 3 {
		g.t.Errorf("only %v: the test proves little", g.noted)
	}
}

func (g *killedGame) compare(f *format.File, next format.Tick) {
	r := f.Reader()
	var rec format.TickRecord
	last := int64(0)
	for tick := format.Tick(10); tick < next; tick++ {
		if err := r.Next(&rec); err != nil {
			g.t.Fatalf("tick %d: %v", tick, err)
		}
		var want []string
		codes, params := gameSteps(g.plan.Seed, tick)
		for i, code := range codes {
			want = append(want, stepText(code, params[i]))
		}
		if rec.Tick != tick || !slices.Equal(stepsOf(&rec), want) {
			g.t.Fatalf("tick %d: stored tick %d of %d steps, recorded %d steps", tick, rec.Tick, rec.Steps, len(want))
		}
		if rec.Hash == nil && g.hashed[tick] || rec.Hash != nil && string(rec.Hash) != string(gameHash(g.plan.Seed, tick)) {
			g.t.Fatalf("tick %d: stored hash %q, recorded %q: %v", tick, rec.Hash, gameHash(g.plan.Seed, tick), g.hashed[tick])
		}
		if !rec.HasTime || rec.Time < last {
			g.t.Fatalf("tick %d: time %d after %d", tick, rec.Time, last)
		}
		last = rec.Time
	}
	if err := r.Next(&rec); err != io.EOF {
		g.t.Fatalf("after the last tick: tick %d, %v", rec.Tick, err)
	}
}
