package format_test

import (
	"fmt"

	"reprise/format"
)

// Steps of a recording in memory are inserted, replaced and deleted by their
// place; the areas and the index follow.
func ExampleReplayArray_Insert() {
	a := format.NewArray(format.Options{})
	a.Add(1, format.Int(10))
	a.Add(3, format.Int(30))
	a.Insert(1, 2, format.Int(20), format.String("between"))
	a.Set(2, 3, format.Int(300))
	a.Delete(0)
	for i := range a.Len() {
		step, _ := a.Get(i)
		fmt.Println(step.Index, step.Code, step.Params)
	}
	// Output:
	// 0 2 [20 "between"]
	// 1 3 [300]
}

// exampleMatch is a match of five ticks, each with a hash, that begins with a
// keyframe and has another one before tick 2.
func exampleMatch() *format.File {
	var out format.Buffer
	meta := &format.Metadata{Session: "match", Game: "example", Width: format.Width8, HashBytes: 1}
	book := &format.CodeBook{Codes: []format.CodeInfo{{Code: 1, Name: "move", Params: []format.ParamInfo{{Name: "player"}, {Name: "x"}}}}}
	w, err := format.NewWriter(&out, meta, book)
	if err != nil {
		panic(err)
	}
	for tick := range format.Tick(5) {
		if tick%2 == 0 {
			w.Keyframe(format.Keyframe{NextTick: tick, State: []byte{byte(tick)}})
		}
		w.Step(1, format.Int(7), format.Int(int64(10*tick)))
		w.EndTick()
		w.Hash(tick, []byte{byte(tick)})
	}
	if err := w.Finish(format.EndSealed, ""); err != nil {
		panic(err)
	}
	f, err := format.NewFile(&out, int64(len(out.Bytes())))
	if err != nil {
		panic(err)
	}
	return f
}

func ExampleEdit() {
	script, err := format.ParseEditScript([]byte(`
# player 7 goes elsewhere, and then says so
set 3:0 x 31
insert 3 2 "sorry"
label reviewed yes
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	source := exampleMatch()
	var out format.Buffer
	report, err := format.Edit(source, &out, script, format.EditOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d set, %d inserted, changed from tick %d on; left out: %d hashes, %d keyframe\n",
		report.Set, report.Inserted, *report.FirstChanged, report.Hashes, report.Keyframes)

	edited, err := format.NewFile(&out, int64(len(out.Bytes())))
	if err != nil {
		fmt.Println(err)
		return
	}
	o := format.DiffOptions{Ignore: []string{format.DiffMeta}}
	format.Diff(source, edited, o, func(d format.Difference) error {
		fmt.Println(d)
		return nil
	})
	// Output:
	// 1 set, 1 inserted, changed from tick 3 on; left out: 2 hashes, 1 keyframe
	// tick 3, step 0 (move), parameter 1 (x): 30, against 31
	// tick 3, step 1: nothing, against code 2("sorry")
	// tick 3, state hash: 03, against nothing
	// tick 4, state hash: 04, against nothing
	// tick 4, keyframe before the tick: 1 byte, against nothing
}

func ExampleClip() {
	var out format.Buffer
	report, err := format.Clip(exampleMatch(), &out, format.ClipOptions{From: 3, To: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("ticks %d to %d, from a keyframe: %v\n", report.First, report.Last, report.Keyframe)
	// Output:
	// ticks 2 to 4, from a keyframe: true
}
