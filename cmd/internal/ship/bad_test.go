package ship

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/cmd/internal/daemon"
	"reprise/format"
)

// unsealed wants the end of a run that could not seal everything.
func unsealed(t testing.TB, r *run, want Summary) {
	t.Helper()
	if err := r.wait(); !errors.Is(err, ErrUnsealed) {
		t.Errorf("the run ends with %v, want ErrUnsealed", err)
	}
	if got := r.summary(); got != want {
		t.Errorf("summary %+v, want %+v", got, want)
	}
}

// failure wants that a file was given up once, and gives the reason.
func failure(t testing.TB, r *run, file string) error {
	t.Helper()
	list := r.of(EventFailed, file)
	if len(list) != 1 {
		t.Fatalf("%q was given up %d times, want once\n%s", file, len(list), r)
	}
	return list[0].Err
}

func TestBadFilesAreNamedAndHoldUpNothing(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	newer := append([]byte(nil), live("x", 1, 1).bytes(t)...)
	newer[10] = 9
	binary.BigEndian.PutUint32(newer[12:], crc32.Checksum(newer[:12], crc32.MakeTable(crc32.Castagnoli)))
	put(t, dir, "text.rply", []byte("no replay at all"))
	put(t, dir, "empty.rply", nil)
	put(t, dir, "newer.rply", newer)
	put(t, dir, "notes.txt", []byte("not looked at"))
	put(t, dir, ".hidden.rply", []byte("not looked at"))
	put(t, dir, "cut.jsonl.zst", []byte("\x28\xb5\x2f\xfdxx"))
	must(t, os.Mkdir(filepath.Join(dir, "folder.rply"), 0o755))
	good := finished("good", 1, 100).bytes(t)
	put(t, dir, "good.rply", good)
	r := begin(t, h.config(dir))
	unsealed(t, r, Summary{Sealed: 1, Failed: 5})
	same(t, good, sealedOne(t, h.cfg.Data, "good"))
	for file, want := range map[string]error{"text.rply": format.ErrNotReplay, "empty.rply": format.ErrNotReplay, "newer.rply": format.ErrNewer,
		"folder.rply": format.ErrNotReplay} {
		if err := failure(t, r, file); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", file, err, want)
		}
	}
	failure(t, r, "cut.jsonl.zst")
}

// damaged changes one byte in the middle, and says how many whole ticks are
// before it and where the damaged chunk begins.
func damaged(t testing.TB, b []byte) (bad []byte, totals format.Totals, at int64) {
	t.Helper()
	bad = append([]byte(nil), b...)
	bad[len(bad)/2] ^= 0x40
	tracker, off := format.NewTracker(), int64(format.HeaderSize)
	for {
		c, n, err := format.ParseChunk(bad[off:])
		if err != nil {
			return bad, tracker.Totals(), off
		}
		must(t, tracker.Add(c, off))
		off += int64(n)
	}
}

// What is good of a damaged file is at the daemon, with the reason for its
// end; the next run says it again, and sends nothing.
func TestADamagedFileIsShippedUpToTheDamage(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(c *daemon.Config) { c.ResumeTimeout = daemon.Duration{Duration: 50 * time.Millisecond} })
	dir := t.TempDir()
	bad, totals, at := damaged(t, finished("bad", 21, 600).bytes(t))
	good := finished("good", 22, 100).bytes(t)
	put(t, dir, "bad.rply", bad)
	put(t, dir, "good.rply", good)
	r := begin(t, h.config(dir))
	unsealed(t, r, Summary{Sealed: 1, Failed: 1})
	err := failure(t, r, "bad.rply")
	if !strings.Contains(err.Error(), fmt.Sprintf("damaged at offset %d", at+6)) {
		t.Errorf("%v, want it to name offset %d", err, at+6)
	}
	same(t, good, sealedOne(t, h.cfg.Data, "good"))
	path := unfinished(t, h.cfg.Data, "bad")
	f, err := format.Open(path)
	must(t, err)
	defer f.Close()
	s := f.Summary()
	if s.Totals != totals {
		t.Errorf("the daemon has %+v, want %+v", s.Totals, totals)
	}
	if last := s.Marks[len(s.Marks)-1]; last.Kind != noteKind || last.Tick != totals.NextTick || !strings.Contains(last.Text, "damaged at offset") {
		t.Errorf("the last mark is %+v, want the reason", last)
	}
	before, err := os.ReadFile(path)
	must(t, err)
	again := begin(t, h.config(dir))
	unsealed(t, again, Summary{Before: 1, Failed: 1})
	failure(t, again, "bad.rply")
	if after, err := os.ReadFile(one(t, h.cfg.Data, "bad")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the second run changed the daemon's file: %v", err)
	}
}

// Ship is stopped when it has decided on the damage, before the daemon knows.
func TestADamagedFileIsEndedByTheNextRun(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	bad, totals, _ := damaged(t, live("bad", 23, 400).bytes(t))
	put(t, dir, "bad.rply", bad)
	r := follow(t, h.config(dir))
	r.await(EventFailed, "bad.rply", 1)
	r.end()
	b, err := openBook(filepath.Join(dir, StateFolder), dir)
	must(t, err)
	record := b.find("bad.rply")
	record.Ended = false
	must(t, b.save(record, true))
	b.close()
	r = begin(t, h.config(dir))
	unsealed(t, r, Summary{Failed: 1})
	path := one(t, h.cfg.Data, "bad")
	h.stop()
	f, err := format.Open(path)
	must(t, err)
	defer f.Close()
	notes := 0
	for _, m := range f.Summary().Marks {
		if m.Kind == noteKind {
			notes++
		}
	}
	if f.Summary().Totals != totals || notes != 1 {
		t.Errorf("the daemon has %+v and %d notes, want %+v and one", f.Summary().Totals, notes, totals)
	}
	h.start()
}

// Damage that passes before it is believed was a write that was not whole.
func TestDamageThatPasses(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	b := finished("passes", 29, 400).bytes(t)
	bad, _, at := damaged(t, b)
	path := put(t, dir, "passes.rply", bad)
	cfg := h.config(dir)
	cfg.settle = time.Hour
	r := follow(t, cfg)
	eventually(t, "all before the damage is read", func() bool {
		record, err := loadRecord(filepath.Join(dir, StateFolder, recordName("passes")))
		return err == nil && record.Offset == at
	})
	time.Sleep(4 * cfg.Rescan) // it is looked at again and again
	if list := r.of(EventFailed, ""); len(list) > 0 {
		t.Fatalf("damage was believed at once: %v", list)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	_, err = f.WriteAt(b[len(b)/2:], int64(len(b)/2))
	must(t, err)
	r.await(EventSealed, "passes.rply", 1)
	same(t, b, sealedOne(t, h.cfg.Data, "passes"))
}

// A write that is seen before its bytes are there is no damage.
func TestBytesThatComeLateAreNoDamage(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	b := finished("late", 24, 400).bytes(t)
	hole, _, at := damaged(t, b)
	clear(hole[at:]) // a tail of zeros
	path := put(t, dir, "late.rply", hole)
	r := follow(t, h.config(dir))
	r.await(EventStarted, "late.rply", 1)
	time.Sleep(100 * time.Millisecond) // damage would be believed by now
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	_, err = f.WriteAt(b[at:], at)
	must(t, err)
	r.await(EventSealed, "late.rply", 1)
	same(t, b, sealedOne(t, h.cfg.Data, "late"))
}

// A torn file is left unfinished, and goes on once it is whole.
func TestATornFileIsLeftAndGoneOnWith(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	b := finished("torn", 25, 400).bytes(t)
	path := put(t, dir, "torn.rply", b[:len(b)/2])
	r := begin(t, h.config(dir))
	unsealed(t, r, Summary{Unfinished: 1})
	e := r.await(EventUnfinished, "torn.rply", 1)
	if !errors.Is(e.Err, format.ErrTorn) {
		t.Errorf("unfinished for %v, want that it is torn", e.Err)
	}
	must(t, os.WriteFile(path, b, 0o644))
	once(t, h.config(dir))
	same(t, b, sealedOne(t, h.cfg.Data, "torn"))
}

// The length of a chunk is damaged, so that it runs past the end: only what
// follows shows that the file was not cut there.
func TestADamagedLengthIsNoTornTail(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	b := live("length", 26, 300).bytes(t)
	_, _, at := damaged(t, b)
	binary.BigEndian.PutUint32(b[at+2:], format.MaxBody)
	put(t, dir, "length.rply", b)
	r := begin(t, h.config(dir))
	unsealed(t, r, Summary{Failed: 1})
	if err := failure(t, r, "length.rply"); !strings.Contains(err.Error(), "whole chunks follow") {
		t.Errorf("%v, want that whole chunks follow", err)
	}
}

// The file states a digest that its content does not have.
func TestAFileWithAWrongDigestIsNotSealed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	for _, id := range []string{"forged", ""} {
		b := finished(id, 27, 200).bytes(t)
		for at := int64(format.HeaderSize); ; {
			c, n, err := format.ParseChunk(b[at:])
			must(t, err)
			if c.Type == format.ChunkDigest {
				c.Body[0] ^= 1
				copy(b[at:], format.AppendChunk(nil, c.Type, c.Seq, c.Body))
				break
			}
			at += int64(n)
		}
		put(t, dir, "file"+id+".rply", b)
	}
	r := begin(t, h.config(dir))
	unsealed(t, r, Summary{Failed: 2})
	for _, file := range []string{"fileforged.rply", "file.rply"} {
		if err := failure(t, r, file); !strings.Contains(err.Error(), "damaged") && !strings.Contains(err.Error(), format.ErrChanged.Error()) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if list, _ := filepath.Glob(filepath.Join(h.cfg.Data, "sealed", "*")); len(list) > 0 {
		t.Errorf("sealed %v", list)
	}
}

// A chunk is missing in the file, though all that is there is whole.
func TestAMissingChunkIsDamage(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	b := live("hole", 28, 300).bytes(t)
	for at := format.HeaderSize; ; {
		c, n, err := format.ParseChunk(b[at:])
		must(t, err)
		if c.Type == format.ChunkMark {
			b = append(b[:at:at], b[at+n:]...)
			break
		}
		at += n
	}
	put(t, dir, "hole.rply", b)
	r := begin(t, h.config(dir))
	unsealed(t, r, Summary{Failed: 1})
	if err := failure(t, r, "hole.rply"); !strings.Contains(err.Error(), "is due") {
		t.Errorf("%v, want the chunk that is due", err)
	}
}
