package format

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func mustParse(t testing.TB, text string) *EditScript {
	t.Helper()
	s, err := ParseEditScript([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func edited(t testing.TB, f *File, script string, o EditOptions) (*File, *EditReport) {
	t.Helper()
	var out Buffer
	report, err := Edit(f, &out, mustParse(t, script), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
	return openBytes(t, out.Bytes()), report
}

const everyLine = `insert 100 move 1 2.5 "text" true [1,-2] {"bigint":"-5"} {"bytes":"/w=="}
insert 100:0 65535
delete 100
delete 100-102
delete 100:3
delete 100:3-7
set 100:0 x 5
set 100:0 254 {"float":"NaN"}
replace 100:1 "two words"
mark 100 kill
mark 100 "" "first blood" 18446744073709551615
unmark 100
unmark 100 kill
meta game "two words"
meta session a.b-c_1
meta seed 18446744073709551615
meta tick_rate 22.4
meta tick_rate 1000/3
meta started_at "2026-05-06T07:08:09.000001Z"
label mode "\u202e"
label {"string_base64":"/w=="} v
unlabel mode
join 100 7 Ada
join 100 7 Ada red
join 100 7 Ada "" observer
leave 101 7
rename 7 "Ada L."
`

func TestScriptIsWrittenAsItWasRead(t *testing.T) {
	if got := string(mustParse(t, everyLine).Append(nil)); got != everyLine {
		t.Errorf("written as\n%s", got)
	}
	loose := "\n# a comment\r\n\t insert  5   move  1\t2 \n  \nmark 5 \"kill\"\n"
	if got := string(mustParse(t, loose).Append(nil)); got != "insert 5 move 1 2\nmark 5 kill\n" {
		t.Errorf("written as\n%s", got)
	}
}

func TestScriptErrors(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"jump 5", `"jump" is no operation: use insert, delete,`},
		{"insert", `"" stands where the tick is due: a number from 0 to`},
		{"insert x 1", `"x" stands where the tick is due`},
		{"insert 01 1", `"01" stands where the tick is due`},
		{"insert 5move", `"move" follows without a space`},
		{"insert 5:", `stands where the step is due`},
		{"insert 5-6 move", `"-6 move" follows without a space`},
		{"insert 5 65536", `"65536" stands where the code is due: a number from 0 to 65535`},
		{"insert 5 move hello", `put a text in double quotes`},
		{"insert 5 move 1,2", `",2" follows without a space`},
		{"insert 5 move {\"float\":\"x\"}", `use NaN, Infinity or -Infinity`},
		{"insert 5 move 99999999999999999999", `write it as {"bigint"`},
		{"insert 5 move" + strings.Repeat(" 1", 256), "256 parameters, a step holds at most 255"},
		{"delete 5:3-2", "steps 3 to 2: the second is before the first"},
		{"delete 5-4", "ticks 5 to 4: the second is before the first"},
		{"delete 5 6", `"6" stands behind what delete takes`},
		{"delete 5\x00", "follows without a space"},
		{"set 5 0 1", "set needs a step: write TICK:STEP"},
		{"set 5:0 255 1", "a number from 0 to 254"},
		{"set 5:0 x", "the value is missing at the end of the line"},
		{"mark 5", "the kind of the mark is missing"},
		{"mark 5 a,b", `"a,b" stands where the kind of the mark is due: put a text in double quotes`},
		{"mark 5 " + strings.Repeat("k", MaxText+1), "has 4097 bytes, the most is 4096"},
		{"meta width 8", `meta "width" cannot be set: use one of [game build`},
		{"meta session ../x", `session id "../x" has`},
		{"meta seed -1", `"-1" stands where the seed is due`},
		{"meta tick_rate fast", "is no rate of two numbers"},
		{"meta started_at soon", "is due"},
		{"join 5 1 Ada red referee", `"referee" stands where only observer may`},
		{"leave 5 1 2", `"2" stands behind what leave takes`},
	} {
		if _, err := ParseEditScript([]byte(c.line)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %s", c.line, err, c.want)
		}
		var bad *ScriptError
		if _, err := ParseEditScript([]byte("\n# first\n" + c.line)); !errors.As(err, &bad) || bad.Line != 3 || !strings.HasPrefix(err.Error(), "line 3 of the script: ") {
			t.Errorf("%.60q on line 3: %v", c.line, err)
		}
	}
}

func TestEditRefuses(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"insert 99 move", "tick 99 is not in the replay, which has the ticks 100 to 105"},
		{"delete 100-106", "tick 106 is not in the replay"},
		{"insert 103 move", "tick 103 is missing in the replay, it lies in a gap"},
		{"insert 100 fly", `the code book names no command "fly"`},
		{"insert 100:3 move", "tick 100 has 2 steps when this line comes: insert before step 0 to 2"},
		{"delete 100:1-2", "tick 100 has no step 2: it has the steps 0 to 1"},
		{"delete 100:0\ndelete 100:1", "line 2 of the script: tick 100 has no step 1: it has the steps 0 to 0 when this line comes"},
		{"delete 101:0", "tick 101 has no step 0: it has none"},
		{"set 100:0 speed 1", `the code book names no parameter "speed" of code 1`},
		{"set 100:0 2 1", "step 0 of tick 100, code 1, has 2 parameters and no parameter 2"},
		{"unmark 100", `there is no such mark at tick 100`},
		{"unmark 101 flag", `there is no such mark at tick 101`},
		{"mark 200 kill", "tick 200 is not in the replay"},
		{"unlabel colour", `there is no label "colour"`},
		{"rename 9 Bob", "there is no player 9"},
		{"leave 101 9", "line 1 of the script: player 9 then leaves without having joined, at tick 101"},
		{"mark 100 x\njoin 101 1 Ada", "line 2 of the script: player 1 then joins twice"},
		{`insert 100 move "` + strings.Repeat("x", MaxRowBytes) + `"`, "line 1 of the script: tick 100: tick is too large"},
	} {
		f, _ := smallSession().file(t, 1)
		var out Buffer
		_, err := Edit(f, &out, mustParse(t, c.script), EditOptions{})
		var bad *ScriptError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %.300v, want %s", c.script, err, c.want)
		}
	}
}

// What is no proof any more goes: hashes and reports from the first changed
// tick on, and keyframes behind it.
func TestEditDropsWhatIsNoProof(t *testing.T) {
	for _, c := range []struct {
		script                     string
		first                      Tick
		changed                    bool
		hashes, keyframes, reports int
	}{
		{"mark 100 x\nlabel a b\nmeta build 2\nrename 1 Eve", 0, false, 0, 0, 0},
		{"set 100:0 x 300\ninsert 105 move 1\ndelete 105:0", 0, false, 0, 0, 0},
		{"delete 101-105", 102, true, 1, 1, 0},
		{"delete 100-101", 100, true, 3, 1, 1},
		{"insert 105 move", 105, true, 1, 0, 0},
		{"meta seed 42", 0, false, 0, 0, 0},
		{"meta seed 43", 100, true, 3, 2, 1},
		{"meta map other", 100, true, 3, 2, 1},
		{"leave 102 1\njoin 102 1 Ada", 102, true, 1, 1, 0},
	} {
		s := smallSession()
		s.keyframes = append(s.keyframes, Keyframe{NextTick: 105, State: []byte("later")})
		f, _ := s.file(t, 1)
		for _, keep := range []bool{false, true} {
			got, report := edited(t, f, c.script, EditOptions{KeepHashes: keep})
			checkWhole(t, got)
			if (report.FirstChanged != nil) != c.changed || c.changed && *report.FirstChanged != c.first ||
				report.Hashes != c.hashes || report.Keyframes != c.keyframes || report.Reports != c.reports {
				t.Errorf("%q: %+v", c.script, report)
			}
			if keep {
				c.hashes, c.keyframes, c.reports = 0, 0, 0
			}
			sum := got.Summary()
			if sum.Hashes != uint64(3-c.hashes) || len(sum.Keyframes) != 2-c.keyframes || sum.Reports != uint64(1-c.reports) {
				t.Errorf("%q, kept %v: %d hashes, %d keyframes, %d reports are left", c.script, keep, sum.Hashes, len(sum.Keyframes), sum.Reports)
			}
			label := sum.Meta.Labels[len(sum.Meta.Labels)-1]
			if label != (Label{LabelEditedFrom, report.Source}) || !strings.HasPrefix(label.Value, "session match-7, root "+f.Summary().Digest.String()+", ") || sum.Meta.Session != "" {
				t.Errorf("%q: the edit is recorded as %v in session %q", c.script, label, sum.Meta.Session)
			}
		}
	}
}

func TestEditOfEverythingButSteps(t *testing.T) {
	f, _ := smallSession().file(t, 1)
	got, _ := edited(t, f, `meta game g2
meta build b2
meta data d2
meta map m2
meta session s-2
meta seed 7
meta tick_rate 30
meta started_at 5
label mode casual
label new 1
mark 102 late
mark 100 early "a b" 3
unmark 101 kill
join 102 2 Bob "" observer
`, EditOptions{})
	sum := got.Summary()
	m := *sum.Meta
	m.Labels = slices.Clone(m.Labels[:len(m.Labels)-1])
	want := smallSession().meta
	want.Game, want.Build, want.Data, want.Map, want.Session, want.Seed, want.TickRate, want.StartedAt = "g2", "b2", "d2", "m2", "s-2", 7, Rate{30, 1}, 5
	want.Labels = []Label{{"mode", "casual"}, {"new", "1"}}
	if fmt.Sprint(m) != fmt.Sprint(want) {
		t.Errorf("metadata %+v, want %+v", m, want)
	}
	if got, want := fmt.Sprint(sum.Marks), "[{100 early 3 a b} {102 late 0 }]"; got != want {
		t.Errorf("marks %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(sum.Players), "[{100 1 false Ada red false} {102 2 false Bob  true} {103 1 true   false}]"; got != want {
		t.Errorf("players %s, want %s", got, want)
	}
}

func TestEditWidensCodes(t *testing.T) {
	f, _ := smallSession().file(t, 1)
	got, _ := edited(t, f, "insert 101 300 1", EditOptions{})
	ticks, err := readTicks(got.Reader())
	if err != nil || got.Summary().Meta.Width != Width16 || len(ticks[1].steps) != 1 || ticks[1].steps[0].Code != 300 || ticks[0].steps[0].Code != 1 {
		t.Errorf("%v, %v, width %d", ticks, err, got.Summary().Meta.Width)
	}
}

// randomEdit makes a line, and does to the model what it says.
func randomEdit(r *rand.Rand, s *session) string {
	i := r.IntN(len(s.ticks))
	t := &s.ticks[i]
	code := uint16(r.IntN(256))
	var params []Value
	text := ""
	for range r.IntN(4) {
		params = append(params, randomValue(r))
		text += " " + string(appendJSONValue(nil, params[len(params)-1]))
	}
	step := Step{Code: code, Params: params}
	n := len(t.steps)
	switch k := r.IntN(6); {
	case k == 0:
		t.steps = append(t.steps, step)
		return fmt.Sprintf("insert %d %d%s", t.tick, code, text)
	case k == 1:
		at := r.IntN(n + 1)
		t.steps = slices.Insert(t.steps, at, step)
		return fmt.Sprintf("insert %d:%d %d%s", t.tick, at, code, text)
	case k == 2:
		last := min(i+r.IntN(5), len(s.ticks)-1)
		for j := i; j <= last; j++ {
			s.ticks[j].steps = nil
		}
		return fmt.Sprintf("delete %d-%d", t.tick, s.ticks[last].tick)
	case n == 0:
		return "# nothing to change"
	case k == 3:
		at := r.IntN(n)
		last := at + r.IntN(n-at)
		t.steps = slices.Delete(t.steps, at, last+1)
		return fmt.Sprintf("delete %d:%d-%d", t.tick, at, last)
	case k == 4:
		at := r.IntN(n)
		t.steps[at] = step
		return fmt.Sprintf("replace %d:%d %d%s", t.tick, at, code, text)
	}
	at := r.IntN(n)
	if len(t.steps[at].Params) == 0 {
		return "# no parameter to change"
	}
	params = slices.Clone(t.steps[at].Params)
	p, v := r.IntN(len(params)), randomValue(r)
	params[p] = v
	t.steps[at].Params = params
	return fmt.Sprintf("set %d:%d %d %s", t.tick, at, p, appendJSONValue(nil, v))
}

func TestEditsAgainstAModel(t *testing.T) {
	scripts := 0
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 12))
		s := randomSession(r)
		if len(s.ticks) == 0 {
			continue
		}
		f, _ := s.file(t, 100)
		var script strings.Builder
		for range r.IntN(60) {
			fmt.Fprintln(&script, randomEdit(r, s))
		}
		for i := range s.ticks {
			for n := range s.ticks[i].steps {
				s.ticks[i].steps[n].Index = n
			}
		}
		got, report := edited(t, f, script.String(), EditOptions{KeepHashes: true})
		ticks, err := readTicks(got.Reader())
		if err != nil {
			t.Fatal(err)
		}
		if d := differs(ticks, s.ticks); d != "" {
			t.Fatalf("seed %d: %s\n%s", seed, d, script.String())
		}
		checkWhole(t, got)
		if first := firstChange(t, f, got); first != report.FirstChanged && (first == nil || report.FirstChanged == nil || *first != *report.FirstChanged) {
			t.Fatalf("seed %d: the first changed tick is %v, the report says %v", seed, first, report.FirstChanged)
		}
		scripts++
	}
	if scripts < 30 {
		t.Errorf("only %d scripts ran", scripts)
	}
}

// firstChange compares two replays tick by tick.
func firstChange(t testing.TB, a, b *File) *Tick {
	t.Helper()
	x, err := readTicks(a.Reader())
	y, err2 := readTicks(b.Reader())
	if err != nil || err2 != nil || len(x) != len(y) {
		t.Fatal(err, err2, len(x), len(y))
	}
	for i := range x {
		if !slices.EqualFunc(x[i].steps, y[i].steps, sameStep) {
			return &x[i].tick
		}
	}
	return nil
}

// FuzzEditScript holds that a script that is read is written in one form,
// which reads and writes the same.
func FuzzEditScript(f *testing.F) {
	f.Add([]byte(everyLine))
	f.Add([]byte("insert 5:1 \"m\" 1e3 -0.0 \"\\u0000\"\n#\nmeta started_at -5\n"))
	replay, _ := smallSession().file(f, 1)
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseEditScript(text)
		if err != nil {
			var bad *ScriptError
			if !errors.As(err, &bad) || bad.Line < 1 {
				t.Fatalf("%v names no line", err)
			}
			return
		}
		once := s.Append(nil)
		again, err := ParseEditScript(once)
		if err != nil {
			t.Fatalf("%v in what was written:\n%s", err, once)
		}
		if twice := again.Append(nil); !bytes.Equal(once, twice) {
			t.Fatalf("written as\n%s\nthen as\n%s", once, twice)
		}
		var out Buffer
		if _, err := Edit(replay, &out, s, EditOptions{}); err == nil {
			if _, err := openBytes(t, out.Bytes()).Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
