package format

import (
	"bytes"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// sevenSteps have zero to four parameters.
func sevenSteps() []Step {
	return append(sixSteps(), Step{Code: 11, Params: []Value{Ints([]int64{-1, 40000}), Bytes([]byte("b"))}})
}

// readOn reads the rest of a stream and compares it.
func readOn(t *testing.T, s *ReadStream, want []Step) {
	t.Helper()
	for _, w := range want {
		at := s.Index()
		got, ok := s.Read()
		if !ok || !sameStep(got, w) || got.Index != at+1 || s.Index() != at+1 {
			t.Fatalf("at %d read %v, %v, want %v", at, got, ok, w)
		}
	}
	if got, ok := s.Read(); ok {
		t.Errorf("read %v behind the last step", got)
	}
	if s.Index() != s.Len() {
		t.Errorf("the stream ends at %d of %d", s.Index(), s.Len())
	}
}

func TestStreamReadsFromAnyStep(t *testing.T) {
	a, log := arrayOf(t, sevenSteps())
	for start := range 8 {
		s := a.Stream(start)
		if s.Index() != start || s.Len() != 7 || s.Expired() {
			t.Errorf("a new stream is at %d of %d, expired %v", s.Index(), s.Len(), s.Expired())
		}
		readOn(t, s, sevenSteps()[start:])
	}
	log.expect(t)
}

func TestStreamStartsWithinTheArray(t *testing.T) {
	a, _ := arrayOf(t, threeSteps())
	readOn(t, a.Stream(-5), threeSteps())
	readOn(t, a.Stream(99), nil)
	readOn(t, NewArray(Options{}).Stream(0), nil)
}

func TestStreamAgreesWithGetAfterEdits(t *testing.T) {
	a, _ := arrayOf(t, sevenSteps())
	want := sevenSteps()
	a.Insert(3, 99, String("inserted"))
	want = slices.Insert(want, 3, Step{Code: 99, Params: []Value{String("inserted")}})
	readOn(t, a.Stream(0), want)

	want[2] = Step{Code: 98, Params: []Value{String(strings.Repeat("grown", 100))}}
	a.Set(2, 98, want[2].Params...)
	checkSteps(t, a, want)

	last := len(want) - 1
	want[last] = Step{Code: 97, Params: []Value{Int(1)}}
	a.Set(last, 97, Int(1))
	readOn(t, a.Stream(last-1), want[last-1:])
}

func TestEveryWriteExpiresAStream(t *testing.T) {
	writes := map[string]func(*ReplayArray){
		"add":       func(a *ReplayArray) { a.Add(1) },
		"insert":    func(a *ReplayArray) { a.Insert(0, 1) },
		"delete":    func(a *ReplayArray) { a.Delete(6) },
		"set":       func(a *ReplayArray) { a.Set(6, 1) },
		"width":     func(a *ReplayArray) { a.SetWidth(Width16) },
		"own width": func(a *ReplayArray) { a.SetWidth(Width8) },
		"clear":     func(a *ReplayArray) { a.Clear() },
		"load":      func(a *ReplayArray) { _ = a.LoadState(stateOf(Step{Code: 1})) },
		"append":    func(a *ReplayArray) { _ = a.AppendState(stateOf(Step{Code: 1})) },
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			a, log := arrayOf(t, sevenSteps())
			s := a.Stream(0)
			s.Read()
			s.Read()
			write(a)
			log.expect(t)
			if !s.Expired() {
				t.Fatal("the stream is not expired")
			}
			if _, ok := s.Read(); !ok {
				t.Error("the read did not happen")
			}
			if len(log.all) != 1 || log.all[0].Step != 2 {
				t.Errorf("warnings %v", log.all)
			}
			log.expect(t, WarnExpiredRead)
			fresh := a.Stream(0)
			for range a.Len() {
				if _, ok := fresh.Read(); !ok {
					t.Error("a fresh stream ends early")
				}
			}
			log.expect(t)
		})
	}
}

func TestExpiredStreamReadsOnAfterAdd(t *testing.T) {
	a, log := arrayOf(t, sevenSteps())
	s := a.Stream(0)
	a.Add(12, Int(1))
	readOn(t, s, sevenSteps())
	log.expect(t, slices.Repeat([]WarningCode{WarnExpiredRead}, 8)...)
	readOn(t, a.Stream(0), append(sevenSteps(), Step{Code: 12, Params: []Value{Int(1)}}))
}

// What an expired stream reads may be anything, but it must not panic and
// must end.
func TestExpiredStreamSurvivesEveryEdit(t *testing.T) {
	for cut := range 7 {
		a, _ := loggedArray(Options{StepCapacity: 20, ParamCapacity: 2000})
		addAll(t, a, sevenSteps())
		s := a.Stream(cut)
		a.Delete(0)
		a.Insert(3, 1, Bytes([]byte{11, 9, 9, 9, 9, 255, 255, 255}), Ints([]int64{math.MinInt64}))
		a.Set(1, 255, String(strings.Repeat("\x0b\xff", 60)))
		a.SetWidth(Width16)
		for reads := 0; ; reads++ {
			step, ok := s.Read()
			if !ok {
				break
			}
			for _, v := range step.Params {
				_ = v.String()
			}
			if reads > 10 {
				t.Fatal("the stream does not end")
			}
		}
	}
}

func TestReadIntoLeavesTheStepAtTheEnd(t *testing.T) {
	a, _ := arrayOf(t, threeSteps())
	s := a.Stream(2)
	var step Step
	if !s.ReadInto(&step) || step.Index != 3 || !sameStep(step, threeSteps()[2]) {
		t.Errorf("read %v", step)
	}
	if s.ReadInto(&step) || step.Index != 3 {
		t.Errorf("behind the end the step became %v", step)
	}
}

func TestDestroyedStreamReadsNothing(t *testing.T) {
	a, log := arrayOf(t, threeSteps())
	s := a.Stream(0)
	s.Read()
	s.Destroy()
	a.Add(1)
	if _, ok := s.Read(); ok || s.Expired() || s.Index() != 1 || s.Len() != 3 {
		t.Error("a destroyed stream reads, expires or moves")
	}
	log.expect(t)
}

func TestBooleanThatIsNeitherIsReadAsFalse(t *testing.T) {
	a, log := loggedArray(Options{})
	state := State{
		Length: 2, CommandWidth: Width8,
		CommandArray: []byte{0, 1, 3, 2},
		ParamArray:   []byte{1, 5, 0, 2, 0, 1},
	}
	if err := a.LoadState(state); err != nil {
		t.Fatal(err)
	}
	log.expect(t)
	want := Step{Code: 2, Params: []Value{Int(5), Bool(false), Bool(true)}}
	if got, _ := a.Get(1); !sameStep(got, want) {
		t.Errorf("by index: %v", got)
	}
	if len(log.all) != 1 || log.all[0].Step != 1 || log.all[0].Param != 1 {
		t.Errorf("warnings %v", log.all)
	}
	log.expect(t, WarnBoolean)
	s := a.Stream(1)
	if got, _ := s.Read(); !sameStep(got, want) {
		t.Errorf("by stream: %v", got)
	}
	log.expect(t, WarnBoolean)
}

// At the end of the area and before other bytes a parameter is read by
// different paths.
func TestOtherEncodingsAreReadAlikeEverywhere(t *testing.T) {
	for _, tt := range otherEncodings() {
		t.Run(tt.name, func(t *testing.T) {
			in := unhex(t, tt.in)
			a := NewArray(Options{})
			state := State{
				Length: 2, CommandWidth: Width8,
				CommandArray: []byte{1, 5, 1, 6},
				ParamArray:   bytes.Repeat(in, 2),
			}
			if err := a.LoadState(state); err != nil {
				t.Fatal(err)
			}
			checkSteps(t, a, []Step{{Code: 5, Params: []Value{tt.want}}, {Code: 6, Params: []Value{tt.want}}})
			if !bytes.Equal(a.ParamArea(), bytes.Repeat(in, 2)) {
				t.Error("loading changed the bytes")
			}
			step, _ := a.Get(0)
			a.Set(0, 5, step.Params...)
			if written := unhex(t, tt.written); !bytes.HasPrefix(a.ParamArea(), written) {
				t.Errorf("written as %x, want %x", a.ParamArea(), written)
			}
		})
	}
}

func TestStreamAllocatesNothing(t *testing.T) {
	a, _ := arrayOf(t, sevenSteps())
	s := a.Stream(0)
	s.Read()
	var step Step
	allocs := testing.AllocsPerRun(100, func() {
		s.index, s.at = 0, 0
		for s.ReadInto(&step) {
		}
		s.index, s.at = 0, 0
		for {
			if _, ok := s.Read(); !ok {
				break
			}
		}
	})
	if allocs != 0 || s.Index() != 7 {
		t.Errorf("%v allocations up to step %d, want 0 up to 7", allocs, s.Index())
	}
}

func TestDecodedValuesPointIntoTheArea(t *testing.T) {
	a, _ := arrayOf(t, []Step{{Code: 1, Params: []Value{String("abc"), BigInt(big.NewInt(5)), Ints([]int64{7})}}})
	step, _ := a.Get(0)
	kept := step.Params[0].Clone()
	copy(a.ParamArea()[1:], "xyz")
	if step.Params[0].Str() != "xyz" || kept.Str() != "abc" {
		t.Errorf("read %q, kept %q", step.Params[0].Str(), kept.Str())
	}
}
