package ship

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/format"
)

// replacements are what can come to stand in the place of a file of which
// half was shipped.
var replacements = map[string]func(t *testing.T, path string, b []byte){
	"truncated": func(t *testing.T, path string, b []byte) { must(t, os.Truncate(path, int64(len(b)/4))) },
	"emptied":   func(t *testing.T, path string, b []byte) { must(t, os.Truncate(path, 0)) },
	"another match by rename": func(t *testing.T, path string, b []byte) {
		other := put(t, filepath.Dir(path), ".other", finished("half", 99, 900).bytes(t))
		must(t, os.Rename(other, path))
	},
	"another match in place": func(t *testing.T, path string, b []byte) {
		must(t, os.WriteFile(path, finished("half", 99, 900).bytes(t), 0o644))
	},
	"another match of another id": func(t *testing.T, path string, b []byte) {
		must(t, os.WriteFile(path, finished("other", 99, 900).bytes(t), 0o644))
	},
	"another match with the same metadata": func(t *testing.T, path string, b []byte) {
		m := finished("half", 31, 900)
		m.again = 1
		must(t, os.WriteFile(path, m.bytes(t), 0o644))
	},
	"no replay any more": func(t *testing.T, path string, b []byte) {
		must(t, os.WriteFile(path, bytes.Repeat([]byte("text "), len(b)), 0o644))
	},
	"the first bytes changed": func(t *testing.T, path string, b []byte) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		must(t, err)
		defer f.Close()
		_, err = f.WriteAt([]byte("XYZ"), 20)
		must(t, err)
	},
}

// held wants that the daemon has one session, with a part of b and nothing
// else.
func held(t *testing.T, h *host, b []byte) {
	t.Helper()
	h.stop()
	defer h.start()
	list := all(t, h.cfg.Data)
	if len(list) != 1 {
		t.Fatalf("the daemon has %v, want one replay", list)
	}
	got, err := os.ReadFile(list[0])
	must(t, err)
	want, have := bodies(t, b), bodies(t, got)
	if len(have) > len(want) || !slices.Equal(have, want[:len(have)]) {
		t.Errorf("the daemon's file is not a part of what it may have")
	}
}

// bodies lists the chunks of a replay, without their numbers.
func bodies(t *testing.T, b []byte) (list []string) {
	t.Helper()
	for at := format.HeaderSize; at < len(b); {
		c, n, err := format.ParseChunk(b[at:])
		if errors.Is(err, format.ErrTorn) {
			break
		}
		must(t, err)
		list = append(list, fmt.Sprintf("%v %x", c.Type, c.Body))
		at += n
	}
	return list
}

// The file is exchanged while ship looks on.
func TestAReplacedFileIsRefused(t *testing.T) {
	t.Parallel()
	for what, replace := range replacements {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			dir := t.TempDir()
			b := finished("half", 31, 600).bytes(t)
			path := put(t, dir, "half.rply", b[:len(b)/2])
			r := follow(t, h.config(dir))
			wait(t, h, b[:len(b)/2])
			replace(t, path, b)
			if e := r.await(EventFailed, "half.rply", 1); !errors.Is(e.Err, ErrReplaced) {
				t.Errorf("given up for %v, want ErrReplaced", e.Err)
			}
			r.end()
			held(t, h, b)
		})
	}
}

// The file is exchanged while ship is down.
func TestAFileReplacedBetweenRunsIsRefused(t *testing.T) {
	t.Parallel()
	for what, replace := range replacements {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			dir := t.TempDir()
			b := finished("half", 31, 600).bytes(t)
			path := put(t, dir, "half.rply", b[:len(b)/2])
			unsealed(t, begin(t, h.config(dir)), Summary{Unfinished: 1})
			replace(t, path, b)
			r := begin(t, h.config(dir))
			unsealed(t, r, Summary{Failed: 1})
			if err := failure(t, r, "half.rply"); !errors.Is(err, ErrReplaced) {
				t.Errorf("given up for %v, want ErrReplaced", err)
			}
			held(t, h, b)
		})
	}
}

// A power cut took the newer record and the end of the file, or the file was
// exchanged as well: what the daemon has tells.
func TestAnOldRecordAndAnotherFile(t *testing.T) {
	for what, replace := range map[string]func(t *testing.T, path string, b []byte){
		"truncated":                            replacements["truncated"],
		"another match with the same metadata": replacements["another match with the same metadata"],
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			dir := t.TempDir()
			b := finished("half", 31, 600).bytes(t)
			path := put(t, dir, "half.rply", b[:len(b)/2])
			unsealed(t, begin(t, h.config(dir)), Summary{Unfinished: 1})
			book, err := openBook(filepath.Join(dir, StateFolder), dir)
			must(t, err)
			record := book.find("half.rply")
			record.Offset, record.Sum = 0, ""
			must(t, book.save(record, true))
			book.close()
			replace(t, path, b)
			r := begin(t, h.config(dir))
			unsealed(t, r, Summary{Failed: 1})
			if err := failure(t, r, "half.rply"); !errors.Is(err, ErrReplaced) || !strings.Contains(err.Error(), "the daemon has") {
				t.Errorf("given up for %v, want ErrReplaced and what the daemon has", err)
			}
			held(t, h, b)
		})
	}
}

// wait waits until the daemon's live file holds all ticks of part.
func wait(t *testing.T, h *host, part []byte) {
	t.Helper()
	f, err := format.NewFile(bytes.NewReader(part), int64(len(part)))
	must(t, err)
	want := f.Summary().Totals
	eventually(t, "all ticks in the daemon's live file", func() bool {
		list := all(t, h.cfg.Data)
		if len(list) != 1 {
			return false
		}
		f, err := format.Open(list[0])
		if err != nil {
			return false
		}
		defer f.Close()
		return f.Summary().Totals == want
	})
}

// A copy of the same bytes in the place of the file is the same file.
func TestACopyGoesOn(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	b := finished("half", 32, 600).bytes(t)
	path := put(t, dir, "half.rply", b[:len(b)/2])
	r := follow(t, h.config(dir))
	wait(t, h, b[:len(b)/2])
	must(t, os.Rename(put(t, dir, ".copy", b), path))
	r.await(EventSealed, "half.rply", 1)
	same(t, b, sealedOne(t, h.cfg.Data, "half"))
}

func TestASealedFileThatChangesIsNamed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	b := finished("done", 33, 100).bytes(t)
	path := put(t, dir, "done.rply", b)
	r := follow(t, h.config(dir))
	r.await(EventSealed, "done.rply", 1)
	must(t, os.WriteFile(path, finished("done", 34, 100).bytes(t), 0o644))
	if e := r.await(EventFailed, "done.rply", 1); !errors.Is(e.Err, ErrReplaced) {
		t.Errorf("given up for %v, want ErrReplaced", e.Err)
	}
	r.end()
	// The same bytes, written again, are what was sealed.
	must(t, os.WriteFile(path, b, 0o644))
	if got := once(t, h.config(dir)).summary(); got != (Summary{Before: 1}) {
		t.Errorf("summary %+v", got)
	}
}

// A live file is renamed: by the id it names, or by what it holds, it is
// known again.
func TestARenamedFileKeepsItsSession(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"named", ""} {
		t.Run("id "+id, func(t *testing.T) {
			h := newHost(t)
			dir := t.TempDir()
			b := finished(id, 35, 600).bytes(t)
			path := put(t, dir, "before.rply", b[:len(b)/2])
			r := follow(t, h.config(dir))
			wait(t, h, b[:len(b)/2])
			to := filepath.Join(dir, "after.rply")
			must(t, os.Rename(path, to))
			appendTo(t, to, b[len(b)/2:])
			r.await(EventSealed, "after.rply", 1)
			if err := r.end(); err != nil {
				t.Errorf("%v\n%s", err, r)
			}
			list := all(t, h.cfg.Data)
			if len(list) != 1 {
				t.Fatalf("the daemon has %v, want one replay", list)
			}
			same(t, b, list[0])
		})
	}
}

func TestAFileThatVanishesIsNamed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	path := put(t, dir, "gone.rply", live("gone", 36, 50).bytes(t))
	r := follow(t, h.config(dir))
	r.await(EventStarted, "gone.rply", 1)
	must(t, os.Remove(path))
	if e := r.await(EventFailed, "gone.rply", 1); !errors.Is(e.Err, errGone) {
		t.Errorf("given up for %v, want errGone", e.Err)
	}
	if err := r.end(); !errors.Is(err, ErrUnsealed) || r.summary() != (Summary{Failed: 1}) {
		t.Errorf("%v, %+v", err, r.summary())
	}
}
