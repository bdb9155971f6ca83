package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"reprise/format"
	"reprise/recorder"
)

// replay is an opened replay, and what is known of it beside its bytes.
type replay struct {
	*format.File
	path string
	// live is set where a running daemon is writing the file.
	live bool
}

// tornError is set where the file ends inside a record. In a live file that
// is the next one, which is being written.
func (r *replay) tornError() error {
	if r.Torn == nil || r.live {
		return nil
	}
	return r.Torn
}

// Words for states of a replay; end states have their own.
const (
	stateSealed   = "sealed"
	stateArchived = "archived"
)

// state is the state that info and ls print. An archive of a session that
// was not sealed is unfinished before anything else.
func (r *replay) state() string {
	switch end := r.Summary().End; {
	case r.Unproven():
		return "unproven"
	case end != nil && end.State == format.EndSealed && r.Summary().Archived():
		return stateArchived
	case end != nil:
		return end.State.String()
	case r.live:
		return "live"
	}
	return "unfinished"
}

// opener opens replays. It may be used by several goroutines.
type opener struct {
	stdin io.Reader

	mu sync.Mutex
	// running holds which data folders belong to a running daemon: to find
	// out means to try the folder's lock, which a daemon that starts wants.
	running map[string]bool
}

func newOpener(cmd *cobra.Command) *opener {
	return &opener{stdin: cmd.InOrStdin(), running: map[string]bool{}}
}

// open opens a file, or standard input for "-". The error does not name it.
func (o *opener) open(path string) (*replay, error) {
	f, err := o.file(path)
	if err != nil {
		return nil, openError(err)
	}
	r := &replay{File: f, path: path}
	if f.Source == "rply2" && f.Summary().End == nil {
		r.live = o.live(path)
	}
	return r, nil
}

func (o *opener) file(path string) (*format.File, error) {
	if path != "-" {
		return format.Open(path)
	}
	b, err := o.read(path)
	if err != nil {
		return nil, err
	}
	return format.NewFile(bytes.NewReader(b), int64(len(b)))
}

// openPacked opens JSON lines and packs the arguments that no step can hold
// into lists.
func (o *opener) openPacked(path string) (*replay, error) {
	f, err := o.packed(path)
	if err != nil {
		return nil, openError(err)
	}
	return &replay{File: f, path: path}, nil
}

func (o *opener) packed(path string) (*format.File, error) {
	b, err := o.read(path)
	if err != nil {
		return nil, err
	}
	src, size, _, err := format.Unwrap(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	var out format.Buffer
	if err := format.ReadJSONL(io.NewSectionReader(src, 0, size), &out, format.JSONLOptions{PackLists: true}); err != nil {
		return nil, err
	}
	return format.NewFile(&out, int64(len(out.Bytes())))
}

// read reads a whole file, or standard input for "-".
func (o *opener) read(path string) ([]byte, error) {
	if path != "-" {
		return os.ReadFile(path)
	}
	b, err := io.ReadAll(io.LimitReader(o.stdin, format.MaxUnwrapped+1))
	if err == nil && len(b) > format.MaxUnwrapped {
		return nil, fmt.Errorf("%w: standard input has more than %d bytes: give a file", format.ErrLimit, format.MaxUnwrapped)
	}
	return b, err
}

// live tells whether a running daemon holds the file: it then stands in the
// live folder of a data folder whose lock is taken.
func (o *opener) live(path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	folder := filepath.Dir(abs)
	if filepath.Base(folder) != "live" {
		return false
	}
	data := filepath.Dir(folder)
	o.mu.Lock()
	defer o.mu.Unlock()
	running, known := o.running[data]
	if !known {
		running = recorder.Running(data)
		o.running[data] = running
	}
	return running
}

// openError is the error of a file that does not open: one that goes over a
// limit counts like one that is damaged.
func openError(err error) error {
	if errors.Is(err, format.ErrLimit) {
		return &exitError{exitDamaged, err}
	}
	return cause(err)
}

// cause drops the path that os errors repeat.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// withReplay opens one file for a command; errors name the file.
func withReplay(path string, open func(string) (*replay, error), use func(*replay) error) error {
	r, err := open(path)
	if err == nil {
		err = use(r)
		r.Close()
	}
	if err != nil {
		return atFile(path, err)
	}
	return nil
}

// eachReplay opens one file after the other and goes on after one that
// fails. each is given the error of a file that does not open, and returns
// that of the file; the worst one is the result.
func eachReplay(cmd *cobra.Command, entries []replayEntry, each func(path string, r *replay, err error) error) error {
	o := newOpener(cmd)
	var worst outcome
	for _, entry := range entries {
		r, err := entry.open(o)
		err = each(entry.path, r, err)
		if r != nil {
			r.Close()
		}
		worst.add(err)
	}
	return worst.err()
}
