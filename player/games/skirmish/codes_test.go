package skirmish

import (
	"math"
	"testing"

	"reprise/format"
	"reprise/player"
)

func TestCodeBookNamesEveryOperation(t *testing.T) {
	book := CodeBook()
	if len(book.Codes) != 7 {
		t.Fatalf("%d codes, want 7", len(book.Codes))
	}
	for code, name := range map[uint16]string{1: "move", 2: "attack", 3: "stop", 4: "attack-move", 5: "build", 6: "train", 7: "surrender"} {
		info := book.Lookup(code)
		if info == nil || info.Name != name || info.Passive || len(info.Params) != 5 {
			t.Fatalf("code %d is %+v, want %s with five parameters", code, info, name)
		}
		for i, want := range []string{"player", "unit", "tx", "ty", "target"} {
			if p := info.Params[i]; p.Name != want || p.Type != "int" || p.Personal {
				t.Errorf("parameter %d of %s is %+v", i, name, p)
			}
		}
	}
	book.Codes[0].Name = "changed"
	if CodeBook().Codes[0].Name != "move" {
		t.Error("two calls share memory")
	}
}

func TestCommandsSurviveSteps(t *testing.T) {
	for _, c := range []Command{
		{Op: OpMove, Player: 1, Unit: 77, TX: 3 << 16, TY: 4<<16 + 5},
		{Op: OpTrain, Player: math.MaxInt64, Unit: math.MinInt64, TX: -1, TY: 1 << 40, Target: 4},
		{Op: OpSurrender},
	} {
		got, err := ParseStep(format.Step{Code: c.Op, Params: c.AppendParams(nil)})
		if err != nil || got != c {
			t.Errorf("%+v came back as %+v, %v", c, got, err)
		}
	}
}

func TestStepsThatAreNoCommandsFail(t *testing.T) {
	good := Command{Op: OpMove, Player: 1, Unit: 1}.AppendParams(nil)
	with := func(i int, v format.Value) []format.Value {
		params := append([]format.Value(nil), good...)
		params[i] = v
		return params
	}
	g := newGame(t, 1, 2, "plains-64")
	before := g.Save(nil)
	for name, step := range map[string]format.Step{
		"code 0":               {Code: 0, Params: good},
		"code 8":               {Code: 8, Params: good},
		"code 65535":           {Code: 65535, Params: good},
		"no parameters":        {Code: OpMove},
		"four parameters":      {Code: OpMove, Params: good[:4]},
		"six parameters":       {Code: OpMove, Params: append(with(0, good[0]), good[0])},
		"a string":             {Code: OpMove, Params: with(0, format.String("1"))},
		"a float":              {Code: OpMove, Params: with(2, format.Float(1.5))},
		"a whole float":        {Code: OpMove, Params: with(2, format.Float(2))},
		"a boolean":            {Code: OpMove, Params: with(4, format.Bool(true))},
		"an integer too large": {Code: OpMove, Params: with(1, format.Uint(1<<63))},
		"the zero value":       {Code: OpMove, Params: with(3, format.Value{})},
		"a list":               {Code: OpMove, Params: with(1, format.Ints([]int64{1}))},
	} {
		result, err := g.Step(g.Tick(), step)
		if result != player.Failed || err == nil {
			t.Errorf("%s: result %d, %v; want Failed and a reason", name, result, err)
		}
	}
	if string(g.Save(nil)) != string(before) {
		t.Error("a failed step changed the state")
	}
}
