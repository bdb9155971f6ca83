package player

import (
	"strings"
	"testing"

	"reprise/format"
)

func TestUnrecordedChangeWarns161AndItsDetailIsPrinted(t *testing.T) {
	s := newStage(SystemOptions{})
	s.BeginCollection()
	s.Marked("openDoor", func() {
		s.Marked("useKey", func() {})
	})
	s.Marked("heal", func() {})
	s.EndCollection()
	w := s.wantWarnings(t, format.WarnUnrecorded)[0]
	if !strings.Contains(w.Detail, "openDoor") || !strings.Contains(w.Detail, "useKey") {
		t.Errorf("warning is %v", w)
	}
	detail, ok := s.Unrecorded(1)
	if want := "unrecorded change 1:\n  openDoor\n    useKey\n  heal\n"; !ok || detail.String() != want {
		t.Errorf("detail is %q", detail)
	}
}

func TestRecordedChangeWarnsOfNothing(t *testing.T) {
	s := newStage(SystemOptions{})
	s.BeginCollection()
	s.Marked("openDoor", func() { s.Record(1) })
	s.EndCollection()
	s.BeginCollection()
	s.EndCollection()
	s.wantWarnings(t)
}

func TestBeginDuringACollectionWarns159(t *testing.T) {
	s := newStage(SystemOptions{})
	s.BeginCollection()
	s.Marked("openDoor", func() {})
	s.BeginCollection()
	s.wantWarnings(t, format.WarnCollectionOpen)
	s.EndCollection()
	s.wantWarnings(t, format.WarnUnrecorded)
}

func TestEndOutsideACollectionWarns160(t *testing.T) {
	s := newStage(SystemOptions{})
	s.EndCollection()
	s.wantWarnings(t, format.WarnCollectionClosed)
}

func TestUnknownDetailWarns162(t *testing.T) {
	s := newStage(SystemOptions{})
	if _, ok := s.Unrecorded(1); ok {
		t.Error("found a detail that nobody made")
	}
	s.wantWarnings(t, format.WarnUnknownDetail)
}

func TestIgnoredCallSilencesItsCollectionOnly(t *testing.T) {
	s := newStage(SystemOptions{})
	s.BeginCollection()
	s.Marked("openDoor", func() {})
	s.MarkedIgnored("loadSave", func() {})
	s.EndCollection()
	s.BeginCollection()
	s.wantWarnings(t)
	s.Marked("openDoor", func() {})
	s.EndCollection()
	s.wantWarnings(t, format.WarnUnrecorded)
}

func TestMarkedOutsideACollectionOnlyCalls(t *testing.T) {
	s := newStage(SystemOptions{})
	if got := MarkedResult(s.ReplaySystem, "hp", func() int { return 45 }); got != 45 {
		t.Errorf("result is %d", got)
	}
	s.BeginCollection()
	s.EndCollection()
	s.wantWarnings(t)
}

func TestChangesOfAScriptAreNotCollected(t *testing.T) {
	s := newStage(SystemOptions{})
	s.BeginCollection()
	s.Disable()
	s.Marked("move", func() {})
	s.Revert()
	s.EndCollection()
	s.wantWarnings(t)
}

func TestOldDetailsAreDropped(t *testing.T) {
	s := newStage(SystemOptions{})
	for range keptDetails + 1 {
		s.BeginCollection()
		s.Marked("openDoor", func() {})
		s.EndCollection()
	}
	if _, ok := s.Unrecorded(1); ok {
		t.Error("the first detail is still there")
	}
	if d, ok := s.Unrecorded(keptDetails + 1); !ok || d.Number != keptDetails+1 {
		t.Errorf("the last detail is %v", d)
	}
}
