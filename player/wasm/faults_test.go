package wasm

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"reprise/format"
	"reprise/player"
	"reprise/player/internal/playtest"
)

// TestModulesThatFail: whatever a module does in a tick is an error that names
// the tick, and the next replay is played.
func TestModulesThatFail(t *testing.T) {
	exit := parts{imports: []string{"proc_exit"}, onTick: []byte(str(constant(3), opCall, 0))}
	said := parts{imports: []string{"fd_write"}, data: []string{segment(3000, "\xc0\x0b\x00\x00\x0e\x00\x00\x00"), segment(3008, "last words\x07\nxy")},
		onTick: []byte(str(constant(2), constant(3000), constant(1), constant(3500), opCall, 0, opDrop, opUnreachable))}
	for name, c := range map[string]struct {
		p    parts
		want string
	}{
		"traps":            {parts{onTick: []byte(str(opUnreachable))}, "trapped: unreachable"},
		"divides by zero":  {parts{onTick: []byte(str(constant(1), constant(0), 0x6d, opDrop))}, "trapped: integer divide by zero"},
		"loops":            {parts{onTick: []byte(str(opLoop, blockEmpty, opBr, 0, opEnd))}, "did not answer in time"},
		"loops inside":     {parts{onTick: []byte(str(opLoop, blockEmpty, opLoop, blockEmpty, constant(1), opBrIf, 0, opEnd, opBr, 0, opEnd))}, "did not answer in time"},
		"calls itself":     {parts{onTick: []byte(str(opCall, 2)), more: []string{str(opCall, 2)}}, "trapped: stack overflow"},
		"calls for ages":   {ages(), "did not answer in time"},
		"wants memory":     {parts{onTick: []byte(str(constant(1000), opMemoryGrow, 0, opDrop))}, "needs more memory than it may have: it asked for 63 MiB"},
		"ends":             {exit, "ended with status 3"},
		"answers nowhere":  {parts{onTick: []byte(str(constant(1<<17-2), opReturn))}, "gave an answer at 0x1fffe, outside of its memory"},
		"answers too far":  {parts{onTick: []byte(str(constant(1<<17-5), opReturn)), data: []string{segment(1<<17-5, "\x09\x00\x00\x00\x04")}}, "outside of its memory"},
		"answers nonsense": {parts{onTick: []byte(str(constant(0), opReturn))}, "answered badly"},
		"answers ready":    {parts{onTick: []byte(str(constant(testReady), opReturn))}, `answered badly: "ready": bad message: out of place`},
		"says something":   {said, "trapped: unreachable; the last that it wrote:\n\tlast words\uFFFD\n\txy"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Memory: 32 << 20, TickTimeout: time.Minute}
			if strings.Contains(c.want, "in time") {
				o.TickTimeout = 50 * time.Millisecond
			}
			s := simulate(t, compile(t, assemble(c.p), o))
			for range 2 {
				err := firstTick(t, s)
				var fault *player.SimulationError
				if !errors.As(err, &fault) || !fault.HasTick || fault.Tick != 0 || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("got %v, want %s", err, c.want)
				}
				if again := s.Advance(&playtest.NewScript(t).Empty(2).Ticks[1], false, nil); again != err {
					t.Errorf("the next tick: %v", again)
				}
			}
		})
	}
}

// ages is a module that calls through a tree of 2^40 leaves without a loop.
func ages() parts {
	p := parts{onTick: []byte(str(opCall, 2))}
	for i := range 40 {
		call := str(opCall, 3+i)
		p.more = append(p.more, call+call)
	}
	p.more = append(p.more, "")
	return p
}

// TestGarbageIsCollectedDuringATick: a module in a long loop does not keep the
// collector, and all else in this process, waiting.
func TestGarbageIsCollectedDuringATick(t *testing.T) {
	s := simulate(t, compile(t, assemble(parts{onTick: []byte(str(opLoop, blockEmpty, opBr, 0, opEnd))}), Options{TickTimeout: 300 * time.Millisecond}))
	if err := s.Reset(testStart()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	tick := playtest.NewScript(t).Empty(1).Ticks[0]
	go func() { ended <- s.Advance(&tick, false, nil) }()
	collected := 0
	for {
		select {
		case err := <-ended:
			if err == nil || collected == 0 {
				t.Errorf("%v; collected %d times meanwhile", err, collected)
			}
			return
		default:
			runtime.GC()
			collected++
		}
	}
}

// TestFilesThatAreNoModule is refused before anything runs.
func TestFilesThatAreNoModule(t *testing.T) {
	good := assemble(parts{})
	if s := simulate(t, compile(t, good, Options{})); firstTick(t, s) != nil {
		t.Fatal("the plain test module does not play")
	}
	env := bytes.Replace(assemble(parts{imports: []string{"proc_exit"}}), []byte(wasiModule), []byte("env_snapshot_preview01"), 1)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":           {nil, "does not begin as WebAssembly"},
		"a text":          {[]byte("#!/bin/sh\n"), "does not begin as WebAssembly"},
		"cut":             {good[:len(good)-1], "has"},
		"no exports":      {bytes.Replace(good, []byte(messageExport), []byte("reprise_massage"), 1), `does not export the function "reprise_message"`},
		"no memory":       {bytes.Replace(good, []byte("memory"), []byte("memore"), 1), "one memory"},
		"other imports":   {env, `it imports "proc_exit" of "env_snapshot_preview01"`},
		"host's names":    {bytes.Replace(good, []byte(sized(bufferExport)), []byte(sized("reprise host x")), 1), "the host's"},
		"shared memory":   {assemble(parts{memory: "\x03\x02\x02"}), "shared and 64-bit memory"},
		"much memory":     {assemble(parts{memory: "\x00\x80\x10"}), "it begins with 128 MiB of memory, the limit is 32 MiB"},
		"unknown":         {assemble(parts{onTick: []byte{0xfe, 0, 0}}), "operation 0xfe is unknown"},
		"invalid":         {assemble(parts{onTick: []byte(str(opDrop))}), "not a module"},
		"hello of others": {bytes.Replace(good, []byte(frame(1, "\x01\x00\x01\x00")[5:]), []byte("\x02\x00\x03\x00"), 1), "it speaks versions 2 to 3"},
	} {
		if m, err := Compile(context.Background(), c.file, Options{Memory: 32 << 20}); !errors.Is(err, ErrModule) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, want %s", name, m, err, c.want)
		}
	}
	broken := assemble(parts{more: []string{str(opUnreachable)}, initialize: true})
	var fault *player.SimulationError
	if _, err := Compile(context.Background(), broken, Options{}); !errors.As(err, &fault) || fault.HasTick {
		t.Errorf("a module that traps at once: %v", err)
	}
}

// TestEveryCutIsRefused cuts a real module at every byte.
func TestEveryCutIsRefused(t *testing.T) {
	for n := range marblesFile {
		if w, err := rewrite(marblesFile[:n]); err == nil {
			// Cut between two sections it may still be a smaller module.
			if _, err := splitSections(w.file); err != nil {
				t.Fatalf("%d bytes are written as no module: %v", n, err)
			}
		} else if !errors.Is(err, ErrModule) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func TestStateBeyondMemoryAndGlobals(t *testing.T) {
	table := []string{"\x70\x00\x04"}
	vector := str(valueV128, 1, prefixVector, 0x0c, make([]byte, 16), opEnd)
	for name, c := range map[string]struct {
		p    parts
		want string // empty: snapshots can be taken
	}{
		"plain":            {parts{}, ""},
		"calls by a table": {parts{tables: table, elements: []string{str(0, constant(0), opEnd, 1, 0)}}, ""},
		"sets a table":     {parts{tables: table, onTick: []byte(str(constant(0), opRefNull, valueFunc, opTableSet, 0))}, "table.set in function 1"},
		"fills a table":    {parts{tables: table, more: []string{str(constant(0), opRefNull, valueFunc, constant(1), prefixBulk, bulkTableFill, 0)}}, "table.fill in function 2"},
		"grows a table":    {parts{tables: table, more: []string{str(opRefNull, valueFunc, constant(1), prefixBulk, bulkTableGrow, 0, opDrop)}}, "table.grow in function 2"},
		"copies a table":   {parts{tables: table, more: []string{str(constant(0), constant(0), constant(1), prefixBulk, bulkTableCopy, 0, 0)}}, "table.copy in function 2"},
		"asks a table":     {parts{tables: table, more: []string{str(prefixBulk, bulkTableSize, 0, opDrop, constant(0), opTableGet, 0, opDrop)}}, ""},
		"drops data":       {parts{dataCount: true, more: []string{str(prefixBulk, bulkDataDrop, 0)}}, "data.drop in function 2"},
		"vector global":    {parts{globals: []string{vector}}, "global 0 of the module holds a vector"},
		"fixed vector":     {parts{globals: []string{strings.Replace(vector, "\x7b\x01", "\x7b\x00", 1)}}, ""},
		"reference global": {parts{globals: []string{str(valueFunc, 1, opRefNull, valueFunc, opEnd)}}, "global 0 of the module holds a vector or a reference"},
	} {
		m := compile(t, assemble(c.p), Options{})
		s := simulate(t, m)
		if err := firstTick(t, s); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, err := s.Snapshot()
		_, saveErr := s.Save(nil)
		for _, err := range []error{err, saveErr, m.Snapshots()} {
			if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, player.ErrUnable) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
	}
}

// TestGlobalsAreState: mutable globals of every kind come back, and the start
// function does not run again.
func TestGlobalsAreState(t *testing.T) {
	globals := []string{
		str(valueI32, 1, constant(5), opEnd), str(valueI64, 1, opI64Const, 0x7f, opEnd),
		str(valueF32, 1, opF32Const, "\x00\x00\x80\x3f", opEnd), str(valueF64, 1, opF64Const, "\x00\x00\x00\x00\x00\x00\xf0\x3f", opEnd),
		str(valueI32, 0, constant(9), opEnd),
	}
	// A tick doubles every global; the start function adds 1000 to the first.
	double := ""
	for i, add := range []int{0x6a, 0x7c, 0x92, 0xa0} {
		double += str(opGlobalGet, i, opGlobalGet, i, add, opGlobalSet, i)
	}
	starts := str(opGlobalGet, 0, constant(1000), 0x6a, opGlobalSet, 0)
	for name, p := range map[string]parts{
		"start":      {globals: globals, onTick: []byte(double), more: []string{starts}, start: true},
		"initialize": {globals: globals, onTick: []byte(double), more: []string{starts}, initialize: true},
	} {
		s := simulate(t, compile(t, assemble(p), Options{}))
		if err := firstTick(t, s); err != nil {
			t.Fatal(err)
		}
		want := []uint64{2010, 1<<64 - 2, 0x40000000, 0x4000000000000000}
		check := func(when string) {
			t.Helper()
			for i, v := range readGlobals(s.instance.globals) {
				if v != want[i] {
					t.Errorf("%s, %s: global %d is %#x, want %#x", name, when, i, v, want[i])
				}
			}
		}
		check("after a tick")
		kept, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		state := save(t, s)
		if err := firstTick(t, s); err != nil { // another replay
			t.Fatal(err)
		}
		if err := s.Restore(kept); err != nil {
			t.Fatal(err)
		}
		check("restored")
		if err := s.Load(state, 1); err != nil {
			t.Fatal(err)
		}
		check("loaded")
	}
}

func TestDamagedStates(t *testing.T) {
	m := compile(t, assemble(parts{}), Options{})
	s := simulate(t, m)
	if err := firstTick(t, s); err != nil {
		t.Fatal(err)
	}
	good := save(t, s)
	if err := s.Load(good, 1); err != nil {
		t.Fatal(err)
	}
	other := simulate(t, compile(t, assemble(parts{more: []string{""}}), Options{}))
	if err := firstTick(t, other); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		state []byte
		next  format.Tick
	}{
		"empty":          {nil, 1},
		"cut":            {good[:len(good)-1], 1},
		"tail alone":     {good[len(good)-stateTail:], 1},
		"changed":        {append([]byte{good[0] ^ 1}, good[1:]...), 1},
		"another tick":   {good, 2},
		"another module": {save(t, other), 1},
	} {
		if err := s.Load(c.state, c.next); !errors.Is(err, player.ErrStart) {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Advance(&playtest.NewScript(t).Empty(1).Ticks[0], false, nil); err == nil {
			t.Errorf("%s: a tick is played all the same", name)
		}
		if err := s.Reset(testStart()); err != nil {
			t.Fatal(err)
		}
	}
	foreign, err := other.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(foreign); err == nil {
		t.Error("a snapshot of another module is restored")
	}
}

// TestDumpLeavesNoTrace: what a module does to answer a dump is undone.
func TestDumpLeavesNoTrace(t *testing.T) {
	p := parts{globals: []string{str(valueI32, 1, constant(5), opEnd)}, onDump: []byte(str(constant(6), opGlobalSet, 0, constant(100), constant(1), 0x3a, 0, 0))}
	s := simulate(t, compile(t, assemble(p), Options{}))
	if err := firstTick(t, s); err != nil {
		t.Fatal(err)
	}
	before := save(t, s)
	if fields, err := s.Dump(); err != nil || len(fields) != 0 {
		t.Fatal(fields, err)
	}
	if !bytes.Equal(save(t, s), before) {
		t.Error("a dump changed the state")
	}
}

// TestContextEndsCalls: a module that hangs ends with the context.
func TestContextEndsCalls(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	m, err := Compile(ctx, assemble(parts{onTick: []byte(str(opLoop, blockEmpty, opBr, 0, opEnd))}), Options{TickTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s := m.New()
	reason := errors.New("interrupted")
	time.AfterFunc(20*time.Millisecond, func() { cancel(reason) })
	if err := firstTick(t, s); err != reason {
		t.Errorf("got %v", err)
	}
	if err := errors.Join(s.Close(), m.Close()); err != nil {
		t.Error(err)
	}
}

// TestBadAnswersBetweenTicks: a wrong answer to reset or dump is a fault of the
// simulation, not of the replay.
func TestBadAnswersBetweenTicks(t *testing.T) {
	ready := []byte(segment(testReady, frame(2)))
	wrong := bytes.Replace(assemble(parts{}), ready, []byte(segment(testReady, frame(7))), 1)
	var fault *player.SimulationError
	if err := simulate(t, compile(t, wrong, Options{})).Reset(testStart()); !errors.As(err, &fault) || errors.Is(err, player.ErrStart) {
		t.Errorf("reset answered by flushed: %v", err)
	}
	s := simulate(t, compile(t, assemble(parts{onDump: []byte(str(constant(testReady), opReturn))}), Options{}))
	if err := firstTick(t, s); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Dump(); !errors.As(err, &fault) {
		t.Errorf("dump answered by ready: %v", err)
	}
	if err := s.Advance(&playtest.NewScript(t).Empty(2).Ticks[1], false, func(player.Outcome) error { return nil }); !errors.As(err, &fault) || fault.Tick != 1 {
		t.Errorf("a tick that is answered as another: %v", err)
	}
}

func TestNothingBeforeReset(t *testing.T) {
	s := simulate(t, compile(t, assemble(parts{}), Options{}))
	tick := playtest.NewScript(t).Empty(1).Ticks[0]
	_, snapErr := s.Snapshot()
	_, saveErr := s.Save(nil)
	_, dumpErr := s.Dump()
	for _, err := range []error{s.Advance(&tick, false, nil), s.Flush(true, nil), snapErr, saveErr, dumpErr, s.Load(nil, 0)} {
		if err != errNoReset {
			t.Errorf("got %v", err)
		}
	}
}
