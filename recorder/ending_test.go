package recorder

import (
	"fmt"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/recorder/disktest"
)

// TestComeBackWhileEnding: a producer that comes back, at any moment, while its
// sealed session is being finished does not make the ledger call the session
// open again. What it was told holds after a power cut.
func TestComeBackWhileEnding(t *testing.T) {
	for wait := time.Duration(0); wait < 200*time.Millisecond; wait += 10 * time.Millisecond {
		t.Run(fmt.Sprint(wait), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { comeBackAfter(t, wait) })
		})
	}
}

// comeBackAfter has the producer come back so long after it sealed.
func comeBackAfter(t *testing.T, wait time.Duration) {
	disk := newDisk()
	r := mustOpen(t, smallConfig(disk))
	s, _, in := begin(t, r, "m", 1)
	mustAppend(t, s, ticksChunk("m", 1, 0, 10))
	waitDurable(t, in, 1)
	disk.SetDelay(func(op disktest.Op, name string) time.Duration {
		if op == disktest.OpSync && strings.HasPrefix(path.Base(name), segmentPrefix) {
			return 50 * time.Millisecond
		}
		return 0
	})
	st, _ := r.Lookup("m")
	if err := s.Seal(st.Totals); err != nil {
		t.Fatal(err)
	}
	time.Sleep(wait)
	info := comeBack(t, r, in)
	time.Sleep(time.Second) // for what is still on its way
	wantEnded(t, r, info)
	disk.TurnOff()
	r.Close(canceled())
	disk = disk.Crash(disktest.SurviveNothing)
	r = mustOpen(t, smallConfig(disk))
	wantEnded(t, r, info)
	if err := verifyTicks(sealedBytes(t, disk, info), "m", 0, 10, nil); err != nil {
		t.Error(err)
	}
	mustClose(t, r)
}

// comeBack opens a session that is ending, and gives its end as the producer
// is told it.
func comeBack(t *testing.T, r *Recorder, before *inbox) *SealInfo {
	t.Helper()
	in := &inbox{}
	_, reply, err := r.OpenSession(OpenRequest{ID: "m", Producer: key(1), Epoch: 2, Opening: openingOf("m", 0), Notify: in.notify})
	if err != nil {
		wantRefusal(t, err, CodeEnded)
		if reply.Sealed == nil || before.get().sealed == nil {
			t.Fatalf("it ended without a word: %+v", reply)
		}
		return reply.Sealed
	}
	if !reply.Ending {
		t.Fatalf("the session goes on: %+v", reply)
	}
	waitFor(t, "the end", func() bool { return in.get().sealed != nil })
	return in.get().sealed
}

// wantEnded opens a session that has ended as info says.
func wantEnded(t *testing.T, r *Recorder, info *SealInfo) {
	t.Helper()
	_, reply, err := r.OpenSession(OpenRequest{ID: "m", Producer: key(1), Epoch: 3})
	wantRefusal(t, err, CodeEnded)
	if reply.Sealed == nil || *reply.Sealed != *info {
		t.Errorf("it ended as %+v, told was %+v", reply.Sealed, info)
	}
}
