package ship

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Epochs grow with every start, also where a clock went back or a record is
// an old one.
func TestStartsGrow(t *testing.T) {
	r := newRecord("a.rply", &claim{session: "a"})
	r.begin()
	if now := uint64(time.Now().Unix()); r.Start < now-5 {
		t.Errorf("the first start is %d, want the clock's %d", r.Start, now)
	}
	for _, last := range []uint64{r.Start, 1 << 40} {
		r.Start = last
		if r.begin(); r.Start <= last {
			t.Errorf("start %d after %d", r.Start, last)
		}
	}
}

func TestRecordsComeBack(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.rply", "\xff \n/%2F?.rply", "düel.rply"} {
		r := newRecord(name, &claim{session: "Ab.C", named: true, head: "h"})
		r.Offset, r.Sum, r.Ending = 7, "s", "why"
		if err := r.save(dir, true); err != nil {
			t.Fatal(err)
		}
		got, err := loadRecord(filepath.Join(dir, "ab.c.json"))
		if err != nil {
			t.Fatal(err)
		}
		if got.file() != name || got.key() != r.key() || *got != *r {
			t.Errorf("%+v comes back as %+v", r, got)
		}
	}
}

func TestRecordsThatAreRefused(t *testing.T) {
	home := t.TempDir()
	for what, text := range map[string]string{
		"no JSON":   "{",
		"version":   `{"version":2,"file":"a","session":"a","key":"00112233445566778899aabbccddeeff"}`,
		"short key": `{"version":1,"file":"a","session":"a","key":"00"}`,
		"no file":   `{"version":1,"session":"a","key":"00112233445566778899aabbccddeeff"}`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := openBook(dir, home); err == nil {
			b.close()
			t.Errorf("%s: it is taken", what)
		}
	}
}
