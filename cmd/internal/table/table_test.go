package table

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/format"
	"reprise/replays"
)

func open(t testing.TB, b []byte) *format.File {
	t.Helper()
	f, err := format.NewFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func written(t testing.TB, f *format.File, as Format, kind Kind) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, f, as, kind); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func readBack(b []byte, as Format) (*format.File, error) {
	var out format.Buffer
	if err := Read(bytes.NewReader(b), int64(len(b)), as, &out); err != nil {
		return nil, err
	}
	return format.NewFile(bytes.NewReader(out.Bytes()), int64(len(out.Bytes())))
}

// samples gives every replay that was ever released.
func samples(t testing.TB) map[string]*format.File {
	t.Helper()
	names, err := fs.Glob(replays.Files, "*")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*format.File{}
	for _, name := range names {
		if strings.HasSuffix(name, ".json") || strings.HasPrefix(name, "savestate") || name == "SHA256SUMS" {
			continue
		}
		b, err := replays.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = open(t, b)
	}
	if len(files) < 20 {
		t.Fatalf("%d samples", len(files))
	}
	return files
}

// A whole table gives the replay back: the same content, by every difference
// that could be told, and the same table again.
func TestTablesKeepEverything(t *testing.T) {
	for name, f := range samples(t) {
		for _, as := range []Format{CSV, Parquet} {
			b := written(t, f, as, All)
			if got, ok := Is(b); !ok || got != as {
				t.Errorf("%s as %s is taken for %q", name, as, got)
			}
			back, err := readBack(b, as)
			if err != nil {
				t.Errorf("%s as %s: %v", name, as, err)
				continue
			}
			if _, err := back.Check(); err != nil {
				t.Errorf("%s as %s: %v", name, as, err)
			}
			if err := format.Diff(f, back, format.DiffOptions{}, func(d format.Difference) error { return errors.New(d.String()) }); err != nil {
				t.Errorf("%s as %s: %v", name, as, err)
			}
			s := f.Summary()
			// The root of what was thinned or redacted is still that of the whole.
			whole := s.Redaction == nil && (s.Archive == nil || s.Archive.HashEvery <= 1)
			if s.Digest != nil && whole && name != "other-encodings.rply" && *back.Summary().Digest != *s.Digest {
				t.Errorf("%s as %s: another digest", name, as)
			}
			if again := written(t, back, as, All); s.End != nil && !bytes.Equal(again, b) {
				t.Errorf("%s as %s: another table when it is written again", name, as)
			}
		}
	}
}

// Texts that a cell could change, or that look like encoded ones, come back.
func TestCells(t *testing.T) {
	for text, want := range map[string]string{"": "", "plain é, \"quoted\"": "plain é, \"quoted\"", "a\r\nb": "base64:YQ0KYg==", "\xff": "base64:/w==",
		"base64:YQ==": "base64:YmFzZTY0OllRPT0=", "\x7f": "base64:fw=="} {
		got := cell(text)
		if back, err := uncell(got); got != want || err != nil || back != text {
			t.Errorf("%q is written as %q, want %q, and read as %q, %v", text, got, want, back, err)
		}
	}
}

func TestCSVText(t *testing.T) {
	f := samples(t)["lines-foreign.jsonl"]
	want := `kind,tick,step,code,name,player,params,hash,time_us,other,text,flag,offset,size,data
head,0,,,,,,,,2,"{""game"":""other"",""source"":""a tool"",""licence"":""MIT"",""tick_rate"":22.4,""players"":[""x"",""y""],""extra"":{""deep"":[1,null]}}",,,,
code,0,,,,,,,,,"{""code"":7,""params"":[{""name"":""player""}]}",,,,
code,0,,,,,,,,,"{""code"":9,""params"":[{""name"":""player""}]}",,,,
tick,0,,,,,,,,,,,,,
tick,1,,,,,,,,,,,,,
tick,2,,,,,,,,,,,,,
step,3,0,7,,1,"[1,1,-2.5,""x"",true,[5,6],{""bigint"":""123456789012345678901234567890""}]",,,,,,,,
step,3,1,7,,2,[2],,,,,,,,
tick,3,,,,,,,,,,,,,
step,4,0,9,,,"[""name"",18446744073709551615]",,,,,,,,
tick,4,,,,,,00ff,,,,,,,
`
	got := string(written(t, f, CSV, All))
	if !strings.HasPrefix(got, want) {
		t.Errorf("%s", got)
	}
	if got, want := string(written(t, f, CSV, Steps)), `tick,step,code,name,player,params
3,0,7,,1,"[1,1,-2.5,""x"",true,[5,6],{""bigint"":""123456789012345678901234567890""}]"
3,1,7,,2,[2]
4,0,9,,,"[""name"",18446744073709551615]"
12,0,7,,1,[1]
`; got != want {
		t.Errorf("steps:\n%s", got)
	}
	if got, want := string(written(t, f, CSV, Ticks)), "tick,steps,hash,time_us\n0,0,,\n1,0,,\n2,0,,\n3,2,,\n4,1,00ff,\n"; !strings.HasPrefix(got, want) {
		t.Errorf("ticks:\n%s", got)
	}
}

// Another reader of Parquet finds the typed columns.
func TestParquetColumns(t *testing.T) {
	f := samples(t)["sealed.rply"]
	b := written(t, f, Parquet, Steps)
	file, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if got := file.NumRows(); got != int64(f.Summary().Steps) {
		t.Errorf("%d rows, the replay has %d steps", got, f.Summary().Steps)
	}
	var columns []string
	for _, path := range file.Schema().Columns() {
		columns = append(columns, strings.Join(path, "."))
	}
	if got, want := fmt.Sprint(columns), "[tick step code name player params.list.element.kind params.list.element.int params.list.element.float params.list.element.text params.list.element.bytes params.list.element.ints.list.element]"; got != want {
		t.Errorf("columns %s", got)
	}
	ticks := written(t, f, Parquet, Ticks)
	rows, err := parquet.Read[tickRow](bytes.NewReader(ticks), int64(len(ticks)))
	if err != nil || len(rows) != int(f.Summary().Ticks) || rows[0].Steps != 2 || len(rows[0].Hash) != 6 || rows[1].TimeUS == nil || *rows[1].TimeUS != 44643 || rows[2].TimeUS != nil {
		t.Errorf("%+v, %v", rows, err)
	}
}

// rewrite changes one cell of a table.
func rewrite(t testing.TB, b []byte, row, column int, cell string) []byte {
	t.Helper()
	records, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	records[row][column] = cell
	var out bytes.Buffer
	if err := csv.NewWriter(&out).WriteAll(records); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestDamagedCSV(t *testing.T) {
	b := written(t, samples(t)["lines-foreign.jsonl"], CSV, All)
	for _, c := range []struct {
		row, column int
		cell, want  string
	}{
		{1, 0, "mark", "row 1 of the table: the head is due"},
		{1, 9, "33", "row 1 of the table: the head is due"},
		{1, 10, "{}", "the head or the codes: not a replay"},
		{2, 10, "{", "2 code rows, which are not as many code lines"},
		{2, 10, "base64:ewo=", "2 code rows, which are not as many code lines"},
		{4, 1, "1", "row 4 of the table: tick 1 stands where tick 0 is due"},
		{4, 1, "", "row 4 of the table: column tick is"},
		{4, 1, "-1", `row 4 of the table: column tick is "-1"`},
		{4, 0, "turn", `row 4 of the table: no row is a "turn" here`},
		{4, 7, "00f", `row 4 of the table: column hash is "00f"`},
		{4, 7, "00ff00", "row 4 of the table: out of order: hash of 3 bytes"},
		{4, 10, "base64:?", "row 4 of the table: a text is not base64"},
		{4, 6, "[]", `row 4 of the table: column params is "[]"`},
		{7, 2, "1", "row 7 of the table: step 1 with code 7 stands where step 0 is due"},
		{7, 3, "65536", `row 7 of the table: column code is "65536"`},
		{7, 6, "[1", "row 7 of the table: column params: "},
		{9, 0, "mark", "row 9 of the table: a mark stands inside of tick 3"},
		{11, 11, "yes", `row 11 of the table: column flag is "yes"`},
	} {
		_, err := readBack(rewrite(t, b, c.row, c.column, c.cell), CSV)
		if !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q at row %d, column %d: %v, want %s", c.cell, c.row, c.column, err, c.want)
		}
	}
	if _, err := readBack([]byte("kind,tick,step\n"), CSV); !errors.Is(err, format.ErrNotReplay) {
		t.Errorf("other columns: %v", err)
	}
	if _, err := readBack(b[:bytes.IndexByte(b, '\n')+1], CSV); !errors.Is(err, format.ErrTorn) {
		t.Errorf("no rows: %v", err)
	}
}

// A table that is cut anywhere is refused, or gives the ticks before the cut.
func TestCutTables(t *testing.T) {
	f := samples(t)["turns.rply"]
	for _, as := range []Format{CSV, Parquet} {
		b := written(t, f, as, All)
		whole := 0
		for n := range b {
			back, err := readBack(b[:n], as)
			switch {
			case err != nil && !format.IsDamage(err) && as == Parquet:
				t.Fatalf("%s cut at %d: %v", as, n, err)
			case err == nil && back.Summary().End.State == format.EndSealed:
				whole++
			case err == nil && back.Summary().Ticks > f.Summary().Ticks:
				t.Fatalf("%s cut at %d gives %d ticks", as, n, back.Summary().Ticks)
			}
		}
		// Only the last line's end may be missing, where its cells are empty.
		if whole > 16 {
			t.Errorf("%s: %d cuts pass for a whole table", as, whole)
		}
	}
}

func TestOtherParquetFilesAreRefused(t *testing.T) {
	b := written(t, samples(t)["turns.rply"], Parquet, Steps)
	if _, err := readBack(b, Parquet); !errors.Is(err, format.ErrNotReplay) {
		t.Errorf("a table of steps: %v", err)
	}
}

// failing fails to write after some bytes.
type failing struct{ left int }

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

func TestFailedWriteIsAnError(t *testing.T) {
	f := samples(t)["sealed.rply"]
	for _, as := range []Format{CSV, Parquet} {
		for _, kind := range []Kind{All, Steps, Ticks} {
			for n := range len(written(t, f, as, kind)) {
				if n%499 == 0 && Write(&failing{n}, f, as, kind) == nil {
					t.Fatalf("%s of %s: no error after %d bytes", as, kind, n)
				}
			}
		}
	}
}

// FuzzReadCSV holds that a table that is taken gives a whole replay, whose table
// reads the same.
func FuzzReadCSV(f *testing.F) {
	for _, name := range []string{"lines-foreign.jsonl", "turns.rply", "late-ticks.rply", "rply1.rply"} {
		f.Add(written(f, samples(f)[name], CSV, All))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		back, err := readBack(b, CSV)
		if err != nil {
			return
		}
		if _, err := back.Check(); err != nil {
			t.Fatal(err)
		}
		once := written(t, back, CSV, All)
		again, err := readBack(once, CSV)
		if err != nil {
			t.Fatalf("%v in what was written:\n%s", err, once)
		}
		if twice := written(t, again, CSV, All); !bytes.Equal(once, twice) {
			t.Fatalf("written as\n%s\nthen as\n%s", once, twice)
		}
	})
}

// A footer that cannot be there takes no memory: the library would take 4 GiB.
func TestParquetFooterIsHeldAgainstTheFile(t *testing.T) {
	whole := written(t, samples(t)["turns.rply"], Parquet, All)
	room := uint32(len(whole) - 12)
	for _, footer := range []uint32{room + 1, 1 << 31, 1<<32 - 1} {
		b := slices.Clone(whole)
		binary.LittleEndian.PutUint32(b[len(b)-8:], footer)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readBack(b, Parquet)
		runtime.ReadMemStats(&after)
		if want := fmt.Sprintf("a footer of %d bytes, in a file that has room for %d", footer, room); !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
			t.Errorf("a footer of %d bytes: %d bytes of memory", footer, took)
		}
	}
	if _, err := readBack(whole[:11], Parquet); !errors.Is(err, format.ErrNotReplay) {
		t.Errorf("11 bytes: %v", err)
	}
}

// FuzzReadParquet holds that no bytes make the reader fail but by an error.
func FuzzReadParquet(f *testing.F) {
	f.Add(written(f, samples(f)["turns.rply"], Parquet, All))
	f.Fuzz(func(t *testing.T, b []byte) {
		if back, err := readBack(b, Parquet); err == nil {
			if _, err := back.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// farReader notes how far a source was read.
type farReader struct {
	src *bytes.Reader
	far int64
}

func (r *farReader) ReadAt(b []byte, at int64) (int, error) {
	r.far = max(r.far, at+int64(len(b)))
	return r.src.ReadAt(b, at)
}

// Rows leave as they come: where the first of them cannot be written, most of
// the replay has not been read.
func TestWriteStreams(t *testing.T) {
	var out format.Buffer
	w, err := format.NewWriter(&out, &format.Metadata{Width: format.Width8}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(4 * groupRows) {
		if err := errors.Join(w.Step(1, format.Int(i), format.Int(i*i)), w.EndTick()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(format.EndSealed, ""); err != nil {
		t.Fatal(err)
	}
	size := int64(len(out.Bytes()))
	for _, as := range []Format{CSV, Parquet} {
		src := &farReader{src: bytes.NewReader(out.Bytes())}
		f, err := format.NewFile(src, size)
		if err != nil {
			t.Fatal(err)
		}
		src.far = 0
		if err := Write(&failing{1000}, f, as, Steps); err == nil {
			t.Fatal("no error")
		}
		if src.far > size/2 {
			t.Errorf("%s: %d of %d bytes were read before the first rows were written", as, src.far, size)
		}
	}
}
