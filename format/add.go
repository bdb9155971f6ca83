package format

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Add appends a step and reports whether it did: not while the array is
// disabled, nor at its maximum (WarnFull). Parameters beyond MaxParams are
// cut (WarnTooManyParams), then those that cannot be stored are dropped
// (WarnUnsupported, WarnBigInt), and the ones after them move up. In Width8 a
// code above 255 is cut to its low byte.
func (a *ReplayArray) Add(code uint16, params ...Value) bool {
	if a.disabled {
		return false
	}
	return a.addNumbers(code, params) || a.addAny(code, params)
}

// addNumbers is Add where there is room and every parameter is of fixed size.
// It returns false, with nothing added, where that is not so.
func (a *ReplayArray) addNumbers(code uint16, params []Value) bool {
	if len(params) > MaxParams || len(a.index) == cap(a.index) || cap(a.params)-len(a.params) < maxFixedParam*len(params) {
		return false
	}
	n, ok := putNumbers(a.params[len(a.params):cap(a.params)], params)
	if !ok {
		return false
	}
	a.pushStep(code, len(params))
	a.params = a.params[:len(a.params)+n]
	return true
}

// pushStep adds a step, whose parameters are not there yet, to the command
// area and the index, which have room for it.
func (a *ReplayArray) pushStep(code uint16, count int) {
	at, step := len(a.commands), len(a.index)
	a.commands = a.commands[:at+a.stride]
	putCommand(a.commands[at:], count, code, a.width)
	a.index = a.index[:step+1]
	a.index[step] = uint32(len(a.params))
	a.writes++
}

// putNumbers writes integers, floats and booleans into room, which has
// maxFixedParam bytes for each. It returns false for any other value.
func putNumbers(room []byte, params []Value) (int, bool) {
	n := 0
	for i := range params {
		v := &params[i]
		to := room[n : n+maxFixedParam]
		switch v.kind {
		case KindInt:
			t := intTypes[bits.Len64(significant(int64(v.num)))]
			if v.form != 0 || t == typeInt64 {
				putWideInt(to, v)
				n += 9
				continue
			}
			// One store of eight bytes writes every narrow integer: the
			// next parameter takes back what is too much.
			to[0] = t
			binary.BigEndian.PutUint64(to[1:], v.num<<(intShifts[t&3]&63))
			n += int(paramSizes[t])
		case KindFloat:
			to[0] = typeFloat64
			binary.BigEndian.PutUint64(to[1:], v.num)
			n += 9
		case KindBool:
			to[0], to[1] = typeBool, byte(v.num)
			n += 2
		default:
			return 0, false
		}
	}
	return n, true
}

func putWideInt(to []byte, v *Value) {
	magnitude, neg := v.magnitude()
	to[0] = typeInt64 + sign(neg)
	binary.BigEndian.PutUint64(to[1:], swapHalves(magnitude))
}

// addAny is Add for any parameters and for a full area.
func (a *ReplayArray) addAny(code uint16, params []Value) bool {
	step := len(a.index)
	params, count, size := a.admit(params, step)
	if !a.reserve(1, size, step) {
		return false
	}
	a.pushStep(code, count)
	a.params = appendParams(a.params, params)
	return true
}

// admit cuts params to MaxParams and measures those that can be stored: their
// number and their bytes. It reports the others.
func (a *ReplayArray) admit(params []Value, step int) (kept []Value, count, size int) {
	if len(params) > MaxParams {
		a.report(Warning{Code: WarnTooManyParams, Step: step})
		params = params[:MaxParams]
	}
	for i, v := range params {
		code := storable(v)
		if code != 0 {
			a.report(Warning{Code: code, Step: step, Param: i})
			continue
		}
		count++
		size += v.size()
	}
	return params, count, size
}

// appendParams appends the parameters that can be stored.
func appendParams(dst []byte, params []Value) []byte {
	for _, v := range params {
		if storable(v) == 0 {
			dst = appendParam(dst, v)
		}
	}
	return dst
}

// reserve makes room for more steps and parameter bytes. At the maximum it
// reports that and changes nothing.
func (a *ReplayArray) reserve(steps, bytes, step int) bool {
	if steps > a.maxSteps-len(a.index) {
		a.report(Warning{Code: WarnFull, Step: step, Detail: "command area"})
		return false
	}
	if bytes > a.maxParamBytes-len(a.params) {
		a.report(Warning{Code: WarnFull, Step: step, Detail: "parameter area"})
		return false
	}
	a.growSteps(len(a.index) + steps)
	a.growParams(len(a.params) + bytes)
	return true
}

func (a *ReplayArray) growSteps(need int) {
	if need <= cap(a.index) {
		return
	}
	n := grown(cap(a.index), need, a.maxSteps, a.stepGrowth)
	a.index = append(make([]uint32, 0, n), a.index...)
	a.commands = append(make([]byte, 0, n*a.stride), a.commands...)
}

func (a *ReplayArray) growParams(need int) {
	if need <= cap(a.params) {
		return
	}
	n := grown(cap(a.params), need, a.maxParamBytes, a.paramGrowth)
	a.params = append(make([]byte, 0, n), a.params...)
}

// grown is the next capacity of an area: multiplied, but at least what is
// needed and at most the limit.
func grown(have, need, limit int, multiplier float64) int {
	next := math.Ceil(float64(have) * multiplier)
	if !(next < float64(limit)) { // also NaN: nothing times infinity
		return limit
	}
	return max(int(next), need)
}
