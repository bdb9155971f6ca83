package format

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrayVector is one golden case: operations, and what they must give.
type arrayVector struct {
	Name       string        `json:"name"`
	Width      Width         `json:"width"`
	Ops        []vectorOp    `json:"ops"`
	FinalWidth Width         `json:"finalWidth"`
	CommandHex string        `json:"commandHex"`
	ParamHex   string        `json:"paramHex"`
	Index      []uint32      `json:"index"`
	Length     int           `json:"length"`
	Decoded    []vectorStep  `json:"decoded"`
	Warnings   []WarningCode `json:"warnings"`
}

type vectorOp struct {
	Op    string `json:"op"`
	Index int    `json:"index"`
	Width Width  `json:"width"`
	// Code may not fit 16 bits: one that is cut there is cut by its caller.
	Code   int           `json:"code"`
	Params []vectorParam `json:"params"`
}

type vectorStep struct {
	Code   uint16        `json:"code"`
	Params []vectorParam `json:"params"`
}

type vectorParam struct {
	T      string `json:"t"`
	V      string `json:"v"`
	Repeat *struct {
		S string `json:"s"`
		N int    `json:"n"`
	} `json:"repeat"`
}

// readVectors reads a file of golden cases, which must hold at least least.
func readVectors(t *testing.T, name string, least int) []arrayVector {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var list []arrayVector
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	if len(list) < least {
		t.Fatalf("%s holds %d vectors, want at least %d", name, len(list), least)
	}
	return list
}

func (p vectorParam) value(t *testing.T) Value {
	t.Helper()
	switch p.T {
	case "number":
		x, err := strconv.ParseFloat(p.V, 64)
		if err != nil {
			t.Fatal(err)
		}
		return Number(x)
	case "string":
		if p.Repeat != nil {
			return String(strings.Repeat(p.Repeat.S, p.Repeat.N))
		}
		return String(p.V)
	case "boolean":
		return Bool(p.V == "true")
	case "bigint":
		i, ok := new(big.Int).SetString(p.V, 10)
		if !ok {
			t.Fatalf("no bigint: %q", p.V)
		}
		return BigInt(i)
	case "undefined", "null", "object", "array", "function", "symbol":
		return Value{}
	}
	t.Fatalf("unknown type %q", p.T)
	return Value{}
}

func vectorValues(t *testing.T, params []vectorParam) []Value {
	t.Helper()
	values := make([]Value, len(params))
	for i, p := range params {
		values[i] = p.value(t)
	}
	return values
}

func (v arrayVector) state(t *testing.T) State {
	t.Helper()
	return State{
		Length:       v.Length,
		CommandWidth: v.FinalWidth,
		CommandArray: unhex(t, v.CommandHex),
		ParamArray:   unhex(t, v.ParamHex),
	}
}

// run applies the operations to a.
func (v arrayVector) run(t *testing.T, a *ReplayArray) {
	t.Helper()
	for _, op := range v.Ops {
		params := vectorValues(t, op.Params)
		switch op.Op {
		case "add":
			a.Add(uint16(op.Code), params...)
		case "insert":
			a.Insert(op.Index, uint16(op.Code), params...)
		case "set":
			a.Set(op.Index, uint16(op.Code), params...)
		case "delete":
			a.Delete(op.Index)
		case "width":
			a.SetWidth(op.Width)
		default:
			t.Fatalf("unknown operation %q", op.Op)
		}
	}
}

func TestVectorsFromOperationsToBytes(t *testing.T) {
	for _, v := range readVectors(t, "replayarray.json", 272) {
		t.Run(v.Name, func(t *testing.T) {
			var codes []WarningCode
			a := NewArray(Options{Width: v.Width, Warn: func(w Warning) { codes = append(codes, w.Code) }})
			v.run(t, a)
			checkVector(t, v, a)
			if !slices.Equal(codes, v.Warnings) {
				t.Errorf("warnings %d, want %d", codes, v.Warnings)
			}
		})
	}
}

func TestVectorsFromBytesToValuesAndBack(t *testing.T) {
	for _, v := range readVectors(t, "replayarray.json", 272) {
		t.Run(v.Name, func(t *testing.T) {
			a := NewArray(Options{})
			if err := a.LoadState(v.state(t)); err != nil {
				t.Fatal(err)
			}
			checkVector(t, v, a)
			again := NewArray(Options{Width: v.FinalWidth})
			for i := range a.Len() {
				step, _ := a.Get(i)
				again.Add(step.Code, step.Params...)
			}
			checkVector(t, v, again)
		})
	}
}

// checkVector compares bytes, index and everything that is read, both ways.
func checkVector(t *testing.T, v arrayVector, a *ReplayArray) {
	t.Helper()
	if a.Len() != v.Length || a.Width() != v.FinalWidth {
		t.Fatalf("%d steps of width %d, want %d of %d", a.Len(), a.Width(), v.Length, v.FinalWidth)
	}
	if got := hex.EncodeToString(a.CommandArea()); got != v.CommandHex {
		t.Errorf("command area %s, want %s", got, v.CommandHex)
	}
	if got := hex.EncodeToString(a.ParamArea()); got != v.ParamHex {
		t.Errorf("parameter area %s, want %s", got, v.ParamHex)
	}
	if !slices.Equal(a.Index(), v.Index) {
		t.Errorf("index %d, want %d", a.Index(), v.Index)
	}
	want := make([]Step, len(v.Decoded))
	for i, d := range v.Decoded {
		want[i] = Step{Code: d.Code, Params: vectorValues(t, d.Params)}
	}
	checkSteps(t, a, want)
}

// checkSteps reads every step by index and by stream.
func checkSteps(t *testing.T, a *ReplayArray, want []Step) {
	t.Helper()
	if a.Len() != len(want) {
		t.Fatalf("%d steps, want %d", a.Len(), len(want))
	}
	s := a.Stream(0)
	for i, w := range want {
		got, ok := a.Get(i)
		if !ok || got.Index != i || !sameStep(got, w) {
			t.Errorf("step %d by index: %v, %v, want %v", i, got, ok, w)
		}
		got, ok = s.Read()
		if !ok || got.Index != i+1 || s.Index() != i+1 || !sameStep(got, w) {
			t.Errorf("step %d by stream: %v, %v, want %v", i, got, ok, w)
		}
	}
	if got, ok := s.Read(); ok {
		t.Errorf("a stream goes on behind the last step: %v", got)
	}
}

// sameStep compares code and parameters.
func sameStep(a, b Step) bool {
	return a.Code == b.Code && slices.EqualFunc(a.Params, b.Params, Value.Equal)
}

func TestVectorsSplitAt31BitsConvertBothWays(t *testing.T) {
	for _, v := range readVectors(t, "int64-split31.json", 20) {
		t.Run(v.Name, func(t *testing.T) {
			engine := v.state(t)
			ours, err := ConvertSplit31(engine, false)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(engine.ParamArray, unhex(t, v.ParamHex)) {
				t.Error("the conversion changed its input")
			}
			a := NewArray(Options{})
			if err := a.LoadState(ours); err != nil {
				t.Fatal(err)
			}
			// Written by this code the same operations give the same state.
			written := NewArray(Options{Width: v.Width})
			v.run(t, written)
			if !bytes.Equal(written.ParamArea(), ours.ParamArray) || !bytes.Equal(written.CommandArea(), ours.CommandArray) {
				t.Errorf("parameter area %x, want %x", ours.ParamArray, written.ParamArea())
			}
			back, err := ConvertSplit31(a.SaveState(), true)
			if err != nil {
				t.Fatal(err)
			}
			checkState(t, back, engine)
		})
	}
}

func checkState(t *testing.T, got, want State) {
	t.Helper()
	if got.Length != want.Length || got.CommandWidth != want.CommandWidth {
		t.Errorf("%d steps of width %d, want %d of %d", got.Length, got.CommandWidth, want.Length, want.CommandWidth)
	}
	if !bytes.Equal(got.CommandArray, want.CommandArray) {
		t.Errorf("command area %x, want %x", got.CommandArray, want.CommandArray)
	}
	if !bytes.Equal(got.ParamArray, want.ParamArray) {
		t.Errorf("parameter area %x, want %x", got.ParamArray, want.ParamArray)
	}
}
