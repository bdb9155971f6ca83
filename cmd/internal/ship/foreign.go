package ship

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"reprise/format"
)

// foreign is a file that cannot be read while it grows: RPLY1, JSON lines, or
// any replay inside a wrapping. It is turned into RPLY2 in memory, alike each
// time.
type foreign struct {
	chunks chunks
	// size and sum are those of the file.
	size int64
	sum  string
	// whole is set where the format has no end mark, and the file is taken
	// for whole.
	whole bool
	// ending is why it is not.
	ending string
}

// native tells whether a file's first bytes are those of RPLY2, as far as
// they go.
func native(head []byte) bool { return strings.HasPrefix(format.Magic, string(head)) }

// loadForeign reads a whole file.
func loadForeign(f *os.File, st fs.FileInfo) (*foreign, error) {
	size := st.Size()
	file, err := format.NewFile(f, size)
	if err != nil {
		return nil, err
	}
	x := &foreign{size: size, whole: file.Unproven()}
	if file.Unproven() {
		if err := x.judge(file, f); err != nil {
			return nil, err
		}
	}
	if x.sum, err = sumOf(f, size); err != nil {
		return nil, err
	}
	raw := file.Raw()
	x.chunks = chunks{src: raw, size: raw.Size()}
	return x, nil
}

// judge finds out whether a file of a format without an end mark that can be
// trusted is whole.
func (x *foreign) judge(file *format.File, f *os.File) error {
	if file.Torn != nil {
		x.whole, x.ending = false, file.Torn.Error()
		return nil
	}
	end := file.Summary().End
	if file.Source != "jsonl" || end == nil || end.State == format.EndSealed {
		return nil
	}
	stated, err := statesEnd(f, x.size)
	if err != nil {
		return err
	}
	if stated {
		x.whole, x.ending = false, fmt.Sprintf("unfinished where it comes from: %s", end.Reason)
	}
	return nil
}

// statesEnd tells whether JSON lines have an end line.
func statesEnd(f *os.File, size int64) (bool, error) {
	src, size, _, err := format.Unwrap(f, size)
	if err != nil {
		return false, err
	}
	r, err := format.NewJSONLReader(io.NewSectionReader(src, 0, size), format.JSONLOptions{})
	for err == nil {
		var l *format.Line
		if l, err = r.Next(); err == nil && l.Kind == format.LineEnd {
			return true, nil
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return false, err
}
