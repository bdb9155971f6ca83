package process

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"reprise/format"
	"reprise/player"
	"reprise/player/games/skirmish"
	"reprise/player/games/tower"
)

// childVariable makes this test program a child: its value says which.
const childVariable = "REPRISE_PROCESS_TEST"

// children are what this program can be as a child.
var children = map[string]func(){
	"counter":  func() { Serve(counterFactory()) },
	"pair":     func() { Serve(counterFactory(), turnsFactory()) },
	"turns":    func() { Serve(turnsFactory()) },
	"burner":   func() { Serve(burnerFactory()) },
	"skirmish": func() { Serve(skirmish.Factory()) },
	"tower":    func() { Serve(tower.Factory()) },
}

func TestMain(m *testing.M) {
	if name := os.Getenv(childVariable); name != "" {
		run, known := children[name]
		if !known {
			run = faults[name]
		}
		run()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// command is the command line of this program.
func command() string { return "'" + os.Args[0] + "'" }

// quick are options under which no test waits for long.
func quick(child string) Options {
	return Options{
		StartTimeout: 20 * time.Second, TickTimeout: 20 * time.Second, StateTimeout: 20 * time.Second, CloseTimeout: 10 * time.Second,
		// Under the race detector a program else waits a second at its end.
		Env: []string{childVariable + "=" + child, "GORACE=atexit_sleep_ms=0"},
	}
}

// open starts a child, and checks at the test's end that nothing of it stays.
func open(t *testing.T, o Options) *Simulation {
	t.Helper()
	before := countRunning()
	s, err := New(context.Background(), command(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		noLeak(t, before)
	})
	return s
}

// running counts what a child could leave behind.
type running struct{ goroutines, processes int }

func countRunning() running { return running{runtime.NumGoroutine(), len(ownChildren())} }

// noLeak waits until no more goroutines run than before, and compares the
// processes.
func noLeak(t *testing.T, before running) {
	t.Helper()
	for wait := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before.goroutines; {
		if time.Now().After(wait) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines are left of %d:\n%s", runtime.NumGoroutine(), before.goroutines, stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(time.Millisecond)
	}
	if left := ownChildren(); len(left) > before.processes {
		t.Errorf("%d processes are left of %d, running or as zombies: %v", len(left), before.processes, left)
	}
}

// ownChildren gives the processes that this one started and that are not
// waited for, where the system tells.
func ownChildren() []string {
	var left []string
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		list, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		left = append(left, strings.Fields(string(list))...)
	}
	return left
}

// Codes of the counter.
const (
	codeMix    = 1 // mixes every parameter into the state
	codeFail   = 2
	codeIgnore = 3
	codePanic  = 4
	codeSleep  = 5 // milliseconds
	codeExit   = 6 // status
	codeStop   = 7 // makes the end of the tick fail
	codeFailNo = 8 // fails without a reason
)

// counter is a game whose hash follows from everything that it was given.
type counter struct {
	start  player.Start
	sum    uint64
	broken bool
}

func counterFactory() player.Factory {
	return player.Factory{Name: "counter", Build: "1", New: func() player.Game { return new(counter) }}
}

func (c *counter) Reset(start player.Start) error {
	if start.Meta.Map == "none" {
		return fmt.Errorf("no map %q", start.Meta.Map)
	}
	if start.Meta.Map == "panic" {
		panic("in reset")
	}
	c.start = start
	c.sum = start.Meta.Seed
	c.broken = false
	if start.State != nil {
		return c.Load(start.State)
	}
	return nil
}

func (c *counter) mix(text string) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", c.sum, text)
	c.sum = h.Sum64()
}

func (c *counter) Step(tick format.Tick, step format.Step) (player.Result, error) {
	c.mix(fmt.Sprint(tick, step.Index, step.Code))
	for _, v := range step.Params {
		c.mix(v.Kind().String() + v.String())
	}
	switch step.Code {
	case codeFail:
		return player.Failed, fmt.Errorf("as asked in tick %d", tick)
	case codeFailNo:
		return player.Failed, nil
	case codeIgnore:
		return player.Ignored, nil
	case codePanic:
		panic("as asked")
	case codeSleep:
		ms, _ := step.Params[0].Int64()
		time.Sleep(time.Duration(ms) * time.Millisecond)
	case codeExit:
		status, _ := step.Params[0].Int64()
		fmt.Fprintln(os.Stderr, "line before the end")
		os.Exit(int(status))
	case codeStop:
		c.broken = true
	}
	return player.Success, nil
}

func (c *counter) EndTick(tick format.Tick) error {
	c.mix("end")
	if c.broken {
		return fmt.Errorf("no end of tick %d", tick)
	}
	return nil
}

func (c *counter) Hash(dst []byte) []byte { return binary.BigEndian.AppendUint64(dst, c.sum) }

func (c *counter) Save(dst []byte) []byte { return binary.BigEndian.AppendUint64(dst, c.sum) }

func (c *counter) Load(state []byte) error {
	if len(state) != 8 {
		return fmt.Errorf("a state of %d bytes", len(state))
	}
	c.sum = binary.BigEndian.Uint64(state)
	return nil
}

func (c *counter) Dump() []player.Field {
	return []player.Field{{Name: "seed", Value: fmt.Sprint(c.start.Meta.Seed)}, {Name: "sum", Value: fmt.Sprint(c.sum)}}
}

// Codes of the turn-based game.
const (
	turnMove = 1 // active; ends with a finalize
	turnAsk  = 2 // active; takes a passive step
	turnTell = 3 // passive
)

// turns is a turn-based game.
type turns struct {
	counter
	system *player.ReplaySystem
}

func turnsFactory() player.TurnFactory {
	return player.TurnFactory{Name: "turns", Build: "1", New: newTurns}
}

func newTurns() player.TurnGame {
	g := &turns{system: player.NewSystem(player.SystemOptions{})}
	g.system.Register(turnMove, &moveCommand{player.NewActive(), g})
	g.system.Register(turnAsk, player.Func(g.ask))
	g.system.Register(turnTell, player.NewPassive(player.TypeString))
	return g
}

func (g *turns) System() *player.ReplaySystem { return g.system }

// moveCommand is a movement of several steps.
type moveCommand struct {
	player.Base
	game *turns
}

func (c *moveCommand) Execute(format.Step) (player.Result, error) {
	c.game.mix("move")
	return player.Success, nil
}

func (c *moveCommand) Finalize() (player.Result, error) {
	c.game.mix("finalize")
	return player.Success, nil
}

// ask takes the passive step that follows; without one it fails.
func (g *turns) ask(format.Step) (player.Result, error) {
	told, err := g.system.Sandbox().GetPassive()
	if err != nil {
		return player.Failed, err
	}
	g.mix(told.Step.Params[0].String())
	told.Next(player.Success)
	return player.Success, nil
}
