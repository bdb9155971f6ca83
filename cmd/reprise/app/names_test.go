package app

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"reprise/format"
)

// oddNames are texts that a terminal, a file system or a parser may stumble
// over.
var oddNames = []string{
	"../../x", `..\x`, "/etc/x", `C:\x`, "a/b", "CON", "nul.txt", "x.", "x ", "a:b", "-rf", "", strings.Repeat("n", format.MaxText),
	"nul\x00byte", "line\nbreak", "tab\tand\rreturn", "\x1b[31mred\x1b[0m", "c1 \u009b31m", "del\x7f", "rtl \u202egnp.exe", "isolate \u2066x\u2069",
	"mark \u200f", "joiner \u200d", "emoji \U0001F3AE", "lone \xed\xa0\x80", "invalid \xff\xfe", "cut \xe2\x82", "é", "e\u0301", "%s%n%d", "<script>&", `back\slash "quote"`,
	"bom \ufeff", "separator \u2028", "tag \U000E0041",
}

// expectShowable fails on what a terminal would act on.
func expectShowable(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s is not UTF-8: %.300q", what, text)
	}
	for i, r := range text {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029') {
			t.Errorf("%s has %U raw: %.60q", what, r, text[max(0, i-20):])
			return
		}
	}
}

// oddReplay has odd texts in every place that takes one.
func oddReplay(t *testing.T) (string, *format.Metadata) {
	t.Helper()
	meta := &format.Metadata{Game: "g\x1b[2J", Build: "b\xff", Data: "d\u202e", Map: "m\n\x07", TickRate: format.Rate{Num: 10, Den: 1}, HashBytes: 4,
		HashParts: []format.HashPart{{Name: "p\x1b]0;x\x07", Bytes: 4}}, Width: format.Width8}
	for i, name := range oddNames {
		meta.Labels = append(meta.Labels, format.Label{Key: fmt.Sprint(i, name[:min(len(name), 20)]), Value: name})
		meta.Env = append(meta.Env, format.Label{Key: name, Value: fmt.Sprint(i)})
	}
	book := &format.CodeBook{Codes: []format.CodeInfo{{Code: 1, Name: "c\x1b[1m", Params: []format.ParamInfo{{Name: "a\u202e", Type: "string"}}}}}
	out := new(format.Buffer)
	w, err := format.NewWriter(out, meta, book)
	if err != nil {
		t.Fatal(err)
	}
	var players []format.PlayerEvent
	for i, name := range oddNames {
		players = append(players, format.PlayerEvent{ID: uint64(i), Name: name, Team: name})
	}
	errs := []error{w.Players(make([]byte, format.SaltBytes), players)}
	for _, name := range oddNames {
		errs = append(errs, w.Mark(format.Mark{Kind: name, Text: name}), w.Step(1, format.String(name), format.Bytes([]byte(name))))
	}
	errs = append(errs, w.EndTick(), w.Gap(format.Gap{First: 1, Last: 2, Reason: "r\x1b[0m\xff"}), w.Finish(format.EndUnfinished, "e\x1b[0m\u202e"))
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return writeFile(t, "odd.rply", out.Bytes()), meta
}

func TestOddTextsNeverReachTheTerminal(t *testing.T) {
	path, _ := oddReplay(t)
	for _, args := range [][]string{{"info"}, {"info", "--json"}, {"ls"}, {"ls", "--json"}, {"cat"}, {"cat", "--jsonl"}, {"check"}, {"check", "--json"},
		{"verify"}, {"verify", "--json"}, {"verify", "--sim", "tower"}, {"play"}} {
		r := reprise(append(args, path)...)
		expectShowable(t, strings.Join(args, " ")+": stdout", r.stdout)
		expectShowable(t, strings.Join(args, " ")+": stderr", r.stderr)
	}
}

// text undoes jsonText.
type text struct{ s string }

func (x *text) UnmarshalJSON(b []byte) error {
	var typed struct{ Bytes string }
	if json.Unmarshal(b, &x.s) == nil {
		return nil
	}
	if err := json.Unmarshal(b, &typed); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(typed.Bytes)
	x.s = string(raw)
	return err
}

func TestOddTextsComeBackExactly(t *testing.T) {
	path, meta := oddReplay(t)
	for _, source := range []string{path, viaJSONLines(t, path)} {
		var doc struct {
			Game, Build, Data, Map text
			Labels, Env            []struct{ Key, Value text }
			Players                []struct{ Name, Team text }
			Marks                  []struct{ Kind, Text text }
			Gaps                   []struct{ Reason text }
		}
		r := reprise("info", "--json", source)
		if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Game.s != meta.Game || doc.Build.s != meta.Build || doc.Data.s != meta.Data || doc.Map.s != meta.Map || doc.Gaps[0].Reason.s != "r\x1b[0m\xff" {
			t.Errorf("%s: %q", source, doc)
		}
		for i, name := range oddNames {
			if doc.Labels[i].Value.s != name || doc.Env[i].Key.s != name || doc.Players[i].Name.s != name || doc.Players[i].Team.s != name ||
				doc.Marks[i].Kind.s != name || doc.Marks[i].Text.s != name {
				t.Errorf("%s: %q became %q, %q, %q", source, name, doc.Labels[i].Value.s, doc.Players[i].Name.s, doc.Marks[i].Text.s)
			}
		}
	}
}

// viaJSONLines converts a replay to JSON lines.
func viaJSONLines(t *testing.T, path string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "lines.jsonl")
	if r := reprise("convert", path, out); r.code != exitOK {
		t.Fatal(r.stderr)
	}
	return out
}

// Files may have any name that the system allows.
func TestOddFileNames(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows allows no odd names")
	}
	whole, err := sample{}.bytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range oddNames {
		if name == "" || len(name) > 200 || strings.ContainsAny(name, "/\x00") {
			continue
		}
		folder := t.TempDir()
		path := filepath.Join(folder, name+".rply")
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
		torn := filepath.Join(folder, "torn"+name+".rply")
		if err := os.WriteFile(torn, whole[:1500], 0o644); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"info", path}, {"info", "--json", path}, {"ls", folder}, {"check", path, torn}, {"check", "--json", path, torn}, {"verify", folder},
			{"cat", torn}, {"play", "--speed", "max", path}, {"repair", torn, "-o", path}, {"convert", torn, path + "x"}, {"record", "--server", "127.0.0.1:1", torn}} {
			r := reprise(args...)
			expectShowable(t, args[0]+": stdout", r.stdout)
			expectShowable(t, args[0]+": stderr", r.stderr)
		}
		var doc struct{ File text }
		r := reprise("info", "--json", path)
		if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || doc.File.s != path {
			t.Errorf("%q came back as %q: %v", path, doc.File.s, err)
		}
		if err := format.ValidSession(inventSession(path)); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestInventedSessionsAreValid(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range append(oddNames, "-", "match.jsonl.zst", ".rply", "...rply", strings.Repeat("ü", 100)) {
		id := inventSession(name)
		if err := format.ValidSession(id); err != nil || seen[id] {
			t.Errorf("%q gives %q: %v", name, id, err)
		}
		seen[id] = true
	}
	if id := inventSession("replays/cup final.jsonl.zst"); !strings.HasPrefix(id, "cup-final-") {
		t.Error(id)
	}
}
