package format

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestConversionLeavesOtherParametersAlone(t *testing.T) {
	s := stateOf(Step{Code: 1, Params: []Value{
		Int(5), Float(1 << 40), String(strings.Repeat("\x04", 300)), Bytes([]byte{4, 4, 4, 4, 4, 4, 4, 4, 4}),
		Ints([]int64{1 << 40}), BigInt(bigPower(1, 63, 0)), Bool(true),
	}})
	for _, toEngine := range []bool{false, true} {
		got, err := ConvertSplit31(s, toEngine)
		if err != nil {
			t.Fatal(err)
		}
		checkState(t, got, s)
	}
}

func TestConversionRefusesWhatHasNoCounterpart(t *testing.T) {
	toEngine := []Value{Int(1 << 62), Int(-1 << 62), Int(math.MaxInt64), Uint(math.MaxUint64)}
	for _, v := range toEngine {
		_, err := ConvertSplit31(stateOf(Step{Code: 1}, Step{Code: 2, Params: []Value{Int(1), v}}), true)
		if !errors.Is(err, ErrLossy) || !strings.Contains(err.Error(), "step 1: parameter at byte 2") {
			t.Errorf("%v to the engine: %v", v, err)
		}
	}
	fromEngine := []Value{Int(1 << 31), Int(1<<32 - 1), Uint(1 << 63)}
	for _, v := range fromEngine {
		_, err := ConvertSplit31(stateOf(Step{Code: 1, Params: []Value{v}}), false)
		if !errors.Is(err, ErrState) || !strings.Contains(err.Error(), "step 0") {
			t.Errorf("%v from the engine: %v", v, err)
		}
	}
}

func TestConversionIsLosslessBothWays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var params []Value
	for range 250 {
		magnitude := r.Int64N(1<<62) >> r.IntN(62)
		params = append(params, Int(magnitude), Int(-magnitude))
	}
	s := stateOf(Step{Code: 1, Params: params[:250]}, Step{Code: 2, Params: params[250:]})
	whole := copied(s)
	engine, err := ConvertSplit31(s, true)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(engine.ParamArray, s.ParamArray) {
		t.Error("the engine's bytes are the same")
	}
	back, err := ConvertSplit31(engine, false)
	if err != nil {
		t.Fatal(err)
	}
	checkState(t, back, s)
	checkState(t, s, whole)
}
