package format

import (
	"bytes"
	"errors"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// privateSession holds the word "secret" in every place that redaction knows.
func privateSession() *session {
	s := longSession()
	s.book = &CodeBook{Codes: []CodeInfo{
		{Code: 1, Name: "move", Params: []ParamInfo{{Name: "player", Type: "int"}, {Name: "x"}}},
		{Code: 2, Name: "chat", Params: []ParamInfo{{Name: "player"}, {Name: "text", Type: "string", Personal: true}, {Name: "to", Type: "ints"}}},
		{Code: 3, Name: "all kinds", Params: []ParamInfo{{Personal: true}, {Personal: true}, {Personal: true}, {Personal: true}, {Personal: true}, {Personal: true}, {Personal: true}}},
	}}
	s.players = []PlayerEvent{{Tick: 0, ID: 1, Name: "secret Ada", Team: "secret red"}, {Tick: 0, ID: 2, Name: "secret Bob"}, {Tick: 9, ID: 2, Leave: true}}
	s.meta.Labels = append(s.meta.Labels, Label{"host", "secret host"})
	s.meta.Env = []Label{{"machine", "secret machine"}, {"cpu", "any"}}
	s.meta.Personal = []string{"machine"}
	s.meta.Origin = Origin{Format: "jsonl", Header: []byte(`{"game":"g","players":["secret Ada"]}`)}
	chat := func(tick int, text string) {
		s.ticks[tick].steps = append(s.ticks[tick].steps, Step{Code: 2, Index: 1, Params: []Value{Int(1), String(text), Ints([]int64{2})}})
	}
	chat(10, "secret plan")
	chat(11, "")
	chat(2100, "another secret")
	s.ticks[2101].steps = append(s.ticks[2101].steps, Step{Code: 3, Index: 1, Params: []Value{Bool(true), Int(7), Float(1.5),
		BigInt(new(big.Int).SetBytes([]byte("secret"))), String("secret"), Bytes([]byte("secret")), Ints([]int64{1, 2}), Int(8)}})
	return s
}

// redactedSession is what has to be left of privateSession.
func redactedSession() *session {
	s := privateSession()
	s.salt, s.players = nil, nil
	s.meta.Labels, s.meta.Env, s.meta.Origin = s.meta.Labels[:1], s.meta.Env[1:], Origin{}
	s.ticks[10].steps[1].Params[1] = String("")
	s.ticks[2100].steps[1].Params[1] = String("")
	s.ticks[2101].steps[1].Params = []Value{Bool(false), Int(0), Float(0), BigInt(new(big.Int)), String(""), Bytes(nil), Ints(nil), Int(8)}
	return s
}

var erasedLabels = RedactOptions{Labels: []string{"host", "no such label"}}

// redact redacts a file, and checks that the copy stands every test.
func redact(t testing.TB, b []byte, o RedactOptions) (*RedactReport, []byte) {
	t.Helper()
	var out Buffer
	report, err := Redact(openBytes(t, b), o, &out)
	if err != nil {
		t.Fatal(err)
	}
	was, f := openBytes(t, b), openBytes(t, out.Bytes())
	if _, err := f.Check(); err != nil {
		t.Fatalf("the redacted copy: %v", err)
	}
	probe := File{src: f.src, size: f.size}
	if err := probe.openFinished(); err != nil {
		t.Errorf("the redacted copy's footer is not used: %v", err)
	}
	if *f.Summary().Digest != *was.Summary().Digest || !slices.Equal(f.Signatures(), was.Signatures()) {
		t.Errorf("digest or signatures are not those of the source")
	}
	var again Buffer
	if report, err := Redact(f, o, &again); err != nil || report.Redacted() || !bytes.Equal(again.Bytes(), out.Bytes()) {
		t.Errorf("redacting the redacted copy: %+v, %v", report, err)
	}
	return report, out.Bytes()
}

func TestRedactErasesWhatIsPersonal(t *testing.T) {
	_, plain := privateSession().file(t, 700)
	_, small := privateSession().file(t, 1)
	for name, b := range map[string][]byte{
		"plain": plain, "small chunks": small, "signed": signedFile(t, plain, testKey(1)), "archived": archived(t, plain, ArchiveOptions{}),
	} {
		report, red := redact(t, b, erasedLabels)
		if bytes.Contains(red, []byte("secret")) || bytes.Contains(red, testSalt) {
			t.Errorf("%s: the copy still holds a secret", name)
		}
		if report.Names != 2 || report.Params != 9 || report.Segments != 2 || !report.Header || !slices.Equal(report.Labels, []string{"host", "machine"}) || report.Marks != 0 || report.Unknown != 0 {
			t.Errorf("%s: %+v", name, report)
		}
		f := openBytes(t, red)
		redactedSession().checkFileButDigest(t, f)
		if r := f.Summary().Redaction; r == nil || !r.Players || !r.Metadata || r.Params != 9 || r.Segments != 2 || r.Marks != 0 || !r.Unproven() {
			t.Errorf("%s: the summary says %+v", name, r)
		}
	}
}

// checkFileButDigest checks that f holds the session, under another's digest.
func (s *session) checkFileButDigest(t *testing.T, f *File) {
	t.Helper()
	ticks, err := readTicks(f.Reader())
	if d := differs(ticks, s.ticks); err != nil || d != "" {
		t.Errorf("%s %v", d, err)
	}
	sum := f.Summary()
	if !bytes.Equal(AppendMeta(nil, sum.Meta), AppendMeta(nil, &s.meta)) || len(sum.Players) != len(s.players) || !slices.Equal(sum.Marks, s.marks) || !slices.Equal(sum.Gaps, s.gaps) {
		t.Errorf("the summary is %+v", sum)
	}
	s.checkKeyframes(t, f)
}

func archived(t testing.TB, b []byte, o ArchiveOptions) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := Archive(openBytes(t, b), &out, o); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestRedactSaysWhatItCannotKnow(t *testing.T) {
	s := privateSession()
	s.ticks[3].steps = append(s.ticks[3].steps, Step{Code: 9, Index: 1, Params: []Value{Int(1), String("hello")}})
	s.ticks[4].steps = append(s.ticks[4].steps, Step{Code: 2, Index: 1, Params: []Value{String("hello"), String("")}})
	_, b := s.file(t, 700)
	report, _ := redact(t, b, RedactOptions{})
	text := strings.Join(report.Left, "\n")
	for _, want := range []string{`label "mode"`, `label "host"`, `environment "cpu"`, "the texts of 3 marks", "1 text in parameter 1 of code 9,", `1 text in parameter 0 of code 2 "chat", which the code book does not call personal`,
		"2 keyframes", "the session's id", "the reasons of gaps"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not said in:\n%s", want, text)
		}
	}
}

func TestRedactEmptiesTheTextsOfMarks(t *testing.T) {
	s := privateSession()
	s.marks[1].Text = ""
	_, b := s.file(t, 700)
	report, red := redact(t, signedFile(t, b, testKey(1)), RedactOptions{MarkTexts: true})
	f := openBytes(t, red)
	if report.Marks != 2 || f.Summary().Redaction.Marks != 2 {
		t.Errorf("%+v, %+v", report, f.Summary().Redaction)
	}
	for i, m := range f.Summary().Marks {
		if m.Text != "" || m.Kind != "kill" || m.Tick != s.marks[i].Tick {
			t.Errorf("mark %d: %+v", i, m)
		}
	}
}

// TestRedactInSteps redacts a redacted copy further: what was kept stays that
// of the whole session.
func TestRedactInSteps(t *testing.T) {
	_, b := privateSession().file(t, 700)
	b = signedFile(t, b, testKey(1))
	_, first := redact(t, b, RedactOptions{})
	_, second := redact(t, first, RedactOptions{MarkTexts: true, Labels: []string{"host"}})
	_, third := redact(t, second, RedactOptions{MarkTexts: true, Labels: erasedLabels.Labels})
	_, atOnce := redact(t, b, RedactOptions{MarkTexts: true, Labels: erasedLabels.Labels})
	if !bytes.Equal(third, atOnce) {
		t.Error("three redactions do not give the same bytes as one")
	}
}

// TestRedactedAndArchived goes both ways, with hashes left out too.
func TestRedactedAndArchived(t *testing.T) {
	_, b := privateSession().file(t, 700)
	b = signedFile(t, b, testKey(1))
	_, red := redact(t, b, erasedLabels)
	thin := archived(t, red, ArchiveOptions{HashEvery: 20})
	_, thinRed := redact(t, archived(t, b, ArchiveOptions{HashEvery: 20}), erasedLabels)
	for name, file := range map[string][]byte{"redacted, then archived": thin, "archived, then redacted": thinRed} {
		f := openBytes(t, file)
		report, err := f.Check()
		if err != nil || *report.Root != *openBytes(t, b).Summary().Digest || len(report.Signatures) != 1 {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		if r := f.Summary().Redaction; r == nil || !r.Players || r.Params != 9 {
			t.Errorf("%s: %+v", name, r)
		}
		if a := f.Summary().Archive; a == nil || a.HashEvery != 20 || a.HashesLeft == 0 {
			t.Errorf("%s: %+v", name, a)
		}
		if bytes.Contains(file, []byte("secret")) {
			t.Errorf("%s: it holds a secret", name)
		}
	}
}

func TestNothingToRedact(t *testing.T) {
	s := longSession()
	s.salt, s.players = nil, nil
	_, b := s.file(t, 700)
	report, red := redact(t, b, RedactOptions{})
	if report.Redacted() || !bytes.Equal(red, b) {
		t.Errorf("%+v, %d bytes of %d", report, len(red), len(b))
	}
}

func TestRedactLeavesOutWhatItDoesNotKnow(t *testing.T) {
	s := smallSession()
	_, b := s.file(t, 1)
	end := endOf(t, b)
	extra := AppendChunk(nil, 0xB0, 0, []byte("secret"))
	b = withoutParse(slices.Concat(b[:end], extra, b[end:]), uint64(len(extra)))
	report, red := redact(t, b, RedactOptions{})
	if report.Unknown != 1 || bytes.Contains(red, []byte("secret")) {
		t.Errorf("%+v", report)
	}
}

func TestRedactOfOtherFormats(t *testing.T) {
	lines := `{"game":"g","tick_rate":20,"ticks":3,"codes":1,"host":"secret"}
{"code":2,"name":"chat","params":[{"name":"player"},{"name":"text","personal":true}]}
{"join":1,"t":0,"name":"secret"}
{"t":1,"p":1,"c":2,"a":["secret"]}
`
	report, red := redact(t, []byte(lines), RedactOptions{})
	if bytes.Contains(red, []byte("secret")) || report.Params != 1 || report.Names != 1 || !report.Header {
		t.Errorf("%+v in %q", report, red)
	}
}

func TestRedactRefusesWhatDoesNotHold(t *testing.T) {
	_, b := smallSession().file(t, 1)
	changed := withFooter(t, b, ChunkDigest, func(d []byte) []byte { d[0] ^= 1; return d })
	for name, file := range map[string][]byte{"a live file": b[:endOf(t, b)], "a torn file": b[:len(b)-5], "a changed file": changed} {
		var out Buffer
		if _, err := Redact(openBytes(t, file), RedactOptions{}, &out); err == nil || len(out.Bytes()) > 0 {
			t.Errorf("%s is redacted: %v", name, err)
		}
	}
}

// TestRedactionIsNoExcuse changes a signed session and says of the change that
// it was redacted.
func TestRedactionIsNoExcuse(t *testing.T) {
	_, b := privateSession().file(t, 700)
	b = signedFile(t, b, testKey(1))
	l, err := Leaves(openBytes(t, b))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(s *session, r *Redaction)
		says   string
	}{
		"a step where nothing is personal": {func(s *session, r *Redaction) {
			s.ticks[1500].steps[0].Params[1] = Int(99)
			r.Params, r.inputs = 1, []keptLeaf{{1, l.Segments[1].Inputs}}
		}, "the inputs of segment 1 are said to be redacted, but it has no personal parameter"},
		"another text": {func(s *session, r *Redaction) {
			s.ticks[10].steps[1].Params[1] = String("another")
			r.Params, r.inputs = 1, []keptLeaf{{0, l.Segments[0].Inputs}}
		}, "a personal parameter in tick 10, whose segment is said to be redacted"},
		"another game": {func(s *session, r *Redaction) {
			s.meta.Game = "other"
			r.meta = &l.lists[leafMeta][0]
		}, "has signed is another content, end state or metadata"},
		"another player": {func(s *session, r *Redaction) {
			s.players[0].Name = "Eve"
			r.players = &l.lists[leafPlayers][0]
		}, "players that were erased are there"},
	} {
		s, r := privateSession(), &Redaction{}
		c.change(s, r)
		_, other := s.file(t, 700)
		forged := withRedaction(t, other, r)
		tr := NewTracker()
		_, err := follow(tr, bytes.NewReader(forged), int64(len(forged)), nil)
		if err == nil {
			var out bytes.Buffer
			f := openBytes(t, append(bytes.Clone(forged), withFooterOf(t, forged)...))
			if err = f.refoot(&out, FooterOptions{Leaves: true}); err != nil {
				t.Fatal(err)
			}
			forged = signedAs(t, out.Bytes(), chunkOf(t, b, ChunkSignature))
			_, err = openBytes(t, forged).Check()
		}
		if !IsDamage(err) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// withRedaction gives the content of a file with a redaction chunk behind its
// opening.
func withRedaction(t testing.TB, b []byte, r *Redaction) []byte {
	t.Helper()
	list := places(t, b, 4)
	i := slices.IndexFunc(list, func(p place) bool { return p.typ != ChunkMeta && p.typ != ChunkBook })
	return slices.Concat(b[:list[i].start], AppendChunk(nil, ChunkRedaction, 0, appendRedaction(nil, r)), b[list[i].start:endOf(t, b)])
}

// withFooterOf makes the footer for content.
func withFooterOf(t testing.TB, content []byte) []byte {
	t.Helper()
	tr := NewTracker()
	if _, err := follow(tr, bytes.NewReader(content), int64(len(content)), nil); err != nil {
		t.Fatal(err)
	}
	footer, err := tr.Footer(bytes.NewReader(content), int64(len(content)), EndSealed, "over")
	if err != nil {
		t.Fatal(err)
	}
	return footer
}

// signedAs puts a signature chunk before the trailer.
func signedAs(t testing.TB, b, signature []byte) []byte {
	t.Helper()
	at := len(b) - trailerSize
	return slices.Concat(b[:at], AppendChunk(nil, ChunkSignature, 0, signature), b[at:])
}

// TestRedactOfAnySession compares with the model: the digest stays, and the
// ticks are those of the session whose personal parameters are empty.
func TestRedactOfAnySession(t *testing.T) {
	for seed := range uint64(60) {
		s := randomSession(rand.New(rand.NewPCG(seed, 11)))
		_, b := s.file(t, 300)
		_, red := redact(t, b, RedactOptions{MarkTexts: seed%2 == 0})
		if root := *openBytes(t, red).Summary().Digest; root != s.modelRoot() {
			t.Fatalf("seed %d: root %v, want %v", seed, root, s.modelRoot())
		}
		want := slices.Clone(s.ticks)
		for i := range want {
			want[i].steps = slices.Clone(want[i].steps)
			for j, step := range want[i].steps {
				if s.book != nil && step.Code == 3 && len(step.Params) > 1 {
					params := slices.Clone(step.Params)
					params[1] = emptyValues[params[1].Kind()]
					want[i].steps[j].Params = params
				}
			}
		}
		ticks, err := readTicks(openBytes(t, red).Reader())
		if d := differs(ticks, want); err != nil || d != "" {
			t.Fatalf("seed %d: %s %v", seed, d, err)
		}
	}
}

// TestRepairOfARedactedFile damages each chunk in turn.
func TestRepairOfARedactedFile(t *testing.T) {
	_, b := privateSession().file(t, 700)
	_, red := redact(t, signedFile(t, b, testKey(1)), RedactOptions{MarkTexts: true, Labels: erasedLabels.Labels})
	for _, p := range places(t, red, 4) {
		if p.typ == ChunkMeta {
			continue // mended, like that of every file
		}
		hurt := bytes.Clone(red)
		hurt[p.end-1] ^= 1
		var out Buffer
		report, err := Repair(bytes.NewReader(hurt), int64(len(hurt)), &out)
		if err != nil {
			t.Fatalf("%v at %d: %v", p.typ, p.start, err)
		}
		checkRepaired(t, p.typ.String(), out.Bytes(), report.Ticks)
		if whole := p.typ.ofFooter() || p.typ == ChunkEnd; report.Whole != whole {
			t.Errorf("%v at %d: whole %v", p.typ, p.start, report.Whole)
		}
	}
}

func TestRedactionChunk(t *testing.T) {
	d, e := Digest{1}, Digest{2}
	for name, r := range map[string]*Redaction{
		"everything": {players: &d, meta: &e, Params: 3, inputs: []keptLeaf{{0, d}, {7, e}}, Marks: 1, marks: []keptLeaf{{4, d}}},
		"players":    {players: &d},
		"marks":      {Marks: 2, marks: []keptLeaf{{0, d}, {1, e}}},
	} {
		body := appendRedaction(nil, r)
		got, err := parseRedaction(body)
		if err != nil || !bytes.Equal(appendRedaction(nil, got), body) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestBadRedactionChunks(t *testing.T) {
	d := bytes.Repeat([]byte{7}, 32)
	for name, c := range map[string]struct {
		body []byte
		says string
	}{
		"nothing":                 {nil, "nothing is erased"},
		"field 0":                 {[]byte{0, 0}, "field 0"},
		"field 5":                 {[]byte{5, 0}, "field 5"},
		"a field twice":           {slices.Concat([]byte{1, 32}, d, []byte{1, 32}, d), "field 1 after field 1"},
		"half a leaf":             {slices.Concat([]byte{1, 16}, d[:16]), "body ends inside the players' leaf"},
		"a byte more":             {slices.Concat([]byte{2, 33}, d, []byte{0}), "after the last field"},
		"no kept leaf":            {[]byte{3, 2, 1, 0}, "no leaf is kept"},
		"fewer than the segments": {slices.Concat([]byte{3, 68, 1, 2, 0}, d, []byte{1}, d), "1 emptied parameters in 2 segments"},
		"one segment twice":       {slices.Concat([]byte{3, 68, 2, 2, 0}, d, []byte{0}, d), "kept leaf 0 after leaf 0"},
		"leaves without end":      {slices.Concat([]byte{4, 38}, leb(1<<30), d, []byte{0}), "the number of kept leaves"},
	} {
		if _, err := parseRedaction(c.body); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// TestRedactionHasItsPlace: it stands in front, once, and no producer sends it.
func TestRedactionHasItsPlace(t *testing.T) {
	d := Digest{1}
	body := appendRedaction(nil, &Redaction{players: &d})
	marks := appendRedaction(nil, &Redaction{Marks: 1, marks: []keptLeaf{{0, d}}})
	c := everyChain()
	for after := 1; after <= len(c.chunks); after++ {
		tr := NewTracker()
		c.feed(t, tr, 0, after)
		salted, started := tr.salted, slices.ContainsFunc(c.chunks[:after], func(c Chunk) bool { return c.Type.opens() })
		if _, err := tr.Check(Chunk{Type: ChunkRedaction, Body: body}); (err == nil) != (!started && !salted) {
			t.Errorf("of players, behind chunk %d: %v", after, err)
		}
		if _, err := tr.Check(Chunk{Type: ChunkRedaction, Body: marks}); (err == nil) == started {
			t.Errorf("of marks, behind chunk %d: %v", after, err)
		}
	}
	tr := NewTracker()
	c.feed(t, tr, 0, 1)
	if err := tr.Add(Chunk{Type: ChunkRedaction, Seq: 1, Body: body}, 1<<40); !errors.Is(err, ErrOrder) {
		t.Errorf("in a producer's stream: %v", err)
	}
	if err := tr.Add(Chunk{Type: ChunkRedaction, Body: body}, 1<<40); err != nil {
		t.Fatal(err)
	}
	if err := tr.Add(Chunk{Type: ChunkRedaction, Body: body}, 1<<40); !errors.Is(err, ErrOrder) {
		t.Errorf("twice: %v", err)
	}
	if err := tr.Add(Chunk{Type: ChunkPlayers, Seq: 1, Body: AppendPlayers(nil, testSalt, nil)}, 1<<40); !errors.Is(err, errErased) {
		t.Errorf("players behind it: %v", err)
	}
}

func FuzzRedactionChunk(f *testing.F) {
	d := Digest{1}
	f.Add(appendRedaction(nil, &Redaction{players: &d, meta: &d, Params: 3, inputs: []keptLeaf{{0, d}, {7, d}}, Marks: 1, marks: []keptLeaf{{4, d}}}))
	f.Fuzz(func(t *testing.T, body []byte) {
		if r, err := parseRedaction(body); err == nil && !bytes.Equal(appendRedaction(nil, r), body) {
			t.Errorf("%x is written back as %x", body, appendRedaction(nil, r))
		}
	})
}

// TestPersonalLabelsAreNamedInTheMetadata goes from JSON lines to the redacted
// copy and back.
func TestPersonalLabelsAreNamedInTheMetadata(t *testing.T) {
	lines := `{"game":"g","tick_rate":20,"ticks":1,"labels":[["host","secret"],["mode","ranked"]],"env":[["machine","secret"]],"personal":["host","machine"],"codes":null}` + "\n"
	f := openBytes(t, []byte(lines))
	if got := f.Summary().Meta.Personal; !slices.Equal(got, []string{"host", "machine"}) {
		t.Errorf("personal keys %q", got)
	}
	report, red := redact(t, []byte(lines), RedactOptions{})
	if !slices.Equal(report.Labels, []string{"host", "machine"}) || bytes.Contains(red, []byte("secret")) {
		t.Errorf("%+v", report)
	}
	if text := toJSONL(t, openBytes(t, red), JSONLWriteOptions{}); !strings.Contains(text, `"labels":[["mode","ranked"]],"personal":["host","machine"]`) {
		t.Errorf("%s", text)
	}
}

func TestBadPersonalKeys(t *testing.T) {
	for name, keys := range map[string][]string{
		"an empty one": {""},
		"a long one":   {strings.Repeat("x", MaxText+1)},
		"too many":     strings.Split(strings.Repeat("x ", 2*MaxLabels+1), " ")[:2*MaxLabels+1],
	} {
		m := &Metadata{Width: Width8, Personal: keys}
		if err := m.Validate(); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := ParseMeta(AppendMeta(nil, m)); name != "an empty one" && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s is read: %v", name, err)
		}
	}
	if _, err := ParseMeta([]byte{metaWidth, 1, 8, metaPersonal, 0}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("an empty key that is written out: %v", err)
	}
}
