package replays

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/format"
)

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// isSample tells the samples and documents from what else is in the folder.
func isSample(name string) bool {
	return !strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, ".") && name != "SHA256SUMS"
}

func parseSums(t testing.TB, text string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	for line := range strings.Lines(text) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || len(sum) != 64 || sums[name] != "" {
			t.Fatalf("SHA256SUMS: %q", line)
		}
		sums[name] = sum
	}
	return sums
}

// TestAdd writes samples that are not there yet.
func TestAdd(t *testing.T) {
	if !*add {
		t.Skip("writes only with -add")
	}
	addNew(t)
}

// What stands here is never changed again.
func TestFilesAreAsReleased(t *testing.T) {
	b, err := Files.ReadFile("SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	sums := parseSums(t, string(b))
	entries, err := Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, e := range entries {
		if !isSample(e.Name()) {
			continue
		}
		b, err := Files.ReadFile(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(b)); sums[e.Name()] != sum {
			t.Errorf("%s has the sum %s, released was %s: files here are never changed", e.Name(), sum, sums[e.Name()])
		}
		if len(b) > 20<<10 {
			t.Errorf("%s has %d bytes: keep samples below 20 KiB", e.Name(), len(b))
		}
		found++
	}
	if found != len(sums) || found < 2*len(samples) {
		t.Errorf("%d files, %d sums, %d samples", found, len(sums), len(samples))
	}
}

// each runs a test over every sample that was released.
func each(t *testing.T, test func(t *testing.T, b []byte, want *content)) {
	names, err := filepath.Glob("*.json")
	if err != nil || len(names) < len(samples) {
		t.Fatalf("%d documents, %v", len(names), err)
	}
	for _, document := range names {
		name := strings.TrimSuffix(document, ".json")
		t.Run(name, func(t *testing.T) {
			b, err := Files.ReadFile(name)
			doc, err2 := Files.ReadFile(document)
			if err := errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
			if params, found := strings.CutSuffix(name, ".commands"); found {
				p, err := Files.ReadFile(params + ".params")
				if err != nil {
					t.Fatal(err)
				}
				b = importedBytes(t, b, p)
			}
			want := &content{}
			if err := json.Unmarshal(doc, want); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want.document(), doc) {
				t.Fatal("the document has members that the test does not know")
			}
			test(t, b, want)
		})
	}
}

// importedBytes makes a replay of the areas of a saveState.
func importedBytes(t testing.TB, commands, params []byte) []byte {
	t.Helper()
	var out format.Buffer
	if err := format.ImportState(&out, format.State{CommandWidth: format.Width16, Length: len(commands) / 3, CommandArray: commands, ParamArray: params}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func imported(t testing.TB, commands, params []byte) *format.File {
	return open(t, importedBytes(t, commands, params))
}

// same compares all that was read with the document.
func same(t *testing.T, got, want *content) {
	t.Helper()
	g, w := string(got.document()), string(want.document())
	if g == w {
		return
	}
	a, b := strings.Split(g, "\n"), strings.Split(w, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			t.Fatalf("line %d of what was read: %s, the document says %s", i+1, a[i], b[min(i, len(b)-1)])
		}
	}
	t.Fatal("the document has more lines")
}

func TestReadInOrder(t *testing.T) {
	each(t, func(t *testing.T, b []byte, want *content) { same(t, read(t, open(t, b)), want) })
}

func TestReadFromDisk(t *testing.T) {
	each(t, func(t *testing.T, b []byte, want *content) {
		path := filepath.Join(t.TempDir(), "sample")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := format.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		same(t, read(t, f), want)
	})
}

// Every tick with anything, and its neighbours, are reached directly.
func TestSeekToEachTick(t *testing.T) {
	each(t, func(t *testing.T, b []byte, want *content) {
		f := open(t, b)
		r := f.Reader()
		var rec format.TickRecord
		for i, x := range slices.Backward(want.Ticks) {
			r.Seek(format.Tick(x.Tick))
			if err := r.Next(&rec); err != nil {
				t.Fatal(err)
			}
			if got, want := describe(describeTick(&rec)), describe(x); got != want {
				t.Fatalf("at tick %d stands %s, want %s", x.Tick, got, want)
			}
			r.Seek(format.Tick(x.Tick) + 1)
			if rest := recorded(t, r); len(rest) != len(want.Ticks)-i-1 {
				t.Fatalf("behind tick %d are %d ticks, want %d", x.Tick, len(rest), len(want.Ticks)-i-1)
			}
		}
	})
}

// describe prints a tick as a document has it.
func describe(x tick) string {
	b, err := json.Marshal(x)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Check passes what is whole, and names the place where the rest is torn.
func TestCheck(t *testing.T) {
	each(t, func(t *testing.T, b []byte, want *content) {
		f := open(t, b)
		report, err := f.Check()
		var torn *format.TornError
		switch {
		case want.Torn == nil && err != nil:
			t.Fatal(err)
		case want.Torn != nil && (!errors.As(err, &torn) || torn.Offset != *want.Torn):
			t.Fatalf("%v, want a tear at offset %d", err, *want.Torn)
		case want.Digest != "" && report.Root.String() != want.Digest:
			t.Fatalf("the content gives the digest %v, want %s", report.Root, want.Digest)
		}
	})
}

// What the file was turned into, or its own bytes, read the same.
func TestRawReadsTheSame(t *testing.T) {
	each(t, func(t *testing.T, b []byte, want *content) {
		raw := open(t, b).Raw()
		inner := make([]byte, raw.Size())
		if _, err := raw.ReadAt(inner, 0); err != nil {
			t.Fatal(err)
		}
		got := read(t, open(t, inner))
		got.Format, got.Wrapping = want.Format, want.Wrapping
		if want.Format != "rply2" || want.Wrapping != "" {
			got.Torn = want.Torn
		}
		same(t, got, want)
	})
}

// JSON lines keep everything.
func TestThroughJSONLines(t *testing.T) {
	each(t, func(t *testing.T, b []byte, want *content) {
		f := open(t, b)
		var text bytes.Buffer
		if err := format.WriteJSONL(&text, f, format.JSONLWriteOptions{}); err != nil {
			t.Fatal(err)
		}
		back := open(t, text.Bytes())
		if err := format.Diff(f, back, format.DiffOptions{}, func(d format.Difference) error { return errors.New(d.String()) }); err != nil {
			t.Fatal(err)
		}
	})
}

// Repair keeps what is there.
func TestRepair(t *testing.T) {
	each(t, func(t *testing.T, b []byte, want *content) {
		if want.Format == "jsonl" || want.Wrapping != "" {
			return
		}
		var out format.Buffer
		if _, err := format.RepairAny(bytes.NewReader(b), int64(len(b)), &out); err != nil {
			t.Fatal(err)
		}
		f := open(t, out.Bytes())
		if _, err := f.Check(); err != nil {
			t.Fatal(err)
		}
		got := read(t, f)
		if fmt.Sprint(len(got.Ticks), got.Count, got.Gaps) != fmt.Sprint(len(want.Ticks), want.Count, want.Gaps) {
			t.Fatalf("%d ticks are kept of %d", got.Count, want.Count)
		}
	})
}

// The list of samples still makes what was released, by today's writers.
func TestWritersGiveTheSameContent(t *testing.T) {
	for _, s := range samples {
		doc, err := Files.ReadFile(s.name + ".json")
		if err != nil {
			t.Errorf("%v: run go test ./replays -add", err)
			continue
		}
		want := &content{}
		if err := json.Unmarshal(doc, want); err != nil {
			t.Fatal(err)
		}
		got := read(t, open(t, s.make()))
		got.Torn = want.Torn // the place depends on how ticks stand in chunks
		same(t, got, want)
	}
}
