package archive

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"reprise/format"
	"reprise/recorder"
)

// errNotYet is returned for a file of the inbox that may still be growing.
var errNotYet = errors.New("the file may still be growing")

// duplicateError is returned for a file whose content is filed already.
type duplicateError struct{ id, file string }

func (e *duplicateError) Error() string {
	return fmt.Sprintf("its content is filed already: session %s, %s", e.id, e.file)
}

// setsAside tells whether an error means that a file of the inbox cannot be
// filed, however often that is tried.
func setsAside(err error) bool {
	if _, duplicate := errors.AsType[*duplicateError](err); duplicate {
		return true
	}
	return isDamage(err) || errors.Is(err, errTaken)
}

// judge decides whether a dropped file that opened can be filed.
func (w *worker) judge(s *source, src *replay) error {
	end := src.Summary().End
	if end != nil {
		return nil
	}
	if w.inbox.quiet(s.name, time.Now()) < max(w.cfg.Settle, noEndSettle) {
		return errNotYet
	}
	if src.Torn != nil {
		return src.Torn
	}
	return nil
}

// errTaken is returned where the ids that a dropped file could have are taken.
var errTaken = errors.New("the session's id is taken by another session, and so is the one with the content's digest")

// claim gives a dropped file an id of its own in the ledger: its own, or where
// that is taken, with the beginning of its content digest behind it.
func (w *worker) claim(s *source, src *replay, e *Entry) error {
	s.start = startOf(src, s.since)
	sum := src.Summary()
	info := recorder.SealInfo{State: e.End, EndedAt: s.since, Totals: sum.Totals, Bytes: e.Source, Digest: e.Root}
	own := ownID(s.name, sum.Meta.Session)
	for _, id := range [...]string{own, withDigest(own, e.Root)} {
		if id == "" {
			continue
		}
		// In this order: a source goes after the catalog has its archive.
		if err := w.notTwice(id, e.Root); err != nil {
			return err
		}
		if same := w.catalog.same(e.Root); same != nil {
			return &duplicateError{same.ID, same.File}
		}
		err := w.cfg.Sessions.Enter(id, s.start, info)
		if err == nil {
			s.id, e.ID = id, id
			return nil
		}
		if !errors.Is(err, errExists) {
			return err
		}
	}
	return errTaken
}

var errExists = &recorder.Refusal{Code: recorder.CodeExists}

// notTwice finds the content in a file that is not archived yet.
func (w *worker) notTwice(id string, root format.Digest) error {
	st, ok := w.cfg.Sessions.Lookup(id)
	if !ok || st.Ended == nil || st.Ended.Digest != root {
		return nil
	}
	there, err := exists(w.disk, st.File)
	if err == nil && there {
		err = &duplicateError{st.ID, st.File}
	}
	return err
}

// startOf is when a dropped session started, as far as it says so.
func startOf(src *replay, filed time.Time) time.Time {
	if at := src.Summary().Meta.StartedAt; at > 0 && time.UnixMicro(at).Before(filed) {
		return time.UnixMicro(at).UTC()
	}
	return filed
}

// withDigestBytes of the digest are put behind an id.
const withDigestBytes = 4

func withDigest(id string, root format.Digest) string {
	ending := fmt.Sprintf("-%x", root[:withDigestBytes])
	if id == "" {
		return "file" + ending
	}
	return id[:min(len(id), format.MaxSessionID-len(ending))] + ending
}

var unsafeInID = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// ownID is the id that a replay has, or that the name of its file gives; empty
// where neither does.
func ownID(name, session string) string {
	if format.ValidSession(session) == nil {
		return session
	}
	base := path.Base(name)
	if id, _, ok := recorder.SplitName(base); ok {
		return id
	}
	for _, ending := range [...]string{".zst", ".gz", ".rply", ".jsonl"} {
		base = strings.TrimSuffix(base, ending)
	}
	id := strings.Trim(unsafeInID.ReplaceAllString(base, "-"), "-.")
	id = id[:min(len(id), format.MaxSessionID)]
	if format.ValidSession(id) != nil {
		return ""
	}
	return id
}
