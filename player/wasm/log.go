package wasm

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
)

const (
	// mostLogged bounds what a module may write in one replay.
	mostLogged = 1 << 20
	// lastBytes and lastLines bound what errors show of it.
	lastBytes = 4 << 10
	lastLines = 20
)

// outputLog takes what a module writes to standard output and error.
type outputLog struct {
	out    io.Writer // may be nil
	passed int
	last   []byte
}

// begin starts the log of a replay.
func (l *outputLog) begin() { l.passed, l.last = 0, l.last[:0] }

// write never fails: what a module sees does not depend on who reads its log.
func (l *outputLog) write(b []byte) {
	l.last = append(l.last, b[max(0, len(b)-lastBytes):]...)
	if cut := len(l.last) - lastBytes; cut > 0 {
		l.last = append(l.last[:0], l.last[cut:]...)
	}
	if l.out == nil || l.passed > mostLogged {
		return
	}
	room := min(len(b), mostLogged-l.passed)
	l.passed += len(b)
	_, _ = l.out.Write(b[:room])
	if l.passed > mostLogged {
		_, _ = fmt.Fprintf(l.out, "\n(more than %d bytes of output: the rest is dropped)\n", mostLogged)
	}
}

// lines gives the last lines that were written.
func (l *outputLog) lines() []string {
	text := strings.ToValidUTF8(string(bytes.TrimSpace(l.last)), "\uFFFD")
	if text == "" {
		return nil
	}
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, text)
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-lastLines):]
}
