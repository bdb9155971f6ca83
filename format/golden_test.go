package format

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// goldenFiles are files of version 1.0, each beside the JSON of what it
// holds. They stay as they are for good: what was once written must read the
// same in every later version.
var goldenFiles = []string{"v1.0-finished", "v1.0-live"}

// holding is what a replay holds, for people and for comparison.
type holding struct {
	State     string              `json:"state"`
	Reason    string              `json:"reason,omitempty"`
	Digest    string              `json:"digest,omitempty"`
	Meta      map[string]any      `json:"metadata"`
	Book      []string            `json:"code_book"`
	Totals    map[string]uint64   `json:"totals"`
	Players   []string            `json:"players"`
	Marks     []string            `json:"marks"`
	Gaps      []string            `json:"gaps"`
	Keyframes []map[string]string `json:"keyframes"`
	Reports   []string            `json:"reports"`
	Ticks     []string            `json:"ticks"`
}

// hold reads all that a file holds.
func hold(t *testing.T, f *File) holding {
	t.Helper()
	s := f.Summary()
	h := holding{State: "live", Meta: holdMeta(s.Meta), Book: []string{},
		Totals:  map[string]uint64{"next_tick": uint64(s.NextTick), "ticks": s.Ticks, "steps": s.Steps, "hashes": s.Hashes},
		Players: []string{}, Marks: []string{}, Gaps: []string{}, Keyframes: []map[string]string{}, Reports: []string{}, Ticks: []string{}}
	if s.End != nil {
		h.State, h.Reason, h.Digest = s.End.State.String(), s.End.Reason, s.Digest.String()
	}
	for _, c := range f.Book().Codes {
		h.Book = append(h.Book, fmt.Sprintf("%d %q passive=%v %q", c.Code, c.Name, c.Passive, fmt.Sprint(c.Params)))
	}
	for _, p := range s.Players {
		h.Players = append(h.Players, fmt.Sprintf("%d: %d leave=%v %q %q observer=%v", p.Tick, p.ID, p.Leave, p.Name, p.Team, p.Observer))
	}
	for _, m := range s.Marks {
		h.Marks = append(h.Marks, fmt.Sprintf("%d: %q player %d %q", m.Tick, m.Kind, m.Player, m.Text))
	}
	for _, g := range s.Gaps {
		h.Gaps = append(h.Gaps, fmt.Sprintf("%d to %d recorder=%v %q", g.First, g.Last, g.ByRecorder, g.Reason))
	}
	for i := range s.Keyframes {
		k, err := f.Keyframe(i)
		if err != nil {
			t.Fatal(err)
		}
		h.Keyframes = append(h.Keyframes, map[string]string{"before": fmt.Sprint(k.NextTick), "state": hex.EncodeToString(sha(k.State)), "bytes": fmt.Sprint(len(k.State))})
	}
	for _, r := range readReports(t, f) {
		h.Reports = append(h.Reports, fmt.Sprintf("%d: of %d by %d %x", r.At, r.Of, r.Peer, r.Hash))
	}
	ticks, err := readTicks(f.Reader())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range ticks {
		h.Ticks = append(h.Ticks, holdTick(m))
	}
	return h
}

func holdMeta(m *Metadata) map[string]any {
	return map[string]any{"session": m.Session, "game": m.Game, "build": m.Build, "data": m.Data, "seed": fmt.Sprint(m.Seed), "map": m.Map,
		"tick_rate": m.TickRate.String(), "first_tick": fmt.Sprint(m.FirstTick), "started_at": fmt.Sprint(m.StartedAt), "hash_bytes": m.HashBytes,
		"hash_parts": fmt.Sprint(m.HashParts), "width": int(m.Width), "labels": fmt.Sprintf("%q", m.Labels), "env": fmt.Sprintf("%q", m.Env),
		"origin": m.Origin.Format, "origin_header": hex.EncodeToString(m.Origin.Header)}
}

func holdTick(m modelTick) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d:", m.tick)
	for _, s := range m.steps {
		fmt.Fprintf(&b, " %d(", s.Code)
		for i, v := range s.Params {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%d:%v", v.TypeByte(), v)
		}
		b.WriteString(")")
	}
	if m.hash != nil {
		fmt.Fprintf(&b, " hash %x", m.hash)
	}
	if m.timed {
		fmt.Fprintf(&b, " at %d", m.time)
	}
	return b.String()
}

func (h holding) text(t *testing.T) string {
	t.Helper()
	b, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

func TestGoldenFiles(t *testing.T) {
	for _, name := range goldenFiles {
		path := filepath.Join("testdata", name)
		want, err := os.ReadFile(path + ".json")
		if err != nil {
			t.Fatalf("%v: a file of an old version is lost, and cannot be made again", err)
		}
		f, err := Open(path + ".rply")
		if err != nil {
			t.Fatalf("%v: a file of an old version does not open", err)
		}
		t.Cleanup(func() { f.Close() })
		if got := hold(t, f).text(t); got != string(want) {
			t.Errorf("%s: holds\n%s\nwant\n%s", name, got, want)
		}
		report, err := f.Check()
		if err != nil || len(report.Notices) != 1 || !strings.Contains(report.Notices[0], "keyframe before tick 4294967300 is not whole: 3 of 9 bytes") {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
	}
}

// TestGoldenFilesAreWrittenTheSame writes what the finished file holds once
// more, chunk by chunk.
func TestGoldenFilesAreWrittenTheSame(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", goldenFiles[0]+".rply"))
	if err != nil {
		t.Fatal(err)
	}
	tr := NewTracker()
	var out Buffer
	out.b = AppendHeader(nil)
	for _, p := range places(t, b, 8) {
		c, _, err := ParseChunk(b[p.start:p.end])
		if err != nil {
			t.Fatal(err)
		}
		if c.Type == ChunkEnd {
			end, err := ParseEnd(c.Body)
			if err != nil {
				t.Fatal(err)
			}
			footer, err := tr.Footer(&out, int64(len(out.b)), end.State, end.Reason)
			if err != nil {
				t.Fatal(err)
			}
			out.b = append(out.b, footer...)
			break
		}
		if err := tr.Add(c, int64(len(out.b))); err != nil {
			t.Fatal(err)
		}
		out.b = AppendChunk(out.b, c.Type, c.Seq, c.Body)
	}
	if string(out.b) != string(b) {
		t.Error("other bytes")
	}
}

// TestGoldenPairs reads each replay of testdata/golden by every reader: the
// file, and the JSON lines beside it, say the same.
func TestGoldenPairs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.rply"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d golden pairs, %v: some are lost, and cannot be made again", len(files), err)
	}
	for _, path := range files {
		text, err := os.ReadFile(strings.TrimSuffix(path, ".rply") + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		if got := toJSONL(t, f, JSONLWriteOptions{}); got != string(text) {
			t.Errorf("%s: as JSON lines\n%s\nwant\n%s", path, got, text)
		}
		checkWhole(t, f)
		back := fromJSONL(t, string(text), JSONLOptions{})
		if got, want := *back.Summary().Digest, *f.Summary().Digest; got != want {
			t.Errorf("%s: the JSON lines have digest %v, the file has %v", path, got, want)
		}
	}
}
