package recorder

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
	"reprise/recorder/disktest"
)

func newDisk() *disktest.Disk { return disktest.New(rand.New(rand.NewPCG(1, 2))) }

// inBubble runs a test with a recorder on a disk in memory, in virtual time.
func inBubble(t *testing.T, change func(*Config), test func(t *testing.T, r *Recorder, disk *disktest.Disk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		disk := newDisk()
		cfg := smallConfig(disk)
		if change != nil {
			change(&cfg)
		}
		r := mustOpen(t, cfg)
		test(t, r, disk)
		if !r.closing.Load() {
			mustClose(t, r)
		}
	})
}

func TestRecordAndSeal(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, reply, in := begin(t, r, "m1", 1)
		if reply.Resumed || reply.NextTick != 0 || reply.Window != 16<<10 {
			t.Fatalf("reply %+v", reply)
		}
		for i := range 20 {
			mustAppend(t, s, ticksChunk("m1", uint64(i+1), format.Tick(i*10), format.Tick(i*10+10)))
		}
		waitDurable(t, in, 20)
		if got := in.get().last; got.DurableTick != 200 || got.Received != 20 {
			t.Fatalf("acknowledgement %+v", got)
		}
		info := seal(t, r, s, "m1", in)
		if info.State != format.EndSealed || info.NextTick != 200 || info.Ticks != 200 || info.Seq != 20 || path.Dir(info.File) != sealedFolder {
			t.Fatalf("sealed as %+v", info)
		}
		b := sealedBytes(t, disk, info)
		if err := verifyTicks(b, "m1", 0, 200, nil); err != nil {
			t.Fatal(err)
		}
		f, _ := checkFile(b)
		if sum := f.Summary(); !sum.Complete() || *sum.Digest != info.Digest || sum.Totals != info.Totals {
			t.Fatalf("summary %+v, told was %+v", sum, info)
		}
		wantRefusal(t, s.Append(ticksChunk("m1", 21, 200, 210)), CodeEnded)
		wantRefusal(t, s.Seal(info.Totals), CodeEnded)
		if st, ok := r.Lookup("M1"); !ok || st.State != StateSealed || st.Ended.Digest != info.Digest || st.Ticks != 200 {
			t.Fatalf("looked up as %+v, %v", st, ok)
		}
	})
}

// TestZeroTicks: a session without ticks is kept like any other.
func TestZeroTicks(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "empty", 1)
		info := seal(t, r, s, "empty", in)
		f, err := checkFile(sealedBytes(t, disk, info))
		if err != nil || f.Summary().Ticks != 0 || !f.Summary().Complete() {
			t.Fatalf("summary %+v, %v", f.Summary(), err)
		}
	})
}

// TestOpening refuses what no session can begin with.
func TestOpening(t *testing.T) {
	meta := func(id string) []byte {
		return format.AppendChunk(nil, format.ChunkMeta, 0, format.AppendMeta(nil, metaOf(id, 0)))
	}
	book := format.AppendChunk(nil, format.ChunkBook, 0, format.AppendBook(nil, &format.CodeBook{}))
	salt := make([]byte, format.SaltBytes)
	players := format.AppendChunk(nil, format.ChunkPlayers, 0, format.AppendPlayers(nil, salt, []format.PlayerEvent{{ID: 1, Name: "a"}}))
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	damaged := meta("x")
	damaged[20] ^= 1
	for _, c := range []struct {
		name    string
		opening []byte
		code    Code // 0 for none
	}{
		{"metadata alone", meta("x"), 0},
		{"all three", join(meta("x"), book, players), 0},
		{"players without a book", join(meta("x"), players), 0},
		{"none", nil, CodeUnknown},
		{"no metadata", book, CodeOrder},
		{"book after players", join(meta("x"), players, book), CodeInvalid},
		{"two books", join(meta("x"), book, book), CodeInvalid},
		{"another session", meta("y"), CodeInvalid},
		{"numbered", format.AppendChunk(nil, format.ChunkMeta, 1, format.AppendMeta(nil, metaOf("x", 0))), CodeInvalid},
		{"ticks", join(meta("x"), ticksChunk("x", 0, 0, 5)), CodeInvalid},
		{"damaged", damaged, CodeDamaged},
		{"torn", meta("x")[:30], CodeDamaged},
		{"too long", make([]byte, format.MaxOpening+1), CodeLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, r *Recorder, _ *disktest.Disk) {
				_, _, err := r.OpenSession(OpenRequest{ID: "x", Producer: key(1), Epoch: 1, Opening: c.opening})
				if c.code == 0 {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				wantRefusal(t, err, c.code)
				if _, ok := r.Lookup("x"); ok {
					t.Fatal("the refused session is there")
				}
			})
		})
	}
	for _, id := range []string{"", "a/b", "../x", strings.Repeat("x", 65), "a b", "..", "ä"} {
		inBubble(t, nil, func(t *testing.T, r *Recorder, _ *disktest.Disk) {
			_, _, err := r.OpenSession(OpenRequest{ID: id, Opening: meta("x")})
			wantRefusal(t, err, CodeInvalid)
		})
	}
}

// TestAppendTable sends one chunk to a session that has the ticks 0 to 99 in
// chunks 1 to 10, a gap from 100 to 119 as chunk 11, and the ticks 120 to 129
// as chunk 12.
func TestAppendTable(t *testing.T) {
	const id = "m"
	other := func(seq uint64, first, next format.Tick, wrong format.Tick) []byte {
		b := format.NewBatchBuilder(format.Width16, 8, first)
		for x := first; x < next; x++ {
			if x == wrong {
				b.Step(999)
			}
			addTick(b, id, x)
		}
		return format.AppendChunk(nil, format.ChunkTicks, seq, b.AppendBody(nil))
	}
	hashes := func(seq uint64, ticks ...format.Tick) []byte {
		var list []format.TickHash
		for _, x := range ticks {
			list = append(list, format.TickHash{Tick: x, Hash: tickHash(id, x)})
		}
		return format.AppendChunk(nil, format.ChunkHashes, seq, format.AppendHashes(nil, list))
	}
	gap := func(seq uint64, first, last format.Tick) []byte {
		return format.AppendChunk(nil, format.ChunkGap, seq, format.AppendGap(nil, format.Gap{First: first, Last: last, Reason: "lost"}))
	}
	damaged := ticksChunk(id, 13, 130, 140)
	damaged[len(damaged)-1] ^= 1
	narrow := format.NewBatchBuilder(format.Width8, 8, 130)
	narrow.EndTick()
	for _, c := range []struct {
		name  string
		chunk []byte
		code  Code        // 0 for none
		tick  format.Tick // of the refusal; else the tick that is due then
		grows bool
	}{
		{"the next one", ticksChunk(id, 13, 130, 140), 0, 140, true},
		{"a gap", gap(13, 130, 139), 0, 140, true},
		{"late hashes", hashes(13, 122), 0, 130, true},
		{"the last one again", ticksChunk(id, 12, 120, 130), 0, 130, false},
		{"an old one again", ticksChunk(id, 1, 0, 10), 0, 130, false},
		{"the gap again", gap(11, 100, 119), 0, 130, false},
		{"an overlap", ticksChunk(id, 13, 125, 140), 0, 140, true},
		{"an overlap of chunks", ticksChunk(id, 13, 121, 131), 0, 131, true},
		{"nothing new", ticksChunk(id, 13, 122, 130), 0, 130, true},

		{"a jump of ticks", ticksChunk(id, 13, 131, 140), CodeOrder, 130, false},
		{"a jump of numbers", ticksChunk(id, 14, 130, 140), CodeOrder, 130, false},
		{"a gap ahead", gap(13, 140, 150), CodeOrder, 130, false},
		{"no number", ticksChunk(id, 0, 130, 140), CodeOrder, 130, false},
		{"hash of the future", hashes(13, 130), CodeOrder, 130, false},
		{"a second hash", hashes(13, 121), CodeOrder, 130, false},
		{"hash within the gap", hashes(13, 110), CodeOrder, 130, false},
		{"metadata again", format.AppendChunk(nil, format.ChunkMeta, 13, format.AppendMeta(nil, metaOf(id, 0))), CodeOrder, 130, false},
		{"an end", format.AppendChunk(nil, format.ChunkEnd, 13, format.AppendEnd(nil, format.End{State: format.EndSealed})), CodeOrder, 130, false},
		{"other code width", format.AppendChunk(nil, format.ChunkTicks, 13, narrow.AppendBody(nil)), CodeOrder, 130, false},

		{"the last one with another step", other(12, 120, 130, 127), CodeConflict, 127, false},
		{"an old one with another step", other(3, 20, 30, 20), CodeConflict, 20, false},
		{"the last one longer", ticksChunk(id, 12, 120, 135), CodeConflict, 130, false},
		{"another chunk of that number", ticksChunk(id, 11, 100, 110), CodeConflict, 100, false},
		{"another gap", gap(11, 100, 118), CodeConflict, 130, false},
		{"an overlap with another step", other(13, 125, 140, 128), CodeConflict, 128, false},
		{"an overlap with the gap", ticksChunk(id, 13, 115, 140), CodeConflict, 115, false},

		{"damaged", damaged, CodeDamaged, 130, false},
		{"torn", ticksChunk(id, 13, 130, 140)[:50], CodeDamaged, 130, false},
		{"two chunks", append(ticksChunk(id, 13, 130, 140), ticksChunk(id, 14, 140, 150)...), CodeDamaged, 130, false},
		{"not a chunk", []byte("hello"), CodeDamaged, 130, false},
		{"a critical type of a newer program", format.AppendChunk(nil, 0x33, 13, []byte("?")), CodeInvalid, 130, false},
		{"an optional type of a newer program", format.AppendChunk(nil, 0xee, 13, []byte("?")), 0, 130, true},
	} {
		for _, where := range []string{"in memory", "in the file", "after a restart"} {
			t.Run(c.name+" "+where, func(t *testing.T) {
				inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
					s, _, in := begin(t, r, id, 1)
					for i := range format.Tick(10) {
						mustAppend(t, s, ticksChunk(id, uint64(i+1), i*10, i*10+10))
					}
					mustAppend(t, s, gap(11, 100, 119))
					mustAppend(t, s, ticksChunk(id, 12, 120, 130))
					r, s, in = store(t, r, s, in, disk, where, id)
					before := r.List()[0]
					acks := in.get().count
					err := s.Append(c.chunk)
					after := r.List()[0]
					if grew := after.Bytes > before.Bytes; grew != c.grows {
						t.Fatalf("grew from %d to %d bytes", before.Bytes, after.Bytes)
					}
					if c.code == 0 {
						if err != nil || after.NextTick != c.tick {
							t.Fatalf("error %v, due is tick %d", err, after.NextTick)
						}
						waitFor(t, "an acknowledgement", func() bool { return in.get().count > acks })
					} else if f := wantRefusal(t, err, c.code); f.Tick != c.tick || f.Text == "" {
						t.Fatalf("refused with %+v, want tick %d", f, c.tick)
					}
					finishAppend(t, r, s, in, disk, id, after)
				})
			})
		}
	}
}

// store brings what was sent to where a case wants it.
func store(t *testing.T, r *Recorder, s *Session, in *inbox, disk *disktest.Disk, where, id string) (*Recorder, *Session, *inbox) {
	t.Helper()
	switch where {
	case "in memory":
		return r, s, in
	case "in the file":
		waitDurable(t, in, 12)
		if err := r.makeCheckpoint(); err != nil {
			t.Fatal(err)
		}
		return r, s, in
	}
	mustClose(t, r)
	r = mustOpen(t, smallConfig(disk))
	s, _, in = begin(t, r, id, 2)
	return r, s, in
}

// finishAppend goes on with the session: whatever came, it must be unharmed.
func finishAppend(t *testing.T, r *Recorder, s *Session, in *inbox, disk *disktest.Disk, id string, st Status) {
	t.Helper()
	mustAppend(t, s, ticksChunk(id, st.Received+1, st.NextTick, st.NextTick+10))
	info := seal(t, r, s, id, in)
	b := sealedBytes(t, disk, info)
	if err := verifyTicks(b, id, 0, st.NextTick+10, declared(b)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, r)
}

// TestLateHashOfOverlap: a hash that comes with a tick that was recorded
// without one is kept, as a late hash.
func TestLateHashOfOverlap(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 10)) // tick 3 has no hash
		b := format.NewBatchBuilder(format.Width16, 8, 2)
		for x := format.Tick(2); x < 12; x++ {
			addTick(b, "m", x)
			if !hashed(x) {
				b.Hash(x, tickHash("m", x))
			}
		}
		again := format.AppendChunk(nil, format.ChunkTicks, 2, b.AppendBody(nil))
		mustAppend(t, s, again)
		mustAppend(t, s, again) // now all of it is recorded
		info := seal(t, r, s, "m", in)
		f, err := checkFile(sealedBytes(t, disk, info))
		if err != nil {
			t.Fatal(err)
		}
		_, texts, err := readTicks(f)
		if err != nil || len(texts) != 12 || texts[3] != wantTick("m", 3, true) || info.Hashes != 12 {
			t.Fatalf("tick 3 reads %s, %d hashes, %v", texts[3], info.Hashes, err)
		}
	})
}

func TestSealTotals(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 50))
		have := r.List()[0].Totals
		for i := range 4 {
			lie := have
			switch i {
			case 0:
				lie.NextTick++
			case 1:
				lie.Ticks--
			case 2:
				lie.Steps++
			case 3:
				lie.Hashes = 0
			}
			if f := wantRefusal(t, s.Seal(lie), CodeTotals); !strings.Contains(f.Text, "recorded next tick 50, 50 ticks") {
				t.Fatal(f)
			}
		}
		mustAppend(t, s, ticksChunk("m", 2, 50, 60))
		info := seal(t, r, s, "m", in)
		if err := verifyTicks(sealedBytes(t, disk, info), "m", 0, 60, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSealTwice: the second call, and one from a new connection, change
// nothing.
func TestSealTwice(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, _ := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 50))
		totals := r.List()[0].Totals
		if err := errors.Join(s.Seal(totals), s.Seal(totals)); err != nil {
			t.Fatal(err)
		}
		s2, reply, in2 := begin(t, r, "m", 2)
		if !reply.Ending || reply.Received != 1 {
			t.Fatalf("reply %+v", reply)
		}
		wantRefusal(t, s2.Append(ticksChunk("m", 2, 50, 60)), CodeEnded)
		if err := s2.Seal(totals); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the end", func() bool { return in2.get().sealed != nil })
		_, reply, err := r.OpenSession(OpenRequest{ID: "m", Producer: key(1), Epoch: 3, Opening: openingOf("m", 0)})
		wantRefusal(t, err, CodeEnded)
		if reply.Sealed == nil || reply.Sealed.Digest != in2.get().sealed.Digest || reply.Received != 1 || reply.NextTick != 50 {
			t.Fatalf("reply %+v", reply)
		}
	})
}

// TestEpochs tries who may have a session when.
func TestEpochs(t *testing.T) {
	open := func(r *Recorder, id string, k byte, epoch uint64) (*Session, error) {
		s, _, err := r.OpenSession(OpenRequest{ID: id, Producer: key(k), Epoch: epoch, Opening: openingOf(id, 0)})
		return s, err
	}
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "Match", 5)
		for _, c := range []struct {
			name  string
			id    string
			key   byte
			epoch uint64
			code  Code
		}{
			{"another producer", "Match", 2, 9, CodeExists},
			{"another spelling", "match", 1, 9, CodeExists},
			{"the epoch before", "Match", 1, 4, CodeFenced},
			{"the same epoch", "Match", 1, 5, CodeFenced},
		} {
			if _, err := open(r, c.id, c.key, c.epoch); !errors.Is(err, &Refusal{Code: c.code}) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		mustAppend(t, s, ticksChunk("Match", 1, 0, 10)) // none of them did harm
		waitDurable(t, in, 1)

		s2, err := open(r, "Match", 1, 6)
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the fence", func() bool { return in.get().err != nil })
		wantRefusal(t, in.get().err, CodeFenced)
		wantRefusal(t, s.Append(ticksChunk("Match", 2, 10, 20)), CodeFenced)
		wantRefusal(t, s.Seal(format.Totals{}), CodeFenced)
		s.Detach() // of the fenced one changes nothing
		mustAppend(t, s2, ticksChunk("Match", 2, 10, 20))
		s2.Detach()
		wantRefusal(t, s2.Append(ticksChunk("Match", 3, 20, 30)), CodeFenced)
		if _, err := open(r, "Match", 1, 6); err != nil {
			t.Fatalf("the same epoch after a detach: %v", err)
		}

		// The epoch is remembered over a crash.
		mustClose(t, r)
		r = mustOpen(t, smallConfig(disk))
		if _, err := open(r, "Match", 1, 5); !errors.Is(err, &Refusal{Code: CodeFenced}) {
			t.Errorf("an old epoch after a restart: %v", err)
		}
		if _, err := open(r, "Match", 2, 50); !errors.Is(err, &Refusal{Code: CodeExists}) {
			t.Errorf("another producer after a restart: %v", err)
		}
		other := openingOf("Match", 7)
		if _, _, err := r.OpenSession(OpenRequest{ID: "Match", Producer: key(1), Epoch: 7, Opening: other}); !errors.Is(err, &Refusal{Code: CodeConflict}) {
			t.Errorf("another opening: %v", err)
		}
		if _, _, err := r.OpenSession(OpenRequest{ID: "Match", Producer: key(1), Epoch: 7}); err != nil {
			t.Errorf("no opening: %v", err)
		}
		mustClose(t, r)
	})
}

func TestContinueAt(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 300))
		waitDurable(t, in, 1)
		s.Detach()
		at := func(x format.Tick) (*Session, OpenReply, *inbox) {
			in := &inbox{}
			s, reply, err := r.OpenSession(OpenRequest{ID: "m", Producer: key(1), Epoch: 2, ContinueAt: &x, Notify: in.notify})
			if err != nil {
				t.Fatal(err)
			}
			return s, reply, in
		}
		s, reply, _ := at(250) // what is recorded needs no gap
		if reply.NextTick != 300 || reply.Received != 1 {
			t.Fatalf("reply %+v", reply)
		}
		s.Detach()
		s, reply, in = at(901)
		if reply.NextTick != 901 || reply.Received != 1 {
			t.Fatalf("reply %+v", reply)
		}
		mustAppend(t, s, ticksChunk("m", 2, 901, 950))
		info := seal(t, r, s, "m", in)
		b := sealedBytes(t, disk, info)
		if err := verifyTicks(b, "m", 0, 950, func(x format.Tick) bool { return x >= 300 && x <= 900 }); err != nil {
			t.Fatal(err)
		}
		f, _ := checkFile(b)
		if g := f.Summary().Gaps; len(g) != 1 || !g[0].ByRecorder || g[0].First != 300 || g[0].Last != 900 || f.Summary().Complete() {
			t.Fatalf("gaps %+v", g)
		}
	})
}

// TestUnfinishedAndReopened lets a producer go away, come back in time and
// too late.
func TestUnfinishedAndReopened(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 300))
		waitDurable(t, in, 1)
		s.Detach()
		time.Sleep(59 * time.Second)
		if st := r.List()[0]; st.State != StateDetached || st.Deadline.IsZero() {
			t.Fatalf("status %+v", st)
		}
		waitFor(t, "the end", func() bool { return len(r.List()) == 0 })
		st, ok := r.Lookup("m")
		if !ok || st.State != StateUnfinished || st.NextTick != 300 || path.Dir(st.File) != unfinishedFolder {
			t.Fatalf("looked up as %+v", st)
		}
		f, err := checkFile(sealedBytes(t, disk, st.Ended))
		if err != nil {
			t.Fatal(err)
		}
		if end := f.Summary().End; end.State != format.EndUnfinished || end.Reason != "producer gone for 1m0s after tick 299" {
			t.Fatalf("end %+v", end)
		}

		// Another producer, or an earlier epoch, cannot go on with it.
		for _, req := range []OpenRequest{{ID: "m", Producer: key(2), Epoch: 9}, {ID: "M", Producer: key(1), Epoch: 9}, {ID: "m", Producer: key(1), Epoch: 0}} {
			if _, _, err := r.OpenSession(req); err == nil {
				t.Fatalf("%+v went on with it", req)
			}
		}
		time.Sleep(30 * time.Minute)
		s, reply, in := begin(t, r, "m", 2)
		if !reply.Resumed || reply.NextTick != 300 || reply.Received != 1 || reply.Durable != 1 {
			t.Fatalf("reply %+v", reply)
		}
		mustAppend(t, s, ticksChunk("m", 2, 300, 400))
		waitDurable(t, in, 2)
		waitFor(t, "the move", func() bool {
			return len(disk.Find("room-m-")) == 1 && strings.Contains(disk.Find("room-m-")[0], liveFolder)
		})
		s.Detach()

		// It ends a second time; then the window passes.
		time.Sleep(time.Minute)
		waitFor(t, "the second end", func() bool { return len(r.List()) == 0 })
		time.Sleep(2 * time.Hour)
		_, reply, err = r.OpenSession(OpenRequest{ID: "m", Producer: key(1), Epoch: 3, Opening: openingOf("m", 0)})
		if f := wantRefusal(t, err, CodeEnded); f.Tick != 400 || reply.Sealed == nil || reply.Sealed.State != format.EndUnfinished {
			t.Fatalf("refused with %+v, reply %+v", f, reply)
		}
		st, _ = r.Lookup("m")
		if err := verifyTicks(sealedBytes(t, disk, st.Ended), "m", 0, 400, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// TestGoneBeforeTheFirstTick ends a session that has nothing.
func TestGoneBeforeTheFirstTick(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, _ := begin(t, r, "m", 1)
		s.Detach()
		time.Sleep(time.Minute)
		waitFor(t, "the end", func() bool { return len(r.List()) == 0 })
		st, _ := r.Lookup("m")
		f, err := checkFile(sealedBytes(t, disk, st.Ended))
		if err != nil || f.Summary().End.Reason != "producer gone for 1m0s before the first tick" {
			t.Fatalf("%+v, %v", f.Summary().End, err)
		}
	})
}

// TestResumeTimeoutStartsAnew: a restart gives every producer its time again.
func TestResumeTimeoutStartsAnew(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		begin(t, r, "m", 1)
		mustClose(t, r)
		time.Sleep(10 * time.Hour)
		r = mustOpen(t, smallConfig(disk))
		time.Sleep(50 * time.Second)
		if len(r.List()) != 1 {
			t.Fatal("ended before the time was up")
		}
		waitFor(t, "the end", func() bool { return len(r.List()) == 0 })
		mustClose(t, r)
	})
}

// TestWindows holds the bounds on what waits.
func TestWindows(t *testing.T) {
	inBubble(t, func(c *Config) { c.FlushInterval, c.SessionWindow = time.Second, 1000 }, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 200)) // one chunk may be larger
		f := wantRefusal(t, s.Append(ticksChunk("m", 2, 200, 300)), CodeWindow)
		if f.Tick != 200 {
			t.Fatal(f)
		}
		waitDurable(t, in, 1)
		mustAppend(t, s, ticksChunk("m", 2, 200, 300))
		if n := r.Stats().Refused[CodeWindow]; n != 1 {
			t.Fatalf("%d refusals counted", n)
		}
	})
	inBubble(t, func(c *Config) { c.FlushInterval, c.MaxPendingBytes = time.Second, 4000 }, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		a, _, _ := begin(t, r, "a", 1)
		b, _, inB := begin(t, r, "b", 1)
		mustAppend(t, a, ticksChunk("a", 1, 0, 80))
		wantRefusal(t, b.Append(ticksChunk("b", 1, 0, 80)), CodeBusy)
		if err := r.WaitForRoom(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, b, ticksChunk("b", 1, 0, 80))
		waitDurable(t, inB, 1)
	})
	inBubble(t, func(c *Config) { c.MaxSessions = 2 }, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		begin(t, r, "a", 1)
		begin(t, r, "b", 1)
		_, _, err := r.OpenSession(OpenRequest{ID: "c", Opening: openingOf("c", 0)})
		wantRefusal(t, err, CodeBusy)
	})
}

// TestViewAndTail reads a live session while its bytes are in memory, in the
// file, and in between.
func TestViewAndTail(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		steps := 0
		for i := range format.Tick(30) {
			chunk := ticksChunk("m", uint64(i+1), i*10, i*10+10)
			c, _, _ := format.ParseChunk(chunk)
			b, _ := format.ParseBatch(c.Body, 8)
			steps += b.Steps
			mustAppend(t, s, chunk)
			if i == 10 {
				waitDurable(t, in, 11)
				if err := r.makeCheckpoint(); err != nil {
					t.Fatal(err)
				}
				if st := r.List()[0]; st.PendingSteps != 0 || st.PendingBytes != 0 || tailOf(t, s).Length != 0 {
					t.Fatalf("after the file was written: %+v", st)
				}
				steps = 0
			}
		}
		waitDurable(t, in, 30)
		tail := tailOf(t, s)
		if tail.Length != steps || r.List()[0].PendingSteps != steps {
			t.Fatalf("tail of %d steps, want %d", tail.Length, steps)
		}
		a := format.NewArray(format.Options{})
		if err := a.LoadState(tail); err != nil {
			t.Fatal(err)
		}
		v, ok := r.View("m")
		if !ok {
			t.Fatal("no view")
		}
		defer v.Close()
		b, err := io.ReadAll(io.NewSectionReader(v, 0, v.Size()))
		if err != nil {
			t.Fatal(err)
		}
		if err := verifyTicks(b, "m", 0, 300, nil); err != nil {
			t.Fatal(err)
		}
		info := seal(t, r, s, "m", in)
		again := make([]byte, len(b))
		if _, err := v.ReadAt(again, 0); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("after the seal the view differs: %v", err)
		}
		if all := sealedBytes(t, disk, info); !bytes.HasPrefix(all, b) {
			t.Fatal("the file is not what was viewed")
		}
		if _, ok := r.View("m"); ok {
			t.Fatal("a view of a session that has ended")
		}
	})
}

func tailOf(t *testing.T, s *Session) format.State {
	t.Helper()
	tail, err := s.Tail()
	if err != nil {
		t.Fatal(err)
	}
	return tail
}

// TestTailTrimmed takes the front of a tail away while more comes in.
func TestTailTrimmed(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 50))
		waitDurable(t, in, 1)
		first := tailOf(t, s)
		next := ticksChunk("m", 2, 50, 90)
		mustAppend(t, s, next) // not durable yet: only the first is written
		if err := r.writeFile(s.s); err != nil {
			t.Fatal(err)
		}
		c, _, _ := format.ParseChunk(next)
		b, _ := format.ParseBatch(c.Body, 8)
		tail := tailOf(t, s)
		if first.Length == 0 || tail.Length != b.Steps || !bytes.Equal(tail.CommandArray, b.Commands) || !bytes.Equal(tail.ParamArray, b.Params) {
			t.Fatalf("tail has %d steps, the second chunk %d", tail.Length, b.Steps)
		}
	})
}

// TestKeyframeNotices: what deserves a warning reaches the producer.
func TestKeyframeNotices(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 10))
		for i := range uint64(2) {
			part := format.KeyframePart{ID: i + 1, NextTick: 10, Total: 3, Data: []byte{1, 2, byte(i)}}
			mustAppend(t, s, format.AppendChunk(nil, format.ChunkKeyframe, i+2, format.AppendKeyframePart(nil, part)))
		}
		waitDurable(t, in, 3)
		if n := in.get().notices; len(n) != 1 || !strings.Contains(n[0], "keyframe before tick 10") {
			t.Fatalf("notices %q", n)
		}
	})
}
