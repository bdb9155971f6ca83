package format

import (
	"bytes"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// warningLog collects the codes of warnings.
type warningLog struct {
	all []Warning
}

func (l *warningLog) warn(w Warning) { l.all = append(l.all, w) }

// take returns the codes since the last call.
func (l *warningLog) take() []WarningCode {
	var codes []WarningCode
	for _, w := range l.all {
		codes = append(codes, w.Code)
	}
	l.all = nil
	return codes
}

func (l *warningLog) expect(t *testing.T, want ...WarningCode) {
	t.Helper()
	if got := l.take(); !slices.Equal(got, want) {
		t.Errorf("warnings %d, want %d", got, want)
	}
}

// loggedArray is an array and the warnings it gives.
func loggedArray(o Options) (*ReplayArray, *warningLog) {
	log := &warningLog{}
	o.Warn = log.warn
	return NewArray(o), log
}

// threeSteps is (1, 10), (2, 300, "hi"), (3, true, 256n).
func threeSteps() []Step {
	return []Step{
		{Code: 1, Params: []Value{Int(10)}},
		{Code: 2, Params: []Value{Int(300), String("hi")}},
		{Code: 3, Params: []Value{Bool(true), BigInt(big.NewInt(256))}},
	}
}

// sixSteps have zero to four parameters of every type of old.
func sixSteps() []Step {
	return []Step{
		{Code: 5, Params: []Value{Int(1)}},
		{Code: 200},
		{Code: 7, Params: []Value{Bool(true), String("hello"), Float(1.5)}},
		{Code: 8, Params: []Value{BigInt(bigPower(1, 200, 1)), Int(1 << 40)}},
		{Code: 9, Params: []Value{String(strings.Repeat("x", 300)), Int(-129), Bool(false), Int(70000)}},
		{Code: 10, Params: []Value{BigInt(big.NewInt(-7))}},
	}
}

func addAll(t *testing.T, a *ReplayArray, steps []Step) {
	t.Helper()
	for i, s := range steps {
		if !a.Add(s.Code, s.Params...) {
			t.Fatalf("step %d was not added", i)
		}
	}
}

func arrayOf(t *testing.T, steps []Step) (*ReplayArray, *warningLog) {
	t.Helper()
	a, log := loggedArray(Options{})
	addAll(t, a, steps)
	return a, log
}

// snapshot copies all that an array holds, with the whole capacity.
type snapshot struct {
	commands, params []byte
	index            []uint32
	width            Width
	length           int
}

func takeSnapshot(a *ReplayArray) snapshot {
	return snapshot{
		commands: bytes.Clone(a.commands[:cap(a.commands)]),
		params:   bytes.Clone(a.params[:cap(a.params)]),
		index:    slices.Clone(a.index[:cap(a.index)]),
		width:    a.Width(),
		length:   a.Len(),
	}
}

func (s snapshot) check(t *testing.T, a *ReplayArray) {
	t.Helper()
	now := takeSnapshot(a)
	if s.length != now.length || s.width != now.width ||
		!bytes.Equal(s.commands, now.commands) || !bytes.Equal(s.params, now.params) || !slices.Equal(s.index, now.index) {
		t.Errorf("the array changed from %+v to %+v", s, now)
	}
}

func TestAddAppendsOneStep(t *testing.T) {
	a, log := loggedArray(Options{})
	if !a.Add(42, Int(100), String("a"), Float(2)) || a.Len() != 1 {
		t.Fatalf("%d steps after one add", a.Len())
	}
	checkSteps(t, a, []Step{{Code: 42, Params: []Value{Int(100), String("a"), Float(2)}}})
	log.expect(t)
}

func TestInsertMovesLaterStepsBack(t *testing.T) {
	a, log := arrayOf(t, threeSteps())
	in := Step{Code: 9, Params: []Value{String("new"), Int(1 << 20)}}
	if !a.Insert(1, in.Code, in.Params...) {
		t.Fatal("not inserted")
	}
	checkSteps(t, a, slices.Insert(threeSteps(), 1, in))
	log.expect(t)
}

func TestInsertAtTheEndsWorks(t *testing.T) {
	in := Step{Code: 9, Params: []Value{Int(5)}}
	for _, at := range []int{0, 3} {
		a, log := arrayOf(t, threeSteps())
		if !a.Insert(at, in.Code, in.Params...) {
			t.Fatalf("not inserted at %d", at)
		}
		checkSteps(t, a, slices.Insert(threeSteps(), at, in))
		log.expect(t)
	}
	a, log := arrayOf(t, nil)
	if !a.Insert(0, in.Code, in.Params...) {
		t.Fatal("not inserted into an empty array")
	}
	checkSteps(t, a, []Step{in})
	log.expect(t)
}

func TestDeleteLeavesNoHole(t *testing.T) {
	for i := range threeSteps() {
		a, log := arrayOf(t, threeSteps())
		if !a.Delete(i) {
			t.Fatalf("step %d was not deleted", i)
		}
		checkSteps(t, a, slices.Delete(threeSteps(), i, i+1))
		log.expect(t)
	}
}

func TestDeleteOfEverythingThenAdd(t *testing.T) {
	a, _ := arrayOf(t, threeSteps())
	for range 3 {
		a.Delete(0)
	}
	checkSteps(t, a, nil)
	addAll(t, a, threeSteps())
	checkSteps(t, a, threeSteps())
}

func TestSetReplacesOneStep(t *testing.T) {
	params := map[string][]Value{
		"longer":  {String("much longer than before"), Int(1 << 40)},
		"shorter": {Int(1)},
		"none":    {},
	}
	for name, p := range params {
		t.Run(name, func(t *testing.T) {
			for i := range threeSteps() {
				a, log := arrayOf(t, threeSteps())
				want := threeSteps()
				want[i] = Step{Code: 77, Params: p}
				if !a.Set(i, 77, p...) {
					t.Fatalf("step %d was not set", i)
				}
				checkSteps(t, a, want)
				log.expect(t)
			}
		})
	}
}

func TestAddAfterSetOfTheLastStepStartsAtTheNewEnd(t *testing.T) {
	one, three := []Value{Int(1)}, []Value{Int(1), Int(2), Int(3)}
	tests := []struct {
		name     string
		old, set []Value
		end      uint32
	}{
		{"longer", one, three, 8},
		{"shorter", three, one, 4},
		{"wider", one, []Value{Int(70000)}, 7},
		{"none", three, nil, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, _ := arrayOf(t, []Step{{Code: 1, Params: one}, {Code: 2, Params: tt.old}})
			a.Set(1, 2, tt.set...)
			a.Add(3, Int(9))
			if got := a.Index(); !slices.Equal(got, []uint32{0, 2, tt.end}) {
				t.Errorf("index %d, want the new step at %d", got, tt.end)
			}
			checkSteps(t, a, []Step{{Code: 1, Params: one}, {Code: 2, Params: tt.set}, {Code: 3, Params: []Value{Int(9)}}})
		})
	}
}

func TestValuesOfTheArrayItselfCanBeWrittenBack(t *testing.T) {
	steps := sixSteps()
	a, _ := arrayOf(t, steps)
	last, _ := a.Get(4)
	a.Insert(0, last.Code, last.Params...)
	want := slices.Insert(steps, 0, steps[4])
	checkSteps(t, a, want)

	first, _ := a.Get(0)
	a.Set(2, first.Code, first.Params...)
	want[2] = want[0]
	checkSteps(t, a, want)

	first, _ = a.Get(0)
	a.Add(first.Code, first.Params...)
	checkSteps(t, a, append(want, want[0]))
}

func TestOutOfRangeEditsChangeNothing(t *testing.T) {
	edits := map[string]func(*ReplayArray) bool{
		"insert at -1":       func(a *ReplayArray) bool { return a.Insert(-1, 9, Int(1)) },
		"insert at length+1": func(a *ReplayArray) bool { return a.Insert(4, 9, Int(1)) },
		"delete at -1":       func(a *ReplayArray) bool { return a.Delete(-1) },
		"delete at length":   func(a *ReplayArray) bool { return a.Delete(3) },
		"set at -1":          func(a *ReplayArray) bool { return a.Set(-1, 9, Int(1)) },
		"set at length":      func(a *ReplayArray) bool { return a.Set(3, 9, Int(1)) },
		"set with bad values": func(a *ReplayArray) bool {
			return a.Set(9, 9, Value{}, BigInt(bigPower(1, 2041, 0)))
		},
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			a, log := loggedArray(Options{StepCapacity: 20, ParamCapacity: 200})
			addAll(t, a, threeSteps())
			before, stream := takeSnapshot(a), a.Stream(0)
			if edit(a) {
				t.Error("reported as done")
			}
			log.expect(t, WarnOutOfRange)
			before.check(t, a)
			checkSteps(t, a, threeSteps())
			if stream.Expired() {
				t.Error("a refused edit expired a stream")
			}
		})
	}
}

func TestEmptyArrayHasNothingToDeleteOrSet(t *testing.T) {
	a, log := loggedArray(Options{})
	for _, i := range []int{-1, 0, 1} {
		if a.Delete(i) || a.Set(i, 1, Int(1)) {
			t.Errorf("index %d was in range", i)
		}
	}
	log.expect(t, slices.Repeat([]WarningCode{WarnOutOfRange}, 6)...)
	if a.Len() != 0 {
		t.Errorf("length is %d", a.Len())
	}
	if _, ok := a.Get(0); ok {
		t.Error("a step was read from an empty array")
	}
}

func TestMixedStepReadsBackParameterByParameter(t *testing.T) {
	params := []Value{
		Bool(true), BigInt(big.NewInt(0x0102030405060708)), Int(1 << 31), String("text"),
		Bytes([]byte{0, 1, 2}), Ints([]int64{1, 70000}), Float(math.Copysign(0, -1)), Uint(math.MaxUint64),
	}
	a, log := arrayOf(t, []Step{{Code: 6, Params: params}, {Code: 7, Params: params}})
	checkSteps(t, a, []Step{{Code: 6, Params: params}, {Code: 7, Params: params}})
	log.expect(t)
}

func TestUnsupportedParameterIsDropped(t *testing.T) {
	a, log := loggedArray(Options{})
	if !a.Add(1, Value{}) {
		t.Error("the step was not written")
	}
	if got := log.all; len(got) != 1 || got[0].Step != 0 || got[0].Param != 0 {
		t.Errorf("warnings %v", got)
	}
	log.expect(t, WarnUnsupported)
	a.Add(2, Int(1), ValueOf(nil), String("z"), ValueOf([]string{}), Bool(true))
	log.expect(t, WarnUnsupported, WarnUnsupported)
	a.Add(3, Int(20))
	checkSteps(t, a, []Step{
		{Code: 1},
		{Code: 2, Params: []Value{Int(1), String("z"), Bool(true)}},
		{Code: 3, Params: []Value{Int(20)}},
	})
	if count := a.CommandArea()[0]; count != 0 {
		t.Errorf("stored count is %d, want 0", count)
	}
}

func TestBigIntegerAtItsLimit(t *testing.T) {
	widest := BigInt(bigPower(1, 2040, -1))
	a, log := arrayOf(t, []Step{{Code: 1, Params: []Value{widest, Int(7)}}})
	log.expect(t)
	checkSteps(t, a, []Step{{Code: 1, Params: []Value{widest, Int(7)}}})

	for _, i := range []*big.Int{bigPower(1, 2040, 0), bigPower(1, 2041, 0), bigPower(1, 2048, 0), bigPower(-1, 2040, 0)} {
		a, log := loggedArray(Options{})
		a.Add(1, Int(1), BigInt(i), String("x"))
		log.expect(t, WarnBigInt)
		if a.CommandArea()[0] != 2 {
			t.Errorf("stored count is %d, want 2", a.CommandArea()[0])
		}
		a.Add(2, Int(3))
		checkSteps(t, a, []Step{{Code: 1, Params: []Value{Int(1), String("x")}}, {Code: 2, Params: []Value{Int(3)}}})
	}
}

func manyInts(n int) []Value {
	list := make([]Value, n)
	for i := range list {
		list[i] = Int(int64(i))
	}
	return list
}

func TestMoreThan255ParametersAreCut(t *testing.T) {
	writes := map[string]func(*ReplayArray, []Value){
		"add":    func(a *ReplayArray, p []Value) { a.Add(9, p...) },
		"insert": func(a *ReplayArray, p []Value) { a.Insert(0, 9, p...) },
		"set":    func(a *ReplayArray, p []Value) { a.Add(1, Int(1)); a.Set(0, 9, p...) },
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{256, 300} {
				a, log := loggedArray(Options{StepCapacity: 10, ParamCapacity: n * 10})
				write(a, manyInts(n))
				log.expect(t, WarnTooManyParams)
				a.Add(2, String("next"))
				checkSteps(t, a, []Step{{Code: 9, Params: manyInts(255)}, {Code: 2, Params: []Value{String("next")}}})
				if count := a.CommandArea()[0]; count != 255 {
					t.Errorf("stored count is %d, want 255", count)
				}
			}
		})
	}
}

func TestParametersAreCutBeforeBadOnesAreDropped(t *testing.T) {
	a, log := loggedArray(Options{})
	a.Add(9, append([]Value{{}}, manyInts(255)...)...)
	log.expect(t, WarnTooManyParams, WarnUnsupported)
	checkSteps(t, a, []Step{{Code: 9, Params: manyInts(254)}})
}

func TestEveryEditKeepsBothReadingsEqual(t *testing.T) {
	a, log := arrayOf(t, sixSteps())
	checkSteps(t, a, sixSteps())
	if !a.SetWidth(Width16) || a.Width() != Width16 {
		t.Errorf("width is %d after widening", a.Width())
	}
	checkSteps(t, a, sixSteps())

	a.Delete(0)
	checkSteps(t, a, sixSteps()[1:])
	a.Delete(2)
	want := slices.Delete(sixSteps(), 3, 4)[1:]
	checkSteps(t, a, want)
	in := Step{Code: 300, Params: []Value{String("in"), Int(2)}}
	a.Insert(2, in.Code, in.Params...)
	checkSteps(t, a, slices.Insert(want, 2, in))
	log.expect(t)
}

func TestNarrowingKeepsCodesThatFit(t *testing.T) {
	a, log := arrayOf(t, sixSteps())
	a.SetWidth(Width16)
	if !a.SetWidth(Width8) || a.Width() != Width8 {
		t.Errorf("width is %d after narrowing", a.Width())
	}
	checkSteps(t, a, sixSteps())
	log.expect(t)
}

func TestNarrowingCutsCodesAbove255(t *testing.T) {
	a, log := loggedArray(Options{Width: Width16})
	addAll(t, a, []Step{{Code: 255}, {Code: 256, Params: []Value{Int(1)}}, {Code: 0x1234}})
	if a.SetWidth(Width8) || a.Width() != Width8 {
		t.Errorf("width is %d, want 8 and false", a.Width())
	}
	if len(log.all) != 2 || log.all[1].Step != 2 || log.all[1].Command != 0x1234 {
		t.Errorf("warnings %v", log.all)
	}
	log.expect(t, WarnCodeCut, WarnCodeCut)
	want := []Step{{Code: 255}, {Code: 0, Params: []Value{Int(1)}}, {Code: 0x34}}
	checkSteps(t, a, want)
	a.SetWidth(Width16)
	checkSteps(t, a, want)
	log.expect(t)
}

func TestWidthThatIsNoneChangesNothing(t *testing.T) {
	a, _ := arrayOf(t, threeSteps())
	before := takeSnapshot(a)
	if a.SetWidth(7) || a.SetWidth(0) {
		t.Error("a width of 7 or 0 was accepted")
	}
	before.check(t, a)
	if w := NewArray(Options{Width: 7}).Width(); w != Width8 {
		t.Errorf("an array made with width 7 has %d, want 8", w)
	}
}

func TestCodeAbove255IsCutInEightBits(t *testing.T) {
	a, log := loggedArray(Options{})
	a.Add(300, Int(1))
	checkSteps(t, a, []Step{{Code: 300 & 0xff, Params: []Value{Int(1)}}})
	log.expect(t)
}

func TestGrowthMultipliersAreChecked(t *testing.T) {
	for _, m := range []float64{0.5, -1, math.NaN(), math.Inf(-1), 1} {
		a, log := loggedArray(Options{StepGrowth: m, ParamGrowth: m})
		if len(log.all) != 2 || log.all[0].Detail == log.all[1].Detail {
			t.Errorf("multiplier %v: warnings %v", m, log.all)
		}
		log.expect(t, WarnGrowth, WarnGrowth)
		addAll(t, a, fifteenSteps())
		checkSteps(t, a, fifteenSteps())
	}
	for _, m := range []float64{0, 1.0000001, 1.5, math.Inf(1)} {
		a, log := loggedArray(Options{StepGrowth: m, ParamGrowth: m, MaxSteps: 100, MaxParamBytes: 1000})
		addAll(t, a, fifteenSteps())
		checkSteps(t, a, fifteenSteps())
		log.expect(t)
	}
}

func fifteenSteps() []Step {
	var steps []Step
	for i := range 15 {
		steps = append(steps, Step{Code: uint16(i), Params: []Value{Int(int64(i) * 1000), String("s")}})
	}
	return steps
}

func TestBuffersGrowFromSmallAndFromNothing(t *testing.T) {
	for _, o := range []Options{{StepCapacity: 2, ParamCapacity: 8}, {}, {StepCapacity: -1, ParamCapacity: -1}} {
		a, log := loggedArray(o)
		addAll(t, a, fifteenSteps())
		checkSteps(t, a, fifteenSteps())
		log.expect(t)
	}
}

func TestGrowthIsByTheMultiplierUpToTheMaximum(t *testing.T) {
	a := NewArray(Options{StepCapacity: 4, StepGrowth: 3, MaxSteps: 30})
	var caps []int
	for range 30 {
		if a.Add(1); len(caps) == 0 || caps[len(caps)-1] != cap(a.index) {
			caps = append(caps, cap(a.index))
		}
	}
	if !slices.Equal(caps, []int{4, 12, 30}) {
		t.Errorf("capacities %d, want 4, 12, 30", caps)
	}
	if big := NewArray(Options{StepCapacity: math.MaxInt, ParamCapacity: math.MaxInt, MaxSteps: 10, MaxParamBytes: 20}); cap(big.index) != 10 || cap(big.params) != 20 {
		t.Errorf("capacity %d and %d, want the maxima", cap(big.index), cap(big.params))
	}
}

func TestFullCommandAreaRefusesWhole(t *testing.T) {
	a, log := loggedArray(Options{MaxSteps: 10, ParamCapacity: 100})
	for range 10 {
		a.Add(1, Int(1))
	}
	log.expect(t)
	before, stream := takeSnapshot(a), a.Stream(0)
	if a.Add(2, Int(2)) || a.Insert(3, 2, Int(2)) || a.AppendState(stateOf(Step{Code: 1})) == nil {
		t.Error("a write beyond the maximum was done")
	}
	log.expect(t, WarnFull, WarnFull, WarnFull)
	before.check(t, a)
	if stream.Expired() {
		t.Error("a refused write expired a stream")
	}
	if !a.Set(3, 5, Int(6)) || !a.Delete(0) || !a.Add(7) {
		t.Error("a write that fits was refused")
	}
}

func TestFullParameterAreaRefusesWhole(t *testing.T) {
	a, log := loggedArray(Options{MaxParamBytes: 20, StepCapacity: 10})
	addAll(t, a, []Step{{Code: 1, Params: []Value{String("0123456789")}}, {Code: 2, Params: []Value{Int(300)}}})
	before := takeSnapshot(a)
	long := String("1234567")
	if a.Add(3, Int(1), long) || a.Insert(1, 3, long) || a.Set(1, 3, long, Int(1), Int(2)) {
		t.Error("a write beyond the maximum was done")
	}
	log.expect(t, WarnFull, WarnFull, WarnFull)
	before.check(t, a)
	// Exactly to the maximum is allowed, by every path.
	if !a.Add(3, Int(1), Int(2), Int(3)) || len(a.ParamArea()) != 20 {
		t.Errorf("%d bytes used of 20", len(a.ParamArea()))
	}
	if a.Add(4, Bool(true)) || !a.Add(4) {
		t.Error("at the maximum only a step without parameters fits")
	}
	if !a.Set(0, 9, String("9876543210")) || !a.Set(0, 9, String("short")) {
		t.Error("a set that fits was refused")
	}
}

func TestDefaultMaximaHold(t *testing.T) {
	a, log := loggedArray(Options{})
	for range DefaultMaxSteps {
		a.Add(1)
	}
	if a.Add(1) || a.Len() != DefaultMaxSteps {
		t.Errorf("%d steps", a.Len())
	}
	log.expect(t, WarnFull)

	a, log = loggedArray(Options{})
	million := String(strings.Repeat("x", 1_000_000-5))
	for range 10 {
		a.Add(1, million)
	}
	log.expect(t)
	if a.Add(1, Bool(true)) || len(a.ParamArea()) != DefaultMaxParamBytes {
		t.Errorf("%d parameter bytes", len(a.ParamArea()))
	}
	log.expect(t, WarnFull)
}

func TestDisabledArrayRecordsNothing(t *testing.T) {
	a, log := loggedArray(Options{})
	a.Disable()
	if a.Enabled() || a.Add(1, Int(1)) || a.Len() != 0 {
		t.Error("a disabled array recorded")
	}
	if err := a.AppendState(stateOf(Step{Code: 1})); err != ErrDisabled {
		t.Errorf("append while disabled: %v", err)
	}
	a.Revert()
	if !a.Enabled() || !a.Add(2, Int(2)) {
		t.Error("the array does not record after revert")
	}
	a.Disable()
	if !a.Set(0, 3, Int(3)) || !a.Insert(0, 4) || !a.Delete(0) {
		t.Error("a disabled array cannot be edited")
	}
	checkSteps(t, a, []Step{{Code: 3, Params: []Value{Int(3)}}})
	log.expect(t)
}

func TestClearKeepsTheMemory(t *testing.T) {
	a, _ := arrayOf(t, sixSteps())
	stream, steps, params := a.Stream(0), cap(a.index), cap(a.params)
	a.Clear()
	if a.Len() != 0 || len(a.ParamArea()) != 0 || cap(a.index) != steps || cap(a.params) != params || !stream.Expired() {
		t.Error("not empty, or not with the same memory, or a stream is not expired")
	}
	addAll(t, a, sixSteps())
	checkSteps(t, a, sixSteps())
}

func TestAreasHandedOutAreTheArraysOwn(t *testing.T) {
	a, _ := arrayOf(t, []Step{{Code: 42, Params: []Value{Int(100)}}})
	if !bytes.Equal(a.CommandArea(), []byte{1, 42}) || !bytes.Equal(a.ParamArea(), []byte{1, 100}) {
		t.Fatalf("areas %x and %x", a.CommandArea(), a.ParamArea())
	}
	a.CommandArea()[1], a.ParamArea()[1] = 43, 101
	checkSteps(t, a, []Step{{Code: 43, Params: []Value{Int(101)}}})

	_ = append(a.ParamArea(), 0xff)
	a.Add(1, Int(5))
	checkSteps(t, a, []Step{{Code: 43, Params: []Value{Int(101)}}, {Code: 1, Params: []Value{Int(5)}}})
}

func TestAddAllocatesNothingWhereThereIsRoom(t *testing.T) {
	a := NewArray(Options{StepCapacity: 10_000, ParamCapacity: 1_000_000})
	list := []int64{1, 2, 1 << 40}
	allocs := testing.AllocsPerRun(100, func() {
		a.Add(1, Int(5), Int(300), Int(70000))
		a.Add(2, Float(1.5), Bool(true), Uint(math.MaxUint64))
		a.Add(3, String("text"), Ints(list), Number(3))
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}
