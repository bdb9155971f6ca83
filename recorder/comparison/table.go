package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// table is a table in Markdown.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the table; the first column is text, the others are figures.
func (t *table) print(w io.Writer) {
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	fmt.Fprintf(w, "|---|%s\n", strings.Repeat("--:|", len(t.head)-1))
	for _, r := range t.rows {
		line(r)
	}
}

// none stands where there is no figure.
const none = "–"

// number prints v with three significant digits, at most two of them behind
// the point.
func number(v float64) string {
	switch {
	case math.IsNaN(v), math.IsInf(v, 0):
		return none
	case math.Abs(v) < 10:
		return fmt.Sprintf("%.2f", v)
	case math.Abs(v) < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return thousands(v)
}

// thousands prints a whole number in groups.
func thousands(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return none
	}
	s := fmt.Sprintf("%.0f", math.Abs(v))
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if v < 0 && s != "0" {
		return "-" + s
	}
	return s
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mebibytes(bytes float64) string { return number(bytes / (1 << 20)) }
