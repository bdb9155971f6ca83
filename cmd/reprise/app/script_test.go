package app

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"reprise/format"
	"reprise/player"
	"reprise/player/games/skirmish"
	"reprise/player/games/tower"
	"reprise/player/process"
	"reprise/transport"
)

func TestMain(m *testing.M) {
	linked = SampleGames()
	testscript.Main(m, map[string]func(){
		"reprise":      func() { Main(SampleGames()...) },
		"skirmish-sim": func() { process.Serve(skirmish.Factory()) },
		"both-sim":     func() { process.Serve(skirmish.Factory(), tower.Factory()) },
		"bug-sim":      serveBug,
		"crash-sim":    func() { serveFault(func() { os.Exit(3) }) },
		"hang-sim":     func() { serveFault(func() { time.Sleep(time.Hour) }) },
		"unsteady-sim": func() { process.Serve(faulty(unsteadyHash)) },
		"narrow-sim": func() {
			process.Serve(faulty(func(g *skirmish.Game, dst []byte) []byte { return append(g.Hash(dst), 0) }))
		},
	})
}

// faultTick is the tick at which a faulty child fails.
const faultTick = 50

// serveFault serves a game of skirmish that fails by itself.
func serveFault(fault func()) {
	f := skirmish.Factory()
	f.New = func() player.Game { return &faultyGame{Game: new(skirmish.Game), fault: fault} }
	process.Serve(f)
}

// serveBug serves a skirmish with a planted bug: bug-sim FIELD@TICK
func serveBug() {
	bug, err := skirmish.ParseBug(os.Args[1])
	if err != nil {
		panic(err)
	}
	process.Serve(bug.Factory())
}

// faulty is a skirmish whose hashes are wrong.
func faulty(hash func(*skirmish.Game, []byte) []byte) player.Factory {
	f := skirmish.Factory()
	f.New = func() player.Game { return &faultyGame{Game: new(skirmish.Game), hash: hash} }
	return f
}

// runs counts the runs of this process.
var runs byte

// unsteadyHash differs from run to run, from faultTick on.
func unsteadyHash(g *skirmish.Game, dst []byte) []byte {
	n := len(dst)
	dst = g.Hash(dst)
	switch tick := g.Tick() - 1; {
	case tick == 0:
		runs++
	case tick >= faultTick:
		dst[n] ^= runs
	}
	return dst
}

type faultyGame struct {
	*skirmish.Game
	fault func()
	hash  func(*skirmish.Game, []byte) []byte
}

func (f *faultyGame) EndTick(tick format.Tick) error {
	if f.fault != nil && tick == faultTick {
		f.fault()
	}
	return f.Game.EndTick(tick)
}

func (f *faultyGame) Hash(dst []byte) []byte {
	if f.hash == nil {
		return f.Game.Hash(dst)
	}
	return f.hash(f.Game, dst)
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			// Under the race detector a program else waits a second at its end.
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			e.Setenv("DATA", dataFolder(t))
			e.Setenv("WASM", wasmSamples(t))
			e.Values[rememberKey{}] = map[string]remembered{}
			e.Values[daemonKey{}] = new(*testDaemon)
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name == "data" {
				return haveData(), nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": scriptExits, "sample": scriptSample, "daemon": scriptDaemon, "cut": scriptCut, "flip": scriptFlip,
			"remember": scriptRemember, "unchanged": scriptUnchanged, "leftovers": scriptLeftovers, "set": scriptSet,
		},
	})
}

// dataFolder is where files of real matches and old servers may be.
func dataFolder(t testing.TB) string {
	path, err := filepath.Abs("../../../../shared/data")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func haveData() bool {
	_, err := os.Stat("../../../../shared/data/rply1/damaged/INDEX.tsv")
	return err == nil
}

// scriptExits runs a command and compares its exit code:
// exits CODE COMMAND ARGUMENT...
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGUMENT...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("%s: exit code %d, want %d", args[1], code, want)
	}
}

// scriptSample makes a replay: sample FLAG... FILE
func scriptSample(ts *testscript.TestScript, _ bool, args []string) {
	var s sample
	f := flag.NewFlagSet("sample", flag.ContinueOnError)
	f.BoolVar(&s.tower, "tower", false, "")
	f.Uint64Var(&s.seed, "seed", 0, "")
	f.IntVar(&s.ticks, "ticks", 0, "")
	f.BoolVar(&s.noHashes, "nohashes", false, "")
	f.Uint64Var((*uint64)(&s.hashesBefore), "hashesbefore", 0, "")
	f.StringVar(&s.game, "game", "", "")
	f.StringVar(&s.build, "build", "", "")
	f.StringVar(&s.data, "data", "", "")
	f.StringVar(&s.session, "session", "", "")
	env := f.String("env", "", "")
	f.Uint64Var((*uint64)(&s.flip), "flip", 0, "")
	f.Uint64Var((*uint64)(&s.change), "change", 0, "")
	gap := f.String("gap", "", "")
	f.BoolVar(&s.restart, "restart", false, "")
	f.IntVar(&s.frames, "frames", 0, "")
	f.Uint64Var((*uint64)(&s.badFrame), "badframe", 0, "")
	f.BoolVar(&s.live, "live", false, "")
	ts.Check(f.Parse(args))
	s.env = envOf(*env)
	if *gap != "" {
		_, err := fmt.Sscanf(*gap, "%d-%d", &s.gapFirst, &s.gapLast)
		ts.Check(err)
	}
	b, err := s.bytes()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(f.Arg(0)), b, 0o644))
}

// envOf reads the facts of a machine: KEY=VALUE,... or "here" for this one.
func envOf(text string) (env []format.Label) {
	switch text {
	case "":
		return nil
	case "here":
		return transport.Machine()
	}
	for _, pair := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(pair, "=")
		env = append(env, format.Label{Key: key, Value: value})
	}
	return env
}

// scriptDaemon starts a daemon on a data folder and sets ADDR and PIN:
// daemon DIR FLAG... It is killed at the end, or by "daemon kill".
func scriptDaemon(ts *testscript.TestScript, _ bool, args []string) {
	running := ts.Value(daemonKey{}).(**testDaemon)
	if args[0] == "kill" {
		(*running).kill()
		return
	}
	d, err := launchDaemon(ts.MkAbs(args[0]), args[1:]...)
	ts.Check(err)
	ts.Defer(d.kill)
	ts.Setenv("ADDR", d.addr)
	ts.Setenv("PIN", d.pin)
	*running = d
}

type daemonKey struct{}

// scriptCut writes the first bytes of a file to another: cut FILE BYTES OUT;
// a negative number of bytes counts from the end.
func scriptCut(ts *testscript.TestScript, _ bool, args []string) {
	b := []byte(ts.ReadFile(args[0]))
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	if n < 0 {
		n += len(b)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), b[:n], 0o644))
}

// scriptFlip writes a file with one bit changed: flip FILE OFFSET OUT
func scriptFlip(ts *testscript.TestScript, _ bool, args []string) {
	b := []byte(ts.ReadFile(args[0]))
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	if at < 0 {
		at += len(b)
	}
	b[at] ^= 1
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), b, 0o644))
}

// remembered is the state of a file that commands must leave alone.
type remembered struct {
	content string
	changed time.Time
}

type rememberKey struct{}

// scriptRemember notes the content and the time of change of files.
func scriptRemember(ts *testscript.TestScript, _ bool, args []string) {
	notes := ts.Value(rememberKey{}).(map[string]remembered)
	for _, name := range args {
		st, err := os.Stat(ts.MkAbs(name))
		ts.Check(err)
		notes[name] = remembered{ts.ReadFile(name), st.ModTime()}
	}
}

// scriptUnchanged checks all that was remembered.
func scriptUnchanged(ts *testscript.TestScript, _ bool, _ []string) {
	notes := ts.Value(rememberKey{}).(map[string]remembered)
	if len(notes) == 0 {
		ts.Fatalf("nothing was remembered")
	}
	for name, before := range notes {
		st, err := os.Stat(ts.MkAbs(name))
		ts.Check(err)
		if ts.ReadFile(name) != before.content || !st.ModTime().Equal(before.changed) {
			ts.Fatalf("%s was changed", name)
		}
	}
}

// scriptLeftovers fails where a temporary file is left.
func scriptLeftovers(ts *testscript.TestScript, _ bool, _ []string) {
	left, err := filepath.Glob(ts.MkAbs(".reprise-*"))
	ts.Check(err)
	if len(left) > 0 {
		ts.Fatalf("temporary files: %v", left)
	}
}

// scriptSet sets a variable to the one match of a pattern of files:
// set NAME PATTERN
func scriptSet(ts *testscript.TestScript, _ bool, args []string) {
	found, err := filepath.Glob(ts.MkAbs(args[1]))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("%s: %d files", args[1], len(found))
	}
	ts.Setenv(args[0], found[0])
}
