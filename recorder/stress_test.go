package recorder

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reprise/format"
	"reprise/recorder/disktest"
)

// TestIdleProducer: a producer that is connected and sends nothing keeps its
// session, for longer than any timeout.
func TestIdleProducer(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "idle", 1)
		mustAppend(t, s, ticksChunk("idle", 1, 0, 10))
		waitDurable(t, in, 1)
		time.Sleep(3 * time.Hour)
		if st := r.List()[0]; st.State != StateLive || st.PendingBytes != 0 {
			t.Fatalf("status %+v", st)
		}
		mustAppend(t, s, ticksChunk("idle", 2, 10, 20))
		info := seal(t, r, s, "idle", in)
		f, err := checkFile(sealedBytes(t, disk, info))
		if err != nil || f.Summary().End.State != format.EndSealed || f.Summary().Ticks != 20 {
			t.Fatalf("%+v, %v", f.Summary(), err)
		}
	})
}

// TestTwoAtOnce: of many who open one id at the same moment one gets it. The
// others are told whether it is another's, or their own newer start's.
func TestTwoAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		request func(i int) OpenRequest
		code    Code
	}{
		"other producers": {func(i int) OpenRequest {
			return OpenRequest{ID: "m", Producer: key(byte(i)), Epoch: 1, Opening: openingOf("m", 0)}
		}, CodeExists},
		"other spellings": {func(i int) OpenRequest {
			id := []string{"m", "M"}[i%2]
			return OpenRequest{ID: id, Producer: key(byte(i)), Epoch: 1, Opening: openingOf(id, 0)}
		}, CodeExists},
		"one producer twice": {func(i int) OpenRequest {
			return OpenRequest{ID: "m", Producer: key(1), Epoch: 1, Opening: openingOf("m", 0)}
		}, CodeFenced},
	} {
		t.Run(name, func(t *testing.T) {
			disk := newDisk()
			r := mustOpen(t, smallConfig(disk))
			const n = 16
			errs := make([]error, n)
			opened := make([]*Session, n)
			var all sync.WaitGroup
			start := make(chan struct{})
			for i := range n {
				all.Go(func() {
					<-start
					opened[i], _, errs[i] = r.OpenSession(c.request(i))
				})
			}
			close(start)
			all.Wait()
			var winner *Session
			for i, err := range errs {
				if err != nil {
					wantRefusal(t, err, c.code)
					continue
				}
				if winner != nil {
					t.Error("two have the session")
				}
				winner = opened[i]
			}
			if winner == nil || len(r.List()) != 1 {
				t.Fatalf("listed are %+v", r.List())
			}
			mustAppend(t, winner, ticksChunk(r.List()[0].ID, 1, 0, 10))
			mustClose(t, r)
		})
	}
}

// TestRejoin: players who leave and come back, and hashes that come late, stand
// in the file as they were told.
func TestRejoin(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		salt := make([]byte, format.SaltBytes)
		event := func(seq uint64, e format.PlayerEvent) {
			mustAppend(t, s, format.AppendChunk(nil, format.ChunkPlayers, seq, format.AppendPlayers(nil, salt, []format.PlayerEvent{e})))
			salt = nil // it is told once
		}
		told := []format.PlayerEvent{{Tick: 0, ID: 1, Name: "ä"}, {Tick: 10, ID: 1, Leave: true}, {Tick: 15, ID: 1, Name: "ä", Team: "b"}, {Tick: 20, ID: 1, Leave: true}}
		event(1, told[0])
		mustAppend(t, s, ticksChunk("m", 2, 0, 10))
		event(3, told[1])
		mustAppend(t, s, ticksChunk("m", 4, 10, 20))
		event(5, told[2])
		event(6, told[3])
		late := []format.TickHash{{Tick: 3, Hash: tickHash("m", 3)}, {Tick: 10, Hash: tickHash("m", 10)}, {Tick: 17, Hash: tickHash("m", 17)}}
		mustAppend(t, s, format.AppendChunk(nil, format.ChunkHashes, 7, format.AppendHashes(nil, late)))
		info := seal(t, r, s, "m", in)
		b := sealedBytes(t, disk, info)
		f, err := checkFile(b)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(f.Summary().Players); got != fmt.Sprint(told) {
			t.Errorf("players %v, told were %v", got, told)
		}
		if f.Summary().Hashes != 20 {
			t.Errorf("%d hashes, want one for each of 20 ticks", f.Summary().Hashes)
		}
		if err := verifyTicks(b, "m", 0, 20, nil); err != nil {
			t.Error(err)
		}
	})
}

// TestEveryEndHasItsReason: whatever a producer does, its session ends, and its
// file says how.
func TestEveryEndHasItsReason(t *testing.T) {
	for _, c := range []struct {
		name   string
		play   func(t *testing.T, r *Recorder, s *Session)
		state  format.EndState
		reason string
	}{
		{"goes before its first tick", func(t *testing.T, r *Recorder, s *Session) { s.Detach() }, format.EndUnfinished, "producer gone for 1m0s before the first tick"},
		{"goes after ticks", func(t *testing.T, r *Recorder, s *Session) {
			mustAppend(t, s, ticksChunk("m", 1, 0, 10))
			s.Detach()
		}, format.EndUnfinished, "producer gone for 1m0s after tick 9"},
		{"goes after a conflict", func(t *testing.T, r *Recorder, s *Session) {
			mustAppend(t, s, ticksChunk("m", 1, 0, 10))
			wantRefusal(t, s.Append(ticksChunk("n", 1, 0, 10)), CodeConflict)
			s.Detach()
		}, format.EndUnfinished, "producer gone for 1m0s after tick 9"},
		{"goes after wrong counts", func(t *testing.T, r *Recorder, s *Session) {
			wantRefusal(t, s.Seal(format.Totals{NextTick: 3, Ticks: 3}), CodeTotals)
			s.Detach()
		}, format.EndUnfinished, "producer gone for 1m0s before the first tick"},
		{"goes after a gap", func(t *testing.T, r *Recorder, s *Session) {
			g := format.Gap{First: 0, Last: 99, Reason: "lost"}
			mustAppend(t, s, format.AppendChunk(nil, format.ChunkGap, 1, format.AppendGap(nil, g)))
			s.Detach()
		}, format.EndUnfinished, "producer gone for 1m0s before the first tick"},
		{"seals nothing", func(t *testing.T, r *Recorder, s *Session) {
			if err := s.Seal(format.Totals{}); err != nil {
				t.Fatal(err)
			}
		}, format.EndSealed, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
				s, _, _ := begin(t, r, "m", 1)
				c.play(t, r, s)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				st, ok := r.Lookup("m")
				if !ok || st.Ended == nil {
					t.Fatalf("status %+v", st)
				}
				f, err := checkFile(sealedBytes(t, disk, st.Ended))
				if err != nil {
					t.Fatal(err)
				}
				if end := f.Summary().End; end.State != c.state || end.Reason != c.reason {
					t.Errorf("the file says %v, %q; want %v, %q", end.State, end.Reason, c.state, c.reason)
				}
			})
		})
	}
}
