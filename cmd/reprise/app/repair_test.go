package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"reprise/format"
)

// chunked is a small replay of three chunks, and where each ends.
type chunked struct {
	bytes   []byte
	opening int   // the end of the metadata
	ends    []int // of the chunks of ticks
	sealed  int   // the end of the chunk that ends the session
}

const chunkedTicks = 4 // of each chunk

func newChunked(t *testing.T) chunked {
	t.Helper()
	out := new(format.Buffer)
	meta := &format.Metadata{Session: "small", Game: "none", TickRate: format.Rate{Num: 10, Den: 1}, Width: format.Width8, HashBytes: 4}
	w, err := format.NewWriter(out, meta, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := chunked{opening: len(out.Bytes())}
	for tick := range format.Tick(3 * chunkedTicks) {
		err := w.Step(1, format.Int(int64(tick)), format.String("order"))
		if err == nil {
			err = w.EndTick()
		}
		if err == nil {
			err = w.Hash(tick, []byte{1, 2, 3, byte(tick)})
		}
		if err == nil && w.NextTick()%chunkedTicks == 0 {
			err = w.Flush()
			c.ends = append(c.ends, len(out.Bytes()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(format.EndSealed, ""); err != nil {
		t.Fatal(err)
	}
	c.bytes = out.Bytes()
	_, n, err := format.ParseChunk(c.bytes[c.ends[2]:])
	if err != nil {
		t.Fatal(err)
	}
	c.sealed = c.ends[2] + n
	return c
}

// kept is how many ticks the first n bytes hold in whole chunks.
func (c chunked) kept(n int) int {
	ticks := 0
	for _, end := range c.ends {
		if end <= n {
			ticks += chunkedTicks
		}
	}
	return ticks
}

// A file that was cut anywhere is repaired to what its whole chunks hold, or
// not at all; what is repaired passes, and repairs to itself.
func TestRepairOfEveryLength(t *testing.T) {
	c := newChunked(t)
	folder := t.TempDir()
	in, out, again := filepath.Join(folder, "in.rply"), filepath.Join(folder, "out.rply"), filepath.Join(folder, "again.rply")
	for n := range len(c.bytes) + 1 {
		if err := os.WriteFile(in, c.bytes[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		r := reprise("repair", "--json", in, "-o", out)
		want := exitPartly
		switch {
		case n >= c.sealed: // a new footer makes it whole
			want = exitOK
		case n < c.opening:
			want = exitDamaged
		}
		if r.code != want {
			t.Fatalf("cut at %d of %d: exit code %d, want %d: %s", n, len(c.bytes), r.code, want, r.stderr)
		}
		if left, err := os.ReadFile(in); err != nil || !bytes.Equal(left, c.bytes[:n]) {
			t.Fatalf("cut at %d: the input was changed: %v", n, err)
		}
		if want == exitDamaged {
			expectOnly(t, folder, "in.rply")
			continue
		}
		expectRepaired(t, out, again, r, c.kept(n), want)
		for _, path := range []string{out, again} {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// expectRepaired checks the output of a repair, and that repairing it again
// changes nothing.
func expectRepaired(t *testing.T, out, again string, r result, ticks, code int) {
	t.Helper()
	var report repairDocument
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatal(err)
	}
	var checked checkResult
	check := reprise("check", "--json", out)
	if err := json.Unmarshal([]byte(check.stdout), &checked); err != nil {
		t.Fatal(err)
	}
	if check.code != exitOK || checked.Ticks != uint64(ticks) || report.Ticks != checked.Ticks || report.Whole != (code == exitOK) {
		t.Fatalf("%d ticks were kept, %d are there (exit code %d), want %d: %s", report.Ticks, checked.Ticks, check.code, ticks, r.stdout)
	}
	if info := reprise("info", "--json", out); info.code != exitOK {
		t.Fatalf("info: %s", info.stderr)
	}
	if cat := reprise("cat", out); cat.code != exitOK || bytes.Count([]byte(cat.stdout), []byte(" hash ")) != ticks {
		t.Fatalf("cat: %d %s", cat.code, cat.stderr)
	}
	twice := reprise("repair", out, "-o", again)
	a, errA := os.ReadFile(out)
	b, errB := os.ReadFile(again)
	if twice.code != exitOK || errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Fatalf("repairing twice: %d %s %v %v", twice.code, twice.stderr, errA, errB)
	}
}

// expectOnly checks that a folder has nothing but the named files.
func expectOnly(t *testing.T, folder string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	if fmt.Sprint(have) != fmt.Sprint(names) {
		t.Fatalf("%s has %v, want %v", folder, have, names)
	}
}

// What was repaired is verified and played up to where it was cut.
func TestRepairedMatchIsVerified(t *testing.T) {
	whole, err := sample{ticks: 9000}.bytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2000, 80_000, 150_000, len(whole) - 1} {
		in := writeFile(t, "in.rply", whole[:n])
		out := filepath.Join(t.TempDir(), "out.rply")
		if r := reprise("repair", in, "-o", out); r.code != exitPartly && r.code != exitOK {
			t.Fatalf("cut at %d: %d %s", n, r.code, r.stderr)
		}
		f, err := format.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		ticks := f.Summary().Ticks
		f.Close()
		want, line := exitOK, fmt.Sprintf("ok                %s: %d ticks run, %d hashes compared\n", out, ticks, ticks)
		if ticks == 0 {
			want, line = exitNothing, ""
		}
		if r := reprise("verify", out); r.code != want || line != "" && r.stdout != line {
			t.Errorf("cut at %d: %d %s, want %s", n, r.code, r.stdout, line)
		}
		if r := reprise("play", "--speed", "max", out); r.code != exitOK {
			t.Errorf("cut at %d: play: %d %s", n, r.code, r.stderr)
		}
	}
}

// A file of which one byte is wrong is never repaired to more than there was,
// and never without a word.
func TestRepairOfEveryDamagedByte(t *testing.T) {
	c := newChunked(t)
	folder := t.TempDir()
	in, out := filepath.Join(folder, "in.rply"), filepath.Join(folder, "out.rply")
	for at := range c.bytes {
		b := bytes.Clone(c.bytes)
		b[at] ^= 0x55
		if err := os.WriteFile(in, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if r := reprise("check", in); r.code != exitDamaged {
			t.Fatalf("byte %d: check gives %d: %s", at, r.code, r.stdout)
		}
		r := reprise("repair", in, "-o", out)
		if r.code != exitOK && r.code != exitPartly && r.code != exitDamaged {
			t.Fatalf("byte %d: exit code %d: %s", at, r.code, r.stderr)
		}
		if r.code == exitDamaged {
			expectOnly(t, folder, "in.rply")
			continue
		}
		var checked checkResult
		check := reprise("check", "--json", out)
		if err := json.Unmarshal([]byte(check.stdout), &checked); err != nil {
			t.Fatal(err)
		}
		inTicks := at >= c.opening && at < c.ends[2]
		if check.code != exitOK || checked.Ticks > 3*chunkedTicks || r.code == exitOK && (inTicks || checked.Ticks != 3*chunkedTicks) {
			t.Fatalf("byte %d: repair gives %d, then check %d: %s", at, r.code, check.code, check.stdout)
		}
		if err := os.Remove(out); err != nil {
			t.Fatal(err)
		}
	}
}
