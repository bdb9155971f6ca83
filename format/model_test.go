package format

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// modelArray is a slow and plain recording: a list of steps whose parameters
// are Go values. It shares no code with ReplayArray.
type modelArray struct {
	steps    []modelStep
	width    int
	disabled bool
	maxSteps int
	maxBytes int
	warnings []WarningCode
}

type modelStep struct {
	code   int
	params []any
}

// The model's parameters are bool, float64, string, []byte, []int64 and the
// two below; nil is an unsupported value.
type modelInt struct{ *big.Int }
type modelBig struct{ *big.Int }

// toValue makes the Value of a model parameter.
func toValue(p any) Value {
	switch p := p.(type) {
	case modelInt:
		switch {
		case p.IsInt64():
			return Int(p.Int64())
		case p.IsUint64():
			return Uint(p.Uint64())
		}
		x, _ := p.Float64() // negative, and chosen so that it is exact
		return Number(x)
	case modelBig:
		return BigInt(p.Int)
	}
	return ValueOf(p)
}

func toValues(params []any) []Value {
	values := make([]Value, len(params))
	for i, p := range params {
		values[i] = toValue(p)
	}
	return values
}

// bigEndian gives the lowest n bytes of i in two's complement.
func bigEndian(i *big.Int, n int) []byte {
	m := new(big.Int).Mod(i, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	return m.FillBytes(make([]byte, n))
}

// fits tells whether i is an n-byte integer.
func fits(i *big.Int, n int) bool {
	limit := new(big.Int).Lsh(big.NewInt(1), uint(8*n-1))
	return i.Cmp(limit) < 0 && i.Cmp(new(big.Int).Neg(limit)) >= 0
}

// bytes encodes a parameter, or says which warning it gives.
func modelBytes(p any) ([]byte, WarningCode) {
	switch p := p.(type) {
	case bool:
		if p {
			return []byte{0, 1}, 0
		}
		return []byte{0, 0}, 0
	case modelInt:
		return modelIntBytes(p.Int), 0
	case float64:
		if p != p {
			return []byte{6, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0}, 0
		}
		return append([]byte{6}, bigEndian(new(big.Int).SetUint64(math.Float64bits(p)), 8)...), 0
	case modelBig:
		return modelBigBytes(p.Int)
	case string:
		if len(p) < 224 {
			return append([]byte{byte(32 + len(p))}, p...), 0
		}
		return append(append([]byte{9}, bigEndian(big.NewInt(int64(len(p))), 4)...), p...), 0
	case []byte:
		return append(append([]byte{10}, bigEndian(big.NewInt(int64(len(p))), 4)...), p...), 0
	case []int64:
		return modelListBytes(p), 0
	}
	return nil, WarnUnsupported
}

func modelIntBytes(i *big.Int) []byte {
	for typ, n := range []int{1, 2, 4} {
		if fits(i, n) {
			return append([]byte{byte(1 + typ)}, bigEndian(i, n)...)
		}
	}
	typ := byte(4)
	if i.Sign() < 0 {
		typ = 5
	}
	all := new(big.Int).Abs(i).FillBytes(make([]byte, 8))
	return slices.Concat([]byte{typ}, all[4:], all[:4])
}

func modelBigBytes(i *big.Int) ([]byte, WarningCode) {
	magnitude := i.Bytes()
	if len(magnitude) > 255 {
		return nil, WarnBigInt
	}
	if len(magnitude) == 0 {
		magnitude = []byte{0}
	}
	slices.Reverse(magnitude)
	typ := byte(7)
	if i.Sign() < 0 {
		typ = 8
	}
	return append([]byte{typ, byte(len(magnitude))}, magnitude...), 0
}

func modelListBytes(list []int64) []byte {
	width := 1
	for _, element := range list {
		for !fits(big.NewInt(element), width) {
			width *= 2
		}
	}
	b := append([]byte{11, byte(width)}, bigEndian(big.NewInt(int64(len(list))), 4)...)
	for _, element := range list {
		b = append(b, bigEndian(big.NewInt(element), width)...)
	}
	return b
}

// areas encodes the whole model.
func (m *modelArray) areas() (commands, params []byte, index []uint32) {
	for _, s := range m.steps {
		index = append(index, uint32(len(params)))
		commands = append(commands, byte(len(s.params)))
		commands = append(commands, bigEndian(big.NewInt(int64(s.code)), m.width/8)...)
		for _, p := range s.params {
			b, _ := modelBytes(p)
			params = append(params, b...)
		}
	}
	return commands, params, index
}

func (m *modelArray) paramBytes() int {
	_, params, _ := m.areas()
	return len(params)
}

// admit keeps what can be stored.
func (m *modelArray) admit(params []any) []any {
	if len(params) > 255 {
		m.warnings = append(m.warnings, WarnTooManyParams)
		params = params[:255]
	}
	kept := []any{}
	for _, p := range params {
		if _, code := modelBytes(p); code != 0 {
			m.warnings = append(m.warnings, code)
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// put writes steps in place of those from i to j.
func (m *modelArray) put(i, j int, steps ...modelStep) bool {
	next := modelArray{steps: slices.Concat(m.steps[:i], steps, m.steps[j:]), width: m.width}
	if len(next.steps) > m.maxSteps || next.paramBytes() > m.maxBytes {
		m.warnings = append(m.warnings, WarnFull)
		return false
	}
	m.steps = next.steps
	return true
}

func (m *modelArray) write(i, j, last, code int, params []any) bool {
	if i < 0 || i > last {
		m.warnings = append(m.warnings, WarnOutOfRange)
		return false
	}
	return m.put(i, j, modelStep{code & (1<<m.width - 1), m.admit(params)})
}

func (m *modelArray) setWidth(width int) {
	for i := range m.steps {
		if m.steps[i].code >= 1<<width {
			m.warnings = append(m.warnings, WarnCodeCut)
			m.steps[i].code &= 1<<width - 1
		}
	}
	m.width = width
}

// describe tells a Value apart by its kind and all of its content.
func describe(v Value) string {
	switch v.Kind() {
	case KindBool:
		return fmt.Sprintf("bool %v", v.Bool())
	case KindInt:
		return fmt.Sprintf("int %v", v.BigInt())
	case KindFloat:
		x, _ := v.Float64()
		return fmt.Sprintf("float %x", math.Float64bits(x))
	case KindBig:
		return fmt.Sprintf("big %v", v.BigInt())
	case KindString:
		return fmt.Sprintf("string %x", v.Str())
	case KindBytes:
		return fmt.Sprintf("bytes %x", v.ByteSlice())
	case KindInts:
		return fmt.Sprintf("ints %v", v.Int64s())
	}
	return "invalid"
}

// describeModel is describe of what the model holds.
func describeModel(p any) string {
	switch p := p.(type) {
	case bool:
		return fmt.Sprintf("bool %v", p)
	case modelInt:
		return fmt.Sprintf("int %v", p.Int)
	case float64:
		if p != p {
			return "float 7ff8000000000000"
		}
		return fmt.Sprintf("float %x", math.Float64bits(p))
	case modelBig:
		return fmt.Sprintf("big %v", p.Int)
	case string:
		return fmt.Sprintf("string %x", p)
	case []byte:
		return fmt.Sprintf("bytes %x", p)
	case []int64:
		return fmt.Sprintf("ints %v", append([]int64{}, p...))
	}
	return "invalid"
}

// generator makes parameters of every kind, with an eye on the borders.
type generator struct{ *rand.Rand }

func (g generator) params() []any {
	n := g.IntN(5)
	if g.IntN(100) == 0 {
		n = 250 + g.IntN(20)
	}
	list := make([]any, n)
	for i := range list {
		list[i] = g.param()
	}
	return list
}

func (g generator) param() any {
	switch g.IntN(10) {
	case 0:
		return g.IntN(2) == 0
	case 1, 2, 3:
		return g.integer()
	case 4:
		return g.float()
	case 5:
		i := g.border(g.IntN(80))
		if g.IntN(5) == 0 {
			i = g.border(2035 + g.IntN(12))
		}
		return modelBig{i}
	case 6:
		return strings.Repeat(string(rune(g.IntN(0x300))), g.IntN(4)) + strings.Repeat("s", g.IntN(2)*g.IntN(300))
	case 7:
		return []byte(strings.Repeat("\x0b", g.IntN(20)))
	case 8:
		list := make([]int64, g.IntN(6))
		for i := range list {
			list[i] = g.border(g.IntN(63)).Int64()
		}
		return list
	}
	return nil
}

// border is a number next to a power of two.
func (g generator) border(bits int) *big.Int {
	i := bigPower(1, int64(bits), int64(g.IntN(3)-1))
	if g.IntN(2) == 0 {
		i.Neg(i)
	}
	return i
}

func (g generator) integer() modelInt {
	if g.IntN(10) == 0 {
		return modelInt{big.NewInt(-1<<63).Mul(big.NewInt(-1<<53), big.NewInt(1024+int64(g.IntN(900))))}
	}
	i := g.border(g.IntN(65))
	if !i.IsInt64() && !i.IsUint64() {
		i = new(big.Int).SetUint64(math.MaxUint64)
	}
	return modelInt{i}
}

func (g generator) float() float64 {
	list := []float64{0, math.Copysign(0, -1), 1, -1.5, math.NaN(), math.Inf(1), math.Inf(-1), 5e-324, math.MaxFloat64, 1 << 40}
	return list[g.IntN(len(list))]
}

// modelRun is one random run of operations on an array and on the model.
type modelRun struct {
	generator
	t     *testing.T
	array *ReplayArray
	log   *warningLog
	model *modelArray
	// saved is an earlier state, with the model of that time.
	saved      State
	savedModel modelArray
	// stream was made when the array had been written to writes times.
	stream *ReadStream
	fresh  bool
}

func newModelRun(t *testing.T, seed uint64) *modelRun {
	r := &modelRun{generator: generator{rand.New(rand.NewPCG(seed, 31))}, t: t}
	o := Options{
		StepCapacity: r.IntN(20), ParamCapacity: r.IntN(200),
		StepGrowth: 1.01 + r.Float64(), ParamGrowth: 1.01 + r.Float64(),
		MaxSteps: 5 + r.IntN(60), MaxParamBytes: 100 + r.IntN(4000),
	}
	r.array, r.log = loggedArray(o)
	r.model = &modelArray{width: 8, maxSteps: o.MaxSteps, maxBytes: o.MaxParamBytes}
	r.save()
	r.stream = r.array.Stream(0)
	r.fresh = true
	return r
}

func (r *modelRun) save() {
	r.saved = copied(r.array.SaveState())
	r.savedModel = *r.model
	r.savedModel.steps = slices.Clone(r.model.steps)
}

// step does one random operation on both and says whether it wrote.
func (r *modelRun) step() bool {
	i, code, params := r.IntN(len(r.model.steps)+3)-1, r.IntN(1<<16), r.params()
	last := len(r.model.steps) - 1
	switch r.IntN(16) {
	case 0, 1:
		return r.same(r.array.Insert(i, uint16(code), toValues(params)...), r.model.write(i, i, last+1, code, params))
	case 2:
		if i < 0 || i > last {
			r.model.warnings = append(r.model.warnings, WarnOutOfRange)
			return r.same(r.array.Delete(i), false)
		}
		return r.same(r.array.Delete(i), r.model.put(i, i+1))
	case 3, 4:
		return r.same(r.array.Set(i, uint16(code), toValues(params)...), r.model.write(i, i+1, last, code, params))
	case 5:
		width := 8 + 8*r.IntN(2)
		r.array.SetWidth(Width(width))
		r.model.setWidth(width)
		return true
	case 6:
		r.save()
		return false
	case 7:
		return r.load()
	case 8:
		return r.append()
	case 9:
		if r.model.disabled = !r.model.disabled; r.model.disabled {
			r.array.Disable()
		} else {
			r.array.Revert()
		}
		return false
	case 10:
		if err := r.array.RebuildIndex(); err != nil {
			r.t.Error(err)
		}
		return false
	case 11:
		r.stream, r.fresh = r.array.Stream(i), true
		return false
	}
	if r.model.disabled {
		return r.same(r.array.Add(uint16(code), toValues(params)...), false)
	}
	return r.same(r.array.Add(uint16(code), toValues(params)...), r.model.write(last+1, last+1, last+1, code, params))
}

func (r *modelRun) load() bool {
	if err := r.array.LoadState(copied(r.saved)); err != nil {
		r.t.Error(err)
	}
	r.model.steps, r.model.width = slices.Clone(r.savedModel.steps), r.savedModel.width
	return true
}

func (r *modelRun) append() bool {
	err := r.array.AppendState(r.saved)
	if r.model.disabled || r.savedModel.width != r.model.width {
		return r.same(err == nil, false)
	}
	n := len(r.model.steps)
	return r.same(err == nil, r.model.put(n, n, r.savedModel.steps...))
}

func (r *modelRun) same(got, want bool) bool {
	r.t.Helper()
	if got != want {
		r.t.Errorf("done: %v, the model says %v", got, want)
	}
	return want
}

// check compares everything.
func (r *modelRun) check(wrote bool) {
	r.t.Helper()
	r.fresh = r.fresh && !wrote
	if r.stream.Expired() == r.fresh {
		r.t.Errorf("stream expired: %v, want %v", r.stream.Expired(), !r.fresh)
	}
	r.log.expect(r.t, r.model.warnings...)
	r.model.warnings = nil
	commands, params, index := r.model.areas()
	if !slices.Equal(r.array.CommandArea(), commands) || !slices.Equal(r.array.ParamArea(), params) || !slices.Equal(r.array.Index(), index) {
		r.t.Errorf("areas %x, %x, index %d; want %x, %x, %d", r.array.CommandArea(), r.array.ParamArea(), r.array.Index(), commands, params, index)
	}
	start := r.IntN(len(r.model.steps) + 1)
	s := r.array.Stream(start)
	for i := start; i < len(r.model.steps); i++ {
		got, ok := s.Read()
		r.checkStep(i, got, ok)
	}
	if _, ok := s.Read(); ok {
		r.t.Error("a stream goes on behind the last step")
	}
	if start < len(r.model.steps) {
		got, ok := r.array.Get(start)
		r.checkStep(start, got, ok)
	}
}

func (r *modelRun) checkStep(i int, got Step, ok bool) {
	r.t.Helper()
	want := r.model.steps[i]
	if !ok || int(got.Code) != want.code || len(got.Params) != len(want.params) {
		r.t.Fatalf("step %d is %v, %v, want %v", i, got, ok, want)
	}
	for k, v := range got.Params {
		if d := describeModel(want.params[k]); describe(v) != d {
			r.t.Errorf("step %d, parameter %d is %s, want %s", i, k, describe(v), d)
		}
	}
}

func TestArrayDoesWhatAPlainModelDoes(t *testing.T) {
	for seed := range uint64(60) {
		r := newModelRun(t, seed)
		for n := range 150 {
			r.check(r.step())
			if t.Failed() {
				t.Fatalf("seed %d, operation %d", seed, n)
			}
		}
	}
}
