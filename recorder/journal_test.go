package recorder

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"

	"reprise/recorder/disktest"
)

// TestGoldenBytes holds the stored forms: they must not change.
func TestGoldenBytes(t *testing.T) {
	r := record{kind: recordData, epoch: 0x0000000300000002, sequence: 77, session: 5, offset: 4096, bytes: []byte("chunk")}
	disk := newDisk()
	c, err := openCheckpointFile(disk, "checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.write(3, 70); err != nil {
		t.Fatal(err)
	}
	page, _ := disk.Bytes("checkpoint")
	for _, g := range []struct {
		name, want string
		got        []byte
	}{
		{"record", "6d264d080100000005" + "0000000300000002" + "000000000000004d" + "0000000000000005" + "0000000000001000" + "6368756e6b", appendRecord(nil, &r)},
		{"segment header", "52504c594a524e31" + "0000000300000002" + "000000000000004d" + "000000000000004b" + "26ca344b", appendSegmentHeader(nil, r.epoch, r.sequence, 75)[:segmentHeader]},
		{"checkpoint", "52504c59434b5031" + "0000000000000001" + "0000000000000003" + "0000000000000046" + "9533b869", page[pageSize : pageSize+checkpointBytes]},
	} {
		if got := hex.EncodeToString(g.got); got != g.want {
			t.Errorf("%s is stored as\n%s, want\n%s", g.name, got, g.want)
		}
	}
}

// TestRecordDamage cuts a record at every byte and flips every bit.
func TestRecordDamage(t *testing.T) {
	r := record{kind: recordLedger, epoch: 9, sequence: 4, session: 2, offset: 1 << 40, bytes: []byte("some bytes of a session")}
	b := appendRecord(nil, &r)
	got, n, ok := parseRecord(append(bytes.Clone(b), 1, 2, 3), 9, 4)
	if !ok || n != len(b) || got.kind != r.kind || got.session != 2 || got.offset != 1<<40 || !bytes.Equal(got.bytes, r.bytes) {
		t.Fatalf("read back as %+v, %v", got, ok)
	}
	for i := range b {
		if _, _, ok := parseRecord(b[:i], 9, 4); ok {
			t.Errorf("cut after %d bytes it is still a record", i)
		}
		for bit := range 8 {
			bad := bytes.Clone(b)
			bad[i] ^= 1 << bit
			if _, _, ok := parseRecord(bad, 9, 4); ok {
				t.Errorf("with bit %d of byte %d flipped it is still a record", bit, i)
			}
		}
	}
	if _, _, ok := parseRecord(b, 8, 4); ok {
		t.Error("a record of another epoch is taken")
	}
	if _, _, ok := parseRecord(b, 9, 5); ok {
		t.Error("a record of another number is taken")
	}
}

// startJournal opens and starts a journal with small segments.
func startJournal(t *testing.T, disk *disktest.Disk) *journal {
	t.Helper()
	j, segs, err := openJournal(disk, "journal", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	found, err := walk(segs, j.checkpoint.needed, math.MaxUint64, func(*segment, record, int64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	j.newBytes, j.begins, j.most = minSegmentBytes, 2, 4
	if err := j.start(segs, max(found.next, j.checkpoint.needed), demand{segments: 2}, false); err != nil {
		t.Fatal(err)
	}
	return j
}

// foundBatch is what a fresh start finds of one record: its pieces together.
type foundBatch struct {
	session uint64
	bytes   int
}

// committed reads what a fresh start finds in the journal.
func committed(t *testing.T, disk *disktest.Disk) []foundBatch {
	t.Helper()
	j, segs, err := openJournal(disk, "journal", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var found []foundBatch
	w, err := walk(segs, j.checkpoint.needed, math.MaxUint64, func(_ *segment, r record, _ int64) error {
		if len(bytes.Trim(r.bytes, string([]byte{byte(r.session)}))) > 0 {
			t.Fatalf("record %d holds bytes of another", r.session)
		}
		if n := len(found); n > 0 && found[n-1].session == r.session && r.offset > 0 {
			found[n-1].bytes += len(r.bytes)
			return nil
		}
		found = append(found, foundBatch{r.session, len(r.bytes)})
		return nil
	})
	if err != nil || w.lost > 0 {
		t.Fatalf("%d records lost, error %v", w.lost, err)
	}
	return found
}

// TestJournalKeepsBatches commits random batches on a disk that fails now
// and then, frees some, crashes, and looks for every record that was
// committed and not freed.
func TestJournalKeepsBatches(t *testing.T) {
	seed := seedOf(t)
	for round := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, round))
		disk := disktest.New(rng)
		for range 1 + rng.IntN(3) {
			j := startJournal(t, disk)
			disk.SetFault(func(int, disktest.Op, string) disktest.Fault {
				if rng.IntN(12) == 0 {
					return disktest.Fault{Err: syscall.EIO}
				}
				return disktest.Fault{}
			})
			kept, freed := runBatches(rng, j)
			disk = disk.Crash(disktest.Survival(rng.IntN(3)))
			found := committed(t, disk)
			err := compareBatches(found, kept)
			for _, n := range freed {
				if err != nil && compareBatches(found, kept[n:]) == nil && (len(found) == 0 || n == 0 || found[0].session > kept[n-1].session) {
					err = nil
				}
			}
			if err != nil {
				t.Fatalf("seed %d, round %d: %v", seed, round, err)
			}
		}
	}
}

// compareBatches wants every kept record once, whole and in order.
func compareBatches(found, kept []foundBatch) error {
	for i, f := range found {
		if i > 0 && f.session <= found[i-1].session {
			return fmt.Errorf("record %d behind record %d", f.session, found[i-1].session)
		}
		if len(kept) > 0 && f.session == kept[0].session {
			if f != kept[0] {
				return fmt.Errorf("found %+v, committed was %+v", f, kept[0])
			}
			kept = kept[1:]
		}
	}
	if len(kept) > 0 {
		return fmt.Errorf("record %d was committed, and is gone", kept[0].session)
	}
	return nil
}

// runBatches returns what was committed and not freed. Each number in freed is
// how many of them may be freed all the same, for nobody knows what came of a
// checkpoint that failed.
func runBatches(rng *rand.Rand, j *journal) (kept []foundBatch, freed []int) {
	number := uint64(0)
	for range 5 + rng.IntN(40) {
		var batch []foundBatch
		for range 1 + rng.IntN(4) {
			number++
			size := rng.IntN(3000)
			if rng.IntN(15) == 0 {
				size = rng.IntN(100_000) // more than a segment holds
			}
			batch = append(batch, foundBatch{number, size})
		}
		free := func() {
			if j.release(j.settledAt()) == nil {
				kept, freed = nil, nil
			} else {
				freed = append(freed, len(kept))
			}
		}
		for tries := 0; !tryBatch(j, batch); tries++ {
			j.giveUp()
			for i := range batch {
				batch[i].bytes++ // what came in meanwhile goes along
			}
			if tries == 8 {
				return kept, freed
			}
			free()
		}
		j.settle()
		kept = append(kept, batch...)
		switch rng.IntN(12) {
		case 0, 1:
			free()
		case 2:
			j.growEarly()
		}
	}
	return kept, freed
}

func tryBatch(j *journal, batch []foundBatch) bool {
	for _, x := range batch {
		r := record{kind: recordData, session: x.session, bytes: bytes.Repeat([]byte{byte(x.session)}, x.bytes)}
		if j.add(r) != nil {
			return false
		}
	}
	return j.commit() == nil && j.cur.at%pageSize == 0
}

func TestCheckpointFilePages(t *testing.T) {
	disk := newDisk()
	name := filepath.Join("journal", checkpointName)
	open := func() *checkpointFile {
		c, err := openCheckpointFile(disk, name)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := open()
	for i := range uint64(4) {
		if err := c.write(1, 100+i); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		name   string
		damage []int64 // pages
		needed uint64
		whole  bool
	}{
		{"none", nil, 103, true},
		{"the newer", []int64{0}, 102, true},
		{"both", []int64{0, 1}, 0, false},
	} {
		for _, page := range x.damage {
			f, _ := disk.OpenFile(name, false)
			f.WriteAt([]byte{0xff}, page*pageSize+20)
		}
		if c := open(); c.needed != x.needed || c.whole != x.whole {
			t.Errorf("with %s of the pages damaged: needed %d, whole %v", x.name, c.needed, c.whole)
		}
	}
}

// FuzzSegment: whatever stands in a segment, reading it ends, and gives
// records that were written as they are read.
func FuzzSegment(f *testing.F) {
	whole := appendSegmentHeader(nil, 1<<runShift, 5, 5)
	for seq := range uint64(3) {
		whole = appendRecord(whole, &record{kind: recordData, epoch: 1 << runShift, sequence: 5 + seq, session: 2, offset: int64(seq) * 10, bytes: make([]byte, 10)})
	}
	f.Add(whole)
	f.Add(append(bytes.Clone(whole), make([]byte, pageSize)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		disk := newDisk()
		file, _ := disk.OpenFile(segmentName(0), true)
		file.WriteAt(b, 0)
		segs, _, err := openSegments(disk, ".")
		if err != nil {
			t.Fatal(err)
		}
		_, err = walk(segs, 0, math.MaxUint64, func(s *segment, r record, at int64) error {
			again := appendRecord(nil, &r)
			if from := at - recordHeader; !bytes.Equal(again, b[from:from+int64(len(again))]) {
				t.Fatalf("record at %d is written back otherwise", from)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
