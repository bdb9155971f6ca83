package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"reprise/format"
	"reprise/player"
	"reprise/player/process"
)

func TestExitCodes(t *testing.T) {
	gap := &player.GapError{}
	for _, c := range []struct {
		err    error
		code   int
		status string
	}{
		{nil, exitOK, "ok"},
		{&player.DesyncError{}, exitFalse, "desync"},
		{errors.Join(&player.DesyncError{}, gap), exitFalse, "desync"},
		{&player.StepFailure{}, exitFalse, "step failed"},
		{&repeatError{}, exitFalse, "not repeatable"},
		{&player.SimulationError{}, exitSimulation, "simulation failed"},
		{&format.CorruptError{}, exitDamaged, "damaged"},
		{fmt.Errorf("x: %w", &format.ChangedError{}), exitFalse, "changed"},
		{&trustError{}, exitFalse, "not trusted"},
		{&unprovenError{}, exitPartly, "proven in part"},
		{&format.TornError{}, exitDamaged, "torn"},
		{fmt.Errorf("x: %w", format.ErrNotReplay), exitDamaged, "not a replay"},
		{format.ErrNewer, exitDamaged, "newer"},
		{format.ErrTotals, exitDamaged, "damaged"},
		{format.ErrState, exitDamaged, "damaged"},
		{openError(format.ErrLimit), exitDamaged, "over a limit"},
		{player.ErrOutOfOrder, exitDamaged, "damaged"},
		{&player.GameMissingError{}, exitGame, "missing game"},
		{&player.BuildMismatchError{}, exitGame, "missing build"},
		{fmt.Errorf("x: %w", &player.DataMismatchError{}), exitGame, "missing data"},
		{player.ErrStart, exitGame, "wrong game"},
		{player.ErrNothingCompared, exitNothing, "nothing compared"},
		{errors.Join(player.ErrNothingCompared, gap), exitNothing, "nothing compared"},
		{errors.Join(player.ErrNothingCompared, &format.TornError{}), exitDamaged, "torn"},
		{gap, exitPartly, "gap"},
		{process.ErrCommand, exitUsage, "not tried"},
		{usagef("x"), exitUsage, "not tried"},
		{context.Canceled, exitNotTried, "interrupted"},
		{format.ErrLossy, exitNotTried, "not tried"},
		{&hintedError{&exitError{code: exitPartly}, "hint"}, exitPartly, "gap"},
	} {
		if code, status := exitCode(c.err), statusOf(c.err); code != c.code || status != c.status {
			t.Errorf("%v: %d %q, want %d %q", c.err, code, status, c.code, c.status)
		}
	}
}

// Every code that a run can have given shows in the code of a run over
// several files, and the order does not matter.
func TestWorstExitCode(t *testing.T) {
	for a := range exitSentences {
		for b := range exitSentences {
			got := worse(a, b)
			if got != worse(b, a) || got != a && got != b || got == exitOK && a+b > 0 {
				t.Errorf("%d and %d give %d", a, b, got)
			}
		}
	}
	if worse(exitFalse, exitDamaged) != exitFalse || worse(exitNothing, exitGame) != exitGame || worse(exitPartly, exitNothing) != exitNothing {
		t.Error("a lesser code hides a worse one")
	}
}

func TestComplaints(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("plain"), "reprise: plain\n"},
		{errors.New("two\nlines\x1b[2J"), "reprise: two\nlines\\x1b[2J\n"},
		{&exitError{code: exitFalse}, ""},
		{&hintedError{&exitError{code: exitFalse}, "look"}, "reprise: hint: look\n"},
		{&hintedError{errors.New("x"), "look"}, "reprise: x\nreprise: hint: look\n"},
		{atFile("a\nb", context.Canceled), "reprise: a\\nb: interrupted\n"},
		{atFile("f", format.ErrTorn), "reprise: f: torn\nreprise: hint: \"reprise repair FILE -o OUT\" keeps what is intact\n"},
	} {
		var b strings.Builder
		complain(&b, c.err)
		if b.String() != c.want {
			t.Errorf("%v: %q, want %q", c.err, b.String(), c.want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "plain text": "plain text", `back\slash "quoted"`: `back\slash "quoted"`, "ü é 日本": "ü é 日本",
		"a\x1b[0m": `a\x1b[0m`, "a\"\n": `a"\n`, "\\\x00": `\\\x00`, "\xff": `\xff`, "\u202e": `\u202e`, "\u009b": `\u009b`,
	} {
		if got := printable(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := printableLines("a\x07\n\tb\u202e\n"); got != "a\\a\n\tb\\u202e\n" {
		t.Errorf("%q", got)
	}
}

func TestDurationsAndCounts(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0s", 0.0004: "0s", 0.25: "250ms", 1.04: "1s", 61.26: "1m1.3s", 5400: "1h30m0s", 1e12: "3.169e+04 years", 1e300: "3.169e+292 years"} {
		if got := duration(seconds); got != want {
			t.Errorf("%g: %s, want %s", seconds, got, want)
		}
	}
	for _, c := range [][2]string{{counted(0, "tick"), "0 ticks"}, {counted(1, "hash"), "1 hash"}, {counted(uint64(2), "hash"), "2 hashes"}} {
		if c[0] != c[1] {
			t.Errorf("%s, want %s", c[0], c[1])
		}
	}
}

// JSON that goes to a terminal byte by byte means what it meant, and shows
// nothing hidden.
func TestEscapedJSONMeansTheSame(t *testing.T) {
	for _, s := range oddNames {
		doc, err := json.Marshal(jsonText(s))
		if err != nil {
			t.Fatal(err)
		}
		doc = append(doc, "\r\n"...)
		var out bytes.Buffer
		w := &escapingWriter{w: &out}
		for i := range doc {
			if n, err := w.Write(doc[i : i+1]); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		expectShowable(t, fmt.Sprintf("%.20q", s), out.String())
		var back text
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back.s != s {
			t.Errorf("%q became %q: %v", s, back.s, err)
		}
	}
}

// Progress shows only on a terminal, on one line that goes away.
func TestProgress(t *testing.T) {
	var b strings.Builder
	p := newProgress(&b)
	p.show("nobody sees this")
	p.clear()
	if b.Len() > 0 {
		t.Errorf("%q was written where no terminal is", b.String())
	}
	p = &progress{w: &b}
	p.show("1 of 2: %s", "a\x1b[2J"+strings.Repeat("ü", 100))
	p.show("too soon")
	p.clear()
	p.clear()
	if want := "\r\x1b[K1 of 2: a\\x1b[2J" + strings.Repeat("ü", 62) + "…\r\x1b[K"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestShards(t *testing.T) {
	entries := make([]replayEntry, 10)
	for i := range entries {
		entries[i].path = fmt.Sprint(i)
	}
	seen := map[string]int{}
	for i := 1; i <= 3; i++ {
		var s shardFlag
		if err := s.Set(fmt.Sprintf("%d/3", i)); err != nil {
			t.Fatal(err)
		}
		for _, e := range s.of(entries) {
			seen[e.path]++
		}
	}
	for _, e := range entries {
		if seen[e.path] != 1 {
			t.Errorf("entry %s is in %d shards", e.path, seen[e.path])
		}
	}
	for _, bad := range []string{"", "1", "0/3", "4/3", "-1/3", "1/0", "a/b", "1/3/5", "1/"} {
		if err := new(shardFlag).Set(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestTicksAndSpeedsAsFlags(t *testing.T) {
	for text, ok := range map[string]bool{"0": true, "4611686018427387903": true, "4611686018427387904": false, "-1": false, "": false, "1.5": false, "0x1": false} {
		var f tickFlag
		if err := f.Set(text); (err == nil) != ok || f.set != ok || ok && f.String() != text {
			t.Errorf("tick %q: %v %v", text, f, err)
		}
	}
	for text, want := range map[string]float64{"1": 1, "0.01": 0.01, "1000": 1000, "max": player.Max} {
		var f speedFlag
		if err := f.Set(text); err != nil || float64(f) != want || f.String() != text {
			t.Errorf("speed %q: %v %v", text, f, err)
		}
	}
	for _, bad := range []string{"0", "0.001", "1001", "NaN", "Inf", "-1", "", "fast"} {
		if err := new(speedFlag).Set(bad); err == nil {
			t.Errorf("speed %q is taken", bad)
		}
	}
}

// A summary that promises more than the file holds never passes.
func TestBrokenPromises(t *testing.T) {
	r := &verifyResult{Ticks: 10, Compared: 9}
	for _, c := range []struct {
		ticks, hashes uint64
		want          int
	}{{10, 9, exitOK}, {11, 9, exitDamaged}, {10, 10, exitDamaged}} {
		s := &format.Summary{Totals: format.Totals{Ticks: c.ticks, Hashes: c.hashes}}
		if err := r.promised(s); exitCode(err) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
