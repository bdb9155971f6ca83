package app

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	progressPause = 100 * time.Millisecond
	// progressWidth fits the narrowest usual terminal.
	progressWidth = 79
)

// progress shows where a long command is, on one line of a terminal that is
// written again and again. Where stderr is none, it shows nothing.
type progress struct {
	w io.Writer

	mu    sync.Mutex
	last  time.Time
	shown bool
}

func newProgress(stderr io.Writer) *progress {
	if !isTerminal(stderr) {
		return &progress{}
	}
	return &progress{w: stderr}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// show puts a text in place of the last one, not more often than a person
// can read.
func (p *progress) show(text string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil || time.Since(p.last) < progressPause {
		return
	}
	p.last, p.shown = time.Now(), true
	fmt.Fprintf(p.w, "\r\x1b[K%s", shorten(printable(fmt.Sprintf(text, args...)), progressWidth))
}

// clear makes room for other output.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// shorten keeps the first n characters.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
