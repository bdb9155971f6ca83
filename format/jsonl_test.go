package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func toJSONL(t testing.TB, f *File, o JSONLWriteOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteJSONL(&b, f, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func fromJSONL(t testing.TB, text string, o JSONLOptions) *File {
	t.Helper()
	var out Buffer
	if err := ReadJSONL(strings.NewReader(text), &out, o); err != nil {
		t.Fatalf("%v\n%.2000s", err, text)
	}
	return openBytes(t, out.Bytes())
}

func TestJSONLinesKeepEverything(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := randomSession(r)
		f, _ := s.file(t, 100)
		text := toJSONL(t, f, JSONLWriteOptions{})
		for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if !json.Valid([]byte(line)) || strings.ContainsFunc(line, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\u202e' || r == '\u2028' || r == '\u0085' }) {
				t.Fatalf("seed %d, line %d: %q", seed, i+1, line)
			}
		}
		back := fromJSONL(t, text, JSONLOptions{})
		s.checkFile(t, back)
		if *back.Summary().Digest != *f.Summary().Digest {
			t.Errorf("seed %d: another digest", seed)
		}
		if again := toJSONL(t, back, JSONLWriteOptions{}); again != text {
			t.Errorf("seed %d: another text", seed)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestJSONLinesText(t *testing.T) {
	f, _ := smallSession().file(t, 2)
	want := strings.Join([]string{
		`{"game":"skirmish","build":"1.2","session":"match-7","seed":42,"tick_rate":22.4,"first_tick":100,"ticks":4,"started_at":"2026-04-24T03:06:40Z","hash_bytes":4,"hash_parts":[{"name":"world","bytes":3},{"name":"random","bytes":1}],"width":8,"labels":[["mode","ranked"]],"salt":"30313233343536373839616263646566","codes":2}`,
		`{"code":1,"name":"move","params":[{"name":"player","type":"int"},{"name":"x"}]}`,
		`{"code":2,"name":"answer","passive":true}`,
		`{"keyframe":100,"state":"dGhlIHN0YXRl"}`,
		`{"join":1,"t":100,"name":"Ada","team":"red"}`,
		`{"t":100,"p":1,"c":1,"a":[300]}`,
		`{"t":100,"c":2,"a":["yes"]}`,
		`{"t":100,"hash":"a0a1a2a3","time":0}`,
		`{"mark":"kill","t":101,"player":1,"text":"first"}`,
		`{"t":101,"hash":"b0b1b2b3"}`,
		`{"t":102,"p":9,"of":101,"h":"01020304"}`,
		`{"t":102,"p":1,"c":1,"a":[1.5]}`,
		`{"t":102,"time":90000}`,
		`{"gap":[103,104],"reason":"spool full"}`,
		`{"leave":1,"t":103}`,
		`{"t":105,"hash":"c0c1c2c3"}`,
		`{"end":"sealed","next_tick":106,"ticks":4,"steps":3,"hashes":3,"reason":"over"}`,
	}, "\n") + "\n"
	if got := toJSONL(t, f, JSONLWriteOptions{}); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// corpusHeader is a first line as others write it.
const corpusHeader = `{"game":"g","source":"somewhere","licence":"MIT","tick_rate":51.595,"players":2,"ticks":10}` + "\n"

func TestJSONLinesOfOthers(t *testing.T) {
	text := corpusHeader +
		`{"t":2,"p":1,"c":7,"a":[22,-1,2583.0,"x",true]}` + "\n" +
		"\n" +
		`{ "c" : 300 , "t" : 2, "a" : [ ] }` + "\r\n" +
		`{"t":5,"hash":"00ff"}` + "\n" +
		`{"t":5,"p":3,"of":2,"h":"abcd"}` + "\n" +
		`{"t":6,"c":7,"a":[[1,2,3]]}`
	f := fromJSONL(t, text, JSONLOptions{})
	m := f.Summary().Meta
	if m.Game != "g" || m.TickRate != (Rate{10319, 200}) || m.HashBytes != 2 || m.Width != Width16 || m.Origin.Format != "jsonl" || string(m.Origin.Header)+"\n" != corpusHeader {
		t.Errorf("%+v", m)
	}
	if want := (&CodeBook{Codes: []CodeInfo{{Code: 7, Params: []ParamInfo{{Name: "player"}}}, {Code: 300}}}); !reflect.DeepEqual(f.Book(), want) {
		t.Errorf("code book %+v", f.Book())
	}
	want := make([]modelTick, 10)
	for i := range want {
		want[i].tick = Tick(i)
	}
	want[2].steps = []Step{{Code: 7, Params: []Value{Int(1), Int(22), Int(-1), Float(2583), String("x"), Bool(true)}}, {Code: 300, Index: 1}}
	want[5].hash = []byte{0, 0xff}
	want[6].steps = []Step{{Code: 7, Params: []Value{Bool(false), Ints([]int64{1, 2, 3})}}}
	ticks, err := readTicks(f.Reader())
	if d := differs(ticks, want); d != "" || err != nil {
		t.Error(d, err)
	}
	if r := readReports(t, f); len(r) != 1 || r[0].At != 5 || r[0].Of != 2 || r[0].Peer != 3 {
		t.Errorf("reports %+v", r)
	}
	if e := f.Summary().End; e.State != EndUnfinished || f.Summary().Complete() {
		t.Errorf("end %+v", e)
	}
	again := toJSONL(t, f, JSONLWriteOptions{})
	if !strings.HasPrefix(again, corpusHeader) {
		t.Errorf("the header changed: %.200s", again)
	}
	if twice := toJSONL(t, fromJSONL(t, again, JSONLOptions{}), JSONLWriteOptions{}); twice != again {
		t.Errorf("got %s\nwant %s", twice, again)
	}
}

func TestJSONLinesFromAPipe(t *testing.T) {
	text := corpusHeader + `{"t":2,"p":1,"c":7,"a":[]}` + "\n" + `{"t":3,"hash":"00ff"}` + "\n"
	var piped Buffer
	if err := ReadJSONL(iotest.OneByteReader(strings.NewReader(text)), &piped, JSONLOptions{}); err != nil {
		t.Fatal(err)
	}
	f := fromJSONL(t, text, JSONLOptions{})
	raw := make([]byte, f.Raw().Size())
	if err := readFull(f.Raw(), raw, 0); err != nil || !bytes.Equal(raw, piped.Bytes()) {
		t.Errorf("%v: another file than from a seekable source", err)
	}
}

func TestJSONLineByLine(t *testing.T) {
	f, _ := smallSession().file(t, 2)
	r, err := NewJSONLReader(strings.NewReader(toJSONL(t, f, JSONLWriteOptions{})), JSONLOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.Meta(), f.Summary().Meta) || !reflect.DeepEqual(r.Book(), f.Book()) || string(r.Salt()) != "0123456789abcdef" {
		t.Errorf("%+v %+v %q", r.Meta(), r.Book(), r.Salt())
	}
	var kinds []LineKind
	for {
		l, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, l.Kind)
		if l.Number != int64(len(kinds)+3) {
			t.Errorf("line %d has number %d", len(kinds)+3, l.Number)
		}
	}
	want := []LineKind{LineKeyframe, LinePlayer, LineStep, LineStep, LineTick, LineMark, LineTick, LineReport, LineStep, LineTick, LineGap, LinePlayer, LineTick, LineEnd}
	if !reflect.DeepEqual(kinds, want) || r.NextTick() != 106 {
		t.Errorf("%v, next tick %d", kinds, r.NextTick())
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("behind the end: %v", err)
	}
}

func TestJSONLinesThatAreRefused(t *testing.T) {
	many := strings.Repeat("1,", 300) + "1"
	for _, c := range []struct {
		name, lines, text string
		is                error
	}{
		{"a tick that goes back", `{"t":5,"c":1}` + "\n" + `{"t":4,"c":1}`, "line 3: tick 4 out of order: tick 5 is due", ErrCorrupt},
		{"a command behind its tick's hash", `{"t":5,"hash":"ab"}` + "\n" + `{"t":5,"c":1}`, "line 3: tick 5 out of order: tick 6 is due", ErrCorrupt},
		{"a tick behind the header's", `{"t":10,"c":1}`, "line 2: tick 10 lies behind the 10 ticks of the header", ErrCorrupt},
		{"a gap that goes back", `{"t":5,"c":1}` + "\n" + `{"gap":[5,6]}`, "gap from tick 5, which has steps", ErrCorrupt},
		{"a gap backwards", `{"gap":[6,5]}`, "gap from tick 6 to 5", ErrCorrupt},
		{"a second hash", `{"t":5,"hash":"ab"}` + "\n" + `{"t":5,"hash":"ab"}`, "line 3", ErrCorrupt},
		{"a hash of another width", `{"t":5,"hash":"ab"}` + "\n" + `{"t":6,"hash":"abcd"}`, "line 3: hash", ErrCorrupt},
		{"a time that goes back", `{"t":5,"time":9}` + "\n" + `{"t":6,"time":8}`, "line 3", ErrCorrupt},
		{"an unknown key", `{"t":5,"c":1,"x":1}`, `key "x": no line has it`, ErrCorrupt},
		{"a key twice", `{"t":5,"t":5,"c":1}`, `key "t" stands twice`, ErrCorrupt},
		{"keys of two kinds", `{"t":5,"c":1,"hash":"ab"}`, `key "hash" does not go with "c"`, ErrCorrupt},
		{"a missing key", `{"c":1}`, `key "t" is missing`, ErrCorrupt},
		{"no known key", `{}`, "no key says what the line is", ErrCorrupt},
		{"no object", `[1,2]`, "line 2", ErrCorrupt},
		{"text", `hello`, "line 2", ErrCorrupt},
		{"two objects", `{"t":5,"c":1}{"t":5,"c":1}`, "the end of the line", ErrCorrupt},
		{"a null", `{"t":5,"c":1,"a":[null]}`, "line 2", ErrCorrupt},
		{"a code too wide", `{"t":5,"c":65536}`, "c is 65536", ErrCorrupt},
		{"a fractional tick", `{"t":5.0,"c":1}`, "t is 5.0", ErrCorrupt},
		{"an integer too wide", `{"t":5,"c":1,"a":[18446744073709551616]}`, `write it as {"bigint":"…"}`, ErrCorrupt},
		{"a leading zero", `{"t":5,"c":1,"a":[01]}`, "line 2", ErrCorrupt},
		{"a bare point", `{"t":5,"c":1,"a":[1.]}`, "a digit is due", ErrCorrupt},
		{"a float too wide", `{"t":5,"c":1,"a":[1e999]}`, "beyond a float64", ErrCorrupt},
		{"a nested float", `{"t":5,"c":1,"a":[[1.5]]}`, "a nested array is an integer list", ErrCorrupt},
		{"a list in a list", `{"t":5,"c":1,"a":[[[1]]]}`, "a nested array is an integer list", ErrCorrupt},
		{"a lone surrogate", `{"t":5,"c":1,"a":["\ud800"]}`, "surrogate", ErrCorrupt},
		{"a wrong pair", `{"t":5,"c":1,"a":["\ud800\u0041"]}`, "surrogate", ErrCorrupt},
		{"an unknown escape", `{"t":5,"c":1,"a":["\x"]}`, "an escape is due", ErrCorrupt},
		{"a raw control byte", "{\"t\":5,\"c\":1,\"a\":[\"\x01\"]}", `write it as \u0001`, ErrCorrupt},
		{"bytes that are no UTF-8", "{\"t\":5,\"c\":1,\"a\":[\"\xff\"]}", "string_base64", ErrCorrupt},
		{"an unknown typed object", `{"t":5,"c":1,"a":[{"date":"x"}]}`, "use bigint, bytes, string_base64 or float", ErrCorrupt},
		{"a bigint too wide", `{"t":5,"c":1,"a":[{"bigint":"1` + strings.Repeat("0", 615) + `"}]}`, "below 2^2040", ErrCorrupt},
		{"a bigint in hexadecimal", `{"t":5,"c":1,"a":[{"bigint":"0x10"}]}`, "a decimal integer", ErrCorrupt},
		{"bad base64", `{"t":5,"c":1,"a":[{"bytes":"a"}]}`, "base64", ErrCorrupt},
		{"another special float", `{"t":5,"c":1,"a":[{"float":"nan"}]}`, "use NaN, Infinity or -Infinity", ErrCorrupt},
		{"too many arguments", `{"t":5,"p":1,"c":1,"a":[` + many + `]}`, "line 2 at offset 92: step cannot be stored: 302 parameters, the most is 255: pack runs of integers into lists (--pack-lists)", ErrStep},
		{"a step too large", `{"t":5,"c":1,"a":["` + strings.Repeat("x", MaxRowBytes) + `"]}`, "line 2 at offset 92", ErrTickSize},
		{"a code line behind others", `{"t":5,"c":1}` + "\n" + `{"code":5}`, "a code line stands behind other lines", ErrCorrupt},
		{"a code line without params for p", `{"code":5}` + "\n" + `{"t":5,"p":1,"c":5}`, "no first parameter named player", ErrCorrupt},
		{"a line behind the end", `{"end":"sealed","next_tick":10,"ticks":10,"steps":0,"hashes":0}` + "\n" + `{"mark":"x","t":1}`, "a line stands behind the end", ErrCorrupt},
		{"an end with other steps", `{"end":"sealed","next_tick":10,"ticks":10,"steps":1,"hashes":0}`, "steps: declared 1, recorded 0", ErrTotals},
		{"an end with other ticks", `{"end":"sealed","next_tick":10,"ticks":9,"steps":0,"hashes":0}`, "ticks: declared 9", ErrTotals},
		{"an end without counts", `{"end":"sealed"}`, "is missing", ErrCorrupt},
		{"an end that goes back", `{"t":5,"c":1}` + "\n" + `{"end":"sealed","next_tick":5,"ticks":5,"steps":1,"hashes":0}`, "the end before tick 5", ErrCorrupt},
		{"half a keyframe", `{"keyframe":0,"size":9,"offset":0,"state":"AAAA"}` + "\n" + `{"t":5,"c":1}`, "the keyframe before tick 0 is not whole", ErrCorrupt},
		{"half a keyframe at the end", `{"keyframe":0,"size":9,"offset":0,"state":"AAAA"}`, "the keyframe before tick 0 is not whole", ErrCorrupt},
		{"a keyframe's second part first", `{"keyframe":0,"size":9,"offset":3,"state":"AAAA"}`, "due is byte 0", ErrCorrupt},
		{"a leave without a join", `{"leave":1,"t":0}`, "leaves without having joined", ErrCorrupt},
		{"a report's peer", `{"t":5,"p":"x","of":1,"h":"ab"}`, "a report's peer", ErrCorrupt},
		{"a report without a hash", `{"t":5,"p":1,"of":1,"h":""}`, "line 2: h", ErrCorrupt},
		{"zeros", "\x00\x00\x00\n", "line 2", ErrCorrupt},
	} {
		var out Buffer
		err := ReadJSONL(strings.NewReader(corpusHeader+c.lines+"\n"), &out, JSONLOptions{})
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "line ") || !strings.Contains(err.Error(), "offset ") {
			t.Errorf("%s: %v, want %q", c.name, err, c.text)
		}
	}
}

func TestJSONLHeadersThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		line, text string
		is         error
	}{
		{``, "line 1 at offset 0", ErrNotReplay},
		{`{}`, "none of the keys", ErrNotReplay},
		{`{"t":1,"p":1,"c":1,"a":[]}`, "none of the keys", ErrNotReplay},
		{`{"name":"some other JSON"}`, "none of the keys", ErrNotReplay},
		{`{"game":"g"} x`, "line 1", ErrNotReplay},
		{`{"game":"g","game":"h"}`, "stands twice", ErrNotReplay},
		{`{"game":5}`, "game is not a string", ErrNotReplay},
		{`{"ticks":-1}`, "ticks is -1", ErrNotReplay},
		{`{"ticks":1e3}`, "ticks is 1e3", ErrNotReplay},
		{`{"tick_rate":"1/0"}`, "tick_rate", ErrNotReplay},
		{`{"tick_rate":1e9999999}`, "tick_rate", ErrNotReplay},
		{`{"tick_rate":0.00000000001}`, "below 2^32", ErrNotReplay},
		{`{"game":"g","session":"../x"}`, "session id", ErrNotReplay},
		{`{"game":"g","width":12}`, "width 12", ErrNotReplay},
		{`{"game":"g","hash_bytes":33}`, "hash_bytes is 33", ErrNotReplay},
		{`{"game":"g","hash_bytes":8,"hash_parts":[{"name":"x","bytes":4}]}`, "add up", ErrNotReplay},
		{`{"game":"g","started_at":"yesterday"}`, "RFC 3339", ErrNotReplay},
		{`{"game":"g","salt":"00"}`, "salt", ErrNotReplay},
		{`{"game":"g","x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "nest deeper", ErrNotReplay},
		{`{"game":"g","x":"` + strings.Repeat("x", MaxOrigin) + `"}`, "the most kept", ErrLimit},
		{`{"game":"` + strings.Repeat("x", MaxJSONLine) + `"}`, "line 1 at offset 0 has more than", ErrLimit},
		{`{"game":"g","codes":2,"hash_bytes":0}`, "code line 1 of 2 is due", ErrCorrupt},
		{`{"game":"g","codes":1,"hash_bytes":0}` + "\n" + `{"code":1,"params":[{"name":"x","type":"map"}]}`, "use one of", nil},
		{`{"game":"g","codes":2,"hash_bytes":0}` + "\n" + `{"code":1}` + "\n" + `{"code":1}`, "code 1 stands twice", nil},
	} {
		var out Buffer
		err := ReadJSONL(strings.NewReader(c.line+"\n"), &out, JSONLOptions{})
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%.80s: %.300v, want %q", c.line, err, c.text)
		}
	}
}

func TestJSONLHeaderKeys(t *testing.T) {
	f := fromJSONL(t, `{"game":"g\u00e9","build":23260,"data":"d","session":"s-1","seed":18446744073709551615,"map":{"string_base64":"/w=="},"tick_rate":"1000/3","first_tick":7,"started_at":"2026-01-02T03:04:05.000006+01:00","labels":{"b":"2","a":"1"},"env":[["os","x"],["os","y"]],"hash_bytes":0,"codes":null}`+"\n"+`{"t":8}`, JSONLOptions{Width: Width8})
	m := f.Summary().Meta
	origin := m.Origin
	m.Origin = Origin{}
	want := &Metadata{Game: "gé", Build: "23260", Data: "d", Session: "s-1", Seed: 1<<64 - 1, Map: "\xff", TickRate: Rate{1000, 3}, FirstTick: 7, StartedAt: 1767319445_000006, Width: Width8,
		Labels: []Label{{"b", "2"}, {"a", "1"}}, Env: []Label{{"os", "x"}, {"os", "y"}}}
	if !reflect.DeepEqual(m, want) || origin.Format != "jsonl" {
		t.Errorf("%+v\nwant %+v", m, want)
	}
	if s := f.Summary(); s.Ticks != 2 || s.NextTick != 9 || f.Book() != nil {
		t.Errorf("%+v", s.Totals)
	}
}

func TestPackLists(t *testing.T) {
	args := make([]string, 0, 303)
	for i := range 300 {
		args = append(args, fmt.Sprint(i*1000))
	}
	args = append(args, `"end"`, "7", "1.5")
	line := `{"t":1,"p":4,"c":9,"a":[` + strings.Join(args, ",") + `]}`
	short := `{"t":1,"p":4,"c":9,"a":[1,2,3]}`
	f := fromJSONL(t, corpusHeader+line+"\n"+short+"\n", JSONLOptions{PackLists: true})
	ticks, err := readTicks(f.Reader())
	if err != nil {
		t.Fatal(err)
	}
	params := ticks[1].steps[0].Params
	if len(params) != 5 || params[1].Len() != 300 || params[1].At(299) != 299000 || !params[3].Equal(Int(7)) {
		t.Errorf("%v", params)
	}
	if n := len(ticks[1].steps[1].Params); n != 4 {
		t.Errorf("a line that fits was packed: %d parameters", n)
	}
	text := strings.Split(toJSONL(t, f, JSONLWriteOptions{}), "\n")
	if got := flatten(t, text[2]); got != flatten(t, line) {
		t.Errorf("flattened %s\nwant %s", got, flatten(t, line))
	}
	var out Buffer
	hard := `{"t":1,"c":9,"a":[` + strings.Repeat(`1,"x",`, 200) + `1]}`
	if err := ReadJSONL(strings.NewReader(corpusHeader+hard), &out, JSONLOptions{PackLists: true}); !errors.Is(err, ErrStep) || !strings.Contains(err.Error(), "401 parameters, 401 with runs") {
		t.Errorf("%v", err)
	}
}

// flatten prints a command with its nested arrays spread out.
func flatten(t testing.TB, line string) string {
	t.Helper()
	var c struct {
		T, C json.Number
		P    any
		A    []any
	}
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprint(&b, c.T, " ", c.P, " ", c.C)
	for _, a := range c.A {
		list, ok := a.([]any)
		if !ok {
			list = []any{a}
		}
		for _, v := range list {
			if n, ok := v.(json.Number); ok && strings.ContainsAny(n.String(), ".eE") {
				x, err := n.Float64()
				if err != nil {
					t.Fatal(err)
				}
				v = x
			}
			fmt.Fprintf(&b, " %T:%v", v, v)
		}
	}
	return b.String()
}

func TestPartOfAReplayAsJSONLines(t *testing.T) {
	s := randomSession(rand.New(rand.NewPCG(3, 8)))
	for len(s.ticks) < 900 || len(s.gaps) == 0 || s.gaps[0].First == s.meta.FirstTick {
		s = randomSession(rand.New(rand.NewPCG(uint64(len(s.ticks))+s.meta.Seed, rand.Uint64())))
	}
	f, _ := s.file(t, 64)
	first, next := s.meta.FirstTick, f.Summary().NextTick
	for _, r := range [][2]Tick{{first, first}, {first + 10, first + 20}, {first + 5, 0}, {0, first + 3}, {s.gaps[0].First - 1, s.gaps[0].First}, {s.gaps[0].Last, s.gaps[0].Last + 1}, {next + 5, 0}} {
		o := JSONLWriteOptions{From: r[0]}
		if r[1] != 0 {
			o.To = &r[1]
		}
		part := fromJSONL(t, toJSONL(t, f, o), JSONLOptions{})
		var want []modelTick
		for _, tick := range s.ticks {
			if tick.tick >= r[0] && (r[1] == 0 || tick.tick <= r[1]) {
				want = append(want, tick)
			}
		}
		ticks, err := readTicks(part.Reader())
		if d := differs(ticks, want); d != "" || err != nil {
			t.Errorf("%d to %d: %s %v", r[0], r[1], d, err)
		}
		if part.Summary().Complete() {
			t.Errorf("%d to %d passes for a complete session", r[0], r[1])
		}
	}
}

func TestJSONLinesCutAtEveryByte(t *testing.T) {
	f, _ := smallSession().file(t, 2)
	text := toJSONL(t, f, JSONLWriteOptions{})
	opening := strings.Index(text, `{"keyframe"`)
	closed := []struct {
		line  string
		ticks uint64
	}{{`{"t":100,"hash"`, 1}, {`{"t":101,"hash"`, 2}, {`{"t":102,"time"`, 3}, {`{"t":105,"hash"`, 4}}
	for cut := range len(text) {
		b := []byte(text[:cut])
		file, err := NewFile(bytes.NewReader(b), int64(cut))
		if cut < opening-1 {
			if err == nil {
				t.Fatalf("cut at %d inside the opening: opens", cut)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		inside := text[cut-1] != '\n' && text[cut] != '\n'
		if (file.Torn != nil) != inside {
			t.Fatalf("cut at %d: torn %v, inside a line %v", cut, file.Torn, inside)
		}
		if !inside {
			continue
		}
		want := uint64(0)
		for _, c := range closed {
			if at := strings.Index(text, c.line); at < cut && strings.Contains(text[at:cut], "\n") {
				want = c.ticks
			}
		}
		if file.Summary().Ticks != want || file.Summary().End.State != EndUnfinished {
			t.Fatalf("cut at %d: %d ticks, want %d", cut, file.Summary().Ticks, want)
		}
	}
}

func TestHugeJumpsInJSONLines(t *testing.T) {
	for _, line := range []string{`{"t":4611686018427387903,"c":1}`, `{"t":134217728,"c":1}`, `{"end":"sealed","next_tick":4611686018427387903,"ticks":1,"steps":0,"hashes":0}`} {
		var out Buffer
		err := ReadJSONL(strings.NewReader(`{"game":"g"}`+"\n"+line+"\n"), &out, JSONLOptions{})
		if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v", line, err)
		}
	}
	f := fromJSONL(t, `{"game":"g"}`+"\n"+`{"gap":[0,4611686018427387901]}`+"\n"+`{"t":4611686018427387902,"c":1}`+"\n", JSONLOptions{})
	if s := f.Summary(); s.Ticks != 1 || s.NextTick != MaxTick {
		t.Errorf("%+v", s.Totals)
	}
}

func TestEightBitCodesInJSONLines(t *testing.T) {
	var out Buffer
	err := ReadJSONL(strings.NewReader(`{"game":"g"}`+"\n"+`{"t":1,"c":256}`), &out, JSONLOptions{Width: Width8})
	if !errors.Is(err, ErrStep) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
}

// FuzzJSONL: what is read is written so that it reads the same, and what is
// written is a fixpoint.
func FuzzJSONL(f *testing.F) {
	small, _ := smallSession().file(f, 2)
	f.Add(toJSONL(f, small, JSONLWriteOptions{}), false)
	f.Add(corpusHeader+`{"t":2,"p":1,"c":7,"a":[22,-1,2583.5e3,"x",true,[1],{"bigint":"12"}]}`+"\n", false)
	f.Add(corpusHeader+`{"t":2,"c":7}`+"\n"+`{"keyframe":3,"state":""}`, true)
	f.Fuzz(func(t *testing.T, text string, pack bool) {
		if strings.Contains(text, "0000000") {
			return // long runs of ticks take long to write
		}
		var first, second Buffer
		if err := ReadJSONL(strings.NewReader(text), &first, JSONLOptions{PackLists: pack}); err != nil && !errors.Is(err, ErrTorn) || len(first.Bytes()) == 0 {
			return
		}
		one := openBytes(t, first.Bytes())
		if one.Summary().Ticks > 1<<20 {
			return
		}
		printed := toJSONL(t, one, JSONLWriteOptions{})
		if err := ReadJSONL(strings.NewReader(printed), &second, JSONLOptions{}); err != nil {
			t.Fatalf("%v\n%q\nprinted %q", err, text, printed)
		}
		two := openBytes(t, second.Bytes())
		if again := toJSONL(t, two, JSONLWriteOptions{}); again != printed {
			t.Fatalf("%q\nprinted %q\nthen %q", text, printed, again)
		}
		if *one.Summary().Digest != *two.Summary().Digest {
			t.Fatalf("another digest\n%q", printed)
		}
	})
}

func TestCorpusComesBack(t *testing.T) {
	long(t)
	for _, path := range realData(t, "corpus/*.jsonl.zst") {
		name := filepath.Base(path)
		if strings.Contains(name, ".hashes.") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			text := string(unwrapped(t, path))
			long := strings.HasPrefix(name, "supcom")
			f, err := Open(path)
			if long {
				if !errors.Is(err, ErrStep) || !strings.Contains(err.Error(), "--pack-lists") {
					t.Errorf("opening says %v, want a remedy", err)
				}
				f = fromJSONL(t, text, JSONLOptions{PackLists: true})
			} else if err != nil {
				t.Fatal(err)
			}
			checkWhole(t, f)
			printed := toJSONL(t, f, JSONLWriteOptions{})
			checkCommands(t, text, printed)
			// The largest two would double the test's time and show no more.
			if len(text) < 3<<20 {
				if again := toJSONL(t, fromJSONL(t, printed, JSONLOptions{}), JSONLWriteOptions{}); again != printed {
					t.Error("the second text differs from the first")
				}
			}
			var header struct{ Ticks uint64 }
			if err := json.Unmarshal([]byte(text[:strings.IndexByte(text, '\n')]), &header); err != nil || f.Summary().Ticks != header.Ticks {
				t.Errorf("%v: %d ticks, the header says %d", err, f.Summary().Ticks, header.Ticks)
			}
		})
	}
}

// checkCommands compares the commands of two texts, flattened.
func checkCommands(t *testing.T, want, got string) {
	t.Helper()
	commands := func(text string) []string {
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")[1:]
		for len(lines) > 0 && strings.HasPrefix(lines[0], `{"code"`) {
			lines = lines[1:]
		}
		if n := len(lines) - 1; n >= 0 && strings.HasPrefix(lines[n], `{"end"`) {
			lines = lines[:n]
		}
		return lines
	}
	w, g := commands(want), commands(got)
	if len(w) != len(g) {
		t.Fatalf("%d lines, want %d", len(g), len(w))
	}
	for i := range w {
		if w[i] != g[i] && flatten(t, w[i]) != flatten(t, g[i]) {
			t.Fatalf("command %d: %s\nwant %s", i, g[i], w[i])
		}
	}
}

func TestCorpusHashesMergeAsReports(t *testing.T) {
	for _, path := range realData(t, "corpus/*-desynced.hashes.jsonl.zst") {
		hashes := string(unwrapped(t, path))
		commands := string(unwrapped(t, strings.Replace(path, ".hashes", "", 1)))
		f := fromJSONL(t, commands+hashes, JSONLOptions{PackLists: true})
		if want := uint64(strings.Count(hashes, "\n")); f.Summary().Reports != want {
			t.Errorf("%s: %d reports, want %d", filepath.Base(path), f.Summary().Reports, want)
		}
		checkWhole(t, f)
	}
}

func benchText(b *testing.B) string {
	s := &session{meta: Metadata{Width: Width16}, book: &CodeBook{Codes: []CodeInfo{{Code: 22, Params: []ParamInfo{{Name: "player"}}}}}, end: End{State: EndSealed}}
	for i := range Tick(50_000) {
		s.ticks = append(s.ticks, modelTick{tick: i, steps: []Step{
			{Code: 22, Params: []Value{Int(3), Int(1), Int(17661), Int(-22377)}}, {Code: 22, Params: []Value{Int(4), Float(-16603.671875), String("H0JQ")}}}})
	}
	f, _ := s.file(b, 5000)
	return toJSONL(b, f, JSONLWriteOptions{})
}

func BenchmarkReadJSONL(b *testing.B) {
	text := benchText(b)
	b.SetBytes(int64(len(text)))
	b.ResetTimer()
	for b.Loop() {
		var out Buffer
		if err := ReadJSONL(strings.NewReader(text), &out, JSONLOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*100_000/b.Elapsed().Seconds(), "commands/s")
}

func BenchmarkWriteJSONL(b *testing.B) {
	text := benchText(b)
	f := fromJSONL(b, text, JSONLOptions{})
	b.SetBytes(int64(len(text)))
	b.ResetTimer()
	for b.Loop() {
		if err := WriteJSONL(io.Discard, f, JSONLWriteOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*100_000/b.Elapsed().Seconds(), "commands/s")
}

func TestForeignHeaderThatNoLongerHolds(t *testing.T) {
	f := fromJSONL(t, corpusHeader+`{"t":2,"p":1,"c":7,"a":[]}`+"\n", JSONLOptions{})
	part := fromJSONL(t, toJSONL(t, f, JSONLWriteOptions{From: 2, To: new(Tick(3))}), JSONLOptions{})
	if s := part.Summary(); s.Ticks != 2 || s.Meta.FirstTick != 2 || string(s.Meta.Origin.Header)+"\n" != corpusHeader {
		t.Errorf("a part: %+v", s)
	}
	var out Buffer
	meta := *f.Summary().Meta
	meta.Seed = 5
	w, err := NewWriter(&out, &meta, f.Book())
	if err := errors.Join(err, w.EndTick(), w.Finish(EndSealed, "")); err != nil {
		t.Fatal(err)
	}
	text := toJSONL(t, openBytes(t, out.Bytes()), JSONLWriteOptions{})
	back := fromJSONL(t, text, JSONLOptions{})
	if s := back.Summary(); s.Meta.Seed != 5 || s.Ticks != 1 || string(s.Meta.Origin.Header)+"\n" != corpusHeader {
		t.Errorf("another seed and fewer ticks: %+v\n%s", s, text)
	}
}
