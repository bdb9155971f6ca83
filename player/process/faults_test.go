package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"reprise/format"
	"reprise/player"
	"reprise/player/internal/playtest"
)

// forever is longer than any test.
const forever = time.Hour

// rude is a child that keeps to the protocol only as far as it wants.
type rude struct {
	conn   net.Conn
	frames *frameReader
}

// connect connects as a child does.
func connect() *rude {
	conn, err := dial(os.Getenv(SocketVariable))
	if err != nil {
		panic(err)
	}
	return &rude{conn, newFrameReader(conn)}
}

func (r *rude) send(message []byte) {
	// What the host does not take it does not want.
	_, _ = r.conn.Write(message)
}

func (r *rude) hello(change func(*hello)) {
	h := hello{lowest: 1, highest: 1, token: os.Getenv(TokenVariable), games: []gameInfo{{name: "counter", build: "1", abilities: canSave}}}
	if change != nil {
		change(&h)
	}
	r.send(h.append(nil))
}

// until reads messages up to one of a type, and gives its body.
func (r *rude) until(t messageType) []byte {
	for {
		got, body, err := r.frames.next()
		if err != nil {
			os.Exit(0)
		}
		if got == t {
			return body
		}
	}
}

// started says hello, starts the first replay and reads up to its first flush.
func started() *rude {
	r := connect()
	r.hello(nil)
	r.until(typeReset)
	r.send(appendEmpty(nil, typeReady))
	r.until(typeFlush)
	return r
}

// tells is a child that answers the first tick with messages and then waits.
func tells(messages ...[]byte) func() {
	return func() {
		started().send(bytes.Join(messages, nil))
		time.Sleep(forever)
	}
}

func doneOf(tick format.Tick, hashBytes int) []byte {
	return (&done{tick: tick, hash: make([]byte, hashBytes)}).append(nil)
}

func helloBut(change func(*hello)) func() {
	return func() {
		connect().hello(change)
		time.Sleep(forever)
	}
}

// faults are children that go wrong.
var faults = map[string]func(){
	"exits": func() {
		fmt.Println("on standard output")
		fmt.Fprintln(os.Stderr, "on standard \x1b[31merror")
		os.Exit(3)
	},
	"sleeps":       func() { time.Sleep(forever) },
	"connects":     func() { connect(); time.Sleep(forever) },
	"hangs up":     func() { _ = connect().conn.Close(); time.Sleep(forever) },
	"hello, exits": func() { connect().hello(nil); os.Exit(4) },
	"web":          func() { connect().send([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")); time.Sleep(forever) },
	"hello cut":    func() { connect().send([]byte{40, 0, 0, 0, byte(typeHello), 1}); os.Exit(5) },
	"huge hello":   func() { connect().send([]byte{255, 255, 255, 255, byte(typeHello)}); time.Sleep(forever) },
	"other token":  helloBut(func(h *hello) { h.token = "guess" }),
	"newer":        helloBut(func(h *hello) { h.lowest, h.highest = 3, 4 }),
	"no game":      helloBut(func(h *hello) { h.games = nil }),
	"wide hash":    helloBut(func(h *hello) { h.games[0].hashBytes = 33 }),
	"talks on": func() {
		r := connect()
		r.send(append((&hello{lowest: 1, highest: 1, token: os.Getenv(TokenVariable), games: []gameInfo{{}}}).append(nil), 1, 2, 3))
		time.Sleep(forever)
	},
	"crashes":       func() { started(); fmt.Fprintln(os.Stderr, "last words"); os.Exit(7) },
	"killed":        func() { started(); killSelf() },
	"crashes late":  func() { started().send(append(doneOf(0, 8), 20, 0)); os.Exit(8) },
	"ends well":     func() { started(); os.Exit(0) },
	"closes":        func() { _ = started().conn.Close(); time.Sleep(forever) },
	"hangs":         tells(),
	"half":          tells(doneOf(0, 8)[:9]),
	"garbage":       tells([]byte("segmentation fault\n")),
	"length 0":      tells([]byte{0, 0, 0, 0, byte(typeDone)}),
	"huge":          tells([]byte{255, 255, 255, 255, byte(typeDone)}),
	"unknown":       tells([]byte{1, 0, 0, 0, 77}),
	"host's":        tells(appendEmpty(nil, typeSave)),
	"hello again":   tells((&hello{}).append(nil)),
	"cut":           tells([]byte{3, 0, 0, 0, byte(typeDone), 1, 2}),
	"long":          tells([]byte{1 + 8 + 4 + 4 + 1, 0, 0, 0, byte(typeDone), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}),
	"other tick":    tells(doneOf(1, 8)),
	"narrow hash":   tells(doneOf(0, 4)),
	"33 bytes":      tells(doneOf(0, 33)),
	"no hash":       tells(doneOf(0, 0)),
	"twice":         tells(doneOf(0, 8), doneOf(0, 8)),
	"too ignorant":  tells((&done{tick: 0, ignored: 1, hash: make([]byte, 8)}).append(nil)),
	"no answer":     tells(appendEmpty(nil, typeFlushed)),
	"flushes twice": tells(doneOf(0, 8), appendEmpty(nil, typeFlushed), appendEmpty(nil, typeFlushed)),
	"no such step":  tells((&failed{tick: 0, step: 0}).append(nil)),
	"other failed":  tells((&failed{tick: 5, at: 5}).append(nil)),
	"failed later":  tells((&failed{tick: 0, at: 5}).append(nil)),
	"no phase":      tells((&failed{tick: 0, phase: 3}).append(nil)),
	"ready":         tells(appendEmpty(nil, typeReady)),
	"saved":         tells((&saved{}).append(nil)),
	"gives up":      tells((&broken{tick: 0, text: "cannot\x07 go on"}).append(nil)),

	"never ready": func() { r := connect(); r.hello(nil); time.Sleep(forever) },
	"ready, saved": func() {
		r := connect()
		r.hello(nil)
		r.until(typeReset)
		r.send((&saved{}).append(nil))
		time.Sleep(forever)
	},

	"huge state": func() {
		r := started()
		r.send(append(doneOf(0, 8), appendEmpty(nil, typeFlushed)...))
		r.until(typeSave)
		r.send([]byte{0, 0, 0, 0x40, byte(typeSaved), 1, 2, 3}) // a gibibyte is announced
		time.Sleep(forever)
	},
	"reads nothing": func() { started(); time.Sleep(forever) },
	"stays":         func() { started(); ignoreSignals(); time.Sleep(forever) },
	"floods": func() {
		go func() {
			for line := strings.Repeat("flood ", 1000) + "\n"; ; {
				fmt.Print(line)
				fmt.Fprint(os.Stderr, line)
			}
		}()
		Serve(counterFactory())
	},
	"parent": func() {
		grandchild := exec.Command("sleep", "3600")
		grandchild.Stdout, grandchild.Stderr = os.Stdout, os.Stderr
		if err := grandchild.Start(); err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stderr, grandchild.Process.Pid)
		started()
		os.Exit(9)
	},
}

// hasty are options for children that let wait.
func hasty(child string) Options {
	o := quick(child)
	o.StartTimeout, o.TickTimeout, o.StateTimeout, o.CloseTimeout = 2*time.Second, 200*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
	return o
}

func TestChildIsNeverGreeted(t *testing.T) {
	for child, want := range map[string]string{
		"exits":       "simulation ended before its hello: exit status 3; the last that it wrote:\n\ton standard output\n\ton standard \uFFFD[31merror",
		"sleeps":      "simulation did not say hello within 300ms: it wrote nothing",
		"connects":    "simulation did not say hello within 300ms",
		"hangs up":    "simulation answered badly: bad hello: EOF",
		"hello cut":   "simulation ended before its hello: exit status 5",
		"web":         `simulation answered badly: bad hello: "message 47": bad message: unknown in version 2`,
		"huge hello":  `"hello": bad message: length 4294967295, the most is 1048576`,
		"other token": "does not have the token of REPRISE_SIM_TOKEN",
		"newer":       "it speaks versions 3 to 4 of the protocol, and the host 1 to 2",
		"no game":     "it offers no game",
		"wide hash":   "hashes of 33 bytes, the most is 32",
		"talks on":    "it speaks on before it is welcome",
	} {
		t.Run(child, func(t *testing.T) {
			before := countRunning()
			o := hasty(child)
			if strings.Contains(want, "within") {
				o.StartTimeout = 300 * time.Millisecond
			}
			s, err := New(context.Background(), command(), o)
			if s != nil || !is[*player.SimulationError](err) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v\nwant %s", err, want)
			}
			noLeak(t, before)
		})
	}
}

func TestChildGoesWrong(t *testing.T) {
	const bad = "tick 0: simulation answered badly: "
	for child, want := range map[string]string{
		"hello, exits":  "exit status 4",
		"crashes":       "tick 0: simulation ended: exit status 7; the last that it wrote:\n\tlast words",
		"killed":        "tick 0: simulation ended: signal: ",
		"crashes late":  "simulation ended: exit status 8", // perhaps before it is given tick 1
		"ends well":     "tick 0: simulation ended: exit status 0",
		"closes":        "tick 0: simulation closed its connection: it wrote nothing",
		"hangs":         "tick 0: simulation did not answer within 200ms: it wrote nothing",
		"half":          "tick 0: simulation did not answer within 200ms",
		"garbage":       bad + `"welcome": bad message: length 1835492723, the most is 16777216`,
		"length 0":      bad + `bad message: a message of length 0`,
		"huge":          bad + `"done": bad message: length 4294967295, the most is 1048576`,
		"unknown":       bad + `"message 77": bad message: unknown in version 2 of the protocol`,
		"host's":        bad + `"save": bad message: out of place`,
		"hello again":   bad + `"hello": bad message: out of place`,
		"cut":           bad + `"done": bad message: byte 0: it ends before the tick does`,
		"long":          bad + `"done": bad message: byte 16: 1 bytes stand behind the last field`,
		"other tick":    bad + `"done": bad message: tick 1 was answered where tick 0 was due`,
		"narrow hash":   bad + `"done": bad message: a hash of 4 bytes where 8 are declared`,
		"33 bytes":      bad + `"done": bad message: byte 49: a hash of 33 bytes, the most is 32`,
		"no hash":       bad + `"done": bad message: no hash, which was asked for`,
		"twice":         `"done": bad message: tick 0 was answered`,
		"too ignorant":  bad + `"done": bad message: 1 ignored steps in a tick of 0`,
		"no answer":     bad + `"flushed": bad message: flushed, and tick 0 was not answered`,
		"flushes twice": `"flushed": bad message: `,
		"no such step":  bad + `"failed": bad message: step 0 failed in a tick of 0`,
		"other failed":  bad + `"failed": bad message: a step of tick 5 failed, which was not due`,
		"failed later":  bad + `"failed": bad message: a step of tick 5 failed in tick 0`,
		"no phase":      bad + `"failed": bad message: byte 23: phase 3`,
		"ready":         bad + `"ready": bad message: out of place`,
		"saved":         bad + `"saved": bad message: out of place`,
		"gives up":      "tick 0: simulation could not go on: cannot\uFFFD go on",
		"never ready":   "simulation did not answer within 200ms",
		"ready, saved":  `simulation answered badly: "saved": bad message: out of place`,
	} {
		t.Run(child, func(t *testing.T) {
			before := countRunning()
			o := hasty(child)
			if strings.Contains(child, "twice") {
				o.TickTimeout = 10 * time.Second // it is the second answer that counts
			}
			s, err := New(context.Background(), command(), o)
			if err == nil {
				_, err = run(s, player.Start{Meta: counterMeta()}, playtest.NewScript(t).Empty(2).Ticks, nil)
			}
			if !is[*player.SimulationError](err) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v\nwant %s", err, want)
			}
			if s != nil { // it was not gone before its hello was heard
				if again := s.Flush(false, nil); again != err {
					t.Errorf("flush afterwards: %v", again)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			noLeak(t, before)
		})
	}
}

func TestCommandCannotBeStarted(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "text")
	if err := os.WriteFile(text, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"", "  ", "'", `"a`, "''", "/nowhere/at/all", "no-such-program-here", text, folder} {
		before := countRunning()
		if _, err := New(context.Background(), command, hasty("")); !errors.Is(err, ErrCommand) {
			t.Errorf("%q: %v", command, err)
		}
		noLeak(t, before)
	}
}

func TestAnswersBeforeTheCrashCount(t *testing.T) {
	s := open(t, quick("counter"))
	ticks := playtest.NewScript(t).Empty(400).One(codeExit, format.Int(6)).Empty(300).Ticks
	results, err := run(s, player.Start{Meta: counterMeta()}, ticks, nil)
	var fault *player.SimulationError
	var child *ChildError
	if !errors.As(err, &fault) || !errors.As(err, &child) {
		t.Fatalf("got %v", err)
	}
	if child.Status != "exit status 6" || fmt.Sprint(child.Output) != "[line before the end]" {
		t.Errorf("status %q, output %q", child.Status, child.Output)
	}
	// Answers that the child had not sent yet are lost with it.
	if !fault.HasTick || fault.Tick > 400 || format.Tick(len(results)) != fault.Tick {
		t.Errorf("%v after %d answers", err, len(results))
	}
	if _, err := run(s, player.Start{Meta: counterMeta()}, ticks[:10], nil); err != nil {
		t.Errorf("the next replay, in a new child: %v", err)
	}
}

func TestSlowTicksAreNotHung(t *testing.T) {
	o := quick("counter")
	o.TickTimeout = 400 * time.Millisecond
	s := open(t, o)
	script := playtest.NewScript(t).Empty(2000) // large batches by then
	for range 12 {
		script.One(codeSleep, format.Int(60))
	}
	if _, err := run(s, player.Start{Meta: counterMeta()}, script.Ticks, nil); err != nil {
		t.Error(err)
	}
}

func TestHugeStateTakesNoMemory(t *testing.T) {
	s := open(t, hasty("huge state"))
	if _, err := run(s, player.Start{Meta: counterMeta()}, playtest.NewScript(t).Empty(1).Ticks, nil); err == nil {
		t.Fatal("a final flush without an answer")
	}
	s = open(t, hasty("huge state"))
	if err := s.Reset(player.Start{Meta: counterMeta()}); err != nil {
		t.Fatal(err)
	}
	tick := playtest.NewScript(t).Empty(1).Ticks[0]
	emit := func(player.Outcome) error { return nil }
	if err := s.Advance(&tick, true, emit); err != nil {
		t.Fatal(err)
	}
	for n := s.link.news(); n.batches > 0; n = s.link.news() {
		<-s.link.wake
	}
	if _, err := s.poll(emit); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := s.Save(nil)
	runtime.ReadMemStats(&after)
	if !is[*player.SimulationError](err) || !strings.Contains(err.Error(), "did not answer within") {
		t.Errorf("got %v", err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
}

func TestChildThatReadsNothing(t *testing.T) {
	s := open(t, hasty("reads nothing"))
	script := playtest.NewScript(t)
	for range 20 {
		script.One(codeMix, format.Bytes(make([]byte, 900_000)))
	}
	_, err := run(s, player.Start{Meta: counterMeta()}, script.Ticks, nil)
	if !is[*player.SimulationError](err) || !strings.Contains(err.Error(), "tick 0: simulation did not answer within 200ms") {
		t.Errorf("got %v", err)
	}
}

func TestFloodIsPassedOn(t *testing.T) {
	o := quick("floods")
	var output counting
	o.Output = &output
	s := open(t, o)
	if _, err := run(s, player.Start{Meta: counterMeta()}, playtest.NewScript(t).Empty(3000).Ticks, nil); err != nil {
		t.Error(err)
	}
	kept := s.link.child.tail
	if lines := kept.lines(); len(lines) > tailLines {
		t.Errorf("%d lines are kept", len(lines))
	}
	if err := s.Close(); err != nil || output == 0 {
		t.Errorf("%d bytes of output, %v", output, err)
	}
	if size := cap(kept.kept); size > 4*tailBytes {
		t.Errorf("%d bytes of output are kept", size)
	}
}

// counting counts what is written to it. It is read once nothing writes.
type counting int

func (c *counting) Write(p []byte) (int, error) { *c += counting(len(p)); return len(p), nil }

func TestChildThatStaysIsKilled(t *testing.T) {
	o := hasty("stays")
	s := open(t, o)
	if err := s.Reset(player.Start{Meta: counterMeta()}); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took < o.CloseTimeout || took > o.CloseTimeout+5*time.Second {
		t.Errorf("the close took %v", took)
	}
}

func TestGrandchildrenAreKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a child is ended alone here")
	}
	s := open(t, quick("parent"))
	_, err := run(s, player.Start{Meta: counterMeta()}, playtest.NewScript(t).Empty(1).Ticks, nil)
	var child *ChildError
	if !errors.As(err, &child) || child.Status != "exit status 9" || len(child.Output) != 1 {
		t.Fatalf("got %v", err)
	}
	pid, err := strconv.Atoi(child.Output[0])
	if err != nil {
		t.Fatal(err)
	}
	for wait := time.Now().Add(5 * time.Second); alive(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(wait) {
			t.Fatalf("process %d, which the child started, is left", pid)
		}
	}
}

func TestStrangersAtThePort(t *testing.T) {
	door, err := openDoor(true)
	if err != nil {
		t.Fatal(err)
	}
	greeter := newGreeter(door)
	address := strings.TrimPrefix(door.address, tcpPrefix)
	silent, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	for _, token := range []string{"", "guess", door.token} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		h := hello{lowest: 1, highest: 1, token: token, games: []gameInfo{{name: token}}}
		if _, err := conn.Write(h.append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	visitor, err := greeter.await(context.Background(), &child{ended: make(chan struct{})}, 10*time.Second)
	greeter.close()
	if err != nil || visitor.hello.token != door.token {
		t.Fatalf("the guest is %+v, %v", visitor, err)
	}
	_ = visitor.conn.Close()
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("the stranger is still there")
	}
}

func TestSocketIsPrivate(t *testing.T) {
	if !hasUnixSockets {
		t.Skip("there are no unix sockets here")
	}
	door, err := openDoor(false)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(door.folder)
	if err != nil || info.Mode().Perm() != 0o700 || !door.private {
		t.Errorf("the folder is %v, %v", info, err)
	}
	door.shut()
	if _, err := os.Stat(door.folder); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}

func TestNothingIsLeftOnDisk(t *testing.T) {
	folder, err := os.MkdirTemp("", "p") // its path must fit into that of a socket
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	t.Setenv("TMPDIR", folder)
	open(t, quick("counter"))
	for _, bad := range []string{"exits", "web"} {
		if _, err := New(context.Background(), command(), hasty(bad)); err == nil {
			t.Errorf("child %q was greeted", bad)
		}
	}
	if _, err := New(context.Background(), folder, hasty("")); err == nil {
		t.Error("a folder was started")
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

func TestServeOutsideOfAHost(t *testing.T) {
	t.Setenv(SocketVariable, "")
	if err := Run(counterFactory()); err != ErrNoHost {
		t.Errorf("without a socket: %v", err)
	}
	t.Setenv(SocketVariable, "http://here")
	if err := Run(counterFactory()); err == nil || !strings.Contains(err.Error(), "unix:") {
		t.Errorf("with another kind of socket: %v", err)
	}
	lone := exec.Command(os.Args[0])
	lone.Env = append(os.Environ(), childVariable+"=counter", SocketVariable+"=")
	out, err := lone.CombinedOutput()
	if lone.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "--sim exec:COMMAND") {
		t.Errorf("as a program: %v, %s", err, out)
	}
}
