package format_test

import (
	"fmt"
	"math/big"

	"reprise/format"
)

func ExampleReplayArray() {
	a := format.NewArray(format.Options{})
	a.Add(42, format.Int(100))
	a.Add(7, format.String("hi"), format.Bool(true))

	s := a.Stream(0)
	for {
		step, ok := s.Read()
		if !ok {
			break
		}
		fmt.Println(step.Index, step.Code, step.Params)
	}
	fmt.Printf("%x | %x | %d\n", a.CommandArea(), a.ParamArea(), a.Index())
	// Output:
	// 1 42 [100]
	// 2 7 ["hi" true]
	// 012a0207 | 01642268690001 | [0 2]
}

// The worked example of the specification.
func ExampleReplayArray_SaveState() {
	a := format.NewArray(format.Options{Width: format.Width8})
	a.Add(42, format.Int(100))
	a.Add(7, format.String("hi"), format.Bool(true), format.Float(-0.5))
	a.Add(7)
	a.Add(200, format.Int(-300), format.Int(1<<31), format.Int(-(1<<32 + 1)),
		format.BigInt(big.NewInt(-256)), format.Bytes([]byte{0xff}), format.Ints([]int64{1, -2, 300}))

	s := a.SaveState()
	fmt.Printf("%d steps of width %d\n", s.Length, s.CommandWidth)
	fmt.Printf("%x\n%x\n", s.CommandArray, s.ParamArray)
	fmt.Println(a.Index())
	a.SetWidth(format.Width16)
	fmt.Printf("%x\n", a.SaveState().CommandArray)
	// Output:
	// 4 steps of width 8
	// 012a0307000706c8
	// 0164226869000106bfe000000000000002fed4048000000000000000050000000100000001080200010a00000001ff0b02000000030001fffe012c
	// [0 2 16 16]
	// 01002a0300070000070600c8
}

func ExampleReplayArray_LoadState() {
	a := format.NewArray(format.Options{})
	err := a.LoadState(format.State{
		Length:       1,
		CommandWidth: format.Width8,
		CommandArray: []byte{1, 42},
		ParamArray:   []byte{17, 100},
	})
	fmt.Println(err)
	fmt.Println(a.Len())
	// Output:
	// not a state of a replay array: step 0: parameter at byte 0, type 17: types 12 to 31 are reserved: a newer version may read it
	// 0
}

func ExampleOptions_warn() {
	a := format.NewArray(format.Options{
		MaxSteps: 1,
		Warn:     func(w format.Warning) { fmt.Println(w) },
	})
	a.Add(1, format.Value{}, format.Int(5))
	a.Add(2)
	// Output:
	// warning 148: the value is of no parameter type and was dropped (step 0, parameter 0)
	// warning 150: the area is at its maximum; nothing was written (step 1): command area
}

func ExampleParseParam() {
	b, _ := format.AppendParam(nil, format.Ints([]int64{1, -2, 300}))
	fmt.Printf("%x\n", b)
	v, n, err := format.ParseParam(b)
	fmt.Println(v.Kind(), v, n, err)
	// Output:
	// 0b02000000030001fffe012c
	// ints [1 -2 300] 12 <nil>
}
