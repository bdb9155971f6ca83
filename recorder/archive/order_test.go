package archive

import (
	"slices"
	"strings"
	"testing"
)

// The order of operations is the promise: written, synced, compared, renamed,
// folders synced, entered, and only then is the source removed.
func TestOrderOfOperations(t *testing.T) {
	d, l := newSimulated(1), newLedger()
	source, _ := l.record(t, d, match{id: "m-1", game: "chess", ticks: 40}, noon)
	a := opened(t, config(d, l))
	before := d.Operations()
	a.rounds()
	var ops []string
	for _, line := range d.Log()[before:] {
		_, op, _ := strings.Cut(line, " ")
		if len(ops) == 0 || ops[len(ops)-1] != op {
			ops = append(ops, op)
		}
	}
	want := []string{
		"create 0~new", "truncate 0~new", "write 0~new", "sync 0~new",
		"syncdir 11", "syncdir 2026", "syncdir archive", "syncdir .",
		"rename 0~new", "syncdir 29", "syncdir .new",
		"create catalog", "write catalog", "sync catalog", "syncdir .",
		"remove " + strings.TrimPrefix(source, "sealed/"), "syncdir sealed",
	}
	if !slices.Equal(ops, want) {
		t.Errorf("operations\n%s\nwant\n%s", strings.Join(ops, "\n"), strings.Join(want, "\n"))
	}
}

// What another run of more workers has left is removed at the start, and
// nothing else is.
func TestLeftoversAreRemoved(t *testing.T) {
	d, l := newSimulated(1), newLedger()
	put(t, d, "archive/.new/0~new", []byte("half"))
	put(t, d, "archive/.new/7~new", []byte("half"))
	put(t, d, "archive/.new/notes.txt", []byte("somebody's"))
	opened(t, config(d, l))
	if left := names(d, workFolder); !slices.Equal(left, []string{"archive/.new/notes.txt"}) {
		t.Errorf("left in the folder: %v", left)
	}
}
