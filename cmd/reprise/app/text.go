package app

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// printable makes free text safe for a terminal: control characters, marks
// that turn the writing direction and invalid UTF-8 are escaped.
func printable(s string) string {
	if !strings.ContainsFunc(s, hidden) && utf8.ValidString(s) {
		return s
	}
	quoted := strconv.QuoteToGraphic(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// printableLines is printable for a message of several lines.
func printableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		text := strings.TrimLeft(line, "\t")
		lines[i] = line[:len(line)-len(text)] + printable(text)
	}
	return strings.Join(lines, "\n")
}

func hidden(r rune) bool {
	return !unicode.IsPrint(r) && r != ' ' || unicode.Is(unicode.Bidi_Control, r)
}

// atFile names the file that an error is about.
func atFile(path string, err error) error {
	return fmt.Errorf("%s: %w", printable(path), err)
}

// clockTime prints microseconds since 1970 as UTC; empty for 0.
func clockTime(micros int64) string {
	if micros == 0 {
		return ""
	}
	return time.UnixMicro(micros).UTC().Format(time.RFC3339Nano)
}

// duration prints seconds as a person reads them.
func duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case seconds >= math.MaxInt64/float64(time.Second):
		return fmt.Sprintf("%.4g years", seconds/(365.25*24*60*60))
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// counted prints a number with its noun.
func counted[N int | uint64 | int64](n N, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "sh"):
		return fmt.Sprintf("%d %ses", n, noun)
	case strings.HasSuffix(noun, "py"):
		return fmt.Sprintf("%d %sies", n, noun[:len(noun)-1])
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// were is the verb behind a number of things.
func were[N int | uint64](n N) string {
	if n == 1 {
		return "was"
	}
	return "were"
}
