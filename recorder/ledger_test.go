package recorder

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"reflect"
	"syscall"
	"testing"
	"time"

	"reprise/format"
	"reprise/recorder/disktest"
)

func ledgerEntries() []*entry {
	open := &entry{number: 17, id: "m-42", start: "20261129T190259Z", producer: producerID{0x8a, 0x51}, epoch: 3}
	sealed, unfinished := *open, *open
	sealed.end = &SealInfo{State: format.EndSealed, File: "sealed/" + open.file(), EndedAt: time.UnixMicro(1795978979000001).UTC(),
		Totals: format.Totals{NextTick: 7200, Ticks: 7200, Steps: 9120, Hashes: 240}, Seq: 118, Bytes: 61530, Digest: format.Digest{0x9f}}
	end := *sealed.end
	end.State, end.File = format.EndUnfinished, "unfinished/"+open.file()
	unfinished.number, unfinished.end = 18, &end
	return []*entry{open, &sealed, &unfinished}
}

func TestLedgerLines(t *testing.T) {
	golden := []string{
		"1 17 m-42 20261129T190259Z 8a510000000000000000000000000000 3 open 0be2e0b1",
		"1 17 m-42 20261129T190259Z 8a510000000000000000000000000000 3 sealed 1795978979000001 7200 7200 9120 240 118 61530 9f00000000000000000000000000000000000000000000000000000000000000 35cd6d8f",
		"1 18 m-42 20261129T190259Z 8a510000000000000000000000000000 3 unfinished 1795978979000001 7200 7200 9120 240 118 61530 9f00000000000000000000000000000000000000000000000000000000000000 d17f252d",
	}
	for i, e := range ledgerEntries() {
		line := appendEntry(nil, e)
		if string(line) != golden[i] {
			t.Errorf("stored as\n%s, want\n%s", line, golden[i])
		}
		back, err := parseEntry(line)
		if err != nil || !reflect.DeepEqual(back, e) {
			t.Errorf("read back as %+v, %v", back, err)
		}
		for n := range line {
			if _, err := parseEntry(line[:n]); !errors.Is(err, errLedgerLine) {
				t.Errorf("cut after %d characters: %v", n, err)
			}
			bad := bytes.Clone(line)
			bad[n] ^= 1
			if _, err := parseEntry(bad); err == nil {
				t.Errorf("with character %d changed it is still a line", n)
			}
		}
	}
}

// loadLedger opens the file as a start does.
func loadLedger(t *testing.T, disk *disktest.Disk) (*ledger, map[uint64]*entry, int) {
	t.Helper()
	l, live, damaged, err := openLedger(disk, ledgerName, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return l, live, damaged
}

func TestLedgerRemembersForGood(t *testing.T) {
	disk := newDisk()
	l, _, _ := loadLedger(t, disk)
	for i := range 1000 {
		l.add(&entry{number: l.nextNumber(), id: fmt.Sprintf("Match-%d", i), start: "20261129T190259Z", epoch: 1})
		if i%100 == 0 {
			if err := l.save(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.save(); err != nil {
		t.Fatal(err)
	}
	for again := range 2 {
		for i := range 1000 {
			e, err := l.find(idKey(fmt.Sprintf("mATCH-%d", i)))
			if err != nil || e == nil || e.number != uint64(i+1) {
				t.Fatalf("again %d: match %d is found as %+v, %v", again, i, e, err)
			}
		}
		if e, err := l.find("match-1000"); e != nil || err != nil {
			t.Fatalf("a new id is found as %+v, %v", e, err)
		}
		var live map[uint64]*entry
		if l, live, _ = loadLedger(t, disk); len(live) != 1000 || l.numbers != 1000 {
			t.Fatalf("%d live sessions, numbers up to %d", len(live), l.numbers)
		}
	}
}

// TestLedgerTornTail cuts the file at every byte: whole lines stay, and the
// next line is appended behind them.
func TestLedgerTornTail(t *testing.T) {
	var whole []byte
	ends := []int{0}
	for _, e := range ledgerEntries() {
		whole = append(appendEntry(whole, e), '\n')
		ends = append(ends, len(whole))
	}
	for n := range whole {
		disk := newDisk()
		f, _ := disk.OpenFile(ledgerName, true)
		f.WriteAt(append(bytes.Clone(whole[:n]), 0)[:n], 0)
		l, _, damaged := loadLedger(t, disk)
		lines := 0
		for lines+1 < len(ends) && ends[lines+1] <= n {
			lines++
		}
		if damaged != 0 || l.size != int64(ends[lines]) {
			t.Fatalf("cut after %d bytes: %d damaged, size %d, want %d", n, damaged, l.size, ends[lines])
		}
		l.add(&entry{number: 99, id: "later", start: "20261129T190259Z"})
		if err := l.save(); err != nil {
			t.Fatal(err)
		}
		l, _, damaged = loadLedger(t, disk)
		e, err := l.find("later")
		if err != nil || e == nil || e.number != 99 || damaged > 1 {
			t.Fatalf("cut after %d bytes: the next line is read as %+v, %v, %d damaged", n, e, err, damaged)
		}
	}
}

func TestLedgerDamage(t *testing.T) {
	disk := newDisk()
	l, _, _ := loadLedger(t, disk)
	for i := range 5 {
		l.add(&entry{number: l.nextNumber(), id: fmt.Sprintf("m%d", i), start: "20261129T190259Z"})
	}
	if err := l.save(); err != nil {
		t.Fatal(err)
	}
	f, _ := disk.OpenFile(ledgerName, false)
	f.WriteAt([]byte("X"), 80) // in the second line
	l, live, damaged := loadLedger(t, disk)
	if damaged != 1 || len(live) != 4 {
		t.Fatalf("%d damaged, %d live", damaged, len(live))
	}
	// A line of a newer program stops the start: it could be of any meaning.
	line := []byte("2 6 m6 20261129T190259Z 00 0 open ")
	line = fmt.Appendf(line, "%08x\n", crc32.Checksum(line, castagnoli))
	f.WriteAt(line, l.size)
	if _, _, _, err := openLedger(disk, ledgerName, slog.New(slog.DiscardHandler)); !errors.Is(err, format.ErrNewer) {
		t.Fatalf("a newer line gives %v", err)
	}
}

// TestLedgerSaveFails: what could not be written or synced is written again,
// at its place.
func TestLedgerSaveFails(t *testing.T) {
	for _, kind := range []disktest.Op{disktest.OpWrite, disktest.OpSync} {
		disk := newDisk()
		l, _, _ := loadLedger(t, disk)
		l.add(&entry{number: 1, id: "one", start: "20261129T190259Z"})
		disk.SetFault(func(_ int, k disktest.Op, _ string) disktest.Fault {
			if k == kind {
				return disktest.Fault{Err: syscall.EIO}
			}
			return disktest.Fault{}
		})
		if err := l.save(); !errors.Is(err, syscall.EIO) {
			t.Fatalf("save with a failing %s: %v", kind, err)
		}
		disk.SetFault(nil)
		l.add(&entry{number: 2, id: "two", start: "20261129T190259Z"})
		if err := l.save(); err != nil {
			t.Fatal(err)
		}
		disk.SyncDir(".")
		after := disk.Crash(disktest.SurviveNothing)
		l, live, damaged := loadLedger(t, after)
		if damaged != 0 || len(live) != 2 {
			t.Fatalf("after a failing %s: %d live, %d damaged", kind, len(live), damaged)
		}
		if e, err := l.find("two"); err != nil || e == nil {
			t.Fatal(e, err)
		}
	}
}

// FuzzLedgerLine: what is read as a line is written back as the same bytes.
func FuzzLedgerLine(f *testing.F) {
	for _, e := range ledgerEntries() {
		f.Add(appendEntry(nil, e))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		// The checksum is not what is tried here.
		if i := bytes.LastIndexByte(line, ' ') + 1; i > 0 {
			line = fmt.Appendf(line[:i:i], "%08x", crc32.Checksum(line[:i], castagnoli))
		}
		e, err := parseEntry(line)
		if err == nil && string(appendEntry(nil, e)) != string(line) {
			t.Fatalf("%q is written back as %q", line, appendEntry(nil, e))
		}
	})
}
