package archive

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/format"
	"reprise/recorder/disktest"
)

func catalogEntry(i int) *Entry {
	return &Entry{ID: fmt.Sprintf("M-%d", i), File: fmt.Sprintf("archive/2026/room-M-%d.rply", i), Game: "che\"ss\n", End: format.EndUnfinished, Since: noon,
		Bytes: 100, Source: 300, Root: format.Digest{byte(i), byte(i >> 8), 1}, From: "inbox/x y.rply"}
}

func loadCatalog(t testing.TB, d Disk) (*catalog, int) {
	t.Helper()
	c, damaged, err := readCatalog(d)
	must(t, err)
	return c, damaged
}

// The lines are stored: they read the same for good.
func TestCatalogLines(t *testing.T) {
	gone := noon.Add(time.Hour)
	for want, l := range map[string]catalogLine{
		`1cec1b41 {"v":1,"id":"M-7","file":"archive/2026/room-M-7.rply","game":"che\"ss\n","state":"unfinished","since":"2026-11-29T12:00:00Z","bytes":100,"source_bytes":300,"root":"0700010000000000000000000000000000000000000000000000000000000000","from":"inbox/x y.rply"}` + "\n": lineOf(catalogEntry(7)),
		`ec9de917 {"v":1,"id":"M-7","file":"archive/x.rply","gone":"2026-11-29T13:00:00Z","why":"older than 1h0m0s"}` + "\n":                                                                                                                                                             {ID: "M-7", File: "archive/x.rply", Gone: &gone, Why: "older than 1h0m0s"},
	} {
		line := appendLine(nil, l)
		if string(line) != want {
			t.Errorf("stored as\n%swant\n%s", line, want)
		}
		for i := range line[:len(line)-1] {
			bad := bytes.Clone(line[:len(line)-1])
			bad[i] ^= 1
			if _, err := parseLine(bad); err == nil {
				t.Errorf("with byte %d changed it is still a line", i)
			}
		}
	}
	back, _ := loadCatalog(t, catalogOf(t, appendLine(nil, lineOf(catalogEntry(7)))))
	if e := back.find("m-7"); !reflect.DeepEqual(e, catalogEntry(7)) {
		t.Errorf("read back as %+v", e)
	}
}

func catalogOf(t testing.TB, b []byte) simulated {
	d := newSimulated(1)
	put(t, d, catalogName, b)
	return d
}

func TestCatalogRemembers(t *testing.T) {
	d := newSimulated(1)
	c, _ := loadCatalog(t, d)
	for i := range 50 {
		must(t, c.add(catalogEntry(i)))
	}
	for i := range 20 {
		must(t, c.drop(catalogEntry(i), "older"))
	}
	must(t, c.add(catalogEntry(3)))
	for range 2 {
		if all := c.all(); len(all) != 31 || c.find("m-3") == nil || c.find("M-4") != nil || c.named("ARCHIVE/2026/room-m-40.rply") == nil ||
			c.same(catalogEntry(41).Root) == nil || c.same(catalogEntry(5).Root) != nil || c.madeOf("inbox/x y.rply") == nil {
			t.Fatalf("%d entries", len(all))
		}
		c, _ = loadCatalog(t, simulated{d.Crash(disktest.SurviveNothing)})
	}
}

// Whatever one bit or one cut does to the file, every line that is whole is
// read, and the next write leaves a file without fault.
func TestDamagedCatalog(t *testing.T) {
	var whole []byte
	for i := range 3 {
		whole = appendLine(whole, lineOf(catalogEntry(i)))
	}
	for at := range whole {
		bad := bytes.Clone(whole)
		bad[at] ^= 0x20
		mended(t, bad, bytes.Count(whole[:at], []byte("\n")))
		mended(t, whole[:at], bytes.Count(whole[:at], []byte("\n")))
	}
}

// mended reads a bad catalog, of which so many first lines are whole.
func mended(t *testing.T, b []byte, first int) {
	t.Helper()
	d := catalogOf(t, b)
	c, _ := loadCatalog(t, d)
	for i := range first {
		if !reflect.DeepEqual(c.find(catalogEntry(i).ID), catalogEntry(i)) {
			t.Fatalf("of %q the line %d is not read", b, i)
		}
	}
	had := len(c.all())
	must(t, c.add(catalogEntry(9)))
	if c, damaged := loadCatalog(t, d); damaged > 0 || len(c.all()) != had+1 || c.suspect {
		t.Fatalf("%q was not mended: %d damaged lines, %d entries, had %d", b, damaged, len(c.all()), had)
	}
}

// Lines that no longer count are dropped when they are many.
func TestCatalogIsCompacted(t *testing.T) {
	d := newSimulated(1)
	c, _ := loadCatalog(t, d)
	must(t, c.add(catalogEntry(1)))
	most := 0
	for range compactAt {
		must(t, c.add(catalogEntry(2)))
		must(t, c.drop(catalogEntry(2), "x"))
		b, _ := d.Bytes(catalogName)
		most = max(most, bytes.Count(b, []byte("\n")))
	}
	if most > compactAt+10 {
		t.Errorf("the catalog grew to %d lines", most)
	}
	if c, _ := loadCatalog(t, d); len(c.all()) != 1 || c.find("M-1") == nil {
		t.Errorf("entries %v", c.all())
	}
}

// A catalog of a later version is not taken for a damaged one.
func TestNewerCatalog(t *testing.T) {
	line := string(appendLine(nil, lineOf(catalogEntry(1))))
	doc := strings.Replace(line[9:len(line)-1], `"v":1`, `"v":2`, 1)
	newer := fmt.Appendf(nil, "%08x %s\n", crc(doc), doc)
	if _, _, err := readCatalog(catalogOf(t, newer)); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("error %v, want one that names the version", err)
	}
}

// Archives whose lines are lost are found again, those that were taken away
// leave, and what is somebody else's is let alone.
func TestAudit(t *testing.T) {
	d, l := newSimulated(1), newLedger()
	for i := range 4 {
		l.record(t, d, match{id: fmt.Sprintf("m-%d", i), game: "chess", ticks: 10, seed: uint64(i)}, noon)
	}
	a := opened(t, config(d, l))
	a.rounds()
	taken, _ := a.Find("m-3")
	must(t, d.Remove(taken.File))
	must(t, d.Remove(catalogName))
	put(t, d, "archive/2026/foreign.rply", match{id: "foreign", ticks: 5}.bytes(t))
	put(t, d, "archive/2026/text.rply", []byte("no replay"))
	put(t, d, "archive/2026/notes.txt", []byte("notes"))
	var log logged
	cfg := config(d, l)
	cfg.Log = log.logger()
	a = opened(t, cfg)
	for range 2 {
		must(t, a.audit(context.Background()))
	}
	var ids []string
	for _, e := range a.catalog.all() {
		ids = append(ids, e.ID)
		if !e.Found || e.Game != "chess" || e.Since != noon || e.Bytes == 0 || e.Source == 0 {
			t.Errorf("entry %+v", e)
		}
	}
	if !slices.Equal(ids, []string{"m-0", "m-1", "m-2"}) {
		t.Errorf("found %v", ids)
	}
	for _, name := range []string{"foreign.rply", "text.rply"} {
		if n := strings.Count(log.String(), name); n != 1 {
			t.Errorf("%s is named %d times", name, n)
		}
	}
	if strings.Contains(log.String(), "notes.txt") {
		t.Error("a file that is no replay is complained of")
	}
}

// A ledger that was lost learns the ids of all archives before anything else.
func TestLostLedger(t *testing.T) {
	d, l := newSimulated(1), newLedger()
	l.record(t, d, match{id: "m-1", ticks: 10}, noon)
	a := opened(t, config(d, l))
	a.rounds()
	e, _ := a.Find("m-1")
	l = newLedger()
	opened(t, config(d, l))
	if st, ok := l.Lookup("m-1"); !ok || st.Ended.Digest != e.Root || !st.Ended.EndedAt.Equal(noon) {
		t.Errorf("the ledger has %+v, %v", st, ok)
	}
}
