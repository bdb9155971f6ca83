package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/format"
	"reprise/player"
	"reprise/player/internal/playtest"
)

// counterMeta is the metadata of a replay of the counter.
func counterMeta() *format.Metadata {
	return &format.Metadata{Game: "counter", Build: "1", Seed: 7, Map: "plain", HashBytes: 8, Width: format.Width16}
}

// values are parameters of every kind, at the borders of each.
func values() []format.Value {
	low, _ := new(big.Int).SetString("-18446744073709551615", 10)
	wide := new(big.Int).Lsh(big.NewInt(1), 2000)
	return []format.Value{
		format.Bool(true), format.Bool(false),
		format.Int(0), format.Int(-1), format.Int(127), format.Int(-129), format.Int(1 << 40),
		format.Int(math.MaxInt64), format.Int(math.MinInt64), format.Uint(math.MaxInt64 + 1), format.Uint(math.MaxUint64),
		format.Number(-math.Pow(2, 63) * 1.5),
		format.Float(0), format.Float(math.Copysign(0, -1)), format.Float(1.5), format.Float(math.NaN()), format.Float(math.Inf(-1)),
		format.BigInt(big.NewInt(0)), format.BigInt(big.NewInt(-5)), format.BigInt(low), format.BigInt(wide),
		format.String(""), format.String("kurz"), format.String(strings.Repeat("lang ", 100)), format.String("\xff\x00"),
		format.Bytes(nil), format.Bytes([]byte{0, 255}), format.Bytes(make([]byte, 70_000)),
		format.Ints(nil), format.Ints([]int64{1, -1}), format.Ints([]int64{1 << 20, 5}), format.Ints([]int64{math.MinInt64, math.MaxInt64}),
	}
}

// result is an outcome in memory of its own.
type result struct {
	tick    format.Tick
	hash    string
	ignored int
	failure string
}

func copyOutcome(o player.Outcome) result {
	r := result{tick: o.Tick, hash: string(o.Hash), ignored: o.Ignored}
	if o.Hash == nil {
		r.hash = "none"
	}
	if o.Failure != nil {
		r.failure = o.Failure.Error()
	}
	return r
}

// run plays ticks and gives the outcomes. Every hash is asked for but those of
// ticks that skip says.
func run(sim player.Simulation, start player.Start, ticks []format.TickRecord, skip func(int) bool) ([]result, error) {
	var results []result
	emit := func(o player.Outcome) error {
		results = append(results, copyOutcome(o))
		return nil
	}
	if err := sim.Reset(start); err != nil {
		return nil, err
	}
	for i := range ticks {
		record := ticks[i]
		// The memory of a tick is valid only during the call.
		record.Commands, record.Params = bytes.Clone(record.Commands), bytes.Clone(record.Params)
		err := sim.Advance(&record, skip == nil || !skip(i), emit)
		clear(record.Commands)
		clear(record.Params)
		if err != nil {
			return results, err
		}
	}
	return results, sim.Flush(true, emit)
}

// sameRun plays ticks in this process and in the child, and compares.
func sameRun(t *testing.T, child *Simulation, local player.Simulation, start player.Start, ticks []format.TickRecord, skip func(int) bool) {
	t.Helper()
	want, wantErr := run(local, start, ticks, skip)
	got, err := run(child, start, ticks, skip)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Errorf("the child's error is %v, in this process it is %v", err, wantErr)
	}
	if !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("answer %d is %+v, in this process it is %+v", i, got[i], want[i])
			}
		}
		t.Fatalf("%d answers, in this process %d", len(got), len(want))
	}
}

func TestChildPlaysLikeThisProcess(t *testing.T) {
	child := open(t, quick("counter"))
	local := player.NewLocal(new(counter))
	start := player.Start{Meta: counterMeta()}
	random := rand.New(rand.NewPCG(1, 2))
	for _, width := range []format.Width{format.Width16, format.Width8} {
		s := playtest.NewScript(t)
		s.Width = width
		for range 700 {
			s.Tick(func(add func(uint16, ...format.Value)) {
				for range random.IntN(4) {
					all := values()
					random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
					add([]uint16{codeMix, codeMix, codeIgnore, 200}[random.IntN(4)], all[:random.IntN(5)]...)
				}
			})
		}
		s.Tick(func(add func(uint16, ...format.Value)) { add(codeMix, values()...) })
		sameRun(t, child, local, start, s.Ticks, nil)
		sameRun(t, child, local, start, s.Ticks, func(i int) bool { return i%3 != 0 })
	}
}

func TestFailedStepEndsLikeInThisProcess(t *testing.T) {
	child := open(t, quick("counter"))
	local := player.NewLocal(new(counter))
	start := player.Start{Meta: counterMeta()}
	for _, code := range []uint16{codeFail, codeFailNo} {
		s := playtest.NewScript(t).Empty(300).Tick(func(add func(uint16, ...format.Value)) {
			add(codeIgnore)
			add(code)
			add(codeMix)
		}).Empty(300)
		sameRun(t, child, local, start, s.Ticks, nil)
		var failure *player.StepFailure
		if err := child.Flush(true, nil); !errors.As(err, &failure) || failure.Tick != 300 || failure.Step != 1 || failure.Code != code {
			t.Errorf("flush behind the failed step: %v", err)
		}
	}
}

func TestGameThatCannotGoOn(t *testing.T) {
	child := open(t, quick("counter"))
	for code, want := range map[uint16]string{
		codePanic: "tick 3: simulation could not go on: tick 3: simulation panicked: as asked",
		codeStop:  "tick 3: simulation could not go on: tick 3: simulation could not end the tick: no end of tick 3",
	} {
		s := playtest.NewScript(t).Empty(3).One(code).Empty(300)
		results, err := run(child, player.Start{Meta: counterMeta()}, s.Ticks, nil)
		var fault *player.SimulationError
		if !errors.As(err, &fault) || !fault.HasTick || fault.Tick != 3 || err.Error() != want {
			t.Errorf("code %d: %v, want %s", code, err, want)
		}
		if len(results) != 3 {
			t.Errorf("code %d: %d answers before the end, want 3", code, len(results))
		}
	}
	if _, err := run(child, player.Start{Meta: counterMeta()}, playtest.NewScript(t).Empty(2).Ticks, nil); err != nil {
		t.Errorf("the same child after a reset: %v", err)
	}
}

func TestTurnsAreServed(t *testing.T) {
	child := open(t, quick("turns"))
	local := player.NewTurns(newTurns())
	defer func() { _ = local.Close() }()
	meta := counterMeta()
	meta.Game = "turns"
	s := playtest.NewScript(t)
	for i := range 400 {
		s.One(turnMove).One(turnMove).Tick(func(add func(uint16, ...format.Value)) {
			add(turnAsk)
			add(turnTell, format.String(fmt.Sprint(i)))
		}).Empty(i % 3)
	}
	start := player.Start{Meta: meta}
	sameRun(t, child, local, start, s.Ticks, nil)
	if !child.LooksAhead() {
		t.Error("the child does not say that it looks ahead")
	}
	s.One(turnMove).One(turnAsk).Empty(2)
	sameRun(t, child, local, start, s.Ticks, nil)
}

func TestHeldBackTurnsAreNotDue(t *testing.T) {
	o := quick("turns")
	o.TickTimeout = 150 * time.Millisecond
	child := open(t, o)
	meta := counterMeta()
	meta.Game = "turns"
	if err := child.Reset(player.Start{Meta: meta}); err != nil {
		t.Fatal(err)
	}
	s := playtest.NewScript(t).One(turnMove).One(turnMove)
	answers := 0
	emit := func(player.Outcome) error { answers++; return nil }
	if err := child.Advance(&s.Ticks[0], true, emit); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * o.TickTimeout) // nothing is owed meanwhile
	if err := child.Advance(&s.Ticks[1], true, emit); err != nil {
		t.Fatal(err)
	}
	if err := child.Flush(true, emit); err != nil || answers != 2 {
		t.Errorf("%d answers, %v", answers, err)
	}
}

func TestStartArrivesWhole(t *testing.T) {
	starts := []player.Start{fullStart(), {Meta: &format.Metadata{}}, {Meta: counterMeta(), Book: &format.CodeBook{}, State: []byte{}}}
	for i, start := range starts {
		var got reset
		message := (&reset{game: uint32(i), start: start}).append(nil)
		if err := got.parse(message[frameHead:]); err != nil {
			t.Fatal(err)
		}
		if want := (reset{game: uint32(i), start: start}); !reflect.DeepEqual(got, want) {
			t.Errorf("start %d arrives as %+v of %+v", i, got, want)
		}
	}
}

// fullStart is a start with something in every field.
func fullStart() player.Start {
	return player.Start{
		Meta: &format.Metadata{
			Session: "s-1", Game: "counter", Build: "1", Data: "d", Seed: math.MaxUint64, Map: "plain\xff",
			TickRate: format.Rate{Num: 112, Den: 5}, FirstTick: 3, StartedAt: -4, HashBytes: 8,
			HashParts: []format.HashPart{{Name: "world", Bytes: 3}, {Name: "", Bytes: 5}}, Width: format.Width8,
			Labels: []format.Label{{Key: "k", Value: "v\x00"}}, Env: []format.Label{{Key: "os", Value: "x"}, {}},
			Origin: format.Origin{Format: "rply1", Header: []byte{1, 2}},
		},
		Book: &format.CodeBook{Codes: []format.CodeInfo{
			{Code: 9, Name: "say", Passive: true, Params: []format.ParamInfo{{Name: "text", Type: "string", Personal: true}, {}}}, {},
		}},
		Players: []format.Player{{ID: 1 << 40, Name: "ä", Team: "red", Observer: true, Stays: []format.Stay{{Joined: 1, Left: 2}, {Joined: 5, Open: true}}}, {}},
		State:   []byte("whole state"), NextTick: 9,
	}
}

func TestSaveLoadDump(t *testing.T) {
	child := open(t, quick("counter"))
	local := player.NewLocal(new(counter))
	start := player.Start{Meta: counterMeta()}
	s := playtest.NewScript(t).Empty(10)
	sameRun(t, child, local, start, s.Ticks, nil)
	state, err := child.Save([]byte("before "))
	if want := local.Game().(player.Saver).Save([]byte("before ")); err != nil || !bytes.Equal(state, want) {
		t.Fatalf("saved %x, %v; want %x", state, err, want)
	}
	dump, err := child.Dump()
	if want := local.Game().(player.Dumper).Dump(); err != nil || !slices.Equal(dump, want) {
		t.Errorf("dumped %v, %v; want %v", dump, err, want)
	}
	want, _ := run(local, start, playtest.NewScript(t).Empty(14).Ticks, nil)
	if err := child.Load(state[len("before "):], 10); err != nil {
		t.Fatal(err)
	}
	var got []result
	emit := func(o player.Outcome) error { got = append(got, copyOutcome(o)); return nil }
	for _, tick := range playtest.NewScript(t).Empty(14).Ticks[10:] {
		if err := child.Advance(&tick, true, emit); err != nil {
			t.Fatal(err)
		}
	}
	if err := child.Flush(false, emit); err != nil || !slices.Equal(got, want[10:]) {
		t.Errorf("after the load: %v, %v; want %v", got, err, want[10:])
	}
	if err := child.Load([]byte("bad"), 10); !errors.Is(err, player.ErrStart) || !strings.Contains(err.Error(), "a state of 3 bytes") {
		t.Errorf("a bad state: %v", err)
	}
	if err := child.Flush(true, emit); !errors.Is(err, player.ErrStart) {
		t.Errorf("flush after a bad state: %v", err)
	}
}

func TestStateIsRefused(t *testing.T) {
	child := open(t, quick("pair"))
	if _, err := child.Save(nil); err != errNoReset {
		t.Errorf("save before a reset: %v", err)
	}
	meta := counterMeta()
	meta.Game = "turns"
	if err := child.Reset(player.Start{Meta: meta}); err != nil {
		t.Fatal(err)
	}
	if err := child.Load(make([]byte, 8), 0); !errors.Is(err, player.ErrUnable) {
		t.Errorf("load in a game that looks ahead: %v", err)
	}
	s := playtest.NewScript(t).One(turnMove)
	if err := child.Advance(&s.Ticks[0], false, func(player.Outcome) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := child.Dump(); err != errUnderWay {
		t.Errorf("dump of a tick under way: %v", err)
	}
	if err := child.Flush(false, func(player.Outcome) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if fields, err := child.Dump(); err != nil || len(fields) != 2 {
		t.Errorf("dump behind a flush: %v, %v", fields, err)
	}
}

func TestResetRefused(t *testing.T) {
	child := open(t, quick("counter"))
	for _, c := range []struct {
		change func(*format.Metadata)
		check  func(error) bool
		text   string
	}{
		{func(m *format.Metadata) { m.Map = "none" }, isStart, `the game cannot start this replay: no map "none"`},
		{func(m *format.Metadata) { m.Map = "panic" }, isFault, `simulation failed in "reset": tick 0: simulation panicked: in reset`},
		{func(m *format.Metadata) { m.Game = "chess" }, is[*player.GameMissingError], "chess"},
		{func(m *format.Metadata) { m.Build = "2" }, is[*player.BuildMismatchError], "recorded by build"},
	} {
		meta := counterMeta()
		c.change(meta)
		err := child.Reset(player.Start{Meta: meta})
		if err == nil || !c.check(err) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("got %v, want %s", err, c.text)
		}
		tick := playtest.NewScript(t).Empty(1).Ticks[0]
		if again := child.Advance(&tick, true, nil); again != err {
			t.Errorf("advance after a refused reset: %v", again)
		}
	}
	if _, err := run(child, player.Start{Meta: counterMeta()}, playtest.NewScript(t).Empty(3).Ticks, nil); err != nil {
		t.Errorf("a good replay after refused ones: %v", err)
	}
}

func isStart(err error) bool { return errors.Is(err, player.ErrStart) }

func isFault(err error) bool { return is[*player.SimulationError](err) && !isStart(err) }

func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

func TestAnyGame(t *testing.T) {
	o := quick("pair")
	o.AnyGame = true
	child := open(t, o)
	for name, want := range map[string]string{"chess": "counter", "turns": "turns", "counter": "counter"} {
		meta := counterMeta()
		meta.Game, meta.Build = name, "other"
		if err := child.Reset(player.Start{Meta: meta}); err != nil || child.game.name != want {
			t.Errorf("replay of %q: game %q, %v", name, child.game.name, err)
		}
	}
}

func TestUnnamedReplayIsOfTheOnlyGame(t *testing.T) {
	meta := counterMeta()
	meta.Game, meta.Build = "", ""
	if err := open(t, quick("counter")).Reset(player.Start{Meta: meta}); err != nil {
		t.Error(err)
	}
	if err := open(t, quick("pair")).Reset(player.Start{Meta: meta}); !is[*player.GameMissingError](err) {
		t.Errorf("one of two games: %v", err)
	}
}

func TestOffers(t *testing.T) {
	child := open(t, quick("pair"))
	want := []Offer{
		{Name: "counter", Build: "1", CanSave: true, CanLoad: true, CanDump: true},
		{Name: "turns", Build: "1", CanSave: true, CanDump: true, LooksAhead: true},
	}
	if got := child.Offers(); !slices.Equal(got, want) {
		t.Errorf("offers are %+v, want %+v", got, want)
	}
	if want := filepath.Base(os.Args[0]); child.Program() != want {
		t.Errorf("program is %q, want %q", child.Program(), want)
	}
}

func TestChildIsReused(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		o := quick("counter")
		o.Fresh = fresh
		child := open(t, o)
		var pids []int
		for range 3 {
			if _, err := run(child, player.Start{Meta: counterMeta()}, playtest.NewScript(t).Empty(3).Ticks, nil); err != nil {
				t.Fatal(err)
			}
			pids = append(pids, child.link.child.cmd.Process.Pid)
		}
		if same := pids[0] == pids[1] && pids[1] == pids[2]; same == fresh {
			t.Errorf("fresh %v: the processes are %v", fresh, pids)
		}
	}
}

func TestResetDropsWhatIsUnderWay(t *testing.T) {
	child := open(t, quick("counter"))
	start := player.Start{Meta: counterMeta()}
	want, err := run(child, start, playtest.NewScript(t).Empty(20).Ticks, nil)
	if err != nil {
		t.Fatal(err)
	}
	long := playtest.NewScript(t).Empty(1500).Ticks
	for n := range 30 {
		if err := child.Reset(start); err != nil {
			t.Fatal(err)
		}
		for i := range long[:n*50] {
			if err := child.Advance(&long[i], true, func(player.Outcome) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		got, err := run(child, start, playtest.NewScript(t).Empty(20).Ticks, nil)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("after %d abandoned ticks: %v, %v", n*50, got, err)
		}
	}
}

// A tick for an idle child does not wait for others, so that what is played at
// the game's own speed is simulated when it is due.
func TestIdleChildGetsTheTickAtOnce(t *testing.T) {
	child := open(t, quick("counter"))
	ticks := playtest.NewScript(t).Empty(3000).Ticks
	if _, err := run(child, player.Start{Meta: counterMeta()}, ticks, nil); err != nil {
		t.Fatal(err)
	}
	if limit := child.link.news().batchTicks; limit < 8 {
		t.Fatalf("batches have %d ticks: too few for this test", limit)
	}
	if err := child.Reset(player.Start{Meta: counterMeta()}); err != nil {
		t.Fatal(err)
	}
	if err := child.Advance(&ticks[0], true, func(player.Outcome) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for wait := time.Now().Add(10 * time.Second); child.link.news().answers == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(wait) {
			t.Fatal("no answer without a further call")
		}
	}
}

func TestErrorOfEmitStops(t *testing.T) {
	child := open(t, quick("counter"))
	ticks := playtest.NewScript(t).Empty(500).Ticks
	if err := child.Reset(player.Start{Meta: counterMeta()}); err != nil {
		t.Fatal(err)
	}
	halt := errors.New("enough")
	var seen []format.Tick
	emit := func(o player.Outcome) error {
		seen = append(seen, o.Tick)
		if len(seen)%100 == 0 {
			return halt
		}
		return nil
	}
	stops := 0
	for i := range ticks {
		if err := child.Advance(&ticks[i], true, emit); err != nil && err != halt {
			t.Fatal(err)
		} else if err == halt {
			stops++
		}
	}
	for {
		err := child.Flush(true, emit)
		if err == nil {
			break
		}
		if err != halt {
			t.Fatal(err)
		}
		stops++
	}
	for i, tick := range seen {
		if tick != format.Tick(i) {
			t.Fatalf("answer %d is of tick %d", i, tick)
		}
	}
	if len(seen) != 500 || stops != 5 {
		t.Errorf("%d answers and %d stops, want 500 and 5", len(seen), stops)
	}
}

func TestUnreadableTick(t *testing.T) {
	child := open(t, quick("counter"))
	for _, record := range []format.TickRecord{
		{Width: format.Width16, Steps: 1, Commands: []byte{1, 0}},
		{Width: format.Width16, Steps: 1, Commands: []byte{1, 0, 1}, Params: []byte{31}},
	} {
		if err := child.Reset(player.Start{Meta: counterMeta()}); err != nil {
			t.Fatal(err)
		}
		if err := child.Advance(&record, true, nil); !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("%+v: %v", record, err)
		}
	}
}

func TestContextEndsTheChild(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	child, err := New(ctx, command(), quick("counter"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Close() }()
	halt := errors.New("the user wants no more")
	time.AfterFunc(100*time.Millisecond, func() { cancel(halt) })
	s := playtest.NewScript(t).One(codeSleep, format.Int(60_000))
	if _, err := run(child, player.Start{Meta: counterMeta()}, s.Ticks, nil); err != halt {
		t.Errorf("got %v, want %v", err, halt)
	}
	if err := child.Reset(player.Start{Meta: counterMeta()}); err != halt {
		t.Errorf("a reset later: %v", err)
	}
}

func TestTCP(t *testing.T) {
	o := quick("counter")
	o.TCP = true
	child := open(t, o)
	sameRun(t, child, player.NewLocal(new(counter)), player.Start{Meta: counterMeta()}, playtest.NewScript(t).Empty(1000).Ticks, nil)
}
