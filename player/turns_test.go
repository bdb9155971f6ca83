package player

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reprise/format"
)

// The codes of the walker.
const (
	codeMove   = 1 // queues a step of the walk; the finalize walks
	codeTalk   = 2 // asks for as many answers as its parameter says
	codeRest   = 3
	codeAnswer = 9 // passive
)

// walker is a turn-based game whose state is one number and a queue of moves.
type walker struct {
	system *ReplaySystem
	state  uint32
	queue  uint32
	faults map[string]Result // by "move", "talk", "walk", "answer"
	panics string
	reason error
	log    []string
}

func newWalker() *walker {
	w := &walker{system: NewSystem(SystemOptions{})}
	w.system.Register(codeMove, &walk{w})
	w.system.Register(codeTalk, Func(w.talk, TypeInt))
	w.system.Register(codeRest, Func(func(format.Step) (Result, error) {
		w.state = w.state*31 + 7
		return w.done("rest")
	}))
	w.system.Register(codeAnswer, NewPassive(TypeInt))
	return w
}

func (w *walker) System() *ReplaySystem { return w.system }

func (w *walker) Reset(start Start) error {
	w.state, w.queue, w.log = uint32(start.Meta.Seed), 0, nil
	if start.State != nil {
		w.state = binary.BigEndian.Uint32(start.State)
	}
	return w.reason
}

func (w *walker) Hash(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, w.state)
	return binary.BigEndian.AppendUint32(dst, w.queue)
}

func (w *walker) done(what string) (Result, error) {
	w.log = append(w.log, what)
	if w.panics == what {
		panic("lost in the " + what)
	}
	return w.faults[what], nil
}

func (w *walker) talk(step format.Step) (Result, error) {
	n, _ := step.Params[0].Int64()
	for range n {
		p, err := w.system.Sandbox().GetPassive()
		if err != nil {
			return Failed, err
		}
		v, _ := p.Step.Params[0].Int64()
		w.state = w.state*31 + uint32(v)
		p.Next(w.faults["answer"])
	}
	return w.done("talk")
}

type walk struct{ w *walker }

func (c *walk) Type() CommandType       { return Active }
func (c *walk) ParamTypes() []ParamType { return []ParamType{TypeInt} }

func (c *walk) Execute(step format.Step) (Result, error) {
	v, _ := step.Params[0].Int64()
	c.w.queue = c.w.queue*31 + uint32(v)
	return c.w.done("move")
}

func (c *walk) Finalize() (Result, error) {
	c.w.state, c.w.queue = c.w.state*31+c.w.queue, 0
	return c.w.done("walk")
}

func moveStep(v int64) format.Step { return stepOf(codeMove, format.Int(v)) }
func talkStep(n int64) format.Step { return stepOf(codeTalk, format.Int(n)) }
func restStep() format.Step        { return stepOf(codeRest) }
func answerStep(v int64) format.Step {
	return stepOf(codeAnswer, format.Int(v))
}

// answers plays turns through a Turns and gives the outcome of each tick as
// text; flush is called with the number of each tick.
func answers(t *testing.T, w *walker, turns [][]format.Step, flush func(i int) bool) ([]string, error) {
	t.Helper()
	sim := NewTurns(w)
	if err := sim.Reset(Start{Meta: &format.Metadata{Seed: 5}}); err != nil {
		return nil, err
	}
	var got []string
	emit := func(o Outcome) error {
		got = append(got, fmt.Sprintf("%d:%x ignored %d", o.Tick, o.Hash, o.Ignored))
		return nil
	}
	for i, steps := range turns {
		record := tickOf(format.Tick(i), steps...)
		if err := sim.Advance(record, true, emit); err != nil {
			return got, err
		}
		clear(record.Commands) // valid only during the call
		clear(record.Params)
		if flush != nil && flush(i) {
			if err := sim.Flush(false, emit); err != nil {
				return got, err
			}
		}
	}
	return got, sim.Flush(true, emit)
}

// expected computes the same by reading the turns as a person would.
func expected(turns [][]format.Step) []string {
	state, queue := uint32(5), uint32(0)
	var out []string
	for i, steps := range turns {
		v := func(step int) uint32 { n, _ := steps[step].Params[0].Int64(); return uint32(n) }
		switch {
		case len(steps) == 0:
		case steps[0].Code == codeMove:
			queue = queue*31 + v(0)
		case steps[0].Code == codeTalk:
			for k := range int(v(0)) {
				state = state*31 + v(1+k)
			}
		default:
			state = state*31 + 7
		}
		// The move's run is over where the next turn with steps is another.
		next := slices.IndexFunc(turns[i+1:], func(s []format.Step) bool { return len(s) > 0 })
		over := next < 0 || turns[i+1+next][0].Code != codeMove
		if over && queue != 0 && len(steps) > 0 {
			state, queue = state*31+queue, 0
		}
		out = append(out, fmt.Sprintf("%d:%08x%08x ignored 0", i, state, queue))
	}
	return out
}

// randomTurns are moves, talks, rests and empty turns, some with passive steps
// too many.
func randomTurns(rng *rand.Rand) [][]format.Step {
	turns := make([][]format.Step, 1+rng.IntN(12))
	for i := range turns {
		switch rng.IntN(6) {
		case 0:
			n := rng.IntN(4)
			turns[i] = append(turns[i], talkStep(int64(n)))
			for range n {
				turns[i] = append(turns[i], answerStep(rng.Int64N(100)))
			}
		case 1:
			turns[i] = []format.Step{restStep()}
		case 2: // an empty turn
		default:
			turns[i] = []format.Step{moveStep(1 + rng.Int64N(100))}
		}
		for len(turns[i]) > 0 && rng.IntN(3) == 0 { // nobody takes these
			turns[i] = append(turns[i], answerStep(rng.Int64N(100)))
		}
	}
	return turns
}

func TestTurnsAnswerEachTickWhenItIsSettled(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		turns := randomTurns(rng)
		got, err := answers(t, newWalker(), turns, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := expected(turns); !slices.Equal(got, want) {
			t.Fatalf("turns %v\n got %q\nwant %q", turns, got, want)
		}
	}
}

func TestTurnsReachTheSameStateWhereverTheyAreFlushed(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		turns := randomTurns(rng)
		plain, flushed := newWalker(), newWalker()
		answers(t, plain, turns, nil)
		got, err := answers(t, flushed, turns, func(int) bool { return rng.IntN(2) == 0 })
		if err != nil || len(got) != len(turns) {
			t.Fatalf("%d of %d ticks answered, %v", len(got), len(turns), err)
		}
		if plain.state != flushed.state || !slices.Equal(plain.log, flushed.log) {
			t.Fatalf("state %x, flushed %x\n%q\n%q", plain.state, flushed.state, plain.log, flushed.log)
		}
	}
}

func TestTurnsExecuteOnlyWhenTheNextActiveStepIsKnown(t *testing.T) {
	w := newWalker()
	sim := NewTurns(w)
	sim.Reset(Start{Meta: &format.Metadata{}})
	var got []format.Tick
	emit := func(o Outcome) error { got = append(got, o.Tick); return nil }
	for i, c := range []struct {
		steps []format.Step
		log   string
		ticks int
	}{
		{[]format.Step{moveStep(1)}, "", 0},
		{[]format.Step{moveStep(2)}, "move", 1},
		{nil, "move", 1},
		{[]format.Step{talkStep(2)}, "move move walk", 3},
		{[]format.Step{answerStep(1), answerStep(2)}, "move move walk", 3}, // passive steps in the next tick
		{[]format.Step{restStep()}, "move move walk talk", 5},
	} {
		if err := sim.Advance(tickOf(format.Tick(i), c.steps...), false, emit); err != nil {
			t.Fatal(err)
		}
		if strings.Join(w.log, " ") != c.log || len(got) != c.ticks {
			t.Errorf("after tick %d: log %q, answered %d", i, w.log, got)
		}
	}
	if err := sim.Flush(true, emit); err != nil || strings.Join(w.log, " ") != "move move walk talk rest" {
		t.Errorf("Flush gives %v, log %q", err, w.log)
	}
	if want := []format.Tick{0, 1, 2, 3, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("answered %d", got)
	}
	if err := sim.Advance(tickOf(6), false, emit); err == nil {
		t.Error("a tick behind the last one was taken")
	}
}

func TestTurnsSkipPassiveStepsThatNobodyTakes(t *testing.T) {
	w := newWalker()
	turns := [][]format.Step{{talkStep(1), answerStep(4), answerStep(5)}, {moveStep(1), answerStep(6)}, {answerStep(7)}}
	got, err := answers(t, w, turns, nil)
	if err != nil || len(got) != 3 || strings.Join(w.log, " ") != "talk move walk" {
		t.Errorf("answers %q, log %q, %v", got, w.log, err)
	}
}

func TestTurnsTakeSeveralActiveStepsInOneTick(t *testing.T) {
	w := newWalker()
	got, err := answers(t, w, [][]format.Step{{moveStep(1), restStep(), moveStep(2)}, {restStep()}}, nil)
	if err != nil || len(got) != 2 || strings.Join(w.log, " ") != "move walk rest move walk rest" {
		t.Errorf("answers %q, log %q, %v", got, w.log, err)
	}
}

func TestTurnsNameTheTickAndStepOfAFailure(t *testing.T) {
	turns := [][]format.Step{{restStep()}, {talkStep(2), answerStep(1), answerStep(2)}, {moveStep(1)}, {moveStep(2)}, {restStep()}, {restStep()}}
	for _, c := range []struct {
		fault string
		tick  format.Tick
		step  int
		code  uint16
		phase Phase
		ticks int // answered before
	}{
		{"rest", 0, 0, codeRest, PhaseExecute, 0},
		{"talk", 1, 0, codeTalk, PhaseExecute, 1},
		{"answer", 1, 1, codeAnswer, PhasePassive, 1},
		{"move", 2, 0, codeMove, PhaseExecute, 2},
		{"walk", 3, 0, codeMove, PhaseFinalize, 3},
	} {
		w := newWalker()
		w.faults = map[string]Result{c.fault: Failed}
		sim := NewTurns(w)
		sim.Reset(Start{Meta: &format.Metadata{}})
		var got []Outcome
		emit := func(o Outcome) error { got = append(got, o); return nil }
		var err error
		for i := 0; i < len(turns) && err == nil; i++ {
			err = sim.Advance(tickOf(format.Tick(i), turns[i]...), false, emit)
		}
		var failure *StepFailure
		if !errors.As(err, &failure) || len(got) != c.ticks+1 || got[c.ticks].Failure != failure {
			t.Errorf("%s: %v, outcomes %+v", c.fault, err, got)
			continue
		}
		if failure.Tick != c.tick || failure.Step != c.step || failure.Code != c.code || failure.Phase != c.phase {
			t.Errorf("%s: failure %+v", c.fault, failure)
		}
		if sim.Flush(true, emit) != err {
			t.Errorf("%s: the game goes on", c.fault)
		}
	}
}

func TestTurnsStopAtAnUnknownCode(t *testing.T) {
	w := newWalker()
	_, err := answers(t, w, [][]format.Step{{restStep()}, {stepOf(50)}}, nil)
	var failure *StepFailure
	if !errors.As(err, &failure) || failure.Tick != 1 || failure.Code != 50 || !errors.Is(err, format.WarnUnknownCode) {
		t.Errorf("error is %v", err)
	}
}

func TestTurnsCountIgnoredStepsByTick(t *testing.T) {
	w := newWalker()
	w.faults = map[string]Result{"move": Ignored, "walk": Ignored}
	got, err := answers(t, w, [][]format.Step{{moveStep(1)}, {restStep()}, {moveStep(1)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"ignored 2", "ignored 0", "ignored 2"} {
		if !strings.HasSuffix(got[i], want) {
			t.Errorf("tick %d: %s", i, got[i])
		}
	}
}

func TestTurnsNameTheTickOfAPanic(t *testing.T) {
	for what, tick := range map[string]format.Tick{"talk": 1, "walk": 2} {
		w := newWalker()
		w.panics = what
		_, err := answers(t, w, [][]format.Step{{restStep()}, {talkStep(0)}, {moveStep(1)}, {restStep()}}, nil)
		var broken *SimulationError
		if !errors.As(err, &broken) || broken.Tick != tick || !strings.Contains(err.Error(), "lost in the "+what) || len(broken.Stack) == 0 {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestTurnsAreExactlyAfterTheTickThatEmitStops(t *testing.T) {
	w := newWalker()
	sim := NewTurns(w)
	sim.Reset(Start{Meta: &format.Metadata{Seed: 5}})
	enough := errors.New("enough")
	var hash []byte
	stop := func(o Outcome) error { hash = bytes.Clone(o.Hash); return enough }
	turns := [][]format.Step{{moveStep(3)}, {restStep()}, {moveStep(4)}}
	var err error
	if err = sim.Advance(tickOf(0, turns[0]...), true, stop); err != nil {
		t.Fatalf("answered too early: %v", err)
	}
	if err = sim.Advance(tickOf(1, turns[1]...), true, stop); err != enough {
		t.Fatalf("Advance gives %v", err)
	}
	if strings.Join(w.log, " ") != "move walk" || !bytes.Equal(w.Hash(nil), hash) {
		t.Errorf("log %q, state %x, hash %x", w.log, w.Hash(nil), hash)
	}
	var rest []format.Tick
	emit := func(o Outcome) error { rest = append(rest, o.Tick); return nil }
	if err := errors.Join(sim.Advance(tickOf(2, turns[2]...), true, emit), sim.Flush(true, emit)); err != nil {
		t.Fatal(err)
	}
	if strings.Join(w.log, " ") != "move walk rest move walk" || !slices.Equal(rest, []format.Tick{1, 2}) {
		t.Errorf("going on: log %q, answered %d", w.log, rest)
	}
}

func TestTurnsDisableRecordingWhilePlaying(t *testing.T) {
	w := newWalker()
	sim := NewTurns(w)
	sim.Reset(Start{Meta: &format.Metadata{}})
	w.system.Record(codeRest)
	if w.system.Array().Len() != 0 || w.system.Sandbox() == nil {
		t.Error("recording during playback")
	}
	sim.Close()
	w.system.Record(codeRest)
	if w.system.Array().Len() != 1 || w.system.Sandbox() != nil {
		t.Error("no recording after playback")
	}
}

func TestTurnsTellARefusedStart(t *testing.T) {
	w := newWalker()
	w.reason = errors.New("no such map")
	if _, err := answers(t, w, nil, nil); !errors.Is(err, ErrStart) || !errors.Is(err, w.reason) {
		t.Errorf("error is %v", err)
	}
}

func TestTurnsStartAnewAfterAReset(t *testing.T) {
	w := newWalker()
	sim := NewTurns(w)
	start := Start{Meta: &format.Metadata{Seed: 5}}
	turns := [][]format.Step{{moveStep(3)}, {restStep()}, {moveStep(4)}}
	var runs [2][]string
	for i := range runs {
		if err := sim.Reset(start); err != nil {
			t.Fatal(err)
		}
		emit := func(o Outcome) error { runs[i] = append(runs[i], fmt.Sprintf("%d:%x", o.Tick, o.Hash)); return nil }
		for n, steps := range turns {
			if err := sim.Advance(tickOf(format.Tick(n), steps...), true, emit); err != nil {
				t.Fatal(err)
			}
		}
		if i == 1 {
			if err := sim.Flush(true, emit); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(runs[0]) != 2 || len(runs[1]) != 3 || !slices.Equal(runs[0], runs[1][:2]) {
		t.Errorf("runs are %q", runs)
	}
}

func TestTurnsThatStopTheirSandboxAnswerBadly(t *testing.T) {
	w := newWalker()
	w.system.Register(20, Func(func(format.Step) (Result, error) { w.system.Release(); return Success, nil }))
	_, err := answers(t, w, [][]format.Step{{stepOf(20)}, {restStep()}}, nil)
	var broken *SimulationError
	if !errors.As(err, &broken) || errors.Is(err, ErrStopped) {
		t.Errorf("error is %v", err)
	}
}
