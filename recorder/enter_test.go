package recorder

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"reprise/format"
)

// What was recorded elsewhere takes an id for good, once.
func TestEnter(t *testing.T) {
	dir := t.TempDir()
	open := func() *Recorder {
		r, err := Open(Config{Dir: dir, SegmentBytes: 128 << 10, MinFreeBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := open()
	end := SealInfo{State: format.EndUnfinished, EndedAt: now(), Totals: format.Totals{NextTick: 9, Ticks: 9, Steps: 3}, Bytes: 500, Digest: format.Digest{7}}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range 2 {
		if err := r.Enter("Offline-1", start, end); err != nil {
			t.Fatal(err)
		}
	}
	other := end
	other.Digest = format.Digest{8}
	exists := &Refusal{Code: CodeExists}
	if err := r.Enter("offline-1", start, end); !errors.Is(err, exists) {
		t.Errorf("the id in another spelling: %v", err)
	}
	if err := r.Enter("Offline-1", start, other); !errors.Is(err, exists) {
		t.Errorf("other content: %v", err)
	}
	if err := r.Enter("../x", start, end); !errors.Is(err, &Refusal{Code: CodeInvalid}) {
		t.Errorf("no id: %v", err)
	}
	if _, _, err := r.OpenSession(OpenRequest{ID: "offline-1", Producer: key(1), Epoch: 1, Opening: openingOf("offline-1", 0)}); !errors.Is(err, exists) {
		t.Errorf("a producer gets the id: %v", err)
	}
	if _, _, err := r.OpenSession(OpenRequest{ID: "running", Producer: key(1), Epoch: 1, Opening: openingOf("running", 0)}); err != nil {
		t.Fatal(err)
	}
	if err := r.Enter("Running", start, end); !errors.Is(err, exists) {
		t.Errorf("the id of a session that runs: %v", err)
	}
	want := end
	want.File = "unfinished/room-Offline-1-20260102T030405Z.rply"
	for range 2 {
		if st, ok := r.Lookup("OFFLINE-1"); !ok || st.State != StateUnfinished || !reflect.DeepEqual(*st.Ended, want) {
			t.Errorf("the ledger has %+v, %v", st.Ended, ok)
		}
		if err := r.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		ended, err := ReadLedger(dir)
		if st, ok := ended["offline-1"]; err != nil || len(ended) != 1 || !ok || !reflect.DeepEqual(*st.Ended, want) {
			t.Errorf("the file has %+v, %v", ended, err)
		}
		r = open()
	}
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := r.Enter("late", start, end); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestNamesOfFiles(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	name := FileName("m-42", start.In(time.FixedZone("", 7200)))
	if id, at, ok := SplitName(name); name != "room-m-42-20260102T030405Z.rply" || id != "m-42" || !at.Equal(start) || !ok {
		t.Errorf("%s is taken apart into %q, %v, %v", name, id, at, ok)
	}
	for _, bad := range []string{"", "m-42.rply", "room-m-42.rply", "room-m-42-20260102T030405Z", "room-m-42-20269902T030405Z.rply", "room-a b-20260102T030405Z.rply"} {
		if id, _, ok := SplitName(bad); ok {
			t.Errorf("%q gives %q", bad, id)
		}
	}
}
