package lab

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/cmd/internal/load"
	"reprise/format"
	"reprise/transport"
)

// A game server in a process of its own records sessions into a spool and
// tells on its standard output, one line each:
//
//	begun N T     session N goes on at tick T
//	at N D T      ticks before D are acknowledged, ticks before T recorded
//	sealed N T    session N is sealed before tick T
//	refused N WHY session N cannot be recorded any more
//
// The line "seal" on its standard input seals all sessions and ends it.

// gameServerMain is a game server's main.
func gameServerMain(args []string) int {
	if err := runGameServer(args); err != nil {
		fmt.Fprintf(os.Stderr, "game server: %v\n", err)
		return 1
	}
	return 0
}

type gameOptions struct {
	addr, pin, spool, prefix string
	sessions                 int
	rate                     float64
}

func (o *gameOptions) args() []string {
	return []string{"-addr", o.addr, "-pin", o.pin, "-spool", o.spool, "-prefix", o.prefix, "-sessions", fmt.Sprint(o.sessions), "-rate", fmt.Sprint(o.rate)}
}

func (o *gameOptions) parse(args []string) error {
	f := flag.NewFlagSet("game server", flag.ContinueOnError)
	f.StringVar(&o.addr, "addr", "", "")
	f.StringVar(&o.pin, "pin", "", "")
	f.StringVar(&o.spool, "spool", "", "")
	f.StringVar(&o.prefix, "prefix", "", "")
	f.IntVar(&o.sessions, "sessions", 0, "")
	f.Float64Var(&o.rate, "rate", 0, "")
	return f.Parse(args)
}

// script is what the n-th session records, whichever process does it.
func (o *gameOptions) script(n int) load.Script {
	return load.Script{Session: load.SessionID(o.prefix, n), Number: n, Rate: o.rate, Players: 2, StepBytes: 60, StartedAt: 1}
}

func runGameServer(args []string) error {
	var o gameOptions
	if err := o.parse(args); err != nil {
		return err
	}
	tls, err := transport.Trust{Pin: o.pin}.Config()
	if err != nil {
		return err
	}
	cfg := transport.ClientConfig{TLS: tls, Background: true, Spool: o.spool}
	hasty(&cfg)
	client, err := transport.Dial(context.Background(), []string{o.addr}, cfg)
	if err != nil {
		return err
	}
	g := &gameServer{o: o, client: client, seal: make(chan struct{})}
	go g.obey()
	return g.run()
}

type gameServer struct {
	o        gameOptions
	client   *transport.Client
	sessions []*load.Session
	seal     chan struct{}
}

// obey reads the standard input, and ends with whoever holds its other end.
func (g *gameServer) obey() {
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if line != "seal\n" {
		os.Exit(3)
	}
	close(g.seal)
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(3)
}

func (g *gameServer) run() error {
	for n := range g.o.sessions {
		s, err := g.begin(n)
		if err != nil {
			return err
		}
		g.sessions = append(g.sessions, s)
		fmt.Printf("begun %d %d\n", n, s.Recording.NextTick())
	}
	if err := g.play(); err != nil {
		return err
	}
	return g.sealAll()
}

// begin opens a session, or goes on with it where the spool has it.
func (g *gameServer) begin(n int) (*load.Session, error) {
	s, err := load.Open(g.client, g.o.script(n))
	if errors.Is(err, transport.ErrSpooled) {
		return load.Resume(g.client, g.o.script(n))
	}
	return s, err
}

// play ticks until it is told to seal.
func (g *gameServer) play() error {
	tick := time.NewTicker(time.Duration(float64(time.Second) / g.o.rate))
	defer tick.Stop()
	refused := make([]bool, len(g.sessions))
	for {
		select {
		case <-tick.C:
		case <-g.seal:
			return nil
		}
		for n, s := range g.sessions {
			if err := s.Tick(); err != nil {
				return err
			}
			r := s.Recording
			fmt.Printf("at %d %d %d\n", n, r.Durable(), r.NextTick())
			if err := final(r.Err()); err != nil && !refused[n] {
				refused[n] = true
				fmt.Printf("refused %d %v\n", n, err)
			}
		}
	}
}

// final is a refusal that no other try will change; else nil.
func final(err error) error {
	var r *transport.Refusal
	if errors.As(err, &r) && !r.Temporary() {
		return r
	}
	return nil
}

func (g *gameServer) sealAll() error {
	errs := make([]error, len(g.sessions))
	var wg sync.WaitGroup
	for n, s := range g.sessions {
		wg.Go(func() { errs[n] = s.Recording.Seal(context.Background()) })
	}
	wg.Wait()
	for n, s := range g.sessions {
		if errs[n] == nil {
			fmt.Printf("sealed %d %d\n", n, s.Recording.NextTick())
		}
	}
	return errors.Join(append(errs, g.client.Close(context.Background()))...)
}

// game is the game server as the test sees it: what its processes, one after
// the other, have said.
type game struct {
	t    testing.TB
	o    gameOptions
	proc *process

	mu       sync.Mutex
	heard    sync.WaitGroup
	promises []load.Promise
	begun    []format.Tick // where the present process went on
	refused  []string
	history  []said // of session 0, of the present process
}

// said is when a session had recorded how much.
type said struct {
	when time.Time
	next format.Tick
}

func newGame(t testing.TB, o gameOptions) *game {
	g := &game{t: t, o: o, refused: make([]string, o.sessions)}
	for n := range o.sessions {
		g.promises = append(g.promises, load.Promise{Script: o.script(n)})
	}
	return g
}

// start starts the game server's next process and waits until all its
// sessions go on.
func (g *game) start() {
	g.t.Helper()
	g.begun, g.history = nil, nil
	g.proc = launch(g.t, command(g.t, asGameServer, g.o.args()...))
	g.heard.Go(func() {
		for line := range g.proc.Lines {
			if err := g.hear(line); err != nil {
				g.t.Errorf("game server said %q: %v", line, err)
			}
		}
	})
	eventually(g.t, "the game server's start", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.begun) == g.o.sessions
	})
}

// hear takes one line.
func (g *game) hear(line string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	word, rest, _ := strings.Cut(line, " ")
	var n int
	var durable, next format.Tick
	var err error
	switch word {
	case "begun":
		_, err = fmt.Sscan(rest, &n, &next)
		g.begun = append(g.begun, next)
	case "at":
		_, err = fmt.Sscan(rest, &n, &durable, &next)
		g.promises[n].Durable, g.promises[n].Next = max(g.promises[n].Durable, durable), next
		if n == 0 {
			g.history = append(g.history, said{time.Now(), next})
		}
	case "sealed":
		_, err = fmt.Sscan(rest, &n, &next)
		g.promises[n].Sealed, g.promises[n].Next, g.promises[n].Durable = true, next, next
	case "refused":
		_, err = fmt.Sscan(rest, &n)
		g.refused[n] = rest
	default:
		err = errors.New("no such word")
	}
	return err
}

// kill is kill -9. It returns how much of session 0 was recorded some time
// before.
func (g *game) kill(before time.Duration) format.Tick {
	g.proc.Kill()
	g.heard.Wait()
	recorded := format.Tick(0)
	for _, s := range g.history {
		if time.Since(s.when) > before {
			recorded = s.next
		}
	}
	return recorded
}

// durable is how far each session is acknowledged.
func (g *game) durable() []format.Tick {
	g.mu.Lock()
	defer g.mu.Unlock()
	var d []format.Tick
	for i := range g.promises {
		d = append(d, g.promises[i].Durable)
	}
	return d
}

// progress waits until each session has some ticks on disk that are recorded
// from now on.
func (g *game) progress() {
	g.t.Helper()
	g.mu.Lock()
	var due []format.Tick
	for i := range g.promises {
		due = append(due, g.promises[i].Next)
	}
	g.mu.Unlock()
	eventually(g.t, "progress of the game server's sessions", func() bool {
		for i, d := range g.durable() {
			if d < due[i]+progressTicks {
				return false
			}
		}
		return true
	})
}

const progressTicks = 20

// seal has the sessions sealed and the process end with 0.
func (g *game) seal() {
	g.t.Helper()
	if _, err := io.WriteString(g.proc.Stdin, "seal\n"); err != nil {
		g.t.Fatal(err)
	}
	if code := g.proc.exitCode(); code != 0 {
		g.t.Fatalf("the game server ended with %d:\n%s", code, g.proc.Log.String())
	}
	g.heard.Wait()
}
