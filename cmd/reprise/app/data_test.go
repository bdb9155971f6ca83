package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/format"
)

// Every real match comes back from a daemon as it was.
func TestRecordOfRealMatches(t *testing.T) {
	if !haveData() {
		t.Skip("../shared/data is absent: no real matches")
	}
	matches, err := filepath.Glob(filepath.Join(dataFolder(t), "corpus", "*.jsonl.zst"))
	if err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t)
	recorded := 0
	for _, path := range matches {
		if strings.Contains(path, ".hashes.") {
			continue
		}
		recorded++
		args := []string{"--json", "--speed", "max", path}
		if strings.HasPrefix(filepath.Base(path), "supcom_") {
			args = append(args, "--pack-lists")
		}
		r := d.record(args...)
		var result recordResult
		if err := json.Unmarshal([]byte(r.stdout), &result); err != nil || r.code != exitOK {
			t.Errorf("%s: %d %s", path, r.code, r.stderr)
			continue
		}
		expectRealMatch(t, path, filepath.Join(d.data, "sealed", result.Sealed))
	}
	if recorded != 10 {
		t.Errorf("%d matches", recorded)
	}
}

// realHeader is the first line of a real match.
type realHeader struct {
	Game    string      `json:"game"`
	Rate    json.Number `json:"tick_rate"`
	Players int         `json:"players"`
	Ticks   uint64      `json:"ticks"`
}

func expectRealMatch(t *testing.T, source, sealed string) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace(unwrapped(t, source)), []byte("\n"))
	var h realHeader
	if err := json.Unmarshal(lines[0], &h); err != nil {
		t.Fatal(err)
	}
	var i struct {
		fileInfo
		Rate json.Number `json:"tick_rate"`
		Game string      `json:"game"`
	}
	r := reprise("info", "--json", sealed)
	if err := json.Unmarshal([]byte(r.stdout), &i); err != nil {
		t.Fatal(err, r.stderr)
	}
	if !i.Complete || i.Ticks != h.Ticks || i.Steps != uint64(len(lines)-1) || i.Game != h.Game || i.Rate != h.Rate || len(i.Gaps) != 0 ||
		i.PlayerCount == nil || *i.PlayerCount != h.Players || *i.LastTick != format.Tick(h.Ticks-1) {
		t.Errorf("%s: %.400s", source, r.stdout)
	}
	cat := reprise("cat", "--jsonl", sealed)
	back := strings.Split(strings.TrimSpace(cat.stdout), "\n")
	n := 1
	for _, line := range back {
		if !strings.HasPrefix(line, `{"t":`) || !strings.Contains(line, `"c":`) {
			continue
		}
		if n < len(lines) && line != string(lines[n]) {
			if got, want := parseCommand(t, []byte(line)), parseCommand(t, lines[n]); got != want {
				t.Fatalf("%s: command %d is %s, want %s", source, n, got, want)
			}
		}
		n++
	}
	if n != len(lines) {
		t.Errorf("%s: %d commands, want %d", source, n-1, len(lines)-1)
	}
}

// command is one line of a match, with its lists flattened.
type command struct {
	T, P, C any
	A       []any
}

// parseCommand gives a line in one spelling.
func parseCommand(t *testing.T, line []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var c command
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	s := fmt.Sprint(c.T, c.P, c.C)
	for _, a := range c.A {
		list, ok := a.([]any)
		if !ok {
			list = []any{a}
		}
		for _, v := range list {
			s += fmt.Sprintf(" %T:%v", v, exact(v))
		}
	}
	return s
}

// exact keeps apart integers and floats, of which JSON has many spellings.
func exact(v any) any {
	n, ok := v.(json.Number)
	if !ok || !strings.ContainsAny(n.String(), ".eE") {
		return v
	}
	x, err := n.Float64()
	if err != nil {
		return err
	}
	return math.Float64bits(x)
}

// unwrapped reads a file inside .zst.
func unwrapped(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	src, size, _, err := format.Unwrap(f, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := src.ReadAt(b, 0); err != nil && size > 0 {
		t.Fatal(err)
	}
	return b
}

// Files of old servers become RPLY2, and the same bytes again.
func TestMatchesOfOldServers(t *testing.T) {
	if !haveData() {
		t.Skip("../shared/data is absent: no files of old servers")
	}
	for name, ticks := range map[string]uint64{"tiny-40.rply": 40, "match-2p-5min.rply": 6000, "match-2p-30min.rply": 36000, "match-2p-2h.rply.zst": 144000} {
		path, folder := filepath.Join(dataFolder(t), "rply1", name), t.TempDir()
		source := unwrapped(t, path)
		converted, back := filepath.Join(folder, "new.rply"), filepath.Join(folder, "old.rply")
		if r := reprise("convert", path, converted, "--to", "rply2"); r.code != exitOK {
			t.Fatal(r.stderr)
		}
		if r := reprise("convert", converted, back, "--to", "rply1"); r.code != exitOK {
			t.Fatal(r.stderr)
		}
		if content(t, back) != string(source) {
			t.Errorf("%s: other bytes came back", name)
		}
		for _, file := range []string{path, converted} {
			expectOldMatch(t, file, ticks)
		}
	}
}

// expectOldMatch runs the reading commands on an old match, or on what it
// became.
func expectOldMatch(t *testing.T, path string, ticks uint64) {
	t.Helper()
	var i struct {
		Ticks, Hashes uint64
		Complete      bool
		Rate          json.Number `json:"tick_rate"`
		First         int         `json:"first_tick"`
		Players       *int        `json:"player_count"`
		Keyframes     []int
	}
	r := reprise("info", "--json", path)
	if err := json.Unmarshal([]byte(r.stdout), &i); err != nil {
		t.Fatal(err, r.stderr)
	}
	if i.Ticks != ticks || i.Hashes != ticks || i.Complete || i.Rate != "20" || i.First != 1 || i.Players == nil || *i.Players != 2 || len(i.Keyframes) != 1 {
		t.Errorf("%s: %.400s", path, r.stdout)
	}
	if r := reprise("check", path); r.code != exitOK || !strings.Contains(r.stdout, fmt.Sprintf(", %d ticks, ", ticks)) {
		t.Errorf("%s: %d %s", path, r.code, r.stdout)
	}
	if r := reprise("cat", path); r.code != exitOK || strings.Count(r.stdout, " hash ") != int(ticks) {
		t.Errorf("%s: %d, %d hashes", path, r.code, strings.Count(r.stdout, " hash "))
	}
	if r := reprise("verify", path); r.code != exitGame {
		t.Errorf("%s: %d %s", path, r.code, r.stdout)
	}
}
