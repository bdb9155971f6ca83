package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"reprise/format"
	"reprise/player"
)

// verdict is what check and verify find of one file.
type verdict struct {
	File    jsonText `json:"file"`
	Status  string   `json:"status"`
	Exit    int      `json:"exit"`
	Problem jsonText `json:"problem,omitempty"`

	err error
}

// settle turns the error that ended the work on a file into the verdict.
func (v *verdict) settle(err error) {
	v.err, v.Exit, v.Status = err, exitCode(err), statusOf(err)
	if err != nil {
		v.Problem = jsonText(errorText(err))
	}
}

// statusOf names a result in a word or two.
func statusOf(err error) string {
	switch {
	case isError[*player.StepFailure](err):
		return "step failed"
	case isError[*repeatError](err):
		return "not repeatable"
	case isError[*player.KeyframeError](err) && !isError[*player.DesyncError](err):
		return "wrong keyframe"
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	switch exitCode(err) {
	case exitOK:
		return "ok"
	case exitFalse:
		return "desync"
	case exitPartly:
		return "gap"
	case exitDamaged:
		return damageStatus(err)
	case exitNothing:
		return "nothing compared"
	case exitGame:
		return "wrong game"
	case exitSimulation:
		return "simulation failed"
	}
	return "not tried"
}

func damageStatus(err error) string {
	switch {
	case errors.Is(err, format.ErrNotReplay):
		return "not a replay"
	case errors.Is(err, format.ErrNewer):
		return "newer"
	case errors.Is(err, format.ErrTorn):
		return "torn"
	case errors.Is(err, format.ErrLimit):
		return "over a limit"
	}
	return "damaged"
}

// print prints the verdict as a line: status, file, facts, problem, notes.
func (v *verdict) print(w io.Writer, facts string, notes []jsonText) error {
	parts := []string{fmt.Sprintf("%-17s %s", v.Status, printable(string(v.File)))}
	if facts != "" {
		parts = append(parts, facts)
	}
	if v.Problem != "" {
		parts = append(parts, printableLines(string(v.Problem)))
	}
	line := strings.Join(parts, ": ")
	for _, note := range notes {
		line += "; " + printable(string(note))
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// tally counts files by their status.
type tally struct {
	files int
	order []string
	count map[string]int
}

func (t *tally) add(v *verdict) {
	if t.count == nil {
		t.count = map[string]int{}
	}
	if t.count[v.Status] == 0 {
		t.order = append(t.order, v.Status)
	}
	t.files++
	t.count[v.Status]++
}

// print sums several files up.
func (t *tally) print(w io.Writer) error {
	if t.files < 2 {
		return nil
	}
	line := counted(t.files, "file")
	for i, status := range t.order {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		line += fmt.Sprintf("%s%d %s", separator, t.count[status], status)
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
