package process

import (
	"errors"
	"strings"
	"unicode"
)

// ChildError is what is known of a child that ended, hung or answered badly.
// It is the Err of a player.SimulationError.
type ChildError struct {
	// Err is what was wrong with its answer, if it was that.
	Err error
	// Status says how the process ended, for example "exit status 3"; empty
	// where it was still running and had to be killed.
	Status string
	// Output holds the last lines that it wrote to its standard output and
	// error.
	Output []string
}

func (e *ChildError) Error() string {
	var parts []string
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	if e.Status != "" {
		parts = append(parts, e.Status)
	}
	if len(e.Output) > 0 {
		parts = append(parts, "the last that it wrote:\n\t"+strings.Join(e.Output, "\n\t"))
	}
	if len(parts) == 0 {
		return "it wrote nothing"
	}
	return strings.Join(parts, "; ")
}

func (e *ChildError) Unwrap() error { return e.Err }

// mostReason bounds a text of the simulation as it is shown.
const mostReason = 4 << 10

// reasonError makes an error of a text that the simulation sent; nil of none.
func reasonError(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(printable(text))
}

// printable bounds a foreign text and takes out what would confuse a terminal.
func printable(text string) string {
	if len(text) > mostReason {
		text = text[:mostReason] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
