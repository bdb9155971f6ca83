package recorder

import (
	"errors"
	"strings"
	"testing"
	"time"

	"reprise/format"
	"reprise/recorder/disktest"
)

// TestSessionRate: a session that comes too fast is refused until it is slow
// enough, in the long run just at its rate; no other is concerned.
func TestSessionRate(t *testing.T) {
	const rate = 2000
	inBubble(t, func(c *Config) { c.SessionRate = rate }, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		fast, _, in := begin(t, r, "fast", 1)
		slow, _, slowIn := begin(t, r, "slow", 1)
		var sent, seq, slowSeq uint64
		epoch, start, refused := uint64(1), time.Now(), 0
		const seconds = 120
		for i := range seconds * 10 {
			chunk := ticksChunk("fast", seq+1, format.Tick(seq*20), format.Tick(seq*20+20))
			switch err := fast.Append(chunk); {
			case err == nil:
				seq++
				sent += uint64(len(chunk))
			case errors.Is(err, &Refusal{Code: CodeRate}):
				refused++
				fast.Detach()
				epoch++
				for {
					var err error
					if fast, _, err = r.OpenSession(OpenRequest{ID: "fast", Producer: key(1), Epoch: epoch, Notify: in.notify}); err == nil {
						break
					}
					wantRefusal(t, err, CodeRate)
					time.Sleep(100 * time.Millisecond)
				}
			default:
				t.Fatal(err)
			}
			if i%10 == 0 {
				mustAppend(t, slow, ticksChunk("slow", slowSeq+1, format.Tick(slowSeq), format.Tick(slowSeq+1)))
				slowSeq++
			}
			time.Sleep(10 * time.Millisecond)
		}
		took := time.Since(start).Seconds()
		if most, least := (took+paceSeconds)*rate+2000, took*rate*0.9; float64(sent) > most || float64(sent) < least {
			t.Errorf("%d bytes in %.0f s, want %.0f to %.0f", sent, took, least, most)
		}
		if n := r.Stats().Refused[CodeRate]; refused == 0 || n < uint64(refused) {
			t.Errorf("%d refusals, %d are counted", refused, n)
		}
		waitDurable(t, in, seq)
		waitDurable(t, slowIn, slowSeq)
		info := seal(t, r, fast, "fast", in)
		if err := verifyTicks(sealedBytes(t, disk, info), "fast", 0, format.Tick(seq*20), nil); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSessionQuota: a session that is as large as it may be can be sealed,
// gone on with under a larger bound, and says at its end that it was too large.
func TestSessionQuota(t *testing.T) {
	inBubble(t, func(c *Config) { c.SessionBytes = 5000 }, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		fill := func(s *Session, id string) (seq uint64) {
			t.Helper()
			for ; ; seq++ {
				if err := s.Append(ticksChunk(id, seq+1, format.Tick(seq*10), format.Tick(seq*10+10))); err != nil {
					wantRefusal(t, err, CodeQuota)
					return seq
				}
			}
		}
		s, _, in := begin(t, r, "sealed", 1)
		n := fill(s, "sealed")
		info := seal(t, r, s, "sealed", in)
		if err := verifyTicks(sealedBytes(t, disk, info), "sealed", 0, format.Tick(n*10), nil); err != nil || n == 0 {
			t.Errorf("%d chunks: %v", n, err)
		}
		s, _, _ = begin(t, r, "left", 1)
		fill(s, "left")
		s.Detach()
		waitFor(t, "the end", func() bool { time.Sleep(time.Second); _, held := r.View("left"); return !held })
		b, _ := disk.Bytes(disk.Find("room-left-")[0])
		f, err := checkFile(b)
		if err != nil || !strings.Contains(f.Summary().End.Reason, "as large as it may be") {
			t.Errorf("the file says %q, %v", f.Summary().End.Reason, err)
		}
		s, _, in = begin(t, r, "more", 1)
		n = fill(s, "more")
		if err := r.SetLimits(Limits{MinFreeBytes: -1, SessionBytes: 10_000}); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, s, ticksChunk("more", n+1, format.Tick(n*10), format.Tick(n*10+10)))
		waitDurable(t, in, n+1)
	})
}

// TestSetLimits changes limits under sessions that run.
func TestSetLimits(t *testing.T) {
	inBubble(t, func(c *Config) { c.MaxSessions, c.SegmentBytes = 1, 1<<20 }, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "a", 1)
		open := func(id string) error {
			s, _, err := r.OpenSession(OpenRequest{ID: id, Producer: key(1), Epoch: 1, Opening: openingOf(id, 0)})
			if err == nil {
				s.Detach()
			}
			return err
		}
		wantRefusal(t, open("b"), CodeBusy)
		if err := r.SetLimits(Limits{MaxSessions: 2, MinFreeBytes: -1, SessionWindow: 50_000}); err != nil {
			t.Fatal(err)
		}
		if err := open("b"); err != nil {
			t.Errorf("with more sessions allowed: %v", err)
		}
		if w := in.get().last.Window; w != 50_000 {
			t.Errorf("the producer is told a window of %d", w)
		}
		if err := r.SetLimits(Limits{MaxSessions: -1}); err == nil {
			t.Error("a negative limit is taken")
		}
		if err := r.SetLimits(Limits{MaxSessions: 1, MinFreeBytes: 1 << 40}); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, open("c"), CodeBusy)
		if err := r.SetLimits(Limits{MinFreeBytes: 1 << 40}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * sweepInterval)
		wantRefusal(t, open("c"), CodeStorage)
		mustAppend(t, s, ticksChunk("a", 1, 0, 10))
		waitDurable(t, in, 1)
		if err := r.SetLimits(Limits{MinFreeBytes: -1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * sweepInterval)
		if err := open("c"); err != nil {
			t.Errorf("with enough room: %v", err)
		}
	})
}
