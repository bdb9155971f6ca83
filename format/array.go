package format

import (
	"encoding/binary"
	"math"
)

// What an array has where its Options do not say otherwise.
const (
	// DefaultMaxSteps is the most steps of a ReplayArray.
	DefaultMaxSteps = 1_000_000
	// DefaultMaxParamBytes is the most bytes of its parameter area.
	DefaultMaxParamBytes = 10_000_000
	// DefaultGrowth is the multiplier of both areas.
	DefaultGrowth = 2
)

// Options says how a ReplayArray is made. The zero Options are good.
type Options struct {
	// Width is the width of command codes; 0 means Width8.
	Width Width
	// StepCapacity and ParamCapacity are the steps and the parameter bytes
	// that there is room for at first. Either may be 0.
	StepCapacity, ParamCapacity int
	// StepGrowth and ParamGrowth multiply the capacity of an area that is
	// full. 0 means DefaultGrowth; any other value that is not above 1 is
	// warned of (WarnGrowth) and replaced by it.
	StepGrowth, ParamGrowth float64
	// MaxSteps and MaxParamBytes bound the array; 0 means the defaults. The
	// index holds 32-bit offsets, so MaxParamBytes above 2^32-1 means that.
	MaxSteps, MaxParamBytes int
	// Warn takes every warning; nil drops them. It must not write to the
	// array.
	Warn func(Warning)
}

// ReplayArray is a recording in memory: a command area, a parameter area and
// an index of where each step's parameters start. Its methods must not be
// called at the same time.
//
// A write is an Add, Insert, Delete, Set, SetWidth, Clear, LoadState or
// AppendState. One that is refused changes nothing; any other expires every
// stream, and may change the memory that strings, bytes, big integers and
// lists read before it refer to.
type ReplayArray struct {
	// commands holds, for every step, the parameter count and the code.
	commands []byte
	params   []byte
	index    []uint32
	width    Width
	// stride is the size of one step in commands.
	stride   int
	disabled bool
	// writes counts the writes; streams made at an earlier count are expired.
	writes uint64

	maxSteps, maxParamBytes int
	stepGrowth, paramGrowth float64
	warn                    func(Warning)
}

// NewArray makes an empty array.
func NewArray(o Options) *ReplayArray {
	a := &ReplayArray{
		width:         Width8,
		maxSteps:      orDefault(o.MaxSteps, DefaultMaxSteps),
		maxParamBytes: int(min(uint64(orDefault(o.MaxParamBytes, DefaultMaxParamBytes)), math.MaxUint32)),
		warn:          o.Warn,
	}
	if o.Width == Width16 {
		a.width = Width16
	}
	a.stride = a.width.entry()
	a.stepGrowth = a.growth(o.StepGrowth, "command area")
	a.paramGrowth = a.growth(o.ParamGrowth, "parameter area")
	steps := capacity(o.StepCapacity, a.maxSteps)
	a.commands = make([]byte, 0, steps*a.stride)
	a.index = make([]uint32, 0, steps)
	a.params = make([]byte, 0, capacity(o.ParamCapacity, a.maxParamBytes))
	return a
}

func orDefault(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}

func capacity(n, limit int) int { return max(0, min(n, limit)) }

// growth checks a multiplier.
func (a *ReplayArray) growth(multiplier float64, area string) float64 {
	switch {
	case multiplier == 0:
		return DefaultGrowth
	case multiplier > 1:
		return multiplier
	}
	a.report(Warning{Code: WarnGrowth, Step: NoStep, Detail: area})
	return DefaultGrowth
}

// report hands a warning to the array's owner.
func (a *ReplayArray) report(w Warning) {
	if a.warn != nil {
		a.warn(w)
	}
}

// Len returns the number of steps.
func (a *ReplayArray) Len() int { return len(a.index) }

// Width returns the width of command codes.
func (a *ReplayArray) Width() Width { return a.width }

// Enabled reports whether the array records; see Disable.
func (a *ReplayArray) Enabled() bool { return !a.disabled }

// Disable switches recording off: Add and AppendState add nothing. Edits of
// steps that are there still work.
func (a *ReplayArray) Disable() { a.disabled = true }

// Revert switches recording on again.
func (a *ReplayArray) Revert() { a.disabled = false }

// Clear removes every step and keeps the memory for the next ones.
func (a *ReplayArray) Clear() {
	a.commands, a.params, a.index = a.commands[:0], a.params[:0], a.index[:0]
	a.writes++
}

// CommandArea returns the used part of the command area itself, not a copy.
// It is valid until the next write.
func (a *ReplayArray) CommandArea() []byte { return a.commands[:len(a.commands):len(a.commands)] }

// ParamArea returns the used part of the parameter area itself, not a copy.
// It is valid until the next write.
func (a *ReplayArray) ParamArea() []byte { return a.params[:len(a.params):len(a.params)] }

// Index returns the index itself: for every step the offset of its first
// parameter in the parameter area. It is valid until the next write and must
// not be changed.
func (a *ReplayArray) Index() []uint32 { return a.index[:len(a.index):len(a.index)] }

// Get reads step i, whose Index is i; false where there is no such step. Any
// order is fast, but a ReadStream is made for reading on and allocates
// nothing.
func (a *ReplayArray) Get(i int) (Step, bool) {
	if i < 0 || i >= len(a.index) {
		return Step{}, false
	}
	count, code := readCommand(a.commands[i*a.stride:], a.width)
	params := make([]Value, count)
	start := min(int(a.index[i]), len(a.params))
	if _, ok := a.readParams(params, 0, a.params, start, i); !ok {
		return Step{}, false
	}
	return Step{Code: code, Index: i, Params: params}, true
}

// readCommand reads a step's parameter count and code.
func readCommand(command []byte, w Width) (count int, code uint16) {
	return int(command[0]), w.code(command)
}

// putCommand writes a step's parameter count and code; a code above 255 is
// cut in Width8.
func putCommand(command []byte, count int, code uint16, w Width) {
	command[0] = byte(count)
	if w == Width8 {
		command[1] = byte(code)
		return
	}
	binary.BigEndian.PutUint16(command[1:], code)
}

// readParams reads parameters of a step from area[at:] into params and
// returns where they end. It fails only where the area was changed from
// outside, or under an expired stream.
func (a *ReplayArray) readParams(params []Value, i int, area []byte, at, step int) (int, bool) {
	for ; i < len(params); i++ {
		n, err := ParamLength(area[at:])
		if err != nil {
			return at, false
		}
		params[i] = parseParam(area[at : at+n])
		if area[at] == typeBool && area[at+1] > 1 {
			a.report(Warning{Code: WarnBoolean, Step: step, Param: i})
		}
		at += n
	}
	return at, true
}

// readNumbers reads the integers and floats at area[at:], each with one load
// of eight bytes. It stops at any other parameter and where less than eight
// bytes follow a type byte, and returns how many it read and where they end.
func readNumbers(params []Value, area []byte, at int) (int, int) {
	for i := range params {
		if len(area)-at < maxFixedParam {
			return i, at
		}
		next := binary.BigEndian.Uint64(area[at+1:])
		switch area[at] {
		case typeInt8:
			params[i] = Int(int64(next) >> 56)
			at += 2
		case typeInt16:
			params[i] = Int(int64(next) >> 48)
			at += 3
		case typeInt32:
			params[i] = Int(int64(next) >> 32)
			at += 5
		case typeInt64, typeNegInt64:
			params[i] = integer(swapHalves(next), area[at] == typeNegInt64)
			at += 9
		case typeFloat64:
			params[i] = Float(math.Float64frombits(next))
			at += 9
		default:
			return i, at
		}
	}
	return len(params), at
}
