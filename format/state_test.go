package format

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// stateOf saves steps in Width8.
func stateOf(steps ...Step) State {
	a := NewArray(Options{})
	for _, s := range steps {
		a.Add(s.Code, s.Params...)
	}
	return a.SaveState()
}

// copied gives a state with memory of its own.
func copied(s State) State {
	s.CommandArray, s.ParamArray = bytes.Clone(s.CommandArray), bytes.Clone(s.ParamArray)
	return s
}

func TestSavedStateLoadsBack(t *testing.T) {
	for _, width := range []Width{Width8, Width16} {
		a, log := arrayOf(t, sixSteps())
		a.SetWidth(width)
		saved := copied(a.SaveState())
		a.Add(1, String("more"))
		a.SetWidth(Width16)
		if err := a.LoadState(saved); err != nil {
			t.Fatal(err)
		}
		if a.Width() != width {
			t.Errorf("width is %d, want %d", a.Width(), width)
		}
		checkSteps(t, a, sixSteps())
		log.expect(t)

		fresh := NewArray(Options{})
		if err := fresh.LoadState(saved); err != nil {
			t.Fatal(err)
		}
		addAll(t, fresh, threeSteps())
		checkSteps(t, fresh, append(sixSteps(), threeSteps()...))
	}
}

func TestSavedStateIsLive(t *testing.T) {
	a, _ := arrayOf(t, threeSteps())
	s := a.SaveState()
	if s.Length != 3 || s.CommandWidth != Width8 || &s.CommandArray[0] != &a.commands[0] || &s.ParamArray[0] != &a.params[0] {
		t.Error("the areas are copies")
	}
}

func TestLoadTakesTheAreasOver(t *testing.T) {
	s := copied(stateOf(threeSteps()...))
	a := NewArray(Options{})
	if err := a.LoadState(s); err != nil {
		t.Fatal(err)
	}
	if &s.CommandArray[0] != &a.commands[0] || &s.ParamArray[0] != &a.params[0] {
		t.Error("the areas were copied")
	}
	checkSteps(t, a, threeSteps())
}

func TestLoadLeavesBytesBehindTheStepsAlone(t *testing.T) {
	s := copied(stateOf(threeSteps()...))
	commands, params := len(s.CommandArray), len(s.ParamArray)
	s.CommandArray = append(s.CommandArray, bytes.Repeat([]byte{0xee}, 100)...)
	s.ParamArray = append(s.ParamArray, bytes.Repeat([]byte{31}, 100)...)
	whole := copied(s)

	trimmed, err := s.Trim()
	if err != nil || len(trimmed.CommandArray) != commands || len(trimmed.ParamArray) != params {
		t.Errorf("trimmed to %d and %d bytes, %v", len(trimmed.CommandArray), len(trimmed.ParamArray), err)
	}
	a := NewArray(Options{})
	if err := a.LoadState(s); err != nil {
		t.Fatal(err)
	}
	if len(a.CommandArea()) != commands || len(a.ParamArea()) != params {
		t.Errorf("areas of %d and %d bytes", len(a.CommandArea()), len(a.ParamArea()))
	}
	addAll(t, a, sixSteps())
	checkSteps(t, a, append(threeSteps(), sixSteps()...))
	checkState(t, s, whole)
}

func TestRebuildingTheIndexChangesNothing(t *testing.T) {
	a, _ := arrayOf(t, sixSteps())
	want, stream := slices.Clone(a.Index()), a.Stream(0)
	for range 2 {
		if err := a.RebuildIndex(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a.Index(), want) {
			t.Errorf("index %d, want %d", a.Index(), want)
		}
	}
	if stream.Expired() {
		t.Error("the stream expired")
	}
	checkSteps(t, a, sixSteps())
}

func TestRebuildingAfterAChangeInTheAreas(t *testing.T) {
	a, _ := arrayOf(t, []Step{{Code: 1, Params: []Value{Int(1), Int(2)}}, {Code: 2}})
	a.CommandArea()[0], a.CommandArea()[2] = 1, 1
	if err := a.RebuildIndex(); err != nil {
		t.Fatal(err)
	}
	want := []Step{{Code: 1, Params: []Value{Int(1)}}, {Code: 2, Params: []Value{Int(2)}}}
	checkSteps(t, a, want)

	a.CommandArea()[2] = 0
	if err := a.RebuildIndex(); !errors.Is(err, ErrState) || !strings.Contains(err.Error(), "2 bytes") {
		t.Errorf("parameters of no step: %v", err)
	}
	a.CommandArea()[2] = 2
	if err := a.RebuildIndex(); !errors.Is(err, ErrParamTruncated) {
		t.Errorf("a step without its parameters: %v", err)
	}
	if _, ok := a.Get(1); ok {
		t.Error("a step without its parameters was read")
	}
	a.CommandArea()[2] = 1
	checkSteps(t, a, want)
}

// Every damage that a load must find, with the words that say where.
func damagedStates() []struct {
	name    string
	corrupt func(*State)
	want    error
	text    string
} {
	return []struct {
		name    string
		corrupt func(*State)
		want    error
		text    string
	}{
		{"width 0", func(s *State) { s.CommandWidth = 0 }, ErrState, "width is 0"},
		{"width 12", func(s *State) { s.CommandWidth = 12 }, ErrState, "width is 12"},
		{"negative length", func(s *State) { s.Length = -1 }, ErrState, "length is -1"},
		{"length beyond the area", func(s *State) { s.Length = 7 }, ErrState, "after step 6 of 7"},
		{"huge length", func(s *State) { s.Length = math.MaxInt }, ErrState, "after step 6"},
		{"the other width", func(s *State) { s.CommandWidth = Width16 }, ErrState, "after step 4 of 6"},
		{"no areas", func(s *State) { s.CommandArray, s.ParamArray = nil, nil }, ErrState, "after step 0 of 6"},
		{"command area cut", func(s *State) { s.CommandArray = s.CommandArray[:11] }, ErrState, "after step 5 of 6"},
		{"parameter area cut", func(s *State) { s.ParamArray = s.ParamArray[:len(s.ParamArray)-1] }, ErrParamTruncated, "step 5"},
		{"no parameter area", func(s *State) { s.ParamArray = nil }, ErrParamTruncated, "step 0"},
		{"count too high", func(s *State) { s.CommandArray[10] = 2 }, ErrParamTruncated, "step 5"},
		{"reserved type", func(s *State) { s.ParamArray[2] = 12 }, ErrParamReserved, "step 2: parameter at byte 2, type 12"},
		{"reserved type 31", func(s *State) { s.ParamArray[0] = 31 }, ErrParamReserved, "step 0"},
		{"list of width 5", func(s *State) { copy(s.ParamArray, []byte{11, 5, 0, 0, 0, 0}) }, ErrParamElement, "step 0"},
		{"string beyond the area", func(s *State) { copy(s.ParamArray, []byte{9, 0xff, 0xff, 0xff, 0xff}) }, ErrParamTruncated, "step 0"},
	}
}

func TestDamagedStatesAreRefusedWhole(t *testing.T) {
	for _, tt := range damagedStates() {
		t.Run(tt.name, func(t *testing.T) {
			bad := copied(stateOf(sixSteps()...))
			tt.corrupt(&bad)
			a, log := arrayOf(t, threeSteps())
			before, stream := takeSnapshot(a), a.Stream(0)

			if err := a.LoadState(bad); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("load: %v, want %v with %q", err, tt.want, tt.text)
			}
			before.check(t, a)
			if _, err := bad.Trim(); !errors.Is(err, tt.want) {
				t.Errorf("trim: %v, want %v", err, tt.want)
			}
			if err := a.AppendState(bad); !errors.Is(err, tt.want) && !errors.Is(err, ErrState) {
				t.Errorf("append: %v, want %v", err, tt.want)
			}
			if _, err := ConvertSplit31(bad, false); !errors.Is(err, tt.want) {
				t.Errorf("convert: %v, want %v", err, tt.want)
			}
			checkSteps(t, a, threeSteps())
			if stream.Expired() {
				t.Error("a refused state expired a stream")
			}
			log.expect(t)
		})
	}
}

func TestStateCutAtEveryByteIsRefused(t *testing.T) {
	whole := stateOf(sixSteps()...)
	for n := range whole.ParamArray {
		cut := whole
		cut.ParamArray = whole.ParamArray[:n]
		if err := NewArray(Options{}).LoadState(cut); !errors.Is(err, ErrParamTruncated) {
			t.Fatalf("parameter area cut at %d: %v", n, err)
		}
	}
	for n := range whole.CommandArray {
		cut := whole
		cut.CommandArray = whole.CommandArray[:n]
		if err := NewArray(Options{}).LoadState(cut); !errors.Is(err, ErrState) {
			t.Fatalf("command area cut at %d: %v", n, err)
		}
	}
}

func TestLoadBeyondTheMaximumIsRefused(t *testing.T) {
	s := stateOf(sixSteps()...)
	for _, o := range []Options{{MaxSteps: 5}, {MaxParamBytes: len(s.ParamArray) - 1}} {
		a := NewArray(o)
		if err := a.LoadState(s); !errors.Is(err, WarnFull) || a.Len() != 0 {
			t.Errorf("%d steps, %v", a.Len(), err)
		}
	}
	exact := NewArray(Options{MaxSteps: 6, MaxParamBytes: len(s.ParamArray)})
	if err := exact.LoadState(s); err != nil {
		t.Error(err)
	}
}

func TestLoadOfNothingEmptiesTheArray(t *testing.T) {
	a, _ := arrayOf(t, threeSteps())
	if err := a.LoadState(State{CommandWidth: Width16}); err != nil {
		t.Fatal(err)
	}
	checkSteps(t, a, nil)
	addAll(t, a, sixSteps())
	checkSteps(t, a, sixSteps())
}

func TestAppendStateRebasesTheIndex(t *testing.T) {
	a, log := arrayOf(t, threeSteps())
	s := copied(stateOf(sixSteps()...))
	s.ParamArray = append(s.ParamArray, 1, 2, 3)
	s.CommandArray = append(s.CommandArray, 9)
	whole := copied(s)
	for range 3 {
		if err := a.AppendState(s); err != nil {
			t.Fatal(err)
		}
	}
	want := append(threeSteps(), slices.Repeat(sixSteps(), 3)...)
	checkSteps(t, a, want)
	index := slices.Clone(a.Index())
	if err := a.RebuildIndex(); err != nil || !slices.Equal(a.Index(), index) {
		t.Errorf("rebuilt index %d, %v, want %d", a.Index(), err, index)
	}
	checkState(t, s, whole)
	log.expect(t)

	if err := a.AppendState(a.SaveState()); err != nil {
		t.Fatal(err)
	}
	checkSteps(t, a, slices.Repeat(want, 2))
}

func TestAppendStateOfAnotherWidthIsRefused(t *testing.T) {
	a := NewArray(Options{Width: Width16})
	if err := a.AppendState(stateOf(threeSteps()...)); !errors.Is(err, ErrState) || !strings.Contains(err.Error(), "width") {
		t.Errorf("append of width 8 to width 16: %v", err)
	}
	if a.Len() != 0 {
		t.Errorf("%d steps", a.Len())
	}
}

func TestAppendStateAtTheMaximumIsRefusedWhole(t *testing.T) {
	s := stateOf(sixSteps()...)
	for _, o := range []Options{
		{MaxSteps: 11},
		{MaxParamBytes: 2*len(s.ParamArray) - 1},
	} {
		a, log := loggedArray(o)
		if err := a.AppendState(s); err != nil {
			t.Fatal(err)
		}
		stream := a.Stream(0)
		if err := a.AppendState(s); !errors.Is(err, WarnFull) {
			t.Errorf("append beyond the maximum: %v", err)
		}
		log.expect(t, WarnFull)
		if stream.Expired() {
			t.Error("a refused append expired a stream")
		}
		checkSteps(t, a, sixSteps())
	}
	exact := NewArray(Options{MaxSteps: 12, MaxParamBytes: 2 * len(s.ParamArray)})
	for range 2 {
		if err := exact.AppendState(s); err != nil {
			t.Error(err)
		}
	}
}

func TestStringsThatAreNotUTF8ComeBackByteForByte(t *testing.T) {
	steps := []Step{{Code: 1, Params: []Value{String("\xff\xc0a"), String(strings.Repeat("\x80", 300)), String("\ufeff")}}}
	a := NewArray(Options{})
	if err := a.LoadState(copied(stateOf(steps...))); err != nil {
		t.Fatal(err)
	}
	checkSteps(t, a, steps)
}
