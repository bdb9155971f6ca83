package archive

import (
	"path"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestTemplates(t *testing.T) {
	facts := Facts{ID: "m-42", Game: "Chess: \u202eDeluxe/../x", Build: "1.0+a", Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))}
	for text, want := range map[string]string{
		DefaultTemplate:                            "archive/2026/01/02/room-m-42-20260102T020405Z.rply",
		"archive/<id>.rply":                        "archive/m-42.rply",
		"archive/<game>/<build>/<hh>/<id>.rply":    "archive/Chess___Deluxe_.._x/1.0_a/02/m-42.rply",
		"archive/a-<yyyy>.<mm>/<game>-<id>-x.rply": "archive/a-2026.01/Chess___Deluxe_.._x-m-42-x.rply",
	} {
		tp, err := ParseTemplate(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := tp.Name(facts, 1); got != want {
			t.Errorf("%s gives %s, want %s", text, got, want)
		}
		if got, want := tp.Name(facts, 3), strings.TrimSuffix(want, ".rply")+"-3.rply"; got != want {
			t.Errorf("%s gives %s for number 3, want %s", text, got, want)
		}
	}
}

func TestBadTemplates(t *testing.T) {
	for text, why := range map[string]string{
		"":                        "part",
		"archive/<id>":            "does not end in .rply",
		"archive/.rply":           "begin with no point",
		"archive/room.rply":       "no <id>",
		"archive/<id>/room.rply":  "no <id>",
		"<id>.rply":               "begin it with archive/",
		"live/<id>.rply":          "begin it with archive/",
		"/archive/<id>.rply":      "part",
		"archive//<id>.rply":      "part",
		"archive/../<id>.rply":    "part",
		"archive/.x/<id>.rply":    "begin with no point",
		"archive/./<id>.rply":     "part",
		`archive\<id>.rply`:       `"\\"`,
		"archive/a b-<id>.rply":   `" "`,
		"archive/<ID>.rply":       "unknown field <ID>",
		"archive/<day>/<id>.rply": "unknown field <day>",
		"archive/<id.rply":        `"<"`,
		"archive/id>-<id>.rply":   `">"`,
		"archive/c:<id>.rply":     `":"`,
		"archive/\x00<id>.rply":   `"\x00"`,
		"archive/é-<id>.rply":     `"é"`,
		"archive/" + strings.Repeat("x", 200) + "<id>.rply": "characters",
	} {
		if _, err := ParseTemplate(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: error %v, want one with %q", text, err, why)
		}
	}
}

// Whatever a game, a build or an id are called, a name stays below the archive
// folder and is legal on every system.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"", "..", "../../x", `..\x`, "/etc/x", `C:\x`, "CON", "nul.txt", "x.", "x ", "a:b", "-rf", "\x00", "\n", "\x1b[2J", "\u202e", "😀",
		"\xff\xfe", "é", "%s", "<id>", "<script>", "a.rply", "COM1", "lpt9.rply", strings.Repeat("long", 1000)} {
		f.Add(s, s, "archive/<game>/<build>/<id>.rply")
		f.Add(s, s, "archive/<game>.<build>/x/<game>-<id>-<start>.rply")
	}
	f.Add("CON", "x", "archive/<game>.x/<id>.rply")
	f.Fuzz(func(t *testing.T, game, build, text string) {
		tp, err := ParseTemplate(text)
		if err != nil {
			return
		}
		for n := 1; n < 4; n++ {
			name := tp.Name(Facts{ID: "Aux", Game: game, Build: build, Start: noon}, n)
			if name != path.Clean(name) || !strings.HasPrefix(name, "archive/") || !strings.HasSuffix(name, ".rply") || !utf8.ValidString(name) {
				t.Fatalf("%q with game %q and build %q gives %q", text, game, build, name)
			}
			legalEverywhere(t, name)
		}
	})
}

// legalEverywhere is written from the rules of the systems, not from the code.
func legalEverywhere(t *testing.T, name string) {
	t.Helper()
	for _, part := range strings.Split(name, "/") {
		stem := strings.ToUpper(strings.SplitN(part, ".", 2)[0])
		device := stem == "CON" || stem == "PRN" || stem == "AUX" || stem == "NUL" ||
			len(stem) == 4 && (strings.HasPrefix(stem, "COM") || strings.HasPrefix(stem, "LPT")) && strings.Contains("0123456789", stem[3:])
		if part == "" || part == ".." || len(part) > 255 || strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") || device ||
			strings.ContainsAny(part, `\:*?"<>|`) || strings.ContainsFunc(part, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Fatalf("%q is not legal in %q", part, name)
		}
	}
}
