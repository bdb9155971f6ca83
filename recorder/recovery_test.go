package recorder

import (
	"bytes"
	"errors"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
	"reprise/recorder/disktest"
)

// afterCrash records ticks 0 to 99 of "m", all of them acknowledged, and
// turns the machine off; stored tells whether the file was written before.
func afterCrash(t *testing.T, stored bool, how disktest.Survival) *disktest.Disk {
	t.Helper()
	disk := newDisk()
	cfg := smallConfig(disk)
	cfg.FileInterval = time.Hour
	r := mustOpen(t, cfg)
	s, _, in := begin(t, r, "m", 1)
	for i := range format.Tick(10) {
		mustAppend(t, s, ticksChunk("m", uint64(i+1), i*10, i*10+10))
	}
	waitDurable(t, in, 10)
	if stored {
		if err := r.makeCheckpoint(); err != nil {
			t.Fatal(err)
		}
	}
	after := disk.Crash(how)
	r.Close(canceled())
	return after
}

// TestRecoveryOfDamage damages the data folder in one way, and starts.
func TestRecoveryOfDamage(t *testing.T) {
	live := func(disk *disktest.Disk) string { return disk.Find("room-m-")[0] }
	write := func(disk *disktest.Disk, name string, b []byte, at int64) {
		f, err := disk.OpenFile(name, true)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteAt(b, at)
	}
	size := func(disk *disktest.Disk, name string) int64 {
		b, _ := disk.Bytes(name)
		return int64(len(b))
	}
	for _, c := range []struct {
		name   string
		stored bool
		damage func(disk *disktest.Disk)
		code   Code        // of the producer's open; 0 for none
		next   format.Tick // that it is told
		state  State
	}{
		{"none, all in the journal", false, func(*disktest.Disk) {}, 0, 100, StateLive},
		{"none, all in the file", true, func(*disktest.Disk) {}, 0, 100, StateLive},
		{"torn tail", true, func(d *disktest.Disk) {
			f, _ := d.OpenFile(live(d), false)
			f.Truncate(size(d, live(d)) - 1)
		}, 0, 90, StateLive},
		{"half a footer", true, func(d *disktest.Disk) {
			end := format.AppendChunk(nil, format.ChunkEnd, 0, format.AppendEnd(nil, format.End{State: format.EndSealed, Totals: countsOf("m", 100)}))
			write(d, live(d), end, size(d, live(d)))
		}, 0, 100, StateLive},
		{"a file longer than the journal says", false, func(d *disktest.Disk) {
			write(d, path.Join(dataDir, liveFolder, "room-m-20000101T000000Z.rply"), bytes.Repeat([]byte("old end "), 1000), 0)
		}, 0, 100, StateLive},
		{"a flipped bit in the file", true, func(d *disktest.Disk) {
			b, _ := d.Bytes(live(d))
			write(d, live(d), []byte{b[500] ^ 1}, 500)
		}, CodeDamaged, 0, StateQuarantined},
		{"an empty file", true, func(d *disktest.Disk) {
			f, _ := d.OpenFile(live(d), false)
			f.Truncate(0)
		}, CodeDamaged, 0, StateQuarantined},
		{"the file is gone", true, func(d *disktest.Disk) { d.Remove(live(d)) }, CodeDamaged, 0, StateQuarantined},
		{"the file of another session", true, func(d *disktest.Disk) {
			write(d, live(d), append(format.AppendHeader(nil), openingOf("n", 0)...), 0)
			f, _ := d.OpenFile(live(d), false)
			f.Truncate(int64(format.HeaderSize + len(openingOf("n", 0))))
		}, CodeDamaged, 0, StateQuarantined},
		{"the ledger is gone", true, func(d *disktest.Disk) { d.Remove(path.Join(dataDir, ledgerName)) }, CodeExists, 0, StateDetached},
		{"a damaged line of the ledger", true, func(d *disktest.Disk) { write(d, path.Join(dataDir, ledgerName), []byte("?"), 10) }, CodeExists, 0, StateDetached},
		{"the checkpoint is damaged", true, func(d *disktest.Disk) {
			write(d, path.Join(dataDir, journalFolder, checkpointName), make([]byte, 2*pageSize), 0)
		}, 0, 100, StateLive},
		{"the journal is gone", true, func(d *disktest.Disk) {
			for _, name := range append(d.Find(segmentPrefix), path.Join(dataDir, journalFolder, checkpointName)) {
				d.Remove(name)
			}
		}, 0, 100, StateLive},
		{"a segment half made", true, func(d *disktest.Disk) {
			write(d, path.Join(dataDir, journalFolder, segmentName(7)), make([]byte, 1000), 0)
		}, 0, 100, StateLive},
		{"strange files", true, func(d *disktest.Disk) {
			for _, name := range []string{"room-x.rply", "room-x-2026.rply", "notes.txt", "room--20261129T190259Z.rply"} {
				write(d, path.Join(dataDir, liveFolder, name), []byte("?"), 0)
			}
			write(d, path.Join(dataDir, journalFolder, "segment-1"), []byte("?"), 0)
		}, 0, 100, StateLive},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := afterCrash(t, c.stored, disktest.SurviveNothing)
				c.damage(disk)
				r := mustOpen(t, smallConfig(disk))
				time.Sleep(time.Second) // all files are read
				_, reply, err := r.OpenSession(OpenRequest{ID: "m", Producer: key(1), Epoch: 2, Opening: openingOf("m", 0)})
				if c.code == 0 && (err != nil || reply.NextTick != c.next) || c.code != 0 && !errors.Is(err, &Refusal{Code: c.code}) {
					t.Fatalf("opened with %+v, %v", reply, err)
				}
				if c.code == 0 {
					b, _ := disk.Bytes(live(disk))
					if err := verifyTicks(b, "m", 0, c.next, nil); err != nil {
						t.Fatal(err)
					}
				}
				st, ok := r.Lookup("m")
				if !ok || st.State != c.state || st.State == StateQuarantined && st.Reason == "" {
					t.Fatalf("status %+v, %v", st, ok)
				}
				if _, _, err := r.OpenSession(OpenRequest{ID: "M", Producer: key(3), Opening: openingOf("M", 0)}); !errors.Is(err, &Refusal{Code: CodeExists}) {
					t.Fatalf("the id is free: %v", err)
				}
				mustClose(t, r)
			})
		})
	}
}

// countsOf are the totals of a session's first ticks.
func countsOf(id string, next format.Tick) format.Totals {
	c, _, _ := format.ParseChunk(ticksChunk(id, 1, 0, next))
	b, _ := format.ParseBatch(c.Body, 8)
	return format.Totals{NextTick: next, Ticks: uint64(next), Steps: uint64(b.Steps), Hashes: uint64(b.Hashes)}
}

// TestCautiousRecovery: where the journal no longer knows what of it is
// stale, old records do not take away what a file has.
func TestCautiousRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := afterCrash(t, false, disktest.SurviveNothing)
		early := path.Join(dataDir, journalFolder, "early")
		for _, name := range disk.Find(segmentPrefix) {
			b, _ := disk.Bytes(name)
			f, _ := disk.OpenFile(early+path.Base(name), true)
			f.WriteAt(b, 0)
		}
		r := mustOpen(t, smallConfig(disk))
		s, _, in := begin(t, r, "m", 2)
		mustAppend(t, s, ticksChunk("m", 11, 100, 200))
		waitDurable(t, in, 11)
		mustClose(t, r)
		for _, name := range disk.Find("early") { // the journal as it was before
			b, _ := disk.Bytes(name)
			f, _ := disk.OpenFile(path.Join(dataDir, journalFolder, strings.TrimPrefix(path.Base(name), "early")), true)
			f.WriteAt(b, 0)
		}
		f, _ := disk.OpenFile(path.Join(dataDir, journalFolder, checkpointName), false)
		f.WriteAt(bytes.Repeat([]byte{1}, 2*pageSize), 0)
		r = mustOpen(t, smallConfig(disk))
		if _, reply, _ := begin(t, r, "m", 3); reply.NextTick != 200 {
			t.Fatalf("reply %+v", reply)
		}
		mustClose(t, r)
	})
}

// TestReopenedAndCrashed: a session that was gone on with stays so, with
// nothing of its first end in the file, wherever the file is at the crash.
func TestReopenedAndCrashed(t *testing.T) {
	for _, c := range []struct {
		epoch  uint64
		placed bool
	}{{1, false}, {2, true}, {2, false}, {1, true}} {
		synctest.Test(t, func(t *testing.T) {
			disk := newDisk()
			cfg := smallConfig(disk)
			cfg.FileInterval = time.Hour
			r := mustOpen(t, cfg)
			s, _, in := begin(t, r, "m", 1)
			mustAppend(t, s, ticksChunk("m", 1, 0, 300))
			waitDurable(t, in, 1)
			s.Detach()
			time.Sleep(65 * time.Second)
			_, _, in = begin(t, r, "m", c.epoch)
			waitFor(t, "the opening", func() bool { return in.get().count > 0 })
			if c.placed {
				if err := r.makeCheckpoint(); err != nil {
					t.Fatal(err)
				}
			}
			after := disk.Crash(disktest.SurviveNothing)
			r.Close(canceled())
			r = mustOpen(t, smallConfig(after))
			time.Sleep(3 * time.Second)
			if st, ok := r.Lookup("m"); !ok || st.State != StateDetached || st.NextTick != 300 {
				t.Fatalf("%+v: status %+v", c, st)
			}
			name := after.Find("room-m-")[0]
			b, _ := after.Bytes(name)
			f, err := checkFile(b)
			if err != nil || f.Summary().End != nil || f.Torn != nil || !strings.Contains(name, liveFolder) {
				t.Fatalf("%+v: %s has %+v, %v", c, name, f.Summary(), err)
			}
			mustClose(t, r)
		})
	}
}

// TestSplitChunk turns the machine off while a chunk is stored that no
// segment can hold: it is there as a whole or not at all.
func TestSplitChunk(t *testing.T) {
	const ticks = 3000
	dropped := 0
	for k := 1; ; k++ {
		done := false
		synctest.Test(t, func(t *testing.T) {
			disk := newDisk()
			cfg := smallConfig(disk)
			cfg.SegmentBytes, cfg.Segments, cfg.MaxSegments = minSegmentBytes, 16, 16
			r := mustOpen(t, cfg)
			s, _, in := begin(t, r, "m", 1)
			waitFor(t, "the opening", func() bool { return in.get().count > 0 })
			chunk := ticksChunk("m", 1, 0, ticks)
			if len(chunk) < minSegmentBytes {
				t.Fatalf("the chunk has only %d bytes", len(chunk))
			}
			crash := disk.Operations() + k
			disk.SetFault(func(op int, _ disktest.Op, _ string) disktest.Fault { return disktest.Fault{Crash: op == crash} })
			mustAppend(t, s, chunk)
			time.Sleep(100 * time.Millisecond)
			acked := in.get().last.Durable == 1
			done = acked
			after := disk.Crash(disktest.SurviveAll)
			r.Close(canceled())
			r = mustOpen(t, smallConfig(after))
			_, reply, _ := begin(t, r, "m", 2)
			if reply.NextTick != 0 && reply.NextTick != ticks || acked && reply.NextTick != ticks {
				t.Fatalf("crash at operation %d: reply %+v, acknowledged %v", k, reply, acked)
			}
			if reply.NextTick == 0 && r.Stats().Recovered > 2 {
				dropped++
			}
			time.Sleep(3 * time.Second)
			b, _ := after.Bytes(after.Find("room-m-")[0])
			if err := verifyTicks(b, "m", 0, reply.NextTick, nil); err != nil {
				t.Fatal(err)
			}
			mustClose(t, r)
		})
		if done {
			break
		}
	}
	if dropped == 0 {
		t.Fatal("no crash left half of the chunk")
	}
}

// TestLedgerLostWithSealedFiles: ids stay taken as long as the files are
// there, even without the ledger.
func TestLedgerLostWithSealedFiles(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "a-b", 1)
		info := seal(t, r, s, "a-b", in)
		mustClose(t, r)
		disk.Remove(path.Join(dataDir, ledgerName))
		r = mustOpen(t, smallConfig(disk))
		_, _, err := r.OpenSession(OpenRequest{ID: "a-b", Producer: key(1), Epoch: 9, Opening: openingOf("a-b", 0)})
		wantRefusal(t, err, CodeExists)
		if st, ok := r.Lookup("a-b"); !ok || st.State != StateSealed || st.File != info.File {
			t.Fatalf("looked up as %+v, %v", st, ok)
		}
		mustClose(t, r)
	})
}

// TestDeletedStaysTaken: an id is not free once its file is deleted, also
// after a restart.
func TestDeletedStaysTaken(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		info := seal(t, r, s, "m", in)
		disk.Remove(path.Join(dataDir, info.File))
		for range 2 {
			_, _, err := r.OpenSession(OpenRequest{ID: "M", Producer: key(2), Epoch: 1, Opening: openingOf("M", 0)})
			wantRefusal(t, err, CodeExists)
			mustClose(t, r)
			r = mustOpen(t, smallConfig(disk))
		}
		if len(disk.Find("room-m-")) != 0 {
			t.Fatal("the deleted file is back")
		}
		mustClose(t, r)
	})
}

// TestReopenedFileIsGone: an unfinished session whose file was taken away
// cannot be gone on with.
func TestReopenedFileIsGone(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, _ := begin(t, r, "m", 1)
		s.Detach()
		time.Sleep(70 * time.Second)
		st, _ := r.Lookup("m")
		disk.Remove(path.Join(dataDir, st.File))
		_, _, err := r.OpenSession(OpenRequest{ID: "m", Producer: key(1), Epoch: 2, Opening: openingOf("m", 0)})
		wantRefusal(t, err, CodeEnded)
		if _, ok := r.Lookup("m"); !ok || len(r.List()) != 0 {
			t.Fatal("the session is held, or forgotten")
		}
	})
}

// TestChunkReader reads chunks of every size through a small window, and
// stops at a torn one.
func TestChunkReader(t *testing.T) {
	var file []byte
	var ends []int64
	for i, n := range []int{0, 1, 100, chunkWindow - 12, chunkWindow, 3 * chunkWindow, 5, 1 << 20} {
		file = format.AppendChunk(file, format.ChunkReports, uint64(i+1), make([]byte, n))
		ends = append(ends, int64(len(file)))
	}
	for cut := int64(0); cut <= int64(len(file)); cut += 1 + cut/50 {
		c := chunkReader{src: bytes.NewReader(file), size: cut}
		whole := 0
		var err error
		for err == nil {
			var chunk format.Chunk
			if chunk, _, _, err = c.next(); err == nil {
				whole++
				if chunk.Seq != uint64(whole) || c.at != ends[whole-1] {
					t.Fatalf("cut at %d: chunk %d ends at %d", cut, chunk.Seq, c.at)
				}
			}
		}
		want := 0
		for want < len(ends) && ends[want] <= cut {
			want++
		}
		if whole != want || (c.at == cut) == errors.Is(err, format.ErrTorn) {
			t.Fatalf("cut at %d: %d chunks, want %d, then %v", cut, whole, want, err)
		}
	}
}

// TestPlaces: whatever the length of a file, the notes are few, and lead to
// a place at or before what is looked for.
func TestPlaces(t *testing.T) {
	var p places
	for i := range uint64(200_000) {
		p.add(place{seq: i + 1, tick: format.Tick(i * 6), offset: format.HeaderSize + int64(i)*3000})
	}
	if len(p.list) > maxPlaces {
		t.Fatalf("%d notes", len(p.list))
	}
	for seq := uint64(1); seq < 200_000; seq += 997 {
		at := format.HeaderSize + int64(seq-1)*3000
		for _, got := range []int64{p.beforeSeq(seq), p.beforeTick(format.Tick(seq-1) * 6)} {
			if got > at || at-got > 2*p.spacing {
				t.Fatalf("chunk %d at %d is looked for from %d", seq, at, got)
			}
		}
	}
}
